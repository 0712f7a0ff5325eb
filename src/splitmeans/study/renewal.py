"""Renewal: a study that is run several times, as its users change, under one budget.

The budget of such a study is that of its lifetime: what one user may suffer from all runs together,
at whichever of them the user is there. Every run has the same columns, bounds, methods and noise;
what changes is the tables. docs/guides/renewal.md says how it is used.
"""

import calendar
import datetime
import re
from dataclasses import dataclass

from splitmeans import _validate
from splitmeans.errors import StudyError
from splitmeans.study.parties import to_builtin

# More would leave each run so little that nothing is worth running; 120 is a month in ten years.
MAX_RUNS = 120

# Days of a unit, or months.
_UNITS = {"day": (1, 0), "week": (7, 0), "month": (0, 1), "year": (0, 12)}
_EVERY = re.compile(r"(\d{1,4})?\s*([a-z]+)")


@dataclass(frozen=True, kw_only=True)
class Renewal:
    """How often a study is run.

    Attributes:
        runs: How many runs the budget is for, 2 or more.
        every: About how long from one run to the next, such as "3 months"; also days, weeks and
            years. It is for people and reminders: no guarantee rests on it. None if not said.
    """

    runs: int
    every: str | None = None

    def __post_init__(self) -> None:
        _validate.at_least(2, error=StudyError, runs=self.runs)
        if self.runs > MAX_RUNS:
            raise StudyError(f"renewal.runs must be <= {MAX_RUNS}, got {self.runs}")
        to_builtin(self, runs=int)
        if self.every is not None:
            object.__setattr__(self, "every", _words(self.every))

    def due_after(self, date: datetime.date) -> datetime.date | None:
        """Return when the next run is due after one that was published on a date."""
        if self.every is None:
            return None
        count, unit = self.every.split()
        days, months = _UNITS[unit.removesuffix("s")]
        if days:
            return date + datetime.timedelta(days=days * int(count))
        years, month = divmod(date.month - 1 + months * int(count), 12)
        year = date.year + years
        last = calendar.monthrange(year, month + 1)[1]
        return date.replace(year=year, month=month + 1, day=min(date.day, last))

    def may_begin_after(self, date: datetime.date) -> datetime.date | None:
        """Return from when on a run that nobody asked for by its number may begin.

        Half of the time between runs: organisations publish on different days of a quarter, and a
        command that is given twice on one day must not begin the next run.
        """
        due = self.due_after(date)
        return None if due is None else date + (due - date) / 2


def check_renewal(renewal: object) -> None:
    """Refuse what is no renewal."""
    if not isinstance(renewal, Renewal | None):
        raise StudyError("renewal must be a table of runs and every ([renewal], or Renewal)")


def _words(every: object) -> str:
    """Return a length of time in its one form: "3 months" for "3months", "Quarter"."""
    text = every.strip().lower() if isinstance(every, str) else ""
    text = {"quarter": "3 months", "quarterly": "3 months"}.get(text, text)
    found = _EVERY.fullmatch(text)
    unit = found[2].removesuffix("s") if found else ""
    count = int(found[1] or 1) if found else 0
    if unit not in _UNITS or not 1 <= count <= 1000:
        raise StudyError(
            "renewal.every must be a number of days, weeks, months or years, such as '3 months', "
            f"got {every!r}"
        )
    return f"{count} {unit}{'' if count == 1 else 's'}"
