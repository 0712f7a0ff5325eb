"""Categories that the run learns, measured where every level has a place."""

import numpy as np
import pandas as pd

from benchmarks import categories
from benchmarks.categories import (
    MADE_UP,
    MixedTable,
    centres_of,
    made_up,
    names_of,
    points_of,
    run_one,
)
from benchmarks.ways import Score, ratio_text


def test_other_is_spread_over_the_levels_that_were_not_learned():
    frame = pd.DataFrame({"x": [0.0, 10.0, 5.0, 5.0], "c": ["a", "b", "c", "a"]})
    table = MixedTable(frame=frame, bounds={"x": (0, 10)}, parties={"p": ("x", "c")})
    # Of three levels one was learned; the other two share what the centres hold of "(other)".
    found = {
        "p: x": np.array([0.0, 7.5]),
        "p: c=a": np.array([1.0, 0.4]),
        "p: c=(other)": np.array([0.0, 0.6]),
    }
    root = np.sqrt(2)
    np.testing.assert_allclose(
        centres_of(table, found), [[-1, root, 0, 0], [0.5, 0.4 * root, 0.3 * root, 0.3 * root]]
    )
    np.testing.assert_allclose(
        points_of(table), [[-1, root, 0, 0], [1, 0, root, 0], [0, 0, 0, root], [0, root, 0, 0]]
    )


def test_levels_differ_as_much_as_the_ends_of_a_number():
    table = made_up(0, users=200)
    points = points_of(table)
    levels = points[:, -len(table.categories["town"]) :]
    gaps = ((levels[:, None] - levels[None]) ** 2).sum(axis=2)
    assert set(gaps.round(9).ravel()) == {0.0, 4.0}


def test_a_run_with_a_list_knows_all_levels(monkeypatch):
    assert names_of(None) == (MADE_UP,)
    small = made_up(0, users=2_000)
    monkeypatch.setitem(categories._READERS, MADE_UP, lambda seed, data_dir: small)
    score = run_one(MADE_UP, 4.0, "listed", 0, None)
    assert score.other_share == 0.0
    assert score.known_levels == score.levels
    assert score.loss_ratio is not None
    assert score.loss_ratio < 1.1


def test_the_ratio_of_two_ways_is_of_their_means_or_says_that_one_was_refused():
    def score(way: str, ratio: float | None) -> Score:
        return Score(data="t", users=9, epsilon=1.0, way=way, seed=0, loss_ratio=ratio)

    scores = [score("a", 1.1), score("a", 1.3), score("b", 1.0), score("b", None), score("c", None)]
    assert ratio_text(scores, way="a", over="b") == "1.200"
    assert ratio_text(scores, way="c", over="b") == "refused"
