"""Row numbers in place of ids: tags whatever part of the rows it is, and text where asked."""

import numpy as np
import pyarrow as pa

from splitmeans.kernels.row_numbers import RowNumbers, as_text
from splitmeans.kernels.siphash import hash_ids

KEY, OTHER = b"sixteen bytes...", b"other 16 bytes.."


def test_tags_of_parts_are_those_of_the_whole():
    whole = RowNumbers(start=0, end=1000)
    tags = hash_ids(KEY, whole)
    assert tags.shape == (1000, 2)
    parts = [hash_ids(KEY, whole.slice(start, 250)) for start in range(0, 1000, 250)]
    np.testing.assert_array_equal(np.concatenate(parts), tags)
    kept = np.arange(1000) % 3 == 0
    chosen = whole.filter(pa.array(kept))
    assert len(chosen) == kept.sum()
    np.testing.assert_array_equal(hash_ids(KEY, chosen), tags[kept])


def test_tags_are_different_for_rows_and_keys_and_spread():
    tags = hash_ids(KEY, RowNumbers(start=0, end=100_000))
    assert len(np.unique(tags[:, 0])) == 100_000  # false failure: below 3e-10
    assert not (tags == hash_ids(OTHER, RowNumbers(start=0, end=100_000))).any()
    # The leading bits are uniform: 16 counts within 6 deviations, false failure below 1e-7.
    counts = np.bincount((tags[:, 0] >> np.uint64(60)).astype(int), minlength=16)
    assert np.abs(counts - 6250).max() < 6 * np.sqrt(6250)


def test_which_are_the_same():
    some = RowNumbers(start=0, end=4)
    kept = pa.array([True, False, True, False])
    assert some.equals(RowNumbers(start=0, end=4))
    assert not some.equals(RowNumbers(start=0, end=5))
    assert not some.equals(pa.array(["0", "1", "2", "3"], pa.large_string()))
    assert some.filter(kept).equals(some.filter(kept))
    assert not some.filter(kept).equals(some)
    assert not some.filter(kept).equals(some.filter(pa.array([True, True, False, False])))


def test_text_is_what_ids_of_rows_are():
    some = RowNumbers(start=2, end=6)
    assert as_text(some).to_pylist() == ["2", "3", "4", "5"]
    assert as_text(some.filter(pa.array([True, False, False, True]))).to_pylist() == ["2", "5"]
    ids = pa.array(["a"], pa.large_string())
    assert as_text(ids) is ids
