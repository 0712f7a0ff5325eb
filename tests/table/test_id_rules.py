"""The study's rules for ids: what is one user, what is refused, and what is merely odd."""

import decimal
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import DataError, StudyError
from splitmeans.study import Budget, Column, IdRules, PartySpec, Study
from splitmeans.table.ids import facts as id_facts_module
from splitmeans.table.ids.canonical import canonical_text
from splitmeans.table.ids.facts import id_facts
from tests.table.id_lists import canonical_ids

INTEGER, TEXT, UUID = (IdRules(type=kind) for kind in ("integer", "text", "uuid"))
SOME = uuid.UUID("fb49836d-e5fc-4d67-9329-7159af91ddfe")


# ---- the study ----


def study(**changes) -> Study:
    parties = tuple(
        PartySpec(name=name, columns=(Column(name="x", low=0, high=1),)) for name in ("a", "b")
    )
    budget = Budget(epsilon=1, delta=1e-6)
    return Study(name="test", parties=parties, n_clusters=2, budget=budget, **changes)


def test_rules_are_part_of_the_hash():
    assert "ids" not in study().to_mapping()
    # Said or not makes a difference: between organisations a study must say it.
    assert study(ids=IdRules(type="as-is")).hash != study().hash
    assert study(ids=INTEGER).hash != study().hash
    assert study(ids=IdRules(pattern="[0-9]+")).hash != study().hash


def test_rules_are_a_table_of_the_study_file():
    made = study(ids=IdRules(type="integer", pattern="[0-9]{1,8}"))
    assert '[ids]\ntype = "integer"\npattern = "[0-9]{1,8}"' in made.to_toml()
    assert Study.from_toml(made.to_toml()) == made
    assert made.id_rules.type == "integer"
    assert study().id_rules == IdRules()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (
            {"type": "number"},
            "ids.type must be one of 'as-is', 'text', 'caseless', 'integer', 'uuid'",
        ),
        ({"kind": "integer"}, "study.ids has an unknown key 'kind'"),
        ({"pattern": "("}, "ids.pattern must be a regular expression as RE2 takes it"),
        ({"pattern": "a)|(b"}, "ids.pattern must be a regular expression as RE2 takes it"),
        ({"pattern": r"(a)\1"}, "ids.pattern must be a regular expression as RE2 takes it"),
        ({"pattern": ""}, "in printable characters"),
        ({"pattern": "a\x1b[2J"}, "in printable characters"),
        ({"pattern": "a" * 201}, "at most 200 characters, got 201"),
        ("integer", "study.ids must be a table of keys and values"),
    ],
)
def test_rules_that_are_none(ids, message):
    mapping = study().to_mapping() | {"ids": ids}
    with pytest.raises(StudyError, match=message.replace("(", r"\(")):
        Study.from_mapping(mapping)


def test_rules_are_a_value_of_their_own():
    assert study(ids=INTEGER).id_rules == INTEGER
    with pytest.raises(StudyError, match="ids must be a table of rules"):
        study(ids={"type": "integer"})


# ---- whole numbers ----


