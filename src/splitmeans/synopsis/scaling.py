"""How far columns count in distances: by their bounds, or each the same (`scaling = "equal"`).

k-means sees columns through their bounds. A number that uses a tenth of its bounds counts little,
and a column of categories, whose values are always at the ends, counts much: categories drown
numbers. With "equal" every column, one of categories too, has the same variance over the published
grid, times its weight squared. Only the last k-means, on released values, sees columns so: it is
post-processing, and changes no release, no noise and no privacy cost. Parties' local clusters are
found through the bounds either way.
"""

import dataclasses

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.study import EQUAL, Study
from splitmeans.synopsis.synopsis import Synopsis

# A column whose deviation is below this share of its weight is the same for nearly everybody; what
# differs is noise, which must not be blown up. For numbers it is 2.5 % of the range between the
# bounds. Categories are always at the ends: a rare one, stretched to the variance of other columns,
# would be far from everybody and a segment of its own. This lets two categories be at most four
# deviations of other columns apart, and a column of which 93 % are alike counts less than others.
LEAST_OF_NUMBERS, LEAST_OF_CATEGORIES = 0.05, 0.5


def scaled_as_agreed(synopsis: Synopsis, study: Study) -> Synopsis:
    """Return the synopsis with distances as the study asks for them."""
    if study.scaling != EQUAL:
        return synopsis
    return dataclasses.replace(synopsis, stretch=equal_stretch(synopsis))


def equal_stretch(synopsis: Synopsis) -> FloatArray:
    """Return by how much every feature is stretched for equal variances of columns, shape (D,)."""
    if synopsis.columns is None:
        raise ParameterError("the synopsis must say which features are one column, to scale them")
    stretch = np.ones(synopsis.scaled_nodes.shape[1])
    if synopsis.total <= 0:
        return stretch
    shares = synopsis.weights / synopsis.total
    means = shares @ synopsis.scaled_nodes
    variances = shares @ np.square(synopsis.scaled_nodes - means)
    start = 0
    for column in (column for group in synopsis.columns for column in group):
        own = slice(start, start + max(1, len(column.levels)))
        start = own.stop
        deviation = float(np.sqrt(variances[own].sum()))
        least = LEAST_OF_CATEGORIES if column.categories else LEAST_OF_NUMBERS
        stretch[own] = column.weight / max(deviation, least * column.weight)
    return stretch
