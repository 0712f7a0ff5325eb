"""Columns whose bounds the run learns: how a study says so, and what it is then."""

import pytest

from splitmeans import StudyError
from splitmeans.study import Budget, Column, PartySpec, Study
from splitmeans.study.features import features_of
from splitmeans.study.raw_layout import is_settled, raw_places

TEXT = """
name = "s"
n_clusters = 3
expected_users = 50000
{study}
[budget]
epsilon = 1.0
delta = 1e-6
[[parties]]
name = "a"
{party}
[[parties.columns]]
name = "x"
{column}
[[parties.columns]]
name = "y"
low = 0
high = 1
[[parties]]
name = "b"
[[parties.columns]]
name = "z"
{other}
"""
PRIVATE = 'bounds = "private"'


def study_of(study="", party="", column="", other="low = 0\nhigh = 1"):
    return Study.from_toml(TEXT.format(study=study, party=party, column=column, other=other))


def test_a_party_or_a_study_says_it_for_its_columns():
    explicit = study_of(column=PRIVATE)
    assert [column.is_private for column in explicit.parties[0].columns] == [True, False]
    assert not explicit.all_public
    # However it is written, it is the same study.
    assert study_of(party=PRIVATE).hash == explicit.hash
    assert study_of(study=PRIVATE).hash == explicit.hash
    assert Study.from_toml(explicit.to_toml()) == explicit
    both = study_of(study=PRIVATE, other="")
    assert [column.is_private for party in both.parties for column in party.columns] == [
        True,
        False,
        True,
    ]


def test_low_or_high_beside_private_are_limits():
    limited = study_of(study=PRIVATE, column="low = 0")
    assert limited.parties[0].columns[0] == Column(name="x", bounds="private", low=0)
    assert limited.hash != study_of(study=PRIVATE).hash
    with pytest.raises(StudyError, match="must have low < high"):
        Column(name="x", bounds="private", low=1, high=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bounds": "public"}, "bounds of column 'x' must be 'private'"),
        ({"bounds": (0, 1)}, "bounds of column 'x' must be 'private'"),
        ({"bounds": "private", "categories": ("a", "b")}, "must not have bounds"),
        ({"bounds": "private", "low": 1, "high": 1 + 1e-9}, "must have limits further apart"),
        ({"bounds": "private", "high": 1e16}, "high of column 'x' must be between -1e.15 and"),
        ({"bounds": "private", "missing": "level"}, "'error', 'midpoint', 'skip' .* or a number"),
        ({}, "needs low and high .*, bounds = 'private' .*, or categories"),
    ],
)
def test_what_is_refused(changes, message):
    with pytest.raises(StudyError, match=message):
        Column(name="x", **changes)


def test_another_word_for_a_study_or_a_party_is_refused_with_the_right_one():
    with pytest.raises(StudyError, match=r"study\.bounds must be 'private' .*got 'privat'"):
        study_of(study='bounds = "privat"', column="low = 0\nhigh = 1")
    with pytest.raises(StudyError, match=r"study\.parties\[0\]\.bounds must be 'private'.*got \[0"):
        study_of(study=PRIVATE, party="bounds = [0, 1]")


@pytest.mark.parametrize(
    ("column", "what"),
    [
        (Column(name="x", bounds="private"), "bounds = 'private' of column 'x' of party 'b'"),
        (Column(name="x", categories="open"), "categories = 'open' of column 'x' of party 'b'"),
        (Column(name="x", categories=("a",), others="open"), "categories = 'open' of column 'x'"),
    ],
)
def test_a_study_that_learns_says_how_many_users_it_expects(column, what):
    def make(expected_users):
        parties = (
            PartySpec(name="a", columns=(Column(name="x", low=0, high=1),)),
            PartySpec(name="b", columns=(column,)),
        )
        budget = Budget(epsilon=1.0, delta=1e-5)
        return Study(
            name="s", parties=parties, n_clusters=2, budget=budget, expected_users=expected_users
        )

    assert make(20_000).expected_users == 20_000
    with pytest.raises(StudyError, match="must say expected_users.*" + what) as refused:
        make(None)
    assert "Write expected_users = " in str(refused.value)
    assert "study new --users" in str(refused.value)


def test_values_are_kept_whole_until_bounds_are_known():
    party = study_of(party=PRIVATE).parties[0]
    assert [(place.start, place.stop) for place in raw_places(party)] == [(0, 2), (2, 3)]
    assert not is_settled(party)
    with pytest.raises(AssertionError, match="not learned yet"):
        features_of(party)
