"""The server refuses what does not fit the study or the plan; see test_expects.py for states."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from splitmeans.errors import ProtocolError
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.server import node as server_node
from splitmeans.study import Study
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.messages import (
    CellSketchMessage,
    PartyRelease,
    Ready,
    RunPlan,
    StageRelease,
)
from splitmeans.wire.slot import SERVER


@pytest.fixture
def decoy(small_study: Any) -> Study:
    return small_study("decoy", 2)


@pytest.fixture
def counted(small_study: Any) -> Study:
    return small_study("counted", 2)


@pytest.fixture
def release(decoy: Study, stage: Any) -> PartyRelease:
    """An honest release of the first party."""
    return stage(decoy).play().message("org0", SERVER, PartyRelease)


def size_of(users: int) -> StageRelease:
    return StageRelease(stage=1, values=np.array([users]))


def step_server(state: Any, sender: str, message: Any) -> Any:
    envelope = Envelope(sender=sender, receiver=SERVER, message=message)
    return server_node.step(
        state, envelope, noise=InsecureSeededNoise(2), rng=np.random.default_rng(2)
    )


def gathered(study: Study) -> tuple[Any, list[Envelope]]:
    state, sent = server_node.start(study), []
    for party in study.party_names:
        state, sent = step_server(state, party, Ready(study_hash=study.hash))
    return state, sent


def test_the_server_waits_for_every_party_and_takes_each_once(decoy):
    state, sent = step_server(server_node.start(decoy), "org0", Ready(study_hash=decoy.hash))
    assert isinstance(state, server_node.Gathering)
    assert sent == []
    with pytest.raises(
        ProtocolError, match="server in state Gathering cannot take Ready from 'org0'"
    ):
        step_server(state, "org0", Ready(study_hash=decoy.hash))
    state, sent = step_server(state, "org1", Ready(study_hash=decoy.hash))
    assert isinstance(state, server_node.Collecting)
    assert [envelope.receiver for envelope in sent] == ["org0", "org1"]
    assert {type(envelope.message) for envelope in sent} == {RunPlan}


def test_another_study_is_refused(decoy, small_study):
    other = small_study("sketch", 2)
    with pytest.raises(ProtocolError, match=f"'org0' runs another study .hash {other.hash[:12]}"):
        step_server(server_node.start(decoy), "org0", Ready(study_hash=other.hash))


def test_a_stranger_is_refused(decoy, release):
    with pytest.raises(ProtocolError, match="Gathering cannot take Ready from 'org9'"):
        step_server(server_node.start(decoy), "org9", Ready(study_hash=decoy.hash))
    with pytest.raises(ProtocolError, match="Collecting cannot take PartyRelease from 'org9'"):
        step_server(gathered(decoy)[0], "org9", release)


def test_a_party_may_send_its_count_only_once(counted):
    state, sent = gathered(counted)
    assert isinstance(state, server_node.Gathering)
    assert sent == []
    early, _ = step_server(server_node.start(counted), "org0", size_of(600))
    with pytest.raises(
        ProtocolError, match="server in state Gathering cannot take StageRelease_1 from 'org0'"
    ):
        step_server(early, "org0", size_of(601))


def test_a_study_without_a_count_takes_none(decoy):
    with pytest.raises(ProtocolError, match="Gathering cannot take StageRelease_1 from 'org0'"):
        step_server(server_node.start(decoy), "org0", size_of(600))


@pytest.mark.parametrize("count", [600, -40])
def test_the_plan_has_the_count_that_was_sent_even_a_negative_one(count, counted):
    state, _ = gathered(counted)
    state, sent = step_server(state, "org0", size_of(count))
    assert sent == []
    state, sent = step_server(state, "org1", size_of(500))
    assert isinstance(state, server_node.Collecting)
    assert state.plan == make_plan(counted, released=(((count,), (500,)),))
    assert [envelope.receiver for envelope in sent] == ["org0", "org1"]
    for envelope in sent:
        assert envelope.message.released.tolist() == [count, 500]
        assert envelope.message.fingerprint == state.plan.fingerprint
        found = tuple(envelope.message.n_local_clusters.tolist())
        assert found == state.plan.n_local_clusters


def test_a_release_in_the_wrong_state_names_both(decoy, release):
    with pytest.raises(
        ProtocolError, match="server in state Gathering cannot take PartyRelease from 'org0'"
    ):
        step_server(server_node.start(decoy), "org0", release)


def test_a_second_release_is_refused(decoy, release):
    state, _ = step_server(gathered(decoy)[0], "org0", release)
    with pytest.raises(
        ProtocolError, match="server in state Collecting cannot take PartyRelease from 'org0'"
    ):
        step_server(state, "org0", release)


def test_a_release_that_does_not_fit_the_plan_is_refused(decoy, release):
    state, _ = gathered(decoy)
    wrong_shape = dataclasses.replace(release, centres=release.centres[:3])
    with pytest.raises(
        ProtocolError, match=r"'org0' sent centres of shape \(3, 2\), expected \(4, 2\)"
    ):
        step_server(state, "org0", wrong_shape)
    for shift in (2**22, -(2**22)):
        outside = dataclasses.replace(release, centres=release.centres + shift)
        with pytest.raises(ProtocolError, match="'org0' sent centres outside the study's bounds"):
            step_server(state, "org0", outside)
    wrong_kind = PartyRelease(
        centres=release.centres,
        points=release.points,
        membership=CellSketchMessage(registers=np.ones((64, 4), dtype=np.uint16)),
    )
    with pytest.raises(ProtocolError, match="sent CellSketchMessage, expected DecoyMessage"):
        step_server(state, "org0", wrong_kind)


def test_a_centre_whose_absolute_value_overflows_is_refused(decoy, release):
    centres = release.centres.copy()
    centres[0, 0] = -(2**63)
    with pytest.raises(ProtocolError, match="'org0' sent centres outside the study's bounds"):
        step_server(gathered(decoy)[0], "org0", dataclasses.replace(release, centres=centres))


def test_points_that_do_not_fit_are_refused(decoy, release):
    """Points are checked like centres; int32 cannot hold what is not a number."""
    state, _ = gathered(decoy)
    n_points = decoy.n_points
    assert release.points.shape == (n_points, 2)
    for wrong in (release.points[:-1], release.points[:, :1], np.zeros((0, 2), dtype=np.int32)):
        with pytest.raises(
            ProtocolError, match=rf"'org0' sent points of shape .* expected \({n_points}, 2\)"
        ):
            step_server(state, "org0", dataclasses.replace(release, points=wrong))
    for extreme in (2**31 - 1, -(2**31)):
        points = release.points.copy()
        points[7, 1] = extreme
        with pytest.raises(ProtocolError, match="'org0' sent points outside the study's bounds"):
            step_server(state, "org0", dataclasses.replace(release, points=points))
