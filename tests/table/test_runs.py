"""Sorting on disk against sorting in memory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.kernels.counts import sort_records
from splitmeans.table.walk.runs import BUCKET_RECORDS, bucket_bits, read_bucket, write_run


@pytest.mark.parametrize(
    ("records", "bits"),
    [(0, 0), (BUCKET_RECORDS - 1, 0), (BUCKET_RECORDS, 1), (5 * BUCKET_RECORDS, 3)],
)
def test_number_of_buckets(records, bits):
    assert bucket_bits(records) == bits


@given(
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=5),
    bits=st.integers(0, 5),
    seed=st.integers(0, 10**6),
    kind=st.sampled_from([np.uint8, np.int64, np.int32]),
)
@settings(max_examples=50, deadline=None)
def test_buckets_in_a_row_are_the_sorted_list(sizes, bits, seed, kind, tmp_path_factory):
    rng = np.random.default_rng(seed)
    parts = [
        (
            rng.integers(0, 2**64, size, dtype=np.uint64),
            rng.integers(0, 100, size).astype(kind),
        )
        for size in sizes
    ]
    folder = tmp_path_factory.mktemp("runs")
    runs = [write_run(folder / str(i), part, bits=bits) for i, part in enumerate(parts)]
    buckets = [read_bucket(runs, bucket, bits=bits) for bucket in range(2**bits)]
    tags, values = sort_records(parts)
    assert np.concatenate([own for own, _ in buckets]).tolist() == tags.tolist()
    assert np.concatenate([own for _, own in buckets]).tolist() == values.tolist()


def test_equal_tags_share_a_bucket_and_are_in_the_order_of_values(tmp_path):
    tag = np.full(1, 2**63, dtype=np.uint64)
    runs = [
        write_run(tmp_path / str(i), (tag, np.array([value])), bits=3)
        for i, value in enumerate([7, 3, 5])
    ]
    assert read_bucket(runs, 4, bits=3)[1].tolist() == [3, 5, 7]
    assert read_bucket(runs, 3, bits=3)[1].tolist() == []
