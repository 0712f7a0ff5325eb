"""A series in the ledger: charged once, a slot for each run, nothing that changes it."""

import sqlite3
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import BudgetError
from splitmeans.privacy import ledger_rules
from splitmeans.privacy.events import GaussianEvent, Relation
from splitmeans.privacy.ledger import Charge, Ledger
from splitmeans.privacy.ledger_rules import Entry
from splitmeans.privacy.limits import Limit
from splitmeans.privacy.series import Series, events_digest
from tests.privacy.test_ledger import NOON, RELEASE, STUDY, charge, committed, new_database


def ledger_of(connection: sqlite3.Connection) -> Ledger:
    return Ledger(connection, now=lambda: NOON)


SERIES = Series(runs=3, events="ef" * 32)
TOTAL = Charge(relation=Relation.ADD_OR_REMOVE, epsilon=1.0, delta=1e-5)


def draw(connection: sqlite3.Connection, number: int, **values: Any) -> Entry:
    facts = {
        "source": "customers",
        "series": SERIES,
        "cost": TOTAL,
        "study_hash": STUDY,
        "run": str(number),
        "party": "bank",
        "what": "PartyRelease",
        "release_sha256": RELEASE,
    } | values
    ledger = ledger_of(connection)
    source, series = facts.pop("source"), facts.pop("series")
    return committed(connection, lambda: ledger.draw_slot(source, series, number, **facts))


def slots(connection: sqlite3.Connection) -> list[int]:
    return sorted(ledger_of(connection).slots_of(study_hash=STUDY, party="bank"))


def test_a_series_is_charged_once_whatever_its_runs_do() -> None:
    connection = new_database()
    for number in (1, 2, 3):
        draw(connection, number)
        assert ledger_of(connection).spent("customers").epsilon == 1.0
    kinds = [(entry.kind, entry.run, entry.covered_by) for entry in ledger_of(connection).entries()]
    assert kinds == [
        ("charge", "series", None),
        ("slot", "1", 1),
        ("slot", "2", 1),
        ("slot", "3", 1),
    ]
    assert ledger_of(connection).verify().n_entries == 4


def test_later_releases_of_a_run_are_covered_by_its_slot() -> None:
    connection = new_database()
    slot = draw(connection, 2, what="StageRelease_1")
    ledger = ledger_of(connection)
    facts = {"study_hash": STUDY, "run": "2", "party": "bank", "release_sha256": RELEASE}
    cover = committed(connection, lambda: ledger.cover("customers", what="PartyRelease", **facts))
    assert cover.covered_by == slot.number
    with pytest.raises(BudgetError, match="resend the stored bytes"):
        committed(connection, lambda: ledger.cover("customers", what="PartyRelease", **facts))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"number": 1, "run": "1-2"}, "slot 1 .* was used by run '1'.*go on with run 2"),
        ({"number": 1}, "has released 'PartyRelease' already"),
        ({"number": 4}, "asks for slot 4 of 3"),
        ({"number": 0, "run": "x"}, "asks for slot 0 of 3"),
        ({"number": 2, "series": Series(runs=3, events="00" * 32)}, "other noise than the series"),
    ],
)
def test_what_would_change_a_series_is_refused(values: dict[str, Any], problem: str) -> None:
    connection = new_database()
    draw(connection, 1)
    with pytest.raises(BudgetError, match=problem):
        draw(connection, **values)
    assert slots(connection) == [1]


def test_a_series_has_no_runs_beside_its_slots() -> None:
    connection = new_database()
    draw(connection, 1)
    with pytest.raises(BudgetError, match="must take a slot"):
        charge(connection, run="2")
    assert charge(connection, run="2", party="shop").kind == "charge"


def test_a_limit_sees_the_total_at_once_and_only_once() -> None:
    connection = new_database()
    committed(
        connection,
        lambda: ledger_of(connection).set_limit("customers", Limit(epsilon=1.5, delta=1e-4)),
    )
    draw(connection, 1)
    draw(connection, 2)
    with pytest.raises(BudgetError, match="would have spent"):
        draw(connection, 1, study_hash="12" * 32)
    with pytest.raises(BudgetError, match="would have spent"):
        charge(connection, study_hash="34" * 32, epsilon=0.6)
    draw(connection, 3)
    # What was released is added, whatever the limit is.
    assert draw(connection, 1, study_hash="12" * 32, late=True).series_run == 1
    assert ledger_of(connection).spent("customers").epsilon == 2.0


def test_a_slot_is_in_the_chain() -> None:
    connection = new_database()
    draw(connection, 1)
    draw(connection, 3)
    connection.execute("DROP TRIGGER ledger_update")
    connection.execute("UPDATE ledger SET series_run = 2 WHERE number = 2")
    with pytest.raises(BudgetError, match="entry 2 was changed"):
        ledger_of(connection).verify()


def test_the_digest_is_of_what_is_composed() -> None:
    event = GaussianEvent(noise_multiplier=5.0)
    same = events_digest((event, event), runs=3)
    assert same == events_digest([event, event], runs=3)
    others = [
        events_digest((event,), runs=3),
        events_digest((event, event), runs=4),
        events_digest((event, GaussianEvent(noise_multiplier=4.9)), runs=3),
    ]
    assert same not in others


_TRIES = st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=12)


def play(tries: list[tuple[int, bool]]) -> tuple[list[int], int]:
    """Ask for slots, some late; return those that were given, and what was spent."""
    connection, given_slots = new_database(), []
    for at, (number, late) in enumerate(tries):
        try:
            draw(connection, number, run=f"run-{at}", late=late)
            given_slots.append(number)
        except BudgetError:
            continue
    return given_slots, ledger_of(connection).spent("customers").epsilon


@settings(max_examples=25, deadline=None)
@given(_TRIES)
def test_whatever_is_asked_a_slot_is_given_once(tries: list[tuple[int, bool]]) -> None:
    given_slots, spent = play(tries)
    assert len(given_slots) == len(set(given_slots)) <= 3
    assert set(given_slots) <= {1, 2, 3}
    assert spent == (1.0 if given_slots else 0.0)


def test_the_twin_that_does_not_reserve_slots_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_rules, "check_slot", lambda entry, series, used: None)
    given_slots, _ = play([(1, False), (1, False), (2, False)])
    assert len(given_slots) > len(set(given_slots))
