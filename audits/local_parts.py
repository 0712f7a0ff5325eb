"""The parts of local clustering under audit: rounds, histograms, trees, and whole algorithms.

Most claim mu = 1, so that a few thousand trials tell half the noise from the right one. What is
audited is the code; that its parameters fit a study's budget is the accountant's part.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping

import numpy as np

from audits import (
    detail_views,
    dplloyd_views,
    guided_views,
    mixed_views,
    tree_views,
)
from audits.case import Part, Sampler
from audits.claims import BudgetClaim, Claim, GaussianClaim
from audits.noise_twins import with_half_noise
from splitmeans._types import IntArray
from splitmeans.local.detail import Detail
from splitmeans.local.dplloyd import DpLloyd
from splitmeans.local.dplsf import Dplsf
from splitmeans.local.dplsf_paper import DplsfPaper
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.local.laws.guided_lloyd import MOST_SQUARES
from splitmeans.local.laws.survey import CELL_SHARE, COLUMN_SHARE, SIZE_SHARE
from splitmeans.local.rows import LocalClustering
from splitmeans.local.survey import ColumnSurvey
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


def _round() -> Part:
    mechanism = GuidedLloyd(n_clusters=1, bounds=(_BOUND,) * 4, mu=_MU)
    return _part(
        "round",
        "noisy sums of one round of guided-lloyd, user at three radii",
        GaussianClaim(mu=_MU),
        functools.partial(guided_views.one_round, mechanism),
        trials=20_000,
        long_trials=50_000,
    )


def _wide_round() -> Part:
    # Four columns are far wider than the others, so that many centres have room on them.
    bounds = (_BOUND,) * 4 + (_BOUND // 8,) * (MOST_SQUARES - 3)
    mechanism = GuidedLloyd(n_clusters=1, bounds=bounds, mu=_MU)
    return _part(
        "wide-round",
        "noisy sums of one round that adds the squares of many columns, user at three radii",
        GaussianClaim(mu=_MU),
        functools.partial(guided_views.one_round, mechanism),
        trials=10_000,
        long_trials=50_000,
    )


def _survey(columns: int, *, share: float) -> ColumnSurvey:
    """Return a survey in which a release with this share, after the number of rows, has `_MU`."""
    return ColumnSurvey(bounds=(_BOUND,) * columns, mu=_MU / math.sqrt((1 - SIZE_SHARE) * share))


def _one_column() -> Part:
    return _part(
        "column-histogram",
        "noisy histogram of a single column",
        GaussianClaim(mu=_MU),
        functools.partial(guided_views.one_column, _survey(1, share=1.0)),
        trials=20_000,
        long_trials=50_000,
    )


def _levels() -> Part:
    mu = _MU / math.sqrt(1 - SIZE_SHARE)
    mechanism = ColumnSurvey(bounds=(_BOUND,) * 500, mu=mu, levels=(500,))
    return _part(
        "level-histogram",
        "noisy histogram of a single column of 500 levels",
        GaussianClaim(mu=_MU),
        functools.partial(mixed_views.level_histogram, mechanism),
        trials=20_000,
        long_trials=50_000,
    )


def _mixed_round() -> Part:
    # One column is far wider than the others, so that many centres have room on it.
    bounds = (2**24, 2**16, 2**16, 2**16, 2**16, 2**16)
    mechanism = GuidedLloyd(n_clusters=1, bounds=bounds, mu=_MU, levels=(0, 0, 4))
    return _part(
        "mixed-round",
        "noisy sums of one round over numbers and levels, user without one of the values",
        GaussianClaim(mu=_MU),
        functools.partial(mixed_views.mixed_round, mechanism),
        trials=6_000,
        long_trials=50_000,
    )


def _products() -> Part:
    return _part(
        "score-products",
        "noisy sums of products of the scores of four columns, user clipped",
        GaussianClaim(mu=_MU),
        functools.partial(guided_views.products, _survey(4, share=1 - COLUMN_SHARE - CELL_SHARE)),
        trials=4_000,
        long_trials=50_000,
    )


def _cells() -> Part:
    return _part(
        "cell-histogram",
        "noisy histogram over cells of two columns",
        GaussianClaim(mu=_MU),
        functools.partial(guided_views.cells, _survey(2, share=CELL_SHARE)),
        trials=20_000,
        long_trials=50_000,
    )


def _guided_lloyd() -> Part:
    mechanism = GuidedLloyd(n_clusters=1, bounds=(_BOUND, _BOUND), mu=_MU)
    return _part(
        "guided-lloyd",
        "survey and all rounds of a whole guided-lloyd, two columns",
        GaussianClaim(mu=_MU),
        functools.partial(guided_views.guided_lloyd, mechanism),
        trials=1_200,
        long_trials=5_000,
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


def _guided_lloyd_centre() -> Part:
    # Forty rows on a line from the lower end to the middle showed most of what was tried. Answers
    # that are mostly noise are hardly believed, so the centre shows much less than was paid for,
    # and it takes a quarter of the noise to be caught.
    mechanism = GuidedLloyd(n_clusters=1, bounds=(_BOUND,) * 4, mu=_MU)
    others = np.repeat(np.linspace(-_BOUND, 0, 40).astype(np.int64)[:, np.newaxis], 4, axis=1)
    part = _centre("guided-lloyd-centre", mechanism, columns=4, others=others, long_trials=3_000)
    return dataclasses.replace(
        part,
        what=f"{part.what}; its twin has a quarter of the noise",
        halved=with_half_noise(part.halved),
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
        functools.partial(dplloyd_views.dplloyd_step, mechanism, iterations=iterations),
        trials=4_000,
        long_trials=20_000,
    )


def _dplloyd() -> Part:
    mechanism = DpLloyd(n_clusters=1, bounds=(_BOUND,), epsilon=2.0)
    return _part(
        "dplloyd",
        "all iterations of a whole dplloyd (Laplace)",
        BudgetClaim(epsilon=mechanism.epsilon),
        functools.partial(dplloyd_views.dplloyd, mechanism),
        trials=0,
        long_trials=12_000,
    )


def _detail() -> Part:
    mechanism = Detail(n_columns=detail_views.N_COLUMNS, n_pairs=detail_views.N_PAIRS, mu=_MU)
    return _part(
        "detail",
        "whole columns, columns in a cluster and pairs of three columns, together",
        GaussianClaim(mu=_MU),
        functools.partial(detail_views.all_counts, mechanism),
        trials=2_000,
        long_trials=50_000,
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
    "round": _round,
    "wide-round": _wide_round,
    "mixed-round": _mixed_round,
    "column-histogram": _one_column,
    "level-histogram": _levels,
    "score-products": _products,
    "cell-histogram": _cells,
    "detail": _detail,
    "guided-lloyd": _guided_lloyd,
    "guided-lloyd-centre": _guided_lloyd_centre,
    "dplsf-counts": _tree_counts_gaussian,
    "dplsf-sums": _leaf_sum_gaussian,
    "dplsf-centre": _dplsf_centre,
    "dplloyd-step": _dplloyd_step,
    "dplloyd": _dplloyd,
    "tree-counts": _tree_counts_laplace,
    "leaf-sum": _leaf_sum,
    "leaf-sum-pooled": _leaf_sum_pooled,
}
