"""Settle a plan: choose what the study leaves open, and calibrate the noise to its budget.

A function of the study and of what its stages have released so far: every participant comes to the
same plan. All noise follows from the study alone (`_precisions_of`), so it is the same in the first
plan and in every later one; `make_plan` checks that it is.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from splitmeans.errors import ParameterError, PrivacyError, ProtocolError
from splitmeans.local.laws.guided_lloyd import GuidedLloydLaw
from splitmeans.membership.decoy.column_tables import COLUMNS_SHARE, n_column_tables
from splitmeans.membership.method import enough_clusters
from splitmeans.membership.methods import method_of
from splitmeans.plan.bounds import has_bounds, keep_bounds, rough_bounds
from splitmeans.plan.bounds_stage import bounds_stage
from splitmeans.plan.categories_stage import categories_stage
from splitmeans.plan.details import detail_laws, tables_of_columns
from splitmeans.plan.enough_users import check_enough_users
from splitmeans.plan.groups import check_local_clusters, groups_of, has_presence_table
from splitmeans.plan.message_sizes import check_readable
from splitmeans.plan.plan import Plan, users_of
from splitmeans.plan.series import SeriesRun
from splitmeans.plan.settled import settled_parties
from splitmeans.plan.size_stage import SIZE, size_law, size_stage, sizing_parties
from splitmeans.plan.stages import ReleasedValues, Stage, check_room
from splitmeans.plan.views import coalition_events, party_events
from splitmeans.privacy.calibrate import Views, calibrate
from splitmeans.privacy.events import covers_all
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.privacy.split import (
    PRESENCE_SHARE,
    Precisions,
    presence_precisions,
    split_precision,
)
from splitmeans.study import Study
from splitmeans.study.coding import Coding, coding_of

# By how much less precise a local release becomes where features are known later; the first that is
# enough is taken. It makes up for the rounding of scales, so the last is enough by far.
_LESS_PRECISE = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)

# Noise on a number of users is larger than this many deviations with a probability below 10^-6.
_DEVIATIONS = 10


@functools.lru_cache(maxsize=64)
def make_plan(
    study: Study, *, released: ReleasedValues = (), series_run: SeriesRun | None = None
) -> Plan:
    """Settle the plan of a run from the values that its stages have released.

    Before the stage that would tell, a study gets a plan from its expected number of users; its
    noise is that of the run, its k' may differ. `Plan.next_stage` says what is still missing.

    `released` has the values of the stages so far, in their order. No noise depends on
    `series_run`.

    Raises:
        ParameterError: Nobody could run such a plan. If the first is not refused, a later one is
            only for a released number of users that no message holds.
        PrivacyError: What was released would change the noise; no plan may do that.
    """
    if series_run is not None:
        return replace(make_plan(study, released=released), series_run=series_run)
    precisions = _precisions_of(study)
    if not released:
        plan = _plan_at(study, precisions, released=())
        _check_computable(plan)
        check_enough_users(study, plan.stages)
        check_room(plan.stages)
        return plan
    first = make_plan(study)
    _check_values(first.stages, released)
    later = _later_plan(first, precisions, released)
    _check_same_noise(first, later)
    return later


def plan_of_run(
    study: Study, *, released: ReleasedValues, series_run: SeriesRun | None = None
) -> Plan:
    """Return the plan that follows from values which participants sent; see `make_plan`.

    Raises:
        ProtocolError: The values allow no plan that anybody could run.
    """
    try:
        return make_plan(study, released=released, series_run=series_run)
    except ParameterError as problem:
        if not released:
            raise
        raise ProtocolError(f"no plan follows from the released values: {problem}") from problem


def plan_for(study: Study, *, users: int) -> Plan:
    """Return the plan of a run whose stages find exactly this many users at each party."""
    stages = make_plan(study).stages
    return make_plan(study, released=_values(stages, [users] * len(stages)))


def largest_plan(study: Study, *, users: int) -> Plan:
    """Return the plan of a run whose stages find this many users, and more by their noise.

    For room that is needed whatever the noise will be.
    """
    stages = make_plan(study).stages
    most = [
        users
        + math.ceil(_DEVIATIONS * max(line[1] for law in stage.laws for line in law.noise_lines()))
        for stage in stages
    ]
    return make_plan(study, released=_values(stages, most))


def first_stages(study: Study, precisions: Precisions) -> tuple[Stage, ...]:
    """Return what is released before the main releases; a function of the study alone."""
    sized = size_stage(study, size_law(precisions.size)) if sizing_parties(study) else None
    learned = (
        bounds_stage(study, precisions.bounds),
        categories_stage(study, precisions.categories),
    )
    return tuple(stage for stage in (sized, *learned) if stage is not None)


def plan_at(study: Study, *, precision: float, users: int | None = None) -> Plan:
    """Return the plan at a given overall precision, whatever it costs: for forecasts only.

    Participants never use it; each computes `make_plan` itself and compares fingerprints.

    `users` are what the stages find at each party; None takes the plan before them.
    """
    precisions = _precisions(study, precision)
    if has_bounds(study):
        precisions = rough_bounds(study, precisions, n_groups=_releases(study))
    first = _plan_at(study, precisions, released=())
    if users is None or not first.stages:
        return first
    return _later_plan(first, precisions, _values(first.stages, [users] * len(first.stages)))


@functools.lru_cache(maxsize=64)
def _precisions_of(study: Study) -> Precisions:
    """Return how precise every release of a study is."""

    def build(precisions: Precisions) -> Plan:
        return _plan_at(study, precisions, released=())

    scale = calibrate(lambda at: build(_precisions(study, at)).lifetime_events, study.budget)
    precisions = _precisions(study, scale)
    return keep_bounds(study, precisions, build) if has_bounds(study) else precisions


def _later_plan(first: Plan, precisions: Precisions, released: ReleasedValues) -> Plan:
    """Return the plan that follows from released values, with the noise of the first one.

    An automatic number of labels is lowered until the plan can be computed: that of the first plan
    can.
    """
    study = first.study
    k = _labels(study, first.stages, released)
    while True:
        try:
            plan = _covered_plan(first, precisions, released, labels=k)
            _check_computable(plan)
            return plan
        except ParameterError:
            if study.n_local_clusters != "auto" or k <= enough_clusters(study):
                raise
            k -= 1


def _covered_plan(
    first: Plan, precisions: Precisions, released: ReleasedValues, *, labels: int
) -> Plan:
    """Return the plan whose costs the first one covers.

    Learned categories change how many features a party has, and with them how scales of noise are
    rounded to whole numbers. So the local noise grows by as little as makes up for that.
    """
    for less in _LESS_PRECISE:
        own = replace(
            precisions,
            local=precisions.local * (1 - less),
            detail=precisions.detail * (1 - less),
        )
        plan = _plan_at(first.study, own, released=released, labels=labels)
        if _is_covered(first, plan):
            break
    return plan


def _values(stages: tuple[Stage, ...], users: Sequence[int]) -> ReleasedValues:
    """Return what stages may release: a number of users, or what their laws assume; else zeros."""
    return tuple(
        tuple(
            (count,) * law.length
            if stage.name == SIZE
            else getattr(law, "assumed", (0,) * law.length)
            for law in stage.laws
        )
        for stage, count in zip(stages, users, strict=True)
    )


def _check_values(stages: tuple[Stage, ...], released: ReleasedValues) -> None:
    """Refuse values that are not those of the first stages."""
    shapes = [[law.length for law in stage.laws] for stage in stages[: len(released)]]
    if [[len(own) for own in values] for values in released] != shapes:
        raise ParameterError(
            "released must have the values of the study's first stages, for each stage as many as "
            f"its parties release; got {released!r:.80}"
        )


def _check_computable(plan: Plan) -> None:
    """Refuse a plan that nobody could run; its grid was checked when it was built."""
    check_readable(plan)
    method_of(plan.study).check_plan(plan.membership, plan)


def _check_same_noise(first: Plan, later: Plan) -> None:
    """Refuse a later plan with other costs than the first: composition was of the first's."""
    if not _is_covered(first, later):
        raise PrivacyError(
            f"study {first.study.name!r}: the plan that follows from what was released has "
            "other noise than the first one; no release may depend on that, so nothing more "
            "is sent (this is an error in splitmeans: please report it)"
        )


