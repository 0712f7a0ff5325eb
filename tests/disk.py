"""Options by which a small table is walked on disk, as a large one is."""

from typing import Any

from splitmeans.table.options import SourceOptions
from splitmeans.table.walk.stream import ROWS_IN_MEMORY


def on_disk(**options: Any) -> SourceOptions:
    """Return options of a study that expects more users than a table in memory may have."""
    return SourceOptions(expected_users=ROWS_IN_MEMORY + 1, **options)
