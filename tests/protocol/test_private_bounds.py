"""A whole run whose bounds are learned: the plan, the values that travel, and what follows."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitmeans import ParameterError, VerticalKMeans, protocol
from splitmeans.errors import ProtocolError
from splitmeans.plan.bounds_stage import (
    BOUNDS,
    FOUND,
    LearnedBounds,
    decode_bounds,
    encode_bounds,
)
from splitmeans.plan.enough_users import learning_warnings
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.settle import make_plan, plan_for
from splitmeans.plan.stages import flat_values
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study import Budget, Column, PartySpec, Study
from splitmeans.table.prepare import prepare_table
from splitmeans.table.settled import grid_block, settle_table
from splitmeans.table.sources.open import open_source
from tests.disk import on_disk

USERS = 6000


def make_study(*, epsilon=4.0, users=USERS, n_local_clusters=4):
    return Study(
        name="own units",
        parties=(
            PartySpec(
                name="bank",
                columns=(
                    Column(name="income", bounds="private", low=0),
                    Column(name="region", categories=("north", "south")),
                    Column(name="opened", bounds="private", missing="midpoint"),
                ),
            ),
            PartySpec(name="shop", columns=(Column(name="visits", low=0, high=30),)),
        ),
        n_clusters=3,
        n_local_clusters=n_local_clusters,
        budget=Budget(epsilon=epsilon, delta=1e-6),
        expected_users=users,
    )


def make_data(seed=0):
    rng = np.random.default_rng(seed)
    segment = rng.integers(3, size=USERS)
    opened = 1.5e9 + 1e6 * segment + 1e5 * rng.normal(size=USERS)
    opened[:50] = np.nan
    bank = {
        "id": np.arange(USERS),
        "income": np.exp(8 + 0.7 * segment + 0.2 * rng.normal(size=USERS)),
        "region": np.where(segment == 1, "north", "south"),
        "opened": opened,
    }
    shop = {"id": np.arange(USERS), "visits": 8.0 * segment + rng.random(USERS)}
    return bank, shop


def test_a_run_learns_bounds_and_everything_follows_them():
    study = make_study()
    first = make_plan(study)
    assert [stage.name for stage in first.stages] == [BOUNDS]
    assert first.stages[0].parties == ("bank",)
    data = make_data()
    tables = [prepare_table(party, own) for party, own in zip(study.parties, data, strict=True)]
    result = protocol.run(study, tables, noise=InsecureSeededNoise(3), rng=np.random.default_rng(0))
    plan = result.plan
    assert plan.events == first.events
    assert plan.local == first.local
    income, region, opened = plan.party("bank").columns
    assert region == study.parties[0].columns[1]
    assert 0 <= income.low < income.high < 60_000
    assert 1.49e9 < opened.low < opened.high < 1.51e9
    assert opened.missing == "midpoint"
    assert plan.party("shop") == study.party("shop")
    # Centres are in the columns' own units, and in the learned bounds.
    centres = result.server.clustering.centres
    assert np.all((centres[:, 3] >= opened.low) & (centres[:, 3] <= opened.high))
    assert sorted(np.rint(centres[:, -1] / 8)) == [0, 1, 2]
    assert (
        f"bank: income {income.low:.12g} to {income.high:.12g}; opened"
        in result.privacy.statement()
    )
    assert "bounds of income, opened, from" in PrivacyFacts.for_study(study).statement()


def test_the_plan_before_a_run_has_its_noise_and_its_length():
    study = make_study()
    first = make_plan(study)
    assumed = plan_for(study, users=USERS)
    assert assumed.events == first.events
    values = encode_bounds(
        (
            LearnedBounds(low=0.0, high=0.1, state=FOUND),
            LearnedBounds(low=-1e300, high=1e-300, state=FOUND),
        )
    )
    later = make_plan(study, released=((values,),))
    assert later.events == first.events
    assert [column.high for column in later.party("bank").columns] == [0.1, None, 1e-300]
    assert later.fingerprint != first.fingerprint
    assert flat_values(later.released) == values


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, -1), (2, -(2**53)), (1, 2000), (4, 7), (9, -1)],
    ids=["below the limit", "low above high", "no float", "no state", "no other state"],
)
def test_values_that_are_no_bounds_are_refused(place, value):
    stage = make_plan(make_study()).stages[0]
    good = (LearnedBounds(low=1.0, high=2.0, state=FOUND),) * 2
    values = list(encode_bounds(good))
    assert decode_bounds(stage.checked("bank", values)) == good
    values[place] = value
    with pytest.raises(ProtocolError, match="party 'bank' released bounds of columns: "):
        stage.checked("bank", values)


def test_too_few_users_are_refused_before_anything_is_spent():
    with pytest.raises(
        ParameterError, match=r"needs more users or a larger epsilon.*\d+ users are"
    ):
        make_plan(make_study(epsilon=0.5, users=1000))


def test_the_number_of_users_that_is_asked_for_is_enough_and_few_are_warned_of():
    with pytest.raises(ParameterError) as refused:
        make_plan(make_study(users=300))
    said = re.search(r"about ([\d,]+) users are enough", str(refused.value))
    assert said is not None
    needed = int(said[1].replace(",", ""))
    plan = make_plan(make_study(users=needed))
    (warning,) = learning_warnings(plan.stages, users=needed)
    assert f"as a share of the {needed:,} users expected" in warning
    assert "'bank' (10 %)" in warning
    assert learning_warnings(plan.stages, users=5 * needed + 100) == ()


def test_engines_apply_learned_bounds_alike(tmp_path):
    study = make_study()
    party = study.parties[0]
    settled = plan_for(study, users=USERS).party("bank")
    bank = dict(make_data()[0])
    bank["opened"] = pa.array(bank["opened"], from_pandas=True)
    pq.write_table(pa.table(bank), tmp_path / "bank.parquet")
    in_memory = prepare_table(party, pa.table(bank))
    rows = settle_table(in_memory, party, settled).rows.gather()
    assert np.array_equal(rows, grid_block(in_memory.raw_rows, agreed=party, settled=settled))
    # As if the bounds had been public from the beginning.
    assert np.array_equal(rows, prepare_table(settled, pa.table(bank)).raw_rows)
    with open_source(party, tmp_path / "bank.parquet", options=on_disk(workers=1)) as table:
        stored = settle_table(table, party, settled)
        assert np.array_equal(stored.rows.gather(), rows)
        total = stored.rows.total(_column_sums)
        assert np.array_equal(total, rows.sum(axis=0))
        labels = np.concatenate(list(stored.labelled(_sign).each(_labels)))
        assert np.array_equal(labels, _sign(rows))
    with open_source(party, tmp_path / "bank.parquet") as table:
        assert len(settle_table(table, party, settled)) == USERS


def _column_sums(rows):
    return rows.sum(axis=0)


def _sign(rows):
    return (rows[:, 0] > 0).astype(np.int32)


def _labels(block):
    return block.labels


def test_the_estimator_learns_bounds():
    bank, shop = make_data()
    model = VerticalKMeans(
        3,
        epsilon=4.0,
        bounds=["private", (0, 30)],
        expected_users=USERS,
        n_local_clusters=4,
        noise=InsecureSeededNoise(0),
        random_state=0,
    )
    X = [bank["income"].reshape(-1, 1), shop["visits"].reshape(-1, 1)]
    model.fit(X)
    assert model.cluster_centers_[:, 0].min() >= 0
    assert model.cluster_centers_[:, 0].max() < 60_000
    assert np.array_equal(model.predict(X), model.labels_)
    assert model.score(X) < 0
    assert model.result_.plan.parties[0].columns[0].high > 1000


def fit_amounts(*, share, epsilon=4.0):
    """Fit a column of amounts that are mostly zero; return the model and its learned bounds."""
    rng = np.random.default_rng(0)
    users = 5 * USERS
    amount = np.where(rng.random(users) < share, 0.0, np.exp(5 + rng.normal(size=users)))
    segment = rng.integers(3, size=users)
    model = VerticalKMeans(
        3,
        epsilon=epsilon,
        delta=1e-6,
        bounds=["private", (-1, 11)],
        expected_users=users,
        noise=InsecureSeededNoise(0),
        random_state=0,
    )
    model.fit([amount[:, None], (5.0 * segment + rng.normal(size=users).clip(-1, 1))[:, None]])
    (column,) = model.result_.plan.party("party1").columns
    return model, column


def test_amounts_that_are_mostly_zero_are_not_clipped_away(recwarn):
    model, column = fit_amounts(share=0.98)
    # 1 % of the others have more than 1520.
    assert column.low <= 0
    assert 800 < column.high < 4000
    assert model.cluster_centers_[:, 0].max() < column.high
    assert not [note for note in recwarn if "far off" in str(note.message)]
    assert model.published_.remark is None


def test_too_few_others_are_said_wherever_a_result_is_shown():
    with pytest.warns(UserWarning, match="learned bounds may be far off at party1: x0 .*too few"):
        model, _ = fit_amounts(share=0.9995)
    assert "learned bounds may be far off" in model.published_.remark
