"""`VerticalKMeans`: scikit-learn's conventions, the public contract, and bad input."""

import functools
import inspect
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone, is_clusterer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from splitmeans import (
    Budget,
    Column,
    DataError,
    DecoyOptions,
    InsecureSeededNoise,
    ParameterError,
    PartySpec,
    SketchOptions,
    SplitmeansError,
    Study,
    VerticalKMeans,
)
from splitmeans.simulate.evaluation import normalised_loss
from splitmeans.study.id_rules import AS_IS

N_USERS = 300
# Far from everything else in the tests, so that a text with it has it from the data.
SECRET = 73.515625


@functools.cache
def blocks() -> tuple[np.ndarray, np.ndarray]:
    """Three clear groups, two columns in (0, 100) and three in (-1, 1)."""
    rng = np.random.default_rng(8)
    group = rng.integers(3, size=N_USERS)
    first = np.array([[20, 30], [50, 80], [85, 25]])[group] + rng.normal(0, 3, (N_USERS, 2))
    second = np.array([[-0.6, 0.1, 0.5], [0.1, -0.5, -0.4], [0.6, 0.6, 0.0]])[group]
    return first, second + rng.normal(0, 0.05, (N_USERS, 3))


BOUNDS = ((0, 100), (-1, 1))


def seeded(**changes: Any) -> VerticalKMeans:
    """A quick model whose result repeats."""
    facts: dict[str, Any] = {
        "n_clusters": 3,
        "epsilon": 4.0,
        "delta": 1e-4,
        "n_local_clusters": 4,
        "bounds": BOUNDS,
        "expected_users": N_USERS,
        "noise": InsecureSeededNoise(1),
        "random_state": 1,
    }
    return VerticalKMeans(**(facts | changes))


@functools.cache
def fitted() -> VerticalKMeans:
    return seeded().fit(list(blocks()))


# ---- scikit-learn's conventions ----


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_valid_tag_types,
        estimator_checks.check_mixin_order,
    ],
    ids=lambda check: check.__name__,
)
def test_scikit_learn_check(check):
    check("VerticalKMeans", VerticalKMeans())


def test_it_works_with_scikit_learns_tools():
    X = [np.random.default_rng(p).normal(scale=0.2, size=(300, 2)) for p in range(2)]
    model = VerticalKMeans(2, bounds=(-1, 1), random_state=0, noise=InsecureSeededNoise(1)).fit(X)
    assert is_clusterer(model)
    assert make_pipeline(model).set_output(transform="pandas").transform(X).shape == (300, 2)
    assert clone(model).get_params() == model.get_params()
    assert np.array_equal(pickle.loads(pickle.dumps(model)).labels_, model.labels_)


def test_a_parameter_that_is_not_there_cannot_be_set():
    with pytest.raises(ValueError, match="Invalid parameter 'clusters'"):
        VerticalKMeans().set_params(clusters=3)


def test_init_stores_its_arguments_and_nothing_else():
    model = VerticalKMeans()
    parameters = set(inspect.signature(VerticalKMeans.__init__).parameters) - {"self"}
    assert set(vars(model)) == parameters == set(model.get_params())


def test_init_checks_nothing():
    VerticalKMeans(-3, epsilon="much", membership="magic", bounds=None, noise=7)


def test_the_contract_s_signature():
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(VerticalKMeans).parameters.items()
    }
    contract = {
        "n_clusters": 5,
        "epsilon": 1.0,
        "delta": 1e-5,
        "membership": "decoy",
        "n_local_clusters": "auto",
        "bounds": None,  # there is no default that fits tables in own units
        "random_state": None,
    }
    assert {name: defaults[name] for name in contract} == contract
    assert is_clusterer(VerticalKMeans())


def test_a_clone_has_the_parameters_and_no_result():
    model = clone(fitted())
    assert not hasattr(model, "cluster_centers_")
    for name, value in fitted().get_params().items():
        assert getattr(model, name) == value
    np.testing.assert_array_equal(
        model.fit(list(blocks())).cluster_centers_, fitted().cluster_centers_
    )


