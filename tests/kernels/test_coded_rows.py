"""Nearest centres and sums of coded rows: by hand, against features, and what one row moves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans._types import NO_VALUE
from splitmeans.errors import ParameterError
from splitmeans.kernels.assign import clipped_sums, nearest
from splitmeans.kernels.coded_rows import coded_nearest, coded_sums
from splitmeans.study.coding import Coding

UNIT = 2**20


def random_case(seed: int, *, gaps: bool) -> tuple[Coding, np.ndarray, np.ndarray, np.ndarray]:
    """Return a coding, rows, centres and radii."""
    rng = np.random.default_rng(seed)
    levels = tuple(int(n) for n in rng.choice([0, 0, 2, 3, 7], rng.integers(1, 6)))
    bounds: list[int] = []
    columns = []
    for n in levels:
        bound = int(rng.integers(1, UNIT))
        bounds += [bound] * max(1, n)
        # Beyond what is allowed, too: the code n is equal shares of all levels.
        own = rng.integers(0, n + 1, 40) if n else rng.integers(-bound - 5, bound + 6, 40)
        columns.append(np.where(rng.random(40) < 0.3, NO_VALUE, own) if gaps else own)
    limits = np.array(bounds)
    centres = rng.integers(-limits, limits + 1, (5, len(bounds)))
    radii = rng.integers(1, UNIT, 5)
    coding = Coding(bounds=tuple(bounds), levels=levels, has_gaps=gaps)
    return coding, np.stack(columns, axis=1), centres, radii


def naive_distances(features: np.ndarray, limits: np.ndarray, centre: np.ndarray) -> list[int]:
    """Squared distances over the features that are there, in whole numbers of any length."""
    found = []
    for row in features.tolist():
        pairs = zip(row, limits.tolist(), centre.tolist(), strict=True)
        found.append(sum((min(max(x, -m), m) - c) ** 2 for x, m, c in pairs if x != NO_VALUE))
    return found


@pytest.mark.parametrize("gaps", [False, True])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_labels_are_those_of_the_nearest_features(gaps, seed):
    coding, rows, centres, _ = random_case(seed, gaps=gaps)
    limits = np.array(coding.bounds)
    found = coded_nearest(rows, centres=centres, limits=limits, levels=coding.levels)
    distances = [naive_distances(coding.features(rows), limits, centre) for centre in centres]
    expected = [min(range(5), key=lambda c: (distances[c][i], c)) for i in range(len(rows))]
    assert found.tolist() == expected


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_sums_are_those_of_features(seed):
    coding, rows, centres, radii = random_case(seed, gaps=False)
    limits = np.array(coding.bounds)
    options = {"limits": limits, "centres": centres, "radii": radii}
    found = coded_sums(rows, levels=coding.levels, **options)
    expected = clipped_sums(coding.features(rows), **options)
    d = len(limits)
    assert found[:, : d + 1].tolist() == expected[:, : d + 1].tolist()
    assert found[:, d + 1 :].tolist() == expected[:, d + 1 + coding.number_features].tolist()


@given(seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_one_row_moves_sums_by_the_radius_at_most(seed):
    coding, rows, centres, radii = random_case(seed, gaps=True)
    d = len(coding.bounds)
    options = {"limits": np.array(coding.bounds), "centres": centres, "radii": radii}
    for row in rows:
        found = coded_sums(row[np.newaxis], levels=coding.levels, **options)
        (at,) = np.flatnonzero(found[:, d])
        assert not np.delete(found, at, axis=0).any()
        radius = int(radii[at])
        assert found[at, d] == 1
        assert sum(x * x for x in found[at, :d].tolist()) <= radius**2
        assert 4 * sum(x * x for x in found[at, d + 1 :].tolist()) <= radius**2


def test_a_column_without_a_value_counts_for_nothing():
    # Numbers in both columns; the second centre is far in the second one alone.
    centres = np.array([[10, 0], [0, 90]])
    options = {"centres": centres, "limits": np.array([100, 100]), "levels": (0, 0)}
    rows = np.array([[4, 5], [4, NO_VALUE], [NO_VALUE, 60], [NO_VALUE, NO_VALUE]])
    # Over all columns the first centre; over the first alone the second, 4 from it.
    assert coded_nearest(rows, **options).tolist() == [0, 1, 1, 0]
    found = coded_sums(rows, radii=np.array([200, 200]), **options)
    # Sums of offsets, counts, squares over 400: nothing where there is no value.
    assert found.tolist() == [[-6, 5, 2, 0, 0], [4, -30, 2, 0, 2]]


def test_plain_rows_have_the_labels_of_the_plain_kernel():
    rng = np.random.default_rng(1)
    rows, centres = rng.integers(-UNIT, UNIT, (500, 3)), rng.integers(-UNIT, UNIT, (9, 3))
    options = {"centres": centres, "limits": np.full(3, UNIT), "levels": (0, 0, 0)}
    assert (coded_nearest(rows, **options) == nearest(rows, centres)).all()


def test_what_does_not_fit_is_refused():
    rows = np.zeros((2, 2), dtype=np.int64)
    centres, limits = np.zeros((1, 3), dtype=np.int64), np.array([1, 1, 1])
    with pytest.raises(ParameterError, match="rows must be int64"):
        coded_nearest(rows, centres=centres, limits=limits, levels=(0, 0, 0))
    with pytest.raises(ParameterError, match="levels must make 3 features"):
        coded_nearest(rows, centres=centres, limits=limits, levels=(0, 3))
    with pytest.raises(ParameterError, match="too large for exact"):
        coded_nearest(rows, centres=centres, limits=limits * 2**26, levels=(0, 2))
    with pytest.raises(ParameterError, match="do not fit"):
        coded_sums(
            rows, centres=centres, limits=limits, levels=(0, 2), radii=np.zeros(1, dtype=np.int64)
        )
