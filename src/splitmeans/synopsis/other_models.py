"""Other models that a synopsis can be asked for: the part of `Synopsis` beside k-means.

The work is in `synopsis/models/`, which is loaded when somebody asks. Models are fitted to
published values: post-processing, so they cost no privacy, however many there are.
"""

from typing import TYPE_CHECKING, cast

import numpy as np

from splitmeans import _validate

if TYPE_CHECKING:
    from splitmeans.synopsis.clustering import Clustering
    from splitmeans.synopsis.models.medians import Medians
    from splitmeans.synopsis.models.mixture import Mixture
    from splitmeans.synopsis.models.tree import SegmentTree
    from splitmeans.synopsis.synopsis import Synopsis


class OtherModels:
    """Models of a synopsis beside k-means; they are made from published values."""

    def mixture(
        self,
        k: int,
        *,
        covariance: str = "auto",
        random_state: int | np.random.Generator | None = None,
    ) -> "Mixture":
        """Fit a mixture of k Gaussians, with probabilities of categories; costs no privacy.

        Args:
            k: How many components, largest first; fewer if fewer places have users.
            covariance: "full" lets columns of numbers depend on each other within a component,
                "diagonal" does not; "auto" takes what fits better for its number of parameters.
            random_state: Seeds the starts.
        """
        from splitmeans.synopsis.models.mixture import fit_mixture

        _validate.at_least(1, k=k)
        rng = np.random.default_rng(random_state)
        return fit_mixture(cast("Synopsis", self), k, covariance=covariance, rng=rng)

    def medians(
        self, k: int, *, random_state: int | np.random.Generator | None = None
    ) -> "Medians":
        """Find k segments around medians and commonest categories; costs no privacy.

        Args:
            k: How many, largest first; fewer are found if fewer places have users.
            random_state: Seeds the starts.
        """
        from splitmeans.synopsis.models.medians import fit_medians

        _validate.at_least(1, k=k)
        rng = np.random.default_rng(random_state)
        return fit_medians(cast("Synopsis", self), k, rng=rng)

    def tree(
        self,
        most: int = 12,
        *,
        of: "Clustering | None" = None,
        random_state: int | np.random.Generator | None = None,
    ) -> "SegmentTree":
        """Grow a tree of segments, nested for every k up to `most`; costs no privacy.

        Args:
            most: How many segments there are at most; no fewer than it grows from.
            of: The segments that it grows from, which are one of its cuts; half as many as `most`
                by k-means if not given.
            random_state: Seeds the starts.
        """
        from splitmeans.synopsis.models.tree import grow_tree
        from splitmeans.synopsis.segments import letter

        _validate.at_least(1, most=most)
        synopsis = cast("Synopsis", self)
        rng = np.random.default_rng(random_state)
        if of is None:
            of = synopsis.cluster(max(1, most // 2), random_state=rng)
        letters = [letter(rank) for rank in range(len(of.sizes))]
        return grow_tree(synopsis, of.scaled_centres, letters, most=most, rng=rng)
