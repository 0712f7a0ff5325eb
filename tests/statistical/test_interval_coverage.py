"""Printed intervals hold what readers take them for; totals of partial user sets are true.

Everything is seeded, so a run gives the same figures every time. The limits are far from both: of
the intervals that covered noise alone, less than half held the users nearest to the centre.
"""

import math

import numpy as np
import pytest

from benchmarks.coverage import SMALL, Setting, rows_of, run_coverage, summary
from benchmarks.data import split_columns
from splitmeans.estimator import VerticalKMeans
from splitmeans.intervals.sizes import one_table
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.synopsis.joint import NOISE_DEVIATIONS

SETTINGS = (
    Setting(n_parties=2, epsilon=4, n_clusters=10),
    Setting(n_parties=3, epsilon=1, n_clusters=5),
    Setting(n_parties=3, epsilon=1, n_clusters=5, share=0.7),
)


@pytest.fixture(scope="module")
def found():
    names = ["blurred", "cloud", "skewed"]
    runs = run_coverage(data=names, settings=SETTINGS, seeds=1, data_dir=None, workers=1)
    return [segment for run in runs for segment in run]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_nine_of_ten_intervals_are_right(found, setting):
    got = summary([one for one in found if one.setting == setting])
    assert got.withheld == 0
    assert got.right >= 0.9


def test_intervals_are_not_right_by_being_endless(found):
    equal = [one for one in found if one.setting.share == 1 and one.size > SMALL * one.users]
    assert summary(equal).width < 0.25


def partial_run(seed, *, data="skewed", n_parties=3, share=0.7):
    """Fit spread-out users; return the model, and how many users are at all parties."""
    rows = rows_of(data, seed=seed, data_dir=None)
    rng = np.random.default_rng(seed)
    columns = split_columns(rows, n_parties, rng=rng)
    here = rng.random((n_parties, len(rows))) < share
    ids = [np.flatnonzero(present) for present in here]
    model = VerticalKMeans(
        5,
        epsilon=1.0,
        delta=1e-6,
        bounds=(-1, 1),
        user_sets="partial",
        expected_users=10_000,
        noise=InsecureSeededNoise(seed),
        random_state=seed,
    )
    model.fit([rows[np.ix_(i, c)] for i, c in zip(ids, columns, strict=True)], ids=ids)
    return model, int(here.all(axis=0).sum())


def test_totals_of_partial_user_sets_have_no_bias():
    """The mean error of six totals, in standard errors: beyond 4 once in 16,000 of such tests.

    Before the cells that are left after the cut were scaled, half of the users were missing, which
    is 20 deviations of each total.
    """
    errors = []
    for seed in range(6):
        model, shared = partial_run(seed, data="cloud", share=0.85)
        plan = model.result_.plan
        assert one_table(plan)
        cell = math.sqrt(plan.membership.variance + plan.membership.server_sigma**2)
        # Most cells hold less than what is cut.
        assert shared < NOISE_DEVIATIONS * cell * math.prod(plan.n_local_clusters)
        noise = cell * math.sqrt(math.prod(plan.n_local_clusters))
        errors.append((model.synopsis_.total - shared) / noise)
    assert abs(np.mean(errors)) * math.sqrt(len(errors)) < 4
    assert np.max(np.abs(errors)) < 5


def test_six_parties_with_partial_user_sets_end():
    """Some 10^8 decoys before k' followed the noise of the whole table; less than a million now."""
    model, shared = partial_run(1, n_parties=6, share=0.9)
    assert model.result_.plan.n_local_clusters[0] >= 2
    assert 0.5 < model.synopsis_.total / shared < 1.5
