"""From the parties' messages to the weighted grid and its centres (phases 3 and 4).

Everything here works on released messages alone, so it is post-processing: it costs no privacy.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ProtocolError
from splitmeans.features import bounds_of, features_of
from splitmeans.grid.joint import joint_weights, mend_sums
from splitmeans.grid.many import latent_points
from splitmeans.grid.pairs import pairs_weights
from splitmeans.grid.pairs_paper import pair_weights
from splitmeans.grid.segments import assign_nodes
from splitmeans.grid.synopsis import Synopsis, build_synopsis, build_synopsis_from_points
from splitmeans.membership.cell_sketch.estimate import CellSketchEstimator
from splitmeans.membership.cell_sketch.law import CellSketch
from splitmeans.membership.decoy.estimate import DecoyEstimator, add_server_noise, join_counts
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.estimator import WeightEstimator
from splitmeans.membership.exact.estimate import ExactEstimator
from splitmeans.membership.exact.law import PlainLabels
from splitmeans.membership.independent.estimate import IndependentEstimator
from splitmeans.membership.independent.law import NoisyHistogram
from splitmeans.membership.ldp.estimate import LdpEstimator
from splitmeans.membership.ldp.law import RandomisedLabels
from splitmeans.membership.sketch.estimate import SketchEstimator
from splitmeans.membership.sketch.law import PublishedSketch
from splitmeans.plan import Plan
from splitmeans.privacy.noise import NoiseSource
from splitmeans.shares import shares_are_valid
from splitmeans.wire.messages import (
    CellSketchMessage,
    DecoyMessage,
    HistogramMessage,
    MembershipMessage,
    PartyRelease,
    PlainLabelsMessage,
    RandomisedLabelsMessage,
    SketchMessage,
)

_Kind = TypeVar("_Kind")

# As many rows as sums on the grid are exact for (`features`). Products of counts of as many parties
# as a grid can have then stay below the largest float.
MAX_USERS = 2**40

_MESSAGE_OF_LAW: dict[type, type] = {
    DecoyLaw: DecoyMessage,
    CellSketch: CellSketchMessage,
    PublishedSketch: SketchMessage,
    NoisyHistogram: HistogramMessage,
    RandomisedLabels: RandomisedLabelsMessage,
    PlainLabels: PlainLabelsMessage,
}


def check_release(plan: Plan, party: str, release: PartyRelease) -> None:
    """Refuse a release whose shapes or kinds are not those of the plan."""
    bounds = bounds_of(features_of(plan.study.party(party)))
    position = plan.study.party_names.index(party)
    shape = (plan.n_local_clusters[position], len(bounds))
    if release.centres.shape != shape:
        raise ProtocolError(
            f"party {party!r} sent centres of shape {release.centres.shape}, expected {shape}"
        )
    # Both sides apart: the absolute value of -2^63 is negative in 64 bits.
    if np.any((release.centres > bounds) | (release.centres < -bounds)):
        raise ProtocolError(f"party {party!r} sent a centre outside the study's bounds")
    if not shares_are_valid(plan.study.party(party), release.centres):
        raise ProtocolError(f"party {party!r} sent shares of categories that do not add up to 1")
    expected = _MESSAGE_OF_LAW[type(plan.membership)]
    if not isinstance(release.membership, expected):
        raise ProtocolError(
            f"party {party!r} sent {type(release.membership).__name__}, "
            f"expected {expected.__name__}"
        )
    _check_width(plan, party, release.membership, n_clusters=shape[0])


def _check_width(plan: Plan, party: str, membership: MembershipMessage, *, n_clusters: int) -> None:
    """Refuse numbers for more or fewer clusters than the party has, where an estimator would not.

    The other kinds of messages are checked against k' by their estimators.
    """
    fitting: tuple[int, ...]
    match membership:
        case SketchMessage(registers=registers):
            found, fitting = registers.shape, (plan.study.sketch.repetitions, n_clusters)
        case HistogramMessage(noisy_counts=counts):
            found, fitting = counts.shape, (n_clusters,)
            if np.any((counts > MAX_USERS) | (counts < -MAX_USERS)):
                raise ProtocolError(f"party {party!r} sent a count that no table can have")
        case _:
            return
    if found != fitting:
        raise ProtocolError(
            f"party {party!r} sent a {type(membership).__name__} of shape {found}, "
            f"expected {fitting}"
        )


def combine(
    plan: Plan,
    releases: Sequence[PartyRelease],
    *,
    noise: NoiseSource,
    rng: np.random.Generator,
) -> tuple[Synopsis, FloatArray | None]:
    """Return the synopsis, and the cell weights of a dense grid, shape (k'_1, ..., k'_S).

    `noise` is the server's own, added before anything is computed for publication: it protects
    users from the parties, who know the run key.
    """
    estimator = _estimator(plan, [release.membership for release in releases], noise=noise)
    centres: list[IntArray] = [release.centres for release in releases]
    parties = plan.study.parties
    if plan.grid_method == "many":
        labels, point_weights = latent_points(
            estimator,
            n_classes=2 * plan.study.n_clusters,
            rng=rng,
            deviation=_deviation(plan, estimator),
        )
        return build_synopsis_from_points(labels, point_weights, centres, parties), None
    total = None if plan.noisy_count is None else _total(plan)
    match plan.grid_method:
        case "pairs-paper":
            weights = pair_weights(estimator, total=total, rng=rng)
        case "pairs":
            weights = pairs_weights(estimator, deviation=_deviation(plan, estimator))
        case _:
            deviation = _deviation(plan, estimator)
            weights = joint_weights(estimator, total=total, deviation=deviation)
            if deviation is not None and len(parties) > 2:
                # Of the table of three parties or more so much is cut that sizes need mending.
                cut = build_synopsis(weights, centres, parties)
                found = cut.cluster(plan.study.n_clusters, random_state=rng)
                segments, _ = assign_nodes(cut, found.scaled_centres)
                estimate = estimator.joint(range(len(parties)))
                weights = mend_sums(weights, estimate, deviation=deviation, blocks=segments)
    return build_synopsis(weights, centres, parties), weights


def _deviation(plan: Plan, estimator: WeightEstimator) -> float | None:
    """Standard deviation of the noise on a cell of a pair, where it is known."""
    if not isinstance(estimator, DecoyEstimator):
        return None
    return max(estimator.deviation(group) for group in plan.groups)


def _estimator(
    plan: Plan, memberships: Sequence[MembershipMessage], *, noise: NoiseSource
) -> WeightEstimator:
    n_parties = len(memberships)
    match plan.membership:
        case DecoyLaw() as law:
            equal_sets = plan.study.user_sets == "equal"
            counts = join_counts(
                _all_of(DecoyMessage, memberships),
                groups=plan.groups,
                n_local_clusters=plan.n_local_clusters,
                equal_sets=equal_sets,
            )
            return DecoyEstimator(
                law=law,
                noisy_tables=add_server_noise(law, counts, equal_sets=equal_sets, noise=noise),
                n_local_clusters=plan.n_local_clusters,
                equal_sets=equal_sets,
                sample_rate=plan.sample_rate,
                collusion=plan.collusion_laws,
            )
        case CellSketch() as law:
            return CellSketchEstimator(
                law=law,
                messages=_all_of(CellSketchMessage, memberships),
                groups=plan.groups,
                n_local_clusters=plan.n_local_clusters,
            )
        case PublishedSketch() as law:
            return SketchEstimator(
                law=law,
                messages=_all_of(SketchMessage, memberships),
                noisy_count=_total(plan),
                estimator=plan.study.sketch.estimator,
            )
        case NoisyHistogram():
            histograms = _all_of(HistogramMessage, memberships)
            return IndependentEstimator(messages=histograms, noisy_count=_total(plan))
        case RandomisedLabels() as law:
            reports = _all_of(RandomisedLabelsMessage, memberships)
            return LdpEstimator(laws=(law,) * n_parties, messages=reports)
        case PlainLabels():
            labels = _all_of(PlainLabelsMessage, memberships)
            return ExactEstimator(messages=labels, n_local_clusters=plan.n_local_clusters)


def _total(plan: Plan) -> float:
    """The noisy user count; noise may have made it negative, and no count is below one."""
    assert plan.noisy_count is not None
    return max(float(plan.noisy_count), 1.0)


def _all_of(kind: type[_Kind], memberships: Sequence[MembershipMessage]) -> tuple[_Kind, ...]:
    """Narrow the messages to the one kind that `check_release` let through."""
    return tuple(message for message in memberships if isinstance(message, kind))
