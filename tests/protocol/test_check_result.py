"""A party takes an honest result of any method and refuses one that cannot be of its run."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from splitmeans.errors import ProtocolError
from splitmeans.features import GRID_UNITS
from splitmeans.party import node as party_node
from splitmeans.party.check_result import check_result
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.published import local_centres_of, read_published
from splitmeans.study import GRID_METHODS, MEMBERSHIP_METHODS
from splitmeans.wire.envelope import SERVER, Envelope
from splitmeans.wire.messages import PartyRelease, PublishedResult

pytestmark = pytest.mark.filterwarnings("ignore:.*sketch-paper")

# Sketches of many parties are decoded in pairs only.
CASES = [
    (membership, grid, n_parties)
    for membership in MEMBERSHIP_METHODS
    for grid in GRID_METHODS
    if grid != "auto"
    for n_parties in (2, 3)
    if (membership, n_parties) != ("sketch", 3) or grid in ("pairs", "many")
]


@pytest.mark.parametrize(("membership", "grid", "n_parties"), CASES)
def test_an_honest_result_is_accepted(membership, grid, n_parties, small_study, stage):
    study = small_study(membership, n_parties, grid=grid)
    played = stage(study).play()
    assert played.errors == {}
    done = played.server
    assert done.plan.grid_method == grid
    for party in study.party_names:
        state = played.states[party]
        assert isinstance(state, party_node.Finished)
        assert state.noisy_count == done.plan.noisy_count
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
        check_result(self.plan, "org1", changed, released_centres=self.own)


@pytest.fixture(scope="module")
def honest(small_study: Any, stage: Any) -> Honest:
    study = small_study("decoy", 2)
    played = stage(study).play()
    return Honest(
        plan=played.server.plan,
        released=stage(study).play(until=party_node.Released).states["org1"],
        result=played.message(SERVER, "org1", PublishedResult),
        own=played.message("org1", SERVER, PartyRelease).centres,
    )


def test_the_honest_result_is_as_expected(honest):
    assert honest.result.labels.shape == (16, 2)
    assert honest.result.weights.shape == (16,)
    assert honest.result.centres.shape == (3, 4)
    assert honest.result.local_centres.shape == (16,)
    honest.check()


def test_a_result_of_another_plan_is_refused(honest):
    with pytest.raises(ProtocolError, match="belongs to another plan than was run"):
        honest.check(fingerprint="ab" * 32)
    other = dataclasses.replace(honest.plan, n_local_clusters=(4, 5))
    with pytest.raises(ProtocolError, match="belongs to another plan than was run"):
        check_result(other, "org1", honest.result, released_centres=honest.own)


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
        ("centres", (3, 3)),
        ("centres", (3, 5)),
        ("centres", (12,)),
    ],
)
def test_wrong_shapes_are_refused(field, shape, honest):
    dtype = getattr(honest.result, field).dtype
    with pytest.raises(
        ProtocolError, match=r"labels, weights and centres of shapes \(.*expected \(\(.*, 2\), "
    ):
        honest.check(**{field: np.zeros(shape, dtype=dtype)})


def test_a_result_without_cells_is_refused(honest):
    with pytest.raises(ProtocolError, match=r"labels, weights and centres of shapes \(\(0, 2\)"):
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


def test_a_result_of_no_users_is_a_result(honest):
    """Noise can leave no cell above zero, so an honest server can come to this."""
    honest.check(weights=np.zeros(16))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_centres_that_are_no_numbers_are_refused(value, honest):
    with pytest.raises(ProtocolError, match="has centres that are no numbers"):
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
        check_result(
            honest.plan,
            "org0",
            dataclasses.replace(honest.result, local_centres=changed_at(local, 0, local[0] // 2)),
            released_centres=local[:8].reshape(4, 2),
        )


def test_a_party_that_refused_a_result_still_takes_the_honest_one(honest):
    state = honest.released
    assert isinstance(state, party_node.Released)
    options: dict[str, Any] = {"noise": InsecureSeededNoise(1), "rng": np.random.default_rng(1)}
    wrong = dataclasses.replace(honest.result, weights=honest.result.weights - 1e6)
    with pytest.raises(ProtocolError, match="has weights that are no counts of users"):
        party_node.step(state, Envelope(sender=SERVER, receiver="org1", message=wrong), **options)
    right = Envelope(sender=SERVER, receiver="org1", message=honest.result)
    finished, sent = party_node.step(state, right, **options)
    assert isinstance(finished, party_node.Finished)
    assert finished.result is honest.result
    assert sent == []
