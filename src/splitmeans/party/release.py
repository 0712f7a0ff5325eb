"""What a party computes from its rows: the noisy count, the local centres, the memberships.

Everything in this module sees raw rows; everything it returns is a release with an event
(`splitmeans.releases` lists them).
"""

import numpy as np
import pyarrow as pa

from splitmeans._types import IntArray, LabelArray
from splitmeans.kernels.assign import nearest
from splitmeans.kernels.siphash import hash_ids
from splitmeans.membership.exact.encode import encode as encode_exact
from splitmeans.membership.exact.law import PlainLabels
from splitmeans.membership.independent.encode import encode as encode_independent
from splitmeans.membership.independent.law import NoisyHistogram
from splitmeans.membership.ldp.encode import encode as encode_ldp
from splitmeans.membership.ldp.law import RandomisedLabels
from splitmeans.membership.sketch.encode import encode as encode_sketch
from splitmeans.membership.sketch.law import PublishedSketch
from splitmeans.party.table import PartyTable
from splitmeans.plan import Plan, shares_of
from splitmeans.privacy.noise import NoiseSource
from splitmeans.releases import count_scale, local_mechanism
from splitmeans.study import Study
from splitmeans.wire import keys
from splitmeans.wire.messages import CountRelease, MembershipMessage, PartyRelease


def user_set_digest(table: PartyTable, *, run_key: bytes) -> bytes:
    """Return a keyed digest of the party's set of users, whatever order its rows are in."""
    tags = hash_ids(keys.subkey(run_key, keys.USER_ORDER), table.ids)
    ordered = tags[np.lexsort((tags[:, 1], tags[:, 0]))]
    return keys.keyed_digest(keys.subkey(run_key, keys.USER_SET), ordered.tobytes())


def release_count(study: Study, table: PartyTable, *, noise: NoiseSource) -> CountRelease:
    """Release the number of users.

    Guarantee: epsilon0-DP for adding or removing one user: sensitivity 1, discrete Laplace noise.
    """
    scale = count_scale(shares_of(study).count_epsilon)
    return CountRelease(noisy_count=len(table.raw_rows) + int(noise.laplace(scale, 1)[0]))


def release_party(
    plan: Plan,
    table: PartyTable,
    *,
    run_key: bytes,
    noise: NoiseSource,
    rng: np.random.Generator,
) -> PartyRelease:
    """Release the local centres, then the memberships that follow from the released centres.

    Guarantee: the composition of the two events that `releases_of(plan)` lists for this party. The
    second sees the first only through the released, quantised centres.
    """
    local = local_mechanism(plan, table.party)
    centres = local.release(table.raw_rows, noise=noise.spawn("local"), rng=rng)
    labels = nearest(table.raw_rows, centres)
    membership = _encode_membership(
        plan, table.ids, labels, run_key=run_key, noise=noise.spawn("membership")
    )
    return PartyRelease(centres=centres, membership=membership)


def _encode_membership(
    plan: Plan, ids: pa.Array, labels: LabelArray, *, run_key: bytes, noise: NoiseSource
) -> MembershipMessage:
    match plan.membership:
        case PublishedSketch() as law:
            words = hash_ids(keys.subkey(run_key, keys.USER_REGISTERS), ids)
            return encode_sketch(
                law,
                id_words=words,
                labels=labels,
                n_local_clusters=plan.n_local_clusters,
                noise=noise,
            )
        case NoisyHistogram() as law:
            return encode_independent(
                law, labels=labels, n_local_clusters=plan.n_local_clusters, noise=noise
            )
        case RandomisedLabels() as law:
            return encode_ldp(law, labels=labels[_secret_order(ids, run_key)], noise=noise)
        case PlainLabels() as law:
            return encode_exact(law, labels=labels[_secret_order(ids, run_key)])


def _secret_order(ids: pa.Array, run_key: bytes) -> IntArray:
    """Row numbers in the order that all parties share and that says nothing about the ids."""
    tags = hash_ids(keys.subkey(run_key, keys.USER_ORDER), ids)
    return np.asarray(np.lexsort((tags[:, 1], tags[:, 0])), dtype=np.int64)