def _is_covered(first: Plan, later: Plan) -> bool:
    """Whether every event of a later plan, in every view, is one of the first or costs less."""
    if first.stages != later.stages:
        return False
    views: tuple[Callable[[Plan], Views], ...] = (
        lambda plan: (plan.events,),
        party_events,
        coalition_events,
    )
    return all(
        len(before) == len(after) and all(map(covers_all, before, after))
        for before, after in ((view(first), view(later)) for view in views)
    )


def _plan_at(
    study: Study,
    precisions: Precisions,
    *,
    released: ReleasedValues,
    labels: int | None = None,
) -> Plan:
    """Build the plan at given precisions.

    `labels` is how many labels all parties have in a table; None takes those of `_labels`.
    """
    groups = groups_of(study)
    stages = first_stages(study, precisions)
    parties = settled_parties(study, stages, released)
    if labels is None:
        labels = _labels(study, stages, released)
    method = method_of(study)
    # A study that says k' has a label for each cluster.
    given = study.n_local_clusters != "auto" or study.counts_only
    clusters = labels if given else method.clusters_of(study, labels)
    widths, n_labels = ((own,) * len(study.parties) for own in (clusters, labels))
    codings = [coding_of(party) for party in parties]
    check_local_clusters(study, widths)
    n_releases = len(groups) + n_column_tables(study)
    membership = method.law_at(study, precisions, n_releases)
    presence = None
    if study.counts_only:
        presence = membership
    elif has_presence_table(study):
        own = presence_precisions(precisions, n_pairs=len(groups) - 1)
        presence = method.law_at(study, own, n_releases)
    return Plan(
        study=study,
        released=released,
        stages=stages,
        n_local_clusters=widths,
        n_labels=n_labels,
        groups=groups,
        local=() if study.counts_only else _local_laws(codings, widths, precisions),
        membership=membership,
        presence=presence,
        **_detail(study, precisions, codings),
    )


