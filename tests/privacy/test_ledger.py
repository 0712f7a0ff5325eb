import contextlib
import hashlib
import math
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import BudgetError, ParameterError
from splitmeans.privacy.data_sets import check_source, printable
from splitmeans.privacy.events import Relation
from splitmeans.privacy.ledger import Charge, Ledger
from splitmeans.privacy.ledger_rules import (
    KINDS,
    VALUES,
    VALUES_AND_PRESENCE,
    Entry,
    Spent,
    Towards,
)
from splitmeans.privacy.ledger_tables import GENESIS, create_tables
from splitmeans.privacy.limits import Limit

STUDY = "ab" * 32
RELEASE = "cd" * 32
TOWARDS = Towards(party_epsilon=1.4, party_relation=VALUES_AND_PRESENCE, coalition_epsilon=3.0)
NOON = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


@pytest.fixture
def connection() -> sqlite3.Connection:
    return new_database()


def new_database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    create_tables(connection)
    return connection


def ledger_of(connection: sqlite3.Connection) -> Ledger:
    return Ledger(connection, now=lambda: NOON)


def committed(connection: sqlite3.Connection, write: Callable[[], Entry]) -> Entry:
    connection.execute("BEGIN IMMEDIATE")
    try:
        entry = write()
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    return entry


def charge(connection: sqlite3.Connection, **values: Any) -> Entry:
    plain = {
        "source": "customers",
        "study_hash": STUDY,
        "run": "first",
        "party": "bank",
        "what": "CountRelease",
        "relation": Relation.ADD_OR_REMOVE,
        "epsilon": 1.0,
        "delta": 1e-5,
        "towards": None,
        "release_sha256": RELEASE,
    } | values
    ledger = ledger_of(connection)
    return committed(
        connection, lambda: ledger.charge(plain.pop("source"), cost_of(plain), **plain)
    )


def cost_of(plain: dict[str, Any]) -> Charge:
    """Take the figures of a cost out of what an entry is made of."""
    return Charge(**{name: plain.pop(name) for name in ("relation", "epsilon", "delta", "towards")})


def cover(connection: sqlite3.Connection, **values: Any) -> Entry:
    plain = {
        "source": "customers",
        "study_hash": STUDY,
        "run": "first",
        "party": "bank",
        "what": "PartyRelease",
        "release_sha256": "ef" * 32,
    } | values
    ledger = ledger_of(connection)
    return committed(connection, lambda: ledger.cover(plain.pop("source"), **plain))


def set_limit(
    connection: sqlite3.Connection,
    epsilon: float,
    *,
    delta: float = 1e-3,
    source: str = "customers",
) -> Entry:
    ledger = ledger_of(connection)
    return committed(
        connection, lambda: ledger.set_limit(source, Limit(epsilon=epsilon, delta=delta))
    )


def four_entries(connection: sqlite3.Connection) -> None:
    set_limit(connection, 10.0)
    charge(connection)
    cover(connection)
    charge(connection, run="second", epsilon=2.0)


def test_chain_of_two_entries_by_hand(connection: sqlite3.Connection) -> None:
    charge(connection)
    cover(connection)
    first = (
        '{"delta":"1e-05","epsilon":"1.0","kind":"charge","number":1,'
        f'"party":"bank","relation":"ADD_OR_REMOVE","release_sha256":"{"cd" * 32}",'
        f'"run":"first","source":"customers","study_hash":"{"ab" * 32}",'
        '"time":"2026-11-15T12:00:00+00:00","what":"CountRelease"}'
    )
    second = (
        '{"covered_by":1,"delta":"0.0","epsilon":"0.0","kind":"cover","number":2,'
        f'"party":"bank","relation":"ADD_OR_REMOVE","release_sha256":"{"ef" * 32}",'
        f'"run":"first","source":"customers","study_hash":"{"ab" * 32}",'
        '"time":"2026-11-15T12:00:00+00:00","what":"PartyRelease"}'
    )
    genesis = hashlib.sha256(b"splitmeans ledger 1\n").digest()
    one = hashlib.sha256(genesis + first.encode()).digest()
    two = hashlib.sha256(one + second.encode()).digest()
    stored = connection.execute("SELECT previous, hash FROM ledger ORDER BY number").fetchall()
    assert stored == [(genesis.hex(), one.hex()), (one.hex(), two.hex())]
    # A vector that must never change: written ledgers depend on it.
    assert one.hex() == "1ff3a9d45d79f6eaf8e7c1d0ee1790cd890d5c55d195c4666caca8f80217c696"
    assert two.hex() == "51df51b01f0bd2d0a009aa44c087a72b0f13f91d9bd1db7c680f25dec3183b26"
    assert ledger_of(connection).verify().head == two.hex()


