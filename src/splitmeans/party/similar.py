"""Lookalikes and audiences: a party's own users by their segment probabilities (phase 5; `labels`).

**Similar.** Given some users as a seed, every other user gets a lift: how many times likelier than
an average user it is to be one of their kind, as far as segments tell. With p(s) the user's
probability of segment s, and w(s) the seeds' mean probability over that of all users (shrunk to 1
where few seeds speak for a segment), the lift is the sum of p(s) w(s). Were seeds drawn by segment
alone, that is P(seed | user) / P(seed), so ordering by it is the best there is; a lift of 1 is an
average user.

**Audience.** Users whose probabilities of some segments add up to a threshold or more. As the
probabilities are those of being there, their mean is the share that is expected to be right.

Guarantee: reads the party's own rows and published values; releases nothing. The answers are a
function of the rows and as sensitive as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray
from splitmeans.errors import DataError, ParameterError
from splitmeans.result.result import Result, Segmentation

# As many seeds of the average kind are added to the real ones: a segment with little of either
# says little.
_PRIOR_SEEDS = 5.0
FEWEST_SEEDS = 5
# Finer than people want to read, and so better for telling users apart; found again on the grid.
_SEGMENTS = 24


@dataclass(frozen=True, kw_only=True)
class Audience:
    """How many users were chosen, and what they are worth.

    Attributes:
        users: How many were chosen.
        right: How many of them are expected to be in the segments: the sum of their probabilities.
        of_all: How many of the table's users are expected to be in the segments.
        rows: Users of the table.
    """

    users: int
    right: float
    of_all: float
    rows: int

    @property
    def precision(self) -> float:
        """Expected share of the chosen who are in the segments."""
        return self.right / self.users if self.users else 0.0

    @property
    def reach(self) -> float:
        """Expected share of those in the segments who are chosen."""
        return self.right / self.of_all if self.of_all > 0 else 0.0


def scoring_segments(result: Result, k: int | None) -> Segmentation:
    """Return the segments that lookalikes are scored by: those for k, or about two dozen."""
    result.check_segments()
    if k is not None:
        return result.segments(k)
    most = min(_SEGMENTS, result.most_segments)
    return result.segments(most) if most > max(result.published.k, 1) else result.published


def lifts(shares: FloatArray, is_seed: npt.NDArray[np.bool_]) -> FloatArray:
    """Return the lift of every user, shape (n,).

    `shares` are segment probabilities of all users, shape (n, k).

    Raises:
        DataError: If there are too few seeds, or nobody else.
    """
    n_seeds = int(is_seed.sum())
    if n_seeds < FEWEST_SEEDS:
        raise DataError(
            f"the seed must have at least {FEWEST_SEEDS} users of the table, got {n_seeds}; are "
            "its ids written as the table's?"
        )
    if n_seeds == len(is_seed):
        raise DataError("the seed must leave somebody out: every user of the table is in it")
    base = shares.mean(axis=0)
    seeds = shares[is_seed].sum(axis=0)
    weights = (seeds + _PRIOR_SEEDS * base) / ((n_seeds + _PRIOR_SEEDS) * np.maximum(base, 1e-12))
    return np.asarray(shares @ weights)


def chosen_segments(
    result: Result, segments: Segmentation, wanted: Sequence[str]
) -> npt.NDArray[np.bool_]:
    """Return which segments are meant by letters or by the names that people gave them."""
    called = result.called(segments)
    places = {letter: at for at, letter in enumerate(segments.letters)}
    places = {name: at for at, name in enumerate(called)} | places
    found = np.zeros(segments.k, dtype=bool)
    for word in wanted:
        if word.strip() not in places:
            listed = ", ".join(
                letter if letter == name else f"{letter} ({name})"
                for letter, name in zip(segments.letters, called, strict=True)
            )
            raise ParameterError(f"segments must be some of {listed}, got {word.strip()!r}")
        found[places[word.strip()]] = True
    if not found.any():
        raise ParameterError("segments must name at least one segment, got none")
    return found


def check_threshold(at_least: float) -> None:
    """Refuse a threshold that is no probability."""
    if not 0 < at_least <= 1:
        raise ParameterError(f"at_least must be above 0 and at most 1, got {at_least!r}")


def audience(
    shares: FloatArray, chosen: npt.NDArray[np.bool_], *, at_least: float
) -> tuple[npt.NDArray[np.bool_], FloatArray]:
    """Return which users are chosen, and every user's probability of the chosen segments."""
    own = np.asarray(shares[:, chosen].sum(axis=1))
    # Sums of probabilities may miss 1 by a rounding error.
    return own >= at_least - 1e-9, own
