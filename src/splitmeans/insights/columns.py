"""Columns as people count them, among the features of a synopsis: one with categories is one."""

from dataclasses import dataclass

from splitmeans.synopsis.synopsis import Synopsis


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a column is.

    A column of numbers has no levels; `start` is its first feature.
    """

    party: str
    name: str
    levels: tuple[str, ...]
    start: int

    @property
    def features(self) -> slice:
        """All its features."""
        return slice(self.start, self.start + max(1, len(self.levels)))


def column_places(synopsis: Synopsis) -> tuple[Place, ...]:
    """Return the columns of all parties, in order."""
    places: list[Place] = []
    no_levels: tuple[str, ...] = ()
    start = 0
    for position, party in enumerate(synopsis.party_names):
        if synopsis.columns is None:  # which features belong together is not known
            own = [(one.name, no_levels) for one in synopsis.features[position]]
        else:
            own = [(column.name, column.levels) for column in synopsis.columns[position]]
        for name, levels in own:
            places.append(Place(party=party, name=name, levels=tuple(levels), start=start))
            start = places[-1].features.stop
    return tuple(places)
