"""Noise levels of every release of a plan, as standard deviations in units that people know."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from splitmeans.features import GRID_UNITS
from splitmeans.local.gaussian_tree import GaussianTree
from splitmeans.local.lloyd import DpLloyd
from splitmeans.local.lsh_tree import LshTree
from splitmeans.local.mechanism import COUNT_UNITS, LocalClustering
from splitmeans.local.radius_lloyd import FINE_UNITS, RADIUS_FACTOR
from splitmeans.local.tree_lloyd import TreeLloyd
from splitmeans.membership.cell_sketch.law import CellSketch
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.independent.law import NoisyHistogram
from splitmeans.membership.ldp.law import RandomisedLabels
from splitmeans.membership.sketch.law import PublishedSketch
from splitmeans.plan import Plan
from splitmeans.releases import EVERYONE, releases_of

# A Laplace variable of scale b has this many b as its standard deviation.
LAPLACE = math.sqrt(2)


@dataclass(frozen=True, kw_only=True)
class NoiseLevel:
    """One noisy quantity of a release.

    Attributes:
        party: Who releases it, or "all parties".
        release: "number of users", "local centres" or "memberships".
        what: The quantity.
        deviation: Standard deviation of its noise; for phantoms and misreports their number or
            probability.
        unit: What the deviation counts. "box" is half of a column's range (times its weight),
            "spread" a local cluster's root mean square distance from its centre.
    """

    party: str
    release: str
    what: str
    deviation: float
    unit: str


def noise_levels(plan: Plan, *, users: int) -> tuple[NoiseLevel, ...]:
    """Return the noise of all releases, in the order in which they happen.

    `users` only matters where noise is on a sum and what counts is the noise of a mean, or where
    the number of steps depends on it.
    """
    levels = []
    mechanisms = dict(zip(plan.study.party_names, plan.local, strict=True))
    for release in releases_of(plan):
        if release.what == "number of users":
            assert plan.count_scale is not None
            found = iter([("number of users", LAPLACE * plan.count_scale, "users")])
        elif release.what == "local centres":
            found = _local(mechanisms[release.party], users=users)
        else:
            found = _membership(plan)
        levels += [
            NoiseLevel(
                party=release.party, release=release.what, what=what, deviation=size, unit=unit
            )
            for what, size, unit in found
        ]
    return tuple(levels)


def _local(mechanism: LocalClustering, *, users: int) -> Iterator[tuple[str, float, str]]:
    match mechanism:
        case TreeLloyd(start=start):
            yield "number of rows", start.size_scale / COUNT_UNITS, "users"
            yield "each bin of a column", start.column_scale / COUNT_UNITS, "users"
            if len(start.bounds) > 1:
                yield "each cell of the start", start.cell_scale / COUNT_UNITS, "users"
            yield "each coordinate of a centre", centre_deviation(mechanism, users=users), "spread"
        case GaussianTree():
            yield "each count of the tree", mechanism.count_scale / COUNT_UNITS, "users"
            yield "each coordinate of a leaf's sum", mechanism.sum_scale / GRID_UNITS, "box"
        case LshTree():
            yield "each count of the tree", LAPLACE * mechanism.count_scale, "users"
            law = LAPLACE if mechanism.sums == "laplace" else 1.0
            yield "each coordinate of a leaf's sum", law * mechanism.sum_scale / GRID_UNITS, "box"
        case DpLloyd():
            yield "number of rows", LAPLACE * mechanism.size_scale, "users"
            steps = mechanism.iterations(users)
            counts, sums = mechanism.iteration_scales(steps)
            yield f"each count of {steps} steps", LAPLACE * counts, "users"
            yield f"each sum of {steps} steps", LAPLACE * max(sums) / GRID_UNITS, "box"


def centre_deviation(mechanism: TreeLloyd, *, users: int) -> float:
    """Return the deviation of a centre's coordinate over the spread of its cluster.

    A step's noise on a sum is in proportion to the radius, which is RADIUS_FACTOR times the spread;
    the mean of a cluster of an average number of users has that over the number; and the steps
    are averaged.
    """
    radius = 2**20  # large enough for the rounding of scales not to matter
    per_radius = mechanism.lloyd.scale(radius) / FINE_UNITS / radius
    members = users / mechanism.n_clusters
    return RADIUS_FACTOR * per_radius / math.sqrt(mechanism.steps) / members


def _membership(plan: Plan) -> Iterator[tuple[str, float, str]]:
    match plan.membership:
        case DecoyLaw() as law:
            yield "decoys in each cell", math.sqrt(law.variance), "users"
            yield "the server's noise on each cell", law.server_sigma, "users"
            for response in {response for response in plan.collusion_laws if response is not None}:
                yield "misreported labels", 1 - float(response.true_support), "probability"
        case CellSketch() as law:
            yield "phantoms in each cell", float(law.phantoms), "phantom users"
        case PublishedSketch() as law:
            yield "phantoms in each cluster", float(law.phantoms), "phantom users"
        case NoisyHistogram() as law:
            yield "size of each cluster", LAPLACE * law.scale, "users"
        case RandomisedLabels() as law:
            yield "misreported labels", 1 - float(law.true_support), "probability"


def shown_party(party: str) -> str:
    """Return whose release it is, for a table."""
    return "all together" if party == EVERYONE else party
