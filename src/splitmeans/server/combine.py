"""From the parties' messages to pseudo-users (phase 3).

Everything here works on released messages alone, so it is post-processing: it costs no privacy.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from splitmeans._types import IntArray
from splitmeans.errors import ProtocolError
from splitmeans.kernels.one_thread import on_one_thread
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.membership.estimator import WeightEstimator
from splitmeans.membership.methods import method_of
from splitmeans.plan.grid_limits import N_POINTS
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
from splitmeans.synopsis.build import build_synopsis_from_points
from splitmeans.synopsis.decode import (
    KnowsPresence,
    Previous,
    PseudoUsers,
    Released,
    decode,
)
from splitmeans.synopsis.earlier_users import earlier_users
from splitmeans.synopsis.plan_precision import with_precision
from splitmeans.synopsis.presence_counts import count_presence
from splitmeans.synopsis.scaling import scaled_as_agreed
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.wire.messages import PartyRelease


class Combined(NamedTuple):
    """What the messages of all parties say together.

    Attributes:
        synopsis: The pseudo-users.
        presence: How many users are at which parties (`synopsis/presence_counts.py`).
    """

    synopsis: Synopsis
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
    """Return the pseudo-users, and how many users are at which parties.

    `noise` is the server's own, added before anything is computed for publication: it protects
    users from the parties, who know the run key. `previous` is the published synopsis that a run
    of a series follows; some of its pseudo-users stay, which costs nothing: it was released.
    """
    messages = [release.membership for release in releases]
    estimator = method_of(plan.study).estimator(plan.membership, plan, messages, noise)
    centres = [release.centres for release in releases]
    if plan.study.counts_only:
        users = _counted_only(plan, estimator)
    else:
        released = Released(
            estimator=estimator,
            bundles=plan.bundles,
            centres=centres,
            points=_points(plan, releases),
            n_segments=plan.study.n_clusters,
            everyone=plan.study.population == EVERYONE,
        )
        users = decode(released, rng=rng, previous=_previous(plan, previous))
    labels, nodes = users.labels, users.nodes
    if plan.columns is not None and users.weights.sum() > 0:
        # Rows of equal weight exchange single columns.
        counted = count_columns(plan, releases, noise=noise.spawn("columns"))
        rows = draw_evenly(users.weights, N_POINTS, rng=rng)
        labels, nodes = labels[rows], nodes[rows]
        weights = np.full(N_POINTS, float(users.weights.sum()) / N_POINTS)
        labels, nodes = put_together(plan, releases, labels, nodes, counted=counted, rng=rng)
    else:
        weights = users.weights
    synopsis = build_synopsis_from_points(labels, weights, centres, plan.parties, nodes=nodes)
    presence = count_presence(plan, estimator)
    synopsis = with_precision(scaled_as_agreed(synopsis, plan.study), plan, presence)
    return Combined(synopsis=synopsis, presence=presence)


def _counted_only(plan: Plan, estimator: WeightEstimator) -> PseudoUsers:
    """Return one point without columns for the users at all parties."""
    assert isinstance(estimator, KnowsPresence), "the study was not checked"
    n_parties = len(plan.study.parties)
    return PseudoUsers(
        labels=np.zeros((1, n_parties), dtype=np.int64),
        weights=np.array([max(float(estimator.presence()[0].flat[0]), 0.0)]),
        places=(np.zeros((1, 0), dtype=np.int64),) * n_parties,
    )


def _previous(plan: Plan, previous: Synopsis | None) -> Previous | None:
    """Return what the result before says of the columns of this run."""
    users = None if previous is None else earlier_users(previous, plan.parties)
    if users is None or plan.columns is not None:  # a study with tables of columns is not renewed
        return None
    return Previous(
        users=users,
        deviations=lambda total: [law.centre_deviation(max(1, round(total))) for law in plan.local],
    )


def _points(plan: Plan, releases: Sequence[PartyRelease]) -> list[IntArray]:
    """Return the features of each party's synthetic points."""
    return [
        coding_of(party).features(release.points.astype(np.int64))
        for party, release in zip(plan.parties, releases, strict=True)
    ]