@pytest.mark.parametrize(
    "values",
    [
        ["7", "-12", "0"],
        ["007", "-012", "-0"],
        [" 7", "-12\u00a0", "\ufeff0\n"],
        ["+7", "-12.0", "000"],
        [7, -12, 0],
        [7.0, -12.0, -0.0],
        pd.Series([7, -12, 0], dtype="Int64"),
        pd.Series([7, -12, 0, None])[:3],  # a gap elsewhere makes the column floating-point
        pl.Series(["7", "-12", "0"]),
        pa.array([decimal.Decimal(text) for text in ("7.00", "-12.00", "0.00")]),
        pa.array(["007", "-12", "0"]).dictionary_encode(),
    ],
    ids=str,
)
def test_integer_ids_are_one_user_in_any_dress(values):
    assert canonical_ids(values, rules=INTEGER).to_pylist() == ["7", "-12", "0"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["17", "1e5"], "whole numbers in digits 0 to 9 .*row number 1 "),
        (["17", "1,000"], "whole numbers in digits 0 to 9 .*row number 1 "),
        (["17", "\uff17"], "whole numbers in digits 0 to 9 .*row number 1 "),
        (["17", "7.5"], "whole numbers in digits 0 to 9 .*row number 1 "),
        (["17", "7."], "whole numbers in digits 0 to 9 .*row number 1 "),
        (["17", "0x11"], "whole numbers in digits 0 to 9 .*row number 1 "),
        (["17", "1 7"], "whole numbers in digits 0 to 9 .*row number 1 "),
        (["17", "--7"], "whole numbers in digits 0 to 9 .*row number 1 "),
        (["17", "\u200b"], "row number 1 "),
        (["17", "1234567890123456.0"], "more than 15 digits are rounded.*row number 1 "),
        ([17.0, 7.5], "below 2\\^53 in a column of floating-point numbers; see row number 1 "),
        ([17.0, 2.0**53], "below 2\\^53 .* row number 1 "),
        ([17.0, np.inf], "below 2\\^53 .* row number 1 "),
        ([17.0, np.nan], "ids must not be missing; see row number 1 "),
        ([decimal.Decimal("17.5")], "row number 0 "),
        (["7", "17", "007"], "compared as whole numbers.*same id as row number 2 "),
        ([True], "ids must be whole numbers .*got bool"),
    ],
)
def test_what_is_no_integer_is_refused_by_row(values, message):
    with pytest.raises(DataError, match=message) as caught:
        canonical_ids(values, rules=INTEGER)
    assert "17" not in str(caught.value).replace("2^53", "")


@given(st.lists(st.integers(-(10**30), 10**30), min_size=1, unique=True), st.data())
@settings(max_examples=50, deadline=None)
def test_integer_ids_are_python_integers(numbers, data):
    zeros = data.draw(st.lists(st.integers(0, 4), min_size=len(numbers), max_size=len(numbers)))
    padded = [
        ("-" if number < 0 else "") + "0" * extra + str(abs(number))
        for number, extra in zip(numbers, zeros, strict=True)
    ]
    assert canonical_ids(padded, rules=INTEGER).to_pylist() == [str(number) for number in numbers]


# ---- UUIDs ----


@pytest.mark.parametrize(
    "values",
    [
        [str(SOME)],
        [str(SOME).upper()],
        [SOME.hex],
        [f" {{{SOME}}}\u00a0"],
        [SOME.urn],
        pa.array([SOME.bytes], pa.binary(16)),
        pa.array([bytes(16), SOME.bytes], pa.binary(16))[1:],
        pa.array([SOME.bytes], pa.uuid()),
        [SOME],
    ],
    ids=str,
)
def test_uuids_in_any_dress(values):
    assert canonical_ids(values, rules=UUID).to_pylist() == [str(SOME)]


def test_a_uuid_column_needs_no_rule():
    """What a database calls a UUID has one usual text."""
    assert canonical_ids(pa.array([SOME.bytes], pa.uuid())).to_pylist() == [str(SOME)]


@pytest.mark.parametrize("value", ["17", str(SOME)[:-1], str(SOME) + "0", "g" + str(SOME)[1:]])
def test_what_is_no_uuid_is_refused_by_row(value):
    with pytest.raises(DataError, match=r"32 hexadecimal digits.*row number 1 ") as caught:
        canonical_ids([str(SOME), value], rules=UUID)
    assert value not in str(caught.value).replace("17 ", "")
    with pytest.raises(DataError, match=r"compared as UUIDs.*same id as row number 1"):
        canonical_ids([str(SOME), str(SOME).upper()], rules=UUID)
    with pytest.raises(DataError, match=r"ids must be UUIDs .*got int64"):
        canonical_ids([1], rules=UUID)


