"""The forms in which a study may want its ids: as they are, text, whole numbers, UUIDs, contacts.

A form is one row of the table at the end: how a column becomes text, what that text must look like,
and how it is normalised. What is one user and what is two is decided here alone, element by element
and by fixed rules, so that every party decides alike; `docs/reference/ids.md` has the table.
Nothing is looked up and nothing is guessed: a rule that would take two people for one is worse than
one that takes a person for two.
"""

import unicodedata
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitmeans.errors import DataError
from splitmeans.study.id_rules import IdRules
from splitmeans.table.columns import are_whole, is_text, normalised_text
from splitmeans.table.plain_arrow import numbers_of

# Spaces of any kind, line ends, control characters, and what has no width (RE2 classes).
BLANK = r"[\s\p{Z}\p{Cc}\p{Cf}]"
BLANK_ENDS = rf"\A{BLANK}+|{BLANK}+\z"
# What text ids may not have inside: two of them could look the same and be different.
INVISIBLE = r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]"
ODD_SPACE = r"[\x{00A0}\x{1680}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}]"

_PLAIN_INTEGER = r"\A(?:0|-?[1-9][0-9]*)\z"
_INTEGER = r"\A[+-]?[0-9]+(?:\.0+)?\z"
_ROUNDED = r"\A[+-]?0*[1-9][0-9]{15,}\.0+\z"
_HEX = "[0-9a-f]"
_UUID = (
    rf"(?i)\A(?:urn:uuid:)?\{{?({_HEX}{{8}})-?({_HEX}{{4}})-?({_HEX}{{4}})-?({_HEX}{{4}})-?"
    rf"({_HEX}{{12}})\}}?\z"
)
# One @, nothing before it that an address without quotes cannot have, a domain of two or more names
# in ASCII (others are written in their xn-- form).
_EMAIL = (
    r"\A[^\s\p{C}\p{Z}@\"(),:;<>\[\]\\]{1,64}@"
    r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\z"
)
# What people put between digits of a phone number.
_BETWEEN = r"[\s\p{Zs}()./\x{2010}-\x{2015}-]"
# E.164: a calling code and a number, 15 digits at most; shorter ones than 7 are no subscriber's.
_E164 = r"\A\+[1-9][0-9]{6,14}\z"

Texts: TypeAlias = pa.LargeStringArray


class Check(NamedTuple):
    """A rule that each id's text must keep: match the pattern, or not match it."""

    rule: str
    pattern: str
    must_match: bool = True


class Form(NamedTuple):
    """How ids become canonical text.

    Attributes:
        compared: How errors about repeated ids describe it.
        read: Takes a column without missing values to text; refuses other types.
        before: What that text must look like.
        normalised: Brings it to its canonical form.
        after: What that must look like.
        plain: Text that is canonical already; None if nothing is said.
    """

    compared: str
    read: Callable[[pa.Array], Texts]
    before: tuple[Check, ...] = ()
    normalised: Callable[[Texts, IdRules], Texts] = lambda text, rules: text
    after: tuple[Check, ...] = ()
    plain: str | None = None


def matches(text: Texts, pattern: str) -> bool:
    """Return whether all texts match."""
    return pc.all(pc.match_substring_regex(text, pattern=pattern)).as_py() is not False


