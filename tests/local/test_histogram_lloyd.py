"""Tree-Lloyd and its parts: splits, cells, clipped steps; by hand and against naive twins."""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.kernels.assign import clipped_sums, nearest
from splitmeans.local.cells import (
    KEPT_SHARE,
    CellHistogram,
    Cells,
    bins_for,
    without_noise,
)
from splitmeans.local.column_splits import best_cuts, split_columns
from splitmeans.local.histogram_lloyd import HistogramLloyd, starting_points
from splitmeans.local.laws.radius_lloyd import FINE_UNITS, sensitivity
from splitmeans.local.radius_lloyd import RadiusLloyd
from splitmeans.privacy.noise import InsecureSeededNoise

UNIT = 2**20


@dataclass
class NoNoise:
    """Adds nothing, and notes what was asked for."""

    asked: list[tuple[float, int]] = field(default_factory=list)
    secure: bool = False

    def gaussian(self, scale: float, size: int):
        self.asked.append((scale, size))
        return np.zeros(size, dtype=np.int64)


# --- kernels/assign.py: clipped_sums


def naive_clipped_sums(rows, centres, radii):
    sums, counts, squares = np.zeros(centres.shape), np.zeros(len(centres)), np.zeros(len(centres))
    for row, label in zip(rows, nearest(rows, centres), strict=True):
        offset = row - centres[label]
        radius = int(radii[label])
        length = math.sqrt(sum(int(x) ** 2 for x in offset))
        counts[label] += 1
        if length <= radius:
            sums[label] += offset
            squares[label] += sum(int(x) ** 2 for x in offset) // (4 * radius)
        else:
            sums[label] += np.trunc(offset * (radius / length * (1 - 2.0**-40)))
            squares[label] += radius // 4
    return sums, counts, squares


def sums_of(rows, centres, radii):
    limits = np.full(rows.shape[1], UNIT)
    found = clipped_sums(rows, limits=limits, centres=centres, radii=radii)
    return found[:, :-2], found[:, -2], found[:, -1]


