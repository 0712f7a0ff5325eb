"""Study, Column, PartySpec, Budget, SketchOptions: rules, TOML in and out, canonical hash."""

import copy
import dataclasses
import functools
import hashlib
import json
import math
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitmeans.errors import ParameterError, StudyError
from splitmeans.study import Budget, Column, DecoyOptions, PartySpec, SketchOptions, Study
from splitmeans.study.id_rules import IdRules
from splitmeans.wire.identity import Identity

VECTORS = Path(__file__).parent.parent / "vectors" / "study.json"

MAPPING = {
    "name": "customers",
    "n_clusters": 3,
    "budget": {"epsilon": 1.0, "delta": 1e-5},
    "parties": [
        {
            "name": "bank",
            "columns": [
                {"name": "income", "low": 0, "high": 9000, "weight": 2.0, "missing": "midpoint"},
                {"name": "branch", "categories": ["north", "south"]},
            ],
        },
        {
            "name": "shop",
            "id_column": "customer",
            "columns": [{"name": "visits", "low": 0, "high": 30, "missing": 0}],
        },
    ],
}


@functools.cache
def public_key(number):
    """The public identity, as text, of one of several participants."""
    seed = bytes([number]) * 32
    return Identity(signing=seed, sealing=seed).public.to_text()


def number(**changes):
    return Column(**{"name": "x", "low": 0, "high": 1} | changes)


def choice(**changes):
    return Column(**{"name": "c", "categories": ("a", "b")} | changes)


def party(name="bank", **changes):
    return PartySpec(**{"name": name, "columns": (number(),)} | changes)


def study(**changes):
    defaults = {
        "name": "s",
        "parties": (party("bank"), party("shop")),
        "n_clusters": 2,
        "budget": Budget(epsilon=1.0, delta=1e-5),
    }
    return Study(**defaults | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "column name must be text"),
        ({"name": " x"}, "column name must be text without spaces around it, got ' x'"),
        ({"name": 3}, "column name must be text"),
        ({"name": "a\nb"}, "at most 200 printable"),
        ({"name": "x" * 201}, "at most 200 printable"),
        ({"low": None}, "column 'x' needs low and high"),
        ({"high": None}, "column 'x' needs low and high"),
        ({"low": "0"}, "low of column 'x' must be a finite number, got '0'"),
        ({"high": float("inf")}, "high of column 'x' must be a finite number, got inf"),
        ({"low": True}, "low of column 'x' must be a finite number, got True"),
        ({"low": 1}, "must have low < high, got 1 and 1"),
        ({"low": 2}, "must have low < high, got 2 and 1"),
        ({"weight": 0}, "weight of column 'x' must be > 0, got 0"),
        ({"weight": float("nan")}, "weight of column 'x' must be a finite number"),
        (
            {"missing": "drop"},
            "missing of column 'x' must be 'error', 'midpoint', 'skip'.* or a number",
        ),
        ({"missing": float("nan")}, "missing of column 'x' must be a finite number"),
        ({"missing": True}, "missing of column 'x' must be a finite number"),
    ],
)
def test_number_column_rules(changes, message):
    with pytest.raises(StudyError, match=message):
        number(**changes)


