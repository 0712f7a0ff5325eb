"""SQL over a result: figures with intervals, and nothing but the two tables."""

import sys

import numpy as np
import pandas as pd
import pytest

from splitmeans.analysis.result import Result
from splitmeans.errors import ParameterError
from splitmeans.estimator import VerticalKMeans
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.queries.sql import ask_sql

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    rng = np.random.default_rng(5)
    group = rng.integers(2, size=3_000)
    rows = np.clip(np.array([-0.5, 0.5])[group][:, None] + rng.normal(0, 0.1, (3_000, 2)), -1, 1)
    model = VerticalKMeans(
        2,
        epsilon=2,
        delta=1e-6,
        bounds=(-1, 1),
        n_local_clusters=4,
        noise=InsecureSeededNoise(1),
        random_state=1,
    ).fit({"my bank": rows[:, :1], "shop": rows[:, 1:]})
    folder = tmp_path_factory.mktemp("sql") / "result"
    model.published_.save(folder)
    return Result.read(folder)


@pytest.fixture(scope="module")
def columns(result):
    return result.synopsis.feature_names


def test_figures_have_intervals_and_what_rows_are_about_has_not(result, columns):
    found = ask_sql(
        result,
        f'SELECT segment, sum(weight) AS users, wmean("{columns[0]}", weight) AS mean, 7 AS seven '
        "FROM synopsis GROUP BY segment ORDER BY segment; ",
    )
    assert found.all_columns == (
        *("segment", "users", "users low", "users high"),
        *("mean", "mean low", "mean high", "seven"),
    )
    assert [row[0] for row in found.rows] == ["A", "B"]
    for row in found.all_rows():
        assert row[2] < row[1] < row[3]
        assert row[5] < row[4] < row[6]
    total = sum(row[1] for row in found.rows)
    assert total == pytest.approx(result.synopsis.total)
    assert found.note == ""
    assert result.why_no_intervals() is None


def test_the_interval_is_that_of_a_table(result, columns):
    """Both count users beyond a bound, from the same replicates."""
    asked = ask_sql(result, f'SELECT sum(weight) FROM synopsis WHERE "{columns[0]}" > 0 -- half')
    table = result.synopsis.table(columns[0], bins=[0])
    (row,) = asked.all_rows()
    assert row == pytest.approx((table.users[1], table.low[1], table.high[1]), rel=1e-6)


def test_python_asks_the_same_engine_and_gets_a_frame(result):
    query = "SELECT segment, sum(weight) AS users FROM synopsis GROUP BY segment ORDER BY segment"
    frame, found = result.ask(query), ask_sql(result, query)
    assert list(frame.columns) == ["segment", "users", "users low", "users high"]
    assert [tuple(row) for row in frame.itertuples(index=False)] == found.all_rows()
    assert frame.attrs["note"] == found.note
    with pytest.raises(ParameterError, match="must be one SELECT"):
        result.ask("DROP TABLE synopsis")


def test_a_limit_says_which_rows_are_shown_and_not_what_is_known_of_them(result, columns):
    """Bins of a tenth: which are the three largest differs between replicates, their users not."""
    query = f'SELECT floor(10 * "{columns[0]}") AS bin, sum(weight) AS users FROM synopsis '
    query += "GROUP BY bin ORDER BY users DESC"
    every, some = ask_sql(result, query), ask_sql(result, f"{query} LIMIT 3")
    assert len(some.rows) == 3
    assert some.all_rows() == every.all_rows()[:3]
    assert all(end is not None for row in some.low for end in row)


def test_joins_with_segments(result):
    found = ask_sql(
        result,
        "SELECT any_value(size) AS size, sum(weight) AS users FROM synopsis "
        "JOIN segments USING (segment) GROUP BY segment ORDER BY segment",
    )
    for size, users in found.rows:
        assert users == pytest.approx(size, rel=1e-6)


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ("SELECT count(*) FROM synopsis", "does not use weight"),
        ("SELECT weight > 0 AS there, segment FROM synopsis GROUP BY ALL", "no column follows"),
        ("SELECT sum(weight) FROM synopsis GROUP BY segment", "cannot be told apart"),
    ],
)
def test_what_has_no_interval_says_why(result, query, note):
    assert note in ask_sql(result, query).note


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM result",  # a variable of this test
        "COPY synopsis TO '/tmp/x.csv'",
        "INSTALL httpfs",
        "ATTACH '/tmp/x.db'",
        "SET enable_external_access = true",
        "CREATE TABLE t AS SELECT 1",
        "SELECT 1; SELECT 2",
        "SELEC 1",
        "",
        "SELECT nothing FROM synopsis",
        "SELECT weight FROM synopsis",  # more rows than an answer may have
    ],
)
def test_only_one_select_over_the_two_tables(result, query):
    with pytest.raises(ParameterError, match=r"query|rows"):
        ask_sql(result, query)


def test_without_duckdb_the_error_says_what_to_install(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ParameterError, match=r"pip install 'splitmeans\[sql\]'"):
        ask_sql(result, "SELECT 1")


def test_whole_numbers_are_whole_numbers_in_sql():
    """A detailed study puts points onto whole numbers: the table has 3, not 2.99997."""
    rng = np.random.default_rng(2)
    visits = rng.binomial(6, np.array([0.2, 0.8])[rng.integers(2, size=8_000)])
    sums = np.clip(visits / 3 - 1 + rng.normal(0, 0.2, 8_000), -1, 1)
    model = VerticalKMeans(
        2,
        epsilon=8,
        bounds={"visits": (0, 6), "sum": (-1, 1)},
        detail=True,
        noise=InsecureSeededNoise(3),
        random_state=3,
    ).fit({"gym": pd.DataFrame({"visits": visits}), "shop": pd.DataFrame({"sum": sums})})
    query = 'SELECT "gym: visits" AS visits, sum(weight) AS users FROM synopsis GROUP BY visits'
    found = {row[0]: row[1] for row in ask_sql(model.published_, f"{query} ORDER BY visits").rows}
    assert list(found) == list(range(7))
    assert all(isinstance(number, int) for number in found)
    # Of 8,000 users at epsilon 8 noise is far below a per cent of them.
    np.testing.assert_allclose(list(found.values()), np.bincount(visits), atol=160)
    between = model.synopsis_.table("visits", bins=[2.5, 3.5])
    assert between.users[1] == pytest.approx(found[3])
    # Nobody knows how far counts of columns in pairs move users: no interval, and the reason.
    answer = ask_sql(model.published_, f"{query} ORDER BY visits")
    assert {end for row in answer.low for end in row} == {None}
    assert "the study has [detail]" in answer.note
    assert model.published_.why_no_intervals() == answer.note