def test_clipped_sums_by_hand():
    rows = np.array([[3, 4], [30, 40], [100, 100]])
    centres = np.array([[0, 0], [100, 99]])
    sums, counts, squares = sums_of(rows, centres, np.array([10, 8]))
    # (3, 4) has length 5, inside 10; (30, 40) becomes just under (6, 8), cut to whole numbers.
    assert sums.tolist() == [[3 + 5, 4 + 7], [0, 1]]
    assert counts.tolist() == [2, 1]
    assert squares.tolist() == [25 // 40 + 10 // 4, 1 // 32]


@given(
    d=st.integers(1, 5),
    k=st.integers(1, 4),
    n=st.sampled_from([0, 1, 7, 511, 512, 513, 1100]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=30, deadline=None)
def test_clipped_sums_agree_with_the_naive_twin(d, k, n, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-UNIT, UNIT + 1, (n, d))
    centres = rng.integers(-UNIT, UNIT + 1, (k, d))
    radii = rng.integers(1, 2 * UNIT, k)
    fast = sums_of(rows, centres, radii)
    for ours, naive in zip(fast, naive_clipped_sums(rows, centres, radii), strict=True):
        assert ours.dtype == np.int64
        assert (ours == naive).all()


@given(
    row=st.lists(st.integers(-UNIT, UNIT), min_size=1, max_size=6), radius=st.integers(8, 3 * UNIT)
)
@settings(max_examples=50, deadline=None)
def test_one_row_never_exceeds_the_stated_sensitivity(row, radius):
    rows = np.array([row])
    centres = np.zeros((1, len(row)), dtype=np.int64)
    sums, counts, squares = sums_of(rows, centres, np.array([radius]))
    assert counts.tolist() == [1]
    parts = [*sums[0].tolist(), 3 * radius // 8, int(squares[0])]
    assert sum(int(part) ** 2 for part in parts) * FINE_UNITS**2 <= sensitivity(radius) ** 2


def test_clipped_sums_change_by_one_row_at_one_centre():
    rng = np.random.default_rng(3)
    rows = rng.integers(-UNIT, UNIT, (700, 3))
    centres = rng.integers(-UNIT, UNIT, (5, 3))
    radii = np.full(5, UNIT // 3)
    with_all = np.column_stack(sums_of(rows, centres, radii))
    for left_out in (0, 350, 699):
        others = np.delete(rows, left_out, axis=0)
        without = np.column_stack(sums_of(others, centres, radii))
        changed = np.flatnonzero((with_all != without).any(axis=1))
        assert changed.tolist() == nearest(rows[[left_out]], centres).tolist()


def test_clipped_sums_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(4)
    rows, centres = rng.integers(-UNIT, UNIT, (900, 4)), rng.integers(-UNIT, UNIT, (3, 4))
    radii = np.full(3, UNIT // 2)
    first = np.column_stack(sums_of(rows, centres, radii))
    again = rng.permutation(rows)
    assert (first == np.column_stack(sums_of(again, centres, radii))).all()


def test_clipped_sums_clip_rows_to_the_limits():
    rows = np.array([[300, -7], [-300, 4]])
    options = {"centres": np.array([[0, 0]]), "radii": np.array([1000])}
    clipped = clipped_sums(rows, limits=np.array([100, 5]), **options)
    inside = clipped_sums(np.array([[100, -5], [-100, 4]]), limits=np.array([100, 5]), **options)
    assert clipped.tolist() == inside.tolist() == [[0, -1, 2, 10025 // 4000 + 10016 // 4000]]


def test_clipped_sums_refuse_what_is_not_exact():
    rows, limits = np.array([[1, 2]]), np.array([UNIT, UNIT])
    with pytest.raises(ParameterError, match="too large for exact distances"):
        clipped_sums(rows, limits=limits * 128, centres=rows, radii=np.array([1]))
    with pytest.raises(ParameterError, match="too large for exact distances"):
        clipped_sums(rows, limits=limits, centres=np.array([[2**27, 0]]), radii=np.array([1]))
    with pytest.raises(ParameterError, match="every radius must be >= 1"):
        clipped_sums(rows, limits=limits, centres=rows, radii=np.array([0]))
    with pytest.raises(ParameterError, match="do not fit"):
        clipped_sums(rows, limits=limits[:1], centres=rows, radii=np.array([1]))


# --- local/column_splits.py


def naive_cost(weights, positions, edges):
    total = 0.0
    for start, end in itertools.pairwise(edges):
        w, x = weights[start:end], positions[start:end]
        if w.sum() > 0:
            total += float((w * (x - np.average(x, weights=w)) ** 2).sum())
    return total


@given(st.lists(st.integers(0, 9), min_size=3, max_size=8))
@settings(max_examples=40, deadline=None)
def test_best_cuts_agree_with_trying_all(counts):
    weights, positions = np.array(counts, dtype=float), np.arange(len(counts), dtype=float)
    for m, (cost, edges) in enumerate(best_cuts(weights, positions, most=3), start=1):
        inner = itertools.combinations(range(1, len(counts)), m - 1)
        least = min(naive_cost(weights, positions, (0, *cut, len(counts))) for cut in inner)
        assert cost == pytest.approx(least, abs=1e-9)
        assert naive_cost(weights, positions, edges) == pytest.approx(least, abs=1e-9)
        assert len(edges) == m + 1
        assert (np.diff(edges) > 0).all()


def test_the_column_that_varies_gets_the_intervals():
    positions = np.arange(8.0)
    narrow, wide = np.array([0, 0, 0, 9, 9, 0, 0, 0.0]), np.array([9, 0, 0, 0, 0, 0, 0, 9.0])
    first, second = split_columns([narrow, wide], [positions, positions], max_cells=3)
    assert first.points.tolist() == [3.5]
    assert second.points.tolist() == [0, 7]
    # Nothing but the width of a bin is left in it.
    assert second.spreads == pytest.approx([1 / 12, 1 / 12])
    assert first.spreads == pytest.approx([0.25 + 1 / 12])
    assert second.interval_of_bin[0] == 0
    assert second.interval_of_bin[7] == 1


@pytest.mark.parametrize("max_cells", [1, 2, 10, 100])
def test_the_number_of_cells_is_kept(max_cells):
    rng = np.random.default_rng(0)
    weights = [rng.uniform(size=16) for _ in range(4)]
    columns = split_columns(weights, [np.arange(16.0)] * 4, max_cells=max_cells)
    assert math.prod(len(column.points) for column in columns) <= max_cells


def test_a_column_without_weight_is_one_interval_in_the_middle():
    (column,) = split_columns([np.zeros(4)], [np.arange(4.0)], max_cells=9)
    assert column.points.tolist() == [1.5]


# --- local/cells.py


@pytest.mark.parametrize(("size", "bins"), [(1.0, 16), (9.0 * 32, 32), (9.0 * 50, 64), (1e9, 256)])
def test_number_of_bins(size, bins):
    assert bins_for(size, noise_deviation=1.0) == bins


def test_small_counts_are_taken_for_noise_if_most_rows_remain():
    noisy = np.array([90.0, 1.5, -3.0, 7.0])
    assert without_noise(noisy, deviation=1.0, total=100).tolist() == [90, 0, 0, 7]
    assert KEPT_SHARE * 100 <= 97


def test_without_clear_counts_the_sum_is_kept_instead():
    # Nothing is above one deviation of 10: all counts are lowered together to add up to 6.
    assert without_noise(np.array([5.0, 3.0, -2.0]), deviation=10, total=6).tolist() == [4, 2, 0]


def test_cells_without_noise_count_every_row():
    rng = np.random.default_rng(1)
    corners = rng.choice([-UNIT // 2, UNIT // 2], size=(4000, 2))
    rows = corners + rng.integers(-1000, 1000, (4000, 2))
    noise = NoNoise()
    histogram = CellHistogram(bounds=(UNIT, UNIT), mu=0.5)
    cells = histogram.release(rows, noise=noise)
    assert cells.noisy_counts.sum() == 4000
    heavy = cells.points[cells.weights > 100]
    assert {tuple(np.sign(point)) for point in heavy} == set(itertools.product((-1, 1), repeat=2))
    scales = [scale for scale, _ in noise.asked]
    assert scales == [histogram.size_scale, histogram.column_scale, histogram.cell_scale]


def test_one_column_needs_no_cells():
    noise = NoNoise()
    histogram = CellHistogram(bounds=(UNIT,), mu=1.0)
    cells = histogram.release(np.full((500, 1), UNIT), noise=noise)
    assert len(noise.asked) == len(histogram.event.parts) == 2
    assert cells.weights[-1] == 500
    assert cells.weights[:-1].sum() == 0


def test_cell_scales_by_hand():
    histogram = CellHistogram(bounds=(UNIT,) * 4, mu=1.0)
    assert histogram.size_scale / UNIT == pytest.approx(1 / math.sqrt(0.02), rel=1e-5)
    # A row moves one bin in each of four columns: L2 sensitivity 2.
    assert histogram.column_scale / UNIT == pytest.approx(2 / math.sqrt(0.98 * 0.25), rel=1e-5)
    assert histogram.cell_scale / UNIT == pytest.approx(1 / math.sqrt(0.98 * 0.75), rel=1e-5)
    size, columns, cells = histogram.event.parts
    assert columns.noise_multiplier == pytest.approx(1 / math.sqrt(0.98 * 0.25), rel=1e-5)
    assert size.slack < columns.slack < 1e-10
    mu = math.sqrt(0.98 * 0.75)
    assert cells.slack == pytest.approx(((12 + mu) ** 2 + 1) / 24 / histogram.cell_scale**2)


# --- local/radius_lloyd.py


def test_sensitivity_by_hand():
    # r = 8 in 1/256 units is 2048; sqrt(77) / 8 of it is 2246.4.
    assert sensitivity(8) == 2247


@given(radius=st.integers(8, 2**24), mu=st.floats(1e-3, 20), steps=st.integers(1, 9))
@settings(max_examples=50, deadline=None)
def test_every_radius_costs_at_most_what_the_event_says(radius, mu, steps):
    lloyd = RadiusLloyd(bounds=(UNIT,), mu=mu, steps=steps)
    event = lloyd.event.parts[0]
    assert lloyd.scale(radius) / sensitivity(radius) >= event.noise_multiplier
    assert math.sqrt(steps) / event.noise_multiplier <= mu


def test_steps_without_noise_find_the_means():
    rows = np.array([[-900]] * 300 + [[-700]] * 100 + [[800]] * 200) * 1000
    lloyd = RadiusLloyd(bounds=(UNIT,), mu=1.0)
    centres = lloyd.release(
        rows,
        centres=np.array([[-500_000.0], [500_000.0]]),
        spreads=np.full(2, 1e12),
        noise=NoNoise(),
    )
    # Clipping at 1.3 times the spread pulls the lopsided cluster a little to its larger part.
    assert centres[0, 0] == pytest.approx(-850_000, abs=20_000)
    assert centres[1, 0] == pytest.approx(800_000, abs=200)


def test_a_cluster_without_rows_keeps_its_centre():
    lloyd = RadiusLloyd(bounds=(UNIT, UNIT), mu=1.0)
    start = np.array([[0.0, 0.0], [UNIT, UNIT]])
    centres = lloyd.release(
        np.zeros((1000, 2), dtype=np.int64), centres=start, spreads=np.ones(2), noise=NoNoise()
    )
    assert centres.tolist() == [[0, 0], [UNIT, UNIT]]


def test_noise_is_in_proportion_to_the_radius():
    lloyd = RadiusLloyd(bounds=(UNIT, UNIT), mu=1.0, steps=1)
    noise = NoNoise()
    spreads = np.array([(UNIT / 10) ** 2, (UNIT / 2) ** 2])
    lloyd.release(
        np.zeros((10, 2), dtype=np.int64), centres=np.zeros((2, 2)), spreads=spreads, noise=noise
    )
    (narrow, size), (wide, _) = noise.asked
    assert size == 4  # two columns, the count, the squares
    assert wide / narrow == pytest.approx(5, rel=1e-4)


def test_several_steps_average_their_noise():
    # One cluster at zero: the centre is noise. Averaged over four steps of a quarter of mu^2 each
    # it deviates about as much as one step with all of it; the last step alone would deviate twice
    # as much. The start is exact and radii are equal, so drift is all that differs.
    rows = np.zeros((5000, 1), dtype=np.int64)
    deviations = []
    for steps in (1, 4):
        lloyd = RadiusLloyd(bounds=(UNIT,), mu=0.05, steps=steps)
        ends = [
            lloyd.release(
                rows,
                centres=np.zeros((1, 1)),
                spreads=np.full(1, 1e10),
                noise=InsecureSeededNoise(seed),
            )[0, 0]
            for seed in range(300)
        ]
        deviations.append(np.sqrt(np.mean(np.square(ends))))
    # 300 draws: 5 standard errors of a deviation are 5 / sqrt(600) = 20 % each.
    assert deviations[1] < 1.5 * deviations[0]


# --- local/histogram_lloyd.py


def test_starting_points_by_hand():
    cells = Cells(
        points=np.array([[0.0], [2.0], [10.0], [50.0]]),
        weights=np.array([3.0, 1.0, 2.0, 0.0]),
        noisy_counts=np.array([3.0, 1.0, 2.0, -1.0]),
        spreads=np.full(4, 0.5),
    )
    centres, spreads = starting_points(cells, n_clusters=2, rng=np.random.default_rng(0))
    order = np.argsort(centres[:, 0])
    assert centres[order, 0] == pytest.approx([0.5, 10])
    # (3 * 0.25 + 1 * 2.25) / 4 + 0.5 = 1.25
    assert spreads[order] == pytest.approx([1.25, 0.5])


def test_starting_points_take_likely_cells_along_when_too_few_stand_out():
    cells = Cells(
        points=np.arange(6.0)[:, np.newaxis],
        weights=np.array([0, 0, 9.0, 0, 0, 0]),
        noisy_counts=np.array([1, -2, 9.0, 3, -5, 2]),
        spreads=np.zeros(6),
    )
    centres, spreads = starting_points(cells, n_clusters=3, rng=np.random.default_rng(0))
    assert len(np.unique(centres)) == 3
    assert np.isfinite(spreads).all()


def test_event_is_the_histogram_then_the_steps():
    algorithm = HistogramLloyd(n_clusters=4, bounds=(UNIT,) * 3, mu=0.3)
    assert algorithm.event.parts == algorithm.start.event.parts + algorithm.lloyd.event.parts
    assert len(algorithm.event.parts) == 3 + 4


def test_release_asks_for_as_many_kinds_of_noise_as_the_event_has_parts():
    algorithm = HistogramLloyd(n_clusters=2, bounds=(UNIT,) * 3, mu=0.3, steps=3)
    rows = np.random.default_rng(0).integers(-UNIT, UNIT, (2000, 3))
    noise = NoNoise()
    algorithm.release(rows, noise=noise, rng=np.random.default_rng(1))
    # Size, columns, cells; then one vector for each of two centres in each of three steps.
    assert len(noise.asked) == 3 + 2 * 3
    assert all(size == 5 for _, size in noise.asked[3:])


def test_columns_of_different_weight():
    # The second column is a hundredth as wide; clusters differ in the first one.
    rng = np.random.default_rng(2)
    first = rng.choice([-UNIT // 2, UNIT // 2], 3000)
    rows = np.column_stack([first, rng.integers(-UNIT // 100, UNIT // 100, 3000)])
    algorithm = HistogramLloyd(n_clusters=2, bounds=(UNIT, UNIT // 100), mu=0.5)
    centres = algorithm.release(rows, noise=InsecureSeededNoise(0), rng=rng)
    assert sorted(centres[:, 0] / UNIT) == pytest.approx([-0.5, 0.5], abs=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mu": 0}, "mu must be > 0"),
        ({"steps": 0}, "steps must be a whole number >= 1"),
        ({"start_share": 1}, "start_share must be between 0 and 1"),
        ({"n_clusters": 0}, "n_clusters must be a whole number >= 1"),
        ({"bounds": ()}, "bounds must be a tuple"),
    ],
)
def test_wrong_parameters_are_refused(change, message):
    with pytest.raises(ParameterError, match=message):
        HistogramLloyd(**{"n_clusters": 2, "bounds": (UNIT,), "mu": 1.0} | change)


def test_more_columns_than_an_array_has_dimensions():
    """One-hot categories count as columns, so parties with dozens of them are ordinary."""
    d = 70
    rows = np.random.default_rng(3).integers(-UNIT, UNIT, size=(400, d))
    mechanism = HistogramLloyd(n_clusters=3, bounds=(UNIT,) * d, mu=2.0)
    centres = mechanism.release(rows, noise=InsecureSeededNoise(1), rng=np.random.default_rng(2))
    assert centres.shape == (3, d)
