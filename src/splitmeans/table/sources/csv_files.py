"""Csv files as batches: ids and categories stay text, numbers have one type from first to last.

An empty number or category is a missing value, but for a category that the study lists as "".
A number column that holds something else is read anew as text, so that the table's checks can say
where and what it is.
"""

import re

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from splitmeans.errors import DataError
from splitmeans.study import PartySpec
from splitmeans.table.checks.names import study_columns
from splitmeans.table.columns import is_text
from splitmeans.table.sources.file_list import Files, Opened, Stream

# A block of a csv file is what the types of its columns are guessed from.
_BLOCKS = pyarrow.csv.ReadOptions(block_size=4 * 2**20)
# What Arrow takes for a missing number.
_NO_VALUE = pa.array(pyarrow.csv.ConvertOptions().null_values)

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
            whole = {name for name, kind in _floating(party, schema).items() if as_text}
            try:
                with files.open(path) as source:
                    for batch in pyarrow.csv.open_csv(
                        source, read_options=_BLOCKS, convert_options=options
                    ):
                        if as_text:
                            batch = _with_gaps(batch, party, whole=whole)
                        yield _without_empty(batch, party)
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
    if not as_text:
        types |= _floating(party, guessed)
    return types


def _floating(party: PartySpec, guessed: pa.Schema) -> dict[str, pa.DataType]:
    """Return the categories that are written as 2.0, which means the category "2"."""
    return {
        column.name: guessed.field(column.name).type
        for column in party.columns
        if column.is_categorical
        and column.name in guessed.names
        and pa.types.is_floating(guessed.field(column.name).type)
    }


def _with_gaps(batch: pa.RecordBatch, party: PartySpec, *, whole: set[str]) -> pa.RecordBatch:
    """Return what reading with types would: numbers where all are, gaps as such, and 2.0 as 2."""
    numbers = {column.name for column in party.columns if not column.is_categorical}
    columns = []
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        if name in numbers | whole:
            values = pc.if_else(pc.is_in(values, value_set=_NO_VALUE), None, values)
        if name in numbers:
            values = _numbers_if_all(values)
        if name in whole:
            values = pc.replace_substring_regex(
                values, pattern=r"\A(-?\d+)\.0*\z", replacement=r"\1"
            )
        columns.append(values)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _without_empty(batch: pa.RecordBatch, party: PartySpec) -> pa.RecordBatch:
    """Make empty categories missing values; Arrow's own option would do so with ids and "NA"."""
    for column in party.columns:
        if not column.is_categorical or "" in column.categories:
            continue
        for place in batch.schema.get_all_field_indices(column.name):
            values = batch.column(place)
            if is_text(values.type):
                values = pc.if_else(pc.equal(values, ""), None, values)
                batch = batch.set_column(place, column.name, values)
    return batch


def _numbers_if_all(values: pa.Array) -> pa.Array:
    try:
        return values.cast(pa.float64())
    except pa.ArrowInvalid:
        return values
