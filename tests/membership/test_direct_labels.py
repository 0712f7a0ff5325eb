"""Randomised response on labels: exact probabilities, the draw, and its inverse."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.membership.decoy.direct_labels import (
    WORDS,
    DirectLabels,
    inverse_support,
    randomise,
)
from splitmeans.privacy.events import RandomisedResponseEvent
from splitmeans.privacy.noise import InsecureSeededNoise

FOUR = DirectLabels(epsilon=1.0, n_local_clusters=4)


@dataclass
class FixedWords:
    """A noise source that returns the given words in turn, one list per call."""

    calls: list[list[int]]
    secure = False

    def words(self, size: int):
        drawn = np.array(self.calls.pop(0), dtype=np.uint64)
        assert drawn.size == size
        return drawn


def labels_of(*values: int):
    return np.array(values, dtype=np.int32)


def test_probabilities_are_those_of_randomised_response():
    assert float(FOUR.true_support) == pytest.approx(math.e / (math.e + 3), rel=1e-15)
    assert float(FOUR.false_support) == pytest.approx(1 / (math.e + 3), rel=1e-15)
    assert FOUR.event == RandomisedResponseEvent(epsilon=1.0)


@pytest.mark.parametrize("width", [2, 3, 12, 255])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 3.0, 45.0, 1000.0])
def test_words_add_up_and_cost_no_more_than_epsilon(epsilon, width):
    law = DirectLabels(epsilon=epsilon, n_local_clusters=width)
    assert law.true_words + (width - 1) * law.other_words == WORDS
    assert law.true_words > law.other_words >= 1
    assert math.log(law.true_words / law.other_words) <= epsilon + 1e-15


def test_bad_parameters_are_refused():
    with pytest.raises(ParameterError, match="epsilon must be > 0"):
        DirectLabels(epsilon=0.0, n_local_clusters=4)
    with pytest.raises(ParameterError, match="epsilon is too small for 64-bit words"):
        DirectLabels(epsilon=1e-19, n_local_clusters=4)
    with pytest.raises(ParameterError, match="n_local_clusters must be a whole number >= 2"):
        DirectLabels(epsilon=1.0, n_local_clusters=1)
    with pytest.raises(ParameterError, match="n_local_clusters must be <= 255, got 256"):
        DirectLabels(epsilon=1.0, n_local_clusters=256)


def test_every_word_range_gives_its_own_report():
    true, other = FOUR.true_words, FOUR.other_words
    words = [0, true - 1, true, true + other - 1, true + other, true + 2 * other, WORDS - 1]
    for truth, others in [(0, [1, 2, 3]), (2, [0, 1, 3]), (3, [0, 1, 2])]:
        sent = randomise(FOUR, labels_of(*[truth] * 7), noise=FixedWords([words]))
        first, second, third = others
        assert sent.tolist() == [truth, truth, first, first, second, third, third]
        assert sent.dtype == np.int32


def test_255_clusters_with_a_large_budget():
    law = DirectLabels(epsilon=20.0, n_local_clusters=255)
    words = [law.true_words, WORDS - 1]
    assert randomise(law, labels_of(0, 0), noise=FixedWords([words])).tolist() == [1, 254]


@pytest.mark.parametrize("label", [-1, 4])
def test_labels_outside_the_clusters_are_refused(label):
    with pytest.raises(ParameterError, match="labels must be between 0 and 3"):
        randomise(FOUR, labels_of(label), noise=InsecureSeededNoise(0))


def test_large_epsilon_keeps_every_label():
    law = DirectLabels(epsilon=60.0, n_local_clusters=3)
    assert randomise(law, labels_of(0, 2, 2), noise=InsecureSeededNoise(0)).tolist() == [0, 2, 2]


@pytest.mark.parametrize("width", [2, 4, 12])
def test_inverse_support_is_the_inverse(width):
    law = DirectLabels(epsilon=1.0, n_local_clusters=width)
    matrix = np.full((width, width), float(law.false_support))
    np.fill_diagonal(matrix, float(law.true_support))
    np.testing.assert_allclose(inverse_support(law) @ matrix, np.eye(width), atol=1e-13)


def test_inverted_counts_are_unbiased():
    """Means of 400 runs of 300 users; five standard errors: fails in under 1 of 100,000 cases."""
    labels = np.repeat(np.arange(4, dtype=np.int32), (150, 90, 60, 0))
    counted = np.array(
        [
            np.bincount(randomise(FOUR, labels, noise=InsecureSeededNoise(seed)), minlength=4)
            for seed in range(400)
        ]
    )
    estimates = counted @ inverse_support(FOUR).T
    errors = estimates.std(axis=0, ddof=1) / math.sqrt(len(estimates))
    assert (np.abs(estimates.mean(axis=0) - [150, 90, 60, 0]) < 5 * errors).all()
