"""Some pseudo-users of a run are those of the result before; its counts stay what they are."""

import dataclasses

import numpy as np
import pytest

from splitmeans import VerticalKMeans
from splitmeans.kernels.assign import nearest
from splitmeans.plan.grid_limits import N_POINTS
from splitmeans.study.features import GRID_UNITS
from splitmeans.synopsis.decode import PseudoUsers, carried_over, place_users
from splitmeans.synopsis.decode.carried_over import MOST_OLD, place_with_earlier
from splitmeans.synopsis.earlier_users import EarlierUsers, earlier_users

# Two parties with one column and two clusters each, 100 and -100.
CENTRES = (np.array([[-100], [100]]), np.array([[-100], [100]]))
CELLS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
NOISE = (0.01, 0.01)


def points(*, moved: int = 0) -> list[np.ndarray]:
    """A thousand points of each party, half of them around each centre, all even numbers."""
    spread = np.resize(np.arange(-10, 11, 2), 500)
    own = np.concatenate([spread - 100 + moved, spread + 100 + moved])[:, np.newaxis]
    return [own, own]


def old_users(*, places: tuple[int, int] = (-100, -100), n: int = 200) -> EarlierUsers:
    """All around one place, at odd numbers."""
    rng = np.random.default_rng(0)
    around = rng.permutation(np.resize(np.arange(-9, 10, 2), n))
    return EarlierUsers(
        places=tuple((place + around)[:, np.newaxis] for place in places), weights=np.ones(n)
    )


def new_users(weights: np.ndarray, n_users: int, *, moved: int = 0) -> PseudoUsers:
    rng = np.random.default_rng(1)
    return place_users(CELLS, weights, CENTRES, points(moved=moved), rng=rng, n_users=n_users)


def placed(weights: np.ndarray, earlier: EarlierUsers, *, moved: int = 0) -> PseudoUsers:
    return place_with_earlier(
        CELLS,
        weights,
        CENTRES,
        points(moved=moved),
        earlier=earlier,
        deviations=NOISE,
        rng=np.random.default_rng(1),
        place=lambda left, n_users: new_users(left, n_users, moved=moved),
    )


def cell_sums(users: PseudoUsers) -> list[float]:
    return [float(users.weights[(users.labels == cell).all(axis=1)].sum()) for cell in CELLS]


def test_cells_keep_users_and_take_a_share_of_old_ones() -> None:
    """All 400 old users (scaled) were in the first cell: it takes its share, others take none."""
    weights = np.array([300.0, 0.0, 20.0, 80.0])
    users = placed(weights, old_users())
    np.testing.assert_allclose(cell_sums(users), weights)
    for own, labels, centres in zip(users.places, users.labels.T, CENTRES, strict=True):
        assert (nearest(own, centres) == labels).all()
    old = users.places[0][:, 0] % 2 == 1
    assert (users.labels[old] == 0).all()
    assert users.weights[old].sum() == pytest.approx(MOST_OLD * 300)


def test_old_users_of_other_cells_stay_away() -> None:
    """Nobody is counted where all old users were: none of them is taken."""
    weights = np.array([0.0, 200.0, 200.0, 0.0])
    found, new = placed(weights, old_users()), new_users(weights, N_POINTS)
    np.testing.assert_array_equal(found.nodes, new.nodes)
    np.testing.assert_array_equal(found.weights, new.weights)


@pytest.mark.parametrize(("moved", "some"), [(0, True), (40, False)])
def test_a_cluster_that_has_moved_leaves_old_places_behind(moved: int, some: bool) -> None:
    weights = np.array([400.0, 0.0, 0.0, 0.0])
    earlier = old_users()
    new = points(moved=moved)[0]
    trust = carried_over._trust(
        new,
        CENTRES[0],
        earlier.places[0],
        np.zeros(200, dtype=np.int64),
        earlier.weights,
        total=4e9,
        deviation=NOISE[0],
    )
    # 40 apart, mean square 40: (3 * 40 * (2 * 0.01^2 + 1/500 + 1/200) + 1) / 1600 = 0.00117.
    assert trust[0] == pytest.approx(1.0 if some else 0.00117, rel=0.03)
    assert trust[1] == 0.0  # nobody was there
    np.testing.assert_allclose(cell_sums(placed(weights, earlier, moved=moved)), weights)


