"""What public code asks of the cell sketch; see `membership.method`."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from splitmeans._types import FloatArray, NoiseLine
from splitmeans.errors import ParameterError
from splitmeans.membership.method import MembershipMethod, RunFacts, enough_clusters
from splitmeans.membership.sketch.cost import MAX_WORK, decoding_work, most_clusters
from splitmeans.membership.sketch.estimate import CellSketchEstimator
from splitmeans.membership.sketch.law import SketchLaw, floor_for, phantoms_for
from splitmeans.privacy.noise import NoiseSource
from splitmeans.privacy.register_law import log_cdf
from splitmeans.privacy.split import Precisions
from splitmeans.study import Study
from splitmeans.study.methods import SKETCH
from splitmeans.wire.messages import CellSketchMessage

_LOCAL_CLUSTERS = 6


def _law_at(study: Study, precisions: Precisions, n_releases: int) -> SketchLaw:
    gamma, repetitions = study.sketch.base, study.sketch.repetitions
    floor = floor_for(study.assumed_users, gamma=gamma)
    mu = precisions.membership
    return SketchLaw(
        repetitions=repetitions,
        gamma=gamma,
        phantoms=phantoms_for(mu, repetitions=repetitions, gamma=gamma, floor=floor),
        floor=floor,
    )


def _estimator(
    law: SketchLaw, plan: RunFacts, messages: Sequence[CellSketchMessage], noise: NoiseSource
) -> CellSketchEstimator:
    return CellSketchEstimator(
        law=law,
        messages=tuple(messages),
        groups=plan.groups,
        n_local_clusters=plan.n_local_clusters,
    )


def _noise_lines(law: SketchLaw, plan: RunFacts) -> Iterator[NoiseLine]:
    yield "phantoms in each cell", float(law.phantoms), "phantom users"


def _message_size(
    law: SketchLaw, plan: RunFacts, position: int, users: int, deviations: int
) -> tuple[int, int]:
    own_groups = [group for group in plan.groups if position in group]
    return 2 * law.repetitions * plan.n_local_clusters[position] * len(own_groups), 0


def _work(law: SketchLaw, plan: RunFacts, users: int) -> float:
    return decoding_work(
        law, groups=plan.groups, n_local_clusters=plan.n_local_clusters, users=users
    )


def _check_plan(law: SketchLaw, plan: RunFacts) -> None:
    """Refuse sketches that the server would read for longer than anyone waits."""
    users = plan.study.assumed_users
    if _work(law, plan, users) > MAX_WORK:
        fewer = most_clusters(law, n_groups=len(plan.groups), users=users)
        raise ParameterError(
            f"n_local_clusters={max(plan.n_local_clusters)} at {len(plan.study.parties)} parties "
            f"takes the server too long to read from sketches with gamma={law.gamma:g}: "
            f"n_local_clusters must be <= {fewer}, or raise gamma, or take membership='decoy'"
        )


def _cell_error(law: SketchLaw, plan: RunFacts, users: int) -> float:
    """Return 1 / sqrt(Fisher information) of the shared users of two average clusters.

    A row says which register is larger and its value v (`sketch.likelihood`). With a and b
    elements, w of them shared, and F the law of one value, phantoms included:

        P(first larger, v) = F(v-1)^b (F(v)^(a-w) - F(v-1)^(a-w)),   likewise for the second,
        P(equal, v)        = what is left of P(both at most v) = F(v)^(a+b-w).
    """
    width = max(plan.n_local_clusters)
    set_size = users / width + law.shared_phantoms((width,))
    shared = users / width**2 + law.phantoms
    values = np.arange(max(law.floor, 1), law.largest_register + 1)
    log_f = log_cdf(values, gamma=law.gamma)
    before = np.concatenate([[-np.inf], log_f[:-1]])  # the floor takes everything below it

    def larger(w: float) -> FloatArray:
        own = set_size - w
        with np.errstate(invalid="ignore"):
            tops = np.exp(own * log_f) - np.exp(own * before)
        return np.asarray(np.exp(set_size * before) * tops)

    def outcomes(w: float) -> FloatArray:
        union = 2 * set_size - w
        either = np.exp(union * log_f) - np.exp(union * before)
        return np.stack([larger(w), larger(w), either - 2 * larger(w)])

    step = 1e-4 * shared
    low, middle, high = (outcomes(shared + change) for change in (-step, 0.0, step))
    likely = middle > 1e-14
    slope = (high - low)[likely] / (2 * step)
    information = law.repetitions * float((slope**2 / middle[likely]).sum())
    return 1 / math.sqrt(information)


METHOD: MembershipMethod[SketchLaw, CellSketchMessage] = MembershipMethod(
    facts=SKETCH,
    law=SketchLaw,
    message=CellSketchMessage,
    default_labels=lambda study, users: max(_LOCAL_CLUSTERS, enough_clusters(study)),
    law_at=_law_at,
    estimator=_estimator,
    noise_lines=_noise_lines,
    message_size=_message_size,
    cell_error=_cell_error,
    check_plan=_check_plan,
)
