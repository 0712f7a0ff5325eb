"""Charging a run to the ledger: whether there is room, then the whole run at its first release."""

import json
from collections.abc import Callable, Mapping

from splitmeans.errors import BudgetError
from splitmeans.privacy.events import Relation
from splitmeans.privacy.ledger import Charge, Ledger
from splitmeans.privacy.ledger_rules import Towards
from splitmeans.run.drive import Sealed
from splitmeans.run.journal import Journal
from splitmeans.run.notes import Note
from splitmeans.run.records import RunKey
from splitmeans.run.series import draw_slot
from splitmeans.study import Study
from splitmeans.study.options import TOWARDS_SERVER
from splitmeans.wire.messages import PartyRelease, StageRelease, kind_of, kinds_of

# What costs privacy; everything else that a party sends depends on no row.
RELEASES = kinds_of((StageRelease, PartyRelease))


def check_room(journal: Journal, key: RunKey, *, source: str, cost: Charge) -> None:
    """Refuse a run that the source's limit has no room for, beside those that go on now.

    Others would spend for nothing in whichever of them is charged last. A run of a series that was
    charged needs no room.

    Raises:
        BudgetError: There is no room, or the home was restored and not recovered.
    """
    ledger = Ledger(journal.connection)
    ledger.book().check_recovered()
    if _is_charged(ledger, study_hash=key.study_hash, run=key.run, party=key.participant):
        return
    ledger.check_room(source, cost)
    beside: dict[str, Charge] = {}
    for other in journal.side_by_side(key):
        run = {"study_hash": other["study_hash"], "run": other["run"]}
        if other["source"] != source:
            continue
        if not _is_charged(ledger, **run, party=key.participant):
            beside[f"run {other['run']!r} of study {other['study']!r}"] = Charge(
                relation=Relation.ADD_OR_REMOVE,
                epsilon=float(other["epsilon"]),
                delta=float(other["delta"]),
                towards=Towards(**json.loads(other["towards"])),
            )
    try:
        ledger.check_room(source, cost, beside=list(beside.values()))
    except BudgetError as problem:
        raise BudgetError(
            f"with what goes on at the moment ({', '.join(beside)}): {problem}"
        ) from problem


def _is_charged(ledger: Ledger, *, study_hash: str, run: str, party: str) -> bool:
    """Whether a run was charged, or the series that it is of."""
    if ledger.series_of(study_hash=study_hash, party=party) is not None:
        return True
    return ledger.charge_of(study_hash=study_hash, run=run, party=party) is not None


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

    The cost is of all runs together if there is a series of them, `note` what the ledger keeps with
    a charge. `releases` has the hash of each release by what slots call its message. `late` ones
    were sent before, and this home had forgotten it.
    """
    ledger = Ledger(journal.connection)
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
        ledger.charge(source, cost, late=late, note=note, **facts)
        spent = f"epsilon {cost.epsilon:g}, delta {cost.delta:g}"
        text = f"charged {spent} to source {source!r}, {TOWARDS_SERVER}"
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
