"""What public code asks of the published sketch; see `membership.method`."""

from collections.abc import Iterator, Sequence

from splitmeans._types import NoiseLine
from splitmeans.membership.method import (
    MembershipMethod,
    RunFacts,
    counted_users,
    shape_problem,
)
from splitmeans.membership.sketch_paper.auto_clusters import cell_deviation, paper_local_clusters
from splitmeans.membership.sketch_paper.estimate import SketchEstimator
from splitmeans.membership.sketch_paper.law import SketchPaperLaw
from splitmeans.privacy.noise import NoiseSource
from splitmeans.privacy.split import Shares, paper_split
from splitmeans.study import Study
from splitmeans.study.methods import SKETCH_PAPER
from splitmeans.wire.messages import SketchMessage


def _default_labels(study: Study, users: int) -> int:
    n_parties = len(study.parties)
    shares = paper_split(study.budget, n_parties=n_parties, needs_count=True)
    return paper_local_clusters(
        noisy_count=users,
        n_clusters=study.n_clusters,
        n_parties=n_parties,
        repetitions=study.sketch.repetitions,
        epsilon=shares.membership_epsilon,
        delta=shares.membership_delta,
    )


def _published_law(study: Study, shares: Shares, clusters: int) -> SketchPaperLaw:
    return SketchPaperLaw(
        epsilon=shares.membership_epsilon,
        delta=shares.membership_delta,
        gamma=study.gamma,
        repetitions=study.sketch.repetitions,
    )


def _estimator(
    law: SketchPaperLaw, plan: RunFacts, messages: Sequence[SketchMessage], noise: NoiseSource
) -> SketchEstimator:
    return SketchEstimator(
        law=law,
        messages=tuple(messages),
        noisy_count=counted_users(plan),
        estimator=plan.study.sketch.estimator,
    )


def _noise_lines(law: SketchPaperLaw, plan: RunFacts) -> Iterator[NoiseLine]:
    yield "phantoms in each cluster", float(law.phantoms), "phantom users"


def _message_size(
    law: SketchPaperLaw, plan: RunFacts, position: int, users: int, deviations: int
) -> tuple[int, int]:
    return 2 * law.repetitions * plan.n_local_clusters[position], 0


def _cell_error(law: SketchPaperLaw, plan: RunFacts, users: int) -> float:
    """Return the error of the paper's Theorem 6."""
    width = max(plan.n_local_clusters)
    return cell_deviation(
        n_users=users,
        cell_users=users / width**2,
        n_local_clusters=width,
        repetitions=law.repetitions,
        epsilon=law.epsilon,
        delta=law.delta,
    )


def _check_message(plan: RunFacts, position: int, message: SketchMessage) -> str | None:
    expected = (plan.study.sketch.repetitions, plan.n_local_clusters[position])
    return shape_problem(message, message.registers.shape, expected)


METHOD: MembershipMethod[SketchPaperLaw, SketchMessage] = MembershipMethod(
    facts=SKETCH_PAPER,
    law=SketchPaperLaw,
    message=SketchMessage,
    default_labels=_default_labels,
    published_law=_published_law,
    estimator=_estimator,
    noise_lines=_noise_lines,
    message_size=_message_size,
    cell_error=_cell_error,
    check_message=_check_message,
)
