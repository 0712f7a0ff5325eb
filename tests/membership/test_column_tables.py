"""Tables of columns: which there are, the labels of values, and what messages hold."""

import numpy as np
import pyarrow as pa
import pytest

from splitmeans import Column, DetailOptions, PartySpec, Study
from splitmeans._types import NO_VALUE
from splitmeans.membership.decoy.column_labels import (
    N_EDGES,
    labels_in,
    padded_edges,
    problem_of_edges,
    rules_of,
)
from splitmeans.membership.decoy.column_tables import (
    MAX_BINS,
    ColumnTable,
    ColumnTables,
    column_tables,
    label_count,
    n_column_tables,
)
from splitmeans.membership.decoy.law import decoy_law
from splitmeans.party.column_tables import encode_table
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study import Budget, DecoyOptions
from splitmeans.study.coding import Coding, coding_of
from splitmeans.table.walk.memory import MemoryUsers

LAW = decoy_law(0.1, delta_share=1e-8)
CODING = Coding(bounds=(100, 50, *(10,) * 14), levels=(0, 0, 14), has_gaps=True)


def study(*counts, **changes):
    parties = tuple(
        PartySpec(
            name=f"p{place}",
            columns=tuple(Column(name=f"c{i}", low=0, high=1) for i in range(count)),
        )
        for place, count in enumerate(counts)
    )
    fields = {
        "name": "tables",
        "parties": parties,
        "n_clusters": 3,
        "budget": Budget(epsilon=1.0, delta=1e-6),
        "expected_users": 200_000,
        "detail": DetailOptions(),
        **changes,
    }
    return Study(**fields)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [((2, 3), 6), ((2, 3, 1), 11), ((1, 1), 1), ((30, 30), 64), ((40, 2), 64), ((9,) * 3, 48)],
)
def test_all_pairs_of_columns_are_counted_up_to_a_number(counts, expected) -> None:
    asked = study(*counts)
    found = column_tables(asked, LAW, [coding_of(party) for party in asked.parties])
    assert n_column_tables(asked) == len(found.tables) == expected
    assert len({table.place for table in found.tables}) == expected
    assert all(table.parties[0] < table.parties[1] for table in found.tables)


@pytest.mark.parametrize(
    "changes",
    [
        {"detail": None},
        {"decoy": DecoyOptions(collusion_epsilon=2.0)},
        {"expected_users": 2000},
        {"membership": "sketch"},
    ],
)
def test_there_are_none_where_they_would_tell_nothing_or_too_much(changes) -> None:
    assert n_column_tables(study(3, 3, **changes)) == 0


def test_columns_have_a_label_for_each_bin_and_one_for_no_value() -> None:
    assert [label_count(CODING, place) for place in range(3)] == [13, 13, 13]
    assert label_count(Coding(bounds=(1,) * 3, levels=(3,)), 0) == 4


def test_edges_travel_with_room_for_all_and_are_checked() -> None:
    flat = padded_edges([np.array([-5, 20]), np.array([], dtype=np.int64), np.array([])], CODING)
    assert flat.tolist() == [-5, 20, *[101] * (N_EDGES - 2), *[51] * N_EDGES]
    assert problem_of_edges(flat, CODING) is None
    assert "expected 22" in problem_of_edges(flat[1:], CODING)
    for bad in (flat[::-1], flat + 1, flat - 200):
        assert "ascend" in problem_of_edges(np.ascontiguousarray(bad), CODING)


def test_values_get_the_labels_of_their_bins() -> None:
    edges = padded_edges([np.array([-5, 20]), np.array([0]), np.array([])], CODING)
    # Level 3 is the most frequent, then 13; of the others the first nine that come have labels.
    points = np.zeros((100, 3), dtype=np.int64)
    points[:60, 2], points[60:, 2] = 3, 13
    rules = rules_of(edges, points, CODING)
    codes = np.array([[-6, -1, 3], [-5, 0, 13], [19, 50, 0], [20, NO_VALUE, 12], [100, 1, -1]])
    assert labels_in(codes, 0, rules[0], CODING).tolist() == [0, 1, 1, 2, 2]
    assert labels_in(codes, 1, rules[1], CODING).tolist() == [0, 1, 1, MAX_BINS, 1]
    found = labels_in(codes, 2, rules[2], CODING)
    assert found.tolist() == [0, 1, 2, MAX_BINS - 1, MAX_BINS]
    assert sorted(set(rules[2])) == list(range(MAX_BINS))


def test_a_message_is_as_large_as_was_said() -> None:
    tables = ColumnTables(
        law=LAW, tables=(ColumnTable(parties=(0, 1), columns=(0, 2), widths=(13, 4)),)
    )
    ids = pa.array([str(i) for i in range(500)], pa.large_string())
    message = encode_table(
        tables,
        tables.tables[0],
        side=1,
        users=MemoryUsers(ids=ids, labels=(np.arange(500) % 4).astype(np.int32)),
        run_key=bytes(32),
        high_bits=12,
        sample_rate=1.0,
        noise=InsecureSeededNoise(0),
    )
    size, records = tables.message_size(1, users=500, sample_rate=1.0, high_bits=12, deviations=0)
    assert message.lengths[0] == pytest.approx(records, abs=4 * LAW.sigma * np.sqrt(56))
    most, _ = tables.message_size(1, users=500, sample_rate=1.0, high_bits=12, deviations=8)
    assert size < most
    assert 8 + len(message.labels) <= most


def test_tables_of_one_run_have_decoys_of_their_own() -> None:
    places = [
        ColumnTable(parties=(0, 1), columns=(column, 0), widths=(13, 13)) for column in (0, 1)
    ]
    tables = ColumnTables(law=LAW, tables=tuple(places))
    ids = pa.array(["a"], pa.large_string())
    one, other = (
        encode_table(
            tables,
            table,
            side=0,
            users=MemoryUsers(ids=ids, labels=np.zeros(1, dtype=np.int32)),
            run_key=bytes(32),
            high_bits=12,
            sample_rate=1.0,
            noise=InsecureSeededNoise(0),
        )
        for table in places
    )
    assert one.lengths[0] != other.lengths[0]
