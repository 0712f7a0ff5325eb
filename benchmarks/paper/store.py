"""Finished cells in one file of lines, so that a run that was killed goes on where it was.

One JSON object a line: a cell with its key and figures, or a note about a run. Only the process
that hands out work writes, one line at a time; a line that was cut off by a kill is dropped.
"""

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.paper.cell import Cell
from splitmeans._version import __version__
from splitmeans.errors import DataError

FILE = "cells.jsonl"


class CellStore:
    """The cells that a folder holds."""

    def __init__(self, folder: Path) -> None:
        """Read what is there."""
        self.path = folder / FILE
        self.measures: dict[str, dict[str, float | None]] = {}
        self.runs: list[dict[str, Any]] = []
        folder.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            _drop_cut_line(self.path)
            for number, line in enumerate(self.path.read_text().splitlines(), start=1):
                self._take(line, number)

    def _take(self, line: str, number: int) -> None:
        try:
            record = json.loads(line)
            if "run" in record:
                self.runs.append(record["run"])
            else:
                self.measures[record["key"]] = record["measures"]
        except (json.JSONDecodeError, KeyError, TypeError) as problem:
            raise DataError(f"{self.path}: line {number} is not a cell") from problem

    def __contains__(self, key: str) -> bool:
        return key in self.measures

    def add(self, key: str, cell: Cell, measures: dict[str, float | None]) -> None:
        """Keep a finished cell."""
        self.measures[key] = measures
        record = {
            "key": key,
            "splitmeans": __version__,
            "cell": dataclasses.asdict(cell),
            "measures": measures,
        }
        self._append(record)

    def add_run(self, **facts: Any) -> None:
        """Keep a note about a run: how long it took, on how many processes."""
        self.runs.append(facts)
        self._append({"run": facts})

    def _append(self, record: Mapping[str, Any]) -> None:
        with self.path.open("a") as opened:
            opened.write(json.dumps(record) + "\n")


def _drop_cut_line(path: Path) -> None:
    """Cut off what follows the last line end."""
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(path, whole)
