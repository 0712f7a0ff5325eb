"""The parts of local clustering under audit: rounds, histograms, and the whole algorithm.

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
    guided_views,
    mixed_views,
)
from audits.case import Part, Sampler
from audits.claims import Claim, GaussianClaim
from audits.noise_twins import with_half_noise
from splitmeans.local.detail import Detail
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.local.laws.guided_lloyd import MOST_SQUARES
from splitmeans.local.laws.survey import CELL_SHARE, COLUMN_SHARE, SIZE_SHARE
from splitmeans.local.survey import ColumnSurvey

_BOUND = 2**20
_MU = 1.0


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


def _guided_lloyd_centre() -> Part:
    # Forty rows on a line from the lower end to the middle showed most of what was tried. Answers
    # that are mostly noise are hardly believed, so the centre shows much less than was paid for,
    # and it takes a quarter of the noise to be caught.
    mechanism = GuidedLloyd(n_clusters=1, bounds=(_BOUND,) * 4, mu=_MU)
    others = np.repeat(np.linspace(-_BOUND, 0, 40).astype(np.int64)[:, np.newaxis], 4, axis=1)
    user = np.full(4, _BOUND)
    part = _part(
        "guided-lloyd-centre",
        "the released centre alone of a whole local clustering, columns: 4; its twin has a quarter "
        "of the noise",
        GaussianClaim(mu=_MU),
        functools.partial(guided_views.local_centre, mechanism, user=user, others=others),
        trials=0,
        long_trials=3_000,
    )
    return dataclasses.replace(part, halved=with_half_noise(part.halved))


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
}
