"""Public law of Lloyd's steps with a radius; see `local.radius_lloyd`."""

import math
from dataclasses import dataclass

from splitmeans import _validate
from splitmeans.local.law import USABLE, check_public, l2_sensitivity, mu_scale, whole_root
from splitmeans.privacy.events import ComposedEvent, GaussianEvent, Realised
from splitmeans.privacy.gaussian import discrete_slack

# A radius is this many times the root mean square distance from the centre. Clipping rows there
# biases a mean less than the noise of a larger radius moves it: best of 1.3, 1.6, 2 and 2.5.
RADIUS_FACTOR = 1.3

# No radius is below this part of the box's half diagonal.
SMALLEST_RADIUS = 64

# Everything is released in 1/256 of a grid unit, so that noise is fine even at small radii.
FINE_UNITS = 2**8


@dataclass(frozen=True, kw_only=True)
class RadiusLloydLaw:
    """A fixed number of Lloyd's steps on noisy sums of clipped offsets.

    Guarantee: for adding or removing one row, mu-Gaussian privacy, mu^2 / steps for each step. In a
    step a row belongs to one centre of radius r and adds a vector of three parts: its clipped
    offset, of length at most r; 3 r / 8 for the count; at most r / 4 for the squared length. The L2
    sensitivity is r sqrt(1 + 9/64 + 4/64), and the noise at this centre is in proportion to it.
    Centres and radii come from values released before.

    Attributes:
        bounds: Largest grid integer of each column.
        mu: Cost of all steps.
        steps: Number of steps.
    """

    bounds: tuple[int, ...]
    mu: float
    steps: int = 4

    def __post_init__(self) -> None:
        check_public(n_clusters=1, bounds=self.bounds)
        _validate.positive(mu=self.mu)
        _validate.at_least(1, steps=self.steps)

    @property
    def step_mu(self) -> float:
        """What one step costs."""
        return self.mu / math.sqrt(self.steps)

    @property
    def smallest_radius(self) -> int:
        """Lower limit of all radii."""
        return max(l2_sensitivity(self.bounds) // SMALLEST_RADIUS, 8)

    def scale(self, radius: int) -> int:
        """Return the scale of the noise at a centre of this radius, in 1/256 grid units."""
        return mu_scale(sensitivity(radius), mu=self.step_mu)

    @property
    def event(self) -> ComposedEvent:
        """The steps. Slack is that of the smallest radius: a larger one has no smaller scale."""
        smallest = Realised(
            scale=self.scale(self.smallest_radius),
            sensitivity=sensitivity(self.smallest_radius),
            coordinates=len(self.bounds) + 2,
        )
        slack = discrete_slack(smallest.scale, mu=self.step_mu, coordinates=smallest.coordinates)
        # Scales are rounded up for each radius on its own; the bound that holds for all of them.
        multiplier = 1 / (self.step_mu * math.sqrt(USABLE))
        step = GaussianEvent(noise_multiplier=multiplier, slack=slack, realised=smallest)
        return ComposedEvent(parts=(step,) * self.steps)


def sensitivity(radius: int) -> int:
    """Return the L2 norm that a row adds at a centre of this radius, in 1/256 grid units.

    r sqrt(77 / 64), rounded up: |offset|^2 <= r^2, count (3r/8)^2, squares (r/4)^2.
    """
    return whole_root(77 * (radius * FINE_UNITS // 8) ** 2)
