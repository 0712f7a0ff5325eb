"""The files of a table: where they are, and how errors name them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

# A file's columns, and its rows batch by batch.
Opened: TypeAlias = tuple[Sequence[str], Iterable[pa.RecordBatch]]


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files of a table, in the order of their names, all of one kind.

    `where` is how errors name them together, `suffix` what their names end in.
    """

    where: str
    suffix: str
    paths: tuple[str, ...]
    open: Callable[[str], Any]

    def one(self, path: str) -> str:
        """Name one file in errors."""
        return self.where if len(self.paths) == 1 else f"{self.where} ({Path(path).name})"
