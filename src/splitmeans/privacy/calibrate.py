"""Calibration: one number scales all noise so that the whole run just fits its budget."""

from collections.abc import Callable
from typing import TypeAlias

from splitmeans.errors import ParameterError, PrivacyError, UnaccountableBudget
from splitmeans.privacy.events import Event
from splitmeans.privacy.pld import COARSE, FINE, delta_for, flatten, gap_of
from splitmeans.study import Budget

# Below this delta the rounding of floating point would no longer be negligible. Above the other one
# nothing is protected, and the calculation takes ever longer as delta comes close to 1.
MIN_DELTA, MAX_DELTA = 1e-10, 0.5

# Below, decoys and phantoms outgrow any message; above, nobody's privacy would be protected.
MIN_EPSILON, MAX_EPSILON = 0.01, 12.0

# The events that each of several onlookers sees.
Views: TypeAlias = tuple[tuple[Event, ...], ...]

_SEARCH_STEPS = 14
# How far the search steps back, relative, when the fine calculation finds the coarse one too bold.
_BACK_OFF = 0.002


def calibrate(events_at: Callable[[float], tuple[Event, ...]], budget: Budget) -> float:
    """Return the largest precision at which all events together fit the budget.

    `events_at(precision)` gives the events of a whole run; more precision means less noise. All
    parameters follow from the one number returned here, which is found before anything is released
    (composition of privacy losses is not a filter that could be consulted on the way).

    The search uses a coarse discretisation. Its result is checked with the fine one on the final
    parameters, which are often whole numbers, and moved towards privacy until it fits.
    """
    return calibrate_views(lambda at: (events_at(at),), budget)


def fit(views: Views, budget: Budget) -> bool:
    """Return whether the events of every view fit the budget, by the fine calculation."""
    interval = FINE * max(1.0, budget.epsilon)
    return _fit(views, budget, interval)


def check_range(budget: Budget, *, name: str = "epsilon") -> None:
    """Refuse what exact accounting cannot do; `name` is what the error calls epsilon."""
    if not MIN_EPSILON <= budget.epsilon <= MAX_EPSILON:
        raise UnaccountableBudget(
            f"{name} must be between {MIN_EPSILON:g} and {MAX_EPSILON:g} for exact accounting, "
            f"got {budget.epsilon:g}"
        )
    if not MIN_DELTA <= budget.delta <= MAX_DELTA:
        limit = f">= {MIN_DELTA:g}" if budget.delta < MIN_DELTA else f"<= {MAX_DELTA:g}"
        raise UnaccountableBudget(
            f"delta must be {limit} for exact accounting, got {budget.delta:g}"
        )


def calibrate_views(views_at: Callable[[float], Views], budget: Budget) -> float:
    """Like `calibrate`, where several onlookers each see events of their own; all must fit."""
    check_range(budget)
    # A large epsilon does not need the same steps to be met as closely; a small one needs finer
    # ones to be found at all.
    unit = max(1.0, budget.epsilon)
    coarse, fine = min(COARSE * unit, budget.epsilon / 50), FINE * unit

    def fits(precision: float, interval: float) -> bool:
        return _fit(views_at(precision), budget, interval)

    low, high = 1.0, 1.0
    if not fits(low, coarse):
        low = _fitting(lambda at: fits(at, coarse), views_at, budget)
        high = 2 * low
    if high == low:
        while fits(high * 2, coarse) and high < 2**20:
            high *= 2
        low, high = high, high * 2
    for _ in range(_SEARCH_STEPS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if fits(middle, coarse) else (low, middle)
    # The coarse calculation is the more pessimistic one, so a little precision is left to win.
    precision = low
    for _ in range(60):
        if not fits(precision * (1 + _BACK_OFF), fine):
            break
        precision *= 1 + _BACK_OFF
    for _ in range(40):
        if fits(precision, fine):
            return precision
        precision *= 1 - _BACK_OFF
    raise PrivacyError(
        f"calibration to epsilon={budget.epsilon:g}, delta={budget.delta:g} did not settle"
    )


def _fit(views: Views, budget: Budget, interval: float) -> bool:
    # Parties alike see the same events.
    deltas = (delta_for(view, budget.epsilon, interval=interval) for view in set(views))
    return all(delta <= budget.delta for delta in deltas)


def _fitting(
    fits: Callable[[float], bool], views_at: Callable[[float], Views], budget: Budget
) -> float:
    """Return a precision below 1 that fits, its double does not."""
    reason: object = "more noise does not help"
    try:
        for halvings in range(1, 41):
            if fits(0.5**halvings):
                return 0.5**halvings
    except (ParameterError, PrivacyError) as problem:
        reason = problem  # so much noise cannot be drawn or sent
    # Tables of whole numbers have a delta that more noise does not lower.
    rounding = max(gap_of(flatten(view)).delta(budget.epsilon) for view in views_at(1.0))
    raise PrivacyError(
        f"no amount of noise fits epsilon={budget.epsilon:g}, delta={budget.delta:g}, of which the "
        f"rounding of tables alone takes {rounding:.2g}; raise delta or change epsilon: {reason}"
    )