def test_set_params_takes_effect():
    model = seeded().set_params(n_clusters=2).fit(list(blocks()))
    assert model.cluster_centers_.shape == (2, 5)


def test_fit_changes_no_parameter_and_no_data():
    model = seeded()
    before = {name: repr(value) for name, value in model.get_params().items()}
    rows = [block.copy() for block in blocks()]
    model.fit(rows)
    assert {name: repr(value) for name, value in model.get_params().items()} == before
    for row, block in zip(rows, blocks(), strict=True):
        np.testing.assert_array_equal(row, block)
    # Only learned attributes were added: their names end in an underscore, and of those that are
    # not for users begin with one.
    added = set(vars(model)) - set(model.get_params())
    assert all(name.endswith("_") != name.startswith("_") for name in added)


@pytest.mark.parametrize("method", ["predict", "score"])
def test_before_fit_there_is_nothing_to_ask(method):
    with pytest.raises(NotFittedError, match="VerticalKMeans instance is not fitted yet"):
        getattr(VerticalKMeans(), method)(list(blocks()))


def test_labels_are_worked_out_when_they_are_asked_for():
    model = seeded().fit(list(blocks()))
    assert model._tables
    assert model.labels_ is model.labels_
    # The rows are let go then, and a stored model never has them.
    assert not model._tables
    stored = pickle.dumps(seeded().fit(list(blocks())))
    assert b"PartyTable" not in stored
    again = pickle.loads(stored)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(model.predict(list(blocks())), model.labels_)
    with pytest.raises(AttributeError, match="not fitted"):
        _ = VerticalKMeans().labels_


def test_the_published_result_is_made_once():
    model = seeded().fit(list(blocks()))
    first = model.published_
    assert model.published_ is first
    assert model.fit(list(blocks())).published_ is not first
    with pytest.raises(AttributeError, match="not fitted"):
        _ = VerticalKMeans().published_


def test_labels_by_position_are_those_of_a_join():
    """Where ids are given tables are joined; by row number they are not, and it is the same."""
    rows, ids = list(blocks()), [f"u{user}" for user in range(N_USERS)]
    by_position = seeded().fit(rows)
    joined = seeded().fit([rows[0], rows[1][::-1]], ids=[ids, ids[::-1]])
    tables = by_position._prepared(rows)
    other = joined._prepared([rows[0], rows[1]])
    np.testing.assert_array_equal(joined.labels_, joined._nearest(other))
    pooled = np.hstack([table.features for table in tables]) / 2**20
    centres = by_position.result_.server.clustering.scaled_centres
    gaps = pooled[:, np.newaxis] - centres
    np.testing.assert_array_equal(by_position.labels_, np.square(gaps).sum(axis=2).argmin(axis=1))


def test_fit_returns_itself_and_takes_an_ignored_y():
    model = seeded()
    assert model.fit(list(blocks()), None) is model
    np.testing.assert_array_equal(seeded().fit_predict(list(blocks())), model.labels_)


def test_a_second_fit_replaces_the_first():
    model = seeded().fit(list(blocks()))
    shifted = [blocks()[0] + 5, blocks()[1]]
    centres = model.cluster_centers_
    model.fit(shifted)
    assert not np.array_equal(model.cluster_centers_, centres)
    np.testing.assert_array_equal(model.cluster_centers_, seeded().fit(shifted).cluster_centers_)


# ---- the contract ----


def test_centres_are_in_the_columns_own_units():
    centres = fitted().cluster_centers_
    assert centres.shape == (3, 5)
    assert fitted().n_features_in_ == 5
    for column, (low, high) in enumerate([(0, 100)] * 2 + [(-1, 1)] * 3):
        assert low <= centres[:, column].min() <= centres[:, column].max() <= high
    # The groups of the first column are at 20, 50 and 85; noise at epsilon 4 moves them little.
    np.testing.assert_allclose(np.sort(centres[:, 0]), [20, 50, 85], atol=12)


