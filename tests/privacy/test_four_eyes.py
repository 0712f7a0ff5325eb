"""What loosens a limit takes two people, and no entry can be made, moved or replayed by one."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from splitmeans.errors import BudgetError
from splitmeans.privacy.events import Relation
from splitmeans.privacy.four_eyes import Signer
from splitmeans.privacy.ledger import Charge, Ledger
from splitmeans.privacy.ledger_rules import Entry
from splitmeans.privacy.ledger_tables import create_tables
from splitmeans.privacy.limits import AMOUNTS, Limit
from tests.scene import key_of

ALICE, BOB, EVE = (Signer(name=name, identity=key_of(name)) for name in ("alice", "bob", "eve"))
LOW, HIGH = Limit(epsilon=1.0, delta=1e-5), Limit(epsilon=3.0, delta=1e-5)


def new_ledger() -> Ledger:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    create_tables(connection)
    return Ledger(connection)


@contextmanager
def writing(ledger: Ledger) -> Iterator[None]:
    ledger._connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        ledger._connection.execute("ROLLBACK")
        raise
    ledger._connection.execute("COMMIT")


def act(ledger: Ledger, kind: str, **facts: Any) -> Entry:
    with writing(ledger):
        return ledger.act(kind, **facts)


def approve(ledger: Ledger, number: int, signer: Signer) -> Entry:
    with writing(ledger):
        return ledger.approve(number, signer)


@pytest.fixture
def ledger() -> Ledger:
    """Customers have a low limit, and the home has four eyes."""
    made = new_ledger()
    act(made, "limit", source="customers", limit=LOW)
    act(made, "default", limit=LOW)
    for signer in (ALICE, BOB):
        act(made, "guard", party=signer.name, what=signer.identity.public.to_text())
    act(made, "four-eyes", what="on")
    return made


LOOSER: dict[str, dict[str, Any]] = {
    "limit": {"source": "customers", "limit": HIGH},
    "limit of another name": {"source": "others", "limit": HIGH},
    "default": {"limit": HIGH},
    "apart": {"source": "fresh", "what": "customers", "note": "they differ"},
    "guard": {"party": "eve", "what": EVE.identity.public.to_text()},
    "four-eyes": {"what": "off"},
}


@pytest.mark.parametrize("name", LOOSER)
def test_one_person_cannot(ledger: Ledger, name: str) -> None:
    kind, facts = name.split()[0], LOOSER[name]
    before = ledger.verify().head
    with pytest.raises(BudgetError, match=r"this home has four eyes: .* needs a second person"):
        act(ledger, kind, **facts)
    with pytest.raises(BudgetError, match="four eyes"):
        act(ledger, kind, signer=ALICE, **facts)  # a signature alone is no second person
    request = act(ledger, kind, signer=ALICE, is_request=True, **facts)
    with pytest.raises(BudgetError, match="was requested by 'alice': another guard must approve"):
        approve(ledger, request.number, ALICE)
    with pytest.raises(BudgetError, match="'eve' is no guard of this home; guards: alice, bob"):
        approve(ledger, request.number, EVE)
    with pytest.raises(BudgetError, match="the signature of 'bob' is wrong"):
        approve(ledger, request.number, Signer(name="bob", identity=ALICE.identity))
    assert ledger.verify().head != before  # the request is a trace
    assert ledger.spent("customers").limit == LOW


@pytest.mark.parametrize("name", LOOSER)
def test_two_people_can_and_it_leaves_a_trace(ledger: Ledger, name: str) -> None:
    kind, facts = name.split()[0], LOOSER[name]
    request = act(ledger, kind, signer=ALICE, is_request=True, **facts)
    entry = approve(ledger, request.number, BOB)
    assert (entry.kind, entry.covered_by, entry.signer) == (kind, request.number, "bob")
    ledger.verify()
    with pytest.raises(BudgetError, match=f"entry {request.number} is no open request"):
        approve(ledger, request.number, BOB)
    book = ledger.book()
    assert {
        "limit": lambda: book.limits["customers"] == HIGH,
        "limit of another name": lambda: book.limits["others"] == HIGH,
        "default": lambda: book.home_limit == HIGH,
        "apart": lambda: book.data_sets.are_apart("customers", "fresh"),
        "guard": lambda: "eve" in book.guards.keys,
        "four-eyes": lambda: not book.guards.is_on,
    }[name]()


def test_one_person_can_tighten(ledger: Ledger) -> None:
    act(ledger, "limit", source="customers", limit=Limit(epsilon=0.5, delta=1e-5))
    act(ledger, "default", limit=replace(LOW, party_epsilon=2.0))
    act(ledger, "four-eyes", what="on")
    with pytest.raises(BudgetError, match="four eyes"):  # back to where it was is a rise
        act(ledger, "limit", source="customers", limit=LOW)
    with pytest.raises(BudgetError, match="four eyes"):  # so is leaving a figure out
        act(ledger, "default", limit=LOW)


def test_without_four_eyes_a_rise_leaves_a_trace_all_the_same() -> None:
    ledger = new_ledger()
    act(ledger, "limit", source="customers", limit=LOW)
    act(ledger, "limit", source="customers", limit=HIGH)
    assert [entry.epsilon for entry in ledger.entries()] == [1.0, 3.0]


def test_four_eyes_need_two_keys() -> None:
    ledger = new_ledger()
    text = ALICE.identity.public.to_text()
    act(ledger, "guard", party="alice", what=text)
    with pytest.raises(BudgetError, match="four eyes need two people"):
        act(ledger, "four-eyes", what="on")
    with pytest.raises(BudgetError, match="is another guard's: four eyes, two keys"):
        act(ledger, "guard", party="alice at home", what=text)


def forged(ledger: Ledger, change: Callable[[Entry], Entry]) -> None:
    """Write the next entry as somebody with the database could, with a good chain."""
    number, head = ledger.verify().n_entries, ledger.verify().head
    entry = change(replace(ledger.entries()[-1], number=number + 1))
    row = entry.plain | {"previous": head, "hash": entry.hash_after(head)}
    connection = ledger._connection
    marks = ", ".join(f":{name}" for name in row)
    connection.execute(f"INSERT INTO ledger ({', '.join(row)}) VALUES ({marks})", row)
    connection.execute("UPDATE ledger_head SET number = ?, hash = ?", (number + 1, row["hash"]))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda e: e, "the signature of 'alice' is wrong"),  # a request that is replayed
        (lambda e: replace(e, epsilon=9.0), "the signature of 'alice' is wrong"),
        (lambda e: replace(e, signature="zz"), "the signature of 'alice' is wrong"),
        (lambda e: replace(e, signature=None), "the signature of 'alice' is wrong"),
        (lambda e: replace(e, act="charge"), "a request must be for one of"),
        (lambda e: replace(e, kind="limit", act=None), "needs a second person"),
        (
            lambda e: replace(e, kind="limit", act=None, covered_by=e.number - 1),
            "the signature of 'alice' is wrong",
        ),
        (
            lambda e: replace(e, kind="limit", act=None, covered_by=e.number - 1, epsilon=9.0),
            "what is approved is not what entry 6 requests",
        ),
    ],
)
def test_entries_made_behind_the_ledgers_back_are_found(
    ledger: Ledger, change: Callable[[Entry], Entry], why: str
) -> None:
    act(ledger, "limit", source="customers", limit=HIGH, signer=ALICE, is_request=True)
    forged(ledger, change)
    with pytest.raises(BudgetError, match=f"ledger entry 7 breaks a rule: .*{why}"):
        ledger.verify()
    with pytest.raises(BudgetError, match="breaks a rule"), writing(ledger):
        ledger.charge(
            "customers",
            Charge(relation=Relation.ADD_OR_REMOVE, epsilon=0.1, delta=0.0),
            study_hash="ab" * 32,
            run="1",
            party="bank",
            what="PartyRelease",
            release_sha256="cd" * 32,
        )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("source", "others"),
        ("what", "x"),
        ("note", "x"),
        ("party", "x"),
        *((amount, 0.5) for amount in AMOUNTS),
    ],
)
def test_an_approval_is_for_all_of_what_was_requested(
    ledger: Ledger, name: str, value: str | float
) -> None:
    """The second guard signs another act, in good faith or not."""
    act(ledger, "limit", source="customers", limit=HIGH, signer=ALICE, is_request=True)

    def other_act(entry: Entry) -> Entry:
        act = replace(entry, kind="limit", act=None, covered_by=entry.number - 1, signature=None)
        return BOB.signed(replace(act, **{name: value}), previous=ledger.verify().head)

    forged(ledger, other_act)
    with pytest.raises(BudgetError, match="what is approved is not what entry 6 requests"):
        ledger.verify()


def test_a_signature_fits_one_ledger_alone(ledger: Ledger) -> None:
    """Another home with the same guards and as many entries, one of which is another."""
    asked = act(ledger, "limit", source="customers", limit=HIGH, signer=ALICE, is_request=True)
    other = new_ledger()
    act(other, "limit", source="clients", limit=LOW)
    act(other, "default", limit=LOW)
    for signer in (ALICE, BOB):
        act(other, "guard", party=signer.name, what=signer.identity.public.to_text())
    act(other, "four-eyes", what="on")
    forged(other, lambda entry: replace(asked, number=entry.number))
    with pytest.raises(BudgetError, match="the signature of 'alice' is wrong"):
        other.verify()


# ---- data sets ----


def test_names_become_one_data_set_by_hand() -> None:
    ledger = new_ledger()
    for run, (source, epsilon) in enumerate({"a.csv": 1.0, "b.csv": 0.5, "c.csv": 0.25}.items()):
        with writing(ledger):
            ledger.charge(
                source,
                Charge(relation=Relation.ADD_OR_REMOVE, epsilon=epsilon, delta=1e-6),
                study_hash="ab" * 32,
                run=str(run),
                party="bank",
                what="PartyRelease",
                release_sha256="cd" * 32,
            )
    act(ledger, "limit", source="b.csv", limit=Limit(epsilon=4.0, delta=1e-3))
    act(ledger, "source", source="customers", what="retail customers")
    act(ledger, "limit", source="customers", limit=Limit(epsilon=9.0, delta=1e-4))
    for part in ("a.csv", "b.csv"):
        act(ledger, "same", source=part, what="customers")
    assert ledger.sources() == ("c.csv", "customers")
    for name in ("customers", "a.csv", "b.csv"):
        spent = ledger.spent(name)
        assert spent[:2] == (1.5, 2e-6)
        assert spent.limit == Limit(epsilon=4.0, delta=1e-4)  # the tighter of both
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
    ],
)
def test_data_sets_that_are_refused(facts: dict[str, Any], why: str) -> None:
    ledger = new_ledger()
    act(ledger, "source", source="customers", what="retail customers")
    act(ledger, "same", source="old", what="customers")
    with pytest.raises(BudgetError, match=why):
        act(ledger, facts.pop("kind"), **facts)


def test_a_part_does_not_bring_a_higher_limit_than_the_homes() -> None:
    ledger = new_ledger()
    act(ledger, "limit", source="old", limit=HIGH)
    act(ledger, "default", limit=LOW)
    act(ledger, "source", source="customers", what="retail customers")
    act(ledger, "same", source="old", what="customers")
    assert ledger.spent("customers").limit == LOW
