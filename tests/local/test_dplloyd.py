"""DPLloyd: iterations, budget, starting centres and updates, by hand."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.local.dplloyd import DpLloyd, pack_spheres
from splitmeans.privacy.events import LaplaceEvent

UNIT = 2**20


@dataclass
class ScriptedNoise:
    """Hands out the given numbers, then zeros, and notes what was asked for."""

    script: list[int] = field(default_factory=list)
    asked: list[tuple[float, int]] = field(default_factory=list)
    secure: bool = False

    def laplace(self, scale: float, size: int):
        self.asked.append((scale, size))
        drawn = [self.script.pop(0) if self.script else 0 for _ in range(size)]
        return np.array(drawn, dtype=np.int64)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        # d = 2, k = 2: (4 * 2 * 0.225^2)^(1/3) = 0.7399, so the least useful epsilon is
        # sqrt(500 * 8 * 2.7399^3) / N = 286.8 / N, and 0.98 N / 286.8 iterations are affordable.
        (-3, 2),
        (0, 2),
        (100, 2),
        (877, 2),  # 2.997
        (879, 3),  # 3.003
        (1464, 5),  # 5.002
        (2050, 7),
        (10**9, 7),
    ],
)
def test_number_of_iterations(size, expected):
    assert DpLloyd(n_clusters=2, bounds=(UNIT, UNIT), epsilon=1.0).iterations(size) == expected


def test_scales_by_hand():
    lloyd = DpLloyd(n_clusters=2, bounds=(UNIT, UNIT // 2), epsilon=1.0)
    assert lloyd.size_scale == pytest.approx(50.0, abs=2 / 1024)
    count_scale, sum_scales = lloyd.iteration_scales(4)
    # One of 4 iterations has 0.245. Weights are 0.7399 (counts), 1, 1: a column gets
    # 0.245 / 2.7399 = 0.089419, counts get 0.066163.
    weight = (8 * 0.225**2) ** (1 / 3)
    assert count_scale == pytest.approx((2 + weight) / (0.245 * weight), abs=1 / 1024)
    assert sum_scales[0] == pytest.approx(UNIT * (2 + weight) / 0.245, abs=1.1)
    assert sum_scales[1] == pytest.approx(UNIT / 2 * (2 + weight) / 0.245, abs=1.1)
    assert all(isinstance(scale, int) for scale in sum_scales)


@given(
    epsilon=st.floats(0.001, 50),
    bounds=st.lists(st.integers(1, 2**21), min_size=1, max_size=20),
    n_clusters=st.integers(1, 30),
)
@settings(max_examples=50, deadline=None)
def test_every_number_of_iterations_stays_within_epsilon(epsilon, bounds, n_clusters):
    lloyd = DpLloyd(n_clusters=n_clusters, bounds=tuple(bounds), epsilon=epsilon)
    size, iterations_event = lloyd.event.parts
    assert size == LaplaceEvent(noise_multiplier=lloyd.size_scale, single_count=True)
    stated = iterations_event.epsilon
    assert 1 / lloyd.size_scale + stated <= epsilon
    for iterations in range(2, 8):
        count_scale, sum_scales = lloyd.iteration_scales(iterations)
        per_iteration = [1 / count_scale]
        per_iteration += [b / scale for b, scale in zip(bounds, sum_scales, strict=True)]
        assert math.fsum(per_iteration * iterations) <= stated


def test_release_by_hand_without_noise():
    # Two groups on a line. From any packed start each centre ends on one group's mean.
    rows = np.array([[-900]] * 300 + [[-700]] * 100 + [[800]] * 200)
    lloyd = DpLloyd(n_clusters=2, bounds=(1000,), epsilon=8.0)
    centres = lloyd.release(rows, noise=ScriptedNoise(), rng=np.random.default_rng(0)).centres
    assert sorted(centres.ravel().tolist()) == [-850, 800]


def test_release_asks_for_size_then_counts_and_one_draw_per_column():
    lloyd = DpLloyd(n_clusters=3, bounds=(UNIT, UNIT // 4), epsilon=1.0)
    noise = ScriptedNoise()
    rows = np.random.default_rng(0).integers(-1000, 1000, (50, 2))
    lloyd.release(rows, noise=noise, rng=np.random.default_rng(0))
    count_scale, sum_scales = lloyd.iteration_scales(2)
    one_iteration = [(count_scale, 3), (sum_scales[0], 3), (sum_scales[1], 3)]
    assert noise.asked == [(lloyd.size_scale, 1), *one_iteration * 2]


def test_a_cluster_with_a_tiny_noisy_count_keeps_its_centre():
    lloyd = DpLloyd(n_clusters=1, bounds=(UNIT,), epsilon=1.0)
    start = pack_spheres(1, (UNIT,), rng=np.random.default_rng(4))
    rows = np.full((1000, 1), 12345)
    # Noise cancels the count in both iterations that a noisy size of 1 affords.
    script = [-999, -1000, 0, -1000, 0]
    centres = lloyd.release(rows, noise=ScriptedNoise(script), rng=np.random.default_rng(4)).centres
    assert centres.tolist() == np.rint(start).astype(int).tolist()


def test_noisy_means_are_clipped_to_the_bounds():
    lloyd = DpLloyd(n_clusters=1, bounds=(UNIT,), epsilon=1.0)
    script = [-999, 0, 10**15, 0, 10**15]
    rows = np.zeros((1000, 1), dtype=np.int64)
    centres = lloyd.release(rows, noise=ScriptedNoise(script), rng=np.random.default_rng(4)).centres
    assert centres.tolist() == [[UNIT]]


def test_packed_centres_are_apart_and_away_from_the_walls():
    centres = pack_spheres(4, (1000, 1000), rng=np.random.default_rng(0))
    gaps = np.linalg.norm(centres[:, None] - centres[None], axis=2)[np.triu_indices(4, 1)]
    # Four circles of radius 500 fit exactly; random packing reaches over half of that.
    assert gaps.min() > 500
    assert np.abs(centres).max() < 1000 - 250


def test_packing_one_centre_is_near_the_middle():
    # One sphere fits at every radius, so the search ends where the box has no room left.
    centres = pack_spheres(1, (1000, 10), rng=np.random.default_rng(0))
    assert np.abs(centres).max() < 10


def test_packing_spreads_over_a_box_with_one_narrow_column():
    centres = pack_spheres(3, (1000, 1), rng=np.random.default_rng(0))
    assert np.diff(np.sort(centres[:, 0])).min() > 200
    assert np.abs(centres[:, 1]).max() <= 1


def test_packing_is_a_function_of_the_generator_alone():
    first, second = (pack_spheres(5, (9, 9, 9), rng=np.random.default_rng(8)) for _ in range(2))
    assert (first == second).all()


def test_wrong_parameters_are_refused():
    with pytest.raises(ParameterError, match="epsilon must be > 0"):
        DpLloyd(n_clusters=2, bounds=(1,), epsilon=-1)
    with pytest.raises(ParameterError, match="n_clusters must be a whole number >= 1"):
        DpLloyd(n_clusters=0, bounds=(1,), epsilon=1)