@pytest.mark.filterwarnings("ignore:asked for k = ")  # one hundredth of the range has users
def test_bounds_may_be_one_pair_for_all():
    model = seeded(bounds=(-1, 100)).fit(list(blocks()))
    assert model.cluster_centers_.min() >= -1
    assert model.cluster_centers_.max() <= 100


def test_bounds_may_name_every_column():
    bounds = [[(0, 100), (0, 200)], (-1, 1)]
    spelled = seeded(bounds=bounds)
    spelled.fit(list(blocks()))
    columns = [column for party in spelled.study_.parties for column in party.columns]
    assert [(column.low, column.high) for column in columns] == [
        (0, 100),
        (0, 200),
        (-1, 1),
        (-1, 1),
        (-1, 1),
    ]


def test_values_outside_the_bounds_are_clipped():
    rows = [block.copy() for block in blocks()]
    clipped = [block.copy() for block in blocks()]
    rows[0][5] = [1e9, -1e9]
    clipped[0][5] = [100, 0]
    with pytest.warns(UserWarning, match=r"party 'party1': x\d: 1 of 300 values lie outside 0 to"):
        model = seeded().fit(rows)
    np.testing.assert_array_equal(model.cluster_centers_, seeded().fit(clipped).cluster_centers_)


def test_predict_is_the_nearest_centre():
    model = fitted()
    labels = model.predict(list(blocks()))
    assert labels.shape == (N_USERS,)
    np.testing.assert_array_equal(labels, model.labels_)
    # Nearest in scaled units: the first party's columns count 50 to one.
    pooled = np.hstack([blocks()[0] / 50 - 1, blocks()[1]])
    centres = model.cluster_centers_.copy()
    centres[:, :2] = centres[:, :2] / 50 - 1
    distances = ((pooled[:, None] - centres) ** 2).sum(axis=2)
    np.testing.assert_array_equal(labels, distances.argmin(axis=1))
    few = model.predict([block[:7] for block in blocks()])
    np.testing.assert_array_equal(few, labels[:7])


def test_score_is_minus_the_normalised_loss():
    model = fitted()
    pooled = np.hstack([blocks()[0] / 50 - 1, blocks()[1]])
    scaled = model.result_.server.clustering.scaled_centres
    assert model.score(list(blocks())) == pytest.approx(-normalised_loss(pooled, scaled), rel=1e-4)
    assert model.score(list(blocks())) > -0.2  # the groups are tight, and were found


def test_the_synopsis_serves_any_k(tmp_path):
    synopsis = fitted().synopsis_
    assert synopsis.nodes.shape[1] == 5
    assert synopsis.weights.shape == (len(synopsis.nodes),)
    assert synopsis.cluster(2).centres.shape == (2, 5)
    assert len(synopsis.sample(10, random_state=0)) == 10
    synopsis.to_parquet(tmp_path / "synopsis.parquet")
    assert (tmp_path / "synopsis.parquet").stat().st_size > 0
    assert synopsis.choose_k(range(2, 4)) is not None


# Secure noise is another one every time, and may leave fewer segments than asked for.
@pytest.mark.filterwarnings("ignore:asked for k")
def test_privacy_says_what_was_spent():
    privacy = fitted().privacy_
    assert privacy.epsilon <= 4
    assert privacy.epsilon == pytest.approx(4, rel=0.03)
    assert privacy.delta == 1e-4
    assert [release.party for release in privacy.releases] == ["party1", "party2", "all parties"]
    assert "Privacy of study 'in-process'" in privacy.statement()
    assert "INSECURE TEST NOISE" in privacy.statement()
    secure = seeded(noise=None).fit(list(blocks())).privacy_
    assert secure.secure_noise
    assert "INSECURE" not in secure.statement()


def test_the_study_can_be_given_to_others():
    study = fitted().study_
    assert Study.from_toml(study.to_toml()) == study
    assert study.party_names == ("party1", "party2")
    assert study.budget == Budget(epsilon=4, delta=1e-4)


