"""Settle a plan: choose what the study leaves open, and calibrate the noise to its budget.

A function of the study and, where a method needs it, the noisy user count: every participant comes
to the same plan.
"""

import functools
import itertools
from collections.abc import Callable

from splitmeans.errors import ParameterError
from splitmeans.local.methods import local_law
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.method import Group
from splitmeans.membership.methods import method_of
from splitmeans.plan.bounds import keep_bounds, rough_bounds
from splitmeans.plan.grid_limits import (
    MAX_CELLS,
    MAX_GRID_BYTES,
    PRESENCE,
    SAMPLED,
    grid_bytes,
)
from splitmeans.plan.message_sizes import check_readable
from splitmeans.plan.plan import Plan
from splitmeans.privacy.calibrate import calibrate
from splitmeans.privacy.events import Event, NonPrivateEvent
from splitmeans.privacy.split import (
    PRESENCE_SHARE,
    Precisions,
    paper_split,
    presence_precisions,
    tight_split,
)
from splitmeans.study import Study
from splitmeans.study.features import bounds_of, features_of

# Labels travel as single bytes, and one value means "absent".
MAX_LOCAL_CLUSTERS = 250


def needs_count(study: Study) -> bool:
    """Whether the server must know the noisy number of users to read the memberships."""
    return study.membership_facts.needs_count


@functools.lru_cache(maxsize=64)
def make_plan(study: Study, *, noisy_count: int | None = None) -> Plan:
    """Settle the plan of a run.

    Without a noisy count, a study that needs one gets a plan from its expected number of users; its
    noise is that of the run, its k' may differ.
    """
    build = _builder(study, noisy_count=noisy_count)
    scale = None
    if study.accounting != "paper":
        scale = calibrate(lambda at: _private_events(build(scale=at)), study.budget)
    plan = build(scale=scale)
    if scale is not None and has_bounds(study):
        precisions = keep_bounds(
            study,
            _precisions(study, scale, groups=plan.groups, grid_method=plan.grid_method),
            lambda precisions: build(precisions=precisions),
            _private_events,
        )
        plan = build(precisions=precisions)
    check_readable(plan)
    method_of(study).check_plan(plan.membership, plan)
    return plan


def plan_at(study: Study, *, precision: float) -> Plan:
    """Return the plan at a given overall precision, whatever it costs: for forecasts only.

    Participants never use it; each computes `make_plan` itself and compares fingerprints.
    """
    build = _builder(study, noisy_count=None)
    plan = build(scale=None if study.accounting == "paper" else precision)
    if not has_bounds(study):
        return plan
    base = _precisions(study, precision, groups=plan.groups, grid_method=plan.grid_method)
    n_releases = _releases(study, plan.groups, plan.grid_method)
    return build(precisions=rough_bounds(study, base, n_groups=n_releases))


def has_bounds(study: Study) -> bool:
    """Whether the study sets a bound beside that towards the server."""
    budget = study.budget
    return budget.party_epsilon is not None or budget.coalition_epsilon is not None


def _builder(study: Study, *, noisy_count: int | None) -> Callable[..., Plan]:
    """Settle all that does not depend on the noise; the result makes the plan of a `scale`."""
    users = study.expected_users if noisy_count is None else max(noisy_count, 1)
    clusters = _local_clusters(study, users)
    grid_method = _grid_method(study, clusters)
    groups = _groups(study, grid_method)
    _check_grid_size(study, clusters, grid_method)
    return functools.partial(
        _plan_at,
        study,
        noisy_count=noisy_count,
        n_local_clusters=clusters,
        groups=groups,
        grid_method=grid_method,
    )


def _private_events(plan: Plan) -> tuple[Event, ...]:
    """The events that have a cost at all; a plain part beside them does not change their noise."""
    return tuple(event for event in plan.events if not isinstance(event, NonPrivateEvent))