def test_a_party_needs_a_column_that_everybody_has():
    skipped = Column(name="x", low=0, high=1, missing="skip")
    kind = Column(name="kind", categories=("a", "b"), missing="skip")
    with pytest.raises(StudyError, match="'bank' must have a column whose missing rule is not"):
        PartySpec(name="bank", columns=(skipped, kind))
    level = Column(name="kind", categories=("a", "b"), missing="level")
    assert PartySpec(name="bank", columns=(skipped, level)).columns[0] == skipped


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"low": 0}, "has categories, so it must not have low or high"),
        ({"high": 1}, "has categories, so it must not have low or high"),
        ({"categories": ("a",)}, "must be two or more different names"),
        ({"categories": ("a", "a")}, "must be two or more different names"),
        ({"categories": (1, 2)}, "must be text; write numbers in quotes"),
        ({"missing": 0}, "missing of column 'c' must be 'error', 'skip' .*'level' .* or 'spread'"),
        ({"missing": "midpoint"}, "'level' .* or 'spread' .*categories have no middle"),
        (
            {"missing": "level", "categories": ("a", "(missing)")},
            r"categories of column 'c' must not list '\(missing\)'",
        ),
    ],
)
def test_categorical_column_rules(changes, message):
    with pytest.raises(StudyError, match=message):
        choice(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "bank "}, "party name must be text without spaces around it"),
        ({"name": "server"}, "a party must not be named 'server'; choose another name"),
        ({"columns": (number(), number())}, "party 'bank' lists a column twice"),
        ({"id_column": "x"}, "must not list its id column among its columns"),
    ],
)
def test_party_rules(changes, message):
    with pytest.raises(StudyError, match=message):
        party(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0}, "epsilon must be > 0, got 0"),
        ({"epsilon": float("inf")}, "epsilon must be a finite number, got inf"),
        ({"delta": 0}, r"delta must be between 0 and 1 \(both excluded\), got 0"),
        ({"delta": 1}, r"delta must be between 0 and 1 \(both excluded\), got 1"),
    ],
)
def test_budget_rules(changes, message):
    with pytest.raises(StudyError, match=message):
        Budget(**{"epsilon": 1.0, "delta": 1e-5} | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"repetitions": 15}, "repetitions must be a whole number >= 16, got 15"),
        ({"repetitions": 65_537}, "repetitions must be <= 65536, got 65537"),
        ({"gamma": 0}, "gamma must be between 0.01 and 3, got 0"),
        ({"gamma": "fine"}, "gamma must be a finite number, got 'fine'"),
        ({"gamma": 0.009}, "gamma must be between 0.01 and 3, got 0.009"),
        ({"gamma": 3.1}, "gamma must be between 0.01 and 3, got 3.1"),
    ],
)
def test_sketch_rules(changes, message):
    with pytest.raises(StudyError, match=message):
        SketchOptions(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "study name must be text"),
        ({"parties": (party(),)}, "a study needs at least 2 parties, got 1"),
        ({"parties": (party(), party())}, "party names must be different"),
        ({"n_clusters": 1}, "n_clusters must be >= 2, got 1, which is for a study of counts"),
        ({"n_clusters": 2.0}, "n_clusters must be a whole number >= 1, got 2.0"),
        ({"membership": "magic"}, "membership must be one of .*, got 'magic'"),
        ({"grid": "magic"}, "grid must be one of .*, got 'magic'"),
        ({"n_local_clusters": 1}, "n_local_clusters must be a whole number >= 2, got 1"),
        ({"n_local_clusters": "two"}, "n_local_clusters must be a whole number >= 2, got 'two'"),
    ],
)
def test_study_rules(changes, message):
    with pytest.raises(StudyError, match=message):
        study(**changes)


def test_study_error_is_a_parameter_error_and_a_value_error():
    assert issubclass(StudyError, ParameterError)
    assert issubclass(StudyError, ValueError)


def test_party_is_found_by_name():
    assert study().party("shop").name == "shop"
    assert study().party_names == ("bank", "shop")
    with pytest.raises(StudyError, match="has no party 'tax'; its parties are bank, shop"):
        study().party("tax")


def test_lists_become_tuples_so_that_studies_are_values():
    made = party(columns=[choice(categories=["a", "b"])])
    assert made.columns == (choice(),)
    assert hash(study(parties=[made, party("shop")])) == hash(study(parties=(made, party("shop"))))


def test_toml_round_trip(tmp_path):
    original = Study.from_mapping(MAPPING)
    again = Study.from_toml(original.to_toml())
    assert again == original
    assert again.hash == original.hash
    path = tmp_path / "study.toml"
    path.write_text(original.to_toml(), encoding="utf-8")
    assert Study.read(path) == original


def test_toml_leaves_out_what_does_not_apply():
    bank = Study.from_mapping(MAPPING).to_mapping()["parties"][0]
    income, branch = bank["columns"]
    assert "categories" not in income
    assert "low" not in branch
    assert "high" not in branch


def test_read_errors_name_the_file(tmp_path):
    path = tmp_path / "study.toml"
    with pytest.raises(StudyError, match=r"study\.toml: cannot be read \(No such file"):
        Study.read(path)
    path.write_text("name = ", encoding="utf-8")
    with pytest.raises(StudyError, match=r"study\.toml: study is not valid TOML"):
        Study.read(path)
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(StudyError, match=r"study\.toml: .*utf-8"):
        Study.read(path)