def test_an_empty_ledger_is_sound(connection: sqlite3.Connection) -> None:
    ledger = ledger_of(connection)
    verified = ledger.verify()
    assert (verified.n_entries, verified.head) == (0, GENESIS)
    assert ledger.entries() == ledger.sources() == ()
    assert ledger.spent("customers") == Spent(epsilon=0.0, delta=0.0, limit=None)


def test_entries_and_sums(connection: sqlite3.Connection) -> None:
    four_entries(connection)
    charge(connection, source="patients", run="third", epsilon=0.5, delta=0.0)
    ledger = ledger_of(connection)
    assert [entry.kind for entry in ledger.entries()] == [
        "limit",
        "charge",
        "cover",
        "charge",
        "charge",
    ]
    assert ledger.entries()[2].covered_by == 2
    assert ledger.sources() == ("customers", "patients")
    assert ledger.spent("customers")[:3] == (3.0, 2e-5, Limit(epsilon=10.0, delta=1e-3))
    assert ledger.spent("patients")[:3] == (0.5, 0.0, None)
    found = ledger.charge_of(study_hash=STUDY, run="second", party="bank")
    assert found is not None
    assert found.number == 4
    assert ledger.charge_of(study_hash=STUDY, run="other", party="bank") is None


def test_sums_are_of_the_numbers_as_written(connection: sqlite3.Connection) -> None:
    set_limit(connection, 1.0)
    for number in range(10):
        charge(connection, run=f"r{number}", epsilon=0.1, delta=0.0)
    # Ten tenths are one; in floats their sum in order is 0.9999999999999999.
    assert ledger_of(connection).spent("customers").epsilon == 1.0
    with pytest.raises(BudgetError, match=r"would have spent epsilon 1\.0000000000000002, delta"):
        charge(connection, run="r10", epsilon=1e-300, delta=0.0)


def test_spent_rounds_up(connection: sqlite3.Connection) -> None:
    charge(connection, epsilon=1.0, delta=0.0)
    charge(connection, run="second", epsilon=1e-17, delta=0.0)
    assert ledger_of(connection).spent("customers").epsilon == 1.0000000000000002


def test_limit_stops_epsilon_and_delta(connection: sqlite3.Connection) -> None:
    set_limit(connection, 2.5, delta=2e-5)
    charge(connection)
    with pytest.raises(BudgetError, match=r"'customers' would have spent epsilon 3\.0, delta"):
        charge(connection, run="second", epsilon=2.0)
    with pytest.raises(BudgetError, match=r"delta 3e-05; its limit is epsilon 2\.5, delta 2e-05"):
        charge(connection, run="second", delta=2e-5)
    assert len(ledger_of(connection).entries()) == 2
    charge(connection, run="second", epsilon=1.5)  # to the last bit of delta, not beyond


def test_latest_limit_holds_also_below_what_is_spent(connection: sqlite3.Connection) -> None:
    charge(connection)
    set_limit(connection, 0.5)
    assert ledger_of(connection).spent("customers").limit == Limit(epsilon=0.5, delta=1e-3)
    with pytest.raises(BudgetError, match=r"its limit is epsilon 0\.5"):
        charge(connection, run="second", epsilon=0.1)
    cover(connection)  # paid for before
    set_limit(connection, 2.0)
    charge(connection, run="second")
    assert ledger_of(connection).verify().n_entries == 5


def test_release_without_protection_uses_up_every_limit(connection: sqlite3.Connection) -> None:
    charge(connection, epsilon=float("inf"), delta=0.0)
    assert ledger_of(connection).spent("customers").epsilon == float("inf")
    set_limit(connection, 1e300)
    with pytest.raises(BudgetError, match="would have spent epsilon inf"):
        charge(connection, run="second")


