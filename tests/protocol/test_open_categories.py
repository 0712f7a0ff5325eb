"""A whole run whose categories are learned: names above a threshold, the rest at "(other)"."""

import dataclasses
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans import protocol
from splitmeans.errors import DataError, ParameterError, ProtocolError, StudyError
from splitmeans.local.law import COUNT_UNITS
from splitmeans.party.open_categories import count_hashes, learn_categories
from splitmeans.plan import settle
from splitmeans.plan.categories_stage import (
    CATEGORIES,
    CategoriesLaw,
    OpenColumn,
    decode_names,
    encode_names,
    is_name,
)
from splitmeans.plan.enough_users import learning_warnings
from splitmeans.plan.settle import make_plan, plan_for
from splitmeans.plan.views import party_events
from splitmeans.privacy.events import GaussianEvent, RareEvent, covers_all
from splitmeans.privacy.noise import InsecureSeededNoise, SecureNoise
from splitmeans.privacy.pld import delta_for, epsilon_for, flatten, gap_of
from splitmeans.study import Budget, Column, PartySpec, Study
from splitmeans.study.parties import MOST_NAMES
from splitmeans.table.checks import open_columns
from splitmeans.table.checks.open_columns import name_hashes
from splitmeans.table.prepare import prepare_table
from splitmeans.table.settled import settle_table
from splitmeans.table.sources.open import open_source
from tests.disk import on_disk

USERS = 4000


def make_study(*, columns=(), epsilon=4.0, **options):
    job = Column(name="job", categories="open", missing="spread")
    town = Column(name="town", categories=("Bern",), others="open", missing="level")
    return Study(
        name="open",
        parties=(
            PartySpec(name="bank", columns=(job, *columns)),
            PartySpec(name="shop", columns=(Column(name="visits", low=0, high=30), town)),
        ),
        n_clusters=3,
        n_local_clusters=4,
        budget=Budget(epsilon=epsilon, delta=1e-6),
        expected_users=USERS,
        **options,
    )


def make_data(seed=0):
    rng = np.random.default_rng(seed)
    segment = rng.integers(3, size=USERS)
    job = np.array(["nurse", "teacher", "clerk"], dtype=object)[segment]
    job[:40] = [f"only {number}" for number in range(40)]
    job[40:60] = None
    town = np.where(segment == 2, "Zu\u0308rich", "Bern").astype(object)  # not in normal form
    town[60:80] = None
    bank = {"id": np.arange(USERS), "job": job}
    shop = {"id": np.arange(USERS), "visits": 8.0 * segment + rng.random(USERS), "town": town}
    return bank, shop


def tables_of(study, data):
    return [prepare_table(party, own) for party, own in zip(study.parties, data, strict=True)]


def test_how_a_study_says_it():
    assert Column(name="c", categories="open") == Column(name="c", others="open")
    study = make_study()
    assert Study.from_toml(study.to_toml()) == study
    assert 'others = "open"' in study.to_toml()
    for changes, message in (
        ({"others": "closed"}, "others of column 'c' must be 'open'"),
        ({"categories": "closed"}, "must be a list of names, or 'open'"),
        ({"others": "open", "low": 1}, "must not have low or high"),
        ({"categories": ("a", "(other)"), "others": "open"}, "must not list"),
        ({"categories": ("a", "a"), "others": "open"}, "different names"),
    ):
        with pytest.raises(StudyError, match=message):
            Column(name="c", **changes)


def test_a_run_learns_names_that_many_have_and_no_other():
    study = make_study()
    result = protocol.run(
        study,
        tables_of(study, make_data()),
        noise=InsecureSeededNoise(1),
        rng=np.random.default_rng(0),
    )
    plan = result.plan
    assert [stage.name for stage in plan.stages] == [CATEGORIES]
    assert plan.party("bank").columns[0].categories == ("clerk", "nurse", "teacher", "(other)")
    assert plan.party("shop").columns[1].levels == ("Bern", "Z\u00fcrich", "(other)", "(missing)")
    assert "bank: job clerk | nurse | teacher | (other)" in result.privacy.statement()
    assert result.privacy.epsilon <= 4
    centres = result.server.clustering.centres
    names = result.server.synopsis.feature_names
    assert "bank.job=nurse" in names or any("job=nurse" in name for name in names)
    # Shares of a column's levels add up to one.
    np.testing.assert_allclose(centres[:, :4].sum(axis=1), 1, atol=1e-6)


def test_costs_after_learning_are_covered_whatever_was_learned():
    study = make_study()
    first = make_plan(study)
    budget = study.budget
    for names in ([], ["a"], ["b", "c"], [f"n{number}" for number in range(MOST_NAMES)]):
        values = encode_names([names])
        later = make_plan(study, released=((values, values),))
        assert covers_all(first.events, later.events)
        assert all(map(covers_all, party_events(first), party_events(later)))
        assert epsilon_for(later.events, budget.delta) <= budget.epsilon
        assert len(later.party("bank").columns[0].categories) == max(2, len(names) + 1)
    with pytest.MonkeyPatch.context() as patch:
        # The broken twin: local noise that follows what was learned.
        patch.setattr(settle, "_LESS_PRECISE", (-0.01,))
        with pytest.raises(Exception, match="other noise than the first one"):
            make_plan(study, released=((encode_names([["a", "x"]]),) * 2,))


