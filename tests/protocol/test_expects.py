"""What every state of every participant can take; everything else is refused untouched."""

import functools
from typing import Any, get_args

import numpy as np
import pytest

from splitmeans.errors import ProtocolError
from splitmeans.party import node as party_node
from splitmeans.party import states as party_states
from splitmeans.server import node as server_node
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.messages import (
    Confirmation,
    Hello,
    KeyContribution,
    Message,
    PartyRelease,
    PlanConfirmation,
    PublishedResult,
    Ready,
    RunPlan,
    StageRelease,
    kind_of,
    staged,
)
from splitmeans.wire.slot import SERVER

# First words are exchanged before either has a state (`run.greeting`).
KINDS = tuple(kind for kind in get_args(Message) if kind is not Hello)
# What slots call the messages of the one stage that these studies have.
VALUES, AGREED = staged(StageRelease, 1), staged(PlanConfirmation, 1)
TYPES = {VALUES: StageRelease, AGREED: PlanConfirmation} | {
    kind.TAG: kind for kind in KINDS if kind not in (StageRelease, PlanConfirmation)
}
SENDERS = ("org0", "org1", "org2", SERVER, "stranger", "")

# Each line: state, what it expects as senders of kinds, and the message that is taken next.
# With numbers of users, of which a party has its own.
MEMBER = [
    (
        "Joined",
        {"org0": KeyContribution.TAG, "org2": KeyContribution.TAG},
        ("org0", KeyContribution.TAG),
    ),
    ("Joined", {"org2": KeyContribution.TAG}, ("org2", KeyContribution.TAG)),
    ("Keyed", {"org0": Confirmation.TAG, "org2": Confirmation.TAG}, ("org2", Confirmation.TAG)),
    ("Keyed", {"org0": Confirmation.TAG}, ("org0", Confirmation.TAG)),
    ("Surveying", {"org0": VALUES, "org2": VALUES}, ("org2", VALUES)),
    ("Surveying", {"org0": VALUES}, ("org0", VALUES)),
    ("Agreeing", {"org0": AGREED, "org2": AGREED}, ("org0", AGREED)),
    ("Agreeing", {"org2": AGREED}, ("org2", AGREED)),
    ("Prepared", {SERVER: RunPlan.TAG}, (SERVER, RunPlan.TAG)),
    ("Released", {SERVER: PublishedResult.TAG}, (SERVER, PublishedResult.TAG)),
    ("Finished", {}, None),
]
# Without a count, nothing lies between the confirmations and the server's plan.
UNCOUNTED = [
    (
        "Joined",
        {"org0": KeyContribution.TAG, "org1": KeyContribution.TAG},
        ("org1", KeyContribution.TAG),
    ),
    ("Joined", {"org0": KeyContribution.TAG}, ("org0", KeyContribution.TAG)),
    ("Keyed", {"org0": Confirmation.TAG, "org1": Confirmation.TAG}, ("org0", Confirmation.TAG)),
    ("Keyed", {"org1": Confirmation.TAG}, ("org1", Confirmation.TAG)),
    ("Prepared", {SERVER: RunPlan.TAG}, (SERVER, RunPlan.TAG)),
    ("Released", {SERVER: PublishedResult.TAG}, (SERVER, PublishedResult.TAG)),
    ("Finished", {}, None),
]
PARTY_WALKS = {
    "member": ("counted", "org1", MEMBER),
    "uncounted": ("decoy", "org2", UNCOUNTED),
}

# The server takes readiness and numbers in any order. A sender may have two kinds to send.
NAMES = ("org0", "org1", "org2")


def gathering(ready: str, values: str) -> set[tuple[str, str]]:
    """What the server waits for: "02" are the first and the third party."""
    found = {(NAMES[int(at)], Ready.TAG) for at in ready}
    return found | {(NAMES[int(at)], VALUES) for at in values}


SERVER_COUNTED = [
    ("Gathering", gathering("012", "012"), ("org1", Ready.TAG)),
    ("Gathering", gathering("02", "012"), ("org0", VALUES)),
    ("Gathering", gathering("02", "12"), ("org0", Ready.TAG)),
    ("Gathering", gathering("2", "12"), ("org2", VALUES)),
    ("Gathering", gathering("2", "1"), ("org1", VALUES)),
    ("Gathering", gathering("2", ""), ("org2", Ready.TAG)),
    (
        "Collecting",
        {("org0", PartyRelease.TAG), ("org1", PartyRelease.TAG), ("org2", PartyRelease.TAG)},
        ("org2", PartyRelease.TAG),
    ),
    (
        "Collecting",
        {("org0", PartyRelease.TAG), ("org1", PartyRelease.TAG)},
        ("org0", PartyRelease.TAG),
    ),
    ("Collecting", {("org1", PartyRelease.TAG)}, ("org1", PartyRelease.TAG)),
    ("Done", set(), None),
]
SERVER_COUNT_LAST = [
    ("Gathering", gathering("012", "012"), ("org0", Ready.TAG)),
    ("Gathering", gathering("12", "012"), ("org1", Ready.TAG)),
    ("Gathering", gathering("2", "012"), ("org2", Ready.TAG)),
    ("Gathering", gathering("", "012"), ("org2", VALUES)),
    ("Gathering", gathering("", "01"), ("org0", VALUES)),
    ("Gathering", gathering("", "1"), ("org1", VALUES)),
    *SERVER_COUNTED[6:],
]
SERVER_UNCOUNTED = [
    ("Gathering", gathering("012", ""), ("org2", Ready.TAG)),
    ("Gathering", gathering("01", ""), ("org0", Ready.TAG)),
    ("Gathering", gathering("1", ""), ("org1", Ready.TAG)),
    *SERVER_COUNTED[6:],
]
SERVER_WALKS = {
    "counted": ("counted", SERVER_COUNTED),
    "count last": ("counted", SERVER_COUNT_LAST),
    "uncounted": ("decoy", SERVER_UNCOUNTED),
}