# ---- text ----


def test_text_ids_lose_blanks_at_the_ends_and_nothing_else():
    given_ids = ["a ", "\ufeffb", "c\u200b\r\n", "\u3000e\u0301", "D d", "007", "A"]
    wanted = ["a", "b", "c", "\u00e9", "D d", "007", "A"]
    assert canonical_ids(given_ids, rules=TEXT).to_pylist() == wanted
    assert canonical_ids([7, 8], rules=TEXT).to_pylist() == ["7", "8"]


@pytest.mark.parametrize("inside", ["\u200b", "\u00a0", "\x00", "\t", "\u00ad", "\u2028", "\u202e"])
def test_invisible_characters_inside_are_refused(inside):
    with pytest.raises(DataError, match=r"invisible characters or unusual spaces.*row number 1 "):
        canonical_ids(["ab", f"a{inside}b"], rules=TEXT)
    # Without the rule they are another user, as before.
    assert len(canonical_ids(["ab", f"a{inside}b"])) == 2


def test_two_users_are_never_merged_silently():
    with pytest.raises(DataError, match=r"without blanks at the ends.*same id as row number 2"):
        canonical_ids(["a", "b", "a "], rules=TEXT)
    with pytest.raises(DataError, match="must not be empty text; see row number 1 "):
        canonical_ids(["a", " \u200b"], rules=TEXT)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=6), max_size=8))
@settings(max_examples=100, deadline=None)
def test_a_canonical_form_is_its_own_canonical_form(texts):
    for rules in (IdRules(), TEXT, INTEGER, UUID):
        try:
            once = canonical_text(texts, rules=rules)
        except DataError:
            continue
        assert canonical_text(once, rules=rules).equals(once)


# ---- the table of docs/reference/ids.md ----

REFUSED = None
MATRIX = [  # what is in the table; as-is, text, integer, uuid
    ([7], "7", "7", "7", REFUSED),
    (["7"], "7", "7", "7", REFUSED),
    (["007"], "007", "007", "7", REFUSED),
    ([" 7"], " 7", "7", "7", REFUSED),
    (["7\u00a0"], "7\u00a0", "7", "7", REFUSED),
    (["\ufeff7"], "\ufeff7", "7", "7", REFUSED),
    ([7.0], REFUSED, REFUSED, "7", REFUSED),
    (["7.0"], "7.0", "7.0", "7", REFUSED),
    (["1e5"], "1e5", "1e5", REFUSED, REFUSED),
    (["1,000"], "1,000", "1,000", REFUSED, REFUSED),
    (["\uff17"], "\uff17", "\uff17", REFUSED, REFUSED),
    (["-07"], "-07", "-07", "-7", REFUSED),
    (["+7"], "+7", "+7", "7", REFUSED),
    ([decimal.Decimal(7)], REFUSED, REFUSED, "7", REFUSED),
    (["a\u200bb"], "a\u200bb", REFUSED, REFUSED, REFUSED),
    (["a\u00a0b"], "a\u00a0b", REFUSED, REFUSED, REFUSED),
    (["e\u0301"], "\u00e9", "\u00e9", REFUSED, REFUSED),
    (["A"], "A", "A", REFUSED, REFUSED),
    ([str(SOME).upper()], str(SOME).upper(), str(SOME).upper(), REFUSED, str(SOME)),
    ([SOME.hex], SOME.hex, SOME.hex, REFUSED, str(SOME)),
    (pa.array([SOME.bytes], pa.uuid()), str(SOME), str(SOME), REFUSED, str(SOME)),
    (pa.array([SOME.bytes], pa.binary(16)), REFUSED, REFUSED, REFUSED, str(SOME)),
]


