"""Loops of the decoy join: make decoys, sort records by tag, join sorted lists and count cells.

A tag is a word of 64 bits. Tags are pseudorandom, so a radix sort on their leading bits leaves
almost nothing to do; where they are not (a caller's mistake, or a test), a budget ends the
finishing pass and NumPy sorts instead.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from splitmeans._types import IntArray, WordArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.compiled import kernel
from splitmeans.kernels.registers import look_up
from splitmeans.kernels.siphash import prf_word

_Word = np.uint64
_ONE = _Word(1)
# 2^11 write positions still fit the first cache. The buckets that they make are sorted by a second
# digit where they are, in the second cache; with more bits than this it would not hold them.
_DIGIT_BITS = 11
_MOST_WITHIN = 13
# Moves per record in the finishing pass; random tags need about 0.5.
_MOVES = 16

# Tags, and what goes with each: labels, or row numbers.
Records = tuple[WordArray, npt.NDArray[Any]]


def decoy_records(
    count_key: bytes,
    tag_key: bytes,
    *,
    cdf_table: WordArray,
    shape: tuple[int, ...],
    n_cells: int,
    axis: int,
    absent: int,
) -> Records:
    """Return tags and labels, each (d,), of the decoys that one party holds, by cell and number.

    Cell c has as many decoys as there are entries <= word c of the count stream. Decoy i of it has
    word c (2t + 1) + i of the tag stream as its tag.

    Args:
        count_key: 128-bit key of the counts.
        tag_key: 128-bit key of the tags.
        cdf_table: Thresholds of the counts, shape (2t,).
        shape: Labels of each party of the group; cells are numbered in row-major order.
        n_cells: How many of the cells exist.
        axis: The party's place in the group; its label in a cell is the label of the decoys.
        absent: The label that means absent, of which the party holds no decoys.
    """
    stride = math.prod(shape[axis + 1 :])
    keys = [_key_words(key) for key in (count_key, tag_key)]
    counts = np.empty(n_cells, dtype=np.int64)
    # Hashes wrap by design; NumPy warns of it when the kernels run uncompiled (for coverage).
    with np.errstate(over="ignore"):
        total = _decoy_counts(*keys[0], _fixed(cdf_table), stride, shape[axis], absent, counts)
        tags = np.empty(total, dtype=np.uint64)
        labels = np.empty(total, dtype=np.uint8)
        _decoy_tags(*keys[1], counts, cdf_table.size + 1, stride, shape[axis], tags, labels)
    return tags, labels


def decoy_counts(count_key: bytes, *, cdf_table: WordArray, n_cells: int) -> IntArray:
    """Return how many decoys each of the first cells has, shape (n_cells,); see `decoy_records`."""
    counts = np.empty(n_cells, dtype=np.int64)
    with np.errstate(over="ignore"):
        _decoy_counts(*_key_words(count_key), _fixed(cdf_table), 1, 1, -1, counts)
    return counts


def sort_records(parts: Sequence[Records], *, skip_bits: int = 0) -> Records:
    """Return the records of all parts as one list in the order of their tags.

    Records with equal tags are in the order of their labels, so that the list shows nothing of the
    order in which they were made. `skip_bits` leading bits are the same in all tags, as within a
    bucket of a larger list.
    """
    # About one record for each value of both digits together.
    bits = sum(len(tags) for tags, _ in parts).bit_length() - 1
    first = max(_DIGIT_BITS, bits - _MOST_WITHIN)
    within = max(bits - first, 0)
    shift = 64 - skip_bits - first
    (tags, labels), ends = _by_digit(parts, shift=shift, bits=first)
    longest = int(np.diff(ends, prepend=0).max()) if within else 0
    room = np.empty(longest, dtype=tags.dtype), np.empty(longest, dtype=labels.dtype)
    digits = np.empty(2**within + 1, dtype=np.int64)
    moves = _MOVES * len(tags)
    if not _finish(tags, labels, ends, _Word(shift - within), digits, *room, moves):
        order = np.lexsort((labels, tags))
        tags, labels = tags[order], labels[order]
    return tags, labels


def in_buckets(records: Records, *, bits: int) -> tuple[Records, IntArray]:
    """Return records by the leading bits of their tags, and where each of 2^bits buckets begins.

    Within a bucket they are in the order given. The last entry is the number of records.
    """
    if bits == 0:
        return records, np.array([0, len(records[0])])
    ordered, ends = _by_digit([records], shift=64 - bits, bits=bits)
    return ordered, np.concatenate([[0], ends])


def _by_digit(parts: Sequence[Records], *, shift: int, bits: int) -> tuple[Records, IntArray]:
    """Return all records by one digit, in their order within it, and where those of each end."""
    dtype = np.result_type(*(labels.dtype for _, labels in parts))
    given = [(_fixed(tags), _fixed(labels.astype(dtype, copy=False))) for tags, labels in parts]
    starts = np.zeros(2**bits + 1, dtype=np.int64)
    out = np.empty(0, dtype=np.uint64), np.empty(0, dtype=dtype)
    for tags, labels in given:
        _scatter(tags, labels, _Word(shift), starts, *out)
    np.cumsum(starts, out=starts)
    out = np.empty(starts[-1], dtype=np.uint64), np.empty(starts[-1], dtype=dtype)
    for tags, labels in given:
        _scatter(tags, labels, _Word(shift), starts, *out)
    return out, starts[:-1]


def count_joined(
    tags: Sequence[WordArray],
    labels: Sequence[npt.NDArray[np.uint8]],
    *,
    shape: tuple[int, ...],
    counts: IntArray | None = None,
) -> IntArray:
    """Join the parties' records on their tags and count them by cell.

    A tag that a party has more than once is not counted, wherever it is: so each tag adds at most
    one, to one cell.

    Args:
        tags: Ascending tags of each party, shape (n_l,).
        labels: Their labels, below `shape[l] - 1`, shape (n_l,).
        shape: Labels of each party, the last of which means that the party has no such record.
        counts: Counts of this shape that these are added to, in place; new ones if not given.

    Returns:
        The counts.
    """
    counts = np.zeros(shape, dtype=np.int64) if counts is None else counts
    starts = np.cumsum([0, *map(len, tags)], dtype=np.int64)
    strides = _strides(shape)
    missing = (np.array(shape, dtype=np.int64) - 1) * strides
    _merge(
        _fixed(np.concatenate(tags)),
        _fixed(np.concatenate(labels)),
        starts,
        strides,
        missing,
        starts[:-1].copy(),
        counts.reshape(-1),
    )
    return counts


def _strides(shape: tuple[int, ...]) -> IntArray:
    return np.array([math.prod(shape[axis + 1 :]) for axis in range(len(shape))], dtype=np.int64)


def _key_words(key: bytes) -> tuple[np.uint64, np.uint64]:
    if len(key) != 16:
        raise ParameterError(f"key must have 16 bytes, got {len(key)}")
    first, second = np.frombuffer(key, dtype="<u8").astype(np.uint64)
    return first, second


def _fixed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only, aligned view or copy, so that a kernel is compiled for one type only.

    Arrays that were cut out of a message's bytes may start at any address.
    """
    view = np.require(array, requirements=["C", "A"]).view()
    view.setflags(write=False)
    return view


