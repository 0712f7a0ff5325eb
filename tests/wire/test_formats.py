"""What is written down or sent depends on tags and values, never on what a class is called.

`tests/vectors/formats.json` has what every tagged class gives. A change of it is a change of a
format: runs that go on, homes and results of the version before would no longer fit.
"""

import dataclasses
import json
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splitmeans.errors import ProtocolError
from splitmeans.local.laws.detail import DetailLaw
from splitmeans.local.laws.guided_lloyd import GuidedLloydLaw
from splitmeans.membership.decoy.column_tables import ColumnTable, ColumnTables
from splitmeans.membership.methods import METHODS
from splitmeans.party import states as party_states
from splitmeans.party.own_users import users_digest
from splitmeans.party.saved_state import dump_state, load_state
from splitmeans.party.session import Session
from splitmeans.plan import settle
from splitmeans.plan.releases import releases_of
from splitmeans.plan.settle import make_plan, plan_for
from splitmeans.privacy import events as e
from splitmeans.privacy.ledger_rules import Towards
from splitmeans.study import Budget, DetailOptions, Study
from splitmeans.table.prepare import prepare_table
from splitmeans.wire import messages as m
from splitmeans.wire.codec import decode, encode
from splitmeans.wire.slot import Slot
from splitmeans.wire.tags import tag_of, tagged_text
from tests.scene import make_study, numbers

VECTORS = Path(__file__).parents[1] / "vectors" / "formats.json"

MEMBERSHIPS = (
    m.CellSketchMessage(registers=np.array([[1, 2]])),
    m.DecoyMessage(
        lengths=np.array([2]),
        lows=np.array([1, 2]),
        bitmaps=np.array([3], np.uint8),
        labels=np.array([7], np.uint8),
    ),
)
RESULT = m.PublishedResult(
    fingerprint="cd",
    local_centres=np.array([1, -2]),
    labels=np.array([[0, 250]]),
    weights=np.array([2.5]),
    nodes=np.array([[3, -4]]),
    centres=np.array([[0.5, -0.25]]),
    sizes=np.array([2.5]),
    published_at="2026-01-31T12:00:00Z",
    signature=b"\x05",
)
CONFIRMATION = m.Confirmation(key_check=b"\x02", shared_check=b"\x05")
MESSAGES = (
    m.Hello(protocol=b"\x04", sealing=b"\x00\x01"),
    m.KeyContribution(secret=b"\x00\x01"),
    CONFIRMATION,
    m.PlanConfirmation(stage=2, plan_check=b"\x03"),
    m.Ready(study_hash="ab"),
    m.StageRelease(stage=2, values=np.array([-3, 9])),
    m.PartyRelease(
        centres=np.array([[1, -2]]), points=np.array([[3, 4]]), membership=MEMBERSHIPS[0]
    ),
    m.RunPlan(
        n_local_clusters=np.array([5]), released=np.array([7]), fingerprint="ab", statement="cd"
    ),
    RESULT,
)
# Fields that a message has only where a study asks for what is in them.
WITH_COLUMNS = m.PartyRelease(
    centres=np.array([[1, -2]]),
    points=np.array([[3, 4]]),
    membership=MEMBERSHIPS[1],
    column_edges=np.array([-5, 6]),
    columns=MEMBERSHIPS[1],
)
EVENTS = (
    e.GaussianEvent(
        noise_multiplier=3.0,
        slack=1e-9,
        realised=e.Realised(scale=3, sensitivity=1, coordinates=2),
    ),
    e.RandomisedResponseEvent(epsilon=1.0),
    e.CellSketchEvent(repetitions=64, gamma=0.1, phantoms=7, floor=3),
    e.ShiftEvent(weights=(1, 2**63, 1)),
    e.CountGaussianEvent(scale=1.5),
    e.RareEvent(probability=1e-7),
    e.ComposedEvent(parts=(e.RareEvent(probability=0.1),)),
)


def vector_study(membership: str = "decoy") -> Study:
    return make_study(
        membership,
        name="formats",
        names=("bank", "shop"),
        columns=(*numbers("x"), *numbers("y", high=10)),
        expected_users=200,
    )


