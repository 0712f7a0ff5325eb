"""Csv files as batches: ids and categories stay text, numbers have one type from first to last.

An empty number or category is a missing value, but for a category that the study lists as "".
A number column that holds something else is read anew as text, so that the table's checks can say
where and what it is.
"""

import functools
import re

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from splitmeans.errors import DataError
from splitmeans.study import Column, PartySpec
from splitmeans.table.checks.names import study_columns
from splitmeans.table.columns import is_text
from splitmeans.table.sources.file_list import Files, Opened, Stream

# A block of a csv file is what the types of its columns are guessed from.
_BLOCKS = pyarrow.csv.ReadOptions(block_size=4 * 2**20)
# What Arrow takes for a missing number.

# Enough for the header of any table that a study can have columns for.
_HEADER_BYTES = 2**20


class TextAmongNumbers(DataError):
    """A number column has text in it: read the file anew with `as_text` to find out where."""


def read_csv(files: Files, party: PartySpec, *, as_text: bool = False) -> Opened:
    """Return the columns of the first file, and all rows batch by batch.

    Args:
        files: The files.
        party: The study's columns; others are not read.
        as_text: Read all numbers as text.

    Raises:
        TextAmongNumbers: Here or from the stream, unless they are read as text.
    """

    def batches() -> Stream:
        for path in files.paths:
            schema = _schema(files, path)
            files.check_other(path, party, schema.names)
            if not as_text:
                _refuse_text(files, path, party, schema)
            types = _types(party, schema, as_text=as_text)
            options = pyarrow.csv.ConvertOptions(column_types=types, include_columns=list(types))
            try:
                with files.open(path) as source:
                    for batch in pyarrow.csv.open_csv(
                        source, read_options=_BLOCKS, convert_options=options
                    ):
                        yield _read(batch, party, as_text=as_text)
            except pa.ArrowInvalid as problem:
                raise _problem(problem, where=files.one(path)) from None

    return tuple(_schema(files, files.paths[0]).names), batches()


def _schema(files: Files, path: str) -> pa.Schema:
    where = files.one(path)
    problem: DataError | None = None
    schema = pa.schema([])
    try:
        with (
            files.open(path) as source,
            pyarrow.csv.open_csv(source, read_options=_BLOCKS) as reader,
        ):
            schema = reader.schema
    except pa.ArrowInvalid as raised:
        problem = _problem(raised, where=where)
    if len(schema.names) < 2:  # none: a line with decimal commas has more values than the header
        _refuse_other_separators(files, path)
    if problem is not None:
        raise problem
    return schema


def _refuse_other_separators(files: Files, path: str) -> None:
    """Say so if the header has another separator and no comma, as some spreadsheets write."""
    with files.open(path) as source:
        header = (source.read(_HEADER_BYTES).splitlines() or [b""])[0]
    for mark, name in ((b";", "semicolons"), (b"\t", "tabs")):
        if mark in header and b"," not in header:
            raise DataError(
                f"{files.one(path)}: the values must be separated by commas, and the file seems to "
                f"be separated by {name}; save it with commas and decimal points, or read it by a "
                "DuckDB query (--data duckdb:// with read_csv, see the guide on data sources)"
            )


def _problem(problem: pa.ArrowInvalid, *, where: str) -> DataError:
    """Name the column, or the kind of fault; Arrow's own words quote the value."""
    if "invalid UTF8" in str(problem):
        return DataError(f"{where}: has text that is not in UTF-8; save the file in UTF-8")
    column = re.match(r"In CSV column #(\d+)", str(problem))
    if column:
        return TextAmongNumbers(
            f"{where}: a number column has a value that is no number; write numbers as 1234.5, "
            "without units or separators, and leave missing values empty"
        )
    line = re.match(r"CSV parse error: (?:Row #(\d+): )?Expected \d+ columns", str(problem))
    if line:
        place = f"line {line[1]}" if line[1] else "a line"
        return DataError(
            f"{where}: {place} has more or fewer values than there are columns; put values with a "
            "comma in quotes, and write numbers with a decimal point"
        )
    return DataError(f"{where}: cannot be read as a csv file")


def _refuse_text(files: Files, path: str, party: PartySpec, guessed: pa.Schema) -> None:
    """Refuse number columns whose first values are none, as far as types are guessed."""
    for column in party.columns:
        if column.is_categorical or column.name not in guessed.names:
            continue
        kind = guessed.field(column.name).type
        if is_text(kind) or pa.types.is_temporal(kind):
            raise TextAmongNumbers(f"{files.one(path)}: column {column.name!r} must hold numbers")


def _types(party: PartySpec, guessed: pa.Schema, *, as_text: bool) -> dict[str, pa.DataType]:
    """Fix the types of the study's columns, so that no later block has another guess.

    Ids and categories stay text: read as numbers, "007" and "7" would be the same.
    """
    numbers = {column.name for column in party.columns if not column.is_categorical}
    types = {}
    for place in study_columns(party, guessed.names):
        name, kind = guessed.names[place], guessed.field(place).type
        types[name] = pa.string()
        if name in numbers and not as_text:
            types[name] = kind if pa.types.is_boolean(kind) else pa.float64()
    return types


def _read(batch: pa.RecordBatch, party: PartySpec, *, as_text: bool) -> pa.RecordBatch:
    """Return a batch with categories as they are meant, and numbers that were read as text."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for column in party.columns:
        if column.name not in columns:
            continue
        values = columns[column.name]
        if column.is_categorical:
            columns[column.name] = _categories(values, column)
        elif as_text:
            gaps = pc.is_in(values, value_set=_no_value())
            columns[column.name] = _numbers_if_all(pc.if_else(gaps, None, values))
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _categories(values: pa.Array, column: Column) -> pa.Array:
    """Return categories, missing where nothing is written, and 2 where 2.0 is.

    Whole numbers with gaps are written as 2.0 by some tools. Each value is taken for itself,
    whatever others the column has: one row must not change what another means (rule R7).
    """
    whole = pc.replace_substring_regex(values, pattern=r"\A(-?\d+)\.0*\z", replacement=r"\1")
    listed = pc.is_in(values, value_set=pa.array(column.categories, pa.string()))
    empty = pc.equal(values, "")
    return pc.if_else(listed, values, pc.if_else(empty, None, whole))


def _numbers_if_all(values: pa.Array) -> pa.Array:
    try:
        return values.cast(pa.float64())
    except pa.ArrowInvalid:
        return values


@functools.cache
def _no_value() -> pa.Array:
    """What means a missing value."""
    return pa.array(pyarrow.csv.ConvertOptions().null_values)