def test_as_many_cells_as_users_leave_no_room(monkeypatch) -> None:
    monkeypatch.setattr(carried_over, "N_POINTS", 4)
    users = placed(np.full(4, 100.0), old_users())
    assert len(users.weights) == 4
    np.testing.assert_allclose(cell_sums(users), 100.0)


def test_nobody_counted_is_nobody() -> None:
    assert placed(np.zeros(4), old_users()).weights.sum() == 0


def test_label_vectors_are_numbered_alike_beyond_64_bits() -> None:
    rng = np.random.default_rng(3)
    first = rng.integers(0, 64, (50, 16))
    second = np.concatenate([first[::2], rng.integers(0, 64, (50, 16))])
    own, other = carried_over._numbered(first, second)
    assert own[::2].tolist() == other[:25].tolist()
    assert len(set(own)) == 50
    assert set(own).isdisjoint(other[25:].tolist())


def tables(seed: int, n: int = 800) -> dict[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    kind = rng.integers(2, size=n)
    ids = np.arange(n)
    return {
        "bank": {"id": ids, "income": kind + rng.normal(0, 0.1, n)},
        "shop": {"id": ids, "colour": np.where(kind == 1, "red", "blue")},
    }


def test_a_mixed_study_is_carried_over() -> None:
    """Places of categories are whole levels again, and the total is that of the new run."""
    pd = pytest.importorskip("pandas")
    facts = {
        "epsilon": 8.0,
        "bounds": {"income": (-1, 2)},
        "categories": {"colour": ["red", "blue"]},
        "runs": 2,
        "random_state": 0,
    }
    frames = [{name: pd.DataFrame(own) for name, own in tables(s).items()} for s in (1, 2)]
    first = VerticalKMeans(2, **facts).fit(frames[0], ids="id")
    second = VerticalKMeans(2, **facts).fit(frames[1], ids="id", previous=first)
    parties = second.study_.parties
    users = earlier_users(first.synopsis_, parties)
    assert users is not None
    assert len(np.unique(users.places[1])) == 2
    assert users.weights.sum() == pytest.approx(first.synopsis_.total)
    assert second.synopsis_.total == pytest.approx(800, rel=0.2)
    # Some places are those of the first result, which has other noise.
    old = {tuple(row) for row in np.round(first.synopsis_.scaled_nodes, 9)}
    kept = [tuple(row) in old for row in np.round(second.synopsis_.scaled_nodes, 9)]
    assert 0.1 < np.mean(kept) <= MOST_OLD + 0.05


@pytest.mark.parametrize("bounds", [(0, 1), (-8e307, 9e307), (5, 6), (-1e-300, 1e-300)])
def test_places_of_other_bounds_are_brought_to_those_of_the_run(bounds) -> None:
    """Bounds that are learned differ from run to run, and columns may lack values."""
    rows = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    model = VerticalKMeans(2, epsilon=8, bounds=(-1, 1), runs=2, random_state=0)
    fitted = model.fit([rows[:, :2], rows[:, 2:]])
    first, *others = fitted.study_.parties
    low, high = bounds
    changed = [
        dataclasses.replace(first.columns[0], low=low, high=high, missing="skip"),
        first.columns[1],
    ]
    parties = (dataclasses.replace(first, columns=tuple(changed)), *others)
    with np.errstate(all="raise"):
        users = earlier_users(fitted.synopsis_, parties)
    assert users is not None
    own = fitted.synopsis_.nodes[:, 0]
    most = np.abs(users.places[0]).max()
    inside = (np.clip(own, low, high) - low) / (high - low) * 2 - 1
    assert users.places[0][:, 0] == pytest.approx(inside * GRID_UNITS, abs=2)
    assert most <= GRID_UNITS
