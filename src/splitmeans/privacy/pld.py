"""Exact accounting: the privacy-loss distribution of every event, composed.

Each event has a pair of laws that dominates what one user can change (docs, "What is proved");
this module turns the pair into a distribution of the privacy loss, composes all of them in both
directions and reads (epsilon, delta) off the result. Discretisation always rounds towards more
loss, so a figure from here is an upper bound for exact arithmetic; `NUMERICAL_MARGIN` covers
floating point. Losses on a grid and their composition are in `privacy.losses`; tests check figures
against Google's dp-accounting and against a direct convolution.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.errors import PrivacyError
from splitmeans.privacy.events import (
    CellSketchEvent,
    ComposedEvent,
    CountGaussianEvent,
    Event,
    GaussianEvent,
    RandomisedResponseEvent,
    RareEvent,
    ShiftEvent,
)
from splitmeans.privacy.losses import (
    LossGrid,
    compose,
    compose_many,
    delta_at,
    epsilon_at,
    from_laws,
    from_normal,
    regrid,
)
from splitmeans.privacy.register_law import register_pmfs, table_slack

# When a user is added, and when a user is removed; the same object where both are the same.
Pair: TypeAlias = tuple[LossGrid, LossGrid]

# A law, and the one that its outcomes are compared with.
Laws: TypeAlias = tuple[FloatArray, FloatArray]

# Width of a step in privacy loss: COARSE for searching, FINE for every figure that is reported.
COARSE = 2e-3
FINE = 1e-4

# A sketch row's grid: this many steps to its typical loss, at most so many to its largest.
_ROW_STEPS = 16
_LARGEST_STEPS = 256

# Added to every delta: rounding in sums of up to 10^5 terms stays far below it.
NUMERICAL_MARGIN = 1e-12

# Registers come from a pseudo-random function with 128-bit keys and outputs: fewer than 2^39 users
# repeat an output with a probability below this.
_REPEATED_HASH = 2.0**-50

# More than this beside the loss that is composed bounds nothing.
_MOST_EXTRA_LOSS = 100.0

# Up to so many equal events are composed one by one, which is faster than the way for many.
_ONE_BY_ONE = 8


def delta_for(events: Iterable[Event], epsilon: float, *, interval: float = FINE) -> float:
    """Return the delta of all events together at this epsilon; 1 if nothing bounds it."""
    parts = tuple(flatten(events))
    if not parts:
        return 0.0
    gap = gap_of(parts)
    if gap.loss > _MOST_EXTRA_LOSS:
        return 1.0
    grids = _composed(grouped(parts), interval)
    delta = max(delta_at(grid, epsilon - gap.loss) for grid in grids)
    return min(1.0, math.exp(gap.loss) * delta + gap.delta(epsilon))


def epsilon_for(events: Iterable[Event], delta: float, *, interval: float = FINE) -> float:
    """Return the epsilon of all events together at this delta; infinite if nothing bounds it."""
    parts = tuple(flatten(events))
    if not parts:
        return 0.0
    return _epsilon(grouped(parts), gap_of(parts), delta, interval)


def flatten(events: Iterable[Event]) -> Iterable[Event]:
    """Yield the simple events of nested compositions."""
    for event in events:
        if isinstance(event, ComposedEvent):
            yield from flatten(event.parts)
        else:
            yield event


@functools.lru_cache(maxsize=512)
def _epsilon(
    groups: tuple[tuple[Event, int], ...], gap: "Gap", delta: float, interval: float
) -> float:
    if gap.loss > _MOST_EXTRA_LOSS:
        return math.inf
    composed = _composed(groups, interval)
    # The gap grows with epsilon, so epsilon is raised until both fit into delta.
    epsilon = 0.0
    for _ in range(50):
        left = delta - gap.delta(epsilon)
        if left <= 0:
            return math.inf
        left *= math.exp(-gap.loss)
        enough = gap.loss + max(epsilon_at(grid, left) for grid in composed)
        if enough <= epsilon:
            return epsilon
        epsilon = enough + 1e-9
    return math.inf


def grouped(parts: tuple[Event, ...]) -> tuple[tuple[Event, int], ...]:
    """Count equal events, and merge all Gaussian ones: they compose to one Gaussian exactly.

    Rare events have no loss that could be composed: all of them is in `gap_of`.
    """
    parts = tuple(part for part in parts if not isinstance(part, RareEvent))
    gaussians = [part for part in parts if isinstance(part, GaussianEvent)]
    others = Counter(part for part in parts if not isinstance(part, GaussianEvent))
    groups: list[tuple[Event, int]] = list(others.items())
    if gaussians:
        precision = math.fsum(part.noise_multiplier**-2 for part in gaussians)
        groups.append((GaussianEvent(noise_multiplier=1 / math.sqrt(precision)), 1))
    return tuple(groups)


class Gap(NamedTuple):
    """How far the releases as they are drawn may be from those whose losses are composed.

    Attributes:
        loss: What is added to the privacy loss of every outcome (and e^loss to delta).
        rare: Probability of outcomes that show a user; they are given up once.
        distance: Total variation between the laws that are drawn and those that are composed. Both
            laws of a pair may be that far off, so delta grows by (1 + e^epsilon) times it.
    """

    loss: float
    rare: float
    distance: float

    def delta(self, epsilon: float) -> float:
        """What is added to delta at this epsilon; without end where e^epsilon is no float."""
        grown = 0.0
        if self.distance > 0:
            grown = (1 + math.exp(epsilon)) * self.distance if epsilon < 700 else math.inf
        return self.rare + grown + NUMERICAL_MARGIN


def gap_of(parts: Iterable[Event]) -> Gap:
    """Return the gap of simple events; those of composed releases add up."""
    loss = rare = distance = 0.0
    for part in parts:
        match part:
            case GaussianEvent(slack=own):
                loss += own
            case CellSketchEvent():
                distance += table_slack(part) + _REPEATED_HASH
            case RareEvent(probability=own):
                # What is released without these outcomes is a part of at least 1 - p of it.
                rare += own
                loss -= math.log1p(-own)
            case (
                # Repeated tags cost nothing: what is sent, or that nothing is sent, is the same in
                # whichever order users and decoys with these tags and cells come (docs, "The decoy
                # join"; `messages_follow_from_counts` in proofs/theory/Theorems.v).
                ShiftEvent() | CountGaussianEvent() | RandomisedResponseEvent() | ComposedEvent()
            ):
                pass  # what is drawn is what is composed
            case _:
                raise _without_loss(part)
    return Gap(loss=loss, rare=rare, distance=distance)


@functools.lru_cache(maxsize=512)
def _composed(groups: tuple[tuple[Event, int], ...], interval: float) -> Pair:
    parts = [_many(event, count, interval) for event, count in groups]
    return _both(functools.partial(functools.reduce, compose), parts)


@functools.lru_cache(maxsize=512)
def _many(event: Event, count: int, interval: float) -> Pair:
    """Return the losses of some equal events, in both directions."""
    if isinstance(event, CellSketchEvent):
        return _sketch_rows(event, event.repetitions * count, interval)
    one = _losses(event, interval)
    if count <= _ONE_BY_ONE:
        return _both(functools.partial(functools.reduce, compose), [one] * count)
    return _both(lambda copies: compose_many(copies[0], count), [one])


def _both(combine: Callable[[list[LossGrid]], LossGrid], parts: list[Pair]) -> Pair:
    """Combine the parts in each direction, once where the directions are the same."""
    added = combine([part[0] for part in parts])
    if all(part[0] is part[1] for part in parts):
        return added, added
    return added, combine([part[1] for part in parts])


@functools.lru_cache(maxsize=512)
def _losses(event: Event, interval: float) -> Pair:
    """Return the losses of one simple event, in both directions."""
    if isinstance(event, GaussianEvent):
        same = from_normal(1 / event.noise_multiplier, width=interval)
        return same, same
    added, removed = laws_of(event)
    if added is removed:
        same = from_laws(*added, width=interval)
        return same, same
    return from_laws(*added, width=interval), from_laws(*removed, width=interval)


def laws_of(event: Event) -> tuple[Laws, Laws]:
    """Return the two laws of an event on a finite set, when a user is added and when removed.

    A Gaussian event has none. That of a sketch is about one row.
    """
    match event:
        case CountGaussianEvent(scale=scale):
            return _shifted(_discrete_gaussian(scale))
        case RandomisedResponseEvent(epsilon=epsilon):
            return _pure(epsilon)
        case ShiftEvent(weights=weights):
            return _shifted(np.array(weights, dtype=np.float64) / sum(weights))
        case CellSketchEvent():
            _, without, with_user = register_pmfs(event)
            return (with_user, without), (without, with_user)
    raise _without_loss(event)


def _without_loss(event: Event) -> PrivacyError:
    return PrivacyError(
        f"{type(event).__name__} has no proved privacy loss, so exact accounting refuses it"
    )


def _pure(epsilon: float) -> tuple[Laws, Laws]:
    """The worst law of an epsilon: one of two outcomes, each e^epsilon more likely in one case."""
    likely = 1 / (1 + math.exp(-epsilon))
    law = np.array([likely, math.exp(-epsilon) * likely])
    same = law, law[::-1]
    return same, same


def _discrete_gaussian(scale: float) -> FloatArray:
    # Beyond this the weights are below 10^-31 of the largest.
    reach = math.ceil(12 * scale)
    weights = np.exp(-np.square(np.arange(-reach, reach + 1) / scale) / 2)
    return np.asarray(weights / weights.sum())


def _shifted(law: FloatArray) -> tuple[Laws, Laws]:
    """The law of a count's noise against itself moved by one."""
    here, moved = np.append(law, 0.0), np.append(0.0, law)
    return (moved, here), (here, moved)


def _sketch_rows(event: CellSketchEvent, rows: int, interval: float) -> Pair:
    """Return the losses of all rows of a sketch.

    A single row's loss is far below any interval that suits the rest of a run, so rows are composed
    on a grid of their own, a small part of a row's typical loss, and the result is put on the run's
    grid.
    """
    added, removed = (_rows_one_direction(*pair, rows, interval) for pair in laws_of(event))
    return added, removed


def _rows_one_direction(
    upper: FloatArray, lower: FloatArray, rows: int, interval: float
) -> LossGrid:
    loss = np.log(upper) - np.log(lower)
    typical = math.sqrt(float(upper @ (loss**2)))
    # Where large losses are rare, the largest one decides: a finer grid would only grow.
    own = min(interval, max(typical / _ROW_STEPS, float(np.abs(loss).max()) / _LARGEST_STEPS))
    return regrid(compose_many(from_laws(upper, lower, width=own), rows), width=interval)
