"""A hundred random studies, hundreds with `-m slow`, and that the search would find a failure."""

import itertools

import numpy as np
import pytest

from splitmeans import protocol
from splitmeans.study.parties import check_name
from splitmeans.synopsis import checks as synopsis_checks
from tests.studies import run, whole
from tests.studies.generate import random_case
from tests.studies.planning import remembered_calibrations
from tests.studies.shrink import shrink

PART = 50
# Seeds of the first two parts are run by `make runs`.
PARTS = [*range(2), *(pytest.param(part, marks=pytest.mark.slow) for part in range(2, 10))]


@pytest.fixture(scope="module", autouse=True)
def _one_calibration_for_alike_studies():
    with remembered_calibrations():
        yield


@pytest.mark.parametrize("part", PARTS)
def test_nothing_raises_after_a_release(part):
    """Refused before, or run to the end with a result that can be read, shown and labelled with.

    `python -m tests.studies.run --seed N` repeats what a failure prints.
    """
    tally = run.run_many(range(part * PART, (part + 1) * PART), seconds=600)
    assert not tally.failures, tally.failures[0]
    # A generator that came to make only refused studies would test nothing; about half of them run.
    assert tally.outcomes["ran"] >= PART / 3


def test_the_same_seed_gives_the_same_study_and_tables():
    assert random_case(5) == random_case(5)
    assert random_case(5).tables == random_case(5).tables
    assert random_case(5).settings != random_case(6).settings


def test_every_choice_of_every_field_comes_up():
    cases = [random_case(seed) for seed in range(600)]
    settings = [case.settings for case in cases]
    for field, wanted in {
        "membership": {"decoy", "sketch"},
        "grid": {"pairs", "many"},
        "user_sets": {"partial"},
        "population": {"shared", "everyone"},
    }.items():
        assert {one[field] for one in settings if field in one} >= wanted
    parties = [party for one in settings for party in one["parties"]]
    columns = [column for party in parties for column in party["columns"]]
    assert {len(one["parties"]) for one in settings} >= {2, 3, 16}
    assert {min(2, len(party["columns"]) // 30) for party in parties} == {0, 1, 2} or max(
        len(party["columns"]) for party in parties
    ) >= 50
    assert max(len(column["name"]) for column in columns) == 200
    assert max(len(column.get("categories", ())) for column in columns) >= 35
    assert any("detail" in one for one in settings)
    assert {one.get("renewal", {}).get("runs", 1) for one in settings} >= {1, 2, 8}
    assert any(one["n_clusters"] == 1 for one in settings)
    assert any("collusion_epsilon" in one.get("decoy", {}) for one in settings)
    assert any(
        one["expected_users"] > 50 * case.users for one, case in zip(settings, cases, strict=True)
    )
    assert any(
        50 * one["expected_users"] < case.users for one, case in zip(settings, cases, strict=True)
    )
    assert {case.users for case in cases} >= {1, 2, 300}


def _joined_names(synopsis, columns):
    """What `check_synopsis` once did: all names of a party in one, which must be a name."""
    for group in columns:
        check_name("id column", "".join(column.name for column in group) + " id")


def test_a_check_that_long_names_break_is_found_and_made_smaller(monkeypatch):
    monkeypatch.setattr(synopsis_checks, "_check_columns", _joined_names)
    failing = None
    for seed in itertools.count():
        try:
            whole.run_whole(random_case(seed))
        except whole.AfterRelease as failure:
            failing = failure
            break
    assert failing.stage == "run"
    smaller = shrink(random_case(seed), failing, with_report=False)
    assert "at most 200 printable characters" in str(smaller.failure)
    names = [
        "".join(column["name"] for column in party["columns"])
        for party in smaller.case.settings["parties"]
    ]
    assert len(names) == 2
    assert max(map(len, names)) >= 197


@pytest.mark.parametrize("broken", [np.nan, -1.0, np.inf])
def test_sizes_that_are_no_counts_are_found(monkeypatch, broken):
    found = protocol.run

    def spoiled(*args, **kwargs):
        result = found(*args, **kwargs)
        result.server.clustering.sizes[0] = broken
        return result

    monkeypatch.setattr(protocol, "run", spoiled)
    ran = next(seed for seed in range(100) if _runs(seed, found))
    with pytest.raises(whole.AfterRelease, match="sizes are"):
        whole.run_whole(random_case(ran))


def _runs(seed, real):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "run", real)
        return whole.run_whole(random_case(seed)).kind == "ran"
