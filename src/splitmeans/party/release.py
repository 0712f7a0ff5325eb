"""What a party computes from its rows: the noisy count, the local centres, the memberships.

Everything in this module sees raw rows; everything it returns is a release with an event
(`splitmeans.releases` lists them).
"""

from functools import partial, reduce

import numpy as np

from splitmeans._types import IntArray, LabelArray
from splitmeans.engine.walk import Records, Table, UserBlock, Users
from splitmeans.kernels.assign import nearest
from splitmeans.kernels.siphash import hash_ids
from splitmeans.membership.cell_sketch.encode import encode as encode_cell_sketch
from splitmeans.membership.cell_sketch.law import CellSketch
from splitmeans.membership.decoy.encode import encode as encode_decoy
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.exact.encode import encode as encode_exact
from splitmeans.membership.exact.law import PlainLabels
from splitmeans.membership.independent.encode import count_labels, encode_counts
from splitmeans.membership.independent.law import NoisyHistogram
from splitmeans.membership.ldp.encode import encode as encode_ldp
from splitmeans.membership.ldp.law import RandomisedLabels
from splitmeans.membership.sketch.encode import encode as encode_sketch
from splitmeans.membership.sketch.law import PublishedSketch
from splitmeans.plan import Plan
from splitmeans.privacy.noise import NoiseSource
from splitmeans.shares import to_valid_shares
from splitmeans.wire import keys
from splitmeans.wire.messages import CountRelease, MembershipMessage, PartyRelease


def release_count(plan: Plan, table: Table, *, noise: NoiseSource) -> CountRelease:
    """Release the number of users.

    Guarantee: the plan's count event: sensitivity 1, discrete Laplace noise.
    """
    assert plan.count_scale is not None
    noisy_count = len(table) + int(noise.laplace(plan.count_scale, 1)[0])
    return CountRelease(noisy_count=noisy_count)


def release_party(
    plan: Plan,
    table: Table,
    *,
    run_key: bytes,
    noise: NoiseSource,
    rng: np.random.Generator,
) -> PartyRelease:
    """Release the local centres, then the memberships that follow from the released centres.

    Guarantee: the composition of the events that `releases_of(plan)` lists for this party and for
    all parties together. The second release sees the first only through the released, quantised
    centres, and a row's label depends on that row and those centres alone.
    """
    position = plan.study.party_names.index(table.party)
    found = plan.local[position].release(table.rows, noise=noise.spawn("local"), rng=rng)
    centres = to_valid_shares(plan.study.parties[position], found)
    users = table.labelled(partial(nearest, centres=centres))
    membership = encode_membership(
        plan, position, users, run_key=run_key, noise=noise.spawn("membership")
    )
    return PartyRelease(centres=centres, membership=membership)


def encode_membership(
    plan: Plan,
    position: int,
    users: Users,
    *,
    run_key: bytes,
    noise: NoiseSource,
) -> MembershipMessage:
    """Encode which user is in which cluster; see the `encode` of the plan's method."""
    match plan.membership:
        case DecoyLaw() as law:
            return encode_decoy(
                law,
                users=users,
                position=position,
                groups=plan.groups,
                n_local_clusters=plan.n_local_clusters,
                run_key=run_key,
                equal_sets=plan.study.user_sets == "equal",
                sample_rate=plan.sample_rate,
                collusion=plan.collusion_laws[position],
                noise=noise,
            )
        case CellSketch() as law:
            return encode_cell_sketch(
                law,
                users=users,
                position=position,
                groups=plan.groups,
                n_local_clusters=plan.n_local_clusters,
                run_key=run_key,
            )
        case PublishedSketch() as law:
            return encode_sketch(
                law,
                users=users,
                key=keys.subkey(run_key, keys.USER_REGISTERS),
                n_local_clusters=plan.n_local_clusters[position],
                noise=noise,
            )
        case NoisyHistogram() as law:
            k = plan.n_local_clusters[position]
            raw_counts = reduce(np.add, users.each(partial(_label_counts, n_local_clusters=k)))
            return encode_counts(law, raw_counts=raw_counts, noise=noise)
        case RandomisedLabels() as law:
            return encode_ldp(law, labels=_in_secret_order(users, run_key), noise=noise)
        case PlainLabels() as law:
            return encode_exact(law, labels=_in_secret_order(users, run_key))


def _in_secret_order(users: Users, run_key: bytes) -> LabelArray:
    """Return labels in the order that all parties share and that says nothing about the ids."""
    records_of = partial(_order_records, key=keys.subkey(run_key, keys.USER_ORDER))
    return np.concatenate(list(users.in_tag_order(records_of, finish=_labels_in_order)))


def _order_records(block: UserBlock, *, key: bytes) -> Records:
    return hash_ids(key, block.ids), block.labels


def _labels_in_order(records: Records) -> LabelArray:
    return records[1]


def _label_counts(block: UserBlock, *, n_local_clusters: int) -> IntArray:
    return count_labels(block.labels, n_local_clusters=n_local_clusters)
