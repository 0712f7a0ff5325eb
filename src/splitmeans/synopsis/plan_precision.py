"""What a plan tells of the errors of a synopsis, and where nothing honest can be told."""

import dataclasses
import math

import numpy as np

from splitmeans.local.law import COUNT_UNITS
from splitmeans.local.laws.guided_lloyd import GuidedLloydLaw
from splitmeans.local.laws.survey import bins_for
from splitmeans.membership.methods import method_of
from splitmeans.plan.plan import Plan
from splitmeans.synopsis.precision import (
    FEWEST_DRAWS,
    Precision,
    all_pairs,
    draws_of,
    grid_of,
    margin,
)
from splitmeans.synopsis.synopsis import Synopsis

# With fewer of the users at all parties than this share, who is at three of them is a model's guess.
_NEARLY_ALL = 0.95


def refusal(plan: Plan, synopsis: Synopsis) -> str | None:
    """Return why nothing honest is said about errors of a published synopsis, None if it is."""
    reason = _refusal(plan, synopsis)
    if reason is None and synopsis.precision is None:
        return (
            "many users are at some parties only, so who is at all of them is in part a model's "
            "guess, and how far it is off is not known"
        )
    return reason


def _refusal(plan: Plan, synopsis: Synopsis) -> str | None:
    if method_of(plan.study).deviation is None:
        return (
            f"memberships were sent by the method {plan.study.membership!r}, whose errors of cells "
            "are not known"
        )
    if synopsis.labels is None or (synopsis.labels >= np.array(plan.n_labels)).any():
        return "labels stand for two local clusters, and how far these are told apart is not known"
    if plan.detail:
        # Replicates and repeated estimates do not know it.
        what = "points were drawn anew within clusters"
        if plan.columns is not None:
            what = "users were put together anew by tables of columns"
        return f"the study has [detail], so {what}, and how far that is off is not known"
    if draws_of(plan.n_labels, n_tables=len(plan.groups)) < FEWEST_DRAWS:
        cells = math.prod(plan.n_labels)
        return f"its {cells:,} combinations of local clusters are too many to be estimated again"
    if synopsis.total <= 0:
        return "no users were counted"
    return None


def with_precision(synopsis: Synopsis, plan: Plan, *, everywhere: float = 1.0) -> Synopsis:
    """Return the synopsis with what is known of its errors, which may be nothing.

    `everywhere` is the share of the users who are at all parties. Of two parties one table counts
    them all.
    """
    enough = len(plan.study.parties) == 2 or everywhere >= _NEARLY_ALL
    known = enough and _refusal(plan, synopsis) is None
    precision = precision_of(plan, synopsis) if known else None
    return dataclasses.replace(synopsis, precision=precision)


def precision_of(plan: Plan, synopsis: Synopsis) -> Precision:
    """Return what follows from the plan and the published grid; nothing may be refused."""
    grid = grid_of(synopsis, plan.n_labels)
    groups = all_pairs(grid.ndim)
    deviation = method_of(plan.study).deviation
    assert deviation is not None, "refused before"
    return Precision(
        shape=grid.shape,
        groups=groups,
        deviations=tuple(
            deviation(plan.membership, plan, group, margin(grid, group)) for group in groups
        ),
        resolutions=_resolutions(plan, synopsis.total),
    )


def _resolutions(plan: Plan, total: float) -> tuple[float, ...]:
    """Return the width of a bin of each feature, as its party's survey chose it.

    A party chooses by the number of its own rows. That may be more than the users of all, so bins
    may be finer than this says, never coarser but for a rounding.
    """
    found: list[float] = []
    for party, law in zip(plan.parties, plan.local, strict=True):
        assert isinstance(law, GuidedLloydLaw), "only this one makes points"
        bins = bins_for(total, noise_deviation=law.survey.column_scale / COUNT_UNITS)
        for column in party.columns:
            found += [0.0] * len(column.levels) if column.levels else [1 / bins]
    return tuple(found)