def test_a_run_is_charged_once_and_releases_each_thing_once(
    connection: sqlite3.Connection,
) -> None:
    with pytest.raises(BudgetError, match="'first' of party 'bank' has no charge on source"):
        cover(connection)
    charge(connection)
    with pytest.raises(BudgetError, match="has been charged already, by entry 1"):
        charge(connection, what="PartyRelease")
    with pytest.raises(BudgetError, match="has released 'CountRelease' already: resend"):
        charge(connection)
    with pytest.raises(BudgetError, match="has no charge on source 'patients' that covers"):
        cover(connection, source="patients")
    cover(connection)
    with pytest.raises(BudgetError, match="has released 'PartyRelease' already: resend"):
        cover(connection)
    charge(connection, party="shop")
    charge(connection, study_hash="12" * 32)
    assert ledger_of(connection).verify().n_entries == 4


def test_relations_do_not_mix_in_a_source(connection: sqlite3.Connection) -> None:
    charge(connection)
    with pytest.raises(BudgetError, match="ADD_OR_REMOVE; costs for REPLACE cannot be added"):
        charge(connection, run="second", relation=Relation.REPLACE)
    charge(connection, run="second", source="patients", relation=Relation.REPLACE)


def test_bad_values_are_refused(connection: sqlite3.Connection) -> None:
    for wrong in (0.0, -1.0, float("nan"), "1"):
        with pytest.raises(ParameterError, match="epsilon must be"):
            charge(connection, epsilon=wrong)
    for wrong in (1.0, -0.1, float("nan")):
        with pytest.raises(ParameterError, match="delta must be"):
            charge(connection, delta=wrong)
    with pytest.raises(ParameterError, match="source must be a name that is not empty"):
        charge(connection, source="")
    with pytest.raises(ParameterError, match="what of a ledger entry must be printable text"):
        charge(connection, what="")
    with pytest.raises(ParameterError, match="release_sha256 must be 64 hexadecimal digits"):
        charge(connection, release_sha256="CD" * 32)
    with pytest.raises(ParameterError, match="epsilon must be a finite number"):
        set_limit(connection, float("inf"))
    assert ledger_of(connection).entries() == ()


def test_writing_needs_a_transaction(connection: sqlite3.Connection) -> None:
    ledger = ledger_of(connection)
    with pytest.raises(BudgetError, match="must be written inside a transaction"):
        ledger.set_limit("customers", Limit(epsilon=1.0, delta=0.0))


def test_a_rolled_back_charge_leaves_nothing(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    ledger_of(connection).set_limit("customers", Limit(epsilon=1.0, delta=0.0))
    connection.execute("ROLLBACK")
    assert ledger_of(connection).verify().n_entries == 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger SET epsilon = '0.1' WHERE number = 2",
        "DELETE FROM ledger WHERE number = 4",
        "INSERT OR REPLACE INTO ledger SELECT * FROM ledger WHERE number = 2",
        "INSERT INTO ledger SELECT number + 5, kind, time, source, study_hash, run, party, what, "
        "relation, epsilon, delta, covered_by, release_sha256, previous, hash, "
        "NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM ledger",
        "UPDATE OR REPLACE ledger SET number = 1 WHERE number = 2",
    ],
)
def test_sql_cannot_change_entries(connection: sqlite3.Connection, statement: str) -> None:
    four_entries(connection)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    assert ledger_of(connection).verify().n_entries == 4


def without_triggers(connection: sqlite3.Connection) -> None:
    for name in ("ledger_update", "ledger_delete", "ledger_insert"):
        connection.execute(f"DROP TRIGGER {name}")


CHANGES = {
    "kind": "gift",
    "time": "2026-11-15T12:00:01+00:00",
    "source": "other",
    "study_hash": "ac" * 32,
    "run": "zeroth",
    "party": "shop",
    "what": "PartyRelease2",
    "relation": "REPLACE",
    "epsilon": "0.5",
    "delta": "0.5",
    "covered_by": 1,
    "release_sha256": "cc" * 32,
    "previous": "00" * 32,
    "hash": "00" * 32,
    "party_epsilon": "0.5",
    "party_relation": "REPLACE",
    "coalition_epsilon": "0.5",
    "note": "another reason",
    "series_runs": 2,
    "series_run": 1,
    "series_events": "ee" * 32,
}


