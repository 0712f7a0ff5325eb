"""What results call columns and categories: no two of them alike, for any names a study takes."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from splitmeans.errors import StudyError
from splitmeans.study import Budget, Column, PartySpec, Study
from splitmeans.study.features import features_of
from splitmeans.synopsis.column_places import column_places
from splitmeans.synopsis.synopsis import Synopsis


def study_of(parties: dict[str, tuple[Column, ...]]) -> Study:
    return Study(
        name="shown",
        parties=tuple(PartySpec(name=name, columns=own) for name, own in parties.items()),
        n_clusters=2,
        budget=Budget(epsilon=1, delta=1e-6),
        expected_users=1000,
    )


def number(name: str) -> Column:
    return Column(name=name, low=0, high=1)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("bank: income", "': '"),
        ("bank:income", "'bank:'"),
        ("shop:visits", "'shop:'"),
        ("shop: visits", "': '"),
        ("a: b", "': '"),
        ("region=north", "'='"),
        ("income (scaled)", r"' \(scaled\)'"),
        # Other colons and equals signs, a filler that shows nothing, wide letters.
        *((f"bank{colon} income", "': '") for colon in "\uff1a\u2236\ua789\u02d0\u0589"),
        *((f"bank:{blank}income", "'bank:'") for blank in "\u3164\u2800\u1160\ufe0f"),
        ("b\u3164ank:income", "'bank:'"),
        ("\uff42ank:income", "'bank:'"),
        ("region\uff1dnorth", "'='"),
        ("region\ua78anorth", "'='"),
    ],
)
def test_columns_that_look_like_others_are_refused(name, part):
    with pytest.raises(
        StudyError, match=rf"column '.*' of party 'shop' must not contain {part}.*rename"
    ):
        study_of({"bank": (number("income"),), "shop": (number(name),)})


def test_parties_that_look_like_columns_are_refused():
    with pytest.raises(StudyError, match=r"party name 'bank: x' must not contain ': '.*rename"):
        study_of({"bank": (number("x"),), "bank: x": (number("y"),)})


def test_names_that_only_look_different_to_a_computer_are_refused():
    composed, apart = "caf\u00e9", "cafe\u0301"
    with pytest.raises(StudyError, match="lists a column twice"):
        PartySpec(name="bank", columns=(number(composed), number(apart)))
    for first, second in ((composed, apart), ("bank", "bank\u3164"), ("bank", "\uff42ank")):
        with pytest.raises(StudyError, match="party names must be different"):
            study_of({first: (number("x"),), second: (number("y"),)})
        usual = {"shop": (number("x"),)}
        with pytest.raises(StudyError, match=r"must be different|lists a column twice"):
            study_of({"bank": (number(first), number(second)), **usual})
        with pytest.raises(StudyError, match=r"categories of .* must be .*different"):
            study_of({"bank": (Column(name="y", categories=(first, second)),), **usual})


def test_usual_names_are_taken():
    study_of({"bank": (number("utm:source"), number("income (EUR)")), "a:b": (number("x"),)})


# Short texts of the parts that names are made of in results, so that clashes are likely.
PARTS = ["a", "a", "b", ":", ": ", "=", " (scaled)"]
NAMES = (
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=4)
    .map(lambda parts: "".join(parts).strip())
    .filter(bool)
)
COLUMNS = st.lists(
    st.tuples(NAMES, st.lists(NAMES, max_size=3, unique=True)), min_size=1, max_size=2
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.lists(st.tuples(NAMES, COLUMNS), min_size=2, max_size=2))
def test_no_two_columns_or_categories_are_shown_alike(drawn):
    try:
        parties = [
            PartySpec(
                name=name,
                columns=tuple(
                    Column(name=column, categories=tuple(levels))
                    if len(levels) > 1
                    else number(column)
                    for column, levels in columns
                ),
            )
            for name, columns in drawn
        ]
        study = study_of({party.name: party.columns for party in parties})
    except StudyError:
        assume(False)
    features = tuple(features_of(party) for party in study.parties)
    width = sum(len(group) for group in features)
    synopsis = Synopsis(
        scaled_nodes=np.zeros((1, width)),
        weights=np.ones(1),
        party_names=study.party_names,
        features=features,
        columns=tuple(party.columns for party in study.parties),
    )
    shown = [*synopsis.feature_names]
    assert len(set(shown)) == len(shown)
    # Columns as wholes, beside features, and in the words of trees and of the report.
    wholes = [place.name for place in column_places(synopsis)]
    assert len(set(wholes)) == len(wholes)
    for text in ("{} = {}", "{}: {}"):
        levels = [
            text.format(place.name, one)
            for place in column_places(synopsis)
            for one in place.levels
        ]
        assert len({*levels, *wholes}) == len(levels) + len(wholes)
    # A full name is never the short name of another column.
    short = {column.name for party in study.parties for column in party.columns}
    assert not short & {*shown, *wholes}
