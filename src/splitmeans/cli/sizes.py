"""Sizes as people write them: `300M`, `1.5 GiB`, `4096`."""

import re
from fractions import Fraction

from splitmeans.errors import ParameterError

_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([KMGT]?)(?:I?B)?", re.IGNORECASE)


def parse_size(text: str, *, option: str) -> int:
    """Return a number of bytes; units are powers of 1024.

    Args:
        text: Number and unit.
        option: Name of the option, for errors.
    """
    found = _SIZE.fullmatch(text.strip())
    size = 0 if found is None else int(Fraction(found[1]) * 1024 ** _UNITS[found[2].upper()])
    if size < 1:
        raise ParameterError(
            f"{option} must be a size such as 300M, 1.5G or a number of bytes, got {text!r}"
        )
    return size