class Untouchable:
    """Noise and randomness that nobody may draw from."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was used for a message that had to be refused")


@pytest.fixture(scope="module")
def whole_run(small_study: Any, stage: Any) -> Any:
    """A finished run of three parties; its messages are the honest ones."""

    @functools.cache
    def of(membership: str) -> Any:
        played = stage(small_study(membership, 3)).play()
        assert played.errors == {}
        assert isinstance(played.server, server_node.Done)
        assert all(type(state) is party_states.Finished for state in played.states.values())
        return played

    return of


def an_example(played: Any, kind: type) -> Any:
    """Some honest message of this kind, or one that looks like it if the run has none."""
    for envelope in played.sent:
        if type(envelope.message) is kind:
            return envelope.message
    return {
        StageRelease: StageRelease(stage=1, values=np.array([200])),
        PlanConfirmation: PlanConfirmation(stage=1, plan_check=bytes(32)),
    }[kind]


def step(node: Any, state: Any, sender: str, receiver: str, message: Any, **options: Any) -> Any:
    envelope = Envelope(sender=sender, receiver=receiver, message=message)
    return node.step(state, envelope, **options)


def walk(node: Any, state: Any, receiver: str, lines: list[Any], played: Any) -> list[Any]:
    """The states along a walk, each reached with the honest messages of the run."""
    states = [state]
    for _, _, (sender, kind) in lines[:-1]:
        state, _ = step(
            node,
            state,
            sender,
            receiver,
            played.message(sender, receiver, TYPES[kind]),
            noise=played.noise_of(receiver),
            rng=np.random.default_rng(1),
        )
        states.append(state)
    return states


def check_refusals(
    node: Any, state: Any, receiver: str, allowed: set[Any], played: Any, says: str
) -> None:
    refused = 0
    for kind in KINDS:
        message = an_example(played, kind)
        for sender in SENDERS:
            if (sender, kind_of(message)) in allowed:
                continue
            expected = f"^{says} cannot take {kind_of(message)} from '{sender}'$"
            with pytest.raises(ProtocolError, match=expected):
                step(
                    node,
                    state,
                    sender,
                    receiver,
                    message,
                    noise=Untouchable(),
                    rng=Untouchable(),
                )
            refused += 1
    assert refused == len(KINDS) * len(SENDERS) - len(allowed)


PARTY_LINES = [
    (name, at) for name, (_, _, lines) in PARTY_WALKS.items() for at in range(len(lines))
]
SERVER_LINES = [(name, at) for name, (_, lines) in SERVER_WALKS.items() for at in range(len(lines))]


@pytest.mark.parametrize(("name", "at"), PARTY_LINES)
def test_a_party_takes_what_its_state_expects_and_nothing_else(name, at, whole_run, small_tables):
    membership, party, lines = PARTY_WALKS[name]
    played = whole_run(membership)
    table = small_tables(played.study)[played.study.party_names.index(party)]
    start, _ = party_node.join(played.study, table, noise=played.noise_of(party))
    state = walk(party_node, start, party, lines[: at + 1], played)[-1]
    kind, expected, _ = lines[at]
    assert type(state).__name__ == kind
    allowed = set(expected.items())
    assert party_node.expects(state) == allowed
    says = f"party '{party}' in state {kind}"
    check_refusals(party_node, state, party, allowed, played, says)


@pytest.mark.parametrize(("name", "at"), SERVER_LINES)
def test_the_server_takes_what_its_state_expects_and_nothing_else(name, at, whole_run):
    membership, lines = SERVER_WALKS[name]
    played = whole_run(membership)
    start = server_node.start(played.study)
    state = walk(server_node, start, SERVER, lines[: at + 1], played)[-1]
    kind, allowed, _ = lines[at]
    assert type(state).__name__ == kind
    assert server_node.expects(state) == allowed
    check_refusals(server_node, state, SERVER, allowed, played, f"server in state {kind}")


def test_the_walks_pass_through_every_state_and_take_every_kind():
    walked = {kind for _, _, lines in PARTY_WALKS.values() for kind, _, _ in lines}
    assert walked == {
        state.__name__ for state in get_args(party_states.WithTable | party_states.PartyState)
    }
    server_states = {kind for _, lines in SERVER_WALKS.values() for kind, _, _ in lines}
    assert server_states == {state.__name__ for state in get_args(server_node.ServerState)}
    taken = {
        line[2][1]
        for lines in (MEMBER, UNCOUNTED, SERVER_COUNTED)
        for line in lines
        if line[2] is not None
    }
    assert taken == set(TYPES)


def test_no_participant_is_left_with_mail_it_never_takes(whole_run):
    for membership in ("counted", "decoy"):
        assert whole_run(membership).mail == []