@pytest.mark.parametrize("row", MATRIX, ids=range(len(MATRIX)))
def test_the_documented_forms(row):
    values, *wanted = row
    for rules, text in zip((IdRules(), TEXT, INTEGER, UUID), wanted, strict=True):
        if text is REFUSED:
            with pytest.raises(DataError, match="ids must"):
                canonical_ids(values, rules=rules)
        else:
            assert canonical_ids(values, rules=rules).to_pylist() == [text], rules.type


# ---- patterns ----


def test_a_pattern_holds_for_the_whole_canonical_id():
    rules = IdRules(type="integer", pattern="[1-9][0-9]{3}|x")
    assert canonical_ids(["01234"], rules=rules).to_pylist() == ["1234"]
    for bad in ("12345", "123"):
        with pytest.raises(DataError, match=r"fit the study's ids.pattern; see row number 1 "):
            canonical_ids(["1234", bad], rules=rules)
    with pytest.raises(DataError, match=r"ids.pattern; see row number 0 "):
        canonical_ids(["ab\n"], rules=IdRules(pattern="[a-z]+"))


# ---- what is odd ----


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("a ", "blanks at the ends"),
        ("\u00a0a", "blanks at the ends"),
        ("a\u200bb", "invisible or control characters"),
        ("a\u00a0b", "unusual or repeated spaces inside"),
        ("a  b", "unusual or repeated spaces inside"),
        ("007", "leading zeros"),
        ("7.0", "looks like a decimal number"),
        ("1.2E+05", "looks like a number with an exponent"),
        ("1,234,567", "thousands separators"),
        ("aB", "both upper and lower case"),
        ("NULL", "stands for a missing value"),
        ("nan", "stands for a missing value"),
        ("e\u0301", "not in Unicode normal form C"),
        ("\uff17", "characters that look like others"),
    ],
)
def test_every_kind_of_odd_id_is_counted(value, name):
    facts = id_facts(["customer 1", value, value, "2"])
    assert facts.n_odd == 2
    assert any(known.startswith(name) and count == 2 for known, count in facts.odd.items())
    assert value not in str(facts)


def test_plain_ids_are_not_odd():
    for plain in (["7", "0", "12"], ["ab-1", "CD 2"], [str(SOME)], ["customer 7", "\u00e9t\u00e9"]):
        assert id_facts(plain).odd == {}
    assert str(id_facts([1, 2])) == "2 rows; ids are whole numbers, none looks odd"
    assert id_facts(pa.array([SOME.bytes], pa.uuid())).kind == "UUIDs"
    # What the quick pattern takes for plain, the full ones do as well.
    assert id_facts(["7", "ab-1", "AB 2", str(SOME), "x y z"]).odd == {}


def test_facts_of_floats_and_sums_of_facts():
    floats = id_facts([1.0, 2.5, 2.0**60])
    assert floats.odd == {"not a whole number": 1, "too large for its floating-point column": 1}
    both = id_facts(["007", " 7"]).and_more(id_facts(["08", "x"]))
    assert (both.rows, both.n_odd, both.kind) == (4, 3, "text")
    assert both.odd == {"blanks at the ends": 1, "leading zeros": 2}
    assert str(both) == (
        "4 rows; ids are text, 3 look odd (blanks at the ends: 1; leading zeros: 2)"
    )
    assert both.and_more(floats).kind == "of several kinds"


@settings(max_examples=50, deadline=None)
@given(
    ids=st.lists(
        st.one_of(
            st.text("01eE.-_ aAbBfn", min_size=1, max_size=6),
            st.sampled_from(
                ["nan", "NULL", "None", "1e5", "-2E-3", "12e45", "unknown", "\u00e9", "-"]
            ),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_quick_patterns_pass_over_no_odd_id(ids):
    """The patterns of every way to be odd, on all ids, find what is found on the few."""
    column = pa.array(ids, pa.large_string())
    facts = id_facts(ids)
    for name, pattern in id_facts_module._PATTERNS.items():
        expected = pc.sum(pc.match_substring_regex(column, pattern=pattern)).as_py()
        assert facts.odd.get(name, 0) == expected, name
