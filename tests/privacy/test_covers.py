"""Which events an accounted one covers: itself, and a Gaussian one with no less noise."""

import dataclasses
import itertools
from typing import get_args

import pytest

from splitmeans.plan import settle
from splitmeans.privacy.events import (
    CellSketchEvent,
    ComposedEvent,
    CountGaussianEvent,
    Event,
    GaussianEvent,
    RandomisedResponseEvent,
    RareEvent,
    ShiftEvent,
    covers,
    covers_all,
)
from tests.statistical.noisy_studies import plan_of

GAUSSIAN = GaussianEvent(noise_multiplier=2.0, slack=1e-3)
# Of each kind two, of which neither covers the other.
DIFFERENT: list[tuple[Event, Event]] = [
    (RandomisedResponseEvent(epsilon=1.0), RandomisedResponseEvent(epsilon=2.0)),
    (ShiftEvent(weights=(1, 2, 1)), ShiftEvent(weights=(1, 1, 1))),
    (CountGaussianEvent(scale=2.0), CountGaussianEvent(scale=1.0)),
    (RareEvent(probability=0.1), RareEvent(probability=0.2)),
    (
        CellSketchEvent(repetitions=2, gamma=1.0, phantoms=3, floor=1),
        CellSketchEvent(repetitions=2, gamma=1.0, phantoms=2, floor=1),
    ),
    (ComposedEvent(parts=(GAUSSIAN,)), ComposedEvent(parts=(GAUSSIAN, GAUSSIAN))),
    (ComposedEvent(parts=()), ComposedEvent(parts=(GAUSSIAN,))),
    (
        GaussianEvent(noise_multiplier=2.0, slack=1e-4),
        GaussianEvent(noise_multiplier=3.0, slack=1e-3),
    ),
]
# Events that cost more than GAUSSIAN, each by one of its numbers.
DEARER = [
    dataclasses.replace(GAUSSIAN, noise_multiplier=2.0 * (1 - 1e-12)),
    dataclasses.replace(GAUSSIAN, slack=1e-3 * (1 + 1e-12)),
    dataclasses.replace(GAUSSIAN, noise_multiplier=3.0, slack=2e-3),
    dataclasses.replace(GAUSSIAN, noise_multiplier=1.0, slack=0.0),
]


def test_every_kind_of_event_is_here() -> None:
    kinds = {type(event) for pair in DIFFERENT for event in pair}
    assert kinds == set(get_args(Event))


@pytest.mark.parametrize("pair", DIFFERENT, ids=lambda pair: type(pair[0]).__name__)
def test_an_event_covers_itself_and_no_other(pair: tuple[Event, Event]) -> None:
    for accounted, made in itertools.product(pair, repeat=2):
        assert covers(accounted, made) == (accounted is made)


def test_no_event_covers_another_kind() -> None:
    for (one, _), (other, _) in itertools.permutations(DIFFERENT, 2):
        assert covers(one, other) == (type(one) is type(other) and one == other)


def test_a_gaussian_event_covers_more_noise_and_nothing_that_costs_more() -> None:
    cheaper = dataclasses.replace(GAUSSIAN, noise_multiplier=2.5, slack=1e-4)
    assert covers(GAUSSIAN, cheaper)
    assert covers(GAUSSIAN, dataclasses.replace(GAUSSIAN))
    for made in DEARER:
        assert not covers(GAUSSIAN, made)
        assert covers(made, GAUSSIAN) == (made.slack >= GAUSSIAN.slack and made not in DEARER[2:3])


@pytest.mark.parametrize("made", DEARER, ids=range(len(DEARER)))
def test_one_part_that_costs_more_is_enough(made: GaussianEvent) -> None:
    for place in range(3):
        parts: list[Event] = [GAUSSIAN] * 3
        parts[place] = made
        assert not covers(ComposedEvent(parts=(GAUSSIAN,) * 3), ComposedEvent(parts=tuple(parts)))
        assert not covers_all((GAUSSIAN,) * 3, tuple(parts))
    assert covers_all((GAUSSIAN,) * 3, (GAUSSIAN,) * 3)


@pytest.mark.parametrize("lengths", [(2, 3), (3, 2), (0, 1), (1, 0)])
def test_events_are_as_many(lengths: tuple[int, int]) -> None:
    before, after = lengths
    assert not covers_all((GAUSSIAN,) * before, (GAUSSIAN,) * after)


@pytest.mark.parametrize("name", ["detail and tables of columns", "presence and pairs"])
@pytest.mark.parametrize("part", ["membership", "presence", "columns", "detail", "local"])
def test_a_later_plan_with_less_noise_in_any_part_is_not_covered(name: str, part: str) -> None:
    first = plan_of(name)
    law = getattr(first, part)
    if not law:
        pytest.skip("the study has no such part")
    laws = (law[0], *law[1:]) if isinstance(law, tuple) else (law,)
    less = _less_noise(laws[0])
    later = dataclasses.replace(first, **{part: (less, *laws[1:]) if len(laws) > 1 else less})
    assert settle._is_covered(first, dataclasses.replace(first))
    assert not settle._is_covered(first, later)


def _less_noise(law: object) -> object:
    """The law with a little less noise, of whatever kind."""
    for name, factor in (("law", None), ("server_sigma", 0.99), ("mu", 1.01)):
        if hasattr(law, name):
            own = getattr(law, name)
            return dataclasses.replace(
                law, **{name: _less_noise(own) if factor is None else own * factor}
            )
    raise AssertionError(f"{law} has no noise")
