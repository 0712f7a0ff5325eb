"""Points that agree with the answers of all rounds: by hand, and better than the last round."""

import dataclasses

import numpy as np
import pytest

from splitmeans.kernels.tilting import tilted_sums
from splitmeans.local import agreement
from splitmeans.local.agreement import Asked, agreeing_shares
from splitmeans.local.correction import Answer
from splitmeans.study.coding import Coding

_BOUND = 2**20


def _coding(d):
    return Coding(bounds=(_BOUND,) * d, levels=(0,) * d)


def _asked(rows, centres, *, radius, deviation, rng=None, squares_together=False):
    """Return what rows answer about centres, with noise of one deviation if `rng` is given."""
    nearest = np.square(rows[:, np.newaxis] - centres).sum(axis=2).argmin(axis=1)
    offsets = rows - centres[nearest]
    lengths = np.sqrt(np.square(offsets).sum(axis=1))
    clipped = offsets * np.minimum(1.0, radius / np.maximum(lengths, 1e-9))[:, np.newaxis]
    k = len(centres)
    counts = np.bincount(nearest, minlength=k).astype(float)
    sums = np.stack([clipped[nearest == j].sum(axis=0) for j in range(k)])
    squares = np.stack([np.square(clipped[nearest == j]).sum(axis=0) for j in range(k)])
    if squares_together:
        squares = squares.sum(axis=1, keepdims=True)
    noise = (
        (lambda shape: np.zeros(shape)) if rng is None else (lambda shape: rng.normal(size=shape))
    )
    of_counts, of_sums, of_squares = (
        deviation * 8 / 3,
        deviation * radius,
        deviation * 2 * radius**2,
    )
    return Asked(
        centres=centres,
        answer=Answer(
            radii=np.full(k, float(radius)),
            counts=counts + of_counts * noise(k),
            count_deviations=np.full(k, of_counts),
            offsets=sums + of_sums * noise(sums.shape),
            offset_deviations=np.full(k, of_sums),
            squares=squares + of_squares * noise(squares.shape),
            square_deviations=np.full(k, of_squares),
        ),
    )


def _agreed(points, rounds, *, size, weights=None):
    d = points.shape[1]
    return agreeing_shares(
        points,
        np.ones(len(points)) if weights is None else weights,
        rounds,
        coding=_coding(d),
        present=np.ones(d),
        size=size,
    )


def test_counts_of_two_places_by_hand():
    # 300 rows, 200 of them at one place. Weights before are worth 300 rows, so shares q and 1 - q
    # are where the slopes of both, over the noise, are those of the relative entropy:
    # log(q / (1 - q)) = [(200 - 300 q) - (100 - 300 (1 - q))] / variance.
    rows = np.repeat([[-1000.0], [1000.0]], [200, 100], axis=0)
    points = np.repeat([[-1000.0], [1000.0]], 50, axis=0)
    asked = _asked(rows, np.array([[-1000.0], [1000.0]]), radius=10.0, deviation=10.0)
    shares = _agreed(points, [asked], size=300.0)
    q = shares[:50].sum()
    variances = np.hypot(80 / 3, 0.1 * np.array([200.0, 100.0])) ** 2
    slopes = (200 - 300 * q) / variances[0] - (100 - 300 * (1 - q)) / variances[1]
    assert np.log(q / (1 - q)) == pytest.approx(slopes, abs=0.02)
    assert 0.5 < q < 2 / 3
    np.testing.assert_allclose(shares[:50], shares[0])


@pytest.mark.parametrize("squares_together", [False, True])
def test_points_that_answer_as_the_rows_do_keep_their_weights(squares_together):
    rng = np.random.default_rng(1)
    rows = rng.normal(scale=1e5, size=(3_000, 2))
    centres = np.array([[-1e5, 0.0], [1e5, 0.0]])
    asked = _asked(rows, centres, radius=1.5e5, deviation=50.0, squares_together=squares_together)
    shares = _agreed(rows, [asked], size=3_000.0)
    np.testing.assert_allclose(shares, 1 / 3_000, rtol=1e-6)


