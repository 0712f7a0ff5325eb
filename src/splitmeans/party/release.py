"""What a party computes from its rows for its main release: local centres and memberships.

Everything in this module sees raw rows; everything it returns is a release with an event
(`splitmeans.plan.releases` lists them).
"""

from functools import partial

import numpy as np

from splitmeans.kernels.assign import nearest
from splitmeans.local.algorithms import mechanism_of
from splitmeans.party.memberships import PARTY_SIDES
from splitmeans.plan.plan import Plan
from splitmeans.privacy.noise import NoiseSource
from splitmeans.study.category_shares import to_valid_shares
from splitmeans.table.settled import settle_table
from splitmeans.table.walk.interface import Table, Users
from splitmeans.wire.messages import MembershipMessage, PartyRelease


def release_party(
    plan: Plan,
    table: Table,
    *,
    run_key: bytes,
    noise: NoiseSource,
    rng: np.random.Generator,
) -> PartyRelease:
    """Release centres and synthetic points, then the memberships that follow from the centres.

    Guarantee: the composition of the events that `releases_of(plan)` lists for this party and for
    all parties together. The second release sees the first only through the released, quantised
    centres, and a row's label depends on that row and those centres alone.
    """
    position = plan.study.party_names.index(table.party)
    mechanism = mechanism_of(plan.local[position])
    table = settle_table(table, plan.study.parties[position], plan.parties[position])
    found = mechanism.release(table.rows, noise=noise.spawn("local"), rng=rng)
    spec = plan.parties[position]
    centres, points = to_valid_shares(spec, found.centres), to_valid_shares(spec, found.points)
    users = table.labelled(partial(nearest, centres=centres))
    membership = encode_membership(
        plan, position, users, run_key=run_key, noise=noise.spawn("membership")
    )
    return PartyRelease(centres=centres, points=points.astype(np.int32), membership=membership)


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
