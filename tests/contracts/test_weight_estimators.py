"""What grid code may expect of every membership method's estimator.

Estimators are built as in a run: by the method's record from the messages of its party side. Only
the parties' numbers of clusters differ, which a study cannot ask for yet and estimators allow.
"""

import dataclasses
import functools
import itertools
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from splitmeans.errors import ParameterError
from splitmeans.membership.estimator import WeightEstimator
from splitmeans.membership.methods import METHODS
from splitmeans.party.memberships import PARTY_SIDES
from splitmeans.plan.settle import plan_for
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.table.walk.memory import MemoryUsers
from tests.scene import make_study

WIDTHS = (3, 7, 2, 6)
N_USERS = 400


def labels_of_parties() -> list[np.ndarray]:
    rng = np.random.default_rng(6)
    common = rng.integers(5, size=N_USERS)
    return [((common + rng.integers(2, size=N_USERS)) % width).astype(np.int32) for width in WIDTHS]


@functools.cache
def of_plan(method: str, **changes: str) -> WeightEstimator:
    study = make_study(method, len(WIDTHS), **changes)
    plan = plan_for(study, users=N_USERS)
    plan = dataclasses.replace(plan, n_local_clusters=WIDTHS, n_labels=WIDTHS)
    ids = pa.array([f"user-{number}" for number in range(N_USERS)], pa.large_string())
    noise = InsecureSeededNoise(1)
    messages = [
        PARTY_SIDES[method].release(
            plan.membership,
            plan,
            position,
            MemoryUsers(ids=ids, labels=labels),
            run_key=b"\x07" * 32,
            noise=noise.spawn(str(position)),
        )
        for position, labels in enumerate(labels_of_parties())
    ]
    return METHODS[method].estimator(plan.membership, plan, messages, noise.spawn("server"))


class EstimatorContract:
    """Every estimator runs these; a subclass says how it is built."""

    method: ClassVar[str]
    # Cells of more parties than these cannot be asked for.
    most_parties: ClassVar[int] = len(WIDTHS)

    def build(self) -> WeightEstimator:
        return of_plan(self.method)

    @pytest.fixture
    def estimator(self) -> WeightEstimator:
        return self.build()

    def test_it_knows_every_party(self, estimator):
        assert estimator.n_local_clusters == WIDTHS

    def test_one_has_an_entry_per_cluster(self, estimator):
        for party, width in enumerate(WIDTHS):
            sizes = estimator.one(party)
            assert sizes.shape == (width,)
            assert sizes.dtype == np.float64
            assert np.isfinite(sizes).all()

    def test_joint_has_an_axis_per_party(self, estimator):
        for count in range(1, self.most_parties + 1):
            for parties in itertools.combinations(range(len(WIDTHS)), count):
                weights = estimator.joint(parties)
                assert weights.shape == tuple(WIDTHS[party] for party in parties)
                assert weights.dtype == np.float64
                assert np.isfinite(weights).all()

    def test_permuting_parties_permutes_axes(self, estimator):
        count = min(3, self.most_parties)
        straight = estimator.joint(range(count))
        for order in itertools.permutations(range(count)):
            np.testing.assert_allclose(
                estimator.joint(order), np.transpose(straight, order), atol=1e-8
            )

    def test_asking_twice_gives_the_same_answer(self, estimator):
        first = estimator.joint([0, 1])
        first_copy = first.copy()
        first *= 0  # what a caller does with an answer must not reach the estimator
        np.testing.assert_array_equal(estimator.joint([0, 1]), first_copy)
        sizes = estimator.one(0)
        sizes_copy = sizes.copy()
        sizes *= 0
        np.testing.assert_array_equal(estimator.one(0), sizes_copy)

    def test_cells_of_too_many_parties_are_refused(self, estimator):
        for count in range(self.most_parties + 1, len(WIDTHS) + 1):
            with pytest.raises(ParameterError, match="parties"):
                estimator.joint(range(count))

    @pytest.mark.parametrize("parties", [[], [0, 0], [4], [-1, 0]])
    def test_wrong_parties_are_refused(self, estimator, parties):
        with pytest.raises(ParameterError, match="parties must be"):
            estimator.joint(parties)

    def test_wrong_party_is_refused(self, estimator):
        with pytest.raises(ParameterError, match="parties must be between 0 and 3"):
            estimator.one(4)


class TestDecoyPartial(EstimatorContract):
    """With labels that stand for absent users, and a presence table."""

    method = "decoy"
    most_parties = 2

    def build(self):
        return of_plan("decoy")


class TestDecoyPairs(EstimatorContract):
    method = "decoy"
    most_parties = 2

    def build(self):
        return of_plan("decoy", grid="pairs")


class TestSketch(EstimatorContract):
    method = "sketch"
    most_parties = 2

    def test_margins_agree(self, estimator):
        pair = estimator.joint([0, 2])
        np.testing.assert_allclose(pair.sum(axis=1), estimator.one(0), atol=1e-6)
        np.testing.assert_allclose(pair.sum(axis=0), estimator.one(2), atol=1e-6)


def test_every_method_has_its_suite():
    """A method that is registered and not here is held to nothing."""
    assert {suite.method for suite in EstimatorContract.__subclasses__()} == set(METHODS)
