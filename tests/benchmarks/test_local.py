"""The shoot-out: its data, its streams of random numbers, and its scores."""

import numpy as np
import pytest

from benchmarks.candidates import CANDIDATES, Given
from benchmarks.local import KINDS, METHODS, LocalCase, mu_of, run_local, score_case
from splitmeans.errors import ParameterError
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study.features import GRID_UNITS

SMALL = {"columns": (2,), "sizes": (800,), "epsilons": (1.0,), "seeds": 1, "workers": 1}
SMALL["n_clusters"] = 3


def case_of(kind="clusters", *, n_columns=3, n=500, seed=0):
    return LocalCase(kind=kind, n_columns=n_columns, n=n, n_clusters=4, seed=seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_columns", [1, 5])
def test_data_is_inside_its_bounds_and_repeats(kind, n_columns):
    rows = case_of(kind, n_columns=n_columns).rows()
    assert rows.shape == (500, n_columns)
    assert np.abs(rows).max() <= 1
    assert (rows == case_of(kind, n_columns=n_columns).rows()).all()
    assert (rows != case_of(kind, n_columns=n_columns, seed=1).rows()).any()


@pytest.mark.parametrize("n_columns", [1, 2, 8])
@pytest.mark.parametrize("seed", [0, 1, 5])
def test_algorithms_do_not_start_from_the_stream_that_drew_the_data(n_columns, seed):
    # The mixed Gaussian's first draw is its centres, uniform in the box. A candidate with that
    # stream would draw the very same points first, and win without looking at a row.
    centres = np.random.default_rng(seed).uniform(-1, 1, size=(5, n_columns))
    smooth = np.random.default_rng([seed, n_columns]).uniform(-1, 1, size=(5, n_columns))
    start = case_of(n_columns=n_columns, seed=seed).start_rng().uniform(-1, 1, (5, n_columns))
    assert not np.isclose(start, centres).any()
    assert not np.isclose(start, smooth).any()


def test_every_method_is_scored_once():
    scores = list(run_local(kinds=("smooth",), **SMALL))
    assert sorted(score.method for score in scores) == sorted(METHODS)
    assert all(score.loss_ratio > 0.8 for score in scores)
    assert all(score.mu == mu_of(1.0, delta=1 / 800) for score in scores)


def test_scores_repeat():
    runs = [("guided-lloyd", 0.5)]
    first, second = (score_case(case_of(), runs)[0] for _ in range(2))
    assert first.loss == second.loss


def test_mu_of_a_known_value():
    # Balle and Wang's exact curve at epsilon 1, delta 1e-5: sigma 3.7304.
    assert 1 / mu_of(1.0, delta=1e-5) == pytest.approx(3.7304, rel=1e-3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [0, 3, 400])
def test_candidates_return_as_many_centres_as_asked(method, n):
    rows = np.random.default_rng(0).integers(-GRID_UNITS, GRID_UNITS, (n, 2))
    given = Given(
        raw_rows=rows,
        bounds=(GRID_UNITS, GRID_UNITS),
        n_clusters=5,
        epsilon=1.0,
        mu=0.2,
        noise=InsecureSeededNoise(0),
        rng=np.random.default_rng(1),
    )
    centres = CANDIDATES[method](given)
    assert centres.shape == (5, 2)
    assert np.abs(centres).max() <= GRID_UNITS


def test_unknown_names_are_refused():
    with pytest.raises(ParameterError, match="methods must be one of 'guided-lloyd'"):
        list(run_local(methods=("kmeans",), **SMALL))
    with pytest.raises(ParameterError, match="kinds must be one of 'clusters', 'smooth'"):
        list(run_local(kinds=("real",), **SMALL))
