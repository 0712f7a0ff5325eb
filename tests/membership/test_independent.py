from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.membership.independent.encode import encode
from splitmeans.membership.independent.estimate import IndependentEstimator
from splitmeans.membership.independent.law import NoisyHistogram
from splitmeans.privacy.noise import InsecureSeededNoise, SecureNoise
from splitmeans.wire.messages import HistogramMessage


def sizes(*counts: int) -> HistogramMessage:
    return HistogramMessage(noisy_counts=np.array(counts, dtype=np.int64))


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-6, 100))
def test_scale_never_costs_more_than_epsilon(epsilon):
    law = NoisyHistogram(epsilon=epsilon)
    assert 1 / Fraction(law.scale) <= Fraction(epsilon)
    assert law.scale == pytest.approx(1 / epsilon)
    assert law.event.noise_multiplier == law.scale


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("inf"), float("nan")])
def test_bad_epsilon_is_refused(epsilon):
    with pytest.raises(ParameterError, match="epsilon must be"):
        NoisyHistogram(epsilon=epsilon)


def test_epsilon_without_a_finite_scale_is_refused():
    with pytest.raises(ParameterError, match="epsilon must have a finite 1 / epsilon"):
        NoisyHistogram(epsilon=1e-320)


def test_empty_clusters_get_noise_too():
    labels = np.array([0, 0, 2], dtype=np.int32)
    law = NoisyHistogram(epsilon=0.01)
    sent = encode(law, labels=labels, n_local_clusters=6, noise=InsecureSeededNoise(3))
    drawn = InsecureSeededNoise(3).laplace(law.scale, 6)
    assert (sent.noisy_counts - drawn).tolist() == [2, 0, 1, 0, 0, 0]
    assert np.count_nonzero(drawn) == 6


def test_secure_noise_gives_the_same_kind_of_message():
    labels = np.zeros(1000, dtype=np.int32)
    law = NoisyHistogram(epsilon=1.0)
    sent = encode(law, labels=labels, n_local_clusters=2, noise=SecureNoise())
    assert sent.noisy_counts.dtype == np.int64
    # P(|noise| >= 100) is about e^-100 at scale 1.
    assert np.abs(sent.noisy_counts - [1000, 0]).max() < 100


@pytest.mark.parametrize("label", [-1, 3])
def test_labels_outside_the_clusters_are_refused(label):
    with pytest.raises(ParameterError, match="labels must be between 0 and 2"):
        encode(
            NoisyHistogram(epsilon=1.0),
            labels=np.array([label], dtype=np.int32),
            n_local_clusters=3,
            noise=InsecureSeededNoise(0),
        )


def test_product_by_hand():
    estimator = IndependentEstimator(messages=(sizes(60, 40), sizes(10, 20, 70)), noisy_count=100)
    np.testing.assert_allclose(estimator.joint([0, 1]), [[6, 12, 42], [4, 8, 28]])
    assert estimator.one(1).tolist() == [10, 20, 70]


def test_two_negative_sizes_do_not_make_a_positive_cell():
    estimator = IndependentEstimator(messages=(sizes(-50, 100), sizes(-50, 100)), noisy_count=100)
    np.testing.assert_array_equal(estimator.joint([0, 1]), [[0, 0], [0, 100]])
    assert estimator.one(0).tolist() == [-50, 100]


@pytest.mark.parametrize("noisy_count", [0, -5, float("nan")])
def test_noisy_count_must_be_positive(noisy_count):
    with pytest.raises(ParameterError, match="noisy_count must be"):
        IndependentEstimator(messages=(sizes(1, 2),), noisy_count=noisy_count)


@pytest.mark.parametrize(
    "counts",
    [np.zeros(2), np.zeros((2, 2), dtype=np.int64), np.zeros(0, dtype=np.int64)],
    ids=["type", "shape", "empty"],
)
def test_malformed_sizes_are_refused(counts):
    with pytest.raises(ProtocolError, match="sizes of party 1 must be a list of whole numbers"):
        IndependentEstimator(
            messages=(sizes(1, 2), HistogramMessage(noisy_counts=counts)), noisy_count=3
        )


def test_no_messages_are_refused():
    with pytest.raises(ParameterError, match="one entry per party"):
        IndependentEstimator(messages=(), noisy_count=3)
