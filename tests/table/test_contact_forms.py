"""Ids without case, e-mail addresses and phone numbers: what is one user, what is refused."""

import pytest

from splitmeans.errors import DataError
from splitmeans.study import Column, PartySpec
from splitmeans.study.id_rules import IdRules
from splitmeans.table.ids.canonical import canonical_text
from splitmeans.table.prepare import prepare_table


def forms(values, **rules):
    return canonical_text(values, rules=IdRules(**rules)).to_pylist()


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("Ab-7", "ab-7"),
        (" AB-7\u00a0", "ab-7"),
        ("STRASSE", "strasse"),
        ("Stra\u00dfe", "strasse"),
        ("\ufb01x", "fix"),  # a ligature
        ("\uff17", "7"),  # a full-width digit
        ("\u0130", "i\u0307"),  # a capital i with a dot
        ("e\u0301", "\u00e9"),
        ("\u03a3\u03c2", "\u03c3\u03c3"),  # both small sigmas
    ],
)
def test_text_without_case(written, form):
    assert forms([written], type="caseless") == [form]
    # The canonical form is its own.
    assert forms([form], type="caseless") == [form]


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("Ann@Example.ORG", "ann@example.org"),
        (" ann@example.org\n", "ann@example.org"),
        ("ann+news@mail.example.org", "ann+news@mail.example.org"),
        ("a.n.n@xn--bcher-kva.example", "a.n.n@xn--bcher-kva.example"),
        ("J\u00d6RG@example.org", "j\u00f6rg@example.org"),
    ],
)
def test_email_addresses(written, form):
    assert forms([written], type="email") == [form]
    assert forms([form], type="email") == [form]


@pytest.mark.parametrize(
    "written",
    [
        "ann",
        "ann@example",
        "ann@@example.org",
        "Ann <ann@example.org>",
        "mailto:ann@example.org",
        "ann@example.org.",
        "ann@-example.org",
        "ann@b\u00fccher.example",
        "ann smith@example.org",
        '"ann smith"@example.org',
        "a" * 65 + "@example.org",
    ],
)
def test_what_is_no_email_address(written):
    with pytest.raises(DataError, match=r"ids must be e-mail addresses .*row number 0") as caught:
        forms([written], type="email")
    assert written not in str(caught.value)


def test_blanks_that_folding_makes_do_not_count():
    # Normal form KC takes a diaeresis that stands alone apart: a blank, then a mark.
    assert forms(["\u00a8a", " \u0308a"], type="caseless") == ["\u0308a"] * 2


GERMAN = {"type": "phone", "country": "+49"}
ITALIAN = {"type": "phone", "country": "+39", "trunk": ""}
AMERICAN = {"type": "phone", "country": "+1", "trunk": "1"}
RUSSIAN = {"type": "phone", "country": "+7", "trunk": "8"}


@pytest.mark.parametrize(
    ("rules", "written", "form"),
    [
        (GERMAN, "+49 30 1234567", "+49301234567"),
        (GERMAN, "0049-30-1234567", "+49301234567"),
        (GERMAN, "030/123 45 67", "+49301234567"),
        (GERMAN, "(030) 1234567", "+49301234567"),
        (GERMAN, "+49 (0)30 1234567", "+49301234567"),
        (GERMAN, "+49 030 1234567", "+49301234567"),
        (GERMAN, "+44 20 7946 0018", "+442079460018"),
        (ITALIAN, "06 1234 5678", "+390612345678"),
        (ITALIAN, "+39 06 1234 5678", "+390612345678"),
        (AMERICAN, "(212) 555-0123", "+12125550123"),
        (AMERICAN, "1-212-555-0123", "+12125550123"),
        (AMERICAN, "+1 212 555 0123", "+12125550123"),
        (AMERICAN, "+33 (1) 42 68 53 00", "+33142685300"),
        (RUSSIAN, "8 (812) 345-67-89", "+78123456789"),
        (RUSSIAN, "+7 (812) 345-67-89", "+78123456789"),
        (RUSSIAN, "+7 (8) 812 345-67-89", "+78123456789"),
        (GERMAN, "+44-(0)20-7946-0018", "+442079460018"),
        (GERMAN, "(+44) ( 0 ) 20 7946 0018", "+442079460018"),
        (GERMAN, "00 358 (0)9 1234567", "+35891234567"),
        ({"type": "phone"}, "+1 212.555.0123", "+12125550123"),
    ],
)
def test_phone_numbers(rules, written, form):
    assert forms([written], **rules) == [form]
    assert forms([form], **rules) == [form]


@pytest.mark.parametrize(
    ("rules", "written"),
    [
        (GERMAN, "1234567"),
        (GERMAN, "4930 1234567"),
        (GERMAN, "030 1234567 ext. 5"),
        (GERMAN, "+49 30"),
        (GERMAN, "+4930123456789012"),
        (GERMAN, "0800-TAXI-NOW"),
        (GERMAN, "+0 30 1234567"),
        (AMERICAN, "555-0123"),
        ({"type": "phone"}, "030 1234567"),
    ],
)
def test_what_is_no_phone_number(rules, written):
    with pytest.raises(DataError, match=r"ids must be phone numbers .*row number 0") as caught:
        forms([written], **rules)
    assert written not in str(caught.value)


def test_two_ways_to_write_one_user_are_refused_together():
    spec = PartySpec(name="bank", columns=(Column(name="x", low=0, high=1),))
    table = {"id": ["Ann@example.org", "ann@example.org"], "x": [0.1, 0.2]}
    with pytest.raises(DataError, match=r"ids must be different .compared as e-mail addresses"):
        prepare_table(spec, table, rules=IdRules(type="email"))