def test_fit_study_runs_a_given_study():
    study = Study(
        name="given",
        parties=(
            PartySpec(name="left", columns=(Column(name="a", low=0, high=100),)),
            PartySpec(name="right", columns=(Column(name="b", low=-1, high=1),)),
        ),
        n_clusters=2,
        budget=Budget(epsilon=4, delta=1e-5),
        n_local_clusters=4,
    )
    model = seeded().fit_study(study, [blocks()[0][:, :1], blocks()[1][:, :1]])
    assert model.cluster_centers_.shape == (2, 2)
    assert model.study_ is study


@pytest.mark.parametrize("membership", ["decoy", "sketch"])
def test_every_method_gives_what_the_contract_says(membership):
    model = seeded(membership=membership, sketch=SketchOptions(repetitions=256))
    model.fit(list(blocks()))
    assert model.cluster_centers_.shape == (3, 5)
    assert model.labels_.shape == (N_USERS,)
    assert np.isfinite(model.score(list(blocks())))
    assert len(model.privacy_.releases) >= 3
    assert model.result_.bytes_from("party1") > 0


# ---- frames, ids, seeds ----


def test_frames_keep_their_names_and_may_hold_more_types():
    first, second = blocks()
    frames = [
        pd.DataFrame(first, columns=["income", "age"]),
        pa.table({"x": second[:, 0], "y": second[:, 1], "z": second[:, 2]}),
    ]
    model = seeded().fit(frames)
    assert model.synopsis_.feature_names == (
        "party1: income",
        "party1: age",
        "party2: x",
        "party2: y",
        "party2: z",
    )
    np.testing.assert_array_equal(model.predict(frames), model.predict([first, second]))
    # Columns are found by name, so their order in a later frame does not matter.
    turned = [frames[0][["age", "income"]], frames[1].select(["z", "x", "y"])]
    np.testing.assert_array_equal(model.predict(turned), model.labels_)


def test_lists_of_lists_are_tables_too():
    model = seeded().fit([block.tolist() for block in blocks()])
    np.testing.assert_array_equal(
        model.cluster_centers_, seeded().fit(list(blocks())).cluster_centers_
    )


def test_ids_in_any_order_give_what_aligned_rows_give():
    rng = np.random.default_rng(2)
    orders = [rng.permutation(N_USERS) for _ in blocks()]
    shuffled = [block[order] for block, order in zip(blocks(), orders, strict=True)]
    model = seeded().fit(shuffled, ids=orders)
    np.testing.assert_array_equal(model.cluster_centers_, fitted().cluster_centers_)
    # Labels are in the order of the first party's rows.
    np.testing.assert_array_equal(model.labels_, fitted().labels_[orders[0]])


def test_ids_may_be_text_at_one_party_and_numbers_at_the_other():
    ids = np.arange(N_USERS)
    model = seeded().fit(list(blocks()), ids=[ids, [str(number) for number in ids]])
    np.testing.assert_array_equal(model.cluster_centers_, fitted().cluster_centers_)


def test_users_at_some_parties_only_are_joined_by_id():
    first, second = blocks()
    ids = [np.arange(20, N_USERS), np.arange(N_USERS - 30)]
    model = seeded().fit([first[20:], second[:-30]], ids=ids)
    assert model.labels_.shape == (N_USERS - 50,)


def test_it_repeats_with_seeds():
    again = seeded().fit(list(blocks()))
    np.testing.assert_array_equal(again.cluster_centers_, fitted().cluster_centers_)
    np.testing.assert_array_equal(again.synopsis_.weights, fitted().synopsis_.weights)


def test_other_seeds_give_other_results():
    noise = seeded(noise=InsecureSeededNoise(2)).fit(list(blocks()))
    assert not np.array_equal(noise.cluster_centers_, fitted().cluster_centers_)


# Secure noise is another one every time, and may leave fewer segments than asked for.
@pytest.mark.filterwarnings("ignore:asked for k")
def test_random_state_does_not_seed_the_noise():
    runs = [seeded(noise=None).fit(list(blocks())) for _ in range(2)]
    assert not np.array_equal(runs[0].synopsis_.weights, runs[1].synopsis_.weights)


