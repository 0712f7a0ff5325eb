"""A rehearsal finds, before anything is charged, what a run would fail of after a charge."""

import dataclasses
import functools
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from splitmeans.errors import ParameterError, RehearsalError
from splitmeans.plan.settle import make_plan
from splitmeans.rehearsal import passed, rehearse
from splitmeans.rehearsal.tables import made_up_tables
from splitmeans.study import Budget, Column, DecoyOptions, IdRules, Study
from tests.scene import make_study
from tests.temporary_files import ENDINGS, check_temporary_files

# Numbers and categories, with characters that mean something elsewhere, also in party names.
rehearsed_study = functools.partial(
    make_study,
    names=("org 0", "org 1"),
    columns=(
        Column(name="income", low=0, high=9000),
        Column(name="region", categories=("north", "south", "a|b")),
    ),
    budget=Budget(epsilon=2, delta=1e-7),
    n_local_clusters=3,
)


# ---- made-up tables ----


def test_made_up_tables_keep_every_rule_of_the_study():
    columns = (
        Column(name="small", low=-1e-9, high=1e-9),
        Column(name="huge", low=-1e300, high=1e300, missing="midpoint"),
        Column(name="kind", categories=tuple(f"level {n}" for n in range(40))),
    )
    study = rehearsed_study(
        columns=columns,
        names=("org 0", "org 1", "org 2"),
        expected_users=10**6,
    )
    tables = made_up_tables(study, rng=np.random.default_rng(1))
    assert list(tables) == list(study.party_names)
    for table in tables.values():
        assert table.column_names == ["id", "small", "huge", "kind"]
        assert 500 < table.num_rows < 2000, "scaled down, and not everyone is everywhere"
        assert pc.count_distinct(table["id"]).as_py() == table.num_rows
        for column in columns[:2]:
            assert pc.min(table[column.name]).as_py() >= column.low
            assert pc.max(table[column.name]).as_py() <= column.high
        assert set(table["kind"].to_pylist()) <= set(columns[2].categories)
        assert table["small"].null_count == 0
        assert table["huge"].null_count > 0
    ids = [set(table["id"].to_pylist()) for table in tables.values()]
    assert ids[0] != ids[1], "some are at some parties only"
    assert ids[0] & ids[1]


# ---- what passes ----


@pytest.mark.parametrize(
    "study",
    [
        rehearsed_study(),
        rehearsed_study(names=("org 0", "org 1", "org 2")),
        rehearsed_study(membership="sketch"),
        rehearsed_study(n_local_clusters="auto"),
        rehearsed_study(decoy=DecoyOptions(collusion_epsilon=3.0)),
        rehearsed_study(ids=IdRules(type="integer", pattern="[0-9]+")),
        rehearsed_study(expected_users=1),
        rehearsed_study(
            columns=tuple(Column(name=f"{n} " + "x" * 190, low=0, high=1) for n in range(40))
        ),
    ],
    ids=["two", "three", "sketch", "counted", "collusion", "pattern", "one user", "long"],
)
def test_a_study_passes(study):
    said: list[str] = []
    done = rehearse.rehearse(study, say=said.append)
    assert done.users >= 1
    assert "made-up users" in said[0]


def test_noise_that_leaves_no_segment_is_no_failure():
    """Released counts of one or two users often hold nobody; the result then says so."""
    for _ in range(2):
        rehearse.rehearse(rehearsed_study(expected_users=1))


def test_heavy_decoys_are_rehearsed_with_fewer_of_them():
    study = rehearsed_study(
        names=[f"org {n}" for n in range(3)],
        n_local_clusters=60,
        budget=Budget(epsilon=0.1, delta=1e-7),
    )
    plan = make_plan(study)
    lighter = rehearse._lighter(study, plan)
    assert lighter.budget.epsilon > study.budget.epsilon
    assert make_plan(lighter).n_local_clusters == plan.n_local_clusters
    assert rehearse._lighter(rehearsed_study(), make_plan(rehearsed_study())) == rehearsed_study()


# ---- what does not ----


@pytest.mark.parametrize(
    "place",
    [
        "splitmeans.server.node.combine",  # the server, after all parties were charged
        "splitmeans.run.ending.write_result",  # a party, after the result has come
        "splitmeans.rehearsal.rehearse.write_labels",
        "splitmeans.rehearsal.rehearse.build_report",
    ],
)
def test_what_fails_late_in_a_run_fails_in_the_rehearsal(monkeypatch, place):
    """A defect anywhere behind the charge, such as a name that a later part does not take."""

    def broken(*args: Any, **keywords: Any) -> None:
        raise ParameterError("a name is too long")

    monkeypatch.setattr(place, broken)
    with pytest.raises(RehearsalError, match=r"a name is too long.*nothing was charged") as caught:
        rehearse.rehearse(rehearsed_study())
    assert "defect" in str(caught.value)


def test_a_participant_that_never_goes_on_ends_the_rehearsal(monkeypatch):
    monkeypatch.setattr("splitmeans.run.server._collect", _wait)
    with pytest.raises(RehearsalError, match="went on waiting"):
        rehearse.rehearse(rehearsed_study())


def _wait(*args: Any, **keywords: Any) -> None:
    from splitmeans.errors import WaitingError

    raise WaitingError("nothing came")


# ---- once for each study and version ----


def test_a_study_is_rehearsed_once_from_a_home(tmp_path, monkeypatch):
    held: list[Study] = []
    counted = rehearse.Rehearsed(users=1, seconds=0.0)
    monkeypatch.setattr(rehearse, "rehearse", lambda study, *, say: held.append(study) or counted)
    study, home = rehearsed_study(), tmp_path / "new" / "home"
    first = passed.rehearse_once(study, home, say=lambda text: None)
    assert passed.rehearse_once(study, home, say=lambda text: None) == first
    assert first.endswith("UTC")
    assert len(held) == 1
    assert (home.stat().st_mode & 0o077) == 0

    other = dataclasses.replace(study, name="another")
    passed.rehearse_once(other, home, say=lambda text: None)
    monkeypatch.setattr(passed, "__version__", "99")
    passed.rehearse_once(study, home, say=lambda text: None)
    assert held == [study, other, study], "another study and another version are rehearsed anew"


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_rehearsal_leaves_no_temporary_files(ending, tmp_path, monkeypatch):
    monkeypatch.setattr(rehearse, "_fast_disk", lambda: None)
    monkeypatch.setattr(rehearse._Cast, "play", lambda cast, run: None)
    monkeypatch.setattr(rehearse._Cast, "look_at_results", lambda cast: None)
    check_temporary_files(
        lambda: rehearse.rehearse(rehearsed_study()),
        inside=(rehearse._Cast, "look_at_results"),
        ending=ending,
        folder=tmp_path,
        monkeypatch=monkeypatch,
    )
