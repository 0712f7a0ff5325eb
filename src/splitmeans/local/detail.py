"""Detail: how a party's columns spread, whole and within its clusters, on demand of the study.

Local clustering tells where clusters are and how far they reach; the shapes of its points are
rough. Here the rows tell more, in two steps:

    columns    histograms of the whole columns in narrow bins; each column's points take its shape
    clusters   histograms of each column in each cluster and, where the budget allows it, tables of
               the pairs of columns that go together most; points are drawn anew to agree with all

Points stay points (`reshaping.py`), so whatever is made of them gains: pseudo-users, synthetic
rows, estimates of losses. Nothing else is sent.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.assign import nearest
from splitmeans.kernels.cluster_bins import cluster_bins
from splitmeans.kernels.coded_rows import coded_nearest
from splitmeans.local.atoms import Histogram, on_atoms
from splitmeans.local.bins import (
    bin_numbers,
    bins_of,
    coarser,
    codes_of,
    even_edges,
    going_together,
    with_shape,
)
from splitmeans.local.law import COUNT_UNITS, gaussian_counts
from splitmeans.local.laws.detail import WHOLE_BINS, DetailLaw
from splitmeans.local.reshaping import Counts, reshaped
from splitmeans.local.survey import present_share, without_noise
from splitmeans.privacy.noise import NoiseSource
from splitmeans.shrinkage import shrinkage
from splitmeans.study.coding import Coding
from splitmeans.table.walk.interface import RawRows

# About how many bins a column of numbers has in each cluster.
CLUSTER_BINS = 16

_NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


class Shapes(NamedTuple):
    """What was released, as points and as whole columns; nothing here needs further noise.

    Attributes:
        points: The points drawn anew, shape (n, d).
        edges: For each column the inner edges of its narrow bins; none for levels.
        shares: For each column the share of each bin, or level.
    """

    points: IntArray
    edges: list[IntArray]
    shares: list[FloatArray]


class Detail(DetailLaw):
    """The mechanism; for what it costs see the law."""

    def release(
        self,
        rows: RawRows,
        *,
        centres: IntArray,
        points: IntArray,
        size: float,
        coding: Coding,
        noise: NoiseSource,
        rng: np.random.Generator,
        ranges: Sequence[tuple[float, float]] | None = None,
    ) -> Shapes:
        """Return the points drawn anew, and the columns' shapes, after two looks at the rows.

        Args:
            rows: The party's coded rows.
            centres: Its released centres, shape (k', d), whose clusters the rows are in.
            points: Its released points, shape (n, d), in grid integers.
            size: The released number of rows.
            coding: How rows are coded.
            noise: Hides the users.
            rng: Draws; independent of the rows.
            ranges: Lower and upper bound of each column of numbers in its own units; where they are
                known, values that many rows share are found among round numbers.
        """
        fine = even_edges(points, coding, n_bins=WHOLE_BINS)
        noisy = self.noisy_columns(rows, coding=coding, edges=fine, noise=noise)
        before = bins_of(codes_of(points, coding), fine, coding)
        columns = [
            _shape(
                np.bincount(old, minlength=len(own)) / len(points),
                own,
                deviation=self.whole_scale / COUNT_UNITS,
                size=size,
            )
            for old, own in zip(before.T, noisy, strict=True)
        ]
        points = _with_shapes(points, fine, columns, coding=coding, rng=rng)
        edges = [
            own if n else coarser(own, column, n_bins=CLUSTER_BINS)
            for own, column, n in zip(fine, columns, coding.levels, strict=True)
        ]
        bins = bin_numbers(edges, coding)
        pairs = going_together(
            bins_of(codes_of(points, coding), edges, coding), bins, n_pairs=self.n_pairs
        )
        by_cluster, tables = self.noisy_clusters(
            rows, centres=centres, coding=coding, edges=edges, pairs=pairs, noise=noise
        )
        counts = [
            *self._pairs(tables, pairs, bins),
            *self._in_clusters(by_cluster, bins, size=size),
            *_whole(fine, edges, columns, size=size, n_columns=len(bins)),
        ]
        drawn = reshaped(
            points, counts, centres=centres, edges=edges, coding=coding, size=size, rng=rng
        )
        shapes = Shapes(points=drawn, edges=fine, shares=columns)
        if ranges is None:
            return shapes
        even = [
            np.bincount(old, minlength=len(own)) for old, own in zip(before.T, noisy, strict=True)
        ]
        deviation = self.whole_scale / COUNT_UNITS / max(size, 1.0)
        return _on_atoms(shapes, even, ranges=ranges, deviation=deviation, coding=coding, rng=rng)

    def noisy_columns(
        self, rows: RawRows, *, coding: Coding, edges: Sequence[IntArray], noise: NoiseSource
    ) -> list[FloatArray]:
        """Return the noisy count of each bin of each whole column."""
        bins = bin_numbers(edges, coding)
        raw = rows.total(_part(coding=coding, edges=edges, bins=bins, pairs=_NO_PAIRS))
        noisy = gaussian_counts(raw, scale=self.whole_scale, noise=noise)
        return np.split(noisy, np.cumsum(bins)[:-1])

    def noisy_clusters(
        self,
        rows: RawRows,
        *,
        centres: IntArray,
        coding: Coding,
        edges: Sequence[IntArray],
        pairs: IntArray,
        noise: NoiseSource,
    ) -> tuple[FloatArray, FloatArray]:
        """Return noisy counts of each cluster's bins, shape (k', bins), and of all pairs' cells."""
        bins = bin_numbers(edges, coding)
        raw = rows.total(_part(coding=coding, edges=edges, bins=bins, pairs=pairs, centres=centres))
        n_columns = len(centres) * int(bins.sum())
        noisy = gaussian_counts(raw[:n_columns], scale=self.cluster_scale, noise=noise)
        tables = np.zeros(0)
        if self.n_pairs:
            tables = gaussian_counts(raw[n_columns:], scale=self.pair_scale, noise=noise)
        return noisy.reshape(len(centres), -1), tables

    def _pairs(self, tables: FloatArray, pairs: IntArray, bins: IntArray) -> list[Counts]:
        found = []
        at = 0
        for first, second in pairs:
            strides = np.zeros(len(bins) + 1, dtype=np.int64)
            strides[first], strides[second] = bins[second], 1
            cells = int(bins[first] * bins[second])
            own = tables[at : at + cells]
            deviation = self.pair_scale / COUNT_UNITS
            found.append(Counts(strides=strides, noisy=own, deviation=deviation))
            at += cells
        return found

    def _in_clusters(self, noisy: FloatArray, bins: IntArray, *, size: float) -> list[Counts]:
        """Take the clusters' counts apart by column; rows that lack a value are made up for."""
        found = []
        deviation = self.cluster_scale / COUNT_UNITS
        for place, first in enumerate(np.cumsum(bins) - bins):
            own = noisy[:, first : first + bins[place]].ravel()
            present = present_share(own, deviation=deviation, size=size)
            strides = np.zeros(len(bins) + 1, dtype=np.int64)
            strides[place], strides[-1] = 1, bins[place]
            found.append(
                Counts(strides=strides, noisy=own / present, deviation=deviation / present)
            )
        return found


