"""The published result that a run of a series follows.

It is public to all participants, and each of them names its hash in the plan, so that all begin
from the same one. Nothing private rests on it: whatever a run begins from, its noise is the same.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from splitmeans.errors import ParameterError
from splitmeans.plan.series import SeriesRun, run_number
from splitmeans.study import Study
from splitmeans.synopsis.synopsis import Synopsis

if TYPE_CHECKING:
    from splitmeans.result.result import Result


@dataclass(frozen=True, kw_only=True, eq=False)
class Previous:
    """The result of an earlier run of the same series.

    By the digest participants tell that they have the same result.
    """

    number: int
    digest: str
    synopsis: Synopsis


def series_run(study: Study, run: str, previous: Previous | None) -> SeriesRun | None:
    """Return the place of a run in its series; None for a study of one run."""
    number = run_number(study, run)
    if number is None:
        return None
    return SeriesRun(number=number, previous="" if previous is None else previous.digest)


def series_run_of(result: "Result") -> SeriesRun | None:
    """Return which run of its series a result is of; None for a study of one run."""
    series = result.privacy.series
    if series is None or series.number is None:
        return None
    return SeriesRun(number=series.number, previous=series.previous or "")


def previous_of(result: "Result", study: Study) -> Previous:
    """Return a result as the one that the next run of a study follows.

    Raises:
        ParameterError: It is no result of this study's series.
    """
    if result.study.hash != study.hash:
        raise ParameterError(
            f"{result.where} is of another study than {study.name!r} (hash {study.hash[:16]}): the "
            "runs of a series have one study, with the same columns, bounds, k and budget; what "
            "is to change needs a new study, whose series is charged anew"
        )
    found = series_run_of(result)
    if found is None:
        raise ParameterError(
            f"{result.where} is of a study without [renewal], so no run follows it"
        )
    return Previous(
        number=found.number, digest=result.facts["result_hash"], synopsis=result.synopsis
    )