def test_every_column_is_tried() -> None:
    columns = [row[1] for row in new_database().execute("PRAGMA table_info(ledger)")]
    assert columns == ["number", *CHANGES]


@pytest.mark.parametrize("column", CHANGES)
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_changed_value_is_found(connection: sqlite3.Connection, column: str, number: int) -> None:
    four_entries(connection)
    without_triggers(connection)
    done = connection.execute(
        f"UPDATE ledger SET {column} = ? WHERE number = ? AND {column} IS NOT ?",
        (CHANGES[column], number, CHANGES[column]),
    )
    assert done.rowcount == 1
    for use in (
        ledger_of(connection).verify,
        ledger_of(connection).sources,
        lambda: charge(connection, run="third"),
    ):
        with pytest.raises(BudgetError, match=f"ledger entry {number} was changed after"):
            use()


@pytest.mark.parametrize(
    "value", [b"1.0", "1.00", "1", "nan", "1_0.0", " 1.0", "one", "1e0", "inf"], ids=repr
)
def test_a_number_has_one_form(connection: sqlite3.Connection, value: str | bytes) -> None:
    charge(connection)
    without_triggers(connection)
    connection.execute("UPDATE ledger SET epsilon = ?", (value,))
    with pytest.raises(BudgetError, match="ledger entry 1 was changed after"):
        ledger_of(connection).verify()
    connection.execute("UPDATE ledger SET epsilon = '1.0', source = ?", (b"customers",))
    with pytest.raises(BudgetError, match="ledger entry 1 was changed after"):
        ledger_of(connection).verify()


@pytest.mark.parametrize(
    ("statements", "match"),
    [
        (["DELETE FROM ledger WHERE number = 1"], "ledger entry 1 is missing"),
        (["DELETE FROM ledger WHERE number = 3"], "ledger entry 3 is missing"),
        (["DELETE FROM ledger WHERE number = 4"], "ledger entry 4 is missing: table ledger_head"),
        (["DELETE FROM ledger"], "ledger entry 1 is missing"),
        (["DELETE FROM ledger_head"], "ledger entry 5 is missing: table ledger_head"),
        (["UPDATE ledger_head SET number = 3"], "ledger_head does not name entry 4"),
        (["UPDATE ledger_head SET hash = 'x'"], "ledger_head does not name entry 4"),
        (["DROP TABLE ledger"], "cannot be read or written: no such table"),
        (["DROP TABLE ledger_head"], "cannot be read or written: no such table"),
        (
            [
                "DELETE FROM ledger WHERE number = 1",
                "UPDATE ledger SET number = number - 1",
            ],
            "ledger entry 1 was changed",
        ),
        (
            [
                "UPDATE ledger SET number = 9 WHERE number = 2",
                "UPDATE ledger SET number = 2 WHERE number = 4",
                "UPDATE ledger SET number = 4 WHERE number = 9",
            ],
            "ledger entry 2 was changed",
        ),
    ],
)
def test_missing_and_reordered_entries_are_found(
    connection: sqlite3.Connection, statements: list[str], match: str
) -> None:
    four_entries(connection)
    without_triggers(connection)
    for statement in statements:
        connection.execute(statement)
    with pytest.raises(BudgetError, match=match):
        ledger_of(connection).verify()
    with pytest.raises(BudgetError, match=match):
        charge(connection, run="third")


def test_an_entry_with_a_new_hash_breaks_the_next_one(connection: sqlite3.Connection) -> None:
    four_entries(connection)
    without_triggers(connection)
    entries = ledger_of(connection).entries()
    before = connection.execute("SELECT previous FROM ledger WHERE number = 2").fetchone()[0]
    changed = Entry(**({**entries[1].__dict__} | {"epsilon": 0.25}))
    connection.execute(
        "UPDATE ledger SET epsilon = '0.25', hash = ? WHERE number = 2",
        (changed.hash_after(before),),
    )
    with pytest.raises(BudgetError, match="entry 3 does not follow entry 2, which was replaced"):
        ledger_of(connection).verify()


