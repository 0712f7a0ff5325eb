"""Bias and variance of the decoy join over many run keys.

Every bound is 5 standard errors: with the numbers of cells below, each test fails by chance with
probability below 3e-5.
"""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from splitmeans.membership.decoy.encode import encode
from splitmeans.membership.decoy.estimate import DecoyEstimator, add_server_noise
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.law import collusion_law, decoy_law
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.table.walk.memory import MemoryUsers

LAW = decoy_law(0.25, delta_share=1e-6, server_sigma=5.0)
WIDTHS = (3, 2, 4)
JOINT = ((0, 1, 2),)
PAIRS = ((0, 1), (0, 2), (1, 2))
RUNS = 150

rng = np.random.default_rng(11)
COMMON = rng.integers(4, size=400)
LABELS = [((COMMON + rng.integers(2, size=400)) % width).astype(np.int32) for width in WIDTHS]
EVERYWHERE = [np.ones(400, dtype=bool)] * 3
PARTLY = [rng.random(400) < 0.7 for _ in WIDTHS]


def estimate(run: int, present, *, groups, equal_sets, sample_rate=1.0, epsilon=None):
    noise = InsecureSeededNoise(run)
    responses = tuple(collusion_law(epsilon, n_local_clusters=width) for width in WIDTHS)
    messages = [
        encode(
            LAW,
            users=MemoryUsers(
                ids=pa.array([f"user {i}" for i in np.flatnonzero(present[party])]),
                labels=LABELS[party][present[party]],
            ),
            position=party,
            groups=groups,
            n_local_clusters=WIDTHS,
            run_key=noise.spawn("key").words(4).tobytes(),
            sample_rate=sample_rate,
            collusion=responses[party],
            noise=noise.spawn(f"party {party}"),
        )
        for party in range(3)
    ]
    tables = join_counts(messages, groups=groups, n_local_clusters=WIDTHS)
    return DecoyEstimator(
        law=LAW,
        noisy_tables=add_server_noise(LAW, tables, noise=noise.spawn("server")),
        n_local_clusters=WIDTHS,
        sample_rate=sample_rate,
        collusion=responses,
    )


def true_cells(present, parties) -> np.ndarray:
    table = np.zeros([WIDTHS[party] for party in parties])
    everywhere = np.logical_and.reduce([present[party] for party in parties])
    np.add.at(table, tuple(LABELS[party][everywhere] for party in parties), 1)
    return table


@pytest.mark.parametrize(
    ("present", "options", "asked"),
    [
        (EVERYWHERE, {"groups": JOINT, "equal_sets": True}, [(0, 1, 2), (0, 2), (1,)]),
        (PARTLY, {"groups": JOINT, "equal_sets": False}, [(0, 1, 2), (0, 2), (1,)]),
        (PARTLY, {"groups": PAIRS, "equal_sets": False}, [(0, 1), (2,)]),
        (EVERYWHERE, {"groups": PAIRS, "equal_sets": True, "sample_rate": 0.3}, [(0, 2), (1,)]),
        (PARTLY, {"groups": PAIRS, "equal_sets": False, "epsilon": 1.0}, [(1, 2), (0,)]),
        (
            EVERYWHERE,
            {"groups": JOINT, "equal_sets": True, "epsilon": 2.0, "sample_rate": 0.5},
            [(0, 1, 2), (0,)],
        ),
    ],
    ids=["equal", "joint", "pairs", "sampled", "collusion", "collusion and sampled"],
)
def test_unbiased_with_the_stated_deviation(present, options, asked):
    estimators = [estimate(run, present, **options) for run in range(RUNS)]
    for parties in asked:
        errors = np.array([e.joint(parties) for e in estimators]) - true_cells(present, parties)
        errors = errors.reshape(RUNS, -1)
        standard_errors = errors.std(axis=0, ddof=1) / RUNS**0.5
        assert (np.abs(errors.mean(axis=0)) < 5 * standard_errors).all()
        squares = (errors**2).mean(axis=1)  # one number a run, as cells of a run are dependent
        stated = np.mean([e.deviation(parties) ** 2 for e in estimators])
        assert abs(squares.mean() - stated) < 5 * squares.std(ddof=1) / RUNS**0.5


def test_decoy_counts_follow_their_table():
    # One run with 2500 cells and no users: the counts are the decoys. False failure: 1e-4.
    none = pa.array([], type=pa.string())
    messages = [
        encode(
            LAW,
            users=MemoryUsers(ids=none, labels=np.empty(0, dtype=np.int32)),
            position=party,
            groups=((0, 1),),
            n_local_clusters=(50, 50),
            run_key=b"statistics of decoy counts, 32 b",
            noise=InsecureSeededNoise(0),
        )
        for party in range(2)
    ]
    counts = join_counts(messages, groups=((0, 1),), n_local_clusters=(50, 50))
    t = LAW.truncation
    observed = np.bincount(counts[0, 1].ravel(), minlength=2 * t + 1)
    expected = 2500 * np.array(LAW.weights, dtype=np.float64) / 2**64
    middle = slice(t - 10, t + 11)  # below and above are one class each
    edges = [slice(0, t - 10), middle, slice(t + 11, None)]
    classes = [
        np.concatenate([[a[edges[0]].sum()], a[middle], [a[edges[2]].sum()]])
        for a in (observed, expected)
    ]
    assert stats.chisquare(*classes).pvalue > 1e-4
