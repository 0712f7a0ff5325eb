"""Charging a run to the ledger: the whole run at its first release, what follows is covered."""

from collections.abc import Callable, Mapping

from splitmeans.privacy.ledger import Charge
from splitmeans.privacy.series_ledger import SeriesLedger
from splitmeans.run.drive import Sealed
from splitmeans.run.journal import Journal
from splitmeans.run.notes import Note
from splitmeans.run.records import RunKey
from splitmeans.run.slots import draw_slot
from splitmeans.study import Study
from splitmeans.wire.messages import PartyRelease, StageRelease, kind_of, kinds_of

# What costs privacy; everything else that a party sends depends on no row.
RELEASES = kinds_of((StageRelease, PartyRelease))


def charge_releases(
    journal: Journal,
    key: RunKey,
    *,
    study: Study,
    cost: Charge,
    note: str | None,
    releases: Mapping[str, str],
    late: bool,
    say: Callable[[str], None],
) -> None:
    """Charge the whole run at its first release; inside the transaction that stores it.

    Args:
        journal: The party's journal, with the ledger.
        key: The run, which has begun.
        study: Its study.
        cost: Of the run; of all runs together if there is a series of them.
        note: What the ledger keeps with a charge.
        releases: Hash of each release by what slots call its message.
        late: They were sent before, and this home had forgotten it.
        say: Told what was charged.
    """
    ledger = SeriesLedger(journal.connection)
    saved = journal.load(key)
    assert saved is not None
    source = saved.details["source"]
    for kind, sha256 in releases.items():
        run = {"study_hash": key.study_hash, "run": key.run, "party": key.participant}
        facts = {**run, "what": kind, "release_sha256": sha256}
        if ledger.charge_of(**run) is not None:
            ledger.cover(source, **facts)
            continue
        if study.renewal is not None:
            draw_slot(
                ledger, study, source=source, cost=cost, late=late, say=say, note=note, **facts
            )
            continue
        (ledger.add if late else ledger.charge)(source, cost, note=note, **facts)
        spent = f"epsilon {cost.epsilon:g}, delta {cost.delta:g}"
        text = f"charged {spent} to source {source!r}"
        figures = {"epsilon": cost.epsilon, "delta": cost.delta}
        say(Note(text, event="charged", kind=kind, **figures))


def releases_among(messages: list[Sealed]) -> dict[str, str]:
    """Return the hash of each release among messages; one that goes to several is one release."""
    found: dict[str, str] = {}
    for message in messages:
        kind = kind_of(message.envelope.message)
        if kind in RELEASES:
            found.setdefault(kind, message.sha256)
    return found
