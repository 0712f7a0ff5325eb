"""The record of a run in plain words, for a lawyer, an auditor and a file.

It is made of the result folder and the ledger's lines alone, so verifying a bundle makes it again
and compares: no participant can sign other words.
"""

from collections.abc import Sequence
from typing import Any

from splitmeans.evidence.ledger_extract import NONE
from splitmeans.evidence.pages import Section
from splitmeans.evidence.sections import by_column, onlookers, participants, releases, retention
from splitmeans.privacy.ledger_rules import Entry
from splitmeans.result.result import Result
from splitmeans.study.options import TOWARDS_SERVER
from splitmeans.wire.identity import spoken


def title_of(result: Result, participant: str) -> str:
    """Return the heading of the record."""
    return f"Record of run {result.facts['run']} of study {result.study.name}, by {participant}"


def record_of(
    result: Result, *, participant: str, entries: Sequence[Entry], spent: Any
) -> tuple[Section, ...]:
    """Return the record of a run as the participant knows it.

    Args:
        result: The result folder, which was checked.
        participant: Whose record it is.
        entries: The participant's ledger lines of the run.
        spent: What each of its data sources has spent since the beginning.
    """
    privacy = result.privacy
    return (
        _summary(result, participant=participant, entries=entries),
        participants(result.study),
        by_column(privacy),
        releases(privacy),
        onlookers(privacy),
        _charged(participant, entries=entries, spent=spent),
        retention(),
        _digits(result),
    )


def _summary(result: Result, *, participant: str, entries: Sequence[Entry]) -> Section:
    study, facts = result.study, result.facts
    others = [name for name in study.party_names if name != participant]
    charged = [entry.time for entry in entries if entry.kind in ("charge", "added")]
    rows = [
        ("Study", f"{study.name}, agreed by {', '.join(study.party_names)}"),
        ("Digits of the study, as people compared them", spoken(study.hash)),
        ("Run", facts["run"]),
        ("This record is by", participant),
        ("With", ", ".join([*others, "server"] if participant != "server" else others)),
        ("Charged to this organisation's ledger", ", ".join(charged) or "not charged"),
        ("Published by the server, by its clock", facts["published_at"]),
        ("Result written here", facts["written_at"]),
        ("Total", result.privacy.total_words),
        ("Agreed at most", study.budget.words),
        ("Software", f"splitmeans {facts['splitmeans']}"),
    ]
    return Section(
        heading="In short",
        text=(
            "Several organisations found common groups among the people about whom each of them "
            "has data. No organisation showed its data to another. Each sent messages with random "
            "noise in them to a server, which computed the groups from these messages alone. "
            "Times are in UTC.",
        ),
        head=("What", "This run"),
        rows=tuple(rows),
    )


def _charged(participant: str, *, entries: Sequence[Entry], spent: Any) -> Section:
    if participant == "server":
        return Section(heading="What was charged", text=(f"Nothing: {NONE}.",))
    sums = [
        f"All runs on the data called {source!r} so far: epsilon {float(own['epsilon']):.4g}, "
        f"delta {float(own['delta']):.3g} {TOWARDS_SERVER}; "
        + (
            "no limit is set."
            if own["limit_epsilon"] is None
            else f"the limit is epsilon {float(own['limit_epsilon']):g}, delta "
            f"{float(own['limit_delta']):g}."
        )
        for source, own in spent.items()
    ]
    return Section(
        heading="What was charged",
        text=(
            "The ledger of this organisation has these entries about the run. A charge is written "
            "before anything is sent and never given back; it is the whole agreed budget, also if "
            "the run needs a little less.",
        ),
        head=("Entry", "Time", "Kind", "Data", "Released", "Cost, towards the server and readers"),
        rows=tuple(
            (
                str(entry.number),
                entry.time,
                entry.kind,
                entry.source,
                entry.what or "",
                "covered by the charge"
                if entry.kind not in ("charge", "added")
                else f"epsilon {entry.epsilon:g}, delta {entry.delta:g}",
            )
            for entry in entries
        ),
        notes=tuple(sums),
    )


def _digits(result: Result) -> Section:
    facts = result.facts
    return Section(
        heading="Hashes",
        text=(
            "By these anyone can tell whether two records are about the same run. `splitmeans "
            "archive verify` compares all of them and computes epsilon again.",
        ),
        head=("Of", "SHA-256"),
        rows=(
            ("the study", facts["study_hash"]),
            ("the plan: every noise law and number", facts["plan"]),
            ("the result, as the server signed it", facts["result_hash"]),
        ),
    )
