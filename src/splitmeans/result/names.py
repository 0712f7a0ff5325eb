"""Names that people give to segments, by letter: for everything that shows or writes segments.

They are the word of whoever holds the result, not the server's: nothing of them is signed.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from splitmeans import _validate
from splitmeans.errors import ParameterError

_LONGEST = 80


def checked_names(names: Any, letters: Sequence[str]) -> dict[str, str]:
    """Return names by letter, in the order of the letters.

    Raises:
        ParameterError: If a letter is no segment's, or a name is no short text.
    """
    if not isinstance(names, Mapping):
        raise ParameterError(
            f"names must be a dict by letter, such as {{'A': 'families'}}, got "
            f"{_validate.shown(names)}"
        )
    for letter, name in names.items():
        if letter not in letters:
            known = ", ".join(letters) or "none"
            raise ParameterError(f"there is no segment {letter!r} to name; there are {known}")
        usable = isinstance(name, str) and name.strip() == name and name.isprintable()
        if not usable or not 1 <= len(name) <= _LONGEST:
            raise ParameterError(
                f"the name of segment {letter!r} must be 1 to {_LONGEST} printable characters "
                f"without spaces around them, got {_validate.shown(name)}"
            )
        # Also letters of other numbers of segments: names stand where letters do.
        if re.fullmatch("[A-Z]{1,2}", name) and name != letter:
            raise ParameterError(
                f"the name of segment {letter!r} must not look like the letter of another segment, "
                f"got {name!r}"
            )
    if len(set(names.values())) != len(names):
        raise ParameterError("names of segments must be different")
    return {letter: names[letter] for letter in letters if letter in names}