def test_the_plan_before_a_run_assumes_the_most():
    study = make_study()
    first = make_plan(study)
    assert first.party("bank").columns[0].categories[-2:] == ("category 24", "(other)")
    assumed = plan_for(study, users=USERS)
    assert assumed.local == first.local
    assert covers_all(first.events, assumed.events)
    # The slack of discrete noise has room for any number of levels, which costs next to nothing.
    assert gap_of(flatten(first.events)).loss < 1e-4


def test_the_threshold_hides_what_one_user_has():
    law = CategoriesLaw(columns=(OpenColumn(place=0, name="c", listed=()),) * 2, mu=0.1, shown=1e-3)
    gaussian, rare = law.event.parts
    assert isinstance(gaussian, GaussianEvent)
    assert rare == RareEvent(probability=2e-3)
    assert 1 / gaussian.noise_multiplier == pytest.approx(0.1, rel=1e-6)
    assert gaussian.realised.sensitivity == math.ceil(math.sqrt(2) * COUNT_UNITS)
    # 1e-3 is 3.09 deviations, of sqrt(2) / 0.1 users; a count of 1 must pass them.
    assert law.threshold == pytest.approx(1 + 3.0902 * 14.142, rel=1e-3)
    replaced = law.replaced_event.parts
    assert replaced[1] == RareEvent(probability=4e-3)
    assert replaced[0].noise_multiplier == pytest.approx(gaussian.noise_multiplier / math.sqrt(2))


def test_rare_outcomes_are_added_to_delta():
    normal = GaussianEvent(noise_multiplier=5.0)
    rare = RareEvent(probability=1e-6)
    assert gap_of((rare,)).rare == 1e-6
    without, together = delta_for((normal,), 0.5), delta_for((normal, rare), 0.5)
    assert together == pytest.approx(without + 1e-6, rel=1e-3)
    assert together >= without + 1e-6


def test_counts_of_hashes_by_hand():
    data = {"id": np.arange(5), "job": ["a", "b", "a", None, "z"]}
    party = make_study().parties[0]
    table = prepare_table(party, data)
    assert table.names == {"job": ("a", "b", "z")}
    counts = count_hashes(table.raw_rows, place=0, hashes=name_hashes(["z", "none", "a", "b"]))
    assert counts.tolist() == [1, 0, 2, 1]


def test_odd_names_stay_with_the_others():
    names = ["", " a", "b ", "c\n", "x" * 49, "é" * 25, "(other)", "(missing)", "\u0000"]
    assert not any(is_name(name) for name in names)
    assert all(is_name(name) for name in ["a", "é" * 24, "x" * 48, "日本", "a|b", '"'])
    law = CategoriesLaw(columns=(OpenColumn(place=0, name="c", listed=("k",)),), mu=5.0, shown=1e-6)
    values = [name for name in (*names, "k", "fine") for _ in range(200)]
    party = PartySpec(name="p", columns=(Column(name="c", categories=("k",), others="open"),))
    table = prepare_table(party, {"id": np.arange(len(values)), "c": values})
    found = learn_categories(law, table.rows, table.names, noise=InsecureSeededNoise(0))
    assert found == (("fine",),)
    many = [f"n{number:02}" for number in range(40) for _ in range(100 + number)]
    table = prepare_table(party, {"id": np.arange(len(many)), "c": many})
    ((*kept,),) = learn_categories(law, table.rows, table.names, noise=InsecureSeededNoise(0))
    assert len(kept) == MOST_NAMES
    assert kept == sorted(kept)
    assert "n39" in kept


class CountedRows:
    """Rows that know how often they were walked."""

    def __init__(self, rows):
        self.rows, self.walks = rows, 0

    def total(self, part):
        self.walks += 1
        return self.rows.total(part)


@pytest.mark.parametrize("values", [["k"] * 9, ["k"] * 8 + ["new"], ["k"] * 8 + [None]])
def test_how_often_rows_are_walked_does_not_depend_on_them(values):
    law = CategoriesLaw(columns=(OpenColumn(place=0, name="c", listed=("k",)),), mu=5.0, shown=1e-6)
    party = PartySpec(
        name="p",
        columns=(Column(name="c", categories=("k",), others="open", missing="level"),),
    )
    table = prepare_table(party, {"id": np.arange(len(values)), "c": values})
    rows = CountedRows(table.rows)
    assert learn_categories(law, rows, table.names, noise=SecureNoise()) == ((),)
    assert rows.walks == 1


