"""The law of a membership method: its public parameters and its privacy event."""

from typing import TypeAlias

from splitmeans.membership.cell_sketch.law import CellSketch, floor_for, phantoms_for
from splitmeans.membership.decoy.law import DecoyLaw, decoy_law
from splitmeans.membership.exact.law import PlainLabels
from splitmeans.membership.independent.law import NoisyHistogram
from splitmeans.membership.ldp.law import RandomisedLabels
from splitmeans.membership.sketch.law import PublishedSketch
from splitmeans.privacy.split import Precisions, Shares
from splitmeans.study import Study

MembershipLaw: TypeAlias = (
    DecoyLaw | CellSketch | PublishedSketch | NoisyHistogram | RandomisedLabels | PlainLabels
)

# The ends of a truncated decoy law cost their probability as delta; this share of the study's
# delta, over all groups, leaves nearly all of it to the rest.
_TRUNCATION_SHARE = 0.01


def published_law(study: Study, shares: Shares, *, n_local_clusters: int) -> MembershipLaw:
    """Return what the study's method does with its share of the budget, costs added up."""
    match study.membership:
        case "sketch-paper":
            return PublishedSketch(
                epsilon=shares.membership_epsilon,
                delta=shares.membership_delta,
                gamma=study.gamma,
                repetitions=study.sketch.repetitions,
            )
        case "independent":
            return NoisyHistogram(epsilon=shares.membership_epsilon)
        case "ldp":
            return RandomisedLabels(
                epsilon=shares.membership_epsilon, n_local_clusters=n_local_clusters
            )
        case "exact":
            return PlainLabels()
    raise AssertionError(f"study was not validated: membership={study.membership!r}")


def tight_law(
    study: Study, precisions: Precisions, *, n_local_clusters: int, n_groups: int
) -> MembershipLaw:
    """Return what the study's method does at the precision it was given."""
    mu = precisions.membership
    match study.membership:
        case "decoy":
            share = _TRUNCATION_SHARE * study.budget.delta / n_groups
            own = None if precisions.server is None else 1 / precisions.server
            return decoy_law(mu, delta_share=share, server_sigma=own)
        case "sketch":
            gamma, repetitions = study.gamma, study.sketch.repetitions
            floor = floor_for(study.expected_users, gamma=gamma)
            return CellSketch(
                repetitions=repetitions,
                gamma=gamma,
                phantoms=phantoms_for(mu, repetitions=repetitions, gamma=gamma, floor=floor),
                floor=floor,
                partial=study.user_sets == "partial",
            )
        # The mean loss of a pure release of small epsilon is that of a Gaussian of mu = epsilon.
        case "independent":
            return NoisyHistogram(epsilon=mu)
        case "ldp":
            return RandomisedLabels(epsilon=mu, n_local_clusters=n_local_clusters)
        case "exact":
            return PlainLabels()
    raise AssertionError(f"study was not validated: membership={study.membership!r}")
