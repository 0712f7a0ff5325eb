"""How many users a counted cell is off: the error of the membership step.

A cell is one local cluster of each party of a group, for most studies of a pair of parties. Errors
are standard deviations for a cell of average size, before anything is cut or made consistent.
"""

import math

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.membership.cell_sketch.law import CellSketch
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.exact.law import PlainLabels
from splitmeans.membership.ldp.estimate import inverse_support
from splitmeans.membership.ldp.law import RandomisedLabels
from splitmeans.membership.sketch.auto_clusters import cell_deviation
from splitmeans.membership.sketch.law import PublishedSketch
from splitmeans.plan import Plan
from splitmeans.privacy.register_law import log_cdf


def cell_error(plan: Plan, *, users: int) -> float | None:
    """Return the standard deviation of a cell's count, in users.

    None for "independent", which counts no cells: it multiplies cluster sizes as if the parties'
    clusters had nothing to do with each other, and how wrong that is only the data knows.
    """
    width = max(plan.n_local_clusters)
    match plan.membership:
        case DecoyLaw() as law:
            return _decoy(plan, law, users=users)
        case CellSketch() as law:
            return _sketch(law, width=width, users=users)
        case PublishedSketch() as law:
            # The paper's Theorem 6.
            return cell_deviation(
                n_users=users,
                cell_users=users / width**2,
                n_local_clusters=width,
                repetitions=law.repetitions,
                epsilon=law.epsilon,
                delta=law.delta,
            )
        case RandomisedLabels() as law:
            return math.sqrt(users * (_amplification(law) ** 2 - 1) / width**2)
        case PlainLabels():
            return 0.0
    return None


def segment_error(plan: Plan, *, users: int) -> float | None:
    """Return the standard deviation of the size of an average segment, in users.

    A segment is a sum of cells with noise of their own, 1/k of those that a group counts. The
    server takes out part of the noise (no cell is below zero, small ones are cut), so this is on
    the safe side: `intervals.sizes` finds about as much after a run of two parties without gaps
    between segments, and about half of it with four parties and gaps. Known where that is known.
    """
    if not isinstance(plan.membership, DecoyLaw) or plan.grid_method not in ("pairs", "joint"):
        return None
    cells = cells_of_group(plan) / plan.study.n_clusters
    return _decoy(plan, plan.membership, users=users) * math.sqrt(cells)


def cells_of_group(plan: Plan) -> int:
    """Return how many cells one membership release counts."""
    size = len(plan.groups[0]) if plan.groups else 2
    return int(max(plan.n_local_clusters) ** size)


def _decoy(plan: Plan, law: DecoyLaw, *, users: int) -> float:
    """See `DecoyEstimator.deviation`, with expected numbers for estimated ones."""
    per_cell = float(law.variance) + law.server_sigma**2
    amplification = 1.0
    for party in plan.groups[0]:
        response = plan.collusion_laws[party]
        if response is not None:
            amplification *= float(np.square(inverse_support(response)[:, 0]).sum())
    rate = plan.sample_rate
    from_users = (amplification / rate - 1) * users / cells_of_group(plan)
    return math.sqrt(per_cell * amplification / rate**2 + from_users)


def _amplification(law: RandomisedLabels) -> float:
    """Return how much one user's inverted report adds to the squares of all sizes."""
    if not law.uses_hashing:
        return float(np.square(inverse_support(law)[:, 0]).sum())
    p, q = float(law.true_support), float(law.false_support)
    return 1 + (p * (1 - p) + (law.n_local_clusters - 1) * q * (1 - q)) / (p - q) ** 2


def _sketch(law: CellSketch, *, width: int, users: int) -> float:
    """Return 1 / sqrt(Fisher information) of the shared users of two average clusters.

    A row says which register is larger and its value v (`cell_sketch.likelihood`). With a and b
    elements, w of them shared, and F the law of one value, phantoms included:

        P(first larger, v) = F(v-1)^b (F(v)^(a-w) - F(v-1)^(a-w)),   likewise for the second,
        P(equal, v)        = what is left of P(both at most v) = F(v)^(a+b-w).
    """
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
