"""A file with the segments of a party's own users (phase 5; see `labels`).

The file is written beside its place and moved there when it is complete. It stays with the party:
nothing here sends anything.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from splitmeans.csv_cells import safe_table
from splitmeans.errors import DataError, ParameterError
from splitmeans.party.label_frame import label_columns, settled_party, with_public_bounds
from splitmeans.party.labels import segment_probabilities
from splitmeans.result.result import Result, Segmentation
from splitmeans.study import PartySpec
from splitmeans.study.coding import coding_of
from splitmeans.table.batches import joined
from splitmeans.table.checks.facts import BoundFacts, clipping_problems
from splitmeans.table.checks.problems import refuse
from splitmeans.table.checks.rows import check_rows
from splitmeans.table.columns import is_text
from splitmeans.table.options import Progress
from splitmeans.table.prepare import PartyTable
from splitmeans.table.sources.open import read_batches

# Rows that are labelled at a time.
_BATCH = 200_000


def write_labels(
    result: Result,
    data: str | Path,
    output: Path,
    *,
    party: str,
    segments: Segmentation,
    progress: Progress,
    query: str | None = None,
    allow_clipping: bool = False,
) -> int:
    """Write each user's id, likeliest segment and probability of every segment; return the rows.

    Columns: the study's id column with ids as the table has them, then those of `label_columns`; a
    row for each row of the table, in its order, so that the labels join the table again. The data
    is read and labelled in parts, so it may be larger than memory.

    Guarantee: reads the party's own rows and published values; releases nothing. The labels are a
    function of the rows and as sensitive as they are; the file can be read by its owner alone.

    `data` is a path or URL as `open_source` takes it, with a query for a database; the output ends
    in .parquet or .csv. `allow_clipping` takes a table also if more than half of a column's values
    lie outside the study's bounds, as in other units.

    Raises:
        DataError: If the data breaks a rule of the study; values are never shown.
    """
    result.check_segments()
    spec = settled_party(result, party)
    rows = 0
    with replacing(output) as draft, contextlib.ExitStack() as opened:
        writer: Any = None
        is_csv = output.suffix.lower() == ".csv"
        parts = party_parts(result, spec, data, query=query, allow_clipping=allow_clipping)
        for table, ids, total in parts:
            own_ids = csv_ids(ids, canonical=table.ids) if is_csv else ids
            labelled = _labelled(table, own_ids, result, spec=spec, segments=segments)
            labelled = safe_table(labelled) if is_csv else labelled
            if writer is None:
                kind = pyarrow.csv.CSVWriter if is_csv else pq.ParquetWriter
                writer = opened.enter_context(kind(draft, labelled.schema))
            writer.write_table(labelled)
            rows += len(table)
            progress("label", rows=len(table), of=total)
    return rows


def party_parts(
    result: Result,
    spec: PartySpec,
    data: str | Path,
    *,
    query: str | None,
    allow_clipping: bool,
) -> Iterator[tuple[PartyTable, pa.Array, int | None]]:
    """Yield the party's rows on the grid, in parts, with their ids as stored, and the total.

    After the last part a table is refused of which too much lies outside the bounds.
    """
    first, rules = 0, result.study.id_rules
    fit: tuple[BoundFacts, ...] = ()
    with read_batches(spec, data, query=query) as batches:
        for part in joined(batches.stream, rows=_BATCH):
            checked = check_rows(spec, part, first_row=first, rules=rules)
            refuse(checked.problems, party=spec.name, where=batches.where)
            bounds = checked.facts.bounds
            fit = tuple(map(BoundFacts.and_more, fit, bounds)) if first else bounds
            table = PartyTable(
                party=spec.name, ids=checked.ids, raw_rows=checked.rows, coding=coding_of(spec)
            )
            yield table, _stored(part[spec.id_column]), batches.total
            first += len(part)
        if not first:
            raise DataError(f"{batches.where}: the table must have at least one row, got none")
        if not allow_clipping:
            public = with_public_bounds(result, spec.name, fit)
            refuse(clipping_problems(public), party=spec.name, where=batches.where)


def _stored(ids: Any) -> pa.Array:
    """Return ids as one array of values, of the type that they are stored in."""
    kind = ids.type
    if pa.types.is_dictionary(kind):
        ids = ids.cast(kind.value_type)
    if pa.types.is_string_view(ids.type):
        ids = ids.cast(pa.large_string())
    return ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids


def csv_ids(ids: pa.Array, *, canonical: pa.Array) -> pa.Array:
    """Return ids that a csv file can hold: text and numbers as they are, else canonical text."""
    kind = ids.type
    if is_text(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return ids
    return ids.cast(pa.string()) if pa.types.is_decimal(kind) else canonical.cast(pa.string())


def _labelled(
    table: PartyTable,
    ids: pa.Array,
    result: Result,
    *,
    spec: PartySpec,
    segments: Segmentation,
) -> pa.Table:
    raw_shares = segment_probabilities(table, result.synopsis, centres=segments.clustering)
    columns = label_columns(result, segments, raw_shares)
    first = spec.id_column if spec.id_column not in columns else f"{spec.id_column} (id)"
    arrays = [ids, *(pa.array(values) for values in columns.values())]
    return pa.Table.from_arrays(arrays, names=[first, *columns])


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a file beside `path`, readable by its owner alone, that takes its place at the end."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    except OSError as problem:
        raise ParameterError(f"{path}: cannot be written ({problem.strerror})") from problem
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
