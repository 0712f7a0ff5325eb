"""How large a delta may be: far below one over the number of users."""

import math

from splitmeans.errors import StudyError
from splitmeans.study.options import Budget


def check_delta(budget: Budget, expected: int | None, assumed: int) -> None:
    """Refuse a delta with which publishing a random user's row whole would count as private.

    `expected` is the number of users that the study says, `assumed` that or what stands in for it.
    """
    limit = 1 / assumed
    if budget.delta < limit:
        return
    said = "which the study does not say" if expected is None else "as the study says"
    raise StudyError(
        f"delta must be below 1 / expected_users = 1 / {assumed} = {limit:.3g} "
        f"({said}), got {budget.delta:.3g}: a larger one would allow to publish whole "
        f"rows of some users; write delta = {_below(limit):g} or less, or the true "
        "expected_users"
    )


def _below(limit: float) -> float:
    """Return the largest power of ten that is a tenth of a limit or less."""
    return float(10.0 ** (math.floor(math.log10(limit)) - 1))
