"""One figure that a result is asked for in SQL."""

from dataclasses import dataclass

from splitmeans import Result
from splitmeans.queries.sql import ask_sql


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One figure.

    Attributes:
        value: The figure.
        low: Lower end of its 95 % interval; None where there is none.
        high: Upper end.
    """

    value: float
    low: float | None = None
    high: float | None = None


def ask_figure(result: Result, figure: str, *, where: str | None = None) -> Answer:
    """Return a figure of the users who fit a condition, all written in SQL."""
    condition = "" if where is None else f" WHERE {where}"
    found = ask_sql(result, f"SELECT {figure} AS figure FROM synopsis{condition}")
    value, low, high = (*found.all_rows()[0], None, None)[:3]
    return Answer(value=float(value), low=low, high=high)


def share_of(condition: str) -> str:
    """Return the SQL of the share of users who fit a condition."""
    return f"sum(CASE WHEN {condition} THEN weight ELSE 0 END) / sum(weight)"