def test_rules_are_checked_also_under_a_good_chain(connection: sqlite3.Connection) -> None:
    """Someone who can compute hashes still cannot add a charge that no rule allows."""
    set_limit(connection, 1.5)
    charge(connection)
    head = ledger_of(connection).verify().head
    first = ledger_of(connection).entries()[1]
    for change, match in (
        ({"run": "second"}, "would have spent"),
        ({"what": "more"}, "charged already"),
        ({"run": "second", "epsilon": 0.1, "relation": "REPLACE"}, "cannot be added"),
        ({"run": "second", "epsilon": -0.5}, "epsilon must be > 0"),
        ({"kind": "limit", "epsilon": -1.0}, "epsilon must be > 0"),
        ({"kind": "cover", "what": "more", "covered_by": 2}, "that covers 'more'"),
        ({"kind": "gift", "what": "more"}, "there is no entry of the kind 'gift'"),
        ({"run": "second", "epsilon": 0.1, "party_epsilon": 0.5}, "some are missing"),
        ({"run": "second", "epsilon": 0.1, **vars(TOWARDS), "party_epsilon": -1.0}, "must be > 0"),
        ({"run": "second", "epsilon": 0.1, **vars(TOWARDS), "party_relation": "X"}, "must be 'REP"),
    ):
        with (
            forged(connection, Entry(**({**first.__dict__} | {"number": 3} | change)), head),
            pytest.raises(BudgetError, match=f"ledger entry 3 breaks a rule: .*{match}"),
        ):
            ledger_of(connection).verify()


def test_a_charge_covers_free_releases_of_its_own_run_and_nothing_else(
    connection: sqlite3.Connection,
) -> None:
    set_limit(connection, 1.5)
    charge(connection)
    head = ledger_of(connection).verify().head
    first = ledger_of(connection).entries()[1]
    free = dict.fromkeys(vars(TOWARDS)) | {"epsilon": 0.0, "delta": 0.0}
    covered = Entry(
        **{**first.__dict__, "number": 3, "kind": "cover", "what": "more", "covered_by": 2, **free}
    )
    with forged(connection, covered, head):
        ledger_of(connection).verify()
    for change in (
        {"covered_by": None},
        {"covered_by": 1},
        {"source": "others"},
        {"relation": "REPLACE"},
        {"epsilon": 0.1},
        {"delta": 1e-9},
        *({name: value} for name, value in vars(TOWARDS).items()),
        {"run": "second"},
    ):
        with (
            forged(connection, replace(covered, **change), head),
            pytest.raises(BudgetError, match=r"ledger entry 3 breaks a rule: .*that covers 'more'"),
        ):
            ledger_of(connection).verify()


def test_names_of_the_same_people_spend_and_are_limited_together(
    connection: sqlite3.Connection,
) -> None:
    set_limit(connection, 5.0)
    set_limit(connection, 3.0, source="crm")
    charge(connection)
    charge(connection, source="crm", run="second", epsilon=0.5, towards=TOWARDS)
    ledger = ledger_of(connection)
    committed(connection, lambda: ledger.act("source", source="customers", what="all customers"))
    committed(connection, lambda: ledger.act("same", source="crm", what="customers"))
    for name in ("customers", "crm"):
        spent = ledger.spent(name)
        assert (spent.epsilon, spent.delta) == (1.5, 2e-5)
        # A charge without figures towards participants has no bound.
        assert spent.party_epsilon == math.inf
        assert spent.limit is not None
        assert spent.limit.epsilon == 3.0
        with pytest.raises(BudgetError, match=r"would have spent epsilon 3\.1"):
            charge(connection, source=name, run="third", epsilon=1.6)


@contextlib.contextmanager
def forged(connection: sqlite3.Connection, entry: Entry, head: str) -> Iterator[None]:
    """Add a third entry, with good hashes, until the end of the block."""
    digest = entry.hash_after(head)
    row = entry.plain | {"previous": head, "hash": digest}
    connection.execute("BEGIN")
    connection.execute(
        f"INSERT INTO ledger ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
        tuple(row.values()),
    )
    connection.execute("UPDATE ledger_head SET number = 3, hash = ?", (digest,))
    yield
    connection.execute("ROLLBACK")


