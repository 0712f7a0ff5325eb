"""Whether points lie in groups: made-up points with and without, numbers and categories."""

import numpy as np
import pytest

from splitmeans.local.groups import _without_groups, in_more_groups
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.local.laws.guided_lloyd import GuidedLloydLaw
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study.coding import Coding

UNIT = 2**20
PLAIN = Coding(bounds=(UNIT,) * 3, levels=(0,) * 3)


def in_groups(n, d, *, groups=20, rng):
    centres = rng.uniform(-0.8, 0.8, size=(groups, d))
    rows = centres[rng.integers(groups, size=n)] + rng.normal(0, 0.05, size=(n, d))
    return np.rint(np.clip(rows, -1, 1) * UNIT).astype(np.int64)


def without(n, d, *, rng):
    """Correlated columns, one of them skew."""
    rows = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    rows[:, 0] = np.exp(rows[:, 0] / 2)
    rows /= np.abs(rows).max(axis=0)
    return np.rint(rows * UNIT).astype(np.int64)


@pytest.mark.parametrize("seed", range(4))
def test_groups_are_told_from_none(seed):
    rng = np.random.default_rng(seed)
    assert in_more_groups(in_groups(4096, 3, rng=rng), coding=PLAIN, fewer=11, more=22, rng=rng)
    assert not in_more_groups(without(4096, 3, rng=rng), coding=PLAIN, fewer=11, more=22, rng=rng)


def test_one_column_and_one_place_show_none():
    rng = np.random.default_rng(0)
    one = Coding(bounds=(UNIT,), levels=(0,))
    assert not in_more_groups(in_groups(4096, 1, rng=rng), coding=one, fewer=11, more=22, rng=rng)
    same = np.zeros((4096, 3), dtype=np.int64)
    assert not in_more_groups(same, coding=PLAIN, fewer=11, more=22, rng=rng)


def test_categories_that_go_with_numbers_are_groups():
    rng = np.random.default_rng(1)
    coding = Coding(bounds=(UNIT, UNIT, UNIT, UNIT), levels=(0, 3))
    level = rng.integers(3, size=4096)
    number = np.rint(UNIT * (0.7 * (level - 1) + rng.normal(0, 0.02, size=4096))).astype(np.int64)
    number = np.clip(number, -UNIT, UNIT)
    codes = np.stack([number, level], axis=1)
    assert in_more_groups(coding.features(codes), coding=coding, fewer=2, more=5, rng=rng)
    mixed = np.stack([rng.permutation(number), level], axis=1)
    assert not in_more_groups(coding.features(mixed), coding=coding, fewer=2, more=5, rng=rng)


def test_what_is_compared_with_has_the_same_columns():
    rng = np.random.default_rng(2)
    codes = in_groups(500, 3, rng=rng)
    made = _without_groups(codes, rng=rng)
    assert np.array_equal(np.sort(made, axis=0), np.sort(codes, axis=0))


@pytest.mark.parametrize(("draw", "expected"), [(in_groups, 20), (without, 10)])
def test_a_release_has_fewer_centres_where_no_groups_show(draw, expected):
    rng = np.random.default_rng(3)
    rows = draw(20_000, 8, rng=rng)
    mechanism = GuidedLloyd(n_clusters=20, bounds=(UNIT,) * 8, mu=0.5)
    found = mechanism.release(rows, noise=InsecureSeededNoise(0), rng=rng, without_groups=10)
    assert len(found.centres) == expected
    assert mechanism.event == GuidedLloydLaw(n_clusters=10, bounds=(UNIT,) * 8, mu=0.5).event
