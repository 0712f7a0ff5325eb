"""Progress of walks over a large table: rows done, rows a second, time left."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from splitmeans.cli.console import err

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from splitmeans.table.options import Progress as RowProgress


class _Rows:
    """Shows one bar at a time; a stage that begins again starts anew."""

    def __init__(self, bars: "Progress") -> None:
        self._bars = bars
        self._task: TaskID | None = None
        self._stage = ""
        self._done = 0

    def __call__(self, stage: str, *, rows: int, of: int | None) -> None:
        begins_again = of is not None and self._done >= of
        if self._task is None or stage != self._stage or begins_again:
            if self._task is not None:
                self._bars.remove_task(self._task)
            self._task, self._stage, self._done = (
                self._bars.add_task(stage, total=of, rate=""),
                stage,
                0,
            )
        self._done += rows
        speed = self._bars.tasks[0].speed if self._bars.tasks else None
        rate = f"{speed / 1e6:.2f}M rows/s" if speed else ""
        self._bars.update(self._task, advance=rows, rate=rate)


@contextlib.contextmanager
def rows_progress() -> "Iterator[RowProgress]":
    """Yield a function that shows progress on stderr; nothing shows if that is no terminal."""
    if err.quiet or not err.is_terminal:
        yield _show_nothing
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<8}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bars:
        yield _Rows(bars)


def _show_nothing(stage: str, *, rows: int, of: int | None) -> None:
    pass
