"""No release path without an event: every message type, every field of it, every run.

The lists below are the whole protocol as it was reviewed. A new message type or a new field breaks
these tests until somebody says which way it goes and which event pays for it.
"""

import dataclasses
import functools
from collections import Counter
from typing import Any, get_args

import numpy as np
import pytest

from splitmeans import protocol
from splitmeans.membership.methods import METHODS
from splitmeans.plan.plan import Plan
from splitmeans.plan.releases import releases_of
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.events import Event
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study import Study
from splitmeans.study.methods import MEMBERSHIPS
from splitmeans.wire import messages
from splitmeans.wire.codec import encode
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.slot import SERVER
from tests.scene import make_study, make_tables

# Everyone to everyone, before a run's nodes have anything to say: a fresh random key, and which
# protocol it is.
FIRST_WORDS = {messages.Hello: {"protocol", "sealing"}}
# Party to party: random, or a keyed digest; the server carries them and has no key.
BETWEEN_PARTIES = {
    messages.KeyContribution: {"secret"},
    messages.Confirmation: {"key_check", "shared_check"},
    messages.PlanConfirmation: {"stage", "plan_check"},
}
# Server to party: nothing of a party's data but what was released before.
FROM_SERVER = {
    messages.RunPlan: {"n_local_clusters", "released", "fingerprint", "statement"},
    messages.PublishedResult: {
        *("fingerprint", "local_centres", "labels", "weights", "nodes", "centres", "sizes"),
        *("published_at", "signature", "presence"),
    },
}
# Party to server, the same whatever the data is.
WITHOUT_DATA = {messages.Ready}
# Party to server, made from data: every field, and the release that pays for it.
FROM_DATA = {
    messages.StageRelease: {"stage": "number of users", "values": "number of users"},
    messages.PartyRelease: {
        "centres": "local clusters",
        "points": "local clusters",
        "membership": "memberships",
        "column_edges": "detail",
        "columns": "columns together",
    },
}
# Empty where a study does not ask for detail (tests/protocol/test_column_tables_runs.py does).
OPTIONAL = {"column_edges", "columns"}
# A release that goes to the other parties too: the same one, paid for once.
ALSO_TO_PARTIES = {messages.StageRelease}
# What a membership law's event was proved for.
MEMBERSHIP_FIELDS = {
    messages.CellSketchMessage: {"registers"},
    messages.DecoyMessage: {"lengths", "lows", "bitmaps", "labels"},
}
# "open": k' is left open, so that the number of users is released before.
CASES = [
    *((method, 2) for method in MEMBERSHIPS),
    ("decoy", 3),
    ("decoy open", 2),
    ("sketch open", 2),
]


def study_of(membership: str, n_parties: int) -> Study:
    method, *is_open = membership.split()
    return make_study(method, n_parties, **{"n_local_clusters": "auto"} if is_open else {})


@functools.cache
def sent_in_run(membership: str, n_parties: int, data_seed: int) -> tuple[Plan, list[Envelope]]:
    """Run with one fixed noise on data of this seed."""
    study = study_of(membership, n_parties)
    ids = [f"user {data_seed} {number}" for number in range(90 + data_seed)]
    tables = make_tables(study, n_users=len(ids), ids=ids)
    sent: list[Envelope] = []
    result = protocol.run(
        study,
        tables,
        noise=InsecureSeededNoise(1),
        rng=np.random.default_rng(1),
        on_message=lambda envelope, _: sent.append(envelope),
    )
    return result.plan, sent


def to_server(membership: str, n_parties: int, data_seed: int) -> dict[tuple[str, type], Any]:
    _, sent = sent_in_run(membership, n_parties, data_seed)
    chosen = [envelope for envelope in sent if envelope.receiver == SERVER]
    found = {(envelope.sender, type(envelope.message)): envelope.message for envelope in chosen}
    assert len(found) == len(chosen)  # nobody sends two of a kind
    return found


def fields_of(kind: type) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def test_every_message_type_has_a_direction():
    groups = [set(FIRST_WORDS), set(BETWEEN_PARTIES), set(FROM_SERVER)]
    groups += [WITHOUT_DATA, set(FROM_DATA)]
    assert set(get_args(messages.Message)) == set().union(*groups)
    assert sum(len(group) for group in groups) == len(get_args(messages.Message))
    assert set(FROM_DATA) >= ALSO_TO_PARTIES


def test_every_message_type_of_the_module_can_be_sent():
    unions = set(get_args(messages.Message)) | set(get_args(messages.MembershipMessage))
    defined = {
        kind
        for kind in vars(messages).values()
        if isinstance(kind, type) and dataclasses.is_dataclass(kind)
    }
    assert defined == unions


@pytest.mark.parametrize("kind", FROM_DATA, ids=lambda kind: kind.__name__)
def test_every_field_that_is_made_from_data_names_its_release(kind):
    assert fields_of(kind) == set(FROM_DATA[kind])


