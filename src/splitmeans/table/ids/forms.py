"""The forms in which a study may want its ids: as they are, text, whole numbers, UUIDs, contacts.

Each takes a column without missing values to canonical text, or refuses rows that have no such
form. What is one user and what is two is decided here alone, element by element, so that every
party decides alike; `docs/reference/ids.md` has the table.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitmeans.errors import DataError
from splitmeans.study.id_rules import IdRules
from splitmeans.table.columns import is_text, normalised_text, refuse_rows
from splitmeans.table.ids.contact_forms import caseless, email, phone
from splitmeans.table.plain_arrow import numbers_of

# Spaces of any kind, line ends, control characters, and what has no width (RE2 classes).
BLANK = r"[\s\p{Z}\p{Cc}\p{Cf}]"
BLANK_ENDS = rf"\A{BLANK}+|{BLANK}+\z"
# What text ids may not have inside: two of them could look the same and be different.
INVISIBLE = r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]"
ODD_SPACE = r"[\x{00A0}\x{1680}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}]"

# Beyond this a 64-bit float no longer has every whole number, so an id in it was rounded.
_EXACT = 2**53
_PLAIN_INTEGER = r"\A(?:0|-?[1-9][0-9]*)\z"
_INTEGER = r"\A[+-]?[0-9]+(?:\.0+)?\z"
_ROUNDED = r"\A[+-]?0*[1-9][0-9]{15,}\.0+\z"
_HEX = "[0-9a-f]"
_UUID = (
    rf"\A(?:urn:uuid:)?\{{?({_HEX}{{8}})-?({_HEX}{{4}})-?({_HEX}{{4}})-?({_HEX}{{4}})-?"
    rf"({_HEX}{{12}})\}}?\z"
)

# How ids are compared, for errors about repeated ones.
COMPARED = {
    "as-is": "text is compared in Unicode normal form C",
    "text": "text is compared in Unicode normal form C, without blanks at the ends",
    "caseless": "text is compared in Unicode normal form KC, without case and blanks at the ends",
    "integer": "compared as whole numbers: leading zeros and blanks at the ends do not count",
    "uuid": "compared as UUIDs: case, hyphens and blanks at the ends do not count",
    "email": "compared as e-mail addresses: case and blanks at the ends do not count",
    "phone": "compared as phone numbers in the form of E.164",
}


def to_form(column: pa.Array, *, rules: IdRules, first_row: int) -> pa.LargeStringArray:
    """Return ids in the canonical form of the study.

    Args:
        column: The ids, none of them missing, as `read_array` gives them.
        rules: The study's rules for ids.
        first_row: Row number of the first one, for errors.
    """
    try:
        if rules.type == "phone":
            return phone(_text(column, first_row), rules=rules, first_row=first_row)
        return _FORMS[rules.type](column, first_row)
    except pa.ArrowException:
        raise DataError("ids must be valid UTF-8 text") from None


def is_uuid(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds UUIDs as such."""
    return getattr(kind, "extension_name", "") == "arrow.uuid"


def _as_is(column: pa.Array, first_row: int) -> pa.LargeStringArray:
    if is_uuid(column.type):
        return _uuid_text(column.storage)
    if not is_text(column.type) and not pa.types.is_integer(column.type):
        raise DataError(
            f"ids must be text or whole numbers, got {column.type}; "
            "write them as text at every party in the same way"
        )
    return normalised_text(column)


def _text(column: pa.Array, first_row: int) -> pa.LargeStringArray:
    text = _trimmed(_as_is(column, first_row))
    for odd in (INVISIBLE, ODD_SPACE):
        refuse_rows(
            pc.match_substring_regex(text, pattern=odd),
            'ids must not have invisible characters or unusual spaces inside (ids.type = "text" '
            "of the study)",
            first_row=first_row,
        )
    return text


def _caseless(column: pa.Array, first_row: int) -> pa.LargeStringArray:
    # Normal form KC takes some characters apart into a blank and a mark.
    return _trimmed(caseless(_text(column, first_row)))


def _email(column: pa.Array, first_row: int) -> pa.LargeStringArray:
    return email(_text(column, first_row), first_row=first_row)


