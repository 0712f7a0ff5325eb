"""Decoy join at the party: records of users among decoys, sorted by secret tags.

All parties derive the same tags and the same decoys from the run key; the server, who does not
have it, cannot tell a decoy from a user.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from splitmeans import _validate
from splitmeans._types import LabelArray, WordArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.counts import ascending, decoy_records, sort_records
from splitmeans.kernels.siphash import hash_ids
from splitmeans.membership.decoy.law import DecoyLaw, sample_threshold
from splitmeans.membership.decoy.layout import (
    ByteArray,
    Group,
    cell_count,
    cell_shape,
    check_groups,
    pack,
)
from splitmeans.membership.ldp.encode import encode as randomise
from splitmeans.membership.ldp.law import RandomisedLabels
from splitmeans.privacy.noise import NoiseSource
from splitmeans.wire import keys
from splitmeans.wire.messages import DecoyMessage


def encode(
    law: DecoyLaw,
    *,
    ids: pa.Array,
    labels: LabelArray,
    position: int,
    groups: Sequence[Group],
    n_local_clusters: tuple[int, ...],
    run_key: bytes,
    equal_sets: bool,
    sample_rate: float = 1.0,
    collusion: RandomisedLabels | None = None,
    noise: NoiseSource,
) -> DecoyMessage:
    """Return this party's records for every group it is in.

    Guarantee: the unit is one user with all columns at all parties; neighbours differ by adding or
    removing one. Towards a server without the run key, the messages of ALL parties of a group
    together are a function of the counts H + D of its cells and of fresh randomness: tags are
    pseudorandom, different keys make those of users and decoys and of each group, and records are
    in tag order. A user is in one cell, so the group costs one `law.event`, up to the advantage
    against the hash (records^2 / 2^129 for a repeated tag included), and groups compose. With
    `equal_sets` neighbours have the user at all parties or at none: a user at one party alone would
    show in the lengths, so the parties must have compared their user sets before. All of it needs a
    fresh run key, and this message stored and sent again as it is: a second one under the same key
    shows exactly what changed in between. Parties hold the key, so nothing is hidden from a server
    that works with one of them, but for `collusion`: it makes a user's label epsilon-locally DP,
    not the user's presence. Sampling saves bandwidth; no privacy is claimed for it.

    Args:
        law: The law of the decoy counts.
        ids: The users' ids, an Arrow string array without repetitions (already validated).
        labels: Each user's cluster, shape (n,).
        position: Which party this is.
        groups: The parties that share records, as positions.
        n_local_clusters: k' of every party.
        run_key: The secret of this run that all parties share.
        equal_sets: Whether all parties are known to have the same users; then no tags are sent.
        sample_rate: Share of users who take part, by a secret choice common to all parties.
        collusion: Randomised response of this party's labels; users only, once for all groups.
        noise: The party's own source, for the randomised response.
    """
    chosen = check_groups(groups, n_local_clusters=n_local_clusters)
    _validate.at_least(0, position=position)
    if position >= len(n_local_clusters):
        raise ParameterError(f"position must be below {len(n_local_clusters)}, got {position}")
    width = n_local_clusters[position]
    _check_users(ids, labels, width=width)
    if collusion is not None and (collusion.uses_hashing or collusion.n_local_clusters != width):
        raise ParameterError(f"collusion must be a direct randomised response on {width} labels")
    raw_ids, raw_labels = _sample(ids, labels, run_key=run_key, sample_rate=sample_rate)
    own_labels = raw_labels.astype(np.uint8)
    if collusion is not None:
        own_labels = randomise(collusion, labels=raw_labels, noise=noise).reports

    lengths: list[int] = []
    tags = [np.empty((0, 2), dtype=np.uint64)]
    packed = [np.empty(0, dtype=np.uint8)]
    for group in chosen:
        if position not in group:
            continue
        shape = cell_shape(group, n_local_clusters=n_local_clusters, equal_sets=equal_sets)
        group_tags, group_labels = sort_records(
            [
                (hash_ids(keys.subkey(run_key, keys.USER_TAG, group=group), raw_ids), own_labels),
                _decoys(
                    law,
                    group,
                    shape=shape,
                    axis=group.index(position),
                    run_key=run_key,
                    equal_sets=equal_sets,
                ),
            ]
        )
        if not ascending(group_tags):
            raise ParameterError("ids must be different; two users have the same tag")
        lengths.append(len(group_labels))
        if not equal_sets:
            tags.append(group_tags)
        packed.append(pack(group_labels, n_clusters=width))
    return DecoyMessage(
        lengths=np.array(lengths, dtype=np.int64),
        tags=np.concatenate(tags),
        labels=np.concatenate(packed),
    )


def _decoys(
    law: DecoyLaw,
    group: Group,
    *,
    shape: tuple[int, ...],
    axis: int,
    run_key: bytes,
    equal_sets: bool,
) -> tuple[WordArray, ByteArray]:
    """Return tags and own labels of the decoys of every cell where this party is present.

    Every cell has its count, also one that no user is in: decoys for occupied cells alone would
    show which are occupied (rule R5).
    """
    return decoy_records(
        keys.subkey(run_key, keys.DECOY_COUNT, group=group),
        keys.subkey(run_key, keys.DECOY_TAG, group=group),
        cdf_table=law.cdf_table,
        shape=shape,
        n_cells=cell_count(shape, equal_sets=equal_sets),
        axis=axis,
        absent=-1 if equal_sets else shape[axis] - 1,
    )


def _sample(
    ids: pa.Array, labels: LabelArray, *, run_key: bytes, sample_rate: float
) -> tuple[pa.Array, LabelArray]:
    """Return the users who take part.

    The choice has its own key, the same for all groups: were it made by the tag, users' tags would
    lie in one part of the range and decoys' tags everywhere (rule R4).
    """
    threshold = sample_threshold(sample_rate)
    if sample_rate == 1:
        return ids, labels
    words = hash_ids(keys.subkey(run_key, keys.SAMPLE), ids)[:, 0]
    kept = words < np.uint64(threshold)
    return ids.filter(pa.array(kept)), labels[kept]


def _check_users(ids: pa.Array, labels: LabelArray, *, width: int) -> None:
    if labels.dtype != np.int32 or labels.shape != (len(ids),):
        raise ParameterError(
            f"labels must be 32-bit integers of shape ({len(ids)},), one for each user, "
            f"got {labels.dtype} {labels.shape}"
        )
    if labels.size and not 0 <= labels.min() <= labels.max() < width:
        raise ParameterError(f"labels must be between 0 and {width - 1}")
