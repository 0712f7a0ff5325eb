"""Noise that keeps bounds towards fellow parties as well as the one towards the server.

Towards the server decoys hide a user; towards a party, which knows the decoys, only the noise of
the other parties' local releases and the server's own noise E do. So a bound towards parties
(`party_epsilon`; in a study of counts alone always) scales those two by one factor, and the decoys
get what the budget towards the server then has left. A bound towards a party together with the
server (`coalition_epsilon`) scales the local releases alone: who holds the run key and the releases
removes decoys and E. All of it follows from public quantities, before the first release.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from splitmeans.errors import PrivacyError
from splitmeans.plan.views import coalition_events, label_events, party_events
from splitmeans.privacy.calibrate import Views, calibrate_views, check_range, fit
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.privacy.pld import epsilon_for
from splitmeans.privacy.split import Precisions
from splitmeans.study import Budget, Study

if TYPE_CHECKING:
    from splitmeans.plan.plan import Plan

# Decoys with a quarter of E's deviation leave counts within 3 % of the noise of E alone: fewer
# would give the server more and nobody a better result.
_MOST_OVER_SERVER = 4.0


def party_bound(study: Study) -> float | None:
    """Return the largest epsilon towards parties that a plan may have; None: any.

    In a study of counts alone, who is a user where is all there is to learn: a fellow party, which
    knows the decoys and for which a user moves from one cell to another, must not learn more of it
    than the server.
    """
    asked, epsilon = study.budget.party_epsilon, study.budget.epsilon
    if study.counts_only:
        return epsilon if asked is None else min(asked, epsilon)
    return asked


def has_bounds(study: Study) -> bool:
    """Whether a plan keeps a bound beside that towards the server."""
    return party_bound(study) is not None or study.budget.coalition_epsilon is not None


def keep_bounds(
    study: Study,
    base: Precisions,
    plan_at: Callable[[Precisions], "Plan"],
) -> Precisions:
    """Return precisions at which every bound of the study's budget holds.

    The study has a bound beside epsilon; `base` fits the budget towards the server.
    """
    budget, towards_party = study.budget, party_bound(study)
    local = server = 1.0
    if towards_party is not None:
        limit = Budget(epsilon=towards_party, delta=budget.delta)
        server = _factor(
            lambda at: party_events(plan_at(_scaled(base, at, at))), limit, "party_epsilon"
        )
        local = server
    if budget.coalition_epsilon is not None:
        limit = Budget(epsilon=budget.coalition_epsilon, delta=budget.delta)
        _check_reachable(study, plan_at(base))
        own = _factor(
            lambda at: coalition_events(plan_at(_scaled(base, at, server))),
            limit,
            "coalition_epsilon",
        )
        local = min(local, own)
    if local == 1.0:
        return base
    kept = _scaled(base, local, server)

    def views_at(factor: float) -> Views:
        return (plan_at(replace(kept, membership=base.membership * factor)).lifetime_events,)

    most = max(1.0, _MOST_OVER_SERVER * server)
    found = most if fit(views_at(most), budget) else calibrate_views(views_at, budget)
    return replace(kept, membership=base.membership * max(1.0, found))


def rough_bounds(study: Study, base: Precisions, *, n_groups: float) -> Precisions:
    """Return about what `keep_bounds` does, as if all losses were Gaussian; for forecasts only.

    Replacing a user's values moves a local release by twice its bound and two cells of each group
    by one: mu^2 is 4 (S - 1) local^2 + 2 groups server^2 towards a party.
    """
    budget, others, towards_party = study.budget, len(study.parties) - 1, party_bound(study)
    local = server = 1.0
    if towards_party is not None:
        spent = 4 * others * _own(base) + 2 * n_groups * base.membership**2
        spent *= study.n_runs
        server = local = min(1.0, _precision(towards_party, budget.delta) / spent**0.5)
    if budget.coalition_epsilon is not None:
        labels = others * study.n_runs * (study.decoy.collusion_epsilon or 0.0)
        left = max(budget.coalition_epsilon - labels, 1e-3)
        own = others * study.n_runs * _own(base)
        limit = _precision(left, budget.delta) / (2 * math.sqrt(own))
        local = min(local, limit)
    if local == 1.0:
        return base
    kept = _scaled(base, local, server)
    freed = len(study.parties) * (_own(base) - _own(kept)) / n_groups
    most = max(base.membership, _MOST_OVER_SERVER * base.membership * server)
    return replace(kept, membership=min(math.sqrt(base.membership**2 + freed), most))


def _scaled(base: Precisions, local: float, server: float) -> Precisions:
    """Scale what a party releases about its own rows, and the server's noise."""
    return replace(
        base,
        size=base.size * local,
        bounds=tuple(own * local for own in base.bounds),
        categories=tuple(own * local for own in base.categories),
        local=base.local * local,
        detail=base.detail * local,
        server=base.membership * server,
    )


def _factor(views_at: Callable[[float], Views], limit: Budget, name: str) -> float:
    """Return the largest factor up to 1 at which all views fit."""
    check_range(limit, name=name)
    if fit(views_at(1.0), limit):
        return 1.0
    return min(1.0, calibrate_views(views_at, limit))


def _check_reachable(study: Study, plan: "Plan") -> None:
    """Refuse a bound that the randomised labels alone exceed: local noise cannot mend that."""
    bound, delta = study.budget.coalition_epsilon, study.budget.delta
    least = max(epsilon_for(events, delta) for events in label_events(plan))
    if bound is not None and bound < 1.02 * least + 0.01:
        raise PrivacyError(
            f"coalition_epsilon={bound:g} cannot be kept: the randomised labels of the other "
            f"parties alone cost {least:.4g} (decoy.collusion_epsilon="
            f"{study.decoy.collusion_epsilon:g}); lower collusion_epsilon, or take a "
            f"coalition_epsilon of {1.02 * least + 0.01:.3g} or more"
        )


def _own(precisions: Precisions) -> float:
    """Return mu^2 of what a party releases about its own rows, but for stages."""
    return precisions.local**2 + precisions.detail**2


def _precision(epsilon: float, delta: float) -> float:
    return 1 / gaussian_multiplier(epsilon, delta)
