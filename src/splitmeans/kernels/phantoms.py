"""Registers of the phantoms that live in the cells of a group of parties.

In each row a cell has one value, the maximum of its phantoms: one word of the group's keyed stream
looked up in an integer table. Every party of the group finds the same value for the same cell.
"""

import numpy as np
import numpy.typing as npt

from splitmeans._types import LabelArray, RegisterArray, WordArray
from splitmeans.kernels.compiled import kernel
from splitmeans.kernels.registers import look_up
from splitmeans.kernels.siphash import prf_word

_Word = np.uint64
_32 = _Word(32)


def raise_to_phantoms(
    registers: RegisterArray, *, key: bytes, own_labels: LabelArray, maximum_table: WordArray
) -> None:
    """Raise a party's registers, shape (M, k'), in place to its phantoms' values; inputs validated.

    Args:
        registers: OUT, contiguous; only ever raised.
        key: The 128-bit phantom key of the group.
        own_labels: The party's cluster in each cell, shape (cells,); -1 where the party is absent.
        maximum_table: Thresholds of the maximum of a cell's phantoms
            (`RegisterLaw.maximum_table`).
    """
    inputs: list[npt.NDArray[np.generic]] = [
        np.ascontiguousarray(array).view() for array in (own_labels, maximum_table)
    ]
    for array in inputs:
        # Read-only whatever the source, so that the kernel is compiled for one type only.
        array.setflags(write=False)
    first, second = np.frombuffer(key, dtype="<u8").astype(np.uint64)
    # Hashes wrap by design; NumPy warns of it when the kernels run uncompiled (for coverage).
    with np.errstate(over="ignore"):
        _raise_to_phantoms(first, second, *inputs, registers)


@kernel
def _raise_to_phantoms(key0, key1, own_labels, maxima, registers):  # type: ignore[no-untyped-def]
    """OUT `registers` (M, k'). The counter of a row and cell is row 2^32 + cell."""
    for row in range(registers.shape[0]):
        for cell in range(own_labels.size):
            cluster = own_labels[cell]
            if cluster < 0:
                continue
            counter = (_Word(row) << _32) | _Word(cell)
            value = 1 + look_up(maxima, prf_word(key0, key1, counter))
            if value > registers[row, cluster]:
                registers[row, cluster] = value