def test_random_state_may_be_a_generator_of_old_style():
    model = seeded(random_state=np.random.RandomState(1))
    assert model.fit(list(blocks())).cluster_centers_.shape == (3, 5)


# ---- bad input ----


def with_value(value: Any) -> list[np.ndarray]:
    rows = [block.copy() for block in blocks()]
    rows[0][3, 1] = value
    return rows


FIRST, SECOND = blocks()
IDS = np.arange(N_USERS)

BAD_DATA = {
    "NaN": (with_value(np.nan), r"party 'party1', column 'x1' must not have missing.*row number 3"),
    "infinite": (with_value(np.inf), "column 'x1' must hold finite numbers; see row number 3"),
    "one dimension": ([FIRST[:, 0], SECOND], r"party 1 must be a table .* got shape \(300,\)"),
    "three dimensions": ([FIRST, SECOND[None]], "party 2 must be a table of rows and columns"),
    "a scalar": ([7, SECOND], r"party 1 must be a table of rows and columns, got shape \(\)"),
    "nothing": ([None, SECOND], "party 1 must be a table of rows and columns"),
    "text": ([np.full((N_USERS, 2), "a"), SECOND], "column 'x0' must hold numbers"),
    "one array": (np.zeros((2, 5, 3)), "X must be a list with one array .* got ndarray"),
    "one frame": (pd.DataFrame(FIRST), "X must be a list with one array .* got DataFrame"),
    "None": (None, "X must be a list with one array .* got NoneType"),
    "a string": ("ab", "X must be a list with one array .* got str"),
    "one party": ([FIRST], "X must hold at least 2 parties, got 1"),
    "no party": ([], "X must hold at least 2 parties, got 0"),
    "unequal rows": ([FIRST[:-1], SECOND], r"same number of rows, got \[299, 300\]; give ids"),
    "empty party": ([FIRST[:0], SECOND], "party 'party1': the table must have at least one row"),
}


@pytest.mark.parametrize(("X", "message"), BAD_DATA.values(), ids=BAD_DATA)
def test_bad_data_is_refused(X, message):
    with pytest.raises(DataError, match=message):
        seeded().fit(X)


BAD_IDS = {
    "twice": ([np.where(IDS == 7, 3, IDS), IDS], "ids must be different.*row number 7"),
    "missing": ([[None, *IDS[1:]], IDS], "ids must not be missing; see row number 0"),
    "fractions": ([IDS + 0.5, IDS], "ids must be text or whole numbers"),
    "too few": ([IDS[:-1], IDS], "ids must have one id for each of 300 rows, got 299"),
    "one list": ([IDS], r"ids must be .*one list .*per party \(2\)"),
    "flat": (IDS, r"ids must be .*one list .*per party \(2\)"),
    "empty text": ([["", *map(str, IDS[1:])], IDS], "ids must not be empty text"),
}


@pytest.mark.parametrize(("ids", "message"), BAD_IDS.values(), ids=BAD_IDS)
def test_bad_ids_are_refused(ids, message):
    with pytest.raises(DataError, match=message):
        seeded().fit(list(blocks()), ids=ids)


