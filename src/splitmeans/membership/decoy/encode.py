"""Decoy join at the party: records of users among decoys, sorted by secret tags.

All parties derive the same tags and the same decoys from the run key; the server, who does not
have it, cannot tell a decoy from a user.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from splitmeans import _validate
from splitmeans._types import IntArray, WordArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.counts import decoy_counts, decoy_records
from splitmeans.kernels.packing import ByteArray
from splitmeans.kernels.siphash import hash_ids
from splitmeans.membership.bundles import Bundles
from splitmeans.membership.decoy.direct_labels import DirectLabels, randomise
from splitmeans.membership.decoy.law import DecoyLaw, sample_threshold
from splitmeans.membership.decoy.layout import (
    Group,
    cell_count,
    cell_shape,
    check_groups,
    high_bits_of,
    law_and_widths,
    pack,
)
from splitmeans.membership.decoy.tag_lists import code_tags, short_tags
from splitmeans.membership.method import RunFacts
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import Records, UserBlock, Users
from splitmeans.wire import keys
from splitmeans.wire.messages import DecoyMessage, no_records

# What parties compare: the tags of so many cells' decoys, and an id that stands for the users.
_TAGGED_CELLS = 64
_PROBE = pa.array(["splitmeans probe"], pa.large_string())


def encode(
    law: DecoyLaw,
    *,
    users: Users,
    position: int,
    groups: Sequence[Group],
    n_local_clusters: tuple[int, ...],
    run_key: bytes,
    high_bits: int,
    sample_rate: float = 1.0,
    collusion: DirectLabels | None = None,
    presence: DecoyLaw | None = None,
    bundles: Bundles | None = None,
    noise: NoiseSource,
) -> DecoyMessage:
    """Return this party's records for every group it is in.

    Guarantee: the unit is one user with all columns at all parties; neighbours differ by adding or
    removing one. Towards a server without the run key, the messages of ALL parties of a group
    together are a function of the counts H + D of its cells and of fresh randomness: tags are
    pseudorandom, different keys make those of users and decoys and of each group, and records are
    in tag order, equal tags in the order of labels. That holds for tags of any length, equal ones
    included: how long they are decides accuracy alone. A user is in one cell, "absent" at the
    parties that do not have it, so the group costs one `law.event` (a presence table one
    `presence.event`), up to the advantage against the hash, and groups compose. All of it needs a
    fresh run key, and this message stored and sent again as it is: a second one under the same key
    shows exactly what changed in between. Parties hold the key, so nothing is hidden from a server
    that works with one of them, but for `collusion`: it makes a user's label epsilon-locally DP,
    not the user's presence. Sampling saves bandwidth; no privacy is claimed for it.

    Args:
        law: The law of the decoy counts.
        users: The party's users, no id twice (already validated), with each one's cluster.
        position: Which party this is.
        groups: The parties that share records, as positions.
        n_local_clusters: k' of every party; with bundles, how many labels it has in a table.
        run_key: The secret of this run that all parties share.
        high_bits: How long tags are (`tag_lists.py`), the same at all parties.
        sample_rate: Share of users who take part, by a secret choice common to all parties.
        collusion: Randomised response of this party's labels; users only, once for all groups.
        presence: The law of the presence table, where the group of all parties is one.
        bundles: Which clusters share a label, in tables of two parties, where some do. A label is then
            still one value for each user and group, by the user's cluster and public numbers.
        noise: The party's own source, for the randomised response.
    """
    chosen = check_groups(groups, n_local_clusters=n_local_clusters)
    _validate.at_least(0, position=position)
    if position >= len(n_local_clusters):
        raise ParameterError(f"position must be below {len(n_local_clusters)}, got {position}")
    width = n_local_clusters[position]
    sample_threshold(sample_rate)
    if collusion is not None and collusion.n_local_clusters != width:
        raise ParameterError(f"collusion must be a randomised response on {width} labels")
    if collusion is not None:
        users = users.relabelled(partial(randomise, collusion, noise=noise))
    if bundles is not None and collusion is not None:
        raise ParameterError("bundles of clusters are not for randomised labels")

    clusters = width if bundles is None else bundles.n_local_clusters[position]
    parts = [no_records()]
    for group in chosen:
        if position not in group:
            continue
        own, widths = law_and_widths(group, law, presence, n_local_clusters=n_local_clusters)
        shape = cell_shape(group, n_local_clusters=widths)
        label_of = np.arange(width)
        if own is presence:
            label_of = np.zeros(clusters, dtype=np.int64)
        elif bundles is not None:
            (other,) = (member for member in group if member != position)
            label_of = bundles.labels_of(position, other)
        records_of = partial(
            _user_records,
            tag_key=keys.subkey(run_key, keys.USER_TAG, group=group),
            sample_key=keys.subkey(run_key, keys.SAMPLE),
            sample_rate=sample_rate,
            label_of=label_of.astype(np.uint8),
            high_bits=high_bits,
        )
        words, labels = _decoys(
            own, group, shape=shape, axis=group.index(position), run_key=run_key
        )
        decoys = short_tags(words, high_bits=high_bits), labels
        pieces = list(users.in_tag_order(records_of, finish=_as_it_is, extra=decoys))
        parts.append(_coded(pieces, n_clusters=widths[position], high_bits=high_bits))
    return joined_messages(parts)


def joined_messages(parts: Sequence[DecoyMessage]) -> DecoyMessage:
    """Return the records of several messages as one, group after group."""
    return DecoyMessage(
        lengths=np.concatenate([part.lengths for part in parts]),
        lows=np.concatenate([part.lows for part in parts]),
        bitmaps=np.concatenate([part.bitmaps for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
    )


def decoys_to_compare(
    law: DecoyLaw,
    group: Group,
    *,
    n_local_clusters: Sequence[int],
    run_key: bytes,
    tagged_cells: int,
) -> tuple[IntArray, WordArray, ByteArray]:
    """Return the decoy counts of all cells of a group, and tags and labels in the first cells.

    The same at every party of the study, so that parties can tell whether they derive the same
    decoys; labels are those of the group's first party. Arguments are those of `encode`.
    """
    shape = cell_shape(group, n_local_clusters=n_local_clusters)
    n_cells = cell_count(shape)
    counts = decoy_counts(
        keys.subkey(run_key, keys.DECOY_COUNT, group=group),
        cdf_table=law.cdf_table,
        n_cells=n_cells,
    )
    tags, labels = _decoys(
        law,
        group,
        shape=shape,
        axis=0,
        run_key=run_key,
        n_cells=min(n_cells, tagged_cells),
    )
    return counts, tags, labels


def _user_records(
    block: UserBlock,
    *,
    tag_key: bytes,
    sample_key: bytes,
    sample_rate: float,
    label_of: ByteArray,
    high_bits: int,
) -> Records:
    """Return tags and labels of the users who take part; in a presence table all labels are 0.

    The choice has its own key, the same for all groups: were it made by the tag, users' tags would
    lie in one part of the range and decoys' tags everywhere (rule R4).
    """
    clusters = block.labels
    if clusters.size and not 0 <= clusters.min() <= clusters.max() < len(label_of):
        raise ParameterError(f"labels must be between 0 and {len(label_of) - 1}")
    ids = block.ids
    own_labels = label_of[clusters]
    threshold = sample_threshold(sample_rate)
    if sample_rate < 1:
        kept = hash_ids(sample_key, ids)[:, 0] < np.uint64(threshold)
        ids, own_labels = ids.filter(pa.array(kept)), own_labels[kept]
    return short_tags(hash_ids(tag_key, ids)[:, 0], high_bits=high_bits), own_labels


def _as_it_is(records: Records) -> Records:
    return records


def _coded(pieces: Sequence[Records], *, n_clusters: int, high_bits: int) -> DecoyMessage:
    """Return the sorted records of one group."""
    labels = np.concatenate([part for _, part in pieces])
    tags = np.concatenate([part for part, _ in pieces])
    lows, bitmap = code_tags(tags, high_bits=high_bits)
    return DecoyMessage(
        lengths=np.array([len(labels)], dtype=np.int64),
        lows=lows,
        bitmaps=bitmap,
        labels=pack(labels, n_clusters=n_clusters),
    )


def _decoys(
    law: DecoyLaw,
    group: Group,
    *,
    shape: tuple[int, ...],
    axis: int,
    run_key: bytes,
    n_cells: int | None = None,
) -> tuple[WordArray, ByteArray]:
    """Return whole tags and own labels of the decoys of every cell where this party is present.

    Every cell has its count, also one that no user is in: decoys for occupied cells alone would
    show which are occupied (rule R5). `n_cells` takes the first cells alone, to compare them.
    """
    return decoy_records(
        keys.subkey(run_key, keys.DECOY_COUNT, group=group),
        keys.subkey(run_key, keys.DECOY_TAG, group=group),
        cdf_table=law.cdf_table,
        shape=shape,
        n_cells=cell_count(shape) if n_cells is None else n_cells,
        axis=axis,
        absent=shape[axis] - 1,
    )


def release(
    law: DecoyLaw,
    plan: RunFacts,
    position: int,
    users: Users,
    *,
    run_key: bytes,
    noise: NoiseSource,
) -> DecoyMessage:
    """Return the message of a party of a plan; see `encode`."""
    return encode(
        law,
        users=users,
        position=position,
        groups=plan.groups,
        n_local_clusters=plan.bundles.n_labels,
        run_key=run_key,
        high_bits=high_bits_of(law, plan),
        sample_rate=plan.sample_rate,
        collusion=plan.collusion_laws[position],
        presence=plan.presence,
        bundles=None if plan.bundles.is_trivial else plan.bundles,
        noise=noise,
    )


def shared_pieces(law: DecoyLaw, plan: RunFacts, run_key: bytes) -> Iterator[bytes]:
    """Yield what all parties derive from the run key.

    Of decoys these are the counts of all cells of all groups, and the tags of the first cells.
    """
    yield hash_ids(keys.subkey(run_key, keys.SAMPLE), _PROBE).tobytes()
    for group in plan.groups:
        yield hash_ids(keys.subkey(run_key, keys.USER_TAG, group=group), _PROBE).tobytes()
        own, widths = law_and_widths(
            group, law, plan.presence, n_local_clusters=plan.bundles.n_labels
        )
        counts, tags, labels = decoys_to_compare(
            own,
            group,
            n_local_clusters=widths,
            run_key=run_key,
            tagged_cells=_TAGGED_CELLS,
        )
        yield counts.astype("<i8").tobytes()
        yield tags.astype("<u8").tobytes()
        yield labels.tobytes()
