"""Each column's share of the distances that k-means will see, before any data is there.

Worked out for values that are spread evenly: numbers between their bounds, users over categories.
Real numbers fill their bounds less, so that categories count even more; the report has the shares
on the published grid.
"""

from dataclasses import dataclass

from splitmeans.study import EQUAL, Column, Study


@dataclass(frozen=True, kw_only=True)
class ColumnShare:
    """One column's share of all differences between users."""

    party: str
    column: str
    share: float


def column_shares(study: Study) -> tuple[ColumnShare, ...]:
    """Return the share of every column, largest first."""
    named = [(party.name, column) for party in study.parties for column in party.columns]
    parts = [_variance(column, equal=study.scaling == EQUAL) for _, column in named]
    total = sum(parts)
    found = [
        ColumnShare(party=party, column=column.name, share=part / total)
        for (party, column), part in zip(named, parts, strict=True)
    ]
    return tuple(sorted(found, key=lambda one: -one.share))


def _variance(column: Column, *, equal: bool) -> float:
    """Return the variance of evenly spread values in distance units."""
    if equal:
        return column.weight**2
    if not column.is_categorical:
        return column.weight**2 / 3  # of numbers in [-weight, weight]
    # Each level is a feature at plus or minus weight / sqrt 2.
    return 2 * column.weight**2 * (1 - 1 / column.most_levels)
