"""The accuracy table: its rows, who is where, and figures beside those of the run itself."""

import contextlib
import dataclasses
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import accuracy
from benchmarks.accuracy import Extras, run_one, run_rows, step_names
from benchmarks.accuracy_rows import PEER_ROWS, ROWS, Row
from benchmarks.cases import Setting, make_case, who_is_where
from benchmarks.commands.accuracy import _mean_runs
from benchmarks.data import ALL_SETS, CATEGORIES, DATA_SETS, HELD_OUT, MISSING, Recipe
from benchmarks.methods import federated
from splitmeans.errors import ParameterError
from splitmeans.simulate.pooling import pooled_rows

SMALL = Row("mixed-gaussian", 2, 3, 4, users=500)


def test_rows_cover_what_the_table_promises() -> None:
    for rows in (ROWS, PEER_ROWS):
        assert len({row.name for row in rows}) == len(rows)
    assert {row.data for row in ROWS} == set(ALL_SETS)
    assert {row.data for row in ROWS if row.held_out} == set(ALL_SETS) - set(DATA_SETS)
    assert {row.presence for row in ROWS} >= {0.7, 1.0}
    assert (min(row.parties for row in ROWS), max(row.parties for row in ROWS)) == (2, 16)
    assert (min(row.k for row in ROWS), max(row.k for row in ROWS)) == (5, 50)
    assert (min(row.epsilon for row in ROWS), max(row.epsilon for row in ROWS)) == (0.1, 4)
    assert {row.data for row in ROWS if row.quick} >= set(HELD_OUT)


@pytest.mark.parametrize("data", [MISSING, CATEGORIES])
@pytest.mark.parametrize("n_parties", [2, 4])
def test_the_yardstick_sees_the_rows_that_parties_prepare(data: str, n_parties: int) -> None:
    case = make_case(Setting(data=data, n_parties=n_parties, recipe=Recipe(n=300), epsilon=4))
    model = federated(case).model
    assert model is not None
    prepared, _ = pooled_rows(model._prepared(case.blocks))
    np.testing.assert_allclose(prepared, case.pooled, atol=1e-6)


def test_users_are_where_the_setting_says() -> None:
    n, classes = 40_000, np.repeat(np.arange(4, dtype=np.int32), 10_000)
    setting = Setting(n_parties=3, presence=0.6)
    present = who_is_where(setting, n, None)
    np.testing.assert_allclose(present.mean(axis=0), 0.6, atol=0.015)
    np.testing.assert_allclose(present.all(axis=1).mean(), 0.6**3, atol=0.015)

    present = who_is_where(dataclasses.replace(setting, absence="by segment"), n, classes)
    shares = present.reshape(4, 10_000, 3).mean(axis=1)
    assert shares.min() > 0.18
    assert shares.max() - shares.min() > 0.2

    present = who_is_where(dataclasses.replace(setting, absence="own"), n, None)
    everywhere = present.all(axis=1)
    np.testing.assert_allclose(everywhere.sum() / present.sum(axis=0), 0.6, atol=0.015)
    assert (present[~everywhere].sum(axis=1) == 1).all()

    with pytest.raises(ParameterError, match="needs true classes"):
        make_case(Setting(data="heavy-tails", presence=0.6, absence="by segment"))


def test_the_population_is_the_rows_that_are_judged() -> None:
    shared = Setting(n_parties=3, presence=0.6, recipe=Recipe(n=2_000))
    everyone = make_case(dataclasses.replace(shared, population="everyone"))
    case = make_case(shared)
    assert len(case.rows) == case.present.all(axis=1).sum() < len(everyone.rows)
    assert len(everyone.rows) == everyone.present.any(axis=1).sum()
    assert len(case.labels) == len(case.rows)
    assert [len(block) for block in case.blocks] == case.present.sum(axis=0).tolist()


@pytest.fixture
def recipe(monkeypatch):
    """A decoder of two steps, whose loss is 0.3 higher without the second."""
    left_out: list[str] = []

    @contextlib.contextmanager
    def without(name: str):
        left_out.append(name)
        yield
        left_out.remove(name)

    measured = accuracy.score_outcome

    def scored(method, case):
        score, outcome = measured(method, case)
        worse = 0.3 * ("second" in left_out)
        return dataclasses.replace(score, loss_ratio=score.loss_ratio + worse), outcome

    monkeypatch.setattr(accuracy, "score_outcome", scored)
    steps = SimpleNamespace(STEPS={"first": None, "second": None}, without=without)
    monkeypatch.setitem(sys.modules, accuracy._RECIPE, steps)
    return left_out


def test_what_a_step_gains_is_the_difference_without_it(recipe) -> None:
    assert step_names() == ("first", "second")
    found = run_one(SMALL, 0, Extras(without=step_names()), None)
    assert found["without first"] == 0
    assert found["without second"] == pytest.approx(0.3)
    assert recipe == []


def test_without_steps_the_option_says_so(monkeypatch) -> None:
    monkeypatch.setattr(accuracy, "_RECIPE", "splitmeans.synopsis.no_such_module")
    with pytest.raises(ParameterError, match="--without needs a decoder of named steps"):
        step_names()


def test_another_k_is_compared_only_where_it_is_another() -> None:
    assert run_one(SMALL, 0, Extras(other_k=SMALL.k), None)["asked for 3"] is None


def test_rows_come_in_their_order_with_all_seeds(monkeypatch) -> None:
    def backwards(function, jobs, *, workers):
        for job in reversed(jobs):
            yield job, {"ratio": job[1] + 10 * job[0].k}

    monkeypatch.setattr(accuracy, "run_jobs", backwards)
    rows = [dataclasses.replace(SMALL, k=k) for k in (2, 3)]
    found = run_rows(rows, Extras(), seeds=2, data_dir=None, workers=1)
    assert [(row.k, [run["ratio"] for run in runs]) for row, runs in found] == [
        (2, [20, 21]),
        (3, [30, 31]),
    ]


def test_means_over_rows_are_taken_for_each_seed() -> None:
    rows = [
        [{"a": 1.0, "b": None}, {"a": 2.0, "b": None}],
        [{"a": 3.0, "b": 5.0}, {"a": 6.0, "b": None}],
    ]
    assert _mean_runs(rows, ("a", "b")) == [{"a": 2.0, "b": 5.0}, {"a": 4.0, "b": None}]
