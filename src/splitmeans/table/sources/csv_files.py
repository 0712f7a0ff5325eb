"""Csv files as batches: all is read as text, and numbers are made of it block by block.

An empty number or category is a missing value, but for a category that the study lists as "".
A block of a number column that holds something else stays text, so that the table's checks can say
where and what it is.
"""

import contextlib
import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from splitmeans.errors import DataError
from splitmeans.study import Column, PartySpec
from splitmeans.table.checks.names import study_columns
from splitmeans.table.sources.file_list import Files, Opened

_BLOCKS = pyarrow.csv.ReadOptions(block_size=4 * 2**20)

# Enough for the header of any table that a study can have columns for.
_HEADER_BYTES = 2**20


@contextlib.contextmanager
def read_csv(files: Files, path: str, party: PartySpec) -> Iterator[Opened]:
    """Open one file: its columns, and the study's columns batch by batch."""
    guessed = _schema(files, path)
    names = [guessed.names[place] for place in study_columns(party, guessed.names)]
    types = dict.fromkeys(names, pa.string())
    options = pyarrow.csv.ConvertOptions(column_types=types, include_columns=list(types))

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            with files.open(path) as source:
                for batch in pyarrow.csv.open_csv(
                    source, read_options=_BLOCKS, convert_options=options
                ):
                    yield _read(batch, party, guessed)
        except pa.ArrowInvalid as problem:
            raise _problem(problem, where=files.one(path)) from None

    yield guessed.names, batches()


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
    """Name the kind of fault; Arrow's own words quote the value."""
    if "invalid UTF8" in str(problem):
        return DataError(f"{where}: has text that is not in UTF-8; save the file in UTF-8")
    line = re.match(r"CSV parse error: (?:Row #(\d+): )?Expected \d+ columns", str(problem))
    if line:
        place = f"line {line[1]}" if line[1] else "a line"
        return DataError(
            f"{where}: {place} has more or fewer values than there are columns; put values with a "
            "comma in quotes, and write numbers with a decimal point"
        )
    return DataError(f"{where}: cannot be read as a csv file")


def _read(batch: pa.RecordBatch, party: PartySpec, guessed: pa.Schema) -> pa.RecordBatch:
    """Return a batch with categories as they are meant, and with numbers."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for column in party.columns:
        if column.name not in columns:
            continue
        values = columns[column.name]
        if column.is_categorical:
            columns[column.name] = _categories(values, column)
        else:
            kind = guessed.field(column.name).type
            columns[column.name] = _numbers(values, is_boolean=pa.types.is_boolean(kind))
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


def _numbers(values: pa.Array, *, is_boolean: bool) -> pa.Array:
    """Return numbers if all values are such, or else the text, missing where nothing is meant."""
    missing = pa.array(pyarrow.csv.ConvertOptions().null_values)
    text = pc.if_else(pc.is_in(values, value_set=missing), None, values)
    try:
        return pc.utf8_trim_whitespace(text).cast(pa.bool_() if is_boolean else pa.float64())
    except pa.ArrowInvalid:
        return text
