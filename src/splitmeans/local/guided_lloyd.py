"""Guided-lloyd: k-means on private synthetic points, corrected by noisy sums over the rows.

    survey   noisy size, histograms of all columns, how columns go together    (`survey.py`)
    points   synthetic points from it, as many as one likes: they cost nothing  (`synthetic.py`)
    rounds   k-means on the points says where to look; for each of its clusters a round asks the
             rows for their number, their mean and their spread, and the points of the cluster are
             moved to agree, as far as the answer is more than noise            (`correction.py`)

Lloyd's steps on noisy sums are only as good as where they start. Here the start is a k-means that
may try as often as it likes, and what a round learns stays in the points, whatever the clusters of
the next round are. Rounds begin with a few large clusters, which little budget places well, and go
on with more than are released, which find groups of rows that as many would miss.

Constraining sums to a radius around a centre is the idea of Diaa, Humphries and Kerschbaum,
"FastLloyd" (2024); here rows are clipped rather than centres, and radii follow the points.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.assign import clipped_sums
from splitmeans.kernels.coded_rows import coded_sums
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.kmeans.nearest import nearest_centres
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.local.agreement import Asked, agreeing_shares
from splitmeans.local.correction import Answer, Cluster, corrected
from splitmeans.local.groups import lie_in_groups
from splitmeans.local.law import l2_sensitivity, mu_scale, to_grid
from splitmeans.local.laws.guided_lloyd import (
    FINE_UNITS,
    RADIUS_FACTOR,
    GuidedLloydLaw,
    sensitivity,
)
from splitmeans.local.survey import ColumnSurvey, Survey
from splitmeans.local.synthetic import draw_points
from splitmeans.privacy.noise import NoiseSource
from splitmeans.study.coding import Coding
from splitmeans.study.methods import N_POINTS
from splitmeans.table.walk.interface import RawRows
from splitmeans.table.walk.memory import as_rows

# Radii are rounded up to so many values between one and its double: exact noise of a new scale
# takes milliseconds to prepare, so clusters of about the same size share one.
_RADII_TO_DOUBLE = 8

# Share of the points before the first round that come from an earlier result, where there is one.
# The rest is the survey's: a segment that is new must have a place to grow from.
_OF_START = 0.75

# Starts of k-means in a round, of which the best is taken. Stuck centres are moved once there are
# k' of them, so with many clusters one start ends with as little loss as three (1.0002 times it on
# 30 sets of synthetic points of letter, mixed Gaussian and 80 columns); few clusters take little
# time.
_STARTS, _MANY_CLUSTERS = 3, 12

# Points that are drawn for each that rounds work with.
_DRAWN = 4
# Part of the chance of a point that follows how far it is from the mean of all.
_OF_DISTANCE = 0.5

# A cluster of fewer rows than so many deviations of the noise on their number is not released:
# where it is, and whether it is there, is hardly known, and its cells are noise far from everybody.
_FEWEST_ROWS = 1.0
# So many stay in any case: of few clusters each may be a segment, however noisy.
_FEWEST_CLUSTERS = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalRelease:
    """What a party's local clustering releases, on the grid and inside the bounds.

    Attributes:
        centres: The local centres, shape (k', d).
        points: Synthetic points that lie as the rows do, each standing for equally many, shape
            (points, d).
        size: The number of rows, as released.
    """

    centres: IntArray
    points: IntArray
    size: float


class GuidedLloyd(GuidedLloydLaw):
    """The algorithm; for what it costs see the law."""

    @classmethod
    def of(cls, law: GuidedLloydLaw) -> "GuidedLloyd":
        """Return the algorithm that does what a law says."""
        return cls(n_clusters=law.n_clusters, bounds=law.bounds, mu=law.mu, levels=law.levels)

    @property
    def survey(self) -> ColumnSurvey:
        """The first part."""
        law = super().survey
        return ColumnSurvey(bounds=law.bounds, mu=law.mu, levels=law.levels)

    @property
    def coding(self) -> Coding:
        """How rows are coded."""
        return Coding(bounds=self.bounds, levels=self.levels or (0,) * len(self.bounds))

    def release(
        self,
        raw_rows: IntArray | RawRows,
        *,
        noise: NoiseSource,
        rng: np.random.Generator,
        start: IntArray | None = None,
        without_groups: int | None = None,
    ) -> LocalRelease:
        """Return centres and synthetic points.

        `raw_rows` are the party's rows on the grid, n of them with a column each, in an array of
        int64 or in a table that is walked; `noise` hides the users; `rng` starts the algorithm and
        is independent of the rows.

        `start` are points that were published before, as many as there are synthetic ones: three
        quarters of what the rounds begin with come from them. They are public, so the cost is the
        same with and without.

        `without_groups` is the number of centres in the place of k' if the points before the last
        round show no groups of rows: what was released decides, and a round of other clusters costs
        the same.
        """
        rows = as_rows(raw_rows)
        survey = self.survey.release(rows, noise=noise)
        points, weights = self._first_points(survey, start, rng=rng)
        coding = self.coding
        present = coding.of_features(survey.present)
        centres = np.zeros((0, len(self.bounds)))
        rounds = list(zip(self.round_clusters, self.round_mus, strict=True))
        asked: list[Asked] = []
        for place, (wanted, mu) in enumerate(rounds):
            n_clusters = wanted
            if without_groups is not None and place == len(rounds) - 1:
                n_clusters = self._last_clusters(points, weights, without_groups, rng=rng)
            found = weighted_kmeans(
                points,
                weights,
                n_clusters=n_clusters,
                rng=rng,
                starts=1 if n_clusters >= _MANY_CLUSTERS else _STARTS,
                # As many clusters as before: where they were corrected to is the best start.
                begin=centres if len(centres) == n_clusters else None,
                # The first clusters only show where points are wrong by much.
                move_stuck=wanted >= self.n_clusters,
            )
            if place == len(rounds) - 1:
                found = self._without_small_ones(found, points, weights, rng=rng)
            centres = to_grid(found, self.bounds).astype(np.float64)
            clusters = Cluster.of_points(points, weights, centres=centres)
            radii = self._radii(clusters.spreads)
            answer = self._ask(rows, centres, radii, mu=mu, noise=noise)
            asked.append(Asked(centres=centres, answer=answer))
            points, weighted, centres = corrected(
                points,
                weights,
                clusters,
                answer,
                coding=coding,
                present=present,
                size=survey.size,
                rng=rng,
            )
            # One column is known by its histogram, which its points follow.
            if self.survey.n_columns > 1:
                weighted = agreeing_shares(
                    points, weighted, asked, coding=coding, present=present, size=survey.size
                )
            weights = weighted * (survey.size / weighted.sum())
            centres = Cluster.of_points(points, weights, centres=centres).means
        points = points[draw_evenly(weights, len(points), rng=rng)]
        # As many as agreed: of centres at one place the first has all rows.
        repeated = np.repeat(centres[-1:], n_clusters - len(centres), axis=0)
        centres = np.concatenate([centres, repeated])
        return LocalRelease(
            centres=to_grid(centres, self.bounds),
            points=to_grid(points, self.bounds),
            size=survey.size,
        )

    def _first_points(
        self, survey: Survey, start: IntArray | None, *, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return the points before the first round, and how many rows each stands for."""
        points = draw_points(survey, bounds=self.bounds, n_points=_DRAWN * N_POINTS, rng=rng)
        if start is not None:
            points = _blended(points, start, rng=rng)
        points, shares = _more_of_far_ones(points, N_POINTS, rng=rng)
        return points, survey.size * shares

    def _without_small_ones(
        self,
        centres: FloatArray,
        points: FloatArray,
        weights: FloatArray,
        *,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Return those centres whose clusters noise does not hide, where k-means moves them."""
        while len(centres) > _FEWEST_CLUSTERS:
            nearest = nearest_centres(points, centres)
            rows = np.bincount(nearest, weights=weights, minlength=len(centres))
            if rows.min() >= _FEWEST_ROWS * self.count_deviation:
                break
            centres = np.delete(centres, rows.argmin(), axis=0)
        return weighted_kmeans(points, weights, n_clusters=len(centres), rng=rng, begin=centres)

    def _last_clusters(
        self,
        points: FloatArray,
        weights: FloatArray,
        without_groups: int,
        *,
        rng: np.random.Generator,
    ) -> int:
        """Return how many clusters the last round has: k', or as many as told if no groups show."""
        even = points[draw_evenly(weights, len(points), rng=rng)]
        on_grid = to_grid(even, self.bounds)
        shown = lie_in_groups(on_grid, coding=self.coding, n_clusters=self.n_clusters, rng=rng)
        return self.n_clusters if shown else without_groups

    def noisy_sums(
        self, rows: RawRows, centres: IntArray, radii: IntArray, *, mu: float, noise: NoiseSource
    ) -> IntArray:
        """Return all that a round releases, shape (k, d + 1 + n_squares), in 1/256 grid units.

        For each centre: offsets, count and squares; see the law for their weights.
        """
        limits = np.array(self.bounds, dtype=np.int64)
        part = partial(clipped_sums, limits=limits, centres=centres, radii=radii)
        if self.levels:
            part = partial(
                coded_sums, limits=limits, centres=centres, radii=radii, levels=self.levels
            )
        raw = rows.total(part)
        raw[:, len(self.bounds)] *= _count_weight(radii)
        raw = _squares_together(raw, d=len(self.bounds), n_squares=self.n_squares)
        noisy = np.asarray(raw * FINE_UNITS)
        for radius in np.unique(radii):
            alike = np.flatnonzero(radii == radius)
            drawn = noise.gaussian(_scale(radius, mu=mu), len(alike) * raw.shape[1])
            noisy[alike] += drawn.reshape(len(alike), -1)
        return noisy

    def _ask(
        self, rows: RawRows, centres: FloatArray, radii: IntArray, *, mu: float, noise: NoiseSource
    ) -> Answer:
        d = len(self.bounds)
        whole_centres = centres.astype(np.int64)
        noisy = self.noisy_sums(rows, whole_centres, radii, mu=mu, noise=noise) / FINE_UNITS
        deviations = np.array([_scale(radius, mu=mu) for radius in radii]) / FINE_UNITS
        count_weights = _count_weight(radii)
        twice = 2.0 * radii
        return Answer(
            radii=radii.astype(np.float64),
            counts=noisy[:, d] / count_weights,
            count_deviations=deviations / count_weights,
            offsets=noisy[:, :d],
            offset_deviations=deviations,
            squares=noisy[:, d + 1 :] * twice[:, np.newaxis],
            square_deviations=deviations * twice,
        )

    def _radii(self, spreads: FloatArray) -> IntArray:
        wanted = RADIUS_FACTOR * np.sqrt(np.maximum(spreads, 0.0))
        # The lower limit rules, also where the whole box is smaller: the event rests on it.
        largest = max(l2_sensitivity(self.bounds), self.smallest_radius)
        steps = np.ceil(_RADII_TO_DOUBLE * np.log2(np.maximum(wanted / self.smallest_radius, 1.0)))
        rounded = self.smallest_radius * np.exp2(steps / _RADII_TO_DOUBLE)
        return np.asarray(np.rint(np.minimum(rounded, largest)), dtype=np.int64)


def _more_of_far_ones(
    points: FloatArray, n_points: int, *, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Choose points, more of those far from the mean; return them and the shares they stand for.

    Where few rows are far out, the loss is with them, and points that stand for equally many rows
    would be too few there to tell one place from another. With chances half in proportion to the
    squared distance any centres have about the same loss on those chosen as on all (a lightweight
    coreset: Bachem, Lucic and Krause, 2018).
    """
    far = np.square(points - points.mean(axis=0)).sum(axis=1)
    even = 1 / len(points)
    chances = (1 - _OF_DISTANCE) * even + _OF_DISTANCE * far / max(float(far.sum()), even)
    chosen = draw_evenly(chances, n_points, rng=rng)
    shares = 1 / chances[chosen]
    return points[chosen], shares / shares.sum()


def _blended(points: FloatArray, start: IntArray, *, rng: np.random.Generator) -> FloatArray:
    """Put points that were published before in the place of most of the survey's."""
    kept = rng.permutation(len(points))[: round(_OF_START * len(points))]
    blended = points.copy()
    blended[kept] = start[rng.integers(len(start), size=len(kept))]
    return blended


def _scale(radius: int, *, mu: float) -> int:
    """Return the scale of the noise at a centre of this radius, in 1/256 grid units."""
    return mu_scale(sensitivity(int(radius)), mu=mu)


def _squares_together(raw: IntArray, *, d: int, n_squares: int) -> IntArray:
    """Add up the columns' squares where their sum alone is released."""
    squares = raw[:, d + 1 :]
    if squares.shape[1] == n_squares:
        return raw
    return np.column_stack([raw[:, : d + 1], squares.sum(axis=1)])


def _count_weight(radii: IntArray) -> IntArray:
    return 3 * radii // 8
