"""From the parties' messages to the weighted grid and its centres (phases 3 and 4).

Everything here works on released messages alone, so it is post-processing: it costs no privacy.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ProtocolError
from splitmeans.kernels.one_thread import on_one_thread
from splitmeans.membership.estimator import KnowsDeviation, WeightEstimator
from splitmeans.membership.methods import method_of
from splitmeans.plan.grid_limits import COUNTS, PRESENCE
from splitmeans.plan.plan import Plan
from splitmeans.privacy.noise import NoiseSource
from splitmeans.server.column_tables import (
    count_columns,
    problem_of_columns,
    put_together,
)
from splitmeans.study import EVERYONE
from splitmeans.study.category_shares import shares_are_valid
from splitmeans.study.coding import coding_of
from splitmeans.synopsis.build import all_cells, build_synopsis_from_points
from splitmeans.synopsis.carried_over import place_with_earlier
from splitmeans.synopsis.cluster_sizes import shares_of_clusters
from splitmeans.synopsis.earlier_users import earlier_users
from splitmeans.synopsis.many import bundled_points, latent_points
from splitmeans.synopsis.plan_precision import with_precision
from splitmeans.synopsis.presence import KnowsPresence, presence_points
from splitmeans.synopsis.presence_counts import count_presence
from splitmeans.synopsis.pseudo_users import place_users
from splitmeans.synopsis.regions import regions_of
from splitmeans.synopsis.scaling import scaled_as_agreed
from splitmeans.synopsis.softening import softened_weights
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.wire.messages import PartyRelease


class Combined(NamedTuple):
    """What the messages of all parties say together.

    Attributes:
        synopsis: The weighted grid.
        weights: The cell weights of a dense grid, shape (k'_1, ..., k'_S); None without one.
        presence: How many users are at which parties (`synopsis/presence_counts.py`).
    """

    synopsis: Synopsis
    weights: FloatArray | None
    presence: IntArray


def check_release(plan: Plan, party: str, release: PartyRelease) -> None:
    """Refuse a release whose shapes or kinds are not those of the plan."""
    spec = plan.party(party)
    coding = coding_of(spec)
    bounds = np.array(coding.bounds)
    position = plan.study.party_names.index(party)
    shape = (plan.n_local_clusters[position], len(bounds))
    points_shape = (plan.study.n_points, len(coding.levels))
    for what, places, expected_shape in (
        ("centres", release.centres, shape),
        ("points", release.points, points_shape),
    ):
        if places.shape != expected_shape:
            raise ProtocolError(
                f"party {party!r} sent {what} of shape {places.shape}, expected {expected_shape}"
            )
    # Both sides apart: the absolute value of -2^63 is negative in 64 bits.
    if np.any((release.centres > bounds) | (release.centres < -bounds)):
        raise ProtocolError(f"party {party!r} sent centres outside the study's bounds")
    if not shares_are_valid(spec, release.centres):
        raise ProtocolError(
            f"party {party!r} sent centres with shares of categories that do not add up to 1"
        )
    wrong = coding.problem_of_codes(release.points.astype(np.int64))
    if wrong is not None:
        raise ProtocolError(f"party {party!r} sent points {wrong}")
    method = method_of(plan.study)
    expected = method.message
    if not isinstance(release.membership, expected):
        raise ProtocolError(
            f"party {party!r} sent {type(release.membership).__name__}, "
            f"expected {expected.__name__}"
        )
    problem = problem_of_columns(plan, position, release)
    if problem is not None:
        raise ProtocolError(f"party {party!r} sent {problem}")


@on_one_thread
def combine(
    plan: Plan,
    releases: Sequence[PartyRelease],
    *,
    noise: NoiseSource,
    rng: np.random.Generator,
    previous: Synopsis | None = None,
) -> Combined:
    """Return the weighted grid, and who is at which parties.

    `noise` is the server's own, added before anything is computed for publication: it protects
    users from the parties, who know the run key. `previous` is the published synopsis that a run
    of a series follows; some of its pseudo-users stay, which costs nothing: it was released.
    """
    messages = [release.membership for release in releases]
    estimator = method_of(plan.study).estimator(plan.membership, plan, messages, noise)
    centres: list[IntArray] = [release.centres for release in releases]
    labels, weights, dense = _cells(plan, estimator, releases, rng=rng)
    nodes = None
    if plan.study.n_points:
        points = _points(plan, releases)
        labels, weights, nodes = _placed(
            plan, (labels, weights), centres, points, previous=previous, rng=rng
        )
        if plan.columns is not None:
            counted = count_columns(plan, releases, noise=noise.spawn("columns"))
            labels, nodes = put_together(plan, releases, labels, nodes, counted=counted, rng=rng)
    parties = plan.parties
    synopsis = build_synopsis_from_points(labels, weights, centres, parties, nodes=nodes)
    return Combined(
        synopsis=with_precision(scaled_as_agreed(synopsis, plan.study), plan),
        weights=dense,
        presence=count_presence(plan, estimator),
    )


def _cells(
    plan: Plan,
    estimator: WeightEstimator,
    releases: Sequence[PartyRelease],
    *,
    rng: np.random.Generator,
) -> tuple[IntArray, FloatArray, FloatArray | None]:
    """Return labels and weights of all cells, or of some where they are too many, and the grid."""
    if plan.grid_method == COUNTS:
        assert isinstance(estimator, KnowsPresence), "the study was not checked"
        everywhere = max(float(estimator.presence()[0].flat[0]), 0.0)
        return np.zeros((1, len(plan.study.parties)), np.int64), np.array([everywhere]), None
    if plan.grid_method == PRESENCE:
        assert isinstance(estimator, KnowsPresence), "the study was not checked"
        points = presence_points(
            estimator,
            n_classes=3 * plan.study.n_clusters,
            everyone=plan.study.population == EVERYONE,
            rng=rng,
        )
        return *points, None
    deviation = _deviation(plan, estimator)
    if plan.grid_method == "many":
        n_classes = 2 * plan.study.n_clusters
        bundles = plan.bundles.in_use([release.centres for release in releases])
        if not bundles.is_trivial:
            assert deviation is not None, "the noise of a decoy join is known"
            shares = [
                shares_of_clusters(points, release.centres)[:clusters]
                for points, release, clusters in zip(
                    _points(plan, releases), releases, bundles.n_local_clusters, strict=True
                )
            ]
            found = bundled_points(
                estimator,
                bundles,
                shares,
                n_classes=n_classes,
                rng=rng,
                deviation=deviation,
            )
            return *found, None
        return *latent_points(estimator, n_classes=n_classes, rng=rng, deviation=deviation), None
    weights = softened_weights(
        estimator,
        deviation=deviation,
        n_classes=2 * plan.study.n_clusters,
        rng=rng.spawn(1)[0],
        regions=regions_of([release.centres for release in releases]),
    )
    return all_cells(weights.shape), weights.ravel(), weights


def _points(plan: Plan, releases: Sequence[PartyRelease]) -> list[IntArray]:
    """Return the features of each party's synthetic points."""
    return [
        coding_of(party).features(release.points.astype(np.int64))
        for party, release in zip(plan.parties, releases, strict=True)
    ]