def _mean_errors(seed, *, n_rounds):
    """Squared errors of the mean of all rows by the last round alone, and by all of them."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(scale=1e5, size=(20_000, 2)) + np.array([2e4, -1e4])
    points = rng.normal(scale=1e5, size=(4_000, 2))
    rounds = [
        _asked(rows, rng.normal(scale=1e5, size=(k, 2)), radius=1.5e5, deviation=300.0, rng=rng)
        for k in (4, 6, 6)[:n_rounds]
    ]
    found = [_agreed(points, own, size=20_000.0) @ points for own in (rounds[-1:], rounds)]
    return [float(np.square(own - rows.mean(axis=0)).sum()) for own in found]


def test_all_rounds_tell_a_mean_better_than_the_last():
    errors = np.array([_mean_errors(seed, n_rounds=3) for seed in range(20)])
    # Three rounds have a third of the variance; over 20 draws of two coordinates each the ratio is
    # above 0.8 with a probability below 0.1 %.
    assert errors[:, 1].mean() < 0.8 * errors[:, 0].mean()


def test_a_point_without_weight_stays_without():
    rng = np.random.default_rng(2)
    points = rng.normal(scale=1e5, size=(100, 1))
    weights = np.where(np.arange(100) < 10, 0.0, 1.0)
    asked = _asked(points[:50], np.zeros((1, 1)), radius=1e5, deviation=5.0, rng=rng)
    shares = _agreed(points, [asked], size=50.0, weights=weights)
    assert shares[:10].sum() < 1e-50
    assert shares.sum() == pytest.approx(1.0)


def test_next_to_no_noise_changes_nothing(monkeypatch):
    rng = np.random.default_rng(3)
    rows = rng.normal(scale=1e5, size=(5_000, 1)) + 5e4
    points = rng.normal(scale=1e5, size=(1_000, 1))
    asked = _asked(rows, np.zeros((1, 1)), radius=1e5, deviation=0.1)
    np.testing.assert_allclose(_agreed(points, [asked], size=5_000.0), 1 / 1_000)
    monkeypatch.setattr(agreement, "_PRECISE", 0.0)
    assert np.ptp(_agreed(points, [asked], size=5_000.0)) > 1e-4


def _mean_with_gaps(present, *, told):
    """Return the points' mean in deviations from what it was, where half of the rows have gaps."""
    rng = np.random.default_rng(4)
    points = rng.normal(scale=1e5, size=(4_000, 1)) + 5e4
    asked = _asked(points[:2_000], np.zeros((1, 1)), radius=4e5, deviation=10.0)
    answer = dataclasses.replace(asked.answer, counts=np.array([4_000.0]))
    shares = agreeing_shares(
        points,
        np.ones(4_000),
        [Asked(centres=asked.centres, answer=answer)],
        coding=_coding(1),
        present=np.array([present if told else 1.0]),
        size=4_000.0,
    )
    after = float(shares @ points[:, 0])
    spread = float(np.sqrt(shares @ np.square(points[:, 0] - after)))
    return (after - points.mean()) / 1e5, spread / points.std()


def test_missing_values_are_no_reason_to_move(monkeypatch):
    monkeypatch.setattr(agreement, "_PRECISE", 0.0)
    monkeypatch.setattr(agreement, "_SHAPE", 0.01)
    moved, spread = _mean_with_gaps(0.5, told=True)
    assert abs(moved) < 0.01
    assert spread == pytest.approx(1.0, abs=0.01)
    # Half of the sum is half of the mean for who does not know of the gaps.
    moved, spread = _mean_with_gaps(0.5, told=False)
    assert moved < -0.15
    assert spread < 0.98


def test_next_to_no_noise_in_a_large_table_still_has_units():
    """Beside so many rows the second derivatives are not positive in floats."""
    rng = np.random.default_rng(6)
    features = rng.normal(scale=1e12, size=(400, 1, 3)) + 1e14
    features[:, 0, 2] = features[:, 0, 1]
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(np.eye(3) + 1e3 * np.cov(features[:, 0].T, bias=True))
    units = agreement._units(
        features,
        np.zeros((400, 1), dtype=np.int64),
        np.full(400, 1 / 400),
        n_groups=1,
        worth=1e3,
    )
    assert np.isfinite(units).all()
    assert (np.abs(units) <= 1).all()


