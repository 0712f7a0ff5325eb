"""Words on disk against words in memory: all differ, or not."""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.table.ids.canonical import repeated_ids
from splitmeans.table.walk.memory import MemoryUsers
from splitmeans.table.walk.words import differ, range_differs, write_words


@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=5),
    bits=st.integers(0, 5),
    seed=st.integers(0, 10**6),
    kinds=st.sampled_from([4, 200, 2**63]),
)
@settings(max_examples=60, deadline=None)
def test_ranges_together_say_what_a_set_says(sizes, bits, seed, kinds, tmp_path_factory):
    rng = np.random.default_rng(seed)
    # Spread over all ranges, so that every one of them has something.
    parts = [
        rng.integers(0, kinds, size, dtype=np.uint64) * np.uint64(2**64 // kinds) for size in sizes
    ]
    folder = tmp_path_factory.mktemp("words")
    lists = [write_words(folder / str(i), part, bits=bits) for i, part in enumerate(parts)]
    together = np.concatenate(parts)
    expected = len(set(together.tolist())) == len(together)
    assert all(range_differs(lists, part) for part in range(2**bits)) is expected
    assert differ(together) is expected


def test_every_word_is_in_the_range_of_its_leading_bits(tmp_path):
    words = np.array([0, 2**61 - 1, 2**61, 2**63, 2**64 - 1], dtype=np.uint64)
    stored = write_words(tmp_path / "words", words[::-1], bits=3)
    assert stored.starts.tolist() == [0, 2, 3, 3, 3, 4, 4, 4, 5]
    assert np.fromfile(stored.path, dtype=np.uint64).tolist() == words.tolist()


class _Alike(MemoryUsers):
    """Users whose half hashes seem to be alike, as chance may make them."""

    def all_differ(self, words_of):
        return super().all_differ(partial(_zeros, words_of=words_of))


def _zeros(block, *, words_of):
    return words_of(block) * np.uint64(0)


@pytest.mark.parametrize(("ids", "rows"), [(["a", "b", "c"], []), (["a", "b", "a", "b"], [2, 3])])
def test_where_halves_are_alike_whole_hashes_decide(ids, rows):
    labels = np.zeros(len(ids), dtype=np.int32)
    for kind in (MemoryUsers, _Alike):
        problems = repeated_ids(kind(ids=pa.array(ids, pa.large_string()), labels=labels))
        assert [row for problem in problems for row in problem.rows] == rows
