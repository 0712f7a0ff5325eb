"""Which run of a series a plan is for, where a study is renewed.

A run of such a study is named by its number, "3", or by its number and that of the attempt, "3-2",
where earlier ones ended before anybody had released anything. The number is the slot that the
ledger gives once (`privacy/series.py`); it and the result that the run follows are in the plan, so
that all participants confirm them before the first release.
"""

import re
from dataclasses import dataclass

from splitmeans.errors import ParameterError
from splitmeans.study import Study

# Few attempts, so that a home that has forgotten some can look for all of them in the mailbox.
MOST_ATTEMPTS = 9
_NAME = re.compile(rf"([1-9]\d{{0,2}})(?:-([2-{MOST_ATTEMPTS}]))?")


@dataclass(frozen=True, kw_only=True)
class SeriesRun:
    """One run of a series.

    Attributes:
        number: Which one, from 1.
        previous: Hash of the published result that it follows; empty for a run that follows none.
    """

    number: int
    previous: str = ""


def run_number(study: Study, run: str) -> int | None:
    """Return the number that a run's name stands for; None for a study of one run.

    Raises:
        ParameterError: It is not the name of a run of the series.
    """
    if study.renewal is None:
        return None
    found = _NAME.fullmatch(run)
    if found is None or int(found[1]) > study.renewal.runs:
        raise ParameterError(
            f"study {study.name!r} is a series of {study.renewal.runs} runs, so --run must be the "
            f"number of one of them, from 1 to {study.renewal.runs}; or, if an attempt failed "
            "before any party released anything, the number and that of the new attempt, such as "
            f"3-2; got {run!r}"
        )
    return int(found[1])


def earlier_names(run: str) -> tuple[str, ...]:
    """Return the names of all runs and attempts of a series that may have come before a run."""
    found = _NAME.fullmatch(run)
    assert found is not None, "the name was not checked"
    number, attempt = int(found[1]), int(found[2] or 1)
    names = [_named(slot, at) for slot in range(1, number) for at in range(1, MOST_ATTEMPTS + 1)]
    return (*names, *(_named(number, at) for at in range(1, attempt)))


def _named(number: int, attempt: int) -> str:
    return str(number) if attempt == 1 else f"{number}-{attempt}"
