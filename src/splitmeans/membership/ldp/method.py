"""What public code asks of randomised labels; see `membership.method`."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from splitmeans._types import NoiseLine
from splitmeans.membership.ldp.estimate import LdpEstimator, inverse_support
from splitmeans.membership.ldp.law import RandomisedLabels
from splitmeans.membership.method import MembershipMethod, RunFacts, paper_clusters
from splitmeans.privacy.noise import NoiseSource
from splitmeans.privacy.split import Precisions, Shares
from splitmeans.study import Study
from splitmeans.study.methods import LDP
from splitmeans.wire.messages import RandomisedLabelsMessage


def _published_law(study: Study, shares: Shares, clusters: int) -> RandomisedLabels:
    return RandomisedLabels(epsilon=shares.membership_epsilon, n_local_clusters=clusters)


def _tight_law(
    study: Study, precisions: Precisions, clusters: int, groups: int
) -> RandomisedLabels:
    # The mean loss of a pure release of small epsilon is that of a Gaussian of mu = epsilon.
    return RandomisedLabels(epsilon=precisions.membership, n_local_clusters=clusters)


def _estimator(
    law: RandomisedLabels,
    plan: RunFacts,
    messages: Sequence[RandomisedLabelsMessage],
    noise: NoiseSource,
) -> LdpEstimator:
    return LdpEstimator(laws=(law,) * len(messages), messages=tuple(messages))


def _noise_lines(law: RandomisedLabels, plan: RunFacts) -> Iterator[NoiseLine]:
    yield "misreported labels", 1 - float(law.true_support), "probability"


def _message_size(
    law: RandomisedLabels, plan: RunFacts, position: int, users: int, deviations: int
) -> tuple[int, int]:
    return users * (5 if law.uses_hashing else 1), 0


def _cell_error(law: RandomisedLabels, plan: RunFacts, users: int) -> float:
    width = max(plan.n_local_clusters)
    return math.sqrt(users * (_amplification(law) ** 2 - 1) / width**2)


def _amplification(law: RandomisedLabels) -> float:
    """Return how much one user's inverted report adds to the squares of all sizes."""
    if not law.uses_hashing:
        return float(np.square(inverse_support(law)[:, 0]).sum())
    p, q = float(law.true_support), float(law.false_support)
    return 1 + (p * (1 - p) + (law.n_local_clusters - 1) * q * (1 - q)) / (p - q) ** 2


METHOD: MembershipMethod[RandomisedLabels, RandomisedLabelsMessage] = MembershipMethod(
    facts=LDP,
    law=RandomisedLabels,
    message=RandomisedLabelsMessage,
    default_labels=paper_clusters,
    published_law=_published_law,
    tight_law=_tight_law,
    estimator=_estimator,
    noise_lines=_noise_lines,
    message_size=_message_size,
    cell_error=_cell_error,
)
