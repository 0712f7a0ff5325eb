"""A made-up study of two stages: the number of users, then how many of them are in a half.

Nothing of the protocol knows what a stage releases, so a second one needs its law, who releases it,
and the code that makes it; here these are put in place of the study's own.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from splitmeans import protocol
from splitmeans._types import NoiseLine
from splitmeans.errors import ProtocolError
from splitmeans.party import node as party_node
from splitmeans.party import stages as party_stages
from splitmeans.party import states as party_states
from splitmeans.party.saved_state import dump_state, load_state
from splitmeans.plan import settle
from splitmeans.plan.message_sizes import message_sizes
from splitmeans.plan.releases import releases_of
from splitmeans.plan.settle import make_plan
from splitmeans.plan.stages import Stage as PlanStage
from splitmeans.privacy.events import RandomisedResponseEvent
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.server import node as server_node
from splitmeans.study import Study
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.messages import PlanConfirmation, StageRelease, kind_of
from splitmeans.wire.slot import SERVER
from tests.scene import make_study, make_tables


@dataclass(frozen=True, kw_only=True)
class Halves:
    """How many rows are in each half of the first column, with Laplace noise."""

    TAG: ClassVar[str] = "Halves"

    scale: float = 20.0

    @property
    def length(self) -> int:
        return 2

    @property
    def event(self) -> RandomisedResponseEvent:
        return RandomisedResponseEvent(epsilon=1 / self.scale)

    @property
    def replaced_event(self) -> RandomisedResponseEvent:
        return RandomisedResponseEvent(epsilon=2 / self.scale)

    def noise_lines(self) -> Iterator[NoiseLine]:
        yield "half", self.scale, "users"


def halves(stage: Any, table: Any, noise: Any) -> Any:
    high = sum(int((block[:, 0] > 0).sum()) for block in (table.raw_rows,))
    counts = np.array([len(table) - high, high])
    return counts + noise.gaussian(stage.law.scale, 2)


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Iterator[Study]:
    """Three parties; all tell their sizes, then the last two tell their halves."""
    study = make_study("decoy", 3, n_local_clusters="auto")
    stages, labels = settle.first_stages, settle._labels
    second = PlanStage(name="halves", what="halves", parties=("org1", "org2"), law=Halves())

    def labels_by_halves(study: Study, all_stages: Any, released: Any) -> Any:
        found = labels(study, all_stages, released)
        # Most in the upper half of the last party: two local clusters more.
        return found + 2 * (len(released) == 2 and released[1][1][1] > 0)

    monkeypatch.setattr(settle, "first_stages", lambda *facts: (*stages(*facts), second))
    monkeypatch.setattr(settle, "_labels", labels_by_halves)
    sides = {**party_stages.STAGE_SIDES, "halves": halves}
    monkeypatch.setattr(party_stages, "STAGE_SIDES", sides)
    for cached in (make_plan, settle._precisions_of):
        cached.cache_clear()
    yield study
    for cached in (make_plan, settle._precisions_of):
        cached.cache_clear()


def test_a_run_goes_through_both_stages(study, stage):
    played = stage(study).play()
    assert played.errors == {}
    assert played.mail == []
    plan = played.server.plan
    assert [len(values) for values in plan.released] == [3, 2]
    assert [len(own) for own in plan.released[1]] == [2, 2]
    assert {state.released for state in played.states.values()} == {plan.released}
    # k' follows from both: that of the size, and two more.
    before = make_plan(study, released=plan.released[:1])
    assert before.next_stage is not None
    assert before.next_stage.name == "halves"
    assert [k - 2 for k in plan.n_local_clusters] == list(before.n_local_clusters)
    assert plan.events == make_plan(study).events
    listed = [(one.party, one.message) for one in releases_of(plan)][:5]
    assert listed == [
        ("org0", "StageRelease_1"),
        ("org1", "StageRelease_1"),
        ("org2", "StageRelease_1"),
        ("org1", "StageRelease_2"),
        ("org2", "StageRelease_2"),
    ]


def test_every_release_and_confirmation_of_a_stage_has_a_slot_of_its_own(study, stage):
    played = stage(study).play()
    slots = [(one.sender, one.receiver, kind_of(one.message)) for one in played.sent]
    assert len(set(slots)) == len(slots)
    to_server = {(who, kind) for who, whom, kind in slots if whom == SERVER}
    every = ("StageRelease_1", "Ready", "PartyRelease")
    assert to_server == {
        ("org1", "StageRelease_2"),
        ("org2", "StageRelease_2"),
        *((name, kind) for name in study.party_names for kind in every),
    }
    confirmed = [kind for _, _, kind in slots if kind.startswith("PlanConfirmation")]
    assert sorted(confirmed) == ["PlanConfirmation_1"] * 6 + ["PlanConfirmation_2"] * 6


def test_a_stage_begins_when_all_have_confirmed_the_plan_of_the_one_before(study, stage):
    """Whoever withholds a word about the first plan sees nothing of the second stage."""

    def lost(envelope: Envelope) -> bool:
        return (envelope.sender, kind_of(envelope.message)) == ("org0", "PlanConfirmation_1")

    played = stage(study)
    while (position := played._next(stop_at=None)) is not None:
        envelope = played.mail.pop(position)
        if not lost(envelope):
            played._deliver(envelope)
    kinds = {kind_of(envelope.message) for envelope in played.sent}
    assert "StageRelease_1" in kinds
    assert "StageRelease_2" not in kinds
    assert {type(state) for name, state in played.states.items() if name != "org0"} == {
        party_states.Agreeing
    }


@pytest.mark.parametrize("number", [1, 2])
def test_other_values_at_one_party_end_the_run_in_either_stage(number, study, stage):
    def alter(envelope: Envelope) -> Envelope:
        message = envelope.message
        if (
            isinstance(message, StageRelease)
            and message.stage == number
            and envelope.receiver == "org0"
        ) or (isinstance(message, StageRelease) and number == 1 and envelope.receiver == "org2"):
            changed = dataclasses.replace(message, values=message.values + 1)
            return dataclasses.replace(envelope, message=changed)
        return envelope

    played = stage(study, alter=alter).play()
    assert all(
        text.endswith("have different plans for this run") for text in played.errors.values()
    )
    assert played.errors
    for name in study.party_names:
        assert "PartyRelease" not in played.kinds_from(name, to=SERVER)


def test_a_release_of_another_stage_is_not_taken(study, stage):
    state = stage(study).play(until=party_states.Keyed)
    played = stage(study)
    while not isinstance(played.states["org1"], party_states.Surveying):
        played._deliver(played.mail.pop(played._next(stop_at=party_states.Surveying)))
    state = played.states["org1"]
    later = StageRelease(stage=2, values=np.array([5]))
    envelope = Envelope(sender="org0", receiver="org1", message=later)
    options = {"noise": InsecureSeededNoise(1), "rng": np.random.default_rng(1)}
    with pytest.raises(ProtocolError, match="Surveying cannot take StageRelease_2 from 'org0'"):
        party_node.step(state, envelope, **options)
    with pytest.raises(ProtocolError, match="Gathering cannot take StageRelease_2 from 'org1'"):
        server_node.step(
            server_node.start(study),
            Envelope(sender="org1", receiver=SERVER, message=later),
            **options,
        )


def test_states_in_the_second_stage_are_saved_and_read_back(study, stage):
    played = stage(study)
    seen = set()
    while (position := played._next(stop_at=None)) is not None:
        played._deliver(played.mail.pop(position))
        for table, state in zip(make_tables(study), played.states.values(), strict=True):
            if isinstance(state, party_states.Surveying | party_states.Agreeing):
                data = dump_state(state)
                read = load_state(
                    state.TAG, data, session=state.session, open_table=lambda own=table: own
                )
                assert dump_state(read) == data
                assert party_node.expects(read) == party_node.expects(state)
                seen.add((state.TAG, len(state.released)))
    assert seen == {("Surveying", 0), ("Surveying", 1), ("Agreeing", 1), ("Agreeing", 2)}


def test_the_protocol_in_one_process_and_sizes_of_messages_know_both_stages(study):
    result = protocol.run(study, make_tables(study), noise=InsecureSeededNoise(3))
    assert len(result.plan.released) == 2
    small = message_sizes(result.plan, users=300).small
    for name in study.party_names:
        sent = sum(
            size
            for (who, kind), size in result.traffic.items()
            if who == name and kind not in ("PartyRelease",)
        )
        assert small[name] == pytest.approx(sent, rel=0.2)
    assert PlanConfirmation.TAG in {kind for _, kind in result.traffic}