@kernel
def _decoy_counts(key0, key1, table, stride, width, absent, counts):  # type: ignore[no-untyped-def]
    """OUT `counts` (cells,): 0 where the party is absent. Return their sum."""
    total = 0
    for cell in range(counts.size):
        counts[cell] = 0
        if (cell // stride) % width == absent:
            continue
        counts[cell] = look_up(table, prf_word(key0, key1, _Word(cell)))
        total += counts[cell]
    return total


@kernel
def _decoy_tags(key0, key1, counts, span, stride, width, tags, labels):  # type: ignore[no-untyped-def]
    """OUT `tags` and `labels`, each (d,), d the sum of `counts`."""
    row = 0
    for cell in range(counts.size):
        for number in range(counts[cell]):
            tags[row] = prf_word(key0, key1, _Word(cell * span + number))
            labels[row] = (cell // stride) % width
            row += 1


@kernel
def _scatter(tags, labels, shift, starts, out_tags, out_labels):  # type: ignore[no-untyped-def]
    """OUT: records by one digit of their tags, in their order within it.

    `starts` (digits + 1,) says where the next record of each digit goes (INOUT). Where there is no
    room in `out_labels`, records are counted into it, each one place behind its digit.
    """
    mask = _Word(starts.size - 2)
    if out_labels.size == 0:
        for row in range(labels.size):
            starts[((tags[row] >> shift) & mask) + _ONE] += 1
        return
    for row in range(labels.size):
        digit = (tags[row] >> shift) & mask
        place = starts[digit]
        starts[digit] = place + 1
        out_tags[place] = tags[row]
        out_labels[place] = labels[row]


@kernel
def _finish(tags, labels, ends, shift, starts, room_tags, room_labels, budget):  # type: ignore[no-untyped-def]
    """Sort in place (OUT) what is in buckets; return whether at most `budget` moves were enough.

    First by one more digit within each bucket, then by insertion. `ends` (buckets,) says where
    buckets end; `starts` (digits + 1,) is scratch, and so is room for the longest bucket. With one
    digit alone nothing is done before the insertion.
    """
    mask = _Word(starts.size - 2)
    begin = 0
    for bucket in range(ends.size if starts.size > 2 else 0):
        end = ends[bucket]
        for digit in range(starts.size):
            starts[digit] = 0
        for row in range(begin, end):
            starts[((tags[row] >> shift) & mask) + _ONE] += 1
        for digit in range(1, starts.size):
            starts[digit] += starts[digit - 1]
        for row in range(begin, end):
            digit = (tags[row] >> shift) & mask
            place = starts[digit]
            starts[digit] = place + 1
            room_tags[place] = tags[row]
            room_labels[place] = labels[row]
        for row in range(end - begin):
            tags[begin + row] = room_tags[row]
            labels[begin + row] = room_labels[row]
        begin = end
    for row in range(1, labels.size):
        tag, label = tags[row], labels[row]
        place = row
        while place > 0 and (
            tag < tags[place - 1] or (tag == tags[place - 1] and label < labels[place - 1])
        ):
            tags[place], labels[place] = tags[place - 1], labels[place - 1]
            place -= 1
        tags[place], labels[place] = tag, label
        budget -= row - place
        if budget < 0:
            return False
    return True


@kernel
def _merge(tags, labels, starts, strides, missing, heads, counts):  # type: ignore[no-untyped-def]
    """OUT `counts`. Party l has rows starts[l] to starts[l + 1]; `heads` (s,) is scratch: starts.

    `missing[l]` is what the cell number gets where party l lacks the record.
    """
    parties = heads.size
    while True:
        some, tag = False, _Word(0)
        for party in range(parties):
            head = heads[party]
            if head < starts[party + 1] and (not some or tags[head] < tag):
                some, tag = True, tags[head]
        if not some:
            return
        cell, once = 0, True
        for party in range(parties):
            head, end = heads[party], starts[party + 1]
            if head == end or tags[head] != tag:
                cell += missing[party]
                continue
            cell += labels[head] * strides[party]
            head += 1
            while head < end and tags[head] == tag:
                head, once = head + 1, False
            heads[party] = head
        if once:
            counts[cell] += 1