AMOUNTS = st.sampled_from([0.1, 0.25, 0.3, 1.0, 1e-9, 7.5])
STEPS = st.one_of(
    st.tuples(st.just("limit"), st.sampled_from("ab"), st.just(""), AMOUNTS),
    st.tuples(st.just("charge"), st.sampled_from("ab"), st.sampled_from("xyz"), AMOUNTS),
    st.tuples(st.just("cover"), st.sampled_from("ab"), st.sampled_from("xyz"), st.just(0.0)),
)


@settings(max_examples=50, deadline=None)
@given(steps=st.lists(STEPS, max_size=15))
def test_against_a_naive_model(steps: list[tuple[str, str, str, float]]) -> None:
    connection = new_database()
    limits: dict[str, Fraction | None] = dict.fromkeys("ab")
    spent = {"a": Fraction(0), "b": Fraction(0)}
    owner: dict[str, str] = {}
    covered: set[str] = set()
    written = 0
    for kind, source, run, amount in steps:
        if kind == "limit":
            allowed = True
            limits[source] = Fraction(str(amount))
        elif kind == "charge":
            limit, total = limits[source], spent[source] + Fraction(str(amount))
            allowed = run not in owner and (limit is None or total <= limit)
            if allowed:
                owner[run], spent[source] = source, total
        else:
            allowed = owner.get(run) == source and run not in covered
            covered |= {run} if allowed else set()
        written += allowed
        try:
            if kind == "limit":
                set_limit(connection, amount, delta=0.5, source=source)
            elif kind == "charge":
                charge(connection, source=source, run=run, epsilon=amount, delta=0.0)
            else:
                cover(connection, source=source, run=run)
            assert allowed
        except BudgetError:
            assert not allowed
    ledger = ledger_of(connection)
    assert ledger.verify().n_entries == written
    for source, total in spent.items():
        seen = ledger.spent(source)
        assert total <= Fraction(str(seen.epsilon)) <= total * (1 + Fraction(1, 2**52))
        assert (seen.limit and Fraction(str(seen.limit.epsilon))) == limits[source]


names = st.text(st.characters(), max_size=12)  # also what no file should be called


