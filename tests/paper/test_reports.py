"""IND-LAP and LDP-AGG: by hand, unbiased, and within epsilon."""

import itertools
import math

import numpy as np
import pytest

from splitmeans.paper.ind_lap import NoisyHistogram, ind_lap_encode, ind_lap_estimate
from splitmeans.paper.ldp_agg import (
    LabelResponse,
    RandomisedLabels,
    count_supports,
    hash_labels,
    ldp_agg,
    ldp_agg_2pest,
    ldp_agg_encode,
    ldp_agg_estimate,
)
from splitmeans.privacy.noise import InsecureSeededNoise

GRR = LabelResponse(epsilon_2=1.0, n_local_clusters=4)
OLH = LabelResponse(epsilon_2=1.0, n_local_clusters=12)


def test_ind_lap_by_hand() -> None:
    sizes = [np.array([4, 6]), np.array([15, -5])]
    found = ind_lap_estimate(10, [NoisyHistogram(noisy_sizes=own) for own in sizes])
    # Products 4 * 15 / 10 and 6 * 15 / 10 add up to 15; 2.5 less each.
    np.testing.assert_allclose(found, [[3.5, 0.0], [6.5, 0.0]])


def test_ind_lap_noise_is_on_counts() -> None:
    """A Laplace variable of scale 2 has deviation 2.8; 6 of them: false failure below 1e-3."""
    rows = np.array([[-1.0]] * 1_000 + [[1.0]] * 200)
    centres = np.array([[-1.0], [1.0], [0.0]])
    message = ind_lap_encode(rows, centres, epsilon_2=0.5, noise=InsecureSeededNoise(1))
    assert np.abs(message.noisy_sizes - [1_000, 200, 0]).max() < 17
    assert message.n_bytes == 24


def test_choice_of_grr_and_olh() -> None:
    # 3 e + 2 = 10.15.
    assert not LabelResponse(epsilon_2=1.0, n_local_clusters=10).uses_hashing
    assert LabelResponse(epsilon_2=1.0, n_local_clusters=11).uses_hashing
    assert (GRR.n_values, OLH.n_values) == (4, 3)
    assert GRR.true_support == pytest.approx(math.e / (math.e + 3))
    assert GRR.false_support == pytest.approx(1 / (math.e + 3))
    assert OLH.true_support == pytest.approx(math.e / (math.e + 2))
    assert pytest.approx(1 / 3) == OLH.false_support


def test_supports_by_hand() -> None:
    none = np.empty(0, dtype=np.uint32)
    reports = [
        RandomisedLabels(reports=np.array(own, dtype=np.uint8), seeds=none)
        for own in ([0, 0, 3], [1, 1, 2])
    ]
    expected = np.zeros((4, 4))
    expected[0, 1], expected[3, 2] = 2, 1
    assert count_supports(GRR, reports).tolist() == expected.tolist()
    seeds = np.array([5, 9], dtype=np.uint32)
    hashed = RandomisedLabels(reports=np.array([1, 2], dtype=np.uint8), seeds=seeds)
    supports = [
        sum(
            int(hash_labels(seeds[i : i + 1], np.array([a]), n_values=3)[0]) == hashed.reports[i]
            for i in range(2)
        )
        for a in range(12)
    ]
    assert count_supports(OLH, [hashed]).tolist() == supports


@pytest.mark.parametrize("response", [GRR, OLH], ids=["grr", "olh"])
def test_estimates_are_unbiased(response: LabelResponse) -> None:
    """Mean of 200 runs within 5 standard errors in up to 144 cells: false failure below 1e-4."""
    k = response.n_local_clusters
    centres = np.linspace(-1, 1, k)[:, None]
    labels = np.random.default_rng(2).integers(k, size=(2, 60)) // 2
    datasets = [centres[own] for own in labels]
    truth = np.zeros((k, k))
    np.add.at(truth, tuple(labels), 1)
    runs = []
    for seed in range(200):
        noise = InsecureSeededNoise(seed)
        messages = [
            ldp_agg_encode(rows, centres, response, noise=noise.spawn(str(party)))
            for party, rows in enumerate(datasets)
        ]
        runs.append(ldp_agg_estimate(response, messages))
    errors = np.std(runs, axis=0, ddof=1) / math.sqrt(len(runs))
    assert (np.abs(np.mean(runs, axis=0) - truth) < 5 * errors).all()


def test_reports_stay_within_epsilon() -> None:
    """The ratio of report probabilities is e^epsilon at most, by the parameters themselves."""
    for epsilon, k in itertools.product((0.1, 0.5, 1.0, 3.0), (2, 5, 30)):
        response = LabelResponse(epsilon_2=epsilon, n_local_clusters=k)
        wrong = (1 - response.true_support) / (response.n_values - 1)
        assert response.true_support / wrong == pytest.approx(math.exp(epsilon))
        assert response.true_support > response.false_support


def test_reports_follow_the_response() -> None:
    """30,000 reports of label 2: shares within 5 deviations, false failure below 3e-6."""
    centres = np.linspace(-1, 1, 4)[:, None]
    rows = np.repeat(centres[2:3], 30_000, axis=0)
    sent = ldp_agg_encode(rows, centres, GRR, noise=InsecureSeededNoise(3))
    shares = np.bincount(sent.reports, minlength=4) / 30_000
    expected = np.where(np.arange(4) == 2, GRR.true_support, GRR.false_support)
    assert (np.abs(shares - expected) < 5 * np.sqrt(expected * (1 - expected) / 30_000)).all()
    assert sent.n_bytes == 30_000


def test_consistent_weights_and_pairs() -> None:
    centres = np.array([[-1.0], [1.0]])
    response = LabelResponse(epsilon_2=3.0, n_local_clusters=2)
    labels = np.random.default_rng(0).integers(2, size=400)
    messages = [
        ldp_agg_encode(centres[labels], centres, response, noise=InsecureSeededNoise(party))
        for party in range(3)
    ]
    pair = ldp_agg(response, messages[:2])
    assert pair.min() >= 0
    assert pair.sum() == pytest.approx(400)
    rng = np.random.default_rng(0)
    assert np.array_equal(ldp_agg_2pest(response, messages[:2], rng=rng), pair)
    fitted = ldp_agg_2pest(response, messages, rng=rng)
    # All parties have the same labels, so nearly all users are on the diagonal.
    assert fitted[0, 0, 0] + fitted[1, 1, 1] > 0.8 * 400
