"""How a source is checked and where its rows wait, from the command down to the stored blocks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from splitmeans.study.id_rules import AS_IS, IdRules
from splitmeans.table.checks.facts import TableFacts, clipping_problems, ignore_facts
from splitmeans.table.checks.open_columns import shared_hashes
from splitmeans.table.checks.problems import Problem, refuse


class Progress(Protocol):
    """Shows which stage is under way and how far it is."""

    def __call__(self, stage: str, *, rows: int, of: int | None) -> None:
        """Add `rows` to those done in this stage, `of` rows in all (None: unknown)."""
        ...


def silent(stage: str, *, rows: int, of: int | None) -> None:
    """Show nothing."""


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """How a party's table is opened.

    Attributes:
        rules: The study's rules for ids (`Study.id_rules`).
        expected_users: What the study expects. With it, as in a run, this public number decides
            whether the table is in memory or on disk, and by how many processes it is walked, as
            long as the table is not several times larger. Without it the table's size decides.
        notice: Called with the table's facts, once its values have passed all checks.
        allow_clipping: Take the table also if more than half of a column's values lie outside the
            study's bounds, where they become the bound.
        workers: Processes for a table on disk. None takes one for each processor if many rows are
            expected, or known to be in parquet files; 1 takes this process alone.
        spool: Folder for the blocks of a table on disk, about 4 bytes a value and twice the ids'
            size; None takes the system's folder for temporary files. It must not be in memory.
        progress: Called as a table on disk is walked.
    """

    rules: IdRules = AS_IS
    expected_users: int | None = None
    notice: Callable[[TableFacts], None] = ignore_facts
    allow_clipping: bool = False
    workers: int | None = None
    spool: str | Path | None = None
    progress: Progress = silent

    def finish_checks(
        self,
        party: str,
        problems: Iterable[Problem],
        facts: TableFacts,
        *,
        where: str | None = None,
    ) -> None:
        """Refuse a table for all that is wrong with it, or hand its facts to `notice`.

        Facts are of columns without problems. `notice` is also called for a table that is then
        refused for its units.

        Raises:
            DataError: Naming all problems.
        """
        clipping = [] if self.allow_clipping else clipping_problems(facts.bounds)
        found = [*problems, *shared_hashes(facts.names)]
        if not found:
            self.notice(facts)
        refuse([*found, *clipping], party=party, where=where)


AS_DEFAULT = SourceOptions()