def _placed(
    plan: Plan,
    cells: tuple[IntArray, FloatArray],
    centres: Sequence[IntArray],
    points: Sequence[IntArray],
    *,
    previous: Synopsis | None,
    rng: np.random.Generator,
) -> tuple[IntArray, FloatArray, IntArray]:
    """Return pseudo-users of the cells; in a run that follows another some of them are its."""
    labels, weights = cells
    k = plan.study.n_clusters
    if plan.columns is not None:  # a study that is not renewed
        return place_users(labels, weights, centres, points, rng=rng, equal=True)
    earlier = None if previous is None else earlier_users(previous, plan.parties)
    if earlier is None:
        return place_users(labels, weights, centres, points, rng=rng, n_segments=k)
    users = max(1, round(float(weights.sum())))
    deviations = [law.centre_deviation(users) for law in plan.local]
    return place_with_earlier(
        labels,
        weights,
        centres,
        points,
        earlier=earlier,
        deviations=deviations,
        rng=rng,
        n_segments=k,
    )


def _deviation(plan: Plan, estimator: WeightEstimator) -> float | None:
    """Standard deviation of the noise on a cell of a pair, where it is known."""
    if not isinstance(estimator, KnowsDeviation):
        return None
    return max(estimator.deviation(group) for group in plan.groups)
