"""What a finding is: something the paper says, what we measured, and whether the two agree."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from splitmeans.bench.paper.points import Points

YES, PARTLY, NO, NOT_MEASURED, OURS = "yes", "partly", "no", "not measured", "ours"

# Names of lines and data sets as the figures have them.
TWO_PARTY, BASIC, LDP, IND = "DPFMPS-2PEst", "DPFMPS-BasicEst", "LDP-AGG-2PEst", "IND-LAP"
SKETCH, DECOY = "sketch (ours)", "decoy (ours)"
CENTRAL, SPLIT, DPLSF = "central, no privacy", "split, no privacy", "central DPLSF"
PUBLISHED = (TWO_PARTY, LDP, IND)
REAL = ("taxi", "loan", "letter")
LETTER = "letter"

# A statement about most settings holds if it does in this share of them, and partly above half.
_MOST, _HALF = 0.8, 0.5


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One statement.

    Attributes:
        claim: What the paper says, in our words, or what we add.
        measured: What the runs say.
        agrees: "yes", "partly", "no", "not measured", or "ours" where the paper has nothing.
        why: Why not, shown where the two do not agree.
    """

    claim: str
    measured: str
    agrees: str
    why: str = ""


def missing(claim: str) -> Finding:
    """Return a finding that could not be made."""
    return Finding(claim=claim, measured="-", agrees=NOT_MEASURED)


def by_share(hits: int, of: int) -> str:
    """Judge a statement about most settings."""
    if of == 0:
        return NOT_MEASURED
    share = hits / of
    return YES if share >= _MOST else PARTLY if share > _HALF else NO


def by_truth(holds: bool) -> str:
    """Judge a statement that holds or does not."""
    return YES if holds else NO


def settings(
    points: Points, *, containing: Sequence[str] = ("",), without: str | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield panels and values of the axis, by what the panel's name contains."""
    for panel in points.panels:
        if without is not None and without in panel:
            continue
        if any(part in panel for part in containing):
            yield from ((panel, x) for x in points.xs(panel))


def pairs(
    points: Points,
    first: str,
    second: str,
    where: Iterable[tuple[str, Any]],
    *,
    measure: str | None = None,
) -> list[tuple[float, float]]:
    """Return the values of two lines wherever both have one."""
    found = []
    for panel, x in where:
        a, b = points.get(panel, first, x, measure), points.get(panel, second, x, measure)
        if a is not None and b is not None:
            found.append((a, b))
    return found


def lowest(
    points: Points, name: str, others: Sequence[str], where: Iterable[tuple[str, Any]]
) -> tuple[int, int]:
    """Count settings where a line is the lowest, and settings where all have values."""
    hits = of = 0
    for panel, x in where:
        own = points.get(panel, name, x)
        values = [points.get(panel, other, x) for other in others]
        if own is not None and all(value is not None for value in values):
            of += 1
            hits += all(own <= value for value in values if value is not None)
    return hits, of


def ratio_of(values: Iterable[tuple[float, float]]) -> float | None:
    """Return the geometric mean of the first over the second; None without values."""
    ratios = [a / b for a, b in values if a > 0 and b > 0]
    return statistics.geometric_mean(ratios) if ratios else None


def number(value: float | None, *, digits: int = 3) -> str:
    """Return a number with some significant digits."""
    return "-" if value is None else f"{value:.{digits}g}"
