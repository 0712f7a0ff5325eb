"""Segments of a result by another model than k-means: what is found, and what it is called.

They are worked out on the published grid and cost no privacy. Each takes part where segments do:
tables, labels, audiences, sizes with intervals where those hold.
"""

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from splitmeans import _validate
from splitmeans.errors import ParameterError
from splitmeans.synopsis.models.borders import Borders
from splitmeans.synopsis.models.medians import Medians
from splitmeans.synopsis.models.mixture import Mixture
from splitmeans.synopsis.models.tree import Cut, SegmentTree, grow_tree

if TYPE_CHECKING:
    from splitmeans.result.result import Result

MEANS, MEDIANS, MIXTURE, TREE = "means", "medians", "mixture", "tree"
MODELS = (MEANS, MEDIANS, MIXTURE, TREE)
# So many segments a tree has if nobody says how many.
TREE_SEGMENTS = 12

Model: TypeAlias = Medians | Mixture | Cut


def check_model(model: str) -> None:
    """Refuse a model that there is not."""
    if model not in MODELS:
        listed = ", ".join(repr(name) for name in MODELS)
        raise ParameterError(f"model must be one of {listed}, got {model!r}")


def find_model(result: "Result", model: str, k: int) -> Model:
    """Return the model with k segments, the same one at every call."""
    if model == MEDIANS:
        return result.synopsis.medians(k, random_state=k)
    if model == MIXTURE:
        return result.synopsis.mixture(k, random_state=k)
    tree = result.tree(max(k, TREE_SEGMENTS))
    if k > tree.most:
        raise ParameterError(f"k must be at most {tree.most}, the segments of the tree, got {k}")
    return tree.cut(k)


def published_tree(result: "Result", most: int) -> SegmentTree:
    """Grow a tree from the published segments; see `Result.tree`."""
    _validate.at_least(2, most=most)
    published = result.published
    return grow_tree(
        result.synopsis,
        published.scaled_centres,
        published.letters,
        most=most,
        rng=np.random.default_rng(0),
    )


def borders_of(model: Model | None) -> Borders | None:
    """Return the borders of a model's segments; None for k-means and for mixtures, without any."""
    return model.borders if isinstance(model, Medians | Cut) else None