@given(name=names)
def test_every_use_of_a_source_has_one_rule(name: str) -> None:
    """What is taken before joining is taken at the charge, and nothing else is."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    create_tables(connection)
    cost = Charge(relation=Relation.ADD_OR_REMOVE, epsilon=1.0, delta=0.0)
    uses = (
        lambda: check_source(name),
        lambda: ledger_of(connection).check_room(name, cost),
        lambda: charge(connection, source=name),
        lambda: set_limit(connection, 2.0, source=name),
    )
    refused = []
    for use in uses:
        try:
            use()
        except ParameterError:
            refused.append(use)
    connection.close()
    assert refused in ([], list(uses))


@given(name=names)
def test_a_files_name_becomes_a_source(name: str) -> None:
    made = printable(name)
    assert printable(made) == made
    if made.strip():
        check_source(made)


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("customers.csv", "customers.csv"),
        ("customers\u00a02026.csv", "customers 2026.csv"),
        ("a\tb\nc.csv", "a b c.csv"),
        ("bell\x07.csv", "bell\\x07.csv"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("cafe\u0301", "caf\u00e9"),
        (b"caf\xe9.csv".decode(errors="surrogateescape"), "caf\\udce9.csv"),
    ],
)
def test_how_a_files_name_becomes_a_source(name: str, made: str) -> None:
    assert printable(name) == made


def add(connection: sqlite3.Connection, **values: Any) -> Entry:
    plain = {
        "source": "customers",
        "study_hash": STUDY,
        "run": "forgotten",
        "party": "bank",
        "what": "home restored from a backup",
        "relation": Relation.ADD_OR_REMOVE,
        "epsilon": 2.0,
        "delta": 0.0,
        "towards": None,
    } | values
    ledger = ledger_of(connection)
    return committed(
        connection, lambda: ledger.charge(plain.pop("source"), cost_of(plain), late=True, **plain)
    )


def test_a_forgotten_charge_is_added_whatever_the_limit(connection: sqlite3.Connection) -> None:
    set_limit(connection, 2.5)
    charge(connection)
    entry = add(connection)
    assert (entry.kind, entry.number, entry.release_sha256) == ("added", 3, None)
    ledger = ledger_of(connection)
    assert ledger.spent("customers").epsilon == 3.0
    assert ledger.verify().n_entries == 3
    assert ledger.charge_of(study_hash=STUDY, run="forgotten", party="bank") == entry
    with pytest.raises(BudgetError, match=r"would have spent epsilon 3\.5"):
        charge(connection, run="next", epsilon=0.5)


def test_a_run_is_added_or_charged_once(connection: sqlite3.Connection) -> None:
    add(connection)
    with pytest.raises(BudgetError, match="has been charged already, by entry 1"):
        add(connection, what="again")
    with pytest.raises(BudgetError, match="has been charged already, by entry 1"):
        charge(connection, run="forgotten")
    charge(connection)
    with pytest.raises(BudgetError, match="has been charged already, by entry 2"):
        add(connection, run="first")
    with pytest.raises(BudgetError, match="costs for REPLACE cannot be added"):
        add(connection, run="third", relation=Relation.REPLACE)
    for wrong in ({"what": ""}, {"source": "a\u00a0b"}, {"study_hash": "AB"}, {"epsilon": -1.0}):
        with pytest.raises(ParameterError):
            add(connection, run="fourth", **wrong)
    assert ledger_of(connection).verify().n_entries == 2


def test_an_added_entry_cannot_be_changed_without_a_trace(connection: sqlite3.Connection) -> None:
    add(connection)
    connection.execute("DROP TRIGGER ledger_update")
    connection.execute("UPDATE ledger SET what = 'another reason'")
    with pytest.raises(BudgetError, match="entry 1 was changed"):
        ledger_of(connection).verify()


def test_costs_towards_participants_add_up_by_hand(connection: sqlite3.Connection) -> None:
    charge(connection, towards=TOWARDS)
    cover(connection)
    charge(connection, run="second", epsilon=2.0, towards=replace(TOWARDS, party_epsilon=0.1))
    spent = ledger_of(connection).spent("customers")
    assert (spent.party_epsilon, spent.coalition_epsilon, spent.epsilon) == (1.5, 6.0, 3.0)
    assert spent.party_relation == VALUES_AND_PRESENCE
    charge(connection, run="third", towards=replace(TOWARDS, party_relation=VALUES))
    spent = ledger_of(connection).spent("customers")
    assert (spent.party_epsilon, spent.party_relation) == (2.9, VALUES)
    # The other source has spent nothing of it.
    assert ledger_of(connection).spent("patients").party_epsilon == 0.0


def test_a_cost_that_is_unbounded_or_was_not_recorded_leaves_no_bound(
    connection: sqlite3.Connection,
) -> None:
    charge(connection, towards=replace(TOWARDS, coalition_epsilon=math.inf))
    spent = ledger_of(connection).spent("customers")
    assert (spent.party_epsilon, spent.coalition_epsilon) == (1.4, math.inf)
    charge(connection, run="second", towards=None)
    spent = ledger_of(connection).spent("customers")
    assert (spent.party_epsilon, spent.party_relation) == (math.inf, VALUES)
    assert spent.epsilon == 2.0


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"party_epsilon": 2.7}, r"epsilon towards a party 2\.8.* limit is .* a party 2\.7"),
        ({"coalition_epsilon": 5.0}, r"a party together with the server 6\.0"),
    ],
)
def test_limits_towards_participants(
    connection: sqlite3.Connection, limits: dict[str, float], words: str
) -> None:
    ledger = ledger_of(connection)
    limit = Limit(epsilon=100.0, delta=0.5, **limits)
    committed(connection, lambda: ledger.set_limit("customers", limit))
    charge(connection, towards=TOWARDS)
    for refused in (TOWARDS, None):
        with pytest.raises(BudgetError, match="would have spent"):
            charge(connection, run="second", towards=refused)
    with pytest.raises(BudgetError, match=words):
        charge(connection, run="second", towards=TOWARDS)
    half = Towards(party_epsilon=0.7, party_relation=VALUES, coalition_epsilon=1.5)
    room = Charge(relation=Relation.ADD_OR_REMOVE, epsilon=1.0, delta=0.0, towards=half)
    ledger.check_room("customers", room)
    with pytest.raises(BudgetError, match=words):
        ledger.check_room("customers", room, beside=[room])
    # The latest limit is the whole limit.
    set_limit(connection, 100.0)
    charge(connection, run="second", towards=TOWARDS)
    (*_, last) = (entry for entry in ledger.entries() if entry.kind == "limit")
    assert (last.party_epsilon, last.coalition_epsilon) == (None, None)


@pytest.mark.parametrize("column", ["party_epsilon", "party_relation", "coalition_epsilon"])
@pytest.mark.parametrize("value", [None, "0.1", "REPLACE"])
def test_costs_towards_participants_cannot_be_changed_without_a_trace(
    connection: sqlite3.Connection, column: str, value: str | None
) -> None:
    charge(connection, towards=TOWARDS)
    connection.execute("DROP TRIGGER ledger_update")
    connection.execute(f"UPDATE ledger SET {column} = ?", (value,))
    with pytest.raises(BudgetError, match="entry 1 was changed"):
        ledger_of(connection).verify()


def test_a_charge_with_costs_towards_participants_by_hand(connection: sqlite3.Connection) -> None:
    charge(connection, towards=TOWARDS)
    text = (
        '{"coalition_epsilon":"3.0","delta":"1e-05","epsilon":"1.0",'
        '"kind":"charge","number":1,"party":"bank","party_epsilon":"1.4",'
        '"party_relation":"REPLACE, ADD_OR_REMOVE","relation":"ADD_OR_REMOVE",'
        f'"release_sha256":"{"cd" * 32}",'
        f'"run":"first","source":"customers","study_hash":"{"ab" * 32}",'
        '"time":"2026-11-15T12:00:00+00:00","what":"CountRelease"}'
    )
    genesis = hashlib.sha256(b"splitmeans ledger 1\n").digest()
    head = hashlib.sha256(genesis + text.encode()).hexdigest()
    assert ledger_of(connection).verify().head == head


def test_a_part_brings_its_charges_and_the_tighter_limit(connection: sqlite3.Connection) -> None:
    ledger = ledger_of(connection)
    for run, (source, epsilon) in enumerate({"a.csv": 1.0, "b.csv": 0.5, "c.csv": 0.25}.items()):
        charge(connection, source=source, run=str(run), epsilon=epsilon, delta=1e-6)
    set_limit(connection, 4.0, source="b.csv")
    committed(connection, lambda: ledger.act("source", source="customers", what="all customers"))
    set_limit(connection, 9.0, delta=1e-4)
    for part in ("a.csv", "b.csv"):
        committed(connection, partial(ledger.act, "same", source=part, what="customers"))
    assert ledger.sources() == ("c.csv", "customers")
    for name in ("customers", "a.csv", "b.csv"):
        spent = ledger.spent(name)
        assert spent[:2] == (1.5, 2e-6)
        assert spent.limit == Limit(epsilon=4.0, delta=1e-4)
    assert ledger.spent("c.csv").epsilon == 0.25


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"kind": "source", "source": "customers", "what": "again"}, "is declared already"),
        ({"kind": "source", "source": "old", "what": "them"}, "'old' is part of data set 'custom"),
        ({"kind": "source", "source": "new"}, "must say who its people are"),
        ({"kind": "same", "source": "x", "what": "nobody"}, "'nobody' is no declared data set"),
        ({"kind": "same", "source": "customers", "what": "customers"}, "is a data set itself"),
        ({"kind": "same", "source": "old", "what": "customers"}, "is part of data set 'customers'"),
        ({"kind": "apart", "source": "new", "what": "customers"}, "and why, must be said"),
        ({"kind": "gift", "source": "new"}, "there is no entry of the kind 'gift'"),
    ],
)
def test_declarations_that_are_refused(
    connection: sqlite3.Connection, facts: dict[str, str], why: str
) -> None:
    ledger = ledger_of(connection)
    committed(connection, lambda: ledger.act("source", source="customers", what="all customers"))
    committed(connection, lambda: ledger.act("same", source="old", what="customers"))
    with pytest.raises(BudgetError, match=why):
        committed(connection, lambda: ledger.act(facts.pop("kind"), **facts))


def test_the_page_lists_every_kind_of_entry() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/ledger.md").read_text(encoding="utf-8")
    for kind, words in KINDS.items():
        assert f"| `{kind}` | {words} |" in page