def changed(*path, to):
    mapping = copy.deepcopy(MAPPING)
    place = mapping
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return mapping


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (("colour",), "study has an unknown key 'colour'; known keys are name, parties"),
        (("budget", "colour"), r"study\.budget has an unknown key 'colour'; known keys are eps"),
        (("sketch",), r"study\.sketch must be a table of keys and values"),
        (("parties", 1, "colour"), r"study\.parties\[1\] has an unknown key 'colour'"),
        (
            ("parties", 0, "columns", 1, "colour"),
            r"study\.parties\[0\]\.columns\[1\] has an unknown key 'colour'",
        ),
        (("budget",), r"study\.budget must be a table of keys and values"),
        (("parties",), r"study\.parties must be a list of tables \(\[\[parties\]\]\)"),
        (("parties", 0), r"study\.parties\[0\] must be a table of keys and values"),
        (("parties", 0, "columns"), r"study\.parties\[0\]\.columns must be a list of tables"),
        (
            ("parties", 0, "columns", 1, "categories"),
            "categories of column 'branch' must be",
        ),
    ],
)
def test_unknown_keys_and_wrong_shapes_are_refused(path, message):
    with pytest.raises(StudyError, match=message):
        Study.from_mapping(changed(*path, to="red"))


def test_unknown_sketch_key_is_refused():
    with pytest.raises(StudyError, match=r"study\.sketch has an unknown key 'rows'"):
        Study.from_mapping(changed("sketch", to={"rows": 3}))


@pytest.mark.parametrize("key", ["name", "parties", "n_clusters", "budget"])
def test_required_keys(key):
    mapping = {name: value for name, value in MAPPING.items() if name != key}
    with pytest.raises(StudyError, match=f"study must have the key '{key}'"):
        Study.from_mapping(mapping)


def test_a_study_must_be_a_table():
    with pytest.raises(StudyError, match="study must be a table"):
        Study.from_mapping([])


def test_hash_does_not_see_how_a_number_is_written_or_keys_are_ordered():
    base = Study.from_mapping(MAPPING).hash
    assert Study.from_mapping(changed("parties", 0, "columns", 0, "low", to=0.0)).hash == base
    assert Study.from_mapping(changed("parties", 0, "columns", 0, "low", to=-0.0)).hash == base
    assert Study.from_mapping(changed("budget", "epsilon", to=1)).hash == base
    assert Study.from_mapping(dict(reversed(MAPPING.items()))).hash == base
    assert Study.from_mapping(changed("grid", to="auto")).hash == base  # a default, spelled out


def other_value(item, value):
    """Return a valid value that differs from `value`, for the field of this name."""
    others = {
        "name": "other",
        "n_clusters": 4,
        "membership": "sketch",
        "expected_users": 77,
        "decoy": DecoyOptions(max_users=5000),
        "max_users": 5001,
        "n_local_clusters": 6,
        "grid": "pairs",
        "sketch": SketchOptions(gamma=0.5),
        "budget": Budget(epsilon=2.0, delta=1e-5),
        "parties": tuple(reversed(value)) if item == "parties" else None,
        "columns": tuple(reversed(value)) if item == "columns" else None,
        "id_column": "user",
        "low": -7.0,
        "high": 12_345.0,
        "weight": 0.5,
        "categories": ("south", "north"),
        "missing": "level" if value == "error" else "error",  # the one with "error" has categories
        "epsilon": 0.3,
        "delta": 1e-6,
        "repetitions": 1024,
        "gamma": 0.5,
        "public_key": public_key(9),
        "server_key": public_key(9),
        "ids": IdRules(type="text"),
        "type": "integer",
    }
    return others[item]


def every_change(value):
    """Yield copies of a study (or a part of one) with exactly one field changed."""
    for item in dataclasses.fields(value):
        old = getattr(value, item.name)
        # Bounds exist only on number columns and so on.
        if old is None or old == ():
            continue
        new = other_value(item.name, old)
        if new != old:
            yield dataclasses.replace(value, **{item.name: new})
        if dataclasses.is_dataclass(old):
            for part in every_change(old):
                yield dataclasses.replace(value, **{item.name: part})
        if isinstance(old, tuple) and dataclasses.is_dataclass(old[0]):
            for position, part in enumerate(old):
                for new_part in every_change(part):
                    parts = (*old[:position], new_part, *old[position + 1 :])
                    yield dataclasses.replace(value, **{item.name: parts})


def test_any_changed_field_changes_the_hash():
    original = Study.from_mapping(MAPPING)
    variants = list(every_change(original))
    hashes = {variant.hash for variant in variants}
    assert original.hash not in hashes
    assert len(hashes) == len(set(variants))
    assert len(variants) >= 22


