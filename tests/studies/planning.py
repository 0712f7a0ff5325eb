"""Plans without calibrating the same noise again.

Calibration takes most of a random study's time, and most studies of a long run share their budget,
methods and numbers of parties and clusters with an earlier one; names, columns and tables differ.
The events of two precisions stand for the whole family: they hold all parameters of all releases.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from splitmeans.plan import facts, settle
from splitmeans.privacy import pld
from splitmeans.privacy.calibrate import calibrate
from splitmeans.privacy.events import Event
from splitmeans.privacy.lower_bound import epsilon_at_least
from splitmeans.study import Budget

_PROBES = (1.0, 0.3)
_MOST = 20_000


@contextmanager
def remembered_calibrations() -> Iterator[None]:
    """Calibrate each family of events and budget once, as long as this lasts."""
    known: dict[tuple[object, ...], float] = {}

    def remembered(events_at: Callable[[float], tuple[Event, ...]], budget: Budget) -> float:
        key = (budget, *(repr(events_at(probe)) for probe in _PROBES))
        if key not in known and len(known) < _MOST:
            known[key] = calibrate(events_at, budget)
        return known[key] if key in known else calibrate(events_at, budget)

    epsilon = pld._epsilon
    settle.calibrate = remembered
    pld._epsilon = functools.lru_cache(maxsize=_MOST)(epsilon.__wrapped__)
    facts.epsilon_at_least = _remembered_bound()
    try:
        yield
    finally:
        settle.calibrate = calibrate
        pld._epsilon = epsilon
        facts.epsilon_at_least = epsilon_at_least


def _remembered_bound() -> Callable[..., float]:
    known: dict[tuple[object, ...], float] = {}

    def remembered(events: Iterable[Event], delta: float, *, interval: float) -> float:
        every = tuple(events)
        key = (repr(every), delta, interval)
        if key not in known and len(known) < _MOST:
            known[key] = epsilon_at_least(every, delta, interval=interval)
        return known[key] if key in known else epsilon_at_least(every, delta, interval=interval)

    return remembered