def is_uuid(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds UUIDs as such."""
    return getattr(kind, "extension_name", "") == "arrow.uuid"


# ---- columns to text ----


def _as_is(column: pa.Array) -> Texts:
    if is_uuid(column.type):
        return _uuid_text(column.storage)
    if not is_text(column.type) and not pa.types.is_integer(column.type):
        raise DataError(
            f"ids must be text or whole numbers, got {column.type}; "
            "write them as text at every party in the same way"
        )
    return normalised_text(column)


def _text(column: pa.Array) -> Texts:
    return _trimmed(_as_is(column))


def _digits(column: pa.Array) -> Texts:
    """Write whole numbers in decimal; a float that is none as text that is none."""
    kind = column.type
    if pa.types.is_floating(kind):
        # pandas holds whole numbers as floats once a value was missing: 7.0 is 7.
        numbers = numbers_of(column).astype(np.float64)
        whole = are_whole(numbers)
        text = pa.array(np.where(whole, numbers, 0).astype(np.int64)).cast(pa.large_string())
        return pc.if_else(pa.array(whole), text, pa.scalar("?", pa.large_string()))
    if pa.types.is_decimal(kind):  # exact at any length
        text = normalised_text(column)
        return pc.replace_substring_regex(text, pattern=r"\.0+\z", replacement="")
    if not (is_text(kind) or pa.types.is_integer(kind)):
        raise DataError(
            f'ids must be whole numbers (ids.type = "integer" of the study), got {kind}'
        )
    return _trimmed(normalised_text(column))


def _uuids(column: pa.Array) -> Texts:
    kind = column.type
    if is_uuid(kind):
        return _uuid_text(column.storage)
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        return _uuid_text(column)
    if not is_text(kind):
        raise DataError(f'ids must be UUIDs (ids.type = "uuid" of the study), got {kind}')
    return _trimmed(normalised_text(column))


def _uuid_text(column: pa.Array) -> Texts:
    """Write 16 bytes each as 8-4-4-4-12 hexadecimal digits."""
    data = np.frombuffer(column.buffers()[1], dtype=np.uint8)
    digits = data[16 * column.offset : 16 * (column.offset + len(column))].tobytes().hex()
    rows = np.frombuffer(digits.encode(), dtype=np.uint8).reshape(-1, 32)
    text = np.insert(rows, [8, 12, 16, 20], ord("-"), axis=1)
    ends = np.arange(len(rows) + 1, dtype=np.int64) * 36
    return pa.LargeStringArray.from_buffers(len(rows), pa.py_buffer(ends), pa.py_buffer(text))


def _trimmed(text: Texts) -> Texts:
    if not pc.any(pc.match_substring_regex(text, pattern=BLANK_ENDS)).as_py():
        return text
    return pc.replace_substring_regex(text, pattern=BLANK_ENDS, replacement="")


# ---- text to its canonical form ----


def _caseless(text: Texts, rules: IdRules) -> Texts:
    """Return text in Unicode normal form KC without case (full case folding)."""
    if pc.all(pc.string_is_ascii(text)).as_py() is not False:
        return pc.utf8_lower(text)
    # Normal form KC takes some characters apart into a blank and a mark.
    return _trimmed(pa.array([_folded(one) for one in text.to_pylist()], pa.large_string()))


def _folded(text: str) -> str:
    # Folding can undo a normal form, so it is taken again (Unicode, section 3.13).
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _hyphenated(text: Texts, rules: IdRules) -> Texts:
    lower = pc.utf8_lower(text)
    return pc.replace_substring_regex(lower, pattern=_UUID, replacement=r"\1-\2-\3-\4-\5")


def _plain_integer(text: Texts, rules: IdRules) -> Texts:
    short = pc.replace_substring_regex(
        text, pattern=r"\A\+?(-?)0*([0-9]+?)(?:\.0+)?\z", replacement=r"\1\2"
    )
    zero, minus_zero = pa.scalar("0", pa.large_string()), pa.scalar("-0", pa.large_string())
    return pc.if_else(pc.equal(short, minus_zero), zero, short)


def _international(text: Texts, rules: IdRules) -> Texts:
    """Return phone numbers in the form of E.164."""
    trunk = "0" if rules.trunk is None else rules.trunk
    steps = [(_in_brackets(trunk, rules), r"\1")] if trunk else []
    steps += [(_BETWEEN, ""), (r"\A00", "+")]
    if rules.country is not None:
        inside = r"\A([0-9]+)\z"
        if trunk == "1":  # North America: ten digits, with or without the 1 before them
            inside = r"\A1?([2-9][0-9]{9})\z"
        elif trunk:
            # No number begins with 0 after its calling code, but some do with 8: +7 812 is a town.
            code = rf"(?:\{rules.country})?" if trunk.startswith("0") else ""
            inside = rf"\A{code}{trunk}([1-9][0-9]*)\z"
        steps.append((inside, rf"{rules.country}\1"))
    for pattern, replacement in steps:
        text = pc.replace_substring_regex(text, pattern=pattern, replacement=replacement)
    return text


def _in_brackets(trunk: str, rules: IdRules) -> str:
    """Return what a trunk digit in brackets looks like, as in +49 (0)30: for callers inside alone.

    A 0 is one after any calling code. Other digits are so in the study's country alone: elsewhere
    they may be an area, as in +33 (1).
    """
    digits = rf"(?:{_BETWEEN}*[0-9]){{1,3}}"
    if not trunk.startswith("0"):
        assert rules.country is not None, "the rules were not checked"
        digits = "".join(rf"{_BETWEEN}*{digit}" for digit in rules.country[1:])
    return rf"\A({_BETWEEN}*(?:\+|0{_BETWEEN}*0){digits}{_BETWEEN}*)\(\s*{trunk}\s*\)"


_VISIBLE = (
    Check(
        'ids must not have invisible characters or unusual spaces inside (ids.type = "text" of the '
        "study)",
        f"{INVISIBLE}|{ODD_SPACE}",
        must_match=False,
    ),
)

FORMS = {
    "as-is": Form("text is compared in Unicode normal form C", _as_is),
    "text": Form(
        "text is compared in Unicode normal form C, without blanks at the ends", _text, _VISIBLE
    ),
    "caseless": Form(
        "text is compared in Unicode normal form KC, without case and blanks at the ends",
        _text,
        _VISIBLE,
        _caseless,
    ),
    "email": Form(
        "compared as e-mail addresses: case and blanks at the ends do not count",
        _text,
        _VISIBLE,
        _caseless,
        (
            Check(
                'ids must be e-mail addresses (ids.type = "email" of the study): one @, no name or '
                "brackets around it, the domain in ASCII",
                _EMAIL,
            ),
        ),
    ),
    "phone": Form(
        "compared as phone numbers in the form of E.164",
        _text,
        _VISIBLE,
        _international,
        (
            Check(
                'ids must be phone numbers (ids.type = "phone" of the study): digits after + or 00 '
                "and the calling code, or as they are dialled inside ids.country; 7 to 15 digits, "
                "no extension",
                _E164,
            ),
        ),
    ),
    "integer": Form(
        "compared as whole numbers: leading zeros and blanks at the ends do not count",
        _digits,
        (
            Check(
                'ids must be whole numbers in digits 0 to 9 (ids.type = "integer" of the study), '
                "below 2^53 in a column of floating-point numbers",
                _INTEGER,
            ),
            Check(
                "ids must not be numbers that have passed through a floating-point column, where "
                "more than 15 digits are rounded; read them as text or integers at their origin",
                _ROUNDED,
                must_match=False,
            ),
        ),
        _plain_integer,
        plain=_PLAIN_INTEGER,
    ),
    "uuid": Form(
        "compared as UUIDs: case, hyphens and blanks at the ends do not count",
        _uuids,
        (
            Check(
                'ids must be UUIDs, 32 hexadecimal digits (ids.type = "uuid" of the study)', _UUID
            ),
        ),
        _hyphenated,
    ),
}