def _part(
    *,
    coding: Coding,
    edges: Sequence[IntArray],
    bins: IntArray,
    pairs: IntArray,
    centres: IntArray | None = None,
) -> "partial[IntArray]":
    """Return what counts a block of rows; without centres all are in one cluster."""
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *edges])
    return partial(_counted, centres=centres, coding=coding, edges=flat, bins=bins, pairs=pairs)


def _counted(
    raw_rows: IntArray,
    *,
    centres: IntArray | None,
    coding: Coding,
    edges: IntArray,
    bins: IntArray,
    pairs: IntArray,
) -> IntArray:
    if centres is None:
        labels = np.zeros(len(raw_rows), dtype=np.int32)
    elif coding.is_plain:
        labels = nearest(raw_rows, centres)
    else:
        limits = np.array(coding.bounds, dtype=np.int64)
        labels = coded_nearest(raw_rows, centres=centres, limits=limits, levels=coding.levels)
    return cluster_bins(
        raw_rows,
        labels,
        n_clusters=1 if centres is None else len(centres),
        edges=edges,
        bins=bins,
        levels=np.array(coding.levels, dtype=np.int64),
        pairs=pairs,
    )


def _shape(shares: FloatArray, noisy: FloatArray, *, deviation: float, size: float) -> FloatArray:
    """Return the shares of a column's bins among rows with a value, without what is noise.

    `shares` are those of the points: where the counts are mostly noise, they stay.
    """
    total = size * present_share(noisy, deviation=deviation, size=size)
    counts = without_noise(noisy, deviation=deviation, total=total)
    model = shares * total
    weight = shrinkage(noisy - model, deviation, sizes=np.maximum(model, 1.0), beyond_chance=True)
    counts = model + weight * (counts - model)
    return np.asarray(counts / max(float(counts.sum()), 1e-9))


