"""What public code asks of noisy cluster sizes; see `membership.method`."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from splitmeans._types import NoiseLine
from splitmeans.membership.independent.estimate import IndependentEstimator
from splitmeans.membership.independent.law import NoisyHistogram
from splitmeans.membership.method import (
    MembershipMethod,
    RunFacts,
    counted_users,
    paper_clusters,
    shape_problem,
)
from splitmeans.privacy.noise import NoiseSource
from splitmeans.study.methods import INDEPENDENT
from splitmeans.wire.messages import HistogramMessage

# As many rows as sums on the grid are exact for (`features`). Products of counts of as many parties
# as a grid can have then stay below the largest float.
MAX_USERS = 2**40


def _estimator(
    law: NoisyHistogram, plan: RunFacts, messages: Sequence[HistogramMessage], noise: NoiseSource
) -> IndependentEstimator:
    return IndependentEstimator(messages=tuple(messages), noisy_count=counted_users(plan))


def _noise_lines(law: NoisyHistogram, plan: RunFacts) -> Iterator[NoiseLine]:
    yield "size of each cluster", math.sqrt(2) * law.scale, "users"


def _check_message(plan: RunFacts, position: int, message: HistogramMessage) -> str | None:
    counts = message.noisy_counts
    if np.any((counts > MAX_USERS) | (counts < -MAX_USERS)):
        return "a count that no table can have"
    return shape_problem(message, counts.shape, (plan.n_local_clusters[position],))


METHOD: MembershipMethod[NoisyHistogram, HistogramMessage] = MembershipMethod(
    facts=INDEPENDENT,
    law=NoisyHistogram,
    message=HistogramMessage,
    default_labels=paper_clusters,
    published_law=lambda study, shares, clusters: NoisyHistogram(epsilon=shares.membership_epsilon),
    # The mean loss of a pure release of small epsilon is that of a Gaussian of mu = epsilon.
    tight_law=lambda study, precisions, clusters, groups: NoisyHistogram(
        epsilon=precisions.membership
    ),
    estimator=_estimator,
    noise_lines=_noise_lines,
    message_size=lambda law, plan, position, users, deviations: (
        8 * plan.n_local_clusters[position],
        0,
    ),
    # It multiplies cluster sizes as if the parties' clusters had nothing to do with each other, and
    # how wrong that is only the data knows.
    cell_error=lambda law, plan, users: None,
    check_message=_check_message,
)
