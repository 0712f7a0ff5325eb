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

from splitmeans.engine.stored import Progress
from splitmeans.errors import DataError, ParameterError
from splitmeans.labels import segment_probabilities
from splitmeans.party.ids import canonical_text
from splitmeans.party.source import open_source
from splitmeans.party.table import PartyTable, grid_rows
from splitmeans.result import Result, Segmentation
from splitmeans.study import PartySpec

# Rows of a parquet file that are labelled at a time.
_BATCH = 200_000


def write_labels(
    result: Result,
    data: str | Path,
    output: Path,
    *,
    party: str,
    segments: Segmentation,
    progress: Progress,
) -> int:
    """Write each user's id, likeliest segment and probability of every segment; return the rows.

    Columns: the study's id column with ids in canonical form (text), "segment" (its letter),
    "probability" (of that segment), and "segment A", "segment B" and so on. A parquet file is read
    and labelled in parts, so it may be larger than memory.

    Guarantee: reads the party's own rows and published values; releases nothing. The labels are a
    function of the rows and as sensitive as they are; the file can be read by its owner alone.

    Args:
        result: The published result.
        data: The party's table: a file that ends in .parquet, .csv, .arrow or .feather.
        output: The file to write: .parquet or .csv.
        party: The party's name in the study.
        segments: The segments to label with.
        progress: Told how many rows are labelled.

    Raises:
        DataError: If the data breaks a rule of the study; values are never shown.
    """
    spec = result.study.party(party)
    rows = 0
    with _replacing(output) as draft, contextlib.ExitStack() as opened:
        writer: Any = None
        for table, total in _tables(spec, Path(data), progress=progress, opened=opened):
            labelled = _labelled(table, result, spec=spec, segments=segments)
            if writer is None:
                kind = (
                    pyarrow.csv.CSVWriter if output.suffix.lower() == ".csv" else pq.ParquetWriter
                )
                writer = opened.enter_context(kind(draft, labelled.schema))
            writer.write_table(labelled)
            rows += len(table)
            progress("label", rows=len(table), of=total)
        if writer is None:
            raise DataError(f"{data}: the table must have at least one row, got none")
    return rows


def _tables(
    spec: PartySpec, path: Path, *, progress: Progress, opened: contextlib.ExitStack
) -> Iterator[tuple[PartyTable, int]]:
    """Yield the party's rows on the grid, in parts, and the number of all rows."""
    if path.suffix.lower() != ".parquet":
        table = opened.enter_context(open_source(spec, path, progress=progress))
        assert isinstance(table, PartyTable)  # only parquet files are walked on disk
        yield table, len(table)
        return
    names = [spec.id_column, *(column.name for column in spec.columns)]
    try:
        file = opened.enter_context(pq.ParquetFile(path))
    except OSError as problem:
        raise DataError(f"{path}: {problem.strerror or 'the file cannot be read'}") from None
    except pa.ArrowException:
        raise DataError(f"{path}: cannot be read as a parquet file") from None
    found = file.schema_arrow.names
    if spec.id_column not in found:
        raise DataError(
            f"{path}: party {spec.name!r} must have the id column {spec.id_column!r} of the study; "
            "the file has no column of this name (case and spaces count)"
        )
    total, first = file.metadata.num_rows, 0
    wanted = [name for name in found if name in names]
    for batch in file.iter_batches(batch_size=_BATCH, columns=wanted):
        try:
            raw_rows, ids = grid_rows(spec, batch, first_row=first)
            canonical = canonical_text(ids, first_row=first)
        except DataError as problem:
            raise DataError(f"{path}: {problem}") from None
        yield PartyTable(party=spec.name, ids=canonical, raw_rows=raw_rows), total
        first += len(batch)


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
