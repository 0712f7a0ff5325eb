"""What public code asks of plain labels; see `membership.method`."""

from collections.abc import Sequence

from splitmeans.membership.exact.estimate import ExactEstimator
from splitmeans.membership.exact.law import PlainLabels
from splitmeans.membership.method import MembershipMethod, RunFacts, paper_clusters
from splitmeans.privacy.noise import NoiseSource
from splitmeans.study.methods import EXACT
from splitmeans.wire.messages import PlainLabelsMessage


def _estimator(
    law: PlainLabels, plan: RunFacts, messages: Sequence[PlainLabelsMessage], noise: NoiseSource
) -> ExactEstimator:
    return ExactEstimator(messages=tuple(messages), n_local_clusters=plan.n_local_clusters)


METHOD: MembershipMethod[PlainLabels, PlainLabelsMessage] = MembershipMethod(
    facts=EXACT,
    law=PlainLabels,
    message=PlainLabelsMessage,
    default_labels=paper_clusters,
    published_law=lambda study, shares, clusters: PlainLabels(),
    tight_law=lambda study, precisions, clusters, groups: PlainLabels(),
    estimator=_estimator,
    noise_lines=lambda law, plan: (),
    # A byte for each user.
    message_size=lambda law, plan, position, users, deviations: (users, 0),
    cell_error=lambda law, plan, users: 0.0,
)
