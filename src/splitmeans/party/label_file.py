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

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from splitmeans.engine.blocks import joined
from splitmeans.engine.stored import Progress
from splitmeans.errors import DataError, ParameterError
from splitmeans.idrules import IdRules
from splitmeans.labels import segment_probabilities
from splitmeans.party.ids import canonical_text
from splitmeans.party.row_checks import grid_rows
from splitmeans.party.source import read_batches
from splitmeans.party.table import PartyTable
from splitmeans.result import Result, Segmentation
from splitmeans.study import PartySpec

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
) -> int:
    """Write each user's id, likeliest segment and probability of every segment; return the rows.

    Columns: the study's id column with ids in canonical form (text), "segment" (its letter),
    "probability" (of that segment), and "segment A", "segment B" and so on. The data is read and
    labelled in parts, so it may be larger than memory.

    Guarantee: reads the party's own rows and published values; releases nothing. The labels are a
    function of the rows and as sensitive as they are; the file can be read by its owner alone.

    Args:
        result: The published result.
        data: The party's table: a path or URL, as `open_source` takes it.
        output: The file to write: .parquet or .csv.
        party: The party's name in the study.
        segments: The segments to label with.
        progress: Told how many rows are labelled.
        query: For a database, the query whose result is the table.

    Raises:
        DataError: If the data breaks a rule of the study; values are never shown.
    """
    spec = result.study.party(party)
    rows = 0
    with _replacing(output) as draft, contextlib.ExitStack() as opened:
        writer: Any = None
        rules = result.study.id_rules
        for table, total in _tables(spec, data, query=query, rules=rules):
            labelled = _labelled(table, result, spec=spec, segments=segments)
            if writer is None:
                kind = (
                    pyarrow.csv.CSVWriter if output.suffix.lower() == ".csv" else pq.ParquetWriter
                )
                writer = opened.enter_context(kind(draft, labelled.schema))
            writer.write_table(labelled)
            rows += len(table)
            progress("label", rows=len(table), of=total)
    return rows


def _tables(
    spec: PartySpec, data: str | Path, *, query: str | None, rules: IdRules
) -> Iterator[tuple[PartyTable, int | None]]:
    """Yield the party's rows on the grid, in parts, and the number of all rows if it is known."""
    first = 0
    with read_batches(spec, data, query=query) as batches:
        for part in joined(batches.stream, rows=_BATCH):
            try:
                raw_rows, ids = grid_rows(spec, part, first_row=first)
                canonical = canonical_text(ids, first_row=first, rules=rules)
            except DataError as problem:
                raise DataError(f"{batches.where}: {problem}") from None
            yield PartyTable(party=spec.name, ids=canonical, raw_rows=raw_rows), batches.total
            first += len(part)
        if not first:
            raise DataError(f"{batches.where}: the table must have at least one row, got none")


def _labelled(
    table: PartyTable, result: Result, *, spec: PartySpec, segments: Segmentation
) -> pa.Table:
    raw_shares = segment_probabilities(table, result.synopsis, centres=segments.clustering)
    likeliest = raw_shares.argmax(axis=1)
    letters = pa.array(segments.letters)
    names = ["segment", "probability", *(f"segment {letter}" for letter in segments.letters)]
    first = spec.id_column if spec.id_column not in names else f"{spec.id_column} (id)"
    columns = [
        table.ids.cast(pa.string()),
        letters.take(pa.array(likeliest)),
        pa.array(raw_shares[np.arange(len(likeliest)), likeliest]),
        *(pa.array(np.ascontiguousarray(column)) for column in raw_shares.T),
    ]
    return pa.Table.from_arrays(columns, names=[first, *names])


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
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
