"""A source as a stream of record batches, opened and not yet read."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from splitmeans.errors import DataError
from splitmeans.study import PartySpec
from splitmeans.table.checks.names import name_problems, study_columns
from splitmeans.table.checks.problems import Problem, refuse


@dataclass(frozen=True, kw_only=True)
class Batches:
    """Rows that come in batches.

    `where` is how errors name the source; `total` is None if it is not known before they are read.
    Reading raises `DataError` and nothing else. `problems` are columns of the study that are not
    there, or twice.
    """

    where: str
    names: tuple[str, ...]
    total: int | None
    stream: Iterator[pa.RecordBatch]
    problems: tuple[Problem, ...] = ()


def check_names(party: PartySpec, names: Iterable[str], *, where: str, what: str) -> None:
    """Refuse a source without the study's columns before a row is read; `what` it is, in words."""
    problems = name_problems(party, names, what=what, with_ids=True)
    refuse(problems, party=party.name, where=where)


def guarded(
    batches: Iterable[pa.RecordBatch],
    party: PartySpec,
    *,
    explain: Callable[[Exception], DataError],
) -> Iterator[pa.RecordBatch]:
    """Yield the study's columns of every batch, checked to be what Arrow takes them for.

    `explain` makes an error from what a library raised. The original is dropped: it may quote a
    value, a query or a credential.
    """
    stream = iter(batches)
    while True:
        try:
            batch = next(stream, None)
            if batch is None:
                return
            chosen = batch.select(study_columns(party, batch.schema.names))
            # A file may hold places beyond the end of its text, or text that is none; nothing
            # later looks at that again.
            chosen.validate(full=True)
        except DataError:
            raise
        except Exception as problem:  # whatever a driver raises
            raise explain(problem) from None
        yield chosen


def joined(
    batches: Iterable[pa.RecordBatch], *, rows: int, size: int | None = None
) -> Iterator[pa.Table]:
    """Join small batches, and cut large ones, to tables of at most `rows` rows.

    A table also ends where it has about `size` bytes, and where the types of columns change.
    """
    waiting: list[pa.RecordBatch] = []
    waiting_rows = waiting_bytes = 0
    for batch in _cut(batches, rows=rows, size=size):
        if waiting and (
            waiting_rows + batch.num_rows > rows
            or (size is not None and waiting_bytes + batch.nbytes > size)
            or batch.schema != waiting[0].schema
        ):
            yield pa.Table.from_batches(waiting)
            waiting, waiting_rows, waiting_bytes = [], 0, 0
        waiting.append(batch)
        waiting_rows += batch.num_rows
        waiting_bytes += batch.nbytes
    if waiting:
        yield pa.Table.from_batches(waiting)


def _cut(
    batches: Iterable[pa.RecordBatch], *, rows: int, size: int | None
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if not batch.num_rows:
            continue
        most = rows if size is None else min(rows, max(1, size * batch.num_rows // batch.nbytes))
        for start in range(0, batch.num_rows, most):
            yield batch.slice(start, most)
