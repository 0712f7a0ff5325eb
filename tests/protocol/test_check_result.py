"""A party takes an honest result of any method and refuses one that cannot be of its run."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from splitmeans import protocol
from splitmeans.errors import ProtocolError
from splitmeans.party import node as party_node
from splitmeans.party import states as party_states
from splitmeans.party.check_result import check_result
from splitmeans.party.session import Session
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.result.publish import local_centres_of, read_published
from splitmeans.result.signed import Stamp
from splitmeans.study import GRID_METHODS, Study
from splitmeans.study.features import GRID_UNITS
from splitmeans.study.methods import MEMBERSHIPS
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.identity import Identity
from splitmeans.wire.messages import PartyRelease, PublishedResult, RunPlan
from splitmeans.wire.slot import SERVER

CASES = [
    (membership, grid, n_parties)
    for membership in MEMBERSHIPS
    for grid in GRID_METHODS
    if grid != "auto"
    for n_parties in (2,)
]


@pytest.mark.parametrize("population", ["shared", "everyone"])
def test_an_honest_result_of_three_parties_is_accepted(population, small_study, stage):
    study = small_study("decoy", 3, population=population)
    played = stage(study).play()
    assert played.errors == {}
    assert played.server.plan.grid_method == "presence"
    for party in study.party_names:
        state = played.states[party]
        assert isinstance(state, party_states.Finished)
        synopsis = read_published(played.server.plan, state.result)
        np.testing.assert_array_equal(synopsis.weights, played.server.synopsis.weights)


@pytest.mark.parametrize(("membership", "grid", "n_parties"), CASES)
def test_an_honest_result_is_accepted(membership, grid, n_parties, small_study, stage):
    study = small_study(membership, n_parties, grid=grid)
    played = stage(study).play()
    assert played.errors == {}
    done = played.server
    assert done.plan.grid_method == grid
    for party in study.party_names:
        state = played.states[party]
        assert isinstance(state, party_states.Finished)
        assert state.released == done.plan.released
        # What the party rebuilds is bit by bit what the server has.
        synopsis = read_published(done.plan, state.result)
        np.testing.assert_array_equal(synopsis.scaled_nodes, done.synopsis.scaled_nodes)
        np.testing.assert_array_equal(synopsis.weights, done.synopsis.weights)
        np.testing.assert_array_equal(synopsis.labels, done.synopsis.labels)
        assert synopsis.feature_names == done.synopsis.feature_names
        np.testing.assert_array_equal(state.result.centres, done.clustering.scaled_centres)
        for name, centres in zip(
            study.party_names, local_centres_of(done.plan, state.result), strict=True
        ):
            np.testing.assert_array_equal(centres, done.releases[name].centres)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Honest:
    """One run with an honest result, as its second party sees it."""

    plan: Any
    released: Any
    result: PublishedResult
    own: np.ndarray

    def check(self, **changes: Any) -> None:
        changed = dataclasses.replace(self.result, **changes)
        check(self.plan, "org1", changed, released_centres=self.own)


def check(plan: Any, party: str, result: PublishedResult, *, released_centres: Any) -> None:
    session = Session(study=plan.study, run="1", party=party)
    check_result(session, plan, result, released_centres=released_centres, secure_noise=False)


@pytest.fixture(scope="module")
def honest(small_study: Any, stage: Any) -> Honest:
    study = small_study("decoy", 2)
    played = stage(study).play()
    return Honest(
        plan=played.server.plan,
        released=stage(study).play(until=party_states.Released).states["org1"],
        result=played.message(SERVER, "org1", PublishedResult),
        own=played.message("org1", SERVER, PartyRelease).centres,
    )


def test_the_honest_result_is_as_expected(honest):
    # About 20,000 pseudo-users, one at least for each of 16 cells.
    nodes = len(honest.result.weights)
    assert 20_000 - 16 <= nodes <= 20_000 + 16
    assert honest.result.labels.shape == (nodes, 2)
    assert honest.result.weights.shape == (nodes,)
    assert honest.result.nodes.shape == (nodes, 4)
    assert honest.result.centres.shape == (3, 4)
    assert honest.result.local_centres.shape == (16,)
    honest.check()


def test_a_result_of_another_plan_is_refused(honest):
    with pytest.raises(ProtocolError, match="belongs to another plan than was run"):
        honest.check(fingerprint="ab" * 32)
    other = dataclasses.replace(honest.plan, n_local_clusters=(4, 5))
    with pytest.raises(ProtocolError, match="belongs to another plan than was run"):
        check(other, "org1", honest.result, released_centres=honest.own)


@pytest.mark.parametrize(
    ("field", "shape"),
    [
        ("labels", (16,)),
        ("labels", (16, 1)),
        ("labels", (16, 3)),
        ("labels", (15, 2)),
        ("labels", (0, 2)),
        ("weights", (15,)),
        ("weights", (17,)),
        ("weights", (16, 1)),
        ("weights", (0,)),
        ("centres", (2, 4)),
        ("centres", (4, 4)),
        ("sizes", (2,)),
        ("sizes", (3, 1)),
        ("centres", (3, 3)),
        ("centres", (3, 5)),
        ("centres", (12,)),
    ],
)
def test_wrong_shapes_are_refused(field, shape, honest):
    dtype = getattr(honest.result, field).dtype
    with pytest.raises(
        ProtocolError, match=r"weights, centres and sizes of shapes \(.*expected \(\(.*, 2\), "
    ):
        honest.check(**{field: np.zeros(shape, dtype=dtype)})


def test_a_result_without_cells_is_refused(honest):
    with pytest.raises(ProtocolError, match=r"centres and sizes of shapes \(\(0, 2\)"):
        honest.check(labels=np.zeros((0, 2), dtype=np.uint8), weights=np.zeros(0))


@pytest.mark.parametrize("shape", [(15,), (17,), (0,), (8, 2)])
def test_a_wrong_number_of_local_centres_is_refused(shape, honest):
    with pytest.raises(ProtocolError, match=r"has \d+ coordinates of local centres, expected 16"):
        honest.check(local_centres=np.zeros(shape, dtype=np.int64))


def changed_at(array: np.ndarray, place: Any, value: Any) -> np.ndarray:
    copy = array.copy()
    copy[place] = value
    return copy


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0, -1e-300, 1e300])
def test_weights_that_are_no_counts_are_refused(value, honest):
    with pytest.raises(ProtocolError, match="has weights that are no counts of users"):
        honest.check(weights=changed_at(honest.result.weights, 5, value))


def test_nodes_must_fit_the_labels_and_the_bounds(honest):
    nodes = honest.result.nodes
    for wrong in (nodes[:-1], nodes[:, :3], nodes[:0], nodes.ravel()):
        with pytest.raises(ProtocolError, match="has nodes of shape"):
            honest.check(nodes=wrong)
    for extreme in (2**31 - 1, -(2**31), 2**20 + 1):
        with pytest.raises(ProtocolError, match="has points outside the study's bounds"):
            honest.check(nodes=changed_at(nodes, (5, 2), extreme))


def test_nodes_of_more_users_than_a_plan_has_are_refused(honest):
    parts = {
        name: np.repeat(getattr(honest.result, name), 2, axis=0)
        for name in ("labels", "weights", "nodes")
    }
    with pytest.raises(ProtocolError, match=r"has \d+ nodes, more than its plan"):
        honest.check(**parts)


def test_a_result_of_no_users_is_a_result(honest):
    """Noise can leave no cell above zero, so an honest server can come to this."""
    nobody = np.zeros_like(honest.result.weights)
    honest.check(weights=nobody)
    honest.check(weights=nobody, centres=np.zeros((0, 4)), sizes=np.zeros(0))
    with pytest.raises(ProtocolError, match="has 0 segments, the study asks for 3"):
        honest.check(centres=np.zeros((0, 4)), sizes=np.zeros(0))


def test_fewer_segments_than_asked_for_are_a_result_and_more_are_not(honest):
    honest.check(centres=honest.result.centres[:2], sizes=honest.result.sizes[:2])
    with pytest.raises(ProtocolError, match="has 4 segments, the study asks for 3"):
        honest.check(centres=np.zeros((4, 4)), sizes=np.zeros(4))


@pytest.mark.parametrize("size", [np.nan, np.inf, -1.0, 1e300])
def test_sizes_that_are_no_counts_are_refused(size, honest):
    with pytest.raises(ProtocolError, match=r"has (centres or )?sizes that are no"):
        honest.check(sizes=changed_at(honest.result.sizes, 1, size))


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01"]
)
def test_a_result_without_a_date_is_refused(text, honest):
    with pytest.raises(ProtocolError, match="has no date"):
        honest.check(published_at=text)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_centres_that_are_no_numbers_are_refused(value, honest):
    with pytest.raises(ProtocolError, match="has centres or sizes that are no numbers"):
        honest.check(centres=changed_at(honest.result.centres, (1, 2), value))


@pytest.mark.parametrize("value", [1.001, -1.001, 1e300])
def test_centres_outside_the_bounds_are_refused(value, honest):
    with pytest.raises(ProtocolError, match="has centres outside the study's bounds"):
        honest.check(centres=changed_at(honest.result.centres, (1, 2), value))


@pytest.mark.parametrize("label", [4, 255])
@pytest.mark.parametrize("position", [0, 1])
def test_labels_beyond_the_local_clusters_are_refused(label, position, honest):
    with pytest.raises(ProtocolError, match="has labels beyond the parties' local clusters"):
        honest.check(labels=changed_at(honest.result.labels, (9, position), label))


@pytest.mark.parametrize("place", [0, 7, 8, 15], ids=["org0", "org0 end", "org1", "org1 end"])
@pytest.mark.parametrize("value", [GRID_UNITS + 1, -GRID_UNITS - 1, 2**62])
def test_points_outside_the_bounds_are_refused(place, value, honest):
    with pytest.raises(ProtocolError, match="has points outside the study's bounds"):
        honest.check(local_centres=changed_at(honest.result.local_centres, place, value))


def test_a_point_whose_absolute_value_overflows_is_refused(honest):
    with pytest.raises(ProtocolError, match="has points outside the study's bounds"):
        honest.check(local_centres=changed_at(honest.result.local_centres, 0, -(2**63)))


def test_a_result_on_other_centres_than_released_is_refused(honest):
    own = honest.own
    swapped = own[[1, 0, 2, 3]]
    moved = np.where(own > 0, own - 1, own + 1)
    one_moved = changed_at(own, (3, 1), own[3, 1] + (1 if own[3, 1] <= 0 else -1))
    assert not np.array_equal(own, swapped)
    for centres in (swapped, moved, one_moved):
        local = np.concatenate([honest.result.local_centres[:8], centres.ravel()])
        with pytest.raises(
            ProtocolError, match="not built on the centres that party 'org1' released"
        ):
            honest.check(local_centres=local)


def test_a_party_can_speak_for_its_own_centres_only(honest):
    """The other party's centres are known to the server and to that party alone."""
    local = honest.result.local_centres
    honest.check(local_centres=changed_at(local, 0, local[0] // 2))
    with pytest.raises(ProtocolError, match="not built on the centres that party 'org0' released"):
        check(
            honest.plan,
            "org0",
            dataclasses.replace(honest.result, local_centres=changed_at(local, 0, local[0] // 2)),
            released_centres=local[:8].reshape(4, 2),
        )


def test_a_party_that_refused_a_result_still_takes_the_honest_one(honest):
    state = honest.released
    assert isinstance(state, party_states.Released)
    options: dict[str, Any] = {"noise": InsecureSeededNoise(1), "rng": np.random.default_rng(1)}
    wrong = dataclasses.replace(honest.result, weights=honest.result.weights - 1e6)
    with pytest.raises(ProtocolError, match="has weights that are no counts of users"):
        party_node.step(state, Envelope(sender=SERVER, receiver="org1", message=wrong), **options)
    right = Envelope(sender=SERVER, receiver="org1", message=honest.result)
    finished, sent = party_node.step(state, right, **options)
    assert isinstance(finished, party_states.Finished)
    assert finished.result is honest.result
    assert sent == []


# ---- signatures ----

SERVER_KEYS, OTHER_KEYS = Identity.new(), Identity.new()


def with_keys(study: Study) -> Study:
    parties = tuple(
        dataclasses.replace(party, public_key=Identity.new().public.to_text())
        for party in study.parties
    )
    return dataclasses.replace(study, parties=parties, server_key=SERVER_KEYS.public.to_text())


@pytest.fixture(scope="module")
def keyed(small_study: Any) -> Study:
    return with_keys(small_study("decoy", 2))


def stamped(identity: Identity | None) -> Stamp:
    sign = None if identity is None else identity.sign
    return Stamp(now=lambda: "2026-01-31T12:00:00Z", sign=sign)


def test_parties_take_a_result_that_the_server_signed(keyed, stage):
    played = stage(keyed, stamp=stamped(SERVER_KEYS)).play()
    assert played.errors == {}
    result = played.states["org0"].result
    assert result.published_at == "2026-01-31T12:00:00Z"
    assert len(result.signature) == 64
    assert played.server.published.signature == result.signature


@pytest.mark.parametrize("identity", [None, OTHER_KEYS], ids=["unsigned", "another key"])
def test_a_result_that_another_signed_is_refused(identity, keyed, stage):
    played = stage(keyed, stamp=stamped(identity)).play()
    message = "the published result is not signed with the server's key"
    assert played.errors == {"org0": message, "org1": message}


def test_a_result_signed_for_another_run_is_refused(keyed, stage):
    played = stage(keyed, stamp=stamped(SERVER_KEYS), runs={"org0": "2", "org1": "2"}).play()
    assert set(played.errors) == {"org0", "org1"}
    assert "not signed" in played.errors["org0"]


@pytest.mark.parametrize("field", ["weights", "sizes", "centres", "published_at"])
def test_the_signature_covers_every_part(field, keyed, stage):
    played = stage(keyed, stamp=stamped(SERVER_KEYS)).play()
    plan, result = played.server.plan, played.message(SERVER, "org1", PublishedResult)
    own = played.message("org1", SERVER, PartyRelease).centres
    check(plan, "org1", result, released_centres=own)
    value = getattr(result, field)
    other = "2026-01-31T12:00:01Z" if field == "published_at" else value * (1 - 1e-12)
    with pytest.raises(ProtocolError, match="not signed with the server's key"):
        check(
            plan,
            "org1",
            dataclasses.replace(result, **{field: other}),
            released_centres=own,
        )


def test_other_facts_are_refused_before_anything_is_released(keyed, stage):
    """After a release there must be nothing left on which server and party could differ."""

    def alter(envelope: Envelope) -> Envelope:
        if not isinstance(envelope.message, RunPlan):
            return envelope
        changed = dataclasses.replace(envelope.message, statement="ab" * 32)
        return dataclasses.replace(envelope, message=changed)

    played = stage(keyed, stamp=stamped(SERVER_KEYS), alter=alter).play()
    assert set(played.errors) == {"org0", "org1"}
    assert "different privacy facts of the same study" in played.errors["org0"]
    assert "PartyRelease" not in played.kinds_from("org0", to=SERVER)


def test_a_study_with_keys_can_be_simulated(keyed, small_tables):
    """Nobody has the server's private key then; `protocol.run` says so to the parties."""
    done = protocol.run(keyed, small_tables(keyed), noise=InsecureSeededNoise(1))
    assert done.server.published.signature == b""
