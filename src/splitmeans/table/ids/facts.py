"""What a party sees of its own ids before anything is sent: how many look odd, and how.

Odd is not wrong: "007" may be the id. But an id that one system pads, rounds or copies with a
space at its end is another user to the other parties, and nobody would notice in the result.
Counts are of ids as they were read, before the study's form is applied. They are for the party's
own eyes: true counts of its rows, on no account to be sent to anyone.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitmeans.table.columns import is_text, read_array
from splitmeans.table.ids.forms import BLANK_ENDS, INVISIBLE, ODD_SPACE, is_uuid
from splitmeans.table.plain_arrow import flags_of, numbers_of

# What can be odd about an id, in the words that people read; several may hold for one id.
_PATTERNS = {
    "blanks at the ends": BLANK_ENDS,
    "invisible or control characters": INVISIBLE,
    "unusual or repeated spaces inside": rf"\S(?:{ODD_SPACE}|\s\s+)\s*\S",
    "leading zeros": r"\A\s*[+-]?0[0-9]+\s*\z",
    "looks like a decimal number": r"\A\s*[+-]?[0-9]+\.[0-9]*\s*\z",
    "looks like a number with an exponent": r"(?i)\A\s*[+-]?[0-9]+(?:\.[0-9]*)?e[+-]?[0-9]+\s*\z",
    "thousands separators": r"\A\s*[0-9]{1,3}(?:[,.' ][0-9]{3})+\s*\z",
    "both upper and lower case": r"\p{Lu}.*\p{Ll}|\p{Ll}.*\p{Lu}",
    "stands for a missing value": (
        r"(?i)\A\s*(?:nan|null|none|nil|n/?a|nat|<na>|#n/a|undefined|unknown|missing|-+|\?+)\s*\z"
    ),
}
_NOT_NORMAL = "not in Unicode normal form C"
_LOOK_ALIKE = "characters that look like others (full-width digits, ligatures)"
_NOT_WHOLE = "not a whole number"
_ROUNDED = "too large for its floating-point column"

# Most ids have nothing odd, and one quick pattern says so of nearly all of them: numbers, a word
# and a number, and letters of one case with digits. A few letters alone may stand for a missing
# value, and digits with no letter but "e" may be an exponent.
_MIXED = (
    "[{0}0-9_-]*(?:[{1}][{0}0-9_-]*[0-9_-]|[0-9_-][{0}0-9_-]*[{1}])[{0}0-9_-]*"
    "|[{0}]{{10,}}|[{0}]+ [0-9]+"
)
_PLAIN = rf"\A(?:0|[1-9][0-9]*|{_MIXED.format('a-z', 'a-df-z')}|{_MIXED.format('A-Z', 'A-DF-Z')})\z"


@dataclass(frozen=True, kw_only=True)
class IdFacts:
    """How a party's ids look.

    `kind` is what they are in the source: "text", "whole numbers" and so on. `odd` says how many
    are odd in which way, `n_odd` how many are in one way or more.
    """

    rows: int
    kind: str
    odd: dict[str, int]
    n_odd: int

    def and_more(self, other: "IdFacts") -> "IdFacts":
        """Return the facts of both together."""
        names = [*self.odd, *(name for name in other.odd if name not in self.odd)]
        return IdFacts(
            rows=self.rows + other.rows,
            kind=self.kind if self.kind == other.kind else "of several kinds",
            odd={name: self.odd.get(name, 0) + other.odd.get(name, 0) for name in names},
            n_odd=self.n_odd + other.n_odd,
        )

    def __str__(self) -> str:
        found = "; ".join(f"{name}: {count:,}" for name, count in self.odd.items())
        looks = f"{self.n_odd:,} look odd ({found})" if self.n_odd else "none looks odd"
        return f"{self.rows:,} rows; ids are {self.kind}, {looks}"


def id_facts(values: Any) -> IdFacts:
    """Count odd ids in a column of a table."""
    column = read_array(values, what="ids")
    odd = {name: flags for name, flags in _odd(column).items() if flags.any()}
    together = np.any(list(odd.values()), axis=0) if odd else np.zeros(0)
    return IdFacts(
        rows=len(column),
        kind=_kind(column.type),
        odd={name: int(flags.sum()) for name, flags in odd.items()},
        n_odd=int(together.sum()),
    )


def _kind(kind: pa.DataType) -> str:
    if is_text(kind):
        return "text"
    if pa.types.is_integer(kind):
        return "whole numbers"
    if pa.types.is_floating(kind):
        return "floating-point numbers"
    return "UUIDs" if is_uuid(kind) else str(kind)


def _odd(column: pa.Array) -> dict[str, Any]:
    """Return which ids are odd in which way; of text only those that may be odd, none missing."""
    if pa.types.is_floating(column.type):
        numbers = numbers_of(column)
        return {
            _NOT_WHOLE: ~(np.isfinite(numbers) & (np.rint(numbers) == numbers)),
            _ROUNDED: np.abs(numbers) >= 2**53,
        }
    if not is_text(column.type):
        return {}
    column = column.filter(pc.invert(pc.match_substring_regex(column, pattern=_PLAIN)))
    if len(column) == 0:
        return {}
    found = {
        name: pc.match_substring_regex(column, pattern=pattern)
        for name, pattern in _PATTERNS.items()
    }
    if not pc.all(pc.string_is_ascii(column)).as_py():
        normal = pc.utf8_normalize(column, form="NFC")
        found[_NOT_NORMAL] = pc.not_equal(column, normal)
        # A space that only looks like one has a line of its own above.
        spaces = pc.replace_substring_regex(normal, pattern=ODD_SPACE, replacement=" ")
        found[_LOOK_ALIKE] = pc.not_equal(spaces, pc.utf8_normalize(spaces, form="NFKC"))
    return {name: flags_of(flags) for name, flags in found.items()}