def _with_levels(asked, *, levels):
    """Return the same round with a column of levels before the numbers, wildly answered."""
    answer, k = asked.answer, len(asked.centres)
    wild = np.tile([1e9, -1e9, 3e8][:levels], (k, 1))
    return Asked(
        centres=np.hstack([np.zeros((k, levels)), asked.centres]),
        answer=dataclasses.replace(answer, offsets=np.hstack([wild, answer.offsets])),
    )


def test_columns_of_levels_go_along_with_numbers():
    rng = np.random.default_rng(5)
    rows = rng.normal(scale=1e5, size=(2_000, 1)) + 3e4
    points = rng.normal(scale=1e5, size=(1_000, 1))
    asked = _asked(rows, np.array([[-1e5], [1e5]]), radius=2e6, deviation=30.0, rng=rng)
    alone = _agreed(points, [asked], size=2_000.0)
    # No level of a point is far from 0, and no row is clipped, so numbers are as they were but for
    # what answers are taken to be off by, which shrinks with the number of features.
    beside = agreeing_shares(
        np.hstack([np.zeros((1_000, 3)), points]),
        np.ones(1_000),
        [_with_levels(asked, levels=3)],
        coding=Coding(bounds=(_BOUND,) * 4, levels=(3, 0)),
        present=np.ones(4),
        size=2_000.0,
    )
    np.testing.assert_allclose(beside, alone, rtol=0.05)


def test_levels_alone_follow_the_counts():
    points = np.repeat(np.eye(2) * 1e5, 50, axis=0)
    counts = np.array([150.0, 50.0])
    asked = Asked(
        centres=np.eye(2) * 1e5,
        answer=Answer(
            radii=np.full(2, 1e5),
            counts=counts,
            count_deviations=np.full(2, 5.0),
            offsets=np.zeros((2, 2)),
            offset_deviations=np.full(2, 1e6),
            squares=np.zeros((2, 0)),
            square_deviations=np.full(2, 1e11),
        ),
    )
    shares = agreeing_shares(
        points,
        np.ones(100),
        [asked],
        coding=Coding(bounds=(_BOUND,) * 2, levels=(2,)),
        present=np.ones(2),
        size=200.0,
    )
    assert 0.6 < shares[:50].sum() < 0.75


def test_what_a_point_adds_by_hand():
    # Of a point at 30 from a centre with radius 60, half of whose rows have a value: count 1, sum
    # 15 and squares 450, each over its deviation; one at 120 is clipped to 60.
    answer = Answer(
        radii=np.array([60.0]),
        counts=np.array([0.0]),
        count_deviations=np.array([2.0]),
        offsets=np.zeros((1, 1)),
        offset_deviations=np.array([5.0]),
        squares=np.zeros((1, 1)),
        square_deviations=np.array([90.0]),
    )
    found = agreement._features(
        np.array([[40.0], [130.0]]),
        Asked(centres=np.array([[10.0]]), answer=answer),
        np.zeros(2, dtype=np.int64),
        coding=_coding(1),
        present=np.array([0.5]),
    )
    np.testing.assert_allclose(found, [[0.5, 3.0, 5.0], [0.5, 6.0, 20.0]])


def test_the_kernel_is_given_the_layouts_that_it_was_compiled_for(monkeypatch):
    """Another would be compiled anew, at a party whose wheel brings the code."""
    layouts = []

    def watched(*arrays):
        layouts.extend(array.flags.c_contiguous for array in arrays)
        return tilted_sums(*arrays)

    monkeypatch.setattr(agreement, "tilted_sums", watched)
    rng = np.random.default_rng(7)
    points = rng.normal(scale=1e5, size=(300, 2))
    centres = np.array([[-1e5, 0.0], [1e5, 0.0]])
    asked = _asked(points, centres, radius=1.5e5, deviation=9.0, rng=rng)
    _agreed(points, [asked, asked], size=300.0)
    assert layouts
    assert all(layouts)
