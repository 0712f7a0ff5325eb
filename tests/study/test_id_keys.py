"""Several keys: the first that all parties have, found from the study alone."""

import pytest

from splitmeans.errors import StudyError
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.settle import make_plan
from splitmeans.study import Budget, Column, IdKey, IdRules, KeyColumn, PartySpec, Study

NUMBER = IdKey(name="customer number", type="integer")
EMAIL = IdKey(name="email", type="email")
PHONE = IdKey(name="phone", type="phone", country="+49")


def party(name, *held, **rest):
    columns = tuple(KeyColumn(key=key, column=column) for key, column in held)
    own = (Column(name="x", low=0, high=1),)
    return PartySpec(name=name, columns=own, id_columns=columns, **rest)


def study(*parties, keys=(NUMBER, EMAIL, PHONE), **rest):
    facts = {"name": "test", "n_clusters": 2, "budget": Budget(epsilon=1, delta=1e-6), **rest}
    return Study(parties=parties, ids=IdRules(keys=keys), **facts)


BANK = party("bank", ("customer number", "kunde"), ("email", "mail"), ("phone", "tel"))
SHOP = party("shop", ("phone", "mobile"), ("email", "e-mail"))


def test_the_first_key_that_all_have():
    agreed = study(BANK, SHOP)
    assert agreed.matching_key == EMAIL
    assert [own.id_column for own in agreed.parties] == ["mail", "e-mail"]
    assert agreed.id_rules == IdRules(type="email")
    # The order is the study's, not a party's.
    assert study(BANK, SHOP, keys=(PHONE, EMAIL, NUMBER)).id_rules == IdRules(
        type="phone", country="+49"
    )
    assert study(BANK, BANK_TWO).matching_key == NUMBER


BANK_TWO = party("branch", ("customer number", "nr"))


def test_a_study_is_read_back_as_it_was_and_has_one_hash():
    agreed = study(BANK, SHOP)
    again = Study.from_toml(agreed.to_toml())
    assert again == agreed
    assert again.hash == agreed.hash
    assert again.id_rules.type == "email"
    assert "matched" not in agreed.to_toml()


def test_studies_without_keys_have_the_hash_they_had():
    plain = {
        "name": "test",
        "n_clusters": 2,
        "budget": {"epsilon": 1, "delta": 1e-6},
        "ids": {"type": "integer", "pattern": "[0-9]+"},
        "parties": [
            {"name": name, "columns": [{"name": "x", "low": 0, "high": 1}]} for name in ("a", "b")
        ],
    }
    found = Study.from_mapping(plain)
    assert found.to_mapping()["ids"] == {
        "type": "integer",
        "pattern": "[0-9]+",
    }
    assert "id_columns" not in found.to_mapping()["parties"][0]


@pytest.mark.parametrize(
    ("parties", "message"),
    [
        ((BANK, party("shop")), "no key of ids.keys .*bank: customer .*; shop: none"),
        ((BANK_TWO, SHOP), "no key of ids.keys is in the id_columns of all parties"),
        ((BANK, party("shop", ("tax", "t"))), "'shop' has the key 'tax' .*lists customer number"),
        (
            (BANK, party("shop", ("email", "mail"), id_column="nr")),
            "'shop' must have no id_column beside its id_columns.*'email', its column 'mail'",
        ),
    ],
)
def test_keys_that_match_nobody_are_refused(parties, message):
    with pytest.raises(StudyError, match=message):
        study(*parties)


def test_other_rules():
    with pytest.raises(StudyError, match="lists a key twice"):
        party("bank", ("email", "a"), ("email", "b"))
    with pytest.raises(StudyError, match="must not list a column of ids among its columns"):
        party("bank", ("email", "x"))
    with pytest.raises(StudyError, match="different names"):
        IdRules(keys=(EMAIL, EMAIL))
    with pytest.raises(StudyError, match="with each key, not beside them"):
        IdRules(type="email", keys=(EMAIL,))
    with pytest.raises(StudyError, match=r"id_columns of a party need ids.keys"):
        Study(name="t", parties=(BANK, SHOP), n_clusters=2, budget=Budget(epsilon=1, delta=1e-6))
    with pytest.raises(StudyError, match=r"ids.country needs ids.type = 'phone'"):
        IdRules(type="email", country="+49")
    for country in ("49", "+049", "+", 49):
        with pytest.raises(StudyError, match=r"ids.country must be a calling code"):
            IdRules(type="phone", country=country)
    with pytest.raises(StudyError, match=r"ids.trunk must be up to two digits"):
        IdRules(type="phone", trunk="0")
    with pytest.raises(StudyError, match=r"ids.trunk must be up to two digits"):
        IdRules(type="phone", country="+49", trunk="abc")
    with pytest.raises(StudyError, match=r"ids.type must be"):
        IdKey(name="email", type="mail")
    with pytest.raises(StudyError, match="name of a key"):
        IdKey(name=" ")


def test_the_statement_names_the_key():
    agreed = study(BANK, SHOP)
    make_plan(agreed)
    text = PrivacyFacts.for_study(agreed).statement()
    assert "email, the first key that all parties have, as 'email'" in " ".join(text.split())
