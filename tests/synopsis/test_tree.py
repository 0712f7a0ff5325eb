"""Trees of segments: joins and splits by hand, nested cuts, borders, text."""

import dataclasses

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.kmeans.distances import squared_distances
from splitmeans.synopsis.models.borders import segments_of
from splitmeans.synopsis.models.tree import grow_tree
from splitmeans.synopsis.own_columns import segment_shares
from tests.synopsis.model_scene import mixed_synopsis, numbers_synopsis

# Three groups; the first two are nearest, and the third has two halves.
LINE = np.array([[-0.9], [-0.6], [0.5], [0.7]])


@pytest.fixture
def tree():
    synopsis = numbers_synopsis(LINE, weights=[4, 2, 3, 1])
    centres = np.array([[-0.9], [-0.6], [0.55]])
    return grow_tree(synopsis, centres, "ACB", most=9, rng=np.random.default_rng(0))


def test_by_hand(tree):
    """A (4) and C (2) join: 4 * 2 / 6 * 0.3^2 is least. B splits, and nothing else can."""
    names = [branch.name for branch in tree.branches]
    assert names == ["all", "A+C", "B", "A", "C", "B1", "B2"]
    assert tree.sizes.tolist() == [10, 6, 4, 4, 2, 3, 1]
    assert tree.most == 4
    assert tree.given == 3
    assert [branch.since for branch in tree.branches] == [1, 2, 2, 3, 3, 4, 4]
    assert [branch.until for branch in tree.branches] == [2, 3, 4, None, None, None, None]
    assert tree.cut(2).names == ("A+C", "B")
    np.testing.assert_allclose(tree.cut(2).centres, [[-0.8], [0.55]])
    assert tree.cut(3).names == ("A", "B", "C")
    np.testing.assert_allclose(tree.cut(4).centres, [[-0.9], [0.5], [-0.6], [0.7]])
    assert tree.cut(4).loss == pytest.approx(0)
    joined = 4 * 2 / 6 * 0.3**2 + 3 * 0.05**2 + 0.15**2
    assert tree.cut(2).loss == pytest.approx(joined / 10)


def test_text(tree):
    lines = str(tree).splitlines()
    assert lines[0].split() == ["all", "10", "100%"]
    assert lines[1] == "├─ A+C     6   60%  p: x0 -0.8"
    assert lines[-1] == "   └─ B2   1   10%  p: x0 0.7"


def test_cuts_are_nested_and_lose_less_with_k():
    rng = np.random.default_rng(1)
    synopsis = mixed_synopsis(rng)
    tree = synopsis.tree(12, random_state=0)
    assert tree.given == 6
    before = None
    for k in range(1, tree.most + 1):
        cut = tree.cut(k)
        assert cut.k == k == len(set(cut.names))
        np.testing.assert_allclose(
            cut.sizes, np.bincount(cut.of_node, synopsis.weights, minlength=k)
        )
        np.testing.assert_array_equal(segments_of(cut.borders, synopsis.scaled_nodes), cut.of_node)
        if before is not None:
            pairs = np.unique(np.stack([cut.of_node, before.of_node]), axis=1)
            assert pairs.shape[1] == k  # every segment is part of one of the cut before
            assert cut.loss <= before.loss
        before = cut


def test_the_given_segments_are_a_cut():
    synopsis = mixed_synopsis(np.random.default_rng(2))
    given = synopsis.cluster(4, random_state=3)
    cut = synopsis.tree(9, of=given, random_state=0).cut(4)
    np.testing.assert_allclose(cut.sizes, given.sizes)
    np.testing.assert_allclose(cut.scaled_centres, given.scaled_centres)
    assert cut.loss == pytest.approx(given.loss)
    assert sorted(cut.names) == ["A", "B", "C", "D"]


def test_stretched_columns_decide_joins_and_splits():
    rows = np.array([[x, y] for x in (-0.1, 0.1) for y in (-0.9, 0.9)])
    synopsis = numbers_synopsis(rows)
    stretched = dataclasses.replace(synopsis, stretch=np.array([50.0, 1.0]))
    for one, column in ((synopsis, 1), (stretched, 0)):
        cut = one.tree(4, random_state=0).cut(2)
        np.testing.assert_allclose(np.ptp(cut.centres, axis=0)[column], np.ptp(rows[:, column]))
        assert one.tree(4, random_state=0).cut(4).loss == pytest.approx(0)


def test_rows_of_one_party_add_up_over_parts():
    """A segment's probability is the sum of those of its parts, as cuts are nested."""
    synopsis = mixed_synopsis(np.random.default_rng(3))
    tree = synopsis.tree(8, random_state=0)
    rows = np.linspace(-(2**20), 2**20, 30).astype(np.int64)[:, np.newaxis]
    fine, coarse = tree.cut(tree.most), tree.cut(3)
    parts = segment_shares(rows, synopsis, fine.borders, party="bank")
    whole = segment_shares(rows, synopsis, coarse.borders, party="bank")
    summed = np.zeros_like(whole)
    for at, position in enumerate(fine.positions):
        summed[:, coarse.borders.segment_of[position]] += parts[:, at]
    np.testing.assert_allclose(whole, summed)
    np.testing.assert_allclose(whole.sum(axis=1), 1)


def test_last_branches_against_a_walk(tree):
    """From place to place down the tree, as one would by hand."""
    places = np.linspace(-1, 1, 41)[:, np.newaxis]
    found = tree.last_branches(squared_distances(places, tree.points))
    for place, last in zip(places.ravel(), found, strict=True):
        given = min(tree.at(3), key=lambda at: abs(tree.branches[at].scaled_centre[0] - place))
        children = tree.branches[given].children
        if children is not None:
            given = min(children, key=lambda at: abs(tree.branches[at].scaled_centre[0] - place))
        assert last == given


def test_one_place_one_column_and_many_columns():
    alone = numbers_synopsis(np.zeros((4, 1))).tree(5, random_state=0)
    assert alone.most == 1
    assert str(alone).split() == ["A", "4", "100%"]
    with pytest.raises(ParameterError, match="k must be at most 1, the segments of the tree"):
        alone.cut(2)
    rng = np.random.default_rng(4)
    wide = numbers_synopsis(rng.uniform(-1, 1, (200, 60))).tree(60, random_state=0)
    assert wide.most == 60
    with pytest.raises(ParameterError, match="hold no user"):
        numbers_synopsis(np.zeros((2, 1)), weights=np.zeros(2)).tree(3)
