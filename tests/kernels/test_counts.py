"""Fast loops against plain Python."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.kernels.counts import (
    count_joined,
    decoy_records,
    sort_records,
)
from splitmeans.kernels.siphash import prf_word

Word = np.uint64
words = st.one_of(st.integers(0, 3), st.sampled_from([2**53, 2**63, 2**64 - 1]))
tag_lists = st.lists(words, max_size=40)


def tags_of(values) -> np.ndarray:
    return np.array(list(values), dtype=np.uint64)


def labels_of(values) -> np.ndarray:
    return np.array(list(values), dtype=np.uint8)


def random_records(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    tags = rng.integers(0, 2**64, size=n, dtype=np.uint64)
    return tags, rng.integers(0, 200, size=n).astype(np.uint8)


def naive_join(records, shape) -> np.ndarray:
    """One dictionary by tag, then one look at every tag; what a party repeats is left out."""
    cells: dict[int, list[int]] = {}
    repeated = set()
    for party, (tags, labels) in enumerate(records):
        own = tags.tolist()
        repeated |= {tag for tag in own if own.count(tag) > 1}
        for tag, label in zip(own, labels.tolist(), strict=True):
            absent = [width - 1 for width in shape]
            cells.setdefault(tag, absent)[party] = label
    counts = np.zeros(shape, dtype=np.int64)
    for tag, cell in cells.items():
        counts[tuple(cell)] += tag not in repeated
    return counts


# ---- sorting ----


@given(tag_lists)
@settings(max_examples=50, deadline=None)
def test_any_tags_are_sorted(values):
    # Small numbers: all leading bits are zero, and tags repeat.
    labels = labels_of(range(len(values)))
    tags, moved = sort_records([(tags_of(values), labels)])
    assert tags.tolist() == sorted(values)
    assert [values[label] for label in moved] == sorted(values)


@given(st.lists(st.tuples(words, st.integers(0, 3)), max_size=40), st.randoms())
@settings(max_examples=50, deadline=None)
def test_equal_tags_are_in_the_order_of_labels(values, random):
    """So that the order in which records were made does not show, whatever the tags are."""
    for _ in range(2):
        random.shuffle(values)
        tags, labels = sort_records(
            [(tags_of(v[0] for v in values), labels_of(v[1] for v in values))]
        )
        found = list(zip(tags.tolist(), labels.tolist(), strict=True))
        assert found == sorted(values)


def test_equal_tags_are_in_the_order_of_labels_where_numpy_sorts():
    n = 20_000
    tags = np.zeros(n, dtype=np.uint64)
    _, labels = sort_records([(tags, (np.arange(n, 0, -1) % 251).astype(np.uint8))])
    assert (np.diff(labels.astype(int)) >= 0).all()


# One digit is enough for the first few; buckets of the others are sorted by another one.
@pytest.mark.parametrize("n", [0, 1, 2, 1000, 1536, 3071, 3072, 5000, 100_000])
def test_random_tags_are_sorted(n):
    parts = [random_records(n, 1), random_records(n // 3, 2)]
    tags, labels = sort_records(parts)
    all_tags = np.concatenate([part[0] for part in parts])
    order = np.argsort(all_tags)
    np.testing.assert_array_equal(tags, all_tags[order])
    np.testing.assert_array_equal(labels, np.concatenate([part[1] for part in parts])[order])


@pytest.mark.parametrize("n", [50, 9000])
def test_the_source_is_left_alone(n):
    tags, labels = random_records(n, 3)
    before = tags.copy(), labels.copy()
    sort_records([(tags, labels)])
    np.testing.assert_array_equal(tags, before[0])
    np.testing.assert_array_equal(labels, before[1])


@pytest.mark.parametrize("skip_bits", [3, 16])
def test_leading_bits_that_are_all_the_same_are_skipped(skip_bits):
    tags, labels = random_records(30_000, 4)
    tags = (tags >> np.uint64(skip_bits)) | (np.uint64(5) << np.uint64(64 - skip_bits))
    ordered, moved = sort_records([(tags, labels)], skip_bits=skip_bits)
    order = np.argsort(tags)
    np.testing.assert_array_equal(ordered, tags[order])
    np.testing.assert_array_equal(moved, labels[order])


def test_tags_with_equal_leading_bits_do_not_take_quadratic_time():
    # Descending in the last bits alone: the finishing pass runs out of its budget.
    n = 20_000
    tags = np.arange(n, 0, -1, dtype=np.uint64)
    ordered, labels = sort_records([(tags, (np.arange(n) % 251).astype(np.uint8))])
    np.testing.assert_array_equal(ordered, np.arange(1, n + 1))
    np.testing.assert_array_equal(labels, np.arange(n)[::-1] % 251)


# ---- counting ----


@given(st.lists(tag_lists, min_size=1, max_size=4), st.data())
@settings(max_examples=100, deadline=None)
def test_join_agrees_with_a_dictionary(lists, data):
    """Tags of few values, so that many are shared, and parties repeat some."""
    shape = tuple(data.draw(st.integers(2, 5)) for _ in lists)
    records = [
        (
            tags_of(sorted(tags)),
            labels_of(data.draw(st.integers(0, width - 2)) for _ in tags),
        )
        for tags, width in zip(lists, shape, strict=True)
    ]
    counts = count_joined([r[0] for r in records], [r[1] for r in records], shape=shape)
    np.testing.assert_array_equal(counts, naive_join(records, shape))


def test_join_by_hand():
    # Tag 15 is at both parties, 17 and 20 at one each; 30 is twice at the second, so nowhere.
    counts = count_joined(
        [tags_of([15, 17, 30]), tags_of([15, 20, 30, 30])],
        [labels_of([0, 1, 0]), labels_of([2, 1, 0, 1])],
        shape=(3, 4),
    )
    expected = np.zeros((3, 4), dtype=np.int64)
    expected[0, 2] = expected[1, 3] = expected[2, 1] = 1
    np.testing.assert_array_equal(counts, expected)


def test_join_reads_tags_at_any_address():
    data = b"x" + tags_of([15, 17]).tobytes()
    tags = np.frombuffer(data, dtype=np.uint64, offset=1)
    assert not tags.flags.aligned
    assert count_joined([tags], [labels_of([0, 0])], shape=(2,)).tolist() == [2, 0]


# ---- decoys ----

COUNT_KEY, TAG_KEY = bytes(range(16)), bytes(range(16, 32))
TABLE = np.array([2**62, 2**63, 3 * 2**62], dtype=np.uint64)  # 0..3 decoys, equally likely


def naive_decoys(shape, axis: int) -> list[tuple[int, int]]:
    count_key = [Word(int.from_bytes(COUNT_KEY[i : i + 8], "little")) for i in (0, 8)]
    tag_key = [Word(int.from_bytes(TAG_KEY[i : i + 8], "little")) for i in (0, 8)]
    records = []
    for cell, labels in enumerate(itertools.product(*map(range, shape))):
        if labels[axis] == shape[axis] - 1:
            continue
        count = sum(int(entry) <= int(prf_word(*count_key, Word(cell))) for entry in TABLE)
        for number in range(count):
            records.append((int(prf_word(*tag_key, Word(cell * 4 + number))), labels[axis]))
    return records


@pytest.mark.parametrize(("shape", "axis"), [((3,), 0), ((3, 4), 0), ((3, 4), 1), ((2, 3, 3), 1)])
def test_decoys_agree_with_a_plain_loop(shape, axis):
    tags, labels = decoy_records(
        COUNT_KEY,
        TAG_KEY,
        cdf_table=TABLE,
        shape=shape,
        n_cells=int(np.prod(shape)) - 1,
        axis=axis,
        absent=shape[axis] - 1,
    )
    found = list(zip(tags.tolist(), labels.tolist(), strict=True))
    with np.errstate(over="ignore"):  # hashes wrap, which shows when they run uncompiled
        assert found == naive_decoys(shape, axis)
    assert len(set(tags.tolist())) == len(found)


def test_a_short_key_is_refused():
    with pytest.raises(ParameterError, match="key must have 16 bytes, got 3"):
        decoy_records(b"abc", TAG_KEY, cdf_table=TABLE, shape=(2,), n_cells=2, axis=0, absent=-1)
