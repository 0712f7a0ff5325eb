"""Texts in csv files: never a formula for the spreadsheet that opens the file.

Names of columns, categories, segments and parties are chosen by several organisations, ids by a
table. A spreadsheet runs a cell that begins with = + - @, a tab or a line end as a formula. Such a
text gets a single quote in front (OWASP, "CSV Injection"). So does one that begins with a quote
already: taking one quote away always restores the text, and different texts stay different. The
same holds after each semicolon: spreadsheets of many languages begin a cell there.
Numbers stay as they are, and so does a text that is a number, such as the id -5: it is no formula,
and joins its table.
"""

import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# The wide forms are taken for the narrow ones in some languages.
_FIRST = "[=+\\-@\t\r\n'\uff1d\uff0b\uff0d\uff20]"
_RISKY = f"(^|;)({_FIRST})"
_QUOTED = f"(^|;)'({_FIRST})"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_WITH_QUOTE, _WITHOUT_QUOTE = r"\1'\2", r"\1\2"


def safe_text(text: str) -> str:
    """Return a text as a csv file may have it."""
    is_number = re.match(_NUMBER, text) and not text.endswith("\n")
    return text if is_number else re.sub(_RISKY, _WITH_QUOTE, text)


def safe_row(cells: Iterable[Any]) -> list[Any]:
    """Return a row, or headings, with safe texts; other values as they are."""
    return [safe_text(cell) if isinstance(cell, str) else cell for cell in cells]


def safe_table(table: pa.Table) -> pa.Table:
    """Return a table with safe headings and texts."""
    columns = [_safe_column(column) for column in table.columns]
    return pa.Table.from_arrays(columns, names=safe_row(table.column_names))


def also_restored(table: pa.Table) -> pa.Table:
    """Return texts of a csv file, and below them all rows without the quotes of `safe_table`.

    A reader that looks for texts then finds them, whether this package wrote the file or not.
    """
    columns = [
        pc.replace_substring_regex(column, _QUOTED, _WITHOUT_QUOTE) for column in table.columns
    ]
    names = [re.sub(_QUOTED, _WITHOUT_QUOTE, name) for name in table.column_names]
    restored = pa.Table.from_arrays(columns, names=names)
    return pa.concat_tables([table.rename_columns(names), restored])


def _safe_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    safe = pc.replace_substring_regex(column, _RISKY, _WITH_QUOTE)
    return pc.if_else(pc.match_substring_regex(column, _NUMBER), column, safe)
