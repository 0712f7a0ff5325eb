"""The part of a synopsis that fits a condition: a synopsis again."""

import dataclasses

from splitmeans.errors import ParameterError
from splitmeans.synopsis.queries.ask import Asked
from splitmeans.synopsis.synopsis import Synopsis


def chosen_nodes(asked: Asked) -> Synopsis:
    """Return the nodes that are meant, with the weights of those who fit.

    Intervals of questions to it come from the replicates of the whole, where a user may fit in one
    replicate and not in another. It has no replicates of its own: its cells are not all there.

    Args:
        asked: All users, and which of them are meant.
    """
    weights = asked.weights
    used = weights > 0
    if not used.any():
        raise ParameterError("nobody in the synopsis fits the condition; ask for its share instead")
    whole = asked.synopsis
    part = dataclasses.replace(
        whole,
        scaled_nodes=whole.scaled_nodes[used],
        weights=weights[used],
        labels=None if whole.labels is None else whole.labels[used],
        precision=None,
    )
    part.__dict__["_asked"] = asked
    # A column of whole numbers is one for everybody, however few of them there are.
    part.__dict__["whole_features"] = whole.whole_features
    return part
