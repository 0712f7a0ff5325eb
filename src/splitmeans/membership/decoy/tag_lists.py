"""Sorted lists of short tags as bytes: about 2.3 a record, and a length that follows from theirs.

A tag is the leading bits of a pseudorandom word. That tags are short costs no privacy: whatever
their length, they are independent and uniform, and equal ones tell nothing (`encode`). It costs
accuracy: among n tags of b bits one is equal to another one's by chance about n / 2^b times. So
they have `LOW_BITS` more than it takes to number the records that a table is expected to have.

Elias-Fano coding of n tags with h + 16 bits: the low 16 bits of each one after the other, and of
the h high bits a bitmap of n + 2^h bits. For each of the 2^h values in turn it has a one for each
tag that begins with it, then a zero. Bits of a byte begin at the low end.
"""

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from splitmeans._types import WordArray
from splitmeans.errors import ProtocolError
from splitmeans.kernels.packing import ByteArray

LowArray = npt.NDArray[np.uint16]

LOW_BITS = 16
# A range of tags is read at a time, so there must be some; this many cost half a kilobyte.
_FEWEST_HIGH_BITS = 12
# Nobody expects more records than this; a bitmap for fewer is right for more, only longer.
_MOST_HIGH_BITS = 40
_WORD_BITS = 64


def high_bits_for(records: float) -> int:
    """Return the high bits of tags, h, where a table is expected to have so many records."""
    bits = math.ceil(math.log2(max(records, 1)))
    return min(max(bits, _FEWEST_HIGH_BITS), _MOST_HIGH_BITS)


def short_tags(words: WordArray, *, high_bits: int) -> WordArray:
    """Return words with all bits zero but those of the tag, the leading ones."""
    unused = np.uint64(_WORD_BITS - LOW_BITS - high_bits)
    return np.asarray(words >> unused << unused)


def coded_size(n_tags: int, *, high_bits: int) -> int:
    """Return the bytes of so many coded tags."""
    return 2 * n_tags + bitmap_size(n_tags, high_bits=high_bits)


def bitmap_size(n_tags: int, *, high_bits: int) -> int:
    """Return the bytes of the bitmap of so many tags."""
    return -(-(n_tags + (1 << high_bits)) // 8)


def code_tags(tags: WordArray, *, high_bits: int) -> tuple[LowArray, ByteArray]:
    """Return the low bits of ascending tags, as `short_tags` gives them, and the bitmap."""
    numbers = tags >> np.uint64(_WORD_BITS - LOW_BITS - high_bits)
    marks = np.zeros(len(tags) + 2**high_bits, dtype=np.bool_)
    marks[(numbers >> np.uint64(LOW_BITS)).astype(np.int64) + np.arange(len(tags))] = True
    return numbers.astype(np.uint16), np.packbits(marks, bitorder="little")


def tag_pieces(
    lows: LowArray, bitmap: ByteArray, *, high_bits: int, n_pieces: int, most: int
) -> Iterator[WordArray]:
    """Yield the tags of equal ranges, one after the other, as ascending whole numbers.

    `n_pieces` is how many ranges, a power of two up to 2^h, `most` the most tags of one. Memory
    holds one piece; the arrays may be views of a file.

    Raises:
        ProtocolError: The bytes are not what `code_tags` makes of any ascending tags, or a range
            has more than `most` of them.
    """
    if bitmap.shape != (bitmap_size(len(lows), high_bits=high_bits),):
        raise ProtocolError(f"the bitmap of {len(lows)} tags has a wrong size")
    step = 2**high_bits // n_pieces
    place = taken = 0  # bits of the bitmap, and tags
    for piece in range(n_pieces):
        window = _bits(bitmap[: (place + step + most + 7) // 8], place)[: step + most]
        ends = np.flatnonzero(window == 0)
        if len(ends) < step:
            raise ProtocolError("tags crowd in one part of their range")
        window = window[: ends[step - 1] + 1]
        marks = np.flatnonzero(window)
        own = lows[taken : taken + len(marks)]
        if len(own) < len(marks):
            raise ProtocolError("the bitmap has more tags than there are")
        highs = piece * step + marks - np.arange(len(marks))
        tags = (highs.astype(np.uint64) << np.uint64(LOW_BITS)) | own
        if np.any(tags[1:] < tags[:-1]):
            raise ProtocolError("tags must ascend")
        place, taken = place + len(window), taken + len(marks)
        yield tags
    if taken < len(lows):
        raise ProtocolError("the bitmap has fewer tags than there are")
    if _bits(bitmap, place).any():
        raise ProtocolError("the bitmap has bits set after its end")


def _bits(bitmap: ByteArray, start: int) -> ByteArray:
    """Return the bits of a bitmap from one of them on, one a byte."""
    return np.unpackbits(bitmap[start // 8 :], bitorder="little")[start % 8 :]
