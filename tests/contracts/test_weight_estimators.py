"""What grid code may expect of every membership method's estimator."""

import itertools

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.membership.estimator import WeightEstimator
from splitmeans.membership.exact.encode import encode as encode_exact
from splitmeans.membership.exact.estimate import ExactEstimator
from splitmeans.membership.exact.law import PlainLabels
from splitmeans.membership.independent.encode import encode as encode_independent
from splitmeans.membership.independent.estimate import IndependentEstimator
from splitmeans.membership.independent.law import NoisyHistogram
from splitmeans.membership.ldp.encode import encode as encode_ldp
from splitmeans.membership.ldp.estimate import LdpEstimator
from splitmeans.membership.ldp.law import RandomisedLabels
from splitmeans.privacy.noise import InsecureSeededNoise

WIDTHS = (3, 7, 2, 6)
N_USERS = 400


def labels_of_parties() -> list[np.ndarray]:
    rng = np.random.default_rng(6)
    common = rng.integers(5, size=N_USERS)
    return [((common + rng.integers(2, size=N_USERS)) % width).astype(np.int32) for width in WIDTHS]


def exact(labels) -> WeightEstimator:
    messages = tuple(encode_exact(PlainLabels(), labels=own) for own in labels)
    return ExactEstimator(messages=messages, n_local_clusters=WIDTHS)


def independent(labels) -> WeightEstimator:
    noise = InsecureSeededNoise(1)
    messages = tuple(
        encode_independent(
            NoisyHistogram(epsilon=0.5),
            labels=own,
            n_local_clusters=width,
            noise=noise.spawn(str(party)),
        )
        for party, (own, width) in enumerate(zip(labels, WIDTHS, strict=True))
    )
    return IndependentEstimator(messages=messages, noisy_count=N_USERS)


def ldp(epsilon: float, labels) -> WeightEstimator:
    noise = InsecureSeededNoise(2)
    laws = tuple(RandomisedLabels(epsilon=epsilon, n_local_clusters=width) for width in WIDTHS)
    messages = tuple(
        encode_ldp(law, labels=own, noise=noise.spawn(str(party)))
        for party, (law, own) in enumerate(zip(laws, labels, strict=True))
    )
    return LdpEstimator(laws=laws, messages=messages)


class EstimatorContract:
    """Every estimator runs these; a subclass says how it is built."""

    def build(self, labels) -> WeightEstimator:
        raise NotImplementedError

    @pytest.fixture
    def estimator(self) -> WeightEstimator:
        return self.build(labels_of_parties())

    def test_it_knows_every_party(self, estimator):
        assert estimator.n_local_clusters == WIDTHS

    def test_one_has_an_entry_per_cluster(self, estimator):
        for party, width in enumerate(WIDTHS):
            sizes = estimator.one(party)
            assert sizes.shape == (width,)
            assert sizes.dtype == np.float64
            assert np.isfinite(sizes).all()

    def test_joint_has_an_axis_per_party(self, estimator):
        for count in range(1, len(WIDTHS) + 1):
            for parties in itertools.combinations(range(len(WIDTHS)), count):
                weights = estimator.joint(parties)
                assert weights.shape == tuple(WIDTHS[party] for party in parties)
                assert weights.dtype == np.float64
                assert np.isfinite(weights).all()

    def test_permuting_parties_permutes_axes(self, estimator):
        straight = estimator.joint(range(3))
        for order in itertools.permutations(range(3)):
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

    @pytest.mark.parametrize("parties", [[], [0, 0], [4], [-1, 0]])
    def test_wrong_parties_are_refused(self, estimator, parties):
        with pytest.raises(ParameterError, match="parties must be"):
            estimator.joint(parties)

    def test_wrong_party_is_refused(self, estimator):
        with pytest.raises(ParameterError, match="parties must be between 0 and 3"):
            estimator.one(4)


class TestExact(EstimatorContract):
    def build(self, labels):
        return exact(labels)

    def test_margins_of_any_subset_agree(self, estimator):
        whole = estimator.joint(range(4))
        assert whole.sum() == N_USERS
        np.testing.assert_array_equal(whole.sum(axis=(1, 3)), estimator.joint([0, 2]))
        np.testing.assert_array_equal(whole.sum(axis=(0, 1, 2)), estimator.one(3))


class TestIndependent(EstimatorContract):
    def build(self, labels):
        return independent(labels)


class TestLdpDirect(EstimatorContract):
    def build(self, labels):
        return ldp(1.0, labels)

    def test_margins_of_any_subset_agree(self, estimator):
        whole = estimator.joint(range(4))
        np.testing.assert_allclose(whole.sum(axis=(1, 3)), estimator.joint([0, 2]), atol=1e-6)


class TestLdpMixed(EstimatorContract):
    def build(self, labels):
        # 3 e^0.1 + 2 = 5.3, so the parties with 7 and 6 clusters hash and the others do not.
        return ldp(0.1, labels)
