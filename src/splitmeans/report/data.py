"""Everything that a report shows, as plain values; the page holds the same as JSON.

Numbers are in the columns' own units. "Spread" of a column is the standard deviation over the
weighted nodes of the synopsis; differences from the overall mean are counted in it, so that columns
with different units can be compared.
"""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from splitmeans.insights.drift import Drift
from splitmeans.insights.own_labels import OwnLabels
from splitmeans.insights.partners import Partners
from splitmeans.insights.two_columns import TwoColumns
from splitmeans.intervals.overlap import Overlap
from splitmeans.plan.facts import PrivacyFacts

# Digits that survive in JSON: far finer than the noise.
_DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class ColumnInfo:
    """One coordinate of the centres: a number column, or one category as a share of users.

    Attributes:
        party: Who holds it.
        name: Name of the column.
        category: The category, for a share.
        low: Smallest value that was agreed.
        high: Largest value that was agreed.
        mean: Mean over all users.
        spread: Standard deviation over the weighted nodes.
    """

    party: str
    name: str
    category: str | None
    low: float
    high: float
    mean: float
    spread: float

    @property
    def label(self) -> str:
        """Name for people, without the party."""
        return self.name if self.category is None else f"{self.name}: {self.category}"


@dataclass(frozen=True, kw_only=True)
class SegmentInfo:
    """One segment.

    Attributes:
        letter: What it is called everywhere.
        name: A name that a person gave it.
        size: Estimated users.
        share: The same as a part of all users.
        interval: 95 % interval for the number of users nearest to the centre, None if unknown.
        centre: Value in each column.
        difference: Centre minus overall mean, in spreads of the column.
        standing_out: The columns that tell it from all users, most telling first; of a column of
            categories the one whose share differs most.
        x: Place on the map.
        y: Place on the map.
    """

    letter: str
    name: str | None
    size: float
    share: float
    interval: tuple[float, float] | None
    centre: tuple[float, ...]
    difference: tuple[float, ...]
    standing_out: tuple[int, ...]
    x: float
    y: float

    @property
    def most(self) -> float:
        """The most users that it may have."""
        return self.size if self.interval is None else self.interval[1]


@dataclass(frozen=True, kw_only=True)
class SegmentationInfo:
    """The segments for one k; `of_node` is the segment of each node on the map."""

    k: int
    published: bool
    loss: float
    silhouette: float
    segments: tuple[SegmentInfo, ...]
    of_node: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class MapInfo:
    """Nodes on the plane that shows most of the differences.

    Where nodes are pseudo-users, a draw of them that stands for all users; else the cells with most
    users.

    Attributes:
        x: Places of nodes, in distance units.
        y: Places of nodes, in distance units.
        users: Estimated users that each stands for.
        users_shown: Share of all users that these nodes stand for.
        pseudo_users: Whether nodes are pseudo-users, not cells.
        explained: Share of the nodes' variance along each axis.
        towards: For each axis the columns that grow along it most, and the ones that fall.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    users: tuple[float, ...]
    users_shown: float
    pseudo_users: bool
    explained: tuple[float, float]
    towards: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """A whole report.

    Attributes:
        title: What the page is called.
        origin: When the result was published, by whom, and whether it is signed.
        remark: What to know if fewer segments were found than asked for, or none.
        asked: How many segments the study asks for.
        parties: Who took part.
        users: Estimated number of users.
        users_interval: 95 % interval of that number, None if unknown.
        n_columns: How many columns the parties have; one with categories is one.
        columns: All coordinates, in party order: columns of numbers, and categories.
        columns_left_out: How many further coordinates there are.
        segmentations: The segments for each k, ascending; none if nobody was counted.
        suggested_k: The smallest k whose silhouette is within 0.01 of the best.
        map: The map of nodes.
        uncertainty: What the intervals of sizes are for, or why there are none.
        partners: What the parties add to the published segments; None if nobody was counted.
        own_labels: How well each party can label its users; none where that cannot be told.
        two_columns: Cross tables of columns of different parties; None if there is one party alone,
            or nobody was counted.
        overlap: How many users are at which parties; None where a run does not say.
        drift: What changed since an earlier result; None where none was given.
        privacy: What the run released, what it cost, and who can learn what.
        statement: The same in plain words, with dates.
        facts: Run facts, each with a name.
        version: Version of splitmeans that made the report.
    """

    title: str
    origin: str
    remark: str | None
    asked: int
    parties: tuple[str, ...]
    users: float
    users_interval: tuple[float, float] | None
    n_columns: int
    columns: tuple[ColumnInfo, ...]
    columns_left_out: int
    segmentations: tuple[SegmentationInfo, ...]
    suggested_k: int
    map: MapInfo
    uncertainty: str
    partners: Partners | None
    own_labels: tuple[OwnLabels, ...]
    two_columns: TwoColumns | None
    overlap: Overlap | None
    drift: Drift | None
    privacy: PrivacyFacts
    statement: str
    facts: tuple[tuple[str, str], ...]
    version: str

    @property
    def published(self) -> SegmentationInfo:
        """The segments that the server published."""
        return next(item for item in self.segmentations if item.published)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values, with the digits that matter."""
        rounded: dict[str, Any] = _rounded(dataclasses.asdict(self))
        return rounded

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the report as JSON."""
        separators = (",", ":") if indent is None else None
        return json.dumps(self.to_mapping(), allow_nan=False, indent=indent, separators=separators)

    def with_columns(self, kept: Sequence[int]) -> "ReportData":
        """Return the report with some of its columns only, in their order."""
        place = {column: position for position, column in enumerate(kept)}

        def few(columns: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(place[column] for column in columns if column in place)

        segmentations = tuple(
            dataclasses.replace(
                item,
                segments=tuple(
                    dataclasses.replace(
                        segment,
                        centre=tuple(segment.centre[column] for column in kept),
                        difference=tuple(segment.difference[column] for column in kept),
                        standing_out=few(segment.standing_out),
                    )
                    for segment in item.segments
                ),
            )
            for item in self.segmentations
        )
        towards = tuple((few(grows), few(falls)) for grows, falls in self.map.towards)
        return dataclasses.replace(
            self,
            columns=tuple(self.columns[column] for column in kept),
            columns_left_out=self.columns_left_out + len(self.columns) - len(kept),
            segmentations=segmentations,
            map=dataclasses.replace(self.map, towards=towards),
        )


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value