STUDY = vector_study()
OPEN_STUDY = dataclasses.replace(STUDY, n_local_clusters="auto")
PRIVATE_STUDY = Study.from_mapping(
    {
        **STUDY.to_mapping(),
        "bounds": "private",
        "expected_users": 10_000,
        "budget": {"epsilon": 2.0, "delta": 1e-6},
        "parties": [
            {"name": "bank", "columns": [{"name": "x"}, {"name": "y", "low": 0, "high": 1}]},
            {
                "name": "shop",
                "columns": [{"name": "z", "low": 0}, {"name": "c", "categories": "open"}],
            },
        ],
    }
)
DETAIL_STUDY = dataclasses.replace(
    STUDY,
    detail=DetailOptions(),
    expected_users=20_000,
    budget=Budget(epsilon=2.0, delta=1e-6),
)
SESSION = Session(study=STUDY, run="1", party="bank")
TABLE = prepare_table(STUDY.parties[0], np.array([[1.0, 2.0], [3.0, 4.0]]), ids=["a", "b"])


def states() -> tuple[party_states.PartyState, ...]:
    held: dict[str, Any] = {
        "session": SESSION,
        "table": TABLE,
        "users": users_digest(TABLE, key=bytes(16)),
    }
    keyed = {**held, "run_key": b"\x09" * 32}
    return (
        party_states.Joined(**held, contributions={"bank": b"\x01"}),
        party_states.Keyed(**keyed, awaited={"shop": CONFIRMATION}),
        party_states.Surveying(**keyed, released=(((201,),),), values={"shop": (7, -8)}),
        party_states.Agreeing(**keyed, released=(((201,),),), confirmed=frozenset({"shop"})),
        party_states.Prepared(**keyed, released=()),
        party_states.Released(session=SESSION, released=(), centres=np.array([[1, -2]])),
        party_states.Finished(session=SESSION, released=(((201,),),), result=RESULT),
    )


def vectors() -> dict[str, Any]:
    """What this version gives; the file has the same."""
    make_plan.cache_clear()
    settle._precisions_of.cache_clear()
    slots = {tag_of(type(one)): slot_of(one) for one in MESSAGES}
    return {
        "messages": {tag_of(type(one)): encode(one).hex() for one in (*MESSAGES, *MEMBERSHIPS)},
        "slots": {tag: [slot.path, slot.text.hex()] for tag, slot in slots.items()},
        "states": {tag_of(type(one)): dump_state(one).hex() for one in states()},
        "events": {tag_of(type(one)): tagged_text(one) for one in EVENTS},
        "releases": [
            [one.what, one.message, tagged_text(one.event)] for one in releases_of(make_plan(STUDY))
        ],
        "fingerprints": {
            membership: plan_for(vector_study(membership), users=200).fingerprint
            for membership in ("decoy", "sketch")
        }
        | {"decoy, open k'": plan_for(OPEN_STUDY, users=200).fingerprint}
        | {"decoy, learned columns": plan_for(PRIVATE_STUDY, users=200).fingerprint}
        | {"decoy, detail": plan_for(DETAIL_STUDY, users=20_000).fingerprint},
        "optional fields": {"PartyRelease, columns": encode(WITH_COLUMNS).hex()},
        "columns": tagged_text((make_plan(DETAIL_STUDY).columns,)),
        "journal towards": [item.name for item in dataclasses.fields(Towards)],
    }


def slot_of(message: Any) -> Slot:
    kind = m.kind_of(message)
    return Slot(study_hash="ab" * 32, run="1", sender="bank", receiver="shop", kind=kind)


def plan_parts() -> Iterator[Any]:
    studies = [vector_study(membership) for membership in ("decoy", "sketch")]
    for study in (*studies, OPEN_STUDY, PRIVATE_STUDY, DETAIL_STUDY):
        plan = make_plan(study)
        yield plan.membership
        yield from plan.local
        yield from plan.detail
        if plan.columns is not None:
            yield plan.columns
            yield plan.columns.tables[0]
        for stage in plan.stages:
            yield stage
            yield stage.law
            yield from stage.laws
            yield from getattr(stage.laws[0], "columns", ())


TAGGED = {
    "messages": typing.get_args(m.Message) + typing.get_args(m.MembershipMessage),
    "states": typing.get_args(party_states.PartyState),
    "events": typing.get_args(e.Event),
    "plans": tuple(dict.fromkeys(type(part) for part in plan_parts())),
}


