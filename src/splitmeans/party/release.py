"""What a party computes from its rows: the noisy count, the local centres, the memberships.

Everything in this module sees raw rows; everything it returns is a release with an event
(`splitmeans.releases` lists them).
"""

import numpy as np
import pyarrow as pa

from splitmeans._types import IntArray, LabelArray
from splitmeans.kernels.assign import nearest
from splitmeans.kernels.siphash import hash_ids
from splitmeans.membership.cell_sketch.encode import encode as encode_cell_sketch
from splitmeans.membership.cell_sketch.law import CellSketch
from splitmeans.membership.decoy.encode import encode as encode_decoy
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.exact.encode import encode as encode_exact
from splitmeans.membership.exact.law import PlainLabels
from splitmeans.membership.independent.encode import encode as encode_independent
from splitmeans.membership.independent.law import NoisyHistogram
from splitmeans.membership.ldp.encode import encode as encode_ldp
from splitmeans.membership.ldp.law import RandomisedLabels
from splitmeans.membership.sketch.encode import encode as encode_sketch
from splitmeans.membership.sketch.law import PublishedSketch
from splitmeans.party.table import PartyTable
from splitmeans.plan import Plan
from splitmeans.privacy.noise import NoiseSource
from splitmeans.study import Study
from splitmeans.wire import keys
from splitmeans.wire.messages import Confirmation, CountRelease, MembershipMessage, PartyRelease


def user_set_digest(study: Study, table: PartyTable, *, run_key: bytes) -> bytes:
    """Return a keyed digest of the party's set of users, whatever order its rows are in.

    Where user sets may differ it is empty: the other parties hold the key, so a digest of the ids
    would tell them whether a guess at this party's users is right.
    """
    if study.user_sets != "equal":
        return b""
    tags = hash_ids(keys.subkey(run_key, keys.USER_ORDER), table.ids)
    ordered = tags[np.lexsort((tags[:, 1], tags[:, 0]))]
    return keys.keyed_digest(keys.subkey(run_key, keys.USER_SET), ordered.tobytes())


def confirmation(study: Study, party: str, users: bytes, *, run_key: bytes) -> Confirmation:
    """Return what `party` says to the others if it has this key, this study and these users.

    The name is part of it, so that a party's own words sent back to it are not taken for
    another's.
    """
    key = keys.subkey(run_key, keys.CONFIRM)
    text = f"{study.hash}\n{party}\n".encode()
    return Confirmation(
        key_check=keys.keyed_digest(key, b"key\n" + text),
        user_check=keys.keyed_digest(key, b"users\n" + text + users),
    )


def release_count(plan: Plan, table: PartyTable, *, noise: NoiseSource) -> CountRelease:
    """Release the number of users.

    Guarantee: the plan's count event: sensitivity 1, discrete Laplace noise.
    """
    assert plan.count_scale is not None
    noisy_count = len(table.raw_rows) + int(noise.laplace(plan.count_scale, 1)[0])
    return CountRelease(noisy_count=noisy_count)


def release_party(
    plan: Plan,
    table: PartyTable,
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
    centres = plan.local[position].release(table.raw_rows, noise=noise.spawn("local"), rng=rng)
    labels = nearest(table.raw_rows, centres)
    membership = _encode_membership(
        plan, position, table.ids, labels, run_key=run_key, noise=noise.spawn("membership")
    )
    return PartyRelease(centres=centres, membership=membership)


def _encode_membership(
    plan: Plan,
    position: int,
    ids: pa.Array,
    labels: LabelArray,
    *,
    run_key: bytes,
    noise: NoiseSource,
) -> MembershipMessage:
    match plan.membership:
        case DecoyLaw() as law:
            return encode_decoy(
                law,
                ids=ids,
                labels=labels,
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
                ids=ids,
                labels=labels,
                position=position,
                groups=plan.groups,
                n_local_clusters=plan.n_local_clusters,
                run_key=run_key,
            )
        case PublishedSketch() as law:
            return encode_sketch(
                law,
                id_words=hash_ids(keys.subkey(run_key, keys.USER_REGISTERS), ids),
                labels=labels,
                n_local_clusters=plan.n_local_clusters[position],
                noise=noise,
            )
        case NoisyHistogram() as law:
            k = plan.n_local_clusters[position]
            return encode_independent(law, labels=labels, n_local_clusters=k, noise=noise)
        case RandomisedLabels() as law:
            return encode_ldp(law, labels=labels[_secret_order(ids, run_key)], noise=noise)
        case PlainLabels() as law:
            return encode_exact(law, labels=labels[_secret_order(ids, run_key)])


def _secret_order(ids: pa.Array, run_key: bytes) -> IntArray:
    """Row numbers in the order that all parties share and that says nothing about the ids."""
    tags = hash_ids(keys.subkey(run_key, keys.USER_ORDER), ids)
    return np.asarray(np.lexsort((tags[:, 1], tags[:, 0])), dtype=np.int64)
