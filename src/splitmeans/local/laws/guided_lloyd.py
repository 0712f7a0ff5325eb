"""Public law of guided-lloyd; see `local.guided_lloyd`."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from splitmeans import _validate
from splitmeans._types import NoiseLine
from splitmeans.local.law import (
    COUNT_UNITS,
    USABLE,
    check_public,
    l2_sensitivity,
    mu_scale,
    whole_root,
)
from splitmeans.local.laws.survey import SurveyLaw
from splitmeans.privacy.events import ComposedEvent, GaussianEvent, Realised
from splitmeans.privacy.gaussian import discrete_slack

# Share of mu^2 for the survey; one column is known by its histogram.
_SURVEY_SHARE, _SURVEY_SHARE_OF_ONE = 0.2, 0.5

# The rounds: how many clusters each has as a part of k', and its part of the budget. Few clusters
# first, because a few large ones are placed well by little budget; then more than k', because as
# many clusters as there are groups of rows seldom find all of them, and what they miss no later
# round can; the last are those that are released. The list is the same for every k', so that k' may
# follow from what was released before without changing what a release costs.
ROUNDS = ((1 / 4, 0.25), (1.0, 0.5), (3 / 2, 1.0), (3 / 2, 1.0), (1.0, 1.5))
_FEWEST_CLUSTERS = 4

# A radius is this many times the root mean square distance from the centre. Clipping rows there
# biases a mean less than the noise of a larger radius moves it.
RADIUS_FACTOR = 1.3
# Up to so many columns of numbers the squares of each are asked for, of more their sum alone: what
# one of many columns adds is mostly noise, and noise of all of them would be in their sum.
MOST_SQUARES = 12
# No radius is below this part of the box's half diagonal.
_SMALLEST_RADIUS = 64
# Everything is released in 1/256 of a grid unit, so that noise is fine even at small radii.
FINE_UNITS = 2**8


@dataclass(frozen=True, kw_only=True)
class GuidedLloydLaw:
    """A survey of the columns, then rounds of Lloyd's steps that correct synthetic points.

    Guarantee: for adding or removing one row, mu-Gaussian privacy: a share of mu^2 for the survey
    (`SurveyLaw`), the rest for the rounds in fixed parts. In a round a row belongs to one centre of
    radius r and adds a vector of three parts: its clipped offset, of length at most r; 3 r / 8 for
    the count; its squares, of length at most r / 2, or their sum, which is no more. The L2
    sensitivity is r sqrt(1 + 9/64 + 16/64), and the noise at this centre is in proportion to it.
    Centres and radii come from values released before; neither the number of rounds nor their
    noise depends on k'.

    Attributes:
        n_clusters: Number of centres, k'.
        bounds: Largest grid integer of each feature.
        mu: Cost of one release.
        levels: Number of levels of each column, 0 for numbers; empty if every feature is a column
            of numbers that every row has.
    """

    TAG: ClassVar[str] = "GuidedLloyd"

    n_clusters: int
    bounds: tuple[int, ...]
    mu: float
    levels: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_public(n_clusters=self.n_clusters, bounds=self.bounds, levels=self.levels)
        _validate.positive(mu=self.mu)

    @property
    def _survey_share(self) -> float:
        one_column = len(self.levels or self.bounds) == 1
        return _SURVEY_SHARE_OF_ONE if one_column else _SURVEY_SHARE

    @property
    def survey(self) -> SurveyLaw:
        """The first part."""
        mu = self.mu * math.sqrt(self._survey_share)
        return SurveyLaw(bounds=self.bounds, mu=mu, levels=self.levels)

    @property
    def n_numbers(self) -> int:
        """Columns of numbers, whose squares are asked for."""
        return self.levels.count(0) if self.levels else len(self.bounds)

    @property
    def n_squares(self) -> int:
        """How many sums of squares a round asks for in each cluster."""
        return self.n_numbers if self.n_numbers <= MOST_SQUARES else 1

    @property
    def round_mus(self) -> tuple[float, ...]:
        """What each round costs."""
        rest = self.mu**2 * (1 - self._survey_share)
        whole = sum(part for _, part in ROUNDS)
        return tuple(math.sqrt(rest * part / whole) for _, part in ROUNDS)

    @property
    def round_clusters(self) -> tuple[int, ...]:
        """How many centres each round has; the last has k'."""
        fewest = min(_FEWEST_CLUSTERS, self.n_clusters)
        return tuple(max(fewest, round(part * self.n_clusters)) for part, _ in ROUNDS)

    @property
    def smallest_radius(self) -> int:
        """Lower limit of all radii."""
        return max(l2_sensitivity(self.bounds) // _SMALLEST_RADIUS, 8)

    @property
    def event(self) -> ComposedEvent:
        """The survey's releases, then the rounds."""
        rounds = tuple(self._round_event(mu) for mu in self.round_mus)
        return ComposedEvent(parts=(*self.survey.event.parts, *rounds))

    def _round_event(self, mu: float) -> GaussianEvent:
        """Slack is that of the smallest radius: a larger one has no smaller scale."""
        smallest = Realised(
            scale=mu_scale(sensitivity(self.smallest_radius), mu=mu),
            sensitivity=sensitivity(self.smallest_radius),
            coordinates=len(self.bounds) + 1 + self.n_squares,
        )
        slack = discrete_slack(smallest.scale, mu=mu, coordinates=smallest.coordinates)
        # Scales are rounded up for each radius on its own; the bound that holds for all of them.
        multiplier = 1 / (mu * math.sqrt(USABLE))
        return GaussianEvent(noise_multiplier=multiplier, slack=slack, realised=smallest)

    def noise_lines(self, users: int) -> Iterator[NoiseLine]:
        """Yield the noise of a release of about this many users."""
        survey = self.survey
        yield "number of rows", survey.size_scale / COUNT_UNITS, "users"
        yield "each bin of a column", survey.column_scale / COUNT_UNITS, "users"
        yield "each coordinate of a centre", self.centre_deviation(users), "spread"

    @property
    def count_deviation(self) -> float:
        """Deviation of the noise on how many rows a cluster has, in the last round."""
        radius = 2**20  # large enough for the rounding of scales not to matter
        scale = mu_scale(sensitivity(radius), mu=self.round_mus[-1])
        return scale / FINE_UNITS / (3 * radius // 8)

    def centre_deviation(self, users: int) -> float:
        """Return the deviation of a centre's coordinate over the spread of its cluster.

        A round's noise on a sum is in proportion to the radius, which is RADIUS_FACTOR times the
        spread; the mean of a cluster of an average number of users has that over the number; and
        what the rounds say adds up.
        """
        radius = 2**20  # large enough for the rounding of scales not to matter
        mu = math.sqrt(sum(mu**2 for mu in self.round_mus))
        per_radius = mu_scale(sensitivity(radius), mu=mu) / FINE_UNITS / radius
        return RADIUS_FACTOR * per_radius / (users / self.n_clusters)


def sensitivity(radius: int) -> int:
    """Return the L2 norm that a row adds at a centre of this radius, in 1/256 grid units.

    r sqrt(89 / 64), rounded up: |offset|^2 <= r^2, count (3r/8)^2, squares (r/2)^2.
    """
    return whole_root(89 * (radius * FINE_UNITS // 8) ** 2)
