"""Which run of a series a plan is for, where a study is renewed.

A run of such a study is named by its number, "3", or by its number and a word, "3-again", where an
attempt ended before anybody had released anything. The number is the slot that the ledger gives
once (`privacy/series.py`); name, number and the result that the run follows are in the plan, so
that all participants confirm them before the first release.
"""

import re
from dataclasses import dataclass

from splitmeans.errors import ParameterError
from splitmeans.study import Study

_NAME = re.compile(r"([1-9]\d{0,2})(-[a-z0-9-]+)?")


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
            f"number of one of them, from 1 to {study.renewal.runs}, or, if an attempt failed "
            f"before anybody released anything, the number and a word, such as 3-again; got {run!r}"
        )
    return int(found[1])
