"""What a party computes from its rows for its main release: local centres and memberships.

Everything in this module sees raw rows; everything it returns is a release with an event
(`splitmeans.plan.releases` lists them).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from splitmeans._types import IntArray, LabelArray
from splitmeans.kernels.assign import nearest
from splitmeans.kernels.coded_rows import coded_nearest
from splitmeans.kernels.one_thread import on_one_thread
from splitmeans.local.detail import Detail
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.membership.bundles import ring_order
from splitmeans.party.column_tables import ColumnRecords, encode_columns
from splitmeans.party.memberships import PARTY_SIDES
from splitmeans.party.published_points import published_points
from splitmeans.plan.plan import Plan
from splitmeans.privacy.noise import NoiseSource
from splitmeans.study.category_shares import to_valid_shares
from splitmeans.study.coding import Coding, coding_of
from splitmeans.study.features import features_of
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.table.settled import settle_table
from splitmeans.table.walk.interface import RawRows, Table, Users
from splitmeans.wire.messages import MembershipMessage, PartyRelease


@on_one_thread
def release_party(
    plan: Plan,
    table: Table,
    *,
    run_key: bytes,
    noise: NoiseSource,
    rng: np.random.Generator,
    previous: Synopsis | None = None,
) -> PartyRelease:
    """Release centres and synthetic points, then the memberships that follow from the centres.

    Where the study asks for detail, the rows are asked once more before the points are sent, and
    bins of columns are joined as clusters are. In a study of counts alone there are no centres, and
    memberships say who is a user.

    Guarantee: the composition of the events that `releases_of(plan)` lists for this party and for
    all parties together. The second release sees the first only through the released, quantised
    centres, and a row's label depends on that row and those centres alone. Where the run follows
    an earlier result, `previous` is its synopsis: public values, from which local clustering
    begins; they change no event.
    """
    position = plan.study.party_names.index(table.party)
    if plan.study.counts_only:
        # No column, so no local clustering: all users have the one label there is.
        nowhere = np.zeros((1, 0), dtype=np.int64)
        membership = encode_membership(
            plan, position, table.users, run_key=run_key, noise=noise.spawn("membership")
        )
        no_points = np.zeros((0, 0), dtype=np.int32)
        return PartyRelease(centres=nowhere, points=no_points, membership=membership)
    spec = plan.parties[position]
    table = settle_table(table, plan.study.parties[position], spec)
    rows: RawRows = table.rows
    coding = coding_of(spec)
    start = None if previous is None else published_points(previous, spec, position, rng=rng)
    labels, clusters = plan.n_labels[position], plan.n_local_clusters[position]
    found = GuidedLloyd.of(plan.local[position]).release(
        rows,
        noise=noise.spawn("local"),
        rng=rng,
        start=start,
        without_groups=labels if labels < clusters else None,
    )
    centres, points = to_valid_shares(spec, found.centres), found.points
    in_use = plan
    if not plan.bundles.is_trivial:
        centres = _for_bundles(centres, plan.n_local_clusters[position])
        # As the server will read them: centres may be at one place by chance, too.
        own = plan.bundles.of_party(position, centres)
        in_use = replace(plan, n_local_clusters=own.n_local_clusters)
    shapes = None
    if plan.detail:
        law = plan.detail[position]
        detail = Detail(n_columns=law.n_columns, n_pairs=law.n_pairs, mu=law.mu)
        shapes = detail.release(
            rows,
            centres=centres,
            points=points,
            size=found.size or 1.0,
            coding=coding,
            noise=noise.spawn("detail"),
            rng=rng,
            ranges=[
                (one.low, one.high)
                for one in features_of(spec)
                if one.name in {column.name for column in spec.columns if not column.levels}
            ],
        )
        points = shapes.points
    points = coding.codes(points)
    users = table.labelled(labeller(coding, centres))
    membership = encode_membership(
        in_use, position, users, run_key=run_key, noise=noise.spawn("membership")
    )
    columns = ColumnRecords.none()
    if plan.columns is not None:
        assert shapes is not None, "tables of columns go with detail"
        columns = encode_columns(
            plan,
            position,
            table,
            shapes=shapes,
            points=points,
            coding=coding,
            run_key=run_key,
            noise=noise.spawn("columns"),
        )
    return PartyRelease(
        centres=centres,
        points=points.astype(np.int32),
        membership=membership,
        column_edges=columns.edges,
        columns=columns.records,
    )


def _for_bundles(centres: IntArray, n_clusters: int) -> IntArray:
    """Return the centres in the order of a ring; fewer than planned as they are, the last repeated.

    See `membership/bundles.py`. Released centres are all that it looks at.
    """
    if len(centres) == n_clusters:
        return np.asarray(centres[ring_order(centres)])
    return np.concatenate([centres, np.repeat(centres[-1:], n_clusters - len(centres), axis=0)])


def encode_membership(
    plan: Plan,
    position: int,
    users: Users,
    *,
    run_key: bytes,
    noise: NoiseSource,
) -> MembershipMessage:
    """Encode which user is in which cluster; see the `encode` of the plan's method."""
    release = PARTY_SIDES[plan.study.membership].release
    return release(plan.membership, plan, position, users, run_key=run_key, noise=noise)


def labeller(coding: Coding, centres: IntArray) -> Callable[[IntArray], LabelArray]:
    """Return what labels blocks of coded rows with their nearest centre, lowest index on ties (R7).

    Guarantee: a row's label is a pure function of that row and `centres`.
    """
    if coding.is_plain:
        return partial(nearest, centres=centres)
    limits = np.array(coding.bounds, dtype=np.int64)
    return partial(coded_nearest, centres=centres, limits=limits, levels=coding.levels)
