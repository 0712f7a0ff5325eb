"""Why a segment is one: the few columns that tell it from everybody, one line for each column.

How far a segment is from all users in a column of numbers is counted in standard deviations over
the grid. For a column of categories it is the square root of chi-squared divided by the number of
users, which is the same figure where there are two categories. So both kinds can be compared.
Everything is made of published values and costs no privacy.
"""

from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.figures import number, percent
from splitmeans.result.result import Segmentation
from splitmeans.study.features import Feature, to_own_units
from splitmeans.synopsis.column_places import ColumnPlace, column_places
from splitmeans.synopsis.synopsis import Synopsis

# The few: no more than this, and none that is as good as average if there is another.
MOST = 5
_LEAST_EFFECT = 0.25
# Below this a column is the same everywhere; what differs is rounding.
_SAME = 1e-9


@dataclass(frozen=True, kw_only=True, repr=False)
class Reason:
    """One column in which a segment differs.

    Attributes:
        party: Who holds the column.
        column: Its name.
        category: For a column of categories the one that the segment has more of than all users,
            or lacks if no other has gained as much.
        feature: Place of the column, or of that category, among all features.
        effect: How far the segment is from all users, in standard deviations.
        value: The segment's centre there, in own units; a category's share.
        mean: The same of all users.
    """

    party: str
    column: str
    category: str | None
    feature: int
    effect: float
    value: float
    mean: float

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        if self.category is not None:
            text = f"{self.category} {percent(self.value)} (all {percent(self.mean)})"
            return f"{self.column}: {text}"
        return f"{self.column} {number(self.value)} (all {number(self.mean)})"


def reasons(synopsis: Synopsis, item: Segmentation) -> tuple[tuple[Reason, ...], ...]:
    """Return for each segment the columns that tell it from all users, most telling first.

    The synopsis must count some users.
    """
    features = tuple(feature for group in synopsis.features for feature in group)
    shares = synopsis.weights / synopsis.total
    means = shares @ synopsis.scaled_nodes
    variances = shares @ np.square(synopsis.scaled_nodes - means)
    own_means = to_own_units(features, means)
    places = column_places(synopsis)
    found = []
    for scaled, own in zip(item.scaled_centres, item.centres, strict=True):
        lines = [
            _reason(
                synopsis.party_names[place.party],
                place,
                features,
                scaled - means,
                variances,
                own=own,
                own_means=own_means,
            )
            for place in places
        ]
        lines.sort(key=lambda line: -line.effect)
        telling = [line for line in lines if line.effect >= _LEAST_EFFECT]
        found.append(tuple((telling or lines[:1])[:MOST]))
    return tuple(found)


def _reason(
    party: str,
    place: ColumnPlace,
    features: tuple[Feature, ...],
    differences: FloatArray,
    variances: FloatArray,
    *,
    own: FloatArray,
    own_means: FloatArray,
) -> Reason:
    at = place.feature
    if place.levels:
        part = place.features
        gaps, expected = own[part] - own_means[part], own_means[part]
        there = expected > _SAME
        effect = float(np.sqrt(np.sum(np.square(gaps[there]) / expected[there])))
        # What a segment has more of says more than what it lacks.
        more = gaps.max() >= 0.5 * np.abs(gaps).max()
        at += int(gaps.argmax() if more else gaps.argmin())
    else:
        deviation = float(np.sqrt(variances[at]))
        same = deviation < _SAME * features[at].weight
        effect = 0.0 if same else abs(float(differences[at])) / deviation
    return Reason(
        party=party,
        column=place.column,
        category=place.levels[at - place.feature] if place.levels else None,
        feature=at,
        effect=effect,
        value=float(own[at]),
        mean=float(own_means[at]),
    )
