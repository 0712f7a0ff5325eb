"""Whether words that memory cannot hold all differ: sorted piece by piece, compared by range.

A block's words are sorted and written as one list, with the places where its ranges begin. The
words of one range of all lists fit memory; equal ones are in the same range.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from splitmeans._types import IntArray, WordArray
from splitmeans.table.walk.spool_folder import new_private_file

_WORD_BYTES = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class SortedWords:
    """Ascending words on disk.

    Attributes:
        path: The file.
        starts: First word of each range, and the number of words; shape (ranges + 1,).
    """

    path: Path
    starts: IntArray


def differ(words: WordArray) -> bool:
    """Return whether no two words are the same; sorts them in place."""
    words.sort()
    return not bool(np.any(words[1:] == words[:-1]))


def write_words(path: Path, words: WordArray, *, bits: int) -> SortedWords:
    """Store words in order, in 2^bits ranges by their leading bits."""
    ordered = np.sort(words)
    # The first word of every range but the first; of one range there is none.
    firsts = np.arange(1, 2**bits, dtype=np.uint64) << np.uint64(64 - bits if bits else 0)
    starts = np.concatenate([[0], np.searchsorted(ordered, firsts), [len(ordered)]])
    with new_private_file(path) as file:
        ordered.tofile(file)
    return SortedWords(path=path, starts=starts.astype(np.int64))


def range_differs(lists: Sequence[SortedWords], part: int) -> bool:
    """Return whether no two words of one range of all lists are the same."""
    return differ(np.concatenate([_read(one, part) for one in lists]))


def _read(words: SortedWords, part: int) -> WordArray:
    first, last = words.starts[part : part + 2].tolist()
    return np.fromfile(words.path, dtype=np.uint64, count=last - first, offset=first * _WORD_BYTES)
