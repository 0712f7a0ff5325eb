"""Coded rows: one whole number for each column of a party, whatever kind the column is.

A number column holds its grid integer; a categorical column holds the position of its level. What
distances are made of are features (`features.py`): one for a number column, one for each level of a
categorical one. A column of 500 levels is 500 features of which a row has one: coded, a row is as
short as it has columns, and algorithms that know of levels treat them as what they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from splitmeans._types import NO_VALUE, FloatArray, IntArray
from splitmeans.study.features import bounds_of, features_of
from splitmeans.study.parties import SKIP, Column, PartySpec


@dataclass(frozen=True, kw_only=True)
class Coding:
    """How the rows of a party are coded; public.

    Attributes:
        bounds: Largest grid integer of each feature.
        levels: Number of levels of each column, 0 for a number column.
        has_gaps: Whether rows may be without a value in some columns.
    """

    bounds: tuple[int, ...]
    levels: tuple[int, ...]
    has_gaps: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the codes of a row are its features: numbers that every row has."""
        return not self.has_gaps and not any(self.levels)

    @cached_property
    def starts(self) -> IntArray:
        """First feature of each column, and the number of features; shape (columns + 1,)."""
        widths = [max(1, n) for n in self.levels]
        return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)

    @property
    def number_features(self) -> IntArray:
        """The features that are columns of numbers."""
        return np.asarray(self.starts[:-1][np.array(self.levels) == 0])

    @property
    def categorical(self) -> tuple[tuple[int, slice], ...]:
        """The position of each categorical column, and its features."""
        return tuple(
            (place, slice(int(self.starts[place]), int(self.starts[place + 1])))
            for place, n in enumerate(self.levels)
            if n
        )

    def of_features(self, of_columns: FloatArray) -> FloatArray:
        """Return for each feature the value of its column."""
        return np.repeat(of_columns, np.diff(self.starts))

    def features(self, codes: IntArray) -> IntArray:
        """Return the features of coded rows, shape (n, d), with `NO_VALUE` where there is none."""
        if not self.categorical:
            return codes
        found = np.empty((len(codes), len(self.bounds)), dtype=np.int64)
        found[:, self.number_features] = codes[:, np.array(self.levels) == 0]
        for place, own in self.categorical:
            table = self._level_rows(place, self.bounds[own.start])
            # The last two lines of the table are for equal shares and for no value.
            n = self.levels[place]
            code = codes[:, place]
            found[:, own] = table[np.where(code < 0, n + 1, np.minimum(code, n))]
        return found

    def codes(self, features: IntArray) -> IntArray:
        """Return the codes of rows, shape (n, columns), that have one level of each column."""
        if not self.categorical:
            return features
        found = np.empty((len(features), len(self.levels)), dtype=np.int64)
        found[:, np.array(self.levels) == 0] = features[:, self.number_features]
        for place, own in self.categorical:
            found[:, place] = features[:, own].argmax(axis=1)
        return found

    def with_levels(self, features: IntArray, *, rng: np.random.Generator) -> IntArray:
        """Return the rows with one level of each column, drawn where a row has shares of several.

        Shares are those of a local centre: features between the bounds, see `category_shares.py`.
        """
        found = self.features(self.codes(features))
        for _, own in self.categorical:
            shared = np.flatnonzero(np.any(found[:, own] != features[:, own], axis=1))
            if len(shared) == 0:
                continue
            bound = self.bounds[own.start]
            edges = np.cumsum(features[shared, own] + bound, axis=1)
            drawn = rng.random(len(shared)) * edges[:, -1]
            levels = (drawn[:, np.newaxis] >= edges[:, :-1]).sum(axis=1)
            found[shared, own] = -bound
            found[shared, own.start + levels] = bound
        return found

    def problem_of_codes(self, codes: IntArray) -> str | None:
        """Return what is wrong with the values of coded rows, shape (n, columns), if anything is.

        Every row must have a value in every column.
        """
        lows, highs = np.zeros((2, len(self.levels)), dtype=np.int64)
        for place, (n, first) in enumerate(zip(self.levels, self.starts, strict=False)):
            lows[place] = 0 if n else -self.bounds[first]
            highs[place] = n - 1 if n else self.bounds[first]
        # Both sides apart: the absolute value of -2^63 is negative in 64 bits.
        outside = np.asarray(((codes > highs) | (codes < lows)).any(axis=0))
        numbers = np.array(self.levels) == 0
        if outside[numbers].any():
            return "outside the study's bounds"
        return "with levels that no category has" if outside.any() else None

    def _level_rows(self, place: int, bound: int) -> IntArray:
        n = self.levels[place]
        one_hot = np.where(np.eye(n, dtype=bool), bound, -bound)
        return np.vstack([one_hot, even_shares(n, bound=bound), np.full(n, NO_VALUE)])


def level_features(columns: Sequence[Column]) -> tuple[slice, ...]:
    """Return which features each column of categories has, where all columns' follow in order."""
    found, start = [], 0
    for column in columns:
        width = max(1, len(column.levels))
        if column.levels:
            found.append(slice(start, start + width))
        start += width
    return tuple(found)


def coding_of(party: PartySpec) -> Coding:
    """Return how a party's rows are coded."""
    return Coding(
        bounds=tuple(bounds_of(features_of(party)).tolist()),
        levels=tuple(len(column.levels) for column in party.columns),
        has_gaps=any(column.missing == SKIP for column in party.columns),
    )


def even_shares(n_levels: int, *, bound: int) -> IntArray:
    """Return equal shares of all levels in grid integers, as equal as whole numbers can be.

    Counted from -bound the shares of a column add up to 2 bound; see `category_shares`.
    """
    base, rest = divmod(2 * bound, n_levels)
    shares = np.full(n_levels, base - bound, dtype=np.int64)
    shares[:rest] += 1
    return shares