def _plan_at(
    study: Study,
    *,
    scale: float | None = None,
    precisions: Precisions | None = None,
    noisy_count: int | None,
    n_local_clusters: tuple[int, ...],
    groups: tuple[Group, ...],
    grid_method: str,
) -> Plan:
    """Build the plan at one overall precision or at given ones; with neither, as published."""
    bounds = [bounds_of(features_of(party)) for party in study.parties]
    presence = None
    with_count = needs_count(study)
    if scale is not None:
        precisions = _precisions(study, scale, groups=groups, grid_method=grid_method)
    if precisions is None:
        shares = paper_split(study.budget, n_parties=len(study.parties), needs_count=with_count)
        local_cost: dict[str, float] = {"epsilon": shares.local_epsilon}
        count_scale = 1 / shares.count_epsilon if with_count else None
        published_law = method_of(study).published_law
        assert published_law is not None, "the study was not checked"
        membership = published_law(study, shares, max(n_local_clusters))
    else:
        local_cost = {"mu": precisions.local}
        count_scale = 1 / precisions.count if with_count else None
        tight_law = method_of(study).tight_law
        assert tight_law is not None, "the study was not checked"
        n_releases = len(groups) or len(study.parties)
        membership = tight_law(study, precisions, max(n_local_clusters), n_releases)
        if grid_method == PRESENCE:
            own = presence_precisions(precisions, n_pairs=len(groups) - 1)
            presence = tight_law(study, own, 1, n_releases)
            assert isinstance(presence, DecoyLaw), "the study was not checked"
    local = tuple(
        local_law(study.local_facts.name, n_clusters=clusters, bounds=limits, **local_cost)
        for limits, clusters in zip(bounds, n_local_clusters, strict=True)
    )
    return Plan(
        study=study,
        noisy_count=noisy_count,
        n_local_clusters=n_local_clusters,
        groups=groups,
        local=local,
        membership=membership,
        count_scale=count_scale,
        grid_method=grid_method,
        presence=presence,
    )


def _precisions(
    study: Study, scale: float, *, groups: tuple[Group, ...], grid_method: str
) -> Precisions:
    n_releases = _releases(study, groups, grid_method)
    return tight_split(study, n_groups=n_releases, needs_count=needs_count(study), scale=scale)


def _releases(study: Study, groups: tuple[Group, ...], grid_method: str) -> float:
    """Return how many membership releases share the precision; a presence table has its part."""
    if grid_method == PRESENCE:
        return (len(groups) - 1) / (1 - PRESENCE_SHARE)
    return len(groups) or len(study.parties)


def _local_clusters(study: Study, users: int) -> tuple[int, ...]:
    chosen = study.n_local_clusters
    k = method_of(study).default_clusters(study, users) if chosen == "auto" else int(chosen)
    return (k,) * len(study.parties)


def _grid_method(study: Study, n_local_clusters: tuple[int, ...]) -> str:
    """The grid method that "auto" stands for."""
    if study.grid != "auto":
        return study.grid
    if len(study.parties) == 2:
        return study.membership_facts.grid_of_two
    if study.user_sets == "partial":
        return PRESENCE
    if study.membership_facts.grid_of_more != "pairs":
        return study.membership_facts.grid_of_more
    cells = _cells(n_local_clusters)
    fits = cells <= MAX_CELLS and _dense_bytes(study, cells) <= MAX_GRID_BYTES
    return "pairs" if fits else "many"


def _groups(study: Study, grid_method: str) -> tuple[Group, ...]:
    everyone = tuple(range(len(study.parties)))
    if not study.membership_facts.grouped:
        return ()
    if grid_method == "joint":
        return (everyone,)
    pairs = tuple(itertools.combinations(everyone, 2))
    return (*pairs, everyone) if grid_method == PRESENCE else pairs


def _cells(n_local_clusters: tuple[int, ...]) -> int:
    cells = 1
    for k in n_local_clusters:
        cells *= k
    return cells


def _check_grid_size(study: Study, n_local_clusters: tuple[int, ...], grid_method: str) -> None:
    cells, k = _cells(n_local_clusters), max(n_local_clusters)
    where = f"n_local_clusters={k} at {len(study.parties)} parties gives {cells} grid cells"
    if cells < study.n_clusters:
        raise ParameterError(
            f"{where}, fewer than n_clusters={study.n_clusters}; raise n_local_clusters"
        )
    if cells > MAX_CELLS and grid_method not in SAMPLED:
        raise ParameterError(
            f"{where}, more than the {MAX_CELLS} that grid={grid_method!r} can hold; lower "
            "n_local_clusters or take membership='decoy' with grid='many'"
        )
    if k > MAX_LOCAL_CLUSTERS:
        raise ParameterError(f"n_local_clusters must be <= {MAX_LOCAL_CLUSTERS}, got {k}")
    if grid_method in SAMPLED:
        return
    if _dense_bytes(study, cells) > MAX_GRID_BYTES:
        n_parties = len(study.parties)
        fewer = next(
            width
            for width in range(k, 0, -1)
            if _dense_bytes(study, width**n_parties) <= MAX_GRID_BYTES
        )
        raise ParameterError(
            f"{where}, which with all the columns take about "
            f"{_dense_bytes(study, cells) / 1e9:.0f} GB of memory at every participant; lower "
            f"n_local_clusters to {fewer}, or leave columns out"
        )


def _dense_bytes(study: Study, cells: int) -> int:
    n_features = sum(len(features_of(party)) for party in study.parties)
    return grid_bytes(cells=cells, n_features=n_features, n_parties=len(study.parties))
