"""The register kernel against a twin with the same stream, and the party's encoding."""

import bisect

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.kernels.registers import _below, user_registers
from splitmeans.kernels.siphash import hash_ids, prf_word
from splitmeans.membership.sketch.encode import sketch_users
from splitmeans.membership.sketch.registers import RegisterLaw
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.table.walk.memory import MemoryUsers

KEY = b"any key, 16 byte"


def words_of(n: int, *, seed: int = 0) -> np.ndarray:
    return InsecureSeededNoise(seed).words(2 * n).reshape(n, 2)


def labels_of(n: int, *, k: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, k, n).astype(np.int32)


def users_of(n: int, *, k: int) -> MemoryUsers:
    return MemoryUsers(ids=pa.array(np.arange(n).astype(str)), labels=labels_of(n, k=k))


def kernel(words, labels, *, k: int, rows: int, floor: int, gamma: float = 1.0) -> np.ndarray:
    law = RegisterLaw(gamma=gamma)
    return user_registers(
        words,
        labels,
        n_clusters=k,
        repetitions=rows,
        floor=floor,
        count_table=law.count_table(repetitions=rows, floor=floor),
        excess_table=law.value_table,
    )


def twin(words, labels, *, k: int, rows: int, floor: int, gamma: float = 1.0) -> np.ndarray:
    """The same draws with Python lists, sets and integers."""
    law = RegisterLaw(gamma=gamma)
    counts = law.count_table(repetitions=rows, floor=floor).tolist()
    excesses = law.value_table.tolist()
    registers = [[floor] * k for _ in range(rows)]
    for (key0, key1), label in zip(words, labels.tolist(), strict=True):

        def word(counter: int, key0=key0, key1=key1) -> int:
            with np.errstate(over="ignore"):
                return int(prf_word(key0, key1, np.uint64(counter)))

        above = bisect.bisect_right(counts, word(0))
        chosen: set[int] = set()
        for draw in range(above):
            last = rows - above + draw
            row = word(2 * draw + 1) * (last + 1) >> 64
            row = last if row in chosen else row
            chosen.add(row)
            value = floor + 1 + bisect.bisect_right(excesses, word(2 * draw + 2))
            registers[row][label] = max(registers[row][label], value)
    return np.array(registers, dtype=np.uint16)


@pytest.mark.parametrize("gamma", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("floor", [0, 1, 3, 12])
@pytest.mark.parametrize(("n", "rows", "k"), [(0, 8, 2), (1, 1, 1), (30, 16, 3), (5, 100, 4)])
def test_kernel_equals_twin(gamma: float, floor: int, n: int, rows: int, k: int) -> None:
    words, labels = words_of(n), labels_of(n, k=k)
    shape = {"k": k, "rows": rows, "floor": floor, "gamma": gamma}
    registers = kernel(words, labels, **shape)
    assert registers.dtype == np.uint16
    np.testing.assert_array_equal(registers, twin(words, labels, **shape))


@settings(max_examples=50, deadline=None)
@given(word=st.integers(0, 2**64 - 1), bound=st.integers(1, 65_536))
def test_bounded_draw_is_exact(word: int, bound: int) -> None:
    assert _below(np.uint64(word), np.uint64(bound)) == word * bound >> 64


def test_nothing_below_the_floor_and_no_users_means_the_floor() -> None:
    assert kernel(words_of(500), labels_of(500, k=3), k=3, rows=32, floor=5).min() >= 5
    empty = kernel(words_of(0), labels_of(0, k=3), k=3, rows=32, floor=5)
    assert (empty == 5).all()


def test_floor_zero_touches_every_row() -> None:
    assert (kernel(words_of(1), labels_of(1, k=1), k=1, rows=50, floor=0) >= 1).all()


def test_batches_combine_by_maximum_and_order_does_not_matter() -> None:
    words, labels = words_of(400), labels_of(400, k=3)
    shape = {"k": 3, "rows": 64, "floor": 3}
    whole = kernel(words, labels, **shape)
    parts = [kernel(words[part], labels[part], **shape) for part in (slice(150), slice(150, None))]
    np.testing.assert_array_equal(np.maximum(*parts), whole)
    order = np.random.default_rng(1).permutation(400)
    np.testing.assert_array_equal(kernel(words[order], labels[order], **shape), whole)


def test_memory_layout_does_not_matter() -> None:
    words, labels = words_of(100), labels_of(100, k=2)
    shape = {"k": 2, "rows": 64, "floor": 2}
    expected = kernel(words, labels, **shape)
    spread = np.repeat(labels, 2)[::2]
    np.testing.assert_array_equal(kernel(np.asfortranarray(words), spread, **shape), expected)
    assert words.flags.writeable
    assert labels.flags.writeable


def test_same_id_has_the_same_values_at_two_parties() -> None:
    ids = ["ann", "bob", "cem"]
    shape = {"k": 3, "rows": 256, "floor": 1}
    one_each = np.array([0, 1, 2], dtype=np.int32)
    first = kernel(hash_ids(b"k" * 16, pa.array(ids)), one_each, **shape)
    second = kernel(hash_ids(b"k" * 16, pa.array(ids[::-1])), one_each, **shape)
    np.testing.assert_array_equal(first, second[:, ::-1])
    other_key = kernel(hash_ids(b"j" * 16, pa.array(ids)), one_each, **shape)
    assert (first != other_key).any()


def test_users_of_a_party_are_sketched_by_their_keyed_hashes() -> None:
    users = users_of(300, k=3)
    registers = sketch_users(
        RegisterLaw(gamma=1.0), users, key=KEY, n_clusters=3, repetitions=64, floor=2
    )
    expected = kernel(hash_ids(KEY, users.ids), users.labels, k=3, rows=64, floor=2)
    np.testing.assert_array_equal(registers, expected)
    assert registers.dtype == np.uint16


@pytest.mark.parametrize(
    ("labels", "rule"),
    [
        (labels_of(2, k=2), r"labels must be .* shape \(3,\)"),
        (labels_of(3, k=2).astype(np.int64), "labels must be 32-bit integers"),
        (np.array([0, 1, 2], dtype=np.int32), "labels must be between 0 and 1"),
        (np.array([0, -1, 1], dtype=np.int32), "labels must be between 0 and 1"),
    ],
)
def test_wrong_users_are_refused(labels: np.ndarray, rule: str) -> None:
    with pytest.raises(ParameterError, match=rule):
        sketch_users(
            RegisterLaw(gamma=1.0),
            MemoryUsers(ids=pa.array(["a", "b", "c"]), labels=labels),
            key=KEY,
            n_clusters=2,
            repetitions=64,
            floor=2,
        )