def with_keys(bank=1, shop=2, server=3):
    """The mapping with these public keys; None leaves one out, other text stands as it is."""
    mapping = copy.deepcopy(MAPPING) | {"ids": {"type": "as-is"}}
    for place, key, chosen in (
        (mapping["parties"][0], "public_key", bank),
        (mapping["parties"][1], "public_key", shop),
        (mapping, "server_key", server),
    ):
        if chosen is not None:
            place[key] = public_key(chosen) if isinstance(chosen, int) else chosen
    return mapping


def test_a_study_has_the_keys_of_all_participants_or_none():
    held = Study.from_mapping(with_keys())
    assert held.public_keys == {
        "bank": public_key(1),
        "shop": public_key(2),
        "server": public_key(3),
    }
    assert Study.from_mapping(MAPPING).public_keys == {}
    assert Study.from_toml(held.to_toml()) == held


@pytest.mark.parametrize(
    "present",
    [
        {"bank"},
        {"shop"},
        {"server"},
        {"bank", "shop"},
        {"bank", "server"},
        {"shop", "server"},
    ],
    ids=lambda present: "+".join(sorted(present)),
)
def test_some_keys_only_are_refused(present):
    left_out = {name: None for name in {"bank", "shop", "server"} - present}
    with pytest.raises(StudyError, match="either every party has a public_key and the study a"):
        Study.from_mapping(with_keys(**left_out))


@pytest.mark.parametrize("same", [{"shop": 1}, {"server": 1}, {"server": 2}], ids=str)
def test_one_key_for_two_participants_is_refused(same):
    with pytest.raises(StudyError, match="the parties and the server must have different keys"):
        Study.from_mapping(with_keys(**same))


def test_one_key_written_in_two_ways_is_refused():
    with pytest.raises(StudyError, match="key"):
        Study.from_mapping(with_keys(shop=f"{public_key(1)} "))


@pytest.mark.parametrize(
    ("who", "where"),
    [
        ("bank", "public_key of party 'bank'"),
        ("shop", "public_key of party 'shop'"),
        ("server", "server_key"),
    ],
)
def test_text_that_is_no_key_is_refused_and_its_owner_named(who, where):
    good = public_key(1)
    wrong = "A" if good[-1] != "A" else "B"
    for text, message in (
        ("", "identity text must start with 'smid1-'"),
        ("red", "identity text must start with 'smid1-'"),
        (good[:-1], "was it cut"),
        (good[:-1] + wrong, "typing error"),
        (good.replace("smid1-", "smid2-"), "has version 2"),
    ):
        with pytest.raises(StudyError, match=f"^{where}: .*{message}"):
            Study.from_mapping(with_keys(**{who: text}))
    for value in (7.5, b"smid1-", ["smid1-"]):
        with pytest.raises(StudyError, match=f"^{where} must be text as `splitmeans keys show`"):
            Study.from_mapping(with_keys(**{who: value}))


def test_keys_are_part_of_the_hash():
    without = Study.from_mapping(MAPPING)
    held = Study.from_mapping(with_keys())
    variants = [
        without,
        held,
        Study.from_mapping(with_keys(bank=9)),
        Study.from_mapping(with_keys(shop=9)),
        Study.from_mapping(with_keys(server=9)),
        Study.from_mapping(with_keys(bank=2, shop=1)),
    ]
    assert len({variant.hash for variant in variants}) == len(variants)
    hashes = {variant.hash for variant in every_change(held)}
    assert held.hash not in hashes
    assert len(hashes) == len(set(every_change(held)))


def test_a_study_without_keys_has_the_form_it_had_before_there_were_keys():
    mapping = Study.from_mapping(MAPPING).to_mapping()
    assert "server_key" not in mapping
    assert all("public_key" not in party for party in mapping["parties"])


def test_committed_vector():
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
    for vector in vectors:
        canonical = b"splitmeans study 1\n" + vector["canonical"].encode("utf-8")
        assert hashlib.sha256(canonical).hexdigest() == vector["hash"]
        assert Study.from_toml(vector["toml"]).hash == vector["hash"], vector["what"]


@pytest.mark.parametrize("ids", [None, {}, {"pattern": "[0-9]+"}], ids=str)
def test_studies_between_organisations_need_a_rule_for_ids(ids):
    """Nobody can compare ids, and a person with two spellings loses more than is stated."""
    mapping = {key: value for key, value in with_keys().items() if key != "ids"}
    if ids is not None:
        mapping["ids"] = ids
    with pytest.raises(StudyError, match="needs a rule for ids") as failure:
        Study.from_mapping(mapping)
    # What the text says to add is a study that loads.
    shown = str(failure.value).partition("[ids]\n")[2].splitlines()[0]
    added = tomllib.loads(f"[ids]\n{shown}")
    assert Study.from_mapping(mapping | added).id_rules.type == "integer"


