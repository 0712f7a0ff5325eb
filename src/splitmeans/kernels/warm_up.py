"""Compile every kernel now rather than in the middle of the work.

The first use of a kernel on a machine compiles it, about twenty seconds for all of them; after that
the compiled code is read from disk. Commands call this at their start and say so; a library user
who never calls it only waits at another moment.
"""

import contextlib
import logging
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from splitmeans.kernels import lloyd, steps
from splitmeans.kernels.assign import clipped_sums, nearest, nearest_sums
from splitmeans.kernels.cluster_bins import cluster_bins
from splitmeans.kernels.coded_rows import coded_nearest, coded_sums
from splitmeans.kernels.compiled import object_folder
from splitmeans.kernels.counts import (
    ascending,
    count_in_order,
    count_joined,
    decoy_records,
    sort_records,
)
from splitmeans.kernels.discrete_gaussian import discrete_gaussian
from splitmeans.kernels.histograms import cell_histogram, column_histograms, score_products
from splitmeans.kernels.normal import normal_tails
from splitmeans.kernels.packing import pack_bits, unpack_bits
from splitmeans.kernels.phantoms import raise_to_phantoms
from splitmeans.kernels.plain_text import plain_texts
from splitmeans.kernels.points import as_points
from splitmeans.kernels.quantise import to_grid_column, to_grid_rows
from splitmeans.kernels.ready import is_ready
from splitmeans.kernels.redraw import count_pairs, redraw_labels
from splitmeans.kernels.registers import user_registers
from splitmeans.kernels.screen import in_single, screen, to_screen
from splitmeans.kernels.set_sums import KEY_BYTES, number_sum
from splitmeans.kernels.siphash import hash_ids
from splitmeans.kernels.swaps import exchange
from splitmeans.kernels.tallies import tally_columns
from splitmeans.kernels.tilting import tilted_sums

_log = logging.getLogger(__name__)
_MARK = "all-compiled"
_KEY = b"sixteen bytes..."


def is_warm() -> bool:
    """Return whether all kernels of this version have been compiled, here or for the wheel."""
    return is_ready() or (object_folder() / _MARK).exists()


def warm_up(say: Callable[[str], None] | None = None) -> None:
    """Compile all kernels, unless that was done before; `say` is told if it takes time."""
    if is_warm():
        return
    text = "compiling kernels, once for this version on this machine (about 20 seconds)"
    if say is None:
        _log.info("%s", text)
    else:
        say(text)
    _call_all()
    # Without a place to keep them the kernels are compiled again next time.
    with contextlib.suppress(OSError):
        object_folder().mkdir(parents=True, exist_ok=True)
        (object_folder() / _MARK).touch()


