"""A run that follows an earlier result begins at its places, and costs the same."""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest

from splitmeans import VerticalKMeans
from splitmeans.errors import ParameterError
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.party.published_points import published_points
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study import Column
from splitmeans.synopsis.earlier_users import _levels, earlier_places

BOUNDS = (-1, 1)


def tables(seed: int, n: int = 600) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    centres = np.array([[-0.6, -0.6, 0.5], [0.6, 0.4, -0.5]])
    rows = centres[rng.integers(2, size=n)] + rng.normal(0, 0.1, (n, 3))
    return [np.clip(rows[:, :2], -1, 1), np.clip(rows[:, 2:], -1, 1)]


def model(**changes: object) -> VerticalKMeans:
    facts = {"epsilon": 4.0, "bounds": BOUNDS, "runs": 2, "random_state": 0} | changes
    return VerticalKMeans(2, **facts)


@pytest.fixture(scope="module")
def first() -> VerticalKMeans:
    return model().fit(tables(1))


def test_points_lie_where_the_published_users_do(first: VerticalKMeans) -> None:
    synopsis, rng = first.synopsis_, np.random.default_rng(0)
    for position, columns in ((0, slice(0, 2)), (1, slice(2, 3))):
        party = first.study_.parties[position]
        points = published_points(synopsis, party, position, rng=rng)
        assert points is not None
        own = synopsis.scaled_nodes[:, columns]
        mean = synopsis.weights @ own / synopsis.weights.sum()
        np.testing.assert_allclose(points.mean(axis=0) / 2**20, mean, atol=0.01)
        grid = np.rint(own * 2**20).astype(np.int64)
        assert {tuple(point) for point in points} <= {tuple(place) for place in grid}


def test_bounds_that_were_learned_anew_have_a_scale_of_their_own(first: VerticalKMeans) -> None:
    """The same numbers in own units, on a column that now goes from -1 to 3 and another to 0."""
    party, synopsis = first.study_.parties[0], first.synopsis_
    wider = dataclasses.replace(party.columns[0], high=3.0)
    cut = dataclasses.replace(party.columns[1], high=0.0)
    other = dataclasses.replace(party, columns=(wider, cut))
    places = earlier_places(synopsis, other, 0) / 2**20
    before = synopsis.scaled_nodes[:, :2]
    np.testing.assert_allclose(places[:, 0] * 2 + 1, before[:, 0], atol=1e-5)
    np.testing.assert_allclose((places[:, 1] - 1) / 2, np.minimum(before[:, 1], 0), atol=1e-5)


def test_categories_that_were_learned_anew_keep_their_names() -> None:
    """Levels are found by name; one that is gone is among the others."""
    old = Column(name="town", categories=("Ulm", "Bonn", "(other)"))
    new = Column(name="town", categories=("Bonn", "Kiel", "(other)"))
    shares = np.array([[1.0, 0.0, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 1.0]])
    assert _levels(shares, old, new).tolist() == [2, 0, 2]


def test_a_start_changes_no_noise() -> None:
    """The same noise is drawn, in the same order and as much of it, with and without a start."""

    class Counted(InsecureSeededNoise):
        drawn: ClassVar[list[int]] = []

        def gaussian(self, scale: float, size: int) -> np.ndarray:
            Counted.drawn.append(size)
            return super().gaussian(scale, size)

    rows = np.random.default_rng(2).integers(-(2**20), 2**20, (300, 2))
    law = GuidedLloyd(n_clusters=4, bounds=(2**20, 2**20), mu=1.0)
    sizes = []
    for start in (None, np.zeros((50, 2), dtype=np.int64)):
        Counted.drawn.clear()
        law.release(rows, noise=Counted(3), rng=np.random.default_rng(4), start=start)
        sizes.append(sum(Counted.drawn))
    assert sizes[0] == sizes[1] > 0


def test_the_second_run_follows_the_first(first: VerticalKMeans) -> None:
    second = model().fit(tables(2), previous=first)
    series = second.published_.privacy.series
    assert (series.number, series.previous) == (2, first.published_.facts["result_hash"])
    assert second.privacy_.epsilon == first.privacy_.epsilon
    assert second.result_.plan.events == first.result_.plan.events
    with pytest.raises(ParameterError, match=r"all 2 runs .* are done"):
        model().fit(tables(3), previous=second)
    with pytest.raises(ParameterError, match="is of another study"):
        model(epsilon=3.0).fit(tables(3), previous=first)
    with pytest.raises(ParameterError, match="must be a fitted VerticalKMeans"):
        model().fit(tables(3), previous="result")
    alone = VerticalKMeans(2, epsilon=4.0, bounds=BOUNDS, random_state=0).fit(tables(1))
    with pytest.raises(ParameterError, match=r"all 1 runs|another study|without .renewal."):
        VerticalKMeans(2, epsilon=4.0, bounds=BOUNDS).fit(tables(1), previous=alone)