def _with_shapes(
    points: IntArray,
    edges: Sequence[IntArray],
    columns: Sequence[FloatArray],
    *,
    coding: Coding,
    rng: np.random.Generator,
) -> IntArray:
    """Return the points with every column of numbers in its shape; levels stay as they are."""
    shaped = points.copy()
    for place, feature in enumerate(coding.starts[:-1]):
        if coding.levels[place] == 0 and columns[place].sum() > 0:
            shaped[:, feature] = with_shape(
                points[:, feature],
                edges[place],
                columns[place],
                rng=rng,
            )
    return shaped


def _whole(
    fine: Sequence[IntArray],
    edges: Sequence[IntArray],
    columns: Sequence[FloatArray],
    *,
    size: float,
    n_columns: int,
) -> list[Counts]:
    """Return the whole columns in the coarser bins; they have little noise and are believed."""
    found = []
    for place, (narrow, own, shares) in enumerate(zip(fine, edges, columns, strict=True)):
        strides = np.zeros(n_columns + 1, dtype=np.int64)
        strides[place] = 1
        if len(narrow):
            # The first bin of a coarser one is that whose lower edge is one of its edges.
            starts = np.concatenate([[0], np.searchsorted(narrow, own) + 1])
            shares = np.add.reduceat(shares, starts)
        found.append(Counts(strides=strides, noisy=size * shares, deviation=0.0))
    return found


def _on_atoms(
    shapes: Shapes,
    even: Sequence[IntArray],
    *,
    ranges: Sequence[tuple[float, float]],
    deviation: float,
    coding: Coding,
    rng: np.random.Generator,
) -> Shapes:
    """Return the points with their numbers on values that many rows share, each in its bin.

    `even` has the points of each bin before the columns were known.
    """
    points = shapes.points.copy()
    numbers = [place for place, n in enumerate(coding.levels) if not n]
    for place, (low, high) in zip(numbers, ranges, strict=True):
        feature = int(coding.starts[place])
        bound, edges = coding.bounds[feature], shapes.edges[place]
        half = high / 2 - low / 2
        # Nobody writes round numbers at the ends of what a float can be.
        if not len(edges) or not 1e-100 < half < 1e100:
            continue
        ends = np.concatenate([[-bound], edges, [bound]])
        histogram = Histogram(
            ends=low + (ends / bound + 1) * half,
            shares=shapes.shares[place],
            even=even[place] / even[place].sum(),
            deviation=deviation,
        )
        moved = on_atoms(low + (points[:, feature] / bound + 1) * half, histogram, rng=rng)
        codes = np.rint(((moved - low) / half - 1) * bound).astype(np.int64)
        bins = np.searchsorted(edges, points[:, feature], side="right")
        most = np.concatenate([edges - 1, [bound]])
        points[:, feature] = np.clip(codes, ends[bins], most[bins])
    return shapes._replace(points=points)
