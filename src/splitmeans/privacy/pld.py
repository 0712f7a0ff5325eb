"""Exact accounting: the privacy-loss distribution of every event, composed.

Each event has a pair of laws that dominates what one user can change (docs, "What is proved");
this module turns the pair into a distribution of the privacy loss, composes all of them in both
directions and reads (epsilon, delta) off the result. Discretisation always rounds towards more
loss, so a figure from here is an upper bound for exact arithmetic; `NUMERICAL_MARGIN` covers
floating point. Composition is Google's dp-accounting; a second, independent calculation in the
tests checks it.
"""

import functools
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.errors import PrivacyError
from splitmeans.privacy.events import (
    CellSketchEvent,
    ComposedEvent,
    CountGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    PureEvent,
    RandomisedResponseEvent,
    ShiftEvent,
)
from splitmeans.privacy.register_law import register_pmfs, table_slack
from splitmeans.privacy.rows import compose_rows, connect_dots, curve, hockey_stick

# Width of a step in privacy loss: COARSE for searching, FINE for every figure that is reported.
COARSE = 2e-3
FINE = 1e-4

# A sketch row's grid: this many steps to its typical loss, at most so many to its largest.
_ROW_STEPS = 16
_LARGEST_STEPS = 256

# Added to every delta: rounding in sums of up to 10^5 terms stays far below it.
NUMERICAL_MARGIN = 1e-12

# Tags and registers come from a pseudo-random function with 128-bit keys and outputs: fewer than
# 2^39 records repeat a tag with a probability below this.
_TAG_SLACK = 2.0**-50

# Up to so many equal events are composed in a row, which is faster than the library's way for many.
_ONE_BY_ONE = 8


def delta_for(events: Iterable[Event], epsilon: float, *, interval: float = FINE) -> float:
    """Return the delta of all events together at this epsilon; 1 if nothing bounds it."""
    parts = tuple(flatten(events))
    if any(isinstance(part, NonPrivateEvent) for part in parts):
        return 1.0
    if not parts:
        return 0.0
    delta = float(_composed(_grouped(parts), interval).get_delta_for_epsilon(epsilon))
    slack = _slack(parts)
    return min(1.0, delta + (1 + math.exp(epsilon)) * slack + NUMERICAL_MARGIN)


def epsilon_for(events: Iterable[Event], delta: float, *, interval: float = FINE) -> float:
    """Return the epsilon of all events together at this delta; infinite if nothing bounds it."""
    parts = tuple(flatten(events))
    if any(isinstance(part, NonPrivateEvent) for part in parts):
        return math.inf
    if not parts:
        return 0.0
    return _epsilon(_grouped(parts), _slack(parts), delta, interval)


def flatten(events: Iterable[Event]) -> Iterable[Event]:
    """Yield the simple events of nested compositions."""
    for event in events:
        if isinstance(event, ComposedEvent):
            yield from flatten(event.parts)
        else:
            yield event


@functools.lru_cache(maxsize=512)
def _epsilon(
    groups: tuple[tuple[Event, int], ...], slack: float, delta: float, interval: float
) -> float:
    composed = _composed(groups, interval)
    # The slack grows with epsilon, so epsilon is raised until both fit into delta.
    epsilon = 0.0
    for _ in range(50):
        left = delta - NUMERICAL_MARGIN - (1 + math.exp(epsilon)) * slack
        if left <= 0:
            return math.inf
        enough = float(composed.get_epsilon_for_delta(left))
        if enough <= epsilon:
            return epsilon
        epsilon = enough + 1e-9
    return math.inf


def _grouped(parts: tuple[Event, ...]) -> tuple[tuple[Event, int], ...]:
    """Count equal events, and merge all Gaussian ones: they compose to one Gaussian exactly."""
    gaussians = [part for part in parts if isinstance(part, GaussianEvent)]
    others = Counter(part for part in parts if not isinstance(part, GaussianEvent))
    groups: list[tuple[Event, int]] = list(others.items())
    if gaussians:
        precision = math.fsum(part.noise_multiplier**-2 for part in gaussians)
        groups.append((GaussianEvent(noise_multiplier=1 / math.sqrt(precision)), 1))
    return tuple(groups)


def _slack(parts: tuple[Event, ...]) -> float:
    """Total variation between the noise that is drawn and the noise that is accounted for.

    If the law with the user and the law without it each change by at most `slack`, delta grows by
    at most (1 + e^epsilon) slack; the differences of composed releases add up.
    """
    slack = 0.0
    for part in parts:
        match part:
            case GaussianEvent(slack=own):
                slack += own
            case CellSketchEvent():
                slack += table_slack(part) + _TAG_SLACK
            case ShiftEvent():
                slack += _TAG_SLACK
    return slack


