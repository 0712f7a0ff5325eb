import numpy as np
import pytest

from benchmarks.reliability import reliability
from splitmeans.errors import ParameterError
from splitmeans.party.labels import segment_probabilities
from splitmeans.study import Column, PartySpec
from splitmeans.study.features import GRID_UNITS
from splitmeans.synopsis.build import build_synopsis, build_synopsis_from_points
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.table.prepare import prepare_table

BANK = PartySpec(name="bank", columns=(Column(name="income", low=-1, high=1),))
SHOP = PartySpec(name="shop", columns=(Column(name="visits", low=-1, high=1),))
CENTRES = [
    np.array([[-GRID_UNITS // 2], [GRID_UNITS // 2]], dtype=np.int64),
    np.array([[-GRID_UNITS // 2], [GRID_UNITS // 2]], dtype=np.int64),
]
# Of those with a low income 3 in 4 have few visits; those with a high one all have many.
WEIGHTS = np.array([[30.0, 10.0], [0.0, 20.0]])
# Segments: few visits, many visits with low income, many visits with high income.
SEGMENTS = np.array([[-0.5, -0.5], [-0.5, 0.5], [0.5, 0.5]])


def table(*values, party=BANK):
    return prepare_table(party, np.array(values, dtype=float)[:, np.newaxis])


@pytest.fixture
def synopsis():
    return build_synopsis(WEIGHTS, CENTRES, [BANK, SHOP])


def test_by_hand(synopsis):
    found = segment_probabilities(table(-0.6, -0.4, 0.7), synopsis, centres=SEGMENTS)
    np.testing.assert_allclose(found, [[0.75, 0.25, 0], [0.75, 0.25, 0], [0, 0, 1]])
    shop = segment_probabilities(table(-0.5, 0.5, party=SHOP), synopsis, centres=SEGMENTS)
    np.testing.assert_allclose(shop, [[1, 0, 0], [0, 1 / 3, 2 / 3]])


def test_a_row_with_gaps_is_labelled_by_what_it_has():
    """Two columns, of which the first may be missing; the local clusters differ in both."""
    income = Column(name="income", low=-1, high=1, missing="skip")
    bank = PartySpec(name="bank", columns=(income, Column(name="age", low=-1, high=1)))
    centres = [np.array([[-1, -1], [1, 1]]) * (GRID_UNITS // 2), CENTRES[1]]
    found = segment_probabilities(
        prepare_table(bank, {"income": [0.9, None, None], "age": [-0.6, -0.6, 0.7]}),
        build_synopsis(WEIGHTS, centres, [bank, SHOP]),
        centres=np.array([[-0.5, -0.5, -0.5], [-0.5, -0.5, 0.5], [0.5, 0.5, 0.5]]),
    )
    # With a high income the first would be in the second cluster; without one it is in the first.
    np.testing.assert_allclose(found, [[0, 0, 1], [0.75, 0.25, 0], [0, 0, 1]])


def test_many_nodes_are_drawn_evenly_over_cells():
    """3,000 pseudo-users of one local cluster, 3 in 4 of them with few visits."""
    labels = np.array([[0, 0]] * 2250 + [[0, 1]] * 750)
    many = build_synopsis_from_points(labels, np.ones(3000), CENTRES, [BANK, SHOP])
    found = segment_probabilities(table(-0.6, 0.7), many, centres=SEGMENTS)
    np.testing.assert_allclose(found[0], [0.75, 0.25, 0], atol=1 / 512)
    np.testing.assert_array_equal(
        found, segment_probabilities(table(-0.6, 0.7), many, centres=SEGMENTS)
    )


def test_own_columns_count_as_they_are(synopsis):
    """A low income near the border is nearer to a segment at 0 than its local centre is."""
    segments = np.array([[-0.5, 0.0], [0.0, 0.0]])
    found = segment_probabilities(table(-0.3, -0.2), synopsis, centres=segments)
    np.testing.assert_allclose(found, [[1, 0], [0, 1]])


def test_a_clustering_will_do(synopsis):
    clustering = synopsis.cluster(2, random_state=0)
    rows = table(-0.9, 0.1, 0.4)
    np.testing.assert_array_equal(
        segment_probabilities(rows, synopsis, centres=clustering),
        segment_probabilities(rows, synopsis, centres=clustering.centres),
    )


def naive(rows, labels, synopsis, party, segments):
    """Row by row and node by node."""
    own = synopsis.columns_of(party)
    result = np.zeros((len(rows), len(segments)))
    for i, (row, label) in enumerate(zip(rows, labels, strict=True)):
        for node, weight, at in zip(
            synopsis.scaled_nodes, synopsis.weights, synopsis.labels_of(party), strict=True
        ):
            if at == label:
                place = node.copy()
                place[own] = row
                result[i, np.square(segments - place).sum(axis=1).argmin()] += weight
    return result / result.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("chunk", [1, 40, 10**6])
def test_fast_equals_naive(monkeypatch, chunk):
    monkeypatch.setattr("splitmeans.synopsis.own_columns._CHUNK_SIZE", chunk)
    rng = np.random.default_rng(0)
    parties = [
        PartySpec(name=name, columns=tuple(Column(name=c, low=-1, high=1) for c in "xy"))
        for name in ("a", "b", "c")
    ]
    centres = [rng.integers(-GRID_UNITS, GRID_UNITS, size=(3, 2)) for _ in parties]
    synopsis = build_synopsis(rng.uniform(0.1, 5, size=(3, 3, 3)), centres, parties)
    segments = rng.uniform(-1, 1, size=(4, 6))
    rows = prepare_table(parties[1], rng.uniform(-1, 1, size=(30, 2)))
    gaps = np.square(rows.raw_rows[:, np.newaxis] - centres[1]).sum(axis=2)
    expected = naive(rows.raw_rows / GRID_UNITS, gaps.argmin(axis=1), synopsis, "b", segments)
    found = segment_probabilities(rows, synopsis, centres=segments)
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_clusters_without_users_are_passed_over():
    """No weight at the high incomes: such a row takes the nearest cluster that has users."""
    empty = build_synopsis(np.array([[30.0, 10.0], [0.0, 0.0]]), CENTRES, [BANK, SHOP])
    some = build_synopsis_from_points(
        np.array([[0, 0], [0, 1]]), np.array([30.0, 10.0]), CENTRES, [BANK, SHOP]
    )
    for synopsis in (empty, some):
        found = segment_probabilities(table(0.4), synopsis, centres=SEGMENTS)
        np.testing.assert_allclose(found, [[0.75, 0, 0.25]])


def test_no_users_at_all_leave_everything_open():
    nobody = build_synopsis(np.zeros((2, 2)), CENTRES, [BANK, SHOP])
    found = segment_probabilities(table(0.4, -0.4), nobody, centres=SEGMENTS)
    np.testing.assert_allclose(found, np.full((2, 3), 1 / 3))


def test_a_row_does_not_depend_on_the_others(synopsis):
    alone = segment_probabilities(table(-0.2), synopsis, centres=SEGMENTS)
    among = segment_probabilities(table(0.9, -0.2, -0.8), synopsis, centres=SEGMENTS)
    np.testing.assert_array_equal(alone[0], among[1])


def test_wrong_tables_are_refused(synopsis):
    with pytest.raises(ParameterError, match="party must be one of bank, shop, got 'x'"):
        segment_probabilities(table(0.0), synopsis, centres=SEGMENTS, party="x")
    wide = PartySpec(name="bank", columns=tuple(Column(name=c, low=0, high=1) for c in "xy"))
    with pytest.raises(ParameterError, match="table of party 'bank' must have 1 features, got 2"):
        segment_probabilities(prepare_table(wide, np.zeros((1, 2))), synopsis, centres=SEGMENTS)
    unlabelled = Synopsis(
        scaled_nodes=synopsis.scaled_nodes,
        weights=synopsis.weights,
        party_names=synopsis.party_names,
        features=synopsis.features,
    )
    with pytest.raises(ParameterError, match="does not say which node has which local cluster"):
        segment_probabilities(table(0.0), unlabelled, centres=SEGMENTS)


# ---- reliability ----


def test_reliability_by_hand():
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.95, 0.05], [0.55, 0.45]])
    found = reliability(probabilities, [0, 1, 1, 0], bins=5)
    assert found.counts.tolist() == [0, 0, 1, 0, 3]
    np.testing.assert_allclose(found.confidence[[2, 4]], [0.55, 2.65 / 3])
    np.testing.assert_allclose(found.accuracy[[2, 4]], [1, 2 / 3])
    assert np.isnan(found.confidence[0])
    assert found.error == pytest.approx((0.45 + 3 * (2.65 - 2) / 3) / 4)


def test_certain_and_right_is_perfect():
    found = reliability(np.eye(3), [0, 1, 2])
    assert found.error == 0
    assert found.counts.tolist() == [0] * 9 + [3]


def test_reliability_table_is_readable():
    lines = repr(reliability(np.array([[0.75, 0.25]]), [0], bins=2)).splitlines()
    assert lines == [
        "probability      rows  predicted  correct",
        "0.00 to 0.50        0          -        -",
        "0.50 to 1.00        1      0.750    1.000",
        "expected calibration error 0.2500",
    ]


def test_bad_reliability_arguments_are_refused():
    with pytest.raises(ParameterError, match=r"got \(1, 2\) and \(2,\)"):
        reliability(np.array([[0.5, 0.5]]), [0, 1])
    with pytest.raises(ParameterError, match="bins must be a whole number >= 1, got 0"):
        reliability(np.array([[0.5, 0.5]]), [0], bins=0)
