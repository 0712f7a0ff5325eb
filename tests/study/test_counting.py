"""A study of counts alone: what it refuses, what it costs, and a whole run of it."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from splitmeans.errors import ParameterError, StudyError
from splitmeans.plan.costs import towards
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.releases import releases_of
from splitmeans.plan.settle import make_plan
from splitmeans.protocol import run
from splitmeans.rehearsal.rehearse import rehearse
from splitmeans.report.build import build_report
from splitmeans.report.html import render
from splitmeans.result.of_run import fields_of_run
from splitmeans.result.result import Result
from splitmeans.result.write import write_folder
from splitmeans.study import Budget, PartySpec, Study
from splitmeans.study.id_rules import IdRules
from splitmeans.study.renewal import Renewal
from splitmeans.table.prepare import prepare_table
from tests.intervals.test_overlap import counts_study
from tests.scene import numbers


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"membership": "sketch"}, "membership must be 'decoy'"),
        ({"n_local_clusters": 4}, "n_local_clusters must be left out"),
        ({"scaling": "equal"}, "scaling must be left out"),
        ({"population": "everyone"}, "population must be left out"),
    ],
)
def test_what_makes_no_sense_without_columns_is_refused(change, words):
    with pytest.raises(StudyError, match=words):
        counts_study(**change)


def test_columns_and_counts_alone_exclude_each_other():
    columns = tuple(PartySpec(name=name, columns=numbers("x")) for name in ("a", "b"))
    with pytest.raises(StudyError, match="lists some; leave them out"):
        counts_study(parties=columns)
    with pytest.raises(StudyError, match="must have at least one column"):
        counts_study(n_clusters=2)


def test_the_text_of_a_study_comes_back_and_k_of_one_is_the_default():
    study = counts_study()
    assert Study.from_toml(study.to_toml()) == study
    assert counts_study(n_local_clusters=1).hash == study.hash


@pytest.mark.parametrize("n_parties", [2, 3, 6])
def test_the_whole_budget_goes_to_one_table(n_parties):
    plan = make_plan(counts_study(n_parties))
    assert plan.groups == (tuple(range(n_parties)),)
    assert (plan.local, plan.stages) == ((), ())
    assert [release.what for release in releases_of(plan)] == ["who is where"]
    report = PrivacyFacts.of(plan)
    assert 0.99 < report.epsilon <= 1
    # A fellow party knows the decoys; the server's noise is larger for that.
    assert report.towards_party is not None
    assert report.towards_party[1].epsilon <= 1
    assert "no column is read" in report.statement()


def two_counts(scale, epsilon):
    """Delta of two counts under discrete Gaussian noise that both move by one, from its law."""
    reach = int(14 * scale) + 40
    at = np.arange(-reach, reach + 1)
    law = np.exp(-((at / scale) ** 2) / 2)
    law /= law.sum()
    before, after = np.append(0.0, law), np.append(law, 0.0)
    gap = np.multiply.outer(before, before) - np.exp(epsilon) * np.multiply.outer(after, after)
    return np.maximum(gap, 0.0).sum()


BUDGETS = [(0.1, 3), (0.5, 2), (1, 8), (2, 3), (4, 2), (4, 5), (6, 3), (8, 4), (10, 2), (12, 3)]


@pytest.mark.parametrize(("epsilon", "n_parties"), BUDGETS)
def test_a_party_learns_no_more_than_the_budget(epsilon, n_parties):
    """As the pages say; the server's own noise is as large as that needs, and hardly larger."""
    plan = make_plan(counts_study(n_parties, budget=Budget(epsilon=epsilon, delta=1e-6)))
    report = PrivacyFacts.of(plan)
    what, cost = report.towards_party
    assert report.epsilon <= epsilon
    assert cost.epsilon <= epsilon
    assert towards(plan).party_epsilon == cost.epsilon
    assert f"      {what}: epsilon {cost.epsilon:.4g}, delta 1e-06" in report.statement()
    scale = plan.presence.server_sigma
    assert two_counts(scale, cost.epsilon) <= 1e-6 * (1 + 1e-6)
    assert two_counts(0.99 * scale, epsilon) > 1e-6


def test_a_bound_towards_parties_above_the_budget_changes_nothing():
    budget = Budget(epsilon=1, delta=1e-6)
    plan = make_plan(counts_study(budget=budget))
    loose = make_plan(counts_study(budget=dataclasses.replace(budget, party_epsilon=5)))
    assert loose.membership == plan.membership


def test_a_series_of_counts_keeps_its_budget_towards_a_party():
    study = counts_study(3, budget=Budget(epsilon=4, delta=1e-6), renewal=Renewal(runs=4))
    assert PrivacyFacts.for_study(study).towards_party[1].epsilon <= 4


def test_a_bound_towards_parties_is_kept():
    budget = Budget(epsilon=1, delta=1e-6, party_epsilon=0.5)
    report = PrivacyFacts.for_study(counts_study(budget=budget))
    assert report.epsilon <= 1
    assert report.towards_party is not None
    assert report.towards_party[1].epsilon <= 0.5


def played(study, n_users=2000, seed=0):
    """A run in one process, and who was really where."""
    rng = np.random.default_rng(seed)
    present = rng.random((n_users, len(study.parties))) < 0.5
    tables = [
        prepare_table(
            party,
            pa.table({"id": [f"user {at}" for at in np.flatnonzero(present[:, place])]}),
            rules=study.id_rules,
        )
        for place, party in enumerate(study.parties)
    ]
    done = run(study, tables)
    return Result(**fields_of_run(done.plan, done.privacy, done.server.published)), present


def test_a_run_counts_and_says_nothing_else(tmp_path):
    result, present = played(counts_study())
    write_folder(tmp_path / "result", result)
    read = Result.read(tmp_path / "result")
    found = read.overlap()
    truth = int(present.all(axis=1).sum())
    # Five deviations: wrong once in two million runs.
    assert abs(found.at_all.users - truth) < 5 * (found.at_all.high - found.at_all.users) / 1.96 + 1
    assert read.published.k == 0
    assert read.remark is None
    with pytest.raises(ParameterError, match="counts alone"):
        read.segments(3)
    page = render(build_report(read))
    assert "Who is where" in page
    assert "How many segments" not in page
    assert "no column was read" in page


def test_counts_that_were_changed_do_not_fit_what_was_recorded(tmp_path):
    result, _ = played(counts_study(2), n_users=50)
    other = dataclasses.replace(result, presence=result.presence + 1)
    write_folder(tmp_path / "result", other)
    with pytest.raises(ParameterError, match="'presence' is not the one that the run recorded"):
        Result.read(tmp_path / "result")


def test_a_rehearsal_passes():
    assert rehearse(counts_study(2, ids=IdRules(type="email"))).users > 0
