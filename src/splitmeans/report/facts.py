"""What identifies a run in its report, and how it was made."""

import numpy as np

from splitmeans.plan.size_stage import sizing_parties
from splitmeans.result.result import Result
from splitmeans.result.signed import signer_text
from splitmeans.study import EQUAL, EVERYONE, Study


def run_facts(result: Result) -> tuple[tuple[str, str], ...]:
    """Return what identifies a run and how it was made, each with a name for people."""
    study, synopsis, facts = result.study, result.synopsis, result.facts
    if study.counts_only:
        return _count_facts(result)
    users = synopsis.weights > 0
    nodes, used = len(users), int(users.sum())
    if synopsis.labels is not None:
        used = len(np.unique(synopsis.labels[users], axis=0))
    listed = [
        *_which_run(result),
        *_whose(study),
        ("Memberships sent by", study.membership),
        ("Local clusters", _local_clusters(result)),
        ("Columns count", _SCALING[study.scaling]),
        ("Grid cells with users", f"{used:,}"),
        ("Points of the grid", f"{nodes:,}, {_POINTS[synopsis.has_places]}"),
        *_released_count(result),
        ("Messages in the transcript", _messages(len(result.messages))),
        ("Made by", f"splitmeans {facts['splitmeans']} (not signed)"),
    ]
    return tuple(listed)


def _which_run(result: Result) -> tuple[tuple[str, str], ...]:
    """Return which run this is, and who was to take part."""
    study, facts = result.study, result.facts
    return (
        ("Study", study.name),
        ("Study hash", study.hash),
        ("Run", facts["run"]),
        ("Published", f"{facts['published_at']}, by the server's clock (UTC)"),
        ("Signature", _signature(result)),
        (
            "Result held by",
            f"{facts['participant']}, written {facts['written_at']} (not signed)",
        ),
        *([("Names of segments", "given by the holder (not signed)")] if result.names else []),
        ("Result hash", facts["result_hash"]),
        ("Plan fingerprint", facts["plan"]),
        ("Parties", ", ".join(study.party_names)),
        ("Users expected by the study", _expected(study.expected_users)),
    )


def _count_facts(result: Result) -> tuple[tuple[str, str], ...]:
    """Return the facts of a study of counts alone: nothing was clustered."""
    study, facts = result.study, result.facts
    return (
        *_which_run(result),
        ("Asked for", "counts alone; no column was read"),
        ("Counted by", study.membership),
        ("Messages in the transcript", _messages(len(result.messages))),
        ("Made by", f"splitmeans {facts['splitmeans']} (not signed)"),
    )


_POINTS = {
    True: "made up to lie as users do",
    False: "one for each cell",
}

_SCALING = {
    None: "through their bounds",
    EQUAL: "each the same in distances, times its weight",
}


def _whose(study: Study) -> tuple[tuple[str, str], ...]:
    """Return whose segments these are."""
    if study.population == EVERYONE:
        text = (
            "everyone at one party or more; what a user is like where it is not was filled in from "
            "users like it, by a model"
        )
        return (("Segments are of", text),)
    return (("Segments are of", "users at all parties"),)


def _signature(result: Result) -> str:
    """Return who signed, and what reading the folder has shown."""
    text = signer_text(result.study.server_key if result.signed else None)
    return f"{text}; it fits the key in study.toml" if result.signed else text


def _local_clusters(result: Result) -> str:
    """Return how many local clusters of each party the grid combines."""
    labels = result.synopsis.labels
    if labels is None:
        return "not known"
    counts = labels.max(axis=0) + 1
    return ", ".join(
        f"{count} at {party}" for party, count in zip(result.study.party_names, counts, strict=True)
    )


def _released_count(result: Result) -> tuple[tuple[str, str], ...]:
    parties = sizing_parties(result.study)
    if not parties or not result.released:
        return ()
    counts = ", ".join(
        f"{own:,} at {party}" for party, (own,) in zip(parties, result.released[0], strict=True)
    )
    return (("Users as released, noisy", counts),)


def _messages(count: int) -> str:
    return f"{count:,} (not signed)" if count else "none: the run was simulated in one process"


def _expected(users: int | None) -> str:
    return "not said" if users is None else f"{users:,}"
