"""Rows in 32 bits, as tables keep them, and in 64, as most of what is done with them wants them."""

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from splitmeans._types import HalfWidthArray, IntArray

F = TypeVar("F", bound=Callable[..., Any])

# Rows that are made 64 bits wide at a time: they stay in the processor's cache, so half as much
# goes through memory in every pass.
WIDENED_ROWS = 2**15

_MARK = "takes_narrow_rows"


def takes_narrow_rows(function: F) -> F:
    """Mark a function of a block of rows that takes them in 32 bits as well as in 64."""
    setattr(function, _MARK, True)
    return function


def blocks_for(part: Callable[[Any], Any], rows: IntArray | HalfWidthArray) -> Iterator[IntArray]:
    """Yield rows as `part` takes them: as they are, or some at a time in 64 bits.

    There is at least one block. Where `part` is a `functools.partial`, the function inside counts.
    """
    inside = part.func if isinstance(part, functools.partial) else part
    as_it_is = rows.dtype == np.int64 or getattr(inside, _MARK, False)
    step = max(1, len(rows)) if as_it_is else WIDENED_ROWS
    for start in range(0, max(1, len(rows)), step):
        block = rows[start : start + step]
        yield block if as_it_is else block.astype(np.int64)  # type: ignore[misc]