def _integer(column: pa.Array, first_row: int) -> pa.LargeStringArray:
    kind = column.type
    if pa.types.is_integer(kind):
        return column.cast(pa.large_string())
    if pa.types.is_floating(kind):
        return _whole_floats(column, first_row)
    if not (is_text(kind) or pa.types.is_decimal(kind)):
        raise DataError(
            f'ids must be whole numbers (ids.type = "integer" of the study), got {kind}'
        )
    text = _trimmed(normalised_text(column))
    if pc.all(pc.match_substring_regex(text, pattern=_PLAIN_INTEGER)).as_py() is not False:
        return text
    refuse_rows(
        pc.invert(pc.match_substring_regex(text, pattern=_INTEGER)),
        'ids must be whole numbers in digits 0 to 9 (ids.type = "integer" of the study)',
        first_row=first_row,
    )
    if is_text(kind):  # a decimal column is exact at any length
        refuse_rows(
            pc.match_substring_regex(text, pattern=_ROUNDED),
            "ids must not be numbers that have passed through a floating-point column, where more "
            "than 15 digits are rounded; read them as text or integers at their origin",
            first_row=first_row,
        )
    text = pc.replace_substring_regex(
        text, pattern=r"\A\+?(-?)0*([0-9]+?)(?:\.0+)?\z", replacement=r"\1\2"
    )
    return pc.if_else(pc.equal(text, _MINUS_ZERO), _ZERO, text)


def _whole_floats(column: pa.Array, first_row: int) -> pa.LargeStringArray:
    """Take 7.0 as 7: pandas holds whole numbers as floats once a value was missing."""
    numbers = numbers_of(column).astype(np.float64)
    whole = np.isfinite(numbers) & (np.rint(numbers) == numbers) & (np.abs(numbers) < _EXACT)
    refuse_rows(
        ~whole,
        'ids must be whole numbers (ids.type = "integer" of the study), below 2^53 in a column of '
        "floating-point numbers",
        first_row=first_row,
    )
    return pa.array(numbers.astype(np.int64)).cast(pa.large_string())


def _uuid(column: pa.Array, first_row: int) -> pa.LargeStringArray:
    kind = column.type
    if is_uuid(kind):
        return _uuid_text(column.storage)
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        return _uuid_text(column)
    if not is_text(kind):
        raise DataError(f'ids must be UUIDs (ids.type = "uuid" of the study), got {kind}')
    text = pc.utf8_lower(_trimmed(normalised_text(column)))
    refuse_rows(
        pc.invert(pc.match_substring_regex(text, pattern=_UUID)),
        'ids must be UUIDs, 32 hexadecimal digits (ids.type = "uuid" of the study)',
        first_row=first_row,
    )
    return pc.replace_substring_regex(text, pattern=_UUID, replacement=r"\1-\2-\3-\4-\5")


def _uuid_text(column: pa.Array) -> pa.LargeStringArray:
    """Write 16 bytes each as 8-4-4-4-12 hexadecimal digits."""
    data = np.frombuffer(column.buffers()[1], dtype=np.uint8)
    rows = data[16 * column.offset : 16 * (column.offset + len(column))].reshape(-1, 16)
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    hexadecimal = digits[np.stack([rows >> 4, rows & 15], axis=2)].reshape(-1, 32)
    text = np.full((len(rows), 36), ord("-"), dtype=np.uint8)
    for start, end, place in ((0, 8, 0), (8, 12, 9), (12, 16, 14), (16, 20, 19), (20, 32, 24)):
        text[:, place : place + end - start] = hexadecimal[:, start:end]
    ends = pa.py_buffer(np.arange(len(rows) + 1, dtype=np.int64) * 36)
    return pa.LargeStringArray.from_buffers(len(rows), ends, pa.py_buffer(text))


def _trimmed(text: pa.LargeStringArray) -> pa.LargeStringArray:
    if not pc.any(pc.match_substring_regex(text, pattern=BLANK_ENDS)).as_py():
        return text
    return pc.replace_substring_regex(text, pattern=BLANK_ENDS, replacement="")


_MINUS_ZERO, _ZERO = pa.array(["-0", "0"], pa.large_string())
_FORMS: dict[str, Callable[[pa.Array, int], pa.LargeStringArray]] = {
    "as-is": _as_is,
    "text": _text,
    "caseless": _caseless,
    "email": _email,
    "integer": _integer,
    "uuid": _uuid,
}