@functools.lru_cache(maxsize=512)
def _composed(groups: tuple[tuple[Event, int], ...], interval: float) -> Any:
    composed = None
    for event, count in groups:
        if isinstance(event, CellSketchEvent):
            many = _sketch_rows(event, event.repetitions * count, interval)
        else:
            one = _distribution(event, interval)
            many = one
            if count <= _ONE_BY_ONE:
                for _ in range(count - 1):
                    many = many.compose(one)
            else:
                many = one.self_compose(count)
        composed = many if composed is None else composed.compose(many)
    return composed


@functools.lru_cache(maxsize=512)
def _distribution(event: Event, interval: float) -> Any:
    """Return the privacy-loss distribution of one simple event, in both directions."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as library

    match event:
        case GaussianEvent(noise_multiplier=multiplier):
            return library.from_gaussian_mechanism(
                multiplier, value_discretization_interval=interval, use_connect_dots=True
            )
        case CountGaussianEvent(scale=scale):
            return library.from_discrete_gaussian_mechanism(
                scale, value_discretization_interval=interval, use_connect_dots=True
            )
        case LaplaceEvent(noise_multiplier=multiplier, single_count=True):
            return library.from_discrete_laplace_mechanism(
                1 / multiplier, value_discretization_interval=interval, use_connect_dots=True
            )
        case LaplaceEvent(noise_multiplier=multiplier):
            pure = common.DifferentialPrivacyParameters(1 / multiplier, 0.0)
            return library.from_privacy_parameters(pure, value_discretization_interval=interval)
        case PureEvent(epsilon=epsilon) | RandomisedResponseEvent(epsilon=epsilon):
            pure = common.DifferentialPrivacyParameters(epsilon, 0.0)
            return library.from_privacy_parameters(pure, value_discretization_interval=interval)
        case ShiftEvent(weights=weights):
            law = np.array(weights, dtype=np.float64) / sum(weights)
            return _from_laws(np.append(law, 0.0), np.append(0.0, law), interval)
    raise PrivacyError(
        f"{type(event).__name__} has no proved privacy loss, so exact accounting refuses it"
    )


@functools.lru_cache(maxsize=512)
def _sketch_rows(event: CellSketchEvent, rows: int, interval: float) -> Any:
    """Return the loss distribution of all rows of a sketch.

    A single row's loss is far below any interval that suits the rest of a run, so rows are composed
    on a grid of their own, a small part of a row's typical loss, and the result is put on the run's
    grid by its curve, as a single law would be.
    """
    from dp_accounting.pld import privacy_loss_distribution as library

    _, without, with_user = register_pmfs(event)
    laws = ((with_user, without), (without, with_user))
    return library.PrivacyLossDistribution(
        *(_rows_one_direction(upper, lower, rows, interval) for upper, lower in laws)
    )


def _rows_one_direction(upper: FloatArray, lower: FloatArray, rows: int, interval: float) -> Any:
    loss = np.log(upper) - np.log(lower)
    typical = math.sqrt(float(upper @ loss**2))
    # Where large losses are rare, the largest one decides: a finer grid would only grow.
    own = min(interval, max(typical / _ROW_STEPS, float(np.abs(loss).max()) / _LARGEST_STEPS))
    start, steps = _steps(loss, own)
    row = connect_dots(start, hockey_stick(upper, lower, steps * own), width=own)
    composed = compose_rows(row, rows)
    start, steps = _steps(composed.losses, interval)
    return _library_pmf(start, curve(composed, steps * interval), interval)


def _from_laws(one: FloatArray, other: FloatArray, interval: float) -> Any:
    """Return the loss distribution of a pair of laws on the same finite set, both directions."""
    from dp_accounting.pld import privacy_loss_distribution as library

    return library.PrivacyLossDistribution(
        _one_direction(other, one, interval), _one_direction(one, other, interval)
    )


def _one_direction(upper: FloatArray, lower: FloatArray, interval: float) -> Any:
    """Discretise the loss log(upper / lower) under `upper`, pessimistically and tightly."""
    both = (upper > 0) & (lower > 0)
    start, steps = _steps(np.log(upper[both]) - np.log(lower[both]), interval)
    return _library_pmf(start, hockey_stick(upper, lower, steps * interval), interval)


def _steps(losses: FloatArray, interval: float) -> tuple[int, FloatArray]:
    """Return the grid steps that enclose all losses."""
    low, high = math.floor(losses.min() / interval), math.ceil(losses.max() / interval)
    return low, np.arange(low, high + 1)


def _library_pmf(start: int, deltas: FloatArray, interval: float) -> Any:
    from dp_accounting.pld import pld_pmf

    steps = start + np.arange(len(deltas))
    return pld_pmf.create_pmf_pessimistic_connect_dots(interval, steps, deltas)
