"""How cells and records are laid out; parties and server share it.

A cell of a group is one label per party, in the group's order; label k' stands for "absent", and
the cell where all are absent does not exist. On the wire a label takes ceil(log2 k') bits, packed
from the low end of each byte, and every group starts a new byte. Tags: `tag_lists.py`.

At three or more parties the group of all of them is a **presence table**: each party's only label
is "present", so its 2^S - 1 cells say how many users are at which parties.
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from splitmeans import _validate
from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.kernels.packing import ByteArray, pack_bits, unpack_bits
from splitmeans.membership.decoy.direct_labels import MAX_LOCAL_CLUSTERS
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.decoy.tag_lists import coded_size, high_bits_for
from splitmeans.membership.method import RunFacts

Group: TypeAlias = tuple[int, ...]

# One table of 64-bit counts then takes 1 GiB; every cell also costs each party t decoys.
MAX_CELLS = 2**27


def check_groups(
    groups: Sequence[Sequence[int]], *, n_local_clusters: Sequence[int]
) -> tuple[Group, ...]:
    """Return the groups as tuples: different ones, each of ascending positions of parties."""
    for width in n_local_clusters:
        _validate.at_least(1, n_local_clusters=width)
        if width > MAX_LOCAL_CLUSTERS:
            raise ParameterError(f"n_local_clusters must be <= {MAX_LOCAL_CLUSTERS}, got {width}")
    chosen = tuple(tuple(int(position) for position in group) for group in groups)
    if not chosen or len(set(chosen)) != len(chosen):
        raise ParameterError(f"groups must be one or more different groups, got {chosen!r}")
    for group in chosen:
        in_range = all(0 <= position < len(n_local_clusters) for position in group)
        if not group or not in_range or list(group) != sorted(set(group)):
            raise ParameterError(
                "groups must hold ascending positions of parties between 0 and "
                f"{len(n_local_clusters) - 1}, got {group!r}"
            )
    return chosen


def law_and_widths(
    group: Group, law: DecoyLaw, presence: DecoyLaw | None, *, n_local_clusters: Sequence[int]
) -> tuple[DecoyLaw, tuple[int, ...]]:
    """Return the law of a group's decoys, and how many labels every party has in it.

    Args:
        group: The parties of the group.
        law: The law of all groups but the presence table.
        presence: The law of the presence table, where the group of all parties is one.
        n_local_clusters: k' of every party.
    """
    if presence is not None and len(group) == len(n_local_clusters):
        return presence, (1,) * len(n_local_clusters)
    return law, tuple(n_local_clusters)


def cell_shape(group: Group, *, n_local_clusters: Sequence[int]) -> tuple[int, ...]:
    """Return how many labels each party of the group has, "absent" included."""
    shape = tuple(n_local_clusters[position] + 1 for position in group)
    if math.prod(shape) > MAX_CELLS:
        raise ParameterError(f"group {group!r} has {math.prod(shape)} cells, more than {MAX_CELLS}")
    return shape


def cell_count(shape: tuple[int, ...]) -> int:
    """Return the number of cells that exist: all but the last one, absent everywhere."""
    return math.prod(shape) - 1


def own_cell_count(shape: tuple[int, ...], axis: int) -> int:
    """Return in how many cells the party of an axis is present."""
    return math.prod(shape) // shape[axis] * (shape[axis] - 1)


def high_bits_of(law: DecoyLaw, plan: RunFacts) -> int:
    """Return the high bits of all tags of a run, by the largest table that its plan expects.

    `law` is that of its memberships.
    """
    most = 0.0
    for group in plan.groups:
        own, widths = law_and_widths(
            group, law, plan.presence, n_local_clusters=plan.bundles.n_labels
        )
        shape = cell_shape(group, n_local_clusters=widths)
        cells = max(own_cell_count(shape, axis) for axis in range(len(group)))
        most = max(most, plan.tagged_users * plan.sample_rate + cells * own.mean)
    return high_bits_for(most)


def most_records(
    law: DecoyLaw, n_cells: int, *, users: int, sample_rate: float, deviations: int
) -> int:
    """Return the records of a party in a table, so many standard deviations above what is expected.

    `n_cells` is in how many cells the party is present.
    """
    length = round(users * sample_rate) + n_cells * law.mean
    # Hoeffding's bound for the sampled users; the scale bounds the decoys.
    spread = math.sqrt(n_cells) * law.sigma
    if sample_rate < 1:
        spread += math.sqrt(users / 4)
    return min(length + math.ceil(deviations * spread), users + 2 * n_cells * law.truncation)


def table_size(n_records: int, *, n_clusters: int, high_bits: int) -> int:
    """Return the bytes of a party's records in a table, with their number."""
    tags = coded_size(n_records, high_bits=high_bits)
    return 8 + tags + packed_size(n_records, n_clusters=n_clusters)


def packed_size(n_labels: int, *, n_clusters: int) -> int:
    """Return the bytes of that many packed labels."""
    return -(-n_labels * _bits(n_clusters) // 8)


def pack(labels: ByteArray, *, n_clusters: int) -> ByteArray:
    """Pack labels 0..k'-1, shape (n,), into ceil(log2 k') bits each."""
    if n_clusters == 1:
        return np.zeros(0, dtype=np.uint8)
    return pack_bits(labels, width=_bits(n_clusters))


def unpack(packed: ByteArray, n_labels: int, *, n_clusters: int) -> ByteArray:
    """Return the `n_labels` labels in `packed`; refuse a wrong size, a label >= k' or a stray bit.

    Raises:
        ProtocolError: If the bytes are not what `pack` makes of valid labels.
    """
    if packed.shape != (packed_size(n_labels, n_clusters=n_clusters),):
        raise ProtocolError(f"packed labels have a wrong size for {n_labels} records")
    if n_clusters == 1:
        return np.zeros(n_labels, dtype=np.uint8)
    labels, clean = unpack_bits(packed, n_labels, width=_bits(n_clusters))
    if not clean:
        raise ProtocolError("packed labels have bits set after the last record")
    if n_labels and labels.max() >= n_clusters:
        raise ProtocolError(f"labels must be below {n_clusters}")
    return labels


def unpack_part(
    packed: ByteArray, start: int, end: int, *, n_labels: int, n_clusters: int
) -> ByteArray:
    """Return labels `start` to `end` of the `n_labels` in `packed`; parts of all refuse the same.

    Raises:
        ProtocolError: As `unpack`.
    """
    if end == n_labels and start == 0:
        return unpack(packed, n_labels, n_clusters=n_clusters)
    # Eight labels fill whole bytes, so a part begins with a byte; what is before it is read again.
    first = start - start % 8
    size = packed_size(end - first, n_clusters=n_clusters)
    begin = packed_size(first, n_clusters=n_clusters)
    part = packed[begin : begin + size]
    if end < n_labels and size:
        # The last byte may have bits of labels that follow.
        used = (end - first) * _bits(n_clusters) % 8
        part = part.copy()
        part[-1] &= 255 >> (8 - used) % 8
    return unpack(part, end - first, n_clusters=n_clusters)[start - first :]


def _bits(n_clusters: int) -> int:
    return (n_clusters - 1).bit_length()