def _call_all() -> None:
    """Call every kernel once, on inputs of the types that it gets in earnest."""
    rows, limits = np.array([[1, -2], [3, 4]]), np.array([8, 8])
    centres, labels = np.array([[0, 0], [2, 2]]), np.array([0, 1], dtype=np.int32)
    nearest(rows, centres)
    nearest_sums(rows, centres)
    pair_of_labels, sure = np.empty(2, dtype=np.int32), np.empty(2, dtype=np.bool_)
    screen(in_single(rows.T * 1.0), to_screen(centres * 1.0), labels=pair_of_labels, certain=sure)
    clipped_sums(rows, limits=limits, centres=centres, radii=np.array([2, 2]))
    _call_lloyd()
    discrete_gaussian(4, 2, lambda size: np.frombuffer(os.urandom(8 * size), dtype=np.uint64))
    pair, starts, ties = np.zeros((1, 2), dtype=np.int64), np.array([0, 1, 2]), np.zeros((2, 2))
    count_pairs(pair, starts=starts)
    redraw_labels(pair, sizes=np.zeros(2), ties=ties, starts=starts, uniforms=np.zeros((1, 2)))
    normal_tails(np.ones(3))
    tilted_sums(np.ones((2, 1, 2)), np.zeros((2, 1), dtype=np.int64), np.zeros((1, 2)), np.zeros(2))
    bins, places = np.array([4, 4]), np.zeros(8, dtype=np.int64)
    counted: Any
    for counted in (rows.astype(np.int32), rows):
        column_histograms(counted, limits=limits, bins=bins)
        cell_histogram(counted, limits=limits, bins=bins, places=places, n_cells=1)
        score_products(counted, limits=limits, bins=bins, scores=places, longest=4)
    cluster_bins(
        rows,
        labels,
        n_clusters=2,
        edges=np.array([0]),
        bins=np.array([2, 2]),
        levels=np.array([0, 2]),
        pairs=np.array([[0, 1]]),
    )
    exchange(
        np.array([[0, 0], [1, 1]]),
        parties=np.array([0, 1]),
        firsts=np.array([[-1, 0], [0, -1]]),
        strides=np.array([[0, 2], [1, 0]]),
        excess=np.zeros(4),
        steps=2,
        rng=np.random.default_rng(0),
    )
    coded_nearest(rows, centres=centres, limits=limits, levels=(0, 0))
    coded_sums(rows, centres=centres, radii=np.array([2, 2]), limits=limits, levels=(0, 0))
    grid = np.empty((2, 2), dtype=np.int64)
    to_grid_column(np.zeros(2), low=0.0, high=1.0, bound=8, stand_in=0.0, out=grid[:, 0])
    narrow, ends = np.empty((2, 2), dtype=np.int32), np.array([0.0, 1.0])
    to_grid_rows(
        np.zeros((2, 2)),
        lows=ends - 1,
        highs=ends,
        bounds=limits,
        out=narrow,
        outside=np.zeros(2, dtype=np.int64),
    )

    ids = pa.array(["a", "b"], pa.large_string())
    number_sum(bytes(KEY_BYTES), ids)
    tags = hash_ids(_KEY, ids)
    plain_texts(ids)
    table = np.array([2**62, 2**63], dtype=np.uint64)
    registers = user_registers(
        tags, labels, n_clusters=2, repetitions=4, floor=1, count_table=table, excess_table=table
    )
    raise_to_phantoms(registers, key=_KEY, own_labels=labels, maximum_table=table)
    tally_columns(registers, registers, floor=int(registers.min()), size=8)

    small = labels.astype(np.uint8)
    decoy_records(_KEY, _KEY, cdf_table=table, shape=(2, 2), n_cells=4, axis=0, absent=-1)
    for values in (small, labels, labels.astype(np.int64)):
        ordered, _ = sort_records([(tags, values)])
    ascending(ordered)
    count_joined([ordered, ordered], [small, small], shape=(3, 3))
    count_in_order([small, small], shape=(2, 2))
    unpack_bits(pack_bits(small, width=1), 2, width=1)


def _call_lloyd() -> None:
    points = as_points(np.array([[0.0], [1.0], [2.0]]), np.ones(3))
    numbers, codes, firsts, spans = points.numbers, points.codes, points.firsts, points.spans
    centres, labels, everyone = numbers[:1].copy(), np.zeros(3, dtype=np.int32), np.arange(3)
    upper, lower = np.zeros((2, 3), dtype=np.float32)
    steps.spread(points.single, codes, spans, points.weights, np.zeros((1, 2)), everyone[:1])
    steps.to_rest(
        *(numbers, points.single, codes, firsts, spans, points.weights, points.squares),
        *(points.largest, 0.0, 1, centres, centres.copy(), labels, upper, lower),
        np.zeros((1, 3)),
        np.zeros(3),
    )
    lloyd.spreads(numbers, points.weights, labels, centres, np.zeros((1, 1)))
    lloyd.half_sums(
        *(numbers, codes, firsts, spans, points.weights, labels, centres, everyone[:1]),
        np.zeros((2, 1, 2)),
    )