def test_vectors_are_those_of_this_version() -> None:
    assert vectors() == json.loads(VECTORS.read_text())


def test_every_tagged_class_has_a_vector() -> None:
    stored = json.loads(VECTORS.read_text())
    for format_ in ("messages", "states", "events"):
        assert set(stored[format_]) == {tag_of(kind) for kind in TAGGED[format_]}
    assert {method.law for method in METHODS.values()} <= set(TAGGED["plans"])
    assert GuidedLloydLaw in TAGGED["plans"]
    assert {ColumnTables, ColumnTable, DetailLaw} <= set(TAGGED["plans"])


def test_stored_messages_and_states_are_read_back() -> None:
    stored = json.loads(VECTORS.read_text())
    for data in (*stored["messages"].values(), *stored["optional fields"].values()):
        assert encode(decode(bytes.fromhex(data))).hex() == data
    for stage, data in stored["states"].items():
        state = load_state(stage, bytes.fromhex(data), session=SESSION, open_table=lambda: TABLE)
        assert tag_of(type(state)) == stage
        assert dump_state(state).hex() == data


@pytest.mark.parametrize("format_", TAGGED)
def test_no_two_classes_of_a_format_share_a_tag(format_: str) -> None:
    tags = [tag_of(kind).lower() for kind in TAGGED[format_]]
    assert len(set(tags)) == len(tags)


@pytest.fixture
def renamed() -> Iterator[None]:
    """Every tagged class under another name, in another module, with another `repr`."""
    kinds = dict.fromkeys(kind for kinds in TAGGED.values() for kind in kinds)
    before = [
        (kind, kind.__name__, kind.__qualname__, kind.__module__, kind.__repr__) for kind in kinds
    ]
    try:
        for number, kind in enumerate(kinds):
            kind.__name__ = kind.__qualname__ = f"Other{number}"
            kind.__module__ = "splitmeans.elsewhere"
            kind.__repr__ = lambda self: "another text"
        yield
    finally:
        for kind, name, full_name, module, shown in before:
            kind.__name__, kind.__qualname__ = name, full_name
            kind.__module__, kind.__repr__ = module, shown


@pytest.mark.usefixtures("renamed")
def test_renaming_and_moving_every_class_changes_nothing() -> None:
    assert type(MESSAGES[0]).__name__.startswith("Other")
    assert vectors() == json.loads(VECTORS.read_text())
    test_stored_messages_and_states_are_read_back()


@pytest.mark.parametrize("message", [*MESSAGES, *MEMBERSHIPS], ids=repr)
def test_a_message_class_without_a_tag_of_its_own_is_not_encoded(message: Any) -> None:
    untagged = type("Untagged", (type(message),), {})
    fields = {item.name: getattr(message, item.name) for item in dataclasses.fields(message)}
    with pytest.raises(ProtocolError, match="Untagged is not a message type"):
        encode(untagged(**fields))
    with pytest.raises(TypeError, match="Untagged has no TAG"):
        slot_of(untagged(**fields))


@pytest.mark.parametrize("value", [*EVENTS, *plan_parts()], ids=lambda value: value.TAG)
def test_an_event_or_law_without_a_tag_of_its_own_has_no_text(value: Any) -> None:
    untagged = dataclasses.dataclass(frozen=True, kw_only=True)(
        type("Untagged", (type(value),), {})
    )
    fields = {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    with pytest.raises(TypeError, match="Untagged has no TAG"):
        tagged_text((untagged(**fields),))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((), "()"),
        ((1,), "(1,)"),
        ((None, True, -2, 0.1, 1e-300, "joint"), "(None, True, -2, 0.1, 1e-300, 'joint')"),
        ((np.int64(3), np.float64(0.5)), "(3, 0.5)"),
        ("é", "'\\xe9'"),
        (e.RareEvent(probability=0.5), "RareEvent(probability=0.5)"),
    ],
)
def test_plain_values_as_text_by_hand(value: Any, text: str) -> None:
    assert tagged_text(value) == text


@pytest.mark.parametrize("value", [[1], {"a": 1}, b"a", object(), e.RareEvent, {1}])
def test_other_values_have_no_text(value: Any) -> None:
    with pytest.raises(TypeError, match="no form that can be hashed"):
        tagged_text((value,))
