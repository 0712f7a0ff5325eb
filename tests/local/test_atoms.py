"""Round values that many rows share are found in released bins, and nothing else is moved."""

import numpy as np
import pytest

from splitmeans.local.atoms import Histogram, _roundest, on_atoms


def histogram(values, ends, *, even=None, deviation=0.0005, seed=0):
    """What a party releases of these values."""
    ends = np.asarray(ends, dtype=np.float64)
    shares = np.histogram(values, bins=ends)[0] / len(values)
    noisy = shares + np.random.default_rng(seed).normal(0, deviation, len(shares))
    even = np.diff(ends) / (ends[-1] - ends[0]) if even is None else even
    return Histogram(ends=ends, shares=np.maximum(noisy, 0), even=even, deviation=deviation)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.83, 1.17, 1.0),
        (6.31, 6.72, 6.5),
        (-0.4, 0.3, 0.0),
        (39.6, 40.3, 40.0),
        (1.0, 1.2, 1.0),
        (0.9, 1.0, 0.9),
        (950, 1100, 1000),
    ],
)
def test_the_roundest_number_of_a_bin(low, high, expected) -> None:
    assert _roundest(low, high) == pytest.approx(expected)


def test_whole_numbers_are_found_and_points_put_onto_them() -> None:
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 40, 20_000).astype(float)
    shown = histogram(rows, np.linspace(0, 40, 97))
    assert shown.step == 1.0
    values = rng.uniform(0, 39.3, 500)
    found = on_atoms(values, shown, rng=rng)
    bins = np.searchsorted(shown.ends[1:-1], values, side="right")
    assert (np.searchsorted(shown.ends[1:-1], found, side="right") == bins).all()
    holds = np.array([np.ceil(a) < b for a, b in zip(shown.ends, shown.ends[1:], strict=False)])
    assert np.array_equal(found[holds[bins]], np.rint(found[holds[bins]]))
    assert np.array_equal(found[~holds[bins]], values[~holds[bins]])


def test_halves_are_found_where_whole_numbers_are_not_enough() -> None:
    rows = np.random.default_rng(2).integers(5, 60, 20_000) / 2
    assert histogram(rows, np.linspace(0, 30, 121) - 0.01).step == 0.5


def test_one_value_of_many_rows_takes_its_excess_and_no_more() -> None:
    rng = np.random.default_rng(3)
    rows = np.concatenate([rng.uniform(0, 10, 9000), np.full(1000, 1.0)])
    shown = histogram(rows, np.linspace(0.03, 10.03, 97))
    assert shown.step is None
    ((place, at, part),) = shown.atoms()
    assert at == pytest.approx(1.0)
    assert shown.ends[place] <= 1.0 < shown.ends[place + 1]
    assert part == pytest.approx(1000 / 1095, abs=0.05)
    values = rng.uniform(shown.ends[place], shown.ends[place + 1], 400)
    found = on_atoms(values, shown, rng=rng)
    assert (found == 1.0).sum() == round(part * 400)
    assert (found[found != 1.0] == values[found != 1.0]).all()


@pytest.mark.parametrize("seed", range(5))
def test_smooth_columns_stay_as_they_are(seed) -> None:
    rng = np.random.default_rng(seed)
    rows = np.clip(rng.gamma(2, 10, 20_000), 0, 100)
    edges = np.unique(np.quantile(rows, np.arange(1, 96) / 96))
    ends = [0, *edges, 100]
    even = np.full(len(ends) - 1, 1 / (len(ends) - 1))
    # Noise of a tenth of a bin: an atom would need four deviations and 2.5 times its neighbours.
    shown = histogram(rows, ends, even=even, deviation=0.001, seed=seed)
    values = rng.uniform(0, 100, 300)
    assert np.array_equal(on_atoms(values, shown, rng=rng), values)


def test_noise_alone_makes_no_steps() -> None:
    rng = np.random.default_rng(4)
    noise = np.maximum(rng.normal(0, 0.02, 96), 0)
    shown = Histogram(
        ends=np.linspace(0, 40, 97), shares=noise, even=np.full(96, 1 / 96), deviation=0.02
    )
    assert shown.step is None
