"""A party's columns of an earlier result, as points on its grid that a run can begin from.

The result is public to all participants; nothing here sees a row, and nothing it returns costs
anything.
"""

import numpy as np

from splitmeans._types import IntArray
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.study.parties import PartySpec
from splitmeans.synopsis.earlier_users import earlier_places
from splitmeans.synopsis.synopsis import Synopsis

# As many as make the published places' weights whole.
_POINTS = 20_000


def published_points(
    synopsis: Synopsis, party: PartySpec, position: int, *, rng: np.random.Generator
) -> IntArray | None:
    """Return points that lie as the users of an earlier result do, shape (points, features).

    None where that result has no places of users, or nobody.

    The party has its columns as in this run.
    """
    if not synopsis.has_places or synopsis.total <= 0:
        return None
    drawn = draw_evenly(synopsis.weights, _POINTS, rng=rng)
    return earlier_places(synopsis, party, position)[drawn]
