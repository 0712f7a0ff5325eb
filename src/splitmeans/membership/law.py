"""The law of a membership method: its public parameters and its privacy event."""

from typing import TypeAlias

from splitmeans.membership.exact.law import PlainLabels
from splitmeans.membership.independent.law import NoisyHistogram
from splitmeans.membership.ldp.law import RandomisedLabels
from splitmeans.membership.sketch.law import PublishedSketch
from splitmeans.privacy.split import Shares
from splitmeans.study import Study

MembershipLaw: TypeAlias = PublishedSketch | NoisyHistogram | RandomisedLabels | PlainLabels


def membership_law(study: Study, shares: Shares, *, n_local_clusters: int) -> MembershipLaw:
    """Return what the study's membership method does with its share of the budget."""
    match study.membership:
        case "sketch-paper":
            return PublishedSketch(
                epsilon=shares.membership_epsilon,
                delta=shares.membership_delta,
                gamma=study.sketch.gamma,
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
