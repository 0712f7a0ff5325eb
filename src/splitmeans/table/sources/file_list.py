"""The files of a table: where they are, and how errors name them."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from splitmeans.study import PartySpec
from splitmeans.table.batches import check_names

# A file's columns, and its rows batch by batch.
Stream: TypeAlias = Generator[pa.RecordBatch, None, None]
Opened: TypeAlias = tuple[tuple[str, ...], Stream]


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files of a table, in the order of their names, all of one kind.

    Attributes:
        where: How errors name them together.
        suffix: What their names end in.
        paths: Where they are.
        open: Opens one of them for reading.
    """

    where: str
    suffix: str
    paths: tuple[str, ...]
    open: Callable[[str], Any]

    def one(self, path: str) -> str:
        """Name one file in errors."""
        return self.where if len(self.paths) == 1 else f"{self.where} ({Path(path).name})"

    def check_other(self, path: str, party: PartySpec, names: Sequence[str]) -> None:
        """Check the columns of a file that is not the first, which says what the table has."""
        if path != self.paths[0]:
            check_names(party, names, where=self.one(path), what="file")
