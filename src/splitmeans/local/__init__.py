"""Phase 1, local clustering: each party's columns become a few private centres."""

from collections.abc import Iterable

from splitmeans import _validate
from splitmeans.local.lloyd import DpLloyd
from splitmeans.local.lsh_tree import LshTree
from splitmeans.local.mechanism import LocalClustering
from splitmeans.local.plain import PlainKMeans

METHODS = ("dplsf", "dplloyd", "plain")


def make_local(
    method: str, *, n_clusters: int, bounds: Iterable[int], epsilon: float
) -> LocalClustering:
    """Return the local clustering algorithm of this name.

    Args:
        method: "dplsf", "dplloyd" or "plain".
        n_clusters: Number of local centres, k'.
        bounds: Largest grid integer of each column, shape (d,).
        epsilon: Cost of one release; "plain" has no use for it.
    """
    _validate.one_of(METHODS, method=method)
    whole = tuple(int(bound) for bound in bounds)
    if method == "dplsf":
        return LshTree(n_clusters=n_clusters, bounds=whole, epsilon=epsilon)
    if method == "dplloyd":
        return DpLloyd(n_clusters=n_clusters, bounds=whole, epsilon=epsilon)
    return PlainKMeans(n_clusters=n_clusters, bounds=whole)
