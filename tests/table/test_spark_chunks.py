"""Records on their way through Spark, without Spark: cut into buckets, brought together, sorted."""

import numpy as np
import pytest

from splitmeans.kernels.counts import in_buckets, sort_records
from splitmeans.table.spark.packed import unpack
from splitmeans.table.spark.tasks import chunks, merge_chunks

RNG = np.random.default_rng(0)
PARTS = [
    (RNG.integers(2**64, size=n, dtype=np.uint64), RNG.integers(5, size=n).astype(np.uint8))
    for n in (100, 0, 57)
]


@pytest.mark.parametrize("bits", [0, 1, 3])
def test_buckets_in_a_row_are_the_sorted_list(bits):
    made = [
        batch
        for block, part in enumerate(PARTS)
        for batch in chunks(part, block=block, bits=bits, also_empty=block == 0)
    ]
    made.sort(key=lambda batch: (batch["bucket"][0].as_py(), batch["block"][0].as_py()))
    merged = list(merge_chunks(iter(made), finish=_same, bits=bits))
    assert len(merged) == 2**bits
    found = [unpack(batch["piece"][0].as_py()) for batch in merged]
    for place, expected in enumerate(sort_records(PARTS)):
        assert (np.concatenate([part[place] for part in found]) == expected).all()


@pytest.mark.parametrize("bits", [0, 1, 5])
def test_a_bucket_has_the_tags_that_begin_with_its_bits_in_their_order(bits):
    tags, values = PARTS[0]
    (cut, labels), starts = in_buckets((tags, values), bits=bits)
    assert starts[0] == 0
    assert starts[-1] == len(tags)
    for bucket in range(2**bits):
        own = [place for place, tag in enumerate(tags.tolist()) if tag >> 64 - bits == bucket]
        piece = slice(starts[bucket], starts[bucket + 1])
        assert (cut[piece] == tags[own]).all()
        assert (labels[piece] == values[own]).all()


def _same(records):
    return records
