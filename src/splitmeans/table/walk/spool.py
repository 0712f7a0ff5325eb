"""A party's checked table on disk, in blocks: what the passes over a large table read.

A run needs about ten passes over the rows. They all see the same rows (rule R11: the data of a run
are frozen), already checked, clipped and quantised, whatever happens to the source meanwhile.
Files hold raw rows: only their owner can read them, and they go with the table (`spool_folder.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from splitmeans._types import HalfWidthArray, IntArray, LabelArray
from splitmeans.kernels.widths import blocks_for
from splitmeans.table.walk.interface import UserBlock
from splitmeans.table.walk.spool_folder import new_private_file

T = TypeVar("T")

_NO_LABELS = ""


@dataclass(frozen=True, kw_only=True)
class StoredBlock:
    """Where some consecutive rows are.

    `labelling` says which of the stored labels belong to it; empty for none.
    """

    folder: Path
    name: str
    start: int
    n_rows: int
    labelling: str = _NO_LABELS

    def rows(self) -> HalfWidthArray:
        """Read the rows, shape (b, d), 32 bits each: grid integers are well within 31 bits."""
        return np.asarray(matrix_of(self._batch()["rows"]), dtype=np.int32)

    def each_part(self, task: Callable[[IntArray], T]) -> list[T]:
        """Read the rows and return `task` of some at a time, in the width that it takes."""
        return [task(block) for block in blocks_for(task, self.rows())]

    def labels(self) -> LabelArray:
        """Read the labels; all 0 if there are none."""
        if self.labelling == _NO_LABELS:
            return np.zeros(self.n_rows, dtype=np.int32)
        return np.fromfile(self._path(self.labelling), dtype=np.uint8).astype(np.int32)

    def users(self) -> UserBlock:
        """Read ids and labels."""
        return UserBlock(start=self.start, ids=self._batch()["id"], labels=self.labels())

    def write_rows(self, raw_rows: HalfWidthArray, ids: pa.LargeStringArray) -> None:
        """Store rows and ids."""
        write_batches(
            self._path("rows"), [pa.record_batch({"rows": as_column(raw_rows), "id": ids})]
        )

    def write_labels(self, labels: LabelArray) -> None:
        """Store labels; clusters are below 256 (`plan.MAX_LOCAL_CLUSTERS`)."""
        with new_private_file(self._path(self.labelling)) as file:
            labels.astype(np.uint8).tofile(file)

    def _batch(self) -> pa.RecordBatch:
        return read_batch(self._path("rows"))

    def _path(self, what: str) -> Path:
        return self.folder / f"{self.name}.{what}"


def write_batches(path: Path, batches: list[pa.RecordBatch]) -> None:
    """Write batches of one schema as an Arrow file that only its owner can read."""
    with new_private_file(path) as file, pa.ipc.new_file(file, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def read_batch(path: Path, number: int = 0) -> pa.RecordBatch:
    """Map one batch of such a file into memory."""
    with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
        return reader.get_batch(number)


def as_column(matrix: Any) -> pa.FixedSizeListArray:
    """Return a matrix as a column of its rows."""
    return pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), matrix.shape[1])


def matrix_of(column: pa.FixedSizeListArray) -> Any:
    """Return a column of rows as a matrix of its own."""
    values = column.flatten().to_numpy()
    # Kernels are compiled for arrays that can be written to.
    return values.reshape(len(column), column.type.list_size).copy()