@pytest.mark.parametrize("kind", ["as-is", "text", "integer", "uuid"])
def test_every_rule_for_ids_will_do_and_stays_in_the_file(kind):
    study = Study.from_mapping(MAPPING | {"ids": {"type": kind}})
    assert study.id_rules == IdRules(type=kind)
    assert f'[ids]\ntype = "{kind}"' in study.to_toml()
    assert Study.from_toml(study.to_toml()) == study


def test_sketches_are_for_two_parties():
    third = {"name": "third", "columns": [{"name": "x", "low": 0, "high": 1}]}
    three = MAPPING | {"parties": [*MAPPING["parties"], third]}
    for changes in ({"membership": "sketch"}, {"grid": "pairs"}):
        with pytest.raises(StudyError, match="more than two parties needs membership='decoy'"):
            Study.from_mapping(three | changes)
    assert len(Study.from_mapping(three).parties) == 3


def test_the_largest_number_of_parties():
    columns = [{"name": "x", "low": 0, "high": 1}]
    parties = [{"name": f"party {number}", "columns": columns} for number in range(17)]
    assert len(Study.from_mapping(MAPPING | {"parties": parties[:16]}).parties) == 16
    with pytest.raises(StudyError, match="at most 16 parties, got 17"):
        Study.from_mapping(MAPPING | {"parties": parties})


def test_population():
    third = {"name": "third", "columns": [{"name": "x", "low": 0, "high": 1}]}
    three = MAPPING | {"parties": [*MAPPING["parties"], third]}
    default = Study.from_mapping(three)
    shared = Study.from_mapping(three | {"population": "shared"})
    everyone = Study.from_mapping(three | {"population": "everyone"})
    assert default.population is None
    assert shared == default
    assert shared.hash == default.hash
    assert everyone.hash != default.hash
    assert Study.from_toml(everyone.to_toml()) == everyone
    with pytest.raises(StudyError, match="population must be one of 'shared', 'everyone'"):
        Study.from_mapping(three | {"population": "all"})
    with pytest.raises(StudyError, match="needs three or more parties"):
        Study.from_mapping(MAPPING | {"population": "everyone"})


# ---- delta and the number of users ----


def test_the_sketch_has_fine_registers_unless_the_study_says_otherwise():
    assert Study.from_mapping(MAPPING).sketch.base == 0.1
    assert Study.from_mapping(MAPPING | {"sketch": {"gamma": 0.5}}).sketch.base == 0.5


@pytest.mark.parametrize("option", ["local", "accounting", "allow_unproved"])
def test_there_is_one_local_algorithm_and_one_accounting(option):
    with pytest.raises(StudyError, match=f"study has an unknown key '{option}'"):
        Study.from_mapping(MAPPING | {option: "auto"})


@pytest.mark.parametrize("delta", [1e-4, 2e-4, 0.1])
def test_a_delta_of_one_over_the_users_or_more_is_refused(delta):
    """0.1 with 10,000 users would let a mechanism publish a thousand rows as they are."""
    rule = (
        r"delta must be below 1 / expected_users = 1 / 10000 = 0.0001 .*, got .*write delta = 1e-05"
    )
    with pytest.raises(StudyError, match=rule):
        study(budget=Budget(epsilon=1.0, delta=delta))


def test_a_delta_below_one_over_the_users_is_taken():
    assert study(budget=Budget(epsilon=1.0, delta=math.nextafter(1e-4, 0))).budget.delta < 1e-4
    rule = r"1 / 1000000 = 1e-06 .*, got 1e-05.*write delta = 1e-07 "
    with pytest.raises(StudyError, match=rule):
        study(expected_users=1_000_000)


@given(users=st.integers(1, 10**12))
def test_the_delta_that_the_error_says_is_taken(users):
    largest = Budget(epsilon=1.0, delta=min(1 / users, 0.5))
    try:
        study(expected_users=users, budget=largest)
    except StudyError as problem:
        said = float(re.search(r"write delta = (\S+) or less", str(problem))[1])
        assert study(expected_users=users, budget=Budget(epsilon=1.0, delta=said))
    else:
        assert users == 1


def test_a_collusion_epsilon_that_changes_no_label_is_refused():
    assert DecoyOptions(collusion_epsilon=50).collusion_epsilon == 50
    with pytest.raises(
        StudyError, match=r"collusion_epsilon must be <= 50, got 800: .*leave it out"
    ):
        DecoyOptions(collusion_epsilon=800)
