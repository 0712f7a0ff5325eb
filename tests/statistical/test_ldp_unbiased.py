"""The inverses of GRR and OLH are unbiased, and the integer law never costs more than epsilon.

A check looks at up to 200 cell means of 400 independent runs, each within 5 standard errors; the
means are close to normal, so a fixed seed was unlucky with probability below 200 * 6e-7 = 1.2e-4.
"""

from fractions import Fraction

import numpy as np
import pytest

from splitmeans.membership.exact.encode import encode as encode_exact
from splitmeans.membership.exact.estimate import ExactEstimator
from splitmeans.membership.exact.law import PlainLabels
from splitmeans.membership.ldp.encode import encode
from splitmeans.membership.ldp.estimate import LdpEstimator, inverse_support
from splitmeans.membership.ldp.law import RandomisedLabels, hash_labels
from splitmeans.privacy.noise import InsecureSeededNoise

RUNS = 400
N_USERS = 120
GRR = RandomisedLabels(epsilon=1.0, n_local_clusters=4)
OLH = RandomisedLabels(epsilon=1.0, n_local_clusters=12)  # g = 3, far from e + 1
COARSE = RandomisedLabels(epsilon=0.3, n_local_clusters=7)  # g = 2

CASES = {
    "grr": (GRR,),
    "olh": (OLH,),
    "grr-grr": (GRR, GRR),
    "olh-olh": (OLH, OLH),
    "grr-olh": (GRR, OLH),
    "grr-grr-grr": (GRR, GRR, GRR),
    "olh-olh-grr": (COARSE, COARSE, GRR),
}


def fixed_labels(laws):
    """Skewed labels, correlated across parties, some clusters empty."""
    rng = np.random.default_rng(11)
    skewed = rng.integers(6, size=N_USERS)
    return [
        np.minimum(skewed + rng.integers(2, size=N_USERS), law.n_local_clusters - 1).astype(
            np.int32
        )
        for law in laws
    ]


def runs_of(laws, labels, *, seed):
    noise = InsecureSeededNoise(seed)
    for run in range(RUNS):
        yield tuple(
            encode(law, labels=own, noise=noise.spawn(f"{run} {party}"))
            for party, (law, own) in enumerate(zip(laws, labels, strict=True))
        )


def standard_scores(estimates, truth):
    spread = np.std(estimates, axis=0, ddof=1) / np.sqrt(len(estimates))
    return (np.mean(estimates, axis=0) - truth) / spread


@pytest.mark.parametrize("laws", CASES.values(), ids=CASES.keys())
def test_cell_weights_are_unbiased(laws):
    labels = fixed_labels(laws)
    parties = range(len(laws))
    truth = ExactEstimator(
        messages=tuple(encode_exact(PlainLabels(), labels=own) for own in labels),
        n_local_clusters=tuple(law.n_local_clusters for law in laws),
    ).joint(parties)
    estimates = np.array(
        [
            LdpEstimator(laws=laws, messages=messages).joint(parties)
            for messages in runs_of(laws, labels, seed=2)
        ]
    )
    assert np.abs(standard_scores(estimates, truth)).max() < 5


def test_the_printed_support_probabilities_would_be_biased():
    # What one user in cluster 0 is expected to add to each size: no sampling here.
    expected_supports = np.full(12, float(OLH.false_support))
    expected_supports[0] = float(OLH.true_support)
    np.testing.assert_allclose(inverse_support(OLH) @ expected_supports, np.eye(12)[0], atol=1e-12)
    p, q = 0.5, 1 / (np.e + 1)
    printed = np.full((12, 12), q) + (p - q) * np.eye(12)
    assert np.linalg.solve(printed, expected_supports).sum() > 1.2


@pytest.mark.parametrize("n_values", [2, 3, 85])
def test_different_labels_collide_like_independent_ones(n_values):
    # 66 pairs of labels, 5 standard errors: false failure below 66 * 6e-7 = 4e-5.
    seeds = np.random.default_rng(0).integers(0, 2**32, size=200_000, dtype=np.uint32)
    labels = [0, 1, 2, 3, 4, 7, 8, 16, 64, 127, 128, 254]
    hashed = hash_labels(seeds[:, np.newaxis], np.array(labels), n_values=n_values)
    share = 1 / n_values
    error = np.sqrt(share * (1 - share) / seeds.size)
    for first in range(len(labels)):
        for second in range(first):
            collisions = np.mean(hashed[:, first] == hashed[:, second])
            assert abs(collisions - share) < 5 * error


def exp_from_below(epsilon: float) -> Fraction:
    """A partial sum of the series: below e^epsilon, by far less than one part in 2^64."""
    term = total = Fraction(1)
    for power in range(1, 250):
        term *= Fraction(epsilon) / power
        total += term
        if term < total / 2**200:
            break
    return total


@pytest.mark.parametrize("width", [2, 3, 8, 12, 100, 255])
@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 0.1225, 0.245, 0.5, 1.0, 2.0, 5.0, 20.0, 44.0])
def test_realised_epsilon_is_never_above_epsilon(epsilon, width):
    law = RandomisedLabels(epsilon=epsilon, n_local_clusters=width)
    ratio = Fraction(law.true_words, law.other_words)
    assert ratio <= exp_from_below(epsilon)
    # And no budget is lost beyond the rounding: one word less per wrong value would be too few.
    if law.other_words > 1:
        fewer = law.other_words - 1
        too_high = Fraction(2**64 - (law.n_values - 1) * fewer, fewer)
        assert too_high > exp_from_below(epsilon)
