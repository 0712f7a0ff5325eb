"""The parts of local clustering under audit: steps, histograms, trees, and whole algorithms.

Most claim mu = 1, so that a few thousand trials tell half the noise from the right one. What is
audited is the code; that its parameters fit a study's budget is the accountant's part.
"""

import functools
import math
from collections.abc import Callable, Mapping

import numpy as np

from splitmeans._types import IntArray
from splitmeans.audit import lloyd_views, tree_views
from splitmeans.audit.case import Part, Sampler
from splitmeans.audit.claims import BudgetClaim, Claim, GaussianClaim
from splitmeans.audit.noise_twins import with_half_noise
from splitmeans.local.cells import CellHistogram
from splitmeans.local.dplloyd import DpLloyd
from splitmeans.local.dplsf import Dplsf
from splitmeans.local.dplsf_paper import DplsfPaper
from splitmeans.local.histogram_lloyd import HistogramLloyd
from splitmeans.local.radius_lloyd import RadiusLloyd
from splitmeans.local.rows import LocalClustering
from splitmeans.privacy.gaussian import gaussian_multiplier

_BOUND = 2**20
_MU = 1.0
_DELTA = 1e-3


def _part(
    name: str, what: str, claim: Claim, sample: Sampler, *, trials: int, long_trials: int
) -> Part:
    """Return a part whose broken twin draws noise of half the scale it asks for."""
    return Part(
        name=name,
        what=what,
        claim=claim,
        sample=sample,
        halved=with_half_noise(sample),
        trials=trials,
        long_trials=long_trials,
    )


def _lloyd_step() -> Part:
    mechanism = RadiusLloyd(bounds=(_BOUND,) * 4, mu=_MU, steps=1)
    return _part(
        "lloyd-step",
        "noisy sums of one Lloyd step with a radius, user at three radii",
        GaussianClaim(mu=mechanism.step_mu),
        functools.partial(lloyd_views.lloyd_step, mechanism),
        trials=20_000,
        long_trials=50_000,
    )


def _one_column() -> Part:
    mechanism = CellHistogram(bounds=(_BOUND,), mu=_MU)
    return _part(
        "column-histogram",
        "noisy histogram of a single column",
        GaussianClaim(mu=mechanism.mu),
        functools.partial(lloyd_views.one_column, mechanism),
        trials=20_000,
        long_trials=50_000,
    )


def _cells() -> Part:
    mechanism = CellHistogram(bounds=(_BOUND, _BOUND), mu=_MU)
    return _part(
        "cell-histogram",
        "noisy histogram over cells fitted to two columns",
        GaussianClaim(mu=mechanism.mu),
        functools.partial(lloyd_views.cells, mechanism),
        trials=1_500,
        long_trials=20_000,
    )


def _histogram_lloyd() -> Part:
    mechanism = HistogramLloyd(n_clusters=1, bounds=(_BOUND,), mu=_MU)
    return _part(
        "histogram-lloyd",
        "histogram and all four steps of a whole histogram-lloyd",
        GaussianClaim(mu=mechanism.mu),
        functools.partial(lloyd_views.histogram_lloyd, mechanism),
        trials=1_400,
        long_trials=10_000,
    )


def _tree_counts_gaussian() -> Part:
    mechanism = Dplsf(n_clusters=1, bounds=(_BOUND,), mu=math.sqrt(2) * _MU, depth=3)
    return _part(
        "dplsf-counts",
        "noisy counts on four levels of a hash tree (Gaussian)",
        GaussianClaim(mu=mechanism.mu * math.sqrt(1 - mechanism.sum_share)),
        functools.partial(
            tree_views.tree_counts,
            count_scale=mechanism.count_scale,
            depth=mechanism.depth,
            law="gaussian",
        ),
        trials=2_000,
        long_trials=20_000,
    )


