"""Whether a limit has room for a run, beside those that go on at the same time."""

import json

from splitmeans.errors import BudgetError
from splitmeans.privacy.events import Relation
from splitmeans.privacy.ledger import Charge
from splitmeans.privacy.ledger_rules import Towards
from splitmeans.privacy.series_ledger import SeriesLedger
from splitmeans.run.journal import Journal
from splitmeans.run.records import RunKey


def check_room(journal: Journal, key: RunKey, *, source: str, cost: Charge) -> None:
    """Refuse a run that the source's limit has no room for, beside those that go on now.

    Others would spend for nothing in whichever of them is charged last. A run of a series that was
    charged needs no room.

    Raises:
        BudgetError: There is no room, or the home was restored and not recovered.
    """
    ledger = SeriesLedger(journal.connection)
    ledger.book().check_recovered()
    if _is_charged(ledger, study_hash=key.study_hash, run=key.run, party=key.participant):
        return
    ledger.check_room(source, cost)
    beside: dict[str, Charge] = {}
    for other in journal.side_by_side(key):
        run = {"study_hash": other["study_hash"], "run": other["run"]}
        if other["source"] != source or "epsilon" not in other:
            continue
        if not _is_charged(ledger, **run, party=key.participant):
            name = f"run {other['run']!r} of study {other['study']!r}"
            towards = Towards(**json.loads(other["towards"])) if "towards" in other else None
            beside[name] = Charge(
                relation=Relation.ADD_OR_REMOVE,
                epsilon=float(other["epsilon"]),
                delta=float(other["delta"]),
                towards=towards,
            )
    try:
        ledger.check_room(source, cost, beside=list(beside.values()))
    except BudgetError as problem:
        raise BudgetError(
            f"with what goes on at the moment ({', '.join(beside)}): {problem}"
        ) from problem


def _is_charged(ledger: SeriesLedger, *, study_hash: str, run: str, party: str) -> bool:
    """Whether a run was charged, or the series that it is of."""
    if ledger.series_of(study_hash=study_hash, party=party) is not None:
        return True
    return ledger.charge_of(study_hash=study_hash, run=run, party=party) is not None
