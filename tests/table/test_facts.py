"""How a party's values fit the study's bounds, counted before anything is sent."""

import json
from dataclasses import asdict

import pyarrow as pa
import pytest

from splitmeans.errors import DataError
from splitmeans.study import Column, PartySpec
from splitmeans.table.checks.facts import (
    TableFacts,
    clipping_warning,
    facts_from,
    rows_note,
)
from splitmeans.table.checks.rows import check_rows
from splitmeans.table.options import SourceOptions

SPEC = PartySpec(
    name="insurer",
    columns=(
        Column(name="age", low=18, high=90, missing="midpoint"),
        Column(name="kind", categories=["a", "b"]),
        Column(name="premium", low=0, high=2000),
    ),
)


def rows(ages, premiums) -> pa.Table:
    n = len(ages)
    ids = [str(number) for number in range(n)]
    return pa.table({"id": ids, "age": ages, "kind": ["a"] * n, "premium": premiums})


def table_facts(spec: PartySpec, table: pa.Table) -> TableFacts:
    return check_rows(spec, table).facts


def refuse_clipping(facts: TableFacts) -> None:
    SourceOptions().finish_checks("insurer", [], facts, where="t.csv")


def test_values_on_a_bound_are_inside_and_missing_ones_are_none():
    facts = table_facts(SPEC, rows([18, 90, None, 17.9, 91], [-1, 0, 2000, 2001, 5]))
    assert [(c.column, c.outside, c.values) for c in facts.bounds] == [
        ("age", 2, 4),
        ("premium", 2, 5),
    ]
    assert str(facts).splitlines() == [
        "5 rows; ids are text, none looks odd",
        "age: 2 of 4 values lie outside 18 to 90 and become the bound",
        "premium: 2 of 5 values lie outside 0 to 2000 and become the bound",
    ]
    assert table_facts(SPEC, rows([18, 90], [0, 2000])).clipped == ()


def test_parts_add_up_and_survive_the_way_through_text():
    table = rows([1, 20, 95, None, 40, 50], [1.5, 2500, 3, 4, 9000, -0.5])
    whole = table_facts(SPEC, table)
    parts = [table_facts(SPEC, table.slice(start, 2)) for start in (0, 2, 4)]
    assert parts[0].and_more(parts[1]).and_more(parts[2]) == whole
    assert facts_from(json.loads(json.dumps(asdict(whole)))) == whole


def test_more_than_half_outside_is_refused_and_just_half_is_not():
    refuse_clipping(table_facts(SPEC, rows([20, 20, 20, 20], [1, 2, 3000, 3000])))
    refuse_clipping(table_facts(SPEC, rows([None, None], [1, 2])))
    one = table_facts(SPEC, rows([20, 20, 20, 20], [1, 3000, 3000, 3000]))
    with pytest.raises(DataError, match=r"t\.csv: party 'insurer', column 'premium' must have at"):
        refuse_clipping(one)
    SourceOptions(allow_clipping=True).finish_checks("insurer", [], one)
    assert "most values of 'premium' lie outside" in clipping_warning(one)
    half = table_facts(SPEC, rows([20, 20, 20, 20], [1, 2, 3000, 3000]))
    assert clipping_warning(half) is None
    # The missing value of the one column does not count as inside.
    both = table_facts(SPEC, rows([1, None, 20, 2], [3000, 1, 3000, 3000]))
    with pytest.raises(
        DataError, match=r"2 problems:\n- column 'age' must .* correct the units"
    ) as no:
        refuse_clipping(both)
    assert "- column 'premium' must have" in str(no.value)
    assert "3000" not in str(no.value)


@pytest.mark.parametrize(
    ("own", "expected", "said"),
    [
        (60, 5000, "60 rows, 1 / 83 of the study's expected_users = 5,000"),
        (1000, 3000, "1,000 rows, 1 / 3 of"),
        (1001, 3000, None),
        (3000, 3000, None),
        (8999, 3000, None),
        (9000, 3000, "9,000 rows, 3 times the study's expected_users = 3,000"),
    ],
)
def test_a_party_is_told_if_its_rows_are_three_times_more_or_fewer(own, expected, said):
    note = rows_note(own, expected=expected, delta=1e-5)
    assert note is None if said is None else said in note


def test_where_no_number_is_expected_only_delta_can_be_wrong_for_the_rows():
    assert rows_note(60, expected=None, delta=1e-5) is None
    assert rows_note(99_999, expected=None, delta=1e-5) is None
    note = rows_note(100_000, expected=None, delta=1e-5)
    assert note is not None
    assert "100,000 rows" in note
    assert "delta of 1e-05" in note