def _leaf_sum_gaussian() -> Part:
    mechanism = Dplsf(n_clusters=1, bounds=(_BOUND, _BOUND // 2), mu=math.sqrt(2) * _MU)
    return _part(
        "dplsf-sums",
        "noisy sum of a leaf's rows (Gaussian)",
        GaussianClaim(mu=mechanism.mu * math.sqrt(mechanism.sum_share)),
        functools.partial(tree_views.leaf_sum, mechanism),
        trials=20_000,
        long_trials=200_000,
    )


def _centre(
    name: str, mechanism: LocalClustering, *, columns: int, others: IntArray, long_trials: int
) -> Part:
    """A whole algorithm as the server sees it; its mu must be `_MU`."""
    user = np.full(columns, _BOUND)
    return _part(
        name,
        f"the released centre alone of a whole local clustering, columns: {columns}",
        GaussianClaim(mu=_MU),
        functools.partial(tree_views.local_centre, mechanism, user=user, others=others),
        trials=0,
        long_trials=long_trials,
    )


def _histogram_lloyd_centre() -> Part:
    # Four columns and a hundred rows at a third of the bounds show most of what was tried.
    mechanism = HistogramLloyd(n_clusters=1, bounds=(_BOUND,) * 4, mu=_MU)
    others = np.full((100, 4), _BOUND // 3)
    return _centre(
        "histogram-lloyd-centre", mechanism, columns=4, others=others, long_trials=12_000
    )


def _dplsf_centre() -> Part:
    mechanism = Dplsf(n_clusters=1, bounds=(_BOUND,), mu=_MU)
    others = np.full((40, 1), _BOUND // 100)
    return _centre("dplsf-centre", mechanism, columns=1, others=others, long_trials=20_000)


def _dplloyd_step() -> Part:
    mechanism, iterations = DpLloyd(n_clusters=1, bounds=(_BOUND,), epsilon=2.0), 2
    return _part(
        "dplloyd-step",
        "noisy sum and count of one of two iterations (Laplace)",
        BudgetClaim(epsilon=mechanism.iterations_epsilon / iterations),
        functools.partial(lloyd_views.dplloyd_step, mechanism, iterations=iterations),
        trials=4_000,
        long_trials=20_000,
    )


def _dplloyd() -> Part:
    mechanism = DpLloyd(n_clusters=1, bounds=(_BOUND,), epsilon=2.0)
    return _part(
        "dplloyd",
        "all iterations of a whole dplloyd (Laplace)",
        BudgetClaim(epsilon=mechanism.epsilon),
        functools.partial(lloyd_views.dplloyd, mechanism),
        trials=0,
        long_trials=12_000,
    )


def _tree_counts_laplace() -> Part:
    levels, scale = 2, 2.0
    return _part(
        "tree-counts",
        "noisy counts on two levels of a hash tree (Laplace)",
        BudgetClaim(epsilon=levels / scale),
        functools.partial(
            tree_views.tree_counts, count_scale=scale, depth=levels - 1, law="laplace"
        ),
        trials=5_000,
        long_trials=40_000,
    )


def _leaf_sum() -> Part:
    tree = DplsfPaper(n_clusters=1, bounds=(1000, 500), epsilon=1.25)
    return _part(
        "leaf-sum",
        "noisy sum of a leaf's rows, as published (Laplace)",
        BudgetClaim(epsilon=tree.sum_share * tree.epsilon),
        functools.partial(tree_views.leaf_sum, tree),
        trials=20_000,
        long_trials=200_000,
    )


def _leaf_sum_pooled() -> Part:
    tree = DplsfPaper(
        n_clusters=1, bounds=(_BOUND, _BOUND // 2), epsilon=3.75, delta=_DELTA, sums="gaussian"
    )
    # Gaussian noise that is just enough for an epsilon at a delta has one mu.
    claim = GaussianClaim(mu=1 / gaussian_multiplier(tree.sum_share * tree.epsilon, _DELTA))
    return _part(
        "leaf-sum-pooled",
        "noisy sum of a leaf's rows, as published for pooled data (Gaussian)",
        claim,
        functools.partial(tree_views.leaf_sum, tree),
        trials=20_000,
        long_trials=200_000,
    )


LOCAL_PARTS: Mapping[str, Callable[[], Part]] = {
    "lloyd-step": _lloyd_step,
    "column-histogram": _one_column,
    "cell-histogram": _cells,
    "histogram-lloyd": _histogram_lloyd,
    "histogram-lloyd-centre": _histogram_lloyd_centre,
    "dplsf-counts": _tree_counts_gaussian,
    "dplsf-sums": _leaf_sum_gaussian,
    "dplsf-centre": _dplsf_centre,
    "dplloyd-step": _dplloyd_step,
    "dplloyd": _dplloyd,
    "tree-counts": _tree_counts_laplace,
    "leaf-sum": _leaf_sum,
    "leaf-sum-pooled": _leaf_sum_pooled,
}
