"""From noisy counts to bounds: by hand, on hard columns, and whatever the counts are."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.kernels.halves import from_halves, to_halves
from splitmeans.local.law import COUNT_UNITS, MIN_GAUSSIAN_SCALE
from splitmeans.party.private_bounds import count_round, count_values, learn_bounds, scale_bins
from splitmeans.party.range_search import POWERS, SCALE_BINS, Bins, RangeSearch, _edge
from splitmeans.plan.bounds_stage import (
    FOUND,
    NARROW,
    UNCLEAR,
    BoundsLaw,
    PrivateColumn,
    decode_bounds,
    encode_bounds,
)
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.table.walk.memory import MemoryRows

ANYWHERE = PrivateColumn(place=0, low=None, high=None)


def rows_of(values):
    rows = np.empty((len(values), 2), dtype=np.int64)
    to_halves(np.asarray(values, dtype=np.float64), out=rows)
    return MemoryRows(rows)


def learned(values, *, mu=0.1, seed=0, low=None, high=None):
    law = BoundsLaw(columns=(PrivateColumn(place=0, low=low, high=high),), mu=mu)
    (found,) = learn_bounds(law, rows_of(values), noise=InsecureSeededNoise(seed))
    law.check(encode_bounds((found,)))
    return found


@given(st.lists(st.floats(allow_nan=True, allow_infinity=False), min_size=1, max_size=20))
def test_halves_keep_every_bit_in_32_bits(values):
    rows = np.empty((len(values), 2), dtype=np.int64)
    to_halves(np.array(values), out=rows)
    assert rows.min() >= -(2**31)
    assert rows.max() < 2**31
    assert from_halves(rows).tobytes() == np.array(values).tobytes()


@pytest.mark.parametrize("scale", [MIN_GAUSSIAN_SCALE, COUNT_UNITS // 2, COUNT_UNITS, 2**24])
def test_every_count_has_noise_however_little_it_is(scale):
    rows, bins = rows_of([1.0, 5.0, 5.0]), (Bins(low=0.0, high=8.0, number=4),)
    drawn = InsecureSeededNoise(7).gaussian(scale, 4)
    noisy = count_round((ANYWHERE,), rows, bins, scale=scale, noise=InsecureSeededNoise(7))
    exact = count_values(rows.gather(), columns=(ANYWHERE,), bins=bins)
    assert np.array_equal(noisy, exact + drawn / COUNT_UNITS)


def test_every_count_of_every_column_has_a_draw_of_its_own():
    """Columns that share a draw would show by how much their counts differ."""
    columns = tuple(PrivateColumn(place=at, low=None, high=None) for at in (0, 2, 4))
    bins, scale = (Bins(low=0.0, high=8.0, number=4),) * 3, COUNT_UNITS
    one = rows_of([1.0, 5.0, 5.0]).gather()
    rows = MemoryRows(np.hstack([one, one, one]))
    noisy = count_round(columns, rows, bins, scale=scale, noise=InsecureSeededNoise(7))
    errors = noisy - count_values(rows.gather(), columns=columns, bins=bins)
    drawn = InsecureSeededNoise(7).gaussian(scale, 12)
    assert np.array_equal(errors.ravel(), drawn / COUNT_UNITS)


def test_bins_of_scale_by_hand():
    values = np.array([0.0, 1e-12, 1.0, 1.9, 2.0, -1.0, -3.0, 1e300, -1e300, 2.0**-30])
    middle = POWERS
    one = middle + 1 + 30
    expected = [middle, middle, one, one, one + 1, 2 * middle - one, 2 * middle - one - 1]
    expected += [SCALE_BINS - 1, 0, middle + 1]
    assert scale_bins(values).tolist() == expected
    for value, number in zip(values[2:7], expected[2:7], strict=True):
        assert _edge(number) <= value <= _edge(number + 1)


def test_a_row_is_in_one_bin_of_each_column_and_in_none_if_missing():
    columns = (ANYWHERE, PrivateColumn(place=0, low=0.0, high=1.0))
    bins = (Bins(), Bins(low=-1.0, high=1.0, number=4))
    rows = rows_of([math.nan, -5.0, 0.2, 7.0]).gather()
    counts = count_values(rows, columns=columns, bins=bins)
    assert counts.sum(axis=1).tolist() == [3, 3]
    # Within the limits first: -5 is 0, 7 is 1; outsiders would be in the outermost bins.
    assert counts[1, :4].tolist() == [0, 0, 2, 1]


HARD = {
    "even": lambda r: r.uniform(-3, 11, 20_000),
    "log-normal": lambda r: np.exp(9 + r.normal(size=20_000)),
    "far from zero": lambda r: 1e9 + 10 * r.normal(size=20_000),
    "negative and small": lambda r: -1e-5 * (1 + r.random(20_000)),
    "often zero": lambda r: np.where(r.random(20_000) < 0.8, 0, r.exponential(50, 20_000)),
    "codes": lambda r: r.integers(6, size=20_000).astype(float),
    "yes or no": lambda r: r.integers(2, size=20_000).astype(float),
    "some missing": lambda r: np.where(r.random(20_000) < 0.3, np.nan, 1e6 + r.normal(size=20_000)),
}


@pytest.mark.parametrize("draw", HARD.values(), ids=HARD)
def test_hard_columns_get_bounds_near_their_quantiles(draw):
    values = draw(np.random.default_rng(1))
    found = learned(values)
    assert found.state == FOUND
    low, high = np.nanquantile(values, [0.02, 0.98])
    # Outside the middle 90 %, and not much wider than the middle 99 %.
    inner, outer = np.nanquantile(values, [0.05, 0.95]), np.nanquantile(values, [0.005, 0.995])
    reach = outer[1] - outer[0]
    assert found.low <= inner[0] + 0.02 * reach
    assert found.high >= inner[1] - 0.02 * reach
    assert found.high - found.low <= 1.3 * reach
    assert abs(found.low - low) + abs(found.high - high) <= 0.35 * reach


OTHERS = {
    "log-normal": lambda r, n: np.exp(3 + r.normal(size=n)),
    "wide log-normal": lambda r, n: np.exp(6 + 2 * r.normal(size=n)),
    "exponential": lambda r, n: r.exponential(50, n),
    "even": lambda r, n: r.uniform(0, 10_000, n),
}


def shared_column(*, users, share, shared, draw, seed):
    """Return a column, and the values of those who do not share the one of most users."""
    rng = np.random.default_rng([seed, users])
    values, differs = draw(rng, users), rng.random(users) >= share
    return np.where(differs, values, shared), values[differs]


@pytest.mark.parametrize("draw", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("shared", [0.0, 1000.0, -5.0])
@pytest.mark.parametrize(
    ("share", "users", "mu"),
    [(0.9, 20_000, 0.2), (0.96, 50_000, 0.2), (0.98, 100_000, 0.2), (0.995, 200_000, 0.4)],
)
def test_bounds_are_of_those_who_do_not_share_the_value_of_most(share, users, mu, shared, draw):
    values, others = shared_column(users=users, share=share, shared=shared, draw=draw, seed=1)
    found = learned(values, mu=mu)
    assert found.state == FOUND
    assert found.low <= shared <= found.high
    assert np.mean((others >= found.low) & (others <= found.high)) >= 0.96
    low, high = np.quantile(others, [0.01, 0.99])
    assert found.high - found.low <= 4 * (max(high, shared) - min(low, shared))


@pytest.mark.parametrize("others", [(2.0, 3.5), (1e6,), (2.9, 2.95)])
def test_others_may_be_beside_the_value_or_far_away(others):
    rng = np.random.default_rng(0)
    values = np.where(rng.random(50_000) < 0.96, 3.0, rng.choice(others, 50_000))
    found = learned(values)
    low, high = min(*others, 3.0), max(*others, 3.0)
    assert found.state == FOUND
    assert found.low <= low + 0.02 * (high - low)
    assert found.high >= high - 0.02 * (high - low)
    assert found.high - found.low <= 40 * (high - low)


@settings(max_examples=60, deadline=None)
@given(
    share=st.floats(0.9, 0.998),
    shared=st.sampled_from([0.0, 1.0, -5.0, 1000.0, 1024.0, 0.1, 1e9, -3e-7]),
    draw=st.sampled_from(list(OTHERS.values())),
    users=st.sampled_from([2000, 10_000, 50_000]),
    # With less a plan warns: five deviations of a count are a fiftieth of the users.
    precision=st.floats(350, 5000),
    seed=st.integers(0, 2**32 - 1),
)
def test_others_are_held_or_a_word_is_said(share, shared, draw, users, precision, seed):
    values, others = shared_column(users=users, share=share, shared=shared, draw=draw, seed=seed)
    found = learned(values, mu=precision / users, seed=seed)
    if found.state == FOUND:
        # Up to what so many bins tell apart.
        assert max(found.low - shared, shared - found.high) <= 1e-6 * (found.high - found.low)
        assert np.mean((others >= found.low) & (others <= found.high)) >= 0.5


def test_a_search_for_the_others_by_hand():
    counts = np.zeros(SCALE_BINS)
    one = POWERS + 1 + 30
    counts[[POWERS, one, one + 1]] = 90, 5, 5
    others = RangeSearch(low=None, high=None).after(counts, deviation=0.01)
    # From zero to 4, and a bin on either side; who has zero is not counted any more.
    assert others.bins.low == pytest.approx(-4 / 62)
    assert others.bins.high == pytest.approx(4 + 4 / 62)
    assert (others.bins.number, others.bins.apart) == (64, (-(2**-30), 2**-30))
    assert others.values == 10
    # A fifth does not share the value: bounds are of all.
    counts[POWERS] = 40
    assert RangeSearch(low=None, high=None).after(counts, deviation=0.01).bins.apart is None


def test_who_has_the_value_is_in_no_bin():
    bins = (Bins(low=0.0, high=4.0, number=4, apart=(0.5, 1.5)),)
    rows = rows_of([0.2, 0.5, 0.6, 1.0, 1.0, 1.5, 9.0]).gather()
    counts = count_values(rows, columns=(ANYWHERE,), bins=bins)
    assert counts.tolist() == [[1, 0, 0, 1]]


def test_bounds_hold_the_value_and_nearly_all_others_by_hand():
    bins, counts = Bins(low=0.0, high=64.0, number=64), np.ones(64)
    search = RangeSearch(low=None, high=None, bins=bins, values=64.0, rounds=1, zooming=False)
    # 2 % of 64 are 1.28 bins; 1 % of the others 0.64. Wider to three digits.
    found = search.after(counts, deviation=0.001).found
    assert (found.low, found.high) == (1.2, 62.8)
    others = replace(search, apart=(-4.0, -2.0)).after(counts, deviation=0.001).found
    assert (others.low, others.high) == (-3.0, 63.4)


def test_bad_luck_degrades():
    assert learned([5.0] * 20_000).state == NARROW
    assert learned([5.0] * 20_000).low < 5 < learned([5.0] * 20_000).high
    zero = learned([0.0] * 20_000)
    assert zero.low < 0 < zero.high
    assert zero.high - zero.low < 1e-6
    # Too few others to see, or to know quantiles of.
    assert learned([0.0] * 20_000 + [7.0] * 20).state == NARROW
    assert learned([0.0] * 20_000 + [7.0] * 300).state == UNCLEAR
    assert learned([0.0] * 20_000 + [7.0] * 300).high > 6.9
    assert learned([1.0, 2.0, 3.0]).state == UNCLEAR
    assert learned([math.nan] * 1000).state == UNCLEAR
    two_scales = learned([1e-3] * 10_000 + [1e9 + 7] * 10_000)
    assert two_scales.low <= 1e-3
    assert two_scales.high > 9e8


def test_limits_are_kept():
    values = np.random.default_rng(0).normal(50, 10, 20_000)
    within = learned(values, low=40, high=60)
    assert (within.low, within.high) == (40, 60)
    beyond = learned(values, low=1000, high=2000)
    assert 1000 <= beyond.low < beyond.high <= 2000
    assert beyond.high - beyond.low < 10
    at_limit = learned(np.where(values < 65, 0, values), mu=0.5, low=45)
    assert at_limit.low == 45
    assert 70 < at_limit.high < 100
    one_sided = learned(values, low=45)
    assert one_sided.low == 45
    assert one_sided.high > 60


@settings(max_examples=150, deadline=None)
@given(
    values=st.lists(
        st.one_of(
            st.floats(allow_nan=True, allow_infinity=False),
            st.sampled_from([0.0, -0.0, 1e308, -1e308, 5e-324, 1e9, 2.0**50, -(2.0**-30)]),
        ),
        max_size=8,
    ),
    times=st.sampled_from([1, 1000]),
    mu=st.sampled_from([0.001, 0.3, 20.0]),
    limits=st.sampled_from([(None, None), (0.0, None), (None, -3.0), (-1e15, 1e15), (5, 5.5)]),
    seed=st.integers(0, 2**32 - 1),
)
def test_whatever_the_values_there_are_two_finite_bounds(values, times, mu, limits, seed):
    found = learned(values * times or [0.0], mu=mu, seed=seed, low=limits[0], high=limits[1])
    assert math.isfinite(found.high - found.low)
    assert found.low < found.high
    assert decode_bounds(encode_bounds((found,))) == (found,)


def test_rounds_that_are_not_needed_make_the_last_counts_more_precise():
    search = RangeSearch(low=None, high=None, bins=Bins(low=0.0, high=64.0, number=64), values=64.0)
    counts = np.ones(64)
    after = search.after(counts + 3, deviation=1.0).after(counts, deviation=0.5)
    # Weights 1 and 4: the mean is off by 3 / 5.
    np.testing.assert_allclose(after.counts / after.precision, counts + 0.6)
    assert after.precision == pytest.approx(5.0)


def test_the_noise_of_all_rounds_adds_up_to_the_law():
    law = BoundsLaw(columns=(ANYWHERE,) * 3, mu=0.2)
    parts = law.event.parts
    mu = math.sqrt(sum(part.noise_multiplier**-2 for part in parts))
    assert mu <= 0.2
    assert mu == pytest.approx(0.2, rel=1e-6)
    # Each of three columns moves by one user: sqrt(3), and sqrt(6) if values are replaced.
    assert parts[0].realised.sensitivity == math.ceil(math.sqrt(3) * COUNT_UNITS)
    replaced = law.replaced_event.parts
    assert replaced[0].noise_multiplier == pytest.approx(parts[0].noise_multiplier / math.sqrt(2))
