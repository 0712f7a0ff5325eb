"""From the parties' messages to the weighted grid and its centres (phases 3 and 4).

Everything here works on released messages alone, so it is post-processing: it costs no privacy.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ProtocolError
from splitmeans.features import bounds_of, features_of
from splitmeans.grid.joint import joint_weights
from splitmeans.grid.pairs_paper import pair_weights
from splitmeans.grid.synopsis import Synopsis, build_synopsis
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
from splitmeans.wire.messages import (
    HistogramMessage,
    MembershipMessage,
    PartyRelease,
    PlainLabelsMessage,
    RandomisedLabelsMessage,
    SketchMessage,
)

_Kind = TypeVar("_Kind")

_MESSAGE_OF_LAW: dict[type, type] = {
    PublishedSketch: SketchMessage,
    NoisyHistogram: HistogramMessage,
    RandomisedLabels: RandomisedLabelsMessage,
    PlainLabels: PlainLabelsMessage,
}


def check_release(plan: Plan, party: str, release: PartyRelease) -> None:
    """Refuse a release whose shapes or kinds are not those of the plan."""
    bounds = bounds_of(features_of(plan.study.party(party)))
    shape = (plan.n_local_clusters, len(bounds))
    if release.centres.shape != shape:
        raise ProtocolError(
            f"party {party!r} sent centres of shape {release.centres.shape}, expected {shape}"
        )
    if np.any(np.abs(release.centres) > bounds):
        raise ProtocolError(f"party {party!r} sent a centre outside the study's bounds")
    expected = _MESSAGE_OF_LAW[type(plan.membership)]
    if not isinstance(release.membership, expected):
        raise ProtocolError(
            f"party {party!r} sent {type(release.membership).__name__}, "
            f"expected {expected.__name__}"
        )


def combine(
    plan: Plan, releases: Sequence[PartyRelease], *, rng: np.random.Generator
) -> tuple[Synopsis, FloatArray]:
    """Return the synopsis and the cell weights, shape (k',) * S, from checked releases."""
    estimator = _estimator(plan, [release.membership for release in releases])
    total = None if plan.noisy_count is None else _total(plan)
    if plan.grid_method == "pairs-paper":
        weights = pair_weights(estimator, total=total, rng=rng)
    else:
        weights = joint_weights(estimator, total=total)
    centres: list[IntArray] = [release.centres for release in releases]
    return build_synopsis(weights, centres, plan.study.parties), weights


def _estimator(plan: Plan, memberships: Sequence[MembershipMessage]) -> WeightEstimator:
    n_parties = len(memberships)
    match plan.membership:
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
            shape = (plan.n_local_clusters,) * n_parties
            return ExactEstimator(messages=labels, n_local_clusters=shape)


def _total(plan: Plan) -> float:
    """The noisy user count; noise may have made it negative, and no count is below one."""
    assert plan.noisy_count is not None
    return max(float(plan.noisy_count), 1.0)


def _all_of(kind: type[_Kind], memberships: Sequence[MembershipMessage]) -> tuple[_Kind, ...]:
    """Narrow the messages to the one kind that `check_release` let through."""
    return tuple(message for message in memberships if isinstance(message, kind))