def _local_laws(
    codings: Sequence[Coding], widths: Sequence[int], precisions: Precisions
) -> tuple[GuidedLloydLaw, ...]:
    """Return the law of each party's local clustering."""
    return tuple(
        GuidedLloydLaw(
            n_clusters=width,
            bounds=tuple(int(bound) for bound in coding.bounds),
            levels=() if coding.is_plain else coding.levels,
            mu=precisions.local,
        )
        for coding, width in zip(codings, widths, strict=True)
    )


def _detail(study: Study, precisions: Precisions, codings: Sequence[Coding]) -> dict[str, Any]:
    """Return what a plan has besides where its study asks for detail."""
    if not precisions.detail:
        return {}
    about = 1 / gaussian_multiplier(study.budget.epsilon, study.budget.delta)
    n_releases = len(groups_of(study)) + n_column_tables(study)
    return {
        "detail": detail_laws(
            study, codings, mu=precisions.detail, about=_precisions(study, about).detail
        ),
        "columns": tables_of_columns(
            study,
            precisions,
            codings,
            n_groups=_group_releases(study),
            law_at=lambda own: method_of(study).law_at(study, own, n_releases),
        ),
    }


def _precisions(study: Study, scale: float) -> Precisions:
    return split_precision(
        study,
        n_groups=_releases(study),
        n_sizes=len(sizing_parties(study)),
        scale=scale,
    )


def _releases(study: Study) -> float:
    """Return how many membership releases share the precision; tables of columns have a part."""
    found = _group_releases(study)
    return found / (1 - COLUMNS_SHARE) if n_column_tables(study) else found


def _group_releases(study: Study) -> float:
    """Return how many releases of groups share it; a presence table has its part."""
    n_groups = len(groups_of(study))
    if study.counts_only or not has_presence_table(study):
        return n_groups
    return (n_groups - 1) / (1 - PRESENCE_SHARE)


def _labels(study: Study, stages: tuple[Stage, ...], released: ReleasedValues) -> int:
    """Return how many labels a party has in a table: k' of the study, or what fits the users."""
    if study.counts_only:
        return 1
    if study.n_local_clusters != "auto":
        return int(study.n_local_clusters)
    found = users_of(stages, released)
    users = study.assumed_users if found is None else round(found)
    return method_of(study).default_labels(study, users)