def test_the_order_of_names_decides_nothing():
    law = CategoriesLaw(columns=(OpenColumn(place=0, name="c", listed=()),), mu=5.0, shown=1e-6)
    party = PartySpec(name="p", columns=(Column(name="c", categories="open"),))
    values = [f"n{number:02}" for number in range(40) for _ in range(20)]
    table = prepare_table(party, {"id": np.arange(len(values)), "c": values})
    # Without noise all counts are the same, and ties decide which names there is room for.
    for names in (table.names["c"], table.names["c"][::-1]):
        found = learn_categories(law, table.rows, {"c": names}, noise=_NoNoise())
        assert found == (tuple(f"n{number:02}" for number in range(MOST_NAMES)),)


class _NoNoise(InsecureSeededNoise):
    def __init__(self):
        super().__init__(0)

    def gaussian(self, scale, size):
        return np.zeros(size, dtype=np.int64)


def test_two_names_of_one_hash_are_refused_before_anything_is_sent(monkeypatch):
    # With hashes of 8 bits some of 300 names share one; with 64 bits nobody meets such names.
    party = PartySpec(name="p", columns=(Column(name="c", categories="open"),))
    data = {"id": np.arange(300), "c": [f"name {number}" for number in range(300)]}
    prepare_table(party, data)
    monkeypatch.setattr(open_columns, "_BYTES", 1)
    with pytest.raises(DataError, match="two categories with the same 64-bit hash"):
        prepare_table(party, data)


@given(st.lists(st.text(min_size=1, max_size=12).filter(is_name), max_size=24, unique=True))
@settings(max_examples=50)
def test_names_travel_as_whole_numbers(names):
    values = encode_names([names, []])
    assert decode_names(values) == (tuple(names), ())
    assert len(values) == len(encode_names([[], []]))
    assert max(map(abs, values)) < 2**53


def test_values_that_are_no_names_are_refused():
    study = make_study()
    stage = make_plan(study).stages[0]
    good = list(encode_names([["a", "b"]]))
    assert decode_names(stage.checked("shop", good)) == (("a", "b"),)

    def changed(place, value):
        values = list(good)
        values[place] = value
        return values

    for values, message in (
        (changed(0, 49), "must be text"),
        (changed(0, -1), "must be text"),
        (changed(1, 2**50), "must be text"),
        (changed(2, 1), "nothing behind it"),
        (changed(1, 0xFF << 40), "must be text"),
        (list(encode_names([["a", "a"]])), "must differ"),
        (list(encode_names([["Bern"]])), "must differ"),
        (list(encode_names([["(other)"]])), "printable text"),
        (list(encode_names([["a\u0007"]])), "printable text"),
    ):
        with pytest.raises(ProtocolError, match=message):
            stage.checked("shop", values)


def test_more_than_a_message_holds_is_refused_before_anything_is_spent():
    columns = tuple(Column(name=f"c{number}", categories="open") for number in range(40))
    with pytest.raises(ParameterError, match="give public bounds or categories for some of them"):
        make_plan(make_study(columns=columns))


def test_too_few_users_are_refused_before_anything_is_spent():
    law = make_plan(make_study()).stages[0].law_of("bank")
    enough = math.ceil(10 * law.threshold)
    plan = make_plan(dataclasses.replace(make_study(), expected_users=enough))
    with pytest.raises(ParameterError, match="categories = 'open' needs more users") as refused:
        make_plan(dataclasses.replace(make_study(), expected_users=enough - 20))
    assert f"expected_users = {enough - 20:,}" in str(refused.value)
    assert f"about {enough:,} users are enough" in str(refused.value)
    (warning,) = learning_warnings(plan.stages, users=enough)
    assert f"the {enough:,} users expected" in warning
    assert "'bank' (10 %), 'shop' (10 %)" in warning
    assert learning_warnings(plan.stages, users=5 * enough) == ()


def test_engines_apply_learned_categories_alike(tmp_path):
    study = make_study()
    party = study.parties[1]
    settled = make_plan(study, released=((encode_names([["x"]]), encode_names([["Zürich"]])),))
    shop = {name: pa.array(own, from_pandas=True) for name, own in make_data()[1].items()}
    pq.write_table(pa.table(shop), tmp_path / "shop.parquet")
    rows = settle_table(
        prepare_table(party, pa.table(shop)), party, settled.party("shop")
    ).rows.gather()
    # As if the categories had been public from the beginning.
    assert np.array_equal(rows, prepare_table(settled.party("shop"), pa.table(shop)).raw_rows)
    with open_source(party, tmp_path / "shop.parquet", options=on_disk(workers=1)) as table:
        assert sorted(table.names["town"]) == ["Bern", "Zürich"]
        stored = settle_table(table, party, settled.party("shop"))
        assert np.array_equal(stored.rows.gather(), rows)
    bank, party = make_data()[0], study.parties[0]
    learned = settled.party("bank")
    spread = settle_table(prepare_table(party, bank), party, learned).rows.gather()
    assert np.array_equal(spread, prepare_table(learned, bank).raw_rows)