@pytest.mark.parametrize(
    ("kind", "fields"),
    (FIRST_WORDS | BETWEEN_PARTIES | FROM_SERVER).items(),
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_messages_that_no_event_pays_for_have_the_reviewed_fields(kind, fields):
    assert fields_of(kind) == fields


def test_messages_without_data_have_only_public_fields():
    assert fields_of(messages.Ready) == {"study_hash"}


def test_every_membership_message_belongs_to_a_law_with_an_event():
    assert set(MEMBERSHIP_FIELDS) == set(get_args(messages.MembershipMessage))
    assert {method.message for method in METHODS.values()} == set(MEMBERSHIP_FIELDS)
    assert len({method.law for method in METHODS.values()}) == len(METHODS)
    for kind, fields in MEMBERSHIP_FIELDS.items():
        assert fields_of(kind) == fields


@pytest.mark.parametrize(("membership", "n_parties"), CASES)
def test_releases_and_the_accountant_see_the_same_events(membership, n_parties):
    plan = make_plan(study_of(membership, n_parties))
    releases = releases_of(plan)
    assert Counter(release.event for release in releases) == Counter(plan.events)
    assert all(isinstance(release.event, get_args(Event)) for release in releases)
    names = set(messages.kinds_of(FROM_DATA))
    assert {release.message for release in releases} <= names


@pytest.mark.parametrize(("membership", "n_parties"), CASES)
def test_every_message_of_a_run_is_paid_for(membership, n_parties):
    plan, _ = sent_in_run(membership, n_parties, 1)
    releases = releases_of(plan)
    for (sender, kind), message in to_server(membership, n_parties, 1).items():
        if kind in WITHOUT_DATA:
            continue
        for field, what in FROM_DATA[kind].items():
            if field in OPTIONAL and not held(getattr(message, field)):
                continue
            paid = [
                release
                for release in releases
                if (release.what, release.message) == (what, messages.kind_of(message))
                and release.party in (sender, "all parties")
            ]
            assert len(paid) == 1, f"{kind.__name__}.{field} of {sender} must have one event"
        if kind is messages.PartyRelease:
            method = METHODS[membership.split()[0]]
            assert type(message.membership) is method.message
            assert type(plan.membership) is method.law
            assert plan.membership.event in flat(plan.events)


def held(value: Any) -> int:
    """How many numbers are in an array, or in the lengths of records."""
    return 0 if value is None else int(getattr(value, "lengths", value).size)


def flat(events: tuple[Event, ...]) -> list[Event]:
    """Events, and the parts of composed ones."""
    return [*events, *(part for event in events for part in getattr(event, "parts", ()))]


@pytest.mark.parametrize(("membership", "n_parties"), CASES)
def test_every_listed_release_is_sent(membership, n_parties):
    plan, _ = sent_in_run(membership, n_parties, 1)
    sent = to_server(membership, n_parties, 1)
    seen = {(sender, messages.kind_of(message)) for (sender, _), message in sent.items()}
    for release in releases_of(plan):
        members = plan.study.party_names if release.party == "all parties" else (release.party,)
        assert {(member, release.message) for member in members} <= seen


@pytest.mark.parametrize(("membership", "n_parties"), CASES)
def test_what_changes_with_the_data_has_an_event(membership, n_parties):
    """Same noise, other users: of all that reaches the server only releases may differ."""
    first = to_server(membership, n_parties, 1)
    second = to_server(membership, n_parties, 2)
    assert first.keys() == second.keys()
    changed = {
        kind
        for (sender, kind) in first
        if encode(first[sender, kind]) != encode(second[sender, kind])
    }
    assert changed <= set(FROM_DATA)
    assert messages.PartyRelease in changed


@pytest.mark.parametrize(("membership", "n_parties"), CASES)
def test_directions_are_as_listed(membership, n_parties):
    for envelope in sent_in_run(membership, n_parties, 1)[1]:
        kind = type(envelope.message)
        if envelope.sender == SERVER:
            assert kind in FROM_SERVER
        elif envelope.receiver == SERVER:
            assert kind in WITHOUT_DATA | set(FROM_DATA)
        else:
            assert kind in set(BETWEEN_PARTIES) | ALSO_TO_PARTIES


@pytest.mark.parametrize(("membership", "n_parties"), CASES)
def test_what_parties_get_of_a_release_is_what_the_server_got(membership, n_parties):
    """Two counts with noise of their own would cost twice what the event says."""
    at_server = to_server(membership, n_parties, 1)
    for envelope in sent_in_run(membership, n_parties, 1)[1]:
        kind = type(envelope.message)
        if kind in ALSO_TO_PARTIES:
            assert encode(envelope.message) == encode(at_server[envelope.sender, kind])


@pytest.mark.parametrize(("membership", "n_parties"), CASES)
def test_what_changes_between_parties_with_the_data_is_keyed_or_has_an_event(membership, n_parties):
    """Same noise, other users: all stays but what needs the count.

    Digests of the plan may change, as far as the released count does.
    """
    runs = []
    for seed in (1, 2):
        _, sent = sent_in_run(membership, n_parties, seed)
        runs.append(
            {
                (envelope.sender, envelope.receiver, type(envelope.message)): envelope.message
                for envelope in sent
                if SERVER not in (envelope.sender, envelope.receiver)
            }
        )
    first, second = runs
    assert first.keys() == second.keys()
    for place, message in first.items():
        if place[2] not in {messages.StageRelease, messages.PlanConfirmation}:
            assert encode(message) == encode(second[place])


@pytest.mark.parametrize(("membership", "n_parties"), CASES)
def test_contributions_to_the_key_do_not_depend_on_data(membership, n_parties):
    runs = [
        [
            envelope.message.secret
            for envelope in sent_in_run(membership, n_parties, seed)[1]
            if isinstance(envelope.message, messages.KeyContribution)
        ]
        for seed in (1, 2)
    ]
    assert runs[0] == runs[1]