BAD_PARAMETERS = {
    "k = 1": ({"n_clusters": 1}, "n_clusters must be >= 2, got 1"),
    "k = 2.5": ({"n_clusters": 2.5}, "n_clusters must be a whole number >= 1, got 2.5"),
    "k > rows": ({"n_clusters": 301}, r"n_clusters must be <= the number of rows \(300\), got 301"),
    "k' = 1": ({"n_local_clusters": 1}, "n_local_clusters must be a whole number >= 2, got 1"),
    "k' text": ({"n_local_clusters": "few"}, "n_local_clusters must be a whole number >= 2"),
    "k' > rows": ({"n_local_clusters": 301}, r"n_local_clusters must be <= the number of rows"),
    "k' too large": ({"n_local_clusters": 251}, "n_local_clusters must be <= 250, got 251"),
    "too few cells": ({"n_local_clusters": 2, "n_clusters": 5}, "fewer than n_clusters=5; raise"),
    "epsilon 0": ({"epsilon": 0}, "epsilon must be > 0, got 0"),
    "epsilon -1": ({"epsilon": -1.0}, "epsilon must be > 0, got -1.0"),
    "epsilon NaN": ({"epsilon": float("nan")}, "epsilon must be a finite number, got nan"),
    "epsilon infinite": ({"epsilon": float("inf")}, "epsilon must be a finite number, got inf"),
    "epsilon text": ({"epsilon": "1"}, "epsilon must be a finite number, got '1'"),
    "delta 0": ({"delta": 0}, "delta must be between 0 and 1 .* got 0"),
    "delta 1": ({"delta": 1}, "delta must be between 0 and 1 .* got 1"),
    "delta -1": ({"delta": -0.1}, "delta must be between 0 and 1 .* got -0.1"),
    "membership": ({"membership": "magic"}, "membership must be one of 'decoy'.* got 'magic'"),
    "grid": ({"grid": "magic"}, "grid must be one of 'auto'.* got 'magic'"),
    "expected_users": ({"expected_users": 0}, "expected_users must be a whole number >= 1"),
}


