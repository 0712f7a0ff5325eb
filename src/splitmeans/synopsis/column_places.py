"""Where the columns of all parties are among the features of a synopsis, by their names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from splitmeans.errors import ParameterError

if TYPE_CHECKING:
    from splitmeans.synopsis.synopsis import Synopsis


@dataclass(frozen=True, kw_only=True)
class ColumnPlace:
    """One column.

    Attributes:
        name: "party: column".
        column: The column's name at its party.
        party: Position of the party.
        feature: The first of its features among all; a number has one.
        levels: Its categories, in the order of the features; none for a number.
        low: Lower bound of a number, in own units.
        high: Upper bound.
        whole: Whether its published values are whole numbers (`round_values.py`).
    """

    name: str
    column: str
    party: int
    feature: int
    levels: tuple[str, ...]
    low: float
    high: float
    whole: bool = False

    @property
    def features(self) -> slice:
        """Which of the D features are the column's."""
        return slice(self.feature, self.feature + max(1, len(self.levels)))


def column_places(synopsis: "Synopsis") -> tuple[ColumnPlace, ...]:
    """Return all columns, in the order of the features."""
    found = []
    start = 0
    for position, (party, features) in enumerate(
        zip(synopsis.party_names, synopsis.features, strict=True)
    ):
        # Where nobody says which features belong together, each is a number.
        columns: Sequence[tuple[str, tuple[str, ...]]] = (
            [(item.name, ()) for item in features]
            if synopsis.columns is None
            else [(item.name, item.levels) for item in synopsis.columns[position]]
        )
        at = 0
        for name, levels in columns:
            width = max(1, len(levels))
            found.append(
                ColumnPlace(
                    name=f"{party}: {name}",
                    column=name,
                    party=position,
                    feature=start,
                    levels=levels,
                    low=features[at].low,
                    high=features[at].high,
                    whole=start in synopsis.whole_features,
                )
            )
            start, at = start + width, at + width
    return tuple(found)


def find_column(places: Sequence[ColumnPlace], name: str) -> ColumnPlace:
    """Return the column of this name: "party: column", or the column alone if one party has it.

    Raises:
        ParameterError: If there is none, or more than one; the message lists what there is.
    """
    lower = name.casefold()
    for found in (
        [place for place in places if place.name == name],
        [place for place in places if place.column == name],
        [place for place in places if lower in (place.name.casefold(), place.column.casefold())],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            several = ", ".join(repr(place.name) for place in found)
            raise ParameterError(f"column {name!r} could be any of {several}: write it in full")
    listed = ", ".join(repr(place.name) for place in places)
    raise ParameterError(f"there is no column {name!r}; the synopsis has {listed}")
