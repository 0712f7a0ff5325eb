"""A party's checked table on disk, in blocks: what the passes over a large table read.

A run needs about ten passes over the rows. They all see the same rows (rule R11: the data of a run
are frozen), already checked, clipped and quantised, whatever happens to the source meanwhile.
Files hold raw rows: only their owner can read them, and they go with the table (`spool_folder.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from splitmeans._types import HalfWidthArray, IntArray, LabelArray
from splitmeans.kernels.widths import blocks_for
from splitmeans.table.walk.interface import UserBlock
from splitmeans.table.walk.spool_folder import new_private_file

T = TypeVar("T")

# Grid integers reach 100 x 2^20 (the largest weight), well within 31 bits.
_ROW_TYPE = np.dtype("<i4")
_NO_LABELS = ""


@dataclass(frozen=True, kw_only=True)
class StoredBlock:
    """Where some consecutive rows are.

    Attributes:
        folder: The spool.
        name: Of the block's files.
        start: Row number of its first row.
        n_rows: How many rows it has.
        n_columns: Grid columns of a row.
        labelling: Which of the stored labels belong to it; empty for none.
    """

    folder: Path
    name: str
    start: int
    n_rows: int
    n_columns: int
    labelling: str = _NO_LABELS

    def rows(self) -> IntArray:
        """Read the rows, shape (b, d), int64."""
        stored = np.fromfile(self._path("rows"), dtype=_ROW_TYPE)
        return stored.reshape(self.n_rows, self.n_columns).astype(np.int64)

    def each_part(self, task: Callable[[IntArray], T]) -> list[T]:
        """Read the rows and return `task` of some at a time, in the width that it takes."""
        stored = np.fromfile(self._path("rows"), dtype=_ROW_TYPE)
        rows = stored.reshape(self.n_rows, self.n_columns)
        return [task(block) for block in blocks_for(task, rows)]

    def ids(self) -> pa.LargeStringArray:
        """Read the ids."""
        with pa.OSFile(str(self._path("ids")), "rb") as file, pa.ipc.open_file(file) as reader:
            return reader.get_batch(0).column(0)

    def labels(self) -> LabelArray:
        """Read the labels; all 0 if there are none."""
        if self.labelling == _NO_LABELS:
            return np.zeros(self.n_rows, dtype=np.int32)
        return np.fromfile(self._path(self.labelling), dtype=np.uint8).astype(np.int32)

    def users(self) -> UserBlock:
        """Read ids and labels."""
        return UserBlock(start=self.start, ids=self.ids(), labels=self.labels())

    def write_rows(self, raw_rows: IntArray | HalfWidthArray, ids: pa.LargeStringArray) -> None:
        """Store rows and ids."""
        with new_private_file(self._path("rows")) as file:
            raw_rows.astype(_ROW_TYPE, copy=False).tofile(file)
        batch = pa.record_batch({"id": ids})
        with (
            new_private_file(self._path("ids")) as file,
            pa.ipc.new_file(file, batch.schema) as writer,
        ):
            writer.write_batch(batch)

    def write_labels(self, labels: LabelArray) -> None:
        """Store labels; clusters are below 256 (`plan.MAX_LOCAL_CLUSTERS`)."""
        with new_private_file(self._path(self.labelling)) as file:
            labels.astype(np.uint8).tofile(file)

    def _path(self, what: str) -> Path:
        return self.folder / f"{self.name}.{what}"