@pytest.mark.parametrize(("change", "message"), BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_bad_parameters_are_refused(change, message):
    with pytest.raises(ParameterError, match=message):
        seeded(**change).fit(list(blocks()))


BAD_BOUNDS = {
    "nothing": (None, r"bounds must be given: .*party 1: x0, x1; .*Write bounds=\[{'x0': \(low"),
    "a number": (3, "bounds must be .low, high."),
    "one number": ((1,), "bounds must be .low, high."),
    "three numbers": ((0, 1, 2), "bounds must be .low, high."),
    "too few parties": ([(0, 1)], "got 1 entries for 2 parties"),
    "too many parties": ([(0, 1)] * 3, "got 3 entries for 2 parties"),
    "half a pair": ([(0, 1), (0,)], "got .* for party 2"),
    "too many columns": ([([0, 0, 0], 1), (0, 1)], "got .* for party 1"),
    "turned": ((1, -1), "column 'x0' must have low < high, got 1.0 and -1.0"),
    "equal": ((1, 1), "column 'x0' must have low < high"),
    "NaN": ((float("nan"), 1), "low of column 'x0' must be a finite number"),
    "infinite": ((0, float("inf")), "high of column 'x0' must be a finite number"),
}


@pytest.mark.parametrize(("bounds", "message"), BAD_BOUNDS.values(), ids=BAD_BOUNDS)
def test_bad_bounds_are_refused(bounds, message):
    with pytest.raises(ParameterError, match=message):
        seeded(bounds=bounds).fit(list(blocks()))


def test_predict_checks_its_data_like_fit():
    with pytest.raises(DataError, match="X must hold 2 parties, got 3"):
        fitted().predict([FIRST, SECOND, SECOND])
    with pytest.raises(DataError, match="must not have missing values; see row number 3"):
        fitted().predict(with_value(np.nan))
    with pytest.raises(DataError, match="X must be a list"):
        fitted().score(FIRST)
    with pytest.raises(DataError, match="an array must have the study's 2 columns"):
        fitted().predict([SECOND, SECOND])


@pytest.mark.parametrize("method", ["predict", "score"])
def test_predict_and_score_refuse_unequal_rows(method):
    with pytest.raises(DataError, match="same number of rows"):
        getattr(fitted(), method)([FIRST, SECOND[:-10]])


UNTYPED = {
    "ragged rows": ({}, [[[1, 2], [3]], SECOND], {}, DataError),
    "ids a number": ({}, [FIRST, SECOND], {"ids": 3}, DataError),
    "bounds text": ({"bounds": ("a", "b")}, [FIRST, SECOND], {}, ParameterError),
    "bounds None": ({"bounds": (None, 1)}, [FIRST, SECOND], {}, ParameterError),
    "sketch": ({"sketch": 3}, [FIRST, SECOND], {}, ParameterError),
    "decoy": ({"decoy": "many"}, [FIRST, SECOND], {}, ParameterError),
    "noise": ({"noise": 3}, [FIRST, SECOND], {}, ParameterError),
}


@pytest.mark.parametrize(("change", "X", "options", "kind"), UNTYPED.values(), ids=UNTYPED)
def test_further_bad_input_is_refused_by_a_typed_error(change, X, options, kind):
    with pytest.raises(kind, match=r"must"):
        seeded(**change).fit(X, **options)


def test_a_frame_s_id_column_is_not_clustered():
    frame = pd.DataFrame({"id": IDS, "a": FIRST[:, 0]})
    with pytest.raises(DataError, match=r"fit\(\.\.\., ids='id'\) if it says who is who"):
        seeded().fit([frame, SECOND])


def leaky_inputs() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Tables that break a rule and hold a value which no message may show."""
    rows = [np.full((20, 2), SECRET), np.full((20, 2), SECRET)]
    gap = [row.copy() for row in rows]
    gap[0][2, 0] = np.nan
    mixed = [[[SECRET, "x"]] * 20, rows[1]]
    texts = [np.full((20, 2), str(SECRET)), rows[1]]
    ids = np.full(20, f"user {SECRET}")
    unique = np.array([f"{SECRET} {number}" for number in range(20)])
    return {
        "missing": (gap, {}),
        "mixed": (mixed, {}),
        "text": (texts, {}),
        "unequal": ([rows[0][:3], rows[1]], {}),
        "flat": ([rows[0][:, 0], rows[1]], {}),
        "repeated id": (rows, {"ids": [ids, ids]}),
        "other ids": (rows, {"ids": [unique, unique[::-1] + "x"]}),
        "fraction ids": (rows, {"ids": [rows[0][:, 0], unique]}),
    }


@pytest.mark.parametrize("name", list(leaky_inputs()))
def test_messages_never_hold_data(name):
    X, options = leaky_inputs()[name]
    with pytest.raises(SplitmeansError, match=r"\w") as found:
        seeded(n_clusters=2).fit(X, **options)
    problem: BaseException | None = found.value
    while problem is not None:
        assert str(SECRET) not in str(problem)
        hidden = problem.__suppress_context__
        problem = problem.__cause__ or (None if hidden else problem.__context__)


def test_options_reach_the_study():
    model = seeded(decoy=DecoyOptions(collusion_epsilon=6.0), grid="many").fit(list(blocks()))
    assert model.study_.decoy.collusion_epsilon == 6.0
    assert model.result_.plan.grid_method == "many"


def test_a_named_table_without_its_id_column_is_refused_in_a_study():
    """Row numbers would join the wrong people without a word."""
    columns = (Column(name="x", low=0, high=1),)
    study = Study(
        name="joined",
        parties=(PartySpec(name="a", columns=columns), PartySpec(name="b", columns=columns)),
        n_clusters=2,
        budget=Budget(epsilon=1, delta=1e-5),
    )
    named = {"x": np.linspace(0, 1, 50)}
    with_ids = named | {"id": np.arange(50)}
    with pytest.raises(DataError, match="party 'b' must have the id column 'id'"):
        seeded().fit_study(study, [with_ids, named])
    assert seeded().fit_study(study, [with_ids, with_ids]).cluster_centers_.shape == (2, 2)


def test_fit_study_aligns_tables_of_different_length_by_their_id_columns():
    columns = (Column(name="x", low=-1, high=1),)
    study = Study(
        name="overlap",
        parties=(PartySpec(name="a", columns=columns), PartySpec(name="b", columns=columns)),
        n_clusters=2,
        budget=Budget(epsilon=4, delta=1e-5),
        ids=AS_IS,
        expected_users=2000,
    )
    rng = np.random.default_rng(0)
    rows = rng.choice([-0.5, 0.5], size=(3000, 1)) + rng.normal(0, 0.05, size=(3000, 2))
    tables = [
        {"id": np.arange(2500), "x": rows[:2500, 0]},
        {"id": np.arange(1000, 3000), "x": rows[1000:, 1]},
    ]
    model = seeded().fit_study(study, tables)
    # 1,500 users are at both; the deviation of the estimate is below 100.
    assert abs(model.synopsis_.total - 1500) < 600


# ---- segments: letters by size, and only those with users ----


def test_segments_are_letters_by_size():
    """The rows of the centres, labels, sizes and names follow one order, that of result folders."""
    model = seeded(n_clusters=3)
    model.fit(list(blocks()))
    clustering = model.result_.server.clustering
    assert model.segment_names_ == ("A", "B", "C")
    assert (np.diff(clustering.sizes) <= 0).all()
    np.testing.assert_array_equal(model.cluster_centers_, clustering.centres)
    page = model._repr_html_()
    assert ">A<" in page
    assert ">0</th>" not in page


@pytest.mark.parametrize("seed", range(6))
def test_a_fit_that_counts_few_or_nobody_says_so_and_raises_nothing(seed):
    """Thirty users at epsilon 0.05: of these six fits most count nobody.

    Where a cell got through, its pseudo-users are in places enough for all segments, or it has no
    pseudo-users and is one place.
    """
    rows = np.random.default_rng(seed).uniform(-1, 1, size=(30, 4))
    parts = [rows[:, :2], rows[:, 2:]]
    model = VerticalKMeans(
        5,
        epsilon=0.05,
        bounds=(-1, 1),
        n_local_clusters=8,
        noise=InsecureSeededNoise(seed),
        random_state=0,
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(parts)
    k = len(model.cluster_centers_)
    said = " ".join(str(one.message) for one in told)
    assert ("hold no user" in said) == (k == 0)
    assert (f"asked for k = 5, found {k} with users" in said) == (0 < k < 5)
    assert model.cluster_centers_.shape == (k, 4)
    assert len(model.segment_names_) == k
    assert len(np.unique(model.cluster_centers_, axis=0)) == k
    assert (model.result_.server.clustering.sizes > 0).all()
    if k == 0:
        assert set(model.labels_) == {-1}
        assert model.score(parts) == pytest.approx(-np.square(rows).sum(axis=1).mean(), rel=1e-4)
        assert "the released counts hold no user" in model._repr_html_()
    else:
        assert set(model.labels_) <= set(range(k))
        assert model.score(parts) < 0
    assert set(model.predict(parts)) == set(model.labels_)
    repr(model.result_)


def test_too_few_users_at_all_parties_are_said_and_everyone_has_segments():
    """Three parties of which two share a thousand users each, and all of them twenty."""
    rng = np.random.default_rng(8)
    rows = np.where(np.arange(3000)[:, np.newaxis] % 2, 0.5, -0.5) + rng.normal(0, 0.05, (3000, 3))
    ids = [np.r_[:2000], np.r_[:20, 1000:3000], np.r_[:1000, 2000:3000]]
    blocks = [rows[own, [party]][:, np.newaxis] for party, own in enumerate(ids)]
    options = {"noise": InsecureSeededNoise(3), "random_state": 3}
    model = VerticalKMeans(2, epsilon=2.0, bounds=(-1, 1), expected_users=2000, **options)
    with pytest.warns(UserWarning, match="too few users are at all parties"):
        model.fit(blocks, ids=ids)
    assert model.synopsis_.total == 0
    assert len(model.cluster_centers_) == 0
    model.set_params(population="everyone").fit(blocks, ids=ids)
    assert model.synopsis_.total == pytest.approx(3000, rel=0.1)
    np.testing.assert_allclose(np.sort(model.cluster_centers_, axis=0)[0], -0.5, atol=0.1)
    np.testing.assert_allclose(np.sort(model.cluster_centers_, axis=0)[1], 0.5, atol=0.1)
