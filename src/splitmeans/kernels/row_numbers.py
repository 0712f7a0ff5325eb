"""Row numbers in place of ids, where all tables are in one process and row i is user i everywhere.

A simulation without ids has nothing to compare: as text the numbers would be written, hashed byte
by byte and compared, which takes longer than clustering. Here a row's tag is two words of a
generator that the key starts: spread as evenly as hashes, different for every key, the same at all
parties. It is no secret to whoever sees some of it, and in a simulation nobody is kept from
anything; a party of a real run always has ids.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitmeans._types import WordArray

_WORDS = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class RowNumbers:
    """The rows from `start` to `end`, or those of them that are `chosen`."""

    start: int
    end: int
    chosen: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return self.end - self.start if self.chosen is None else int(self.chosen.sum())

    def slice(self, offset: int, length: int) -> "RowNumbers":
        """Return some consecutive ones."""
        assert self.chosen is None
        return RowNumbers(start=self.start + offset, end=self.start + offset + length)

    def filter(self, kept: pa.BooleanArray) -> "RowNumbers":
        """Return those that are kept."""
        assert self.chosen is None
        return RowNumbers(
            start=self.start, end=self.end, chosen=kept.to_numpy(zero_copy_only=False)
        )

    def equals(self, other: object) -> bool:
        """Whether the other are the same."""
        if not isinstance(other, RowNumbers) or (self.start, self.end) != (other.start, other.end):
            return False
        if self.chosen is None or other.chosen is None:
            return self.chosen is other.chosen
        return np.array_equal(self.chosen, other.chosen)

    def tags(self, key: bytes) -> WordArray:
        """Return two words for each row, shape (n, 2), whatever part of all rows this is."""
        generator = np.random.PCG64(int.from_bytes(key, "little"))
        generator.advance(_WORDS * self.start)
        words = generator.random_raw(_WORDS * (self.end - self.start)).reshape(-1, _WORDS)
        return np.asarray(words if self.chosen is None else words[self.chosen])

    def text(self) -> pa.LargeStringArray:
        """Return them as ids."""
        numbers = np.arange(self.start, self.end)
        chosen = numbers if self.chosen is None else numbers[self.chosen]
        return pa.array(chosen).cast(pa.large_string())


def as_text(ids: "RowNumbers | pa.LargeStringArray") -> pa.LargeStringArray:
    """Return ids as text, whatever they are."""
    return ids.text() if isinstance(ids, RowNumbers) else ids
