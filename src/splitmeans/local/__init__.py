"""Phase 1, local clustering: each party's columns become a few private centres."""

from collections.abc import Iterable

from splitmeans import _validate
from splitmeans.errors import ParameterError
from splitmeans.local.gaussian_tree import GaussianTree
from splitmeans.local.lloyd import DpLloyd
from splitmeans.local.lsh_tree import LshTree
from splitmeans.local.mechanism import LocalClustering
from splitmeans.local.plain import PlainKMeans
from splitmeans.local.tree_lloyd import TreeLloyd

METHODS = ("tree-lloyd", "dplsf", "dplloyd", "plain")


def make_local(
    method: str,
    *,
    n_clusters: int,
    bounds: Iterable[int],
    epsilon: float | None = None,
    mu: float | None = None,
) -> LocalClustering:
    """Return the local clustering algorithm of this name.

    One of `epsilon` and `mu` is given. "plain" has no use for either.

    Args:
        method: "tree-lloyd", "dplsf", "dplloyd" or "plain".
        n_clusters: Number of local centres, k'.
        bounds: Largest grid integer of each column, shape (d,).
        epsilon: Cost of one release in the published form; "tree-lloyd" has none.
        mu: Cost of one release under tight accounting: sqrt of the sum of (sensitivity / scale)^2
            over its Gaussian parts. "dplloyd" is mu-DP then, which composes no worse.
    """
    _validate.one_of(METHODS, method=method)
    whole = tuple(int(bound) for bound in bounds)
    if method == "plain":
        return PlainKMeans(n_clusters=n_clusters, bounds=whole)
    if (epsilon is None) == (mu is None):
        raise ParameterError(f"one of epsilon and mu must be given, got {epsilon!r} and {mu!r}")
    if method == "dplloyd":
        cost = mu if epsilon is None else epsilon
        assert cost is not None
        return DpLloyd(n_clusters=n_clusters, bounds=whole, epsilon=cost)
    if mu is not None:
        tree = TreeLloyd if method == "tree-lloyd" else GaussianTree
        return tree(n_clusters=n_clusters, bounds=whole, mu=mu)
    if method == "tree-lloyd":
        raise ParameterError('"tree-lloyd" has no published form: use tight accounting')
    assert epsilon is not None
    return LshTree(n_clusters=n_clusters, bounds=whole, epsilon=epsilon)
