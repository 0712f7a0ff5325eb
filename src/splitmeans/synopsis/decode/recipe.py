"""From released counts and points to pseudo-users: the steps that all studies take, in order.

Everything here works on released values alone, so it is post-processing: it costs no privacy.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.assign import nearest
from splitmeans.membership.bundles import Bundles
from splitmeans.membership.estimator import WeightEstimator
from splitmeans.plan.grid_limits import N_POINTS
from splitmeans.synopsis.decode.carried_over import place_with_earlier
from splitmeans.synopsis.decode.classes import fit_classes
from splitmeans.synopsis.decode.cleaned import (
    agree,
    at_both,
    cut_noise,
    regions_of,
    with_one_total,
)
from splitmeans.synopsis.decode.counted import read_counts
from splitmeans.synopsis.decode.exchanging import exchange_places
from splitmeans.synopsis.decode.max_entropy import max_entropy_labels
from splitmeans.synopsis.decode.placing import PseudoUsers, place_users
from splitmeans.synopsis.decode.pooling import Pooling
from splitmeans.synopsis.decode.presence import tables_of_population
from splitmeans.synopsis.decode.vectors import draw_labels, merged
from splitmeans.synopsis.decode.weighing import rake, shrink
from splitmeans.synopsis.earlier_users import EarlierUsers

# Steps that a benchmark can leave out, to measure what each buys.
STEPS = ("agree", "shrink", "redraw", "rake", "exchange")
_LEFT_OUT: ContextVar[frozenset[str]] = ContextVar("steps left out", default=frozenset())

# Classes for each segment that is looked for.
_CLASSES = 2
# No cluster of a party is taken to have fewer of its users than this share.
_LEAST_SHARE = 1e-5

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, eq=False)
class Released:
    """What the parties released, as the server holds it after its own noise.

    Attributes:
        estimator: Users by label for each pair of parties.
        bundles: Which local clusters share a label.
        centres: Local centres of each party in grid integers, each of shape (k'_l, d_l).
        points: Synthetic points of each party in grid integers, each of shape (p, d_l).
        n_segments: How many segments the study looks for.
        everyone: Whether users at some parties only are asked for as well.
    """

    estimator: WeightEstimator
    bundles: Bundles
    centres: Sequence[IntArray]
    points: Sequence[IntArray]
    n_segments: int
    everyone: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Previous:
    """What a run of a series takes from the result before.

    Attributes:
        users: Its pseudo-users.
        deviations: For a number of users the noise of each party's local centres; see
            `place_with_earlier`.
    """

    users: EarlierUsers
    deviations: Callable[[float], Sequence[float]]


def decode(
    released: Released, *, rng: np.random.Generator, previous: Previous | None = None
) -> PseudoUsers:
    """Return pseudo-users of a run; with too few users at all parties one of weight zero."""
    labels, weights = cells_of(released, rng=rng)
    centres, points = released.centres, released.points

    def place(weights: FloatArray, n_users: int = N_POINTS) -> PseudoUsers:
        users = place_users(labels, weights, centres, points, rng=rng, n_users=n_users)
        return _step("exchange", exchange_places, users, n_segments=released.n_segments, rng=rng)

    if previous is None:
        return place(weights)
    return place_with_earlier(
        labels,
        weights,
        centres,
        points,
        earlier=previous.users,
        deviations=previous.deviations(float(weights.sum())),
        rng=rng,
        place=place,
    )


def cells_of(released: Released, *, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Return different label vectors, shape (cells, S), and how many users have each."""
    pooling = Pooling(bundles=released.bundles.in_use(released.centres))
    counts = read_counts(released.estimator)
    asked = counts.total if released.everyone else counts.everywhere
    if asked <= 0 or not (counts.enough or released.everyone):
        return _nobody(released)
    agreed = _step("agree", agree, counts.tables, same_labels=pooling.bundles.is_trivial)
    counted = at_both(agreed)
    regions = regions_of(released.centres, pooling)
    cleaned = cut_noise(counted, deviation=counts.deviation, regions=regions)
    if not all(table.sum() > 0 for table in cleaned.values()):
        return _nobody(released)
    model = fit_classes(
        with_one_total(cleaned),
        pooling,
        n_classes=_CLASSES * released.n_segments,
        rng=rng,
        known=_known_sizes(released, pooling),
    )
    predicted = {
        pair: table.sum() * pooling.table(model.cells, pair) for pair, table in cleaned.items()
    }
    tables = _step("shrink", shrink, cleaned, counted, predicted, deviation=counts.deviation)
    tables = tables_of_population(tables, model, counts, pooling, everyone=released.everyone)
    n_counted = float(np.mean([table.sum() for table in cleaned.values()]))
    labels = _step(
        "redraw",
        max_entropy_labels,
        draw_labels(model, N_POINTS, rng=rng),
        tables,
        pooling,
        sizes=model.sizes,
        deviation=(counts.deviation or 0.0) * asked / n_counted,
        rng=rng,
    )
    weights = np.full(N_POINTS, asked / N_POINTS)
    return merged(labels, _step("rake", rake, weights, labels, tables, pooling))


def _nobody(released: Released) -> tuple[IntArray, FloatArray]:
    return np.zeros((1, len(released.centres)), dtype=np.int64), np.zeros(1)


@contextmanager
def without(*steps: str) -> Iterator[None]:
    """Leave these steps out of every decoding within, for an ablation."""
    unknown = set(steps) - set(STEPS)
    if unknown:
        raise ParameterError(f"steps must be among {STEPS}, got {sorted(unknown)}")
    token = _LEFT_OUT.set(_LEFT_OUT.get() | set(steps))
    try:
        yield
    finally:
        _LEFT_OUT.reset(token)


def _step(name: str, function: Callable[..., T], value: T, *others: object, **options: object) -> T:
    """Return what a step makes of a value, or the value where the step is left out."""
    return value if name in _LEFT_OUT.get() else function(value, *others, **options)


def _known_sizes(released: Released, pooling: Pooling) -> FloatArray | None:
    """Return about which share of the users has each cluster, where tables tell only bundles."""
    if pooling.bundles.is_trivial:
        return None
    found = []
    for points, centres, clusters in zip(
        released.points, released.centres, pooling.shape, strict=True
    ):
        own = np.bincount(nearest(points, centres), minlength=len(centres))[:clusters]
        own = np.maximum(own / len(points), _LEAST_SHARE)
        found.append(own / own.sum())
    return np.concatenate(found)
