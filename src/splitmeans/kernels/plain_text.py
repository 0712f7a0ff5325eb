"""Which texts are plain: a whole number, or letters of one case with digits and dashes.

A look at the kinds of their bytes is enough to tell, where a pattern is matched letter by letter.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitmeans.kernels.compiled import kernel
from splitmeans.kernels.siphash import string_buffers

# Kinds of bytes. An "e" alone among digits would be an exponent, so it is a kind of its own.
_DIGIT, _LOWER, _UPPER, _DASH, _SMALL_E, _LARGE_E, _OTHER = 1, 2, 4, 8, 16, 32, 64
# Words of one case for a missing value are no longer than this.
_LONGEST_WORD = 9
_ZERO = ord("0")


def plain_texts(texts: "pa.StringArray | pa.LargeStringArray") -> npt.NDArray[np.bool_]:
    """Return which texts are certainly plain; of others nothing is said.

    Plain are whole numbers without a sign or leading zeros, and letters `a-z` or `A-Z`, not both,
    with digits, `-` and `_`, unless they are short and have letters alone, or none but an "e".
    """
    data, offsets = string_buffers(texts)
    plain = np.empty(len(texts), dtype=np.bool_)
    _find_plain(data, offsets, _KINDS, plain)
    return plain


@kernel
def _find_plain(data, offsets, kinds, plain):  # type: ignore[no-untyped-def]
    """OUT `plain` (n,): whether data[offsets[i]:offsets[i + 1]] is."""
    for i in range(plain.size):
        start, end = offsets[i], offsets[i + 1]
        seen = 0
        for position in range(start, end):
            seen |= kinds[data[position]]
        if seen == _DIGIT:
            plain[i] = data[start] != _ZERO or end - start == 1
            continue
        lower = seen & _LOWER and not seen & (_UPPER | _LARGE_E | _OTHER)
        upper = seen & _UPPER and not seen & (_LOWER | _SMALL_E | _OTHER)
        word = not seen & (_DIGIT | _DASH) and end - start <= _LONGEST_WORD
        plain[i] = (lower or upper) and not word


def _kinds_of_bytes() -> npt.NDArray[np.uint8]:
    kinds = np.full(256, _OTHER, dtype=np.uint8)
    kinds[ord("0") : ord("9") + 1] = _DIGIT
    kinds[ord("a") : ord("z") + 1] = _LOWER
    kinds[ord("A") : ord("Z") + 1] = _UPPER
    kinds[[ord("-"), ord("_")]] = _DASH
    kinds[ord("e")], kinds[ord("E")] = _SMALL_E, _LARGE_E
    return kinds


_KINDS = _kinds_of_bytes()
