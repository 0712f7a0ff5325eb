"""Algorithm 1 and PaperKMeans: budgets, phases that see messages alone, and every combination."""

import ast
import dataclasses
import inspect
import itertools
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from splitmeans.errors import DataError, ParameterError
from splitmeans.paper import PaperKMeans, Settings, mixed_gaussian, vertical_clustering
from splitmeans.paper import algorithm1 as phases
from splitmeans.paper.algorithm1 import (
    ESTIMATES,
    LOCALS,
    MEMBERSHIPS,
    PartyMessage,
    default_local_k,
    server_phase,
)
from splitmeans.paper.metrics import normalised_loss
from splitmeans.privacy.noise import InsecureSeededNoise, SecureNoise

ROWS = mixed_gaussian(2_000, random_state=1).rows
PARTS = [ROWS[:, :3], ROWS[:, 3:6], ROWS[:, 6:]]
BASE = Settings(n_clusters=5, epsilon=2.0, delta=1e-4, n_parties=3, membership="dpfmps")


def test_division_of_the_budget_by_hand() -> None:
    budget = BASE.budget
    assert budget.epsilon_0 == pytest.approx(0.04)
    assert budget.epsilon_1 == budget.epsilon_2 == pytest.approx(0.98 * 2 / 6)
    assert budget.delta_2 == pytest.approx(1e-4 / 3)
    spent = budget.epsilon_0 + 3 * (budget.epsilon_1 + budget.epsilon_2)
    assert spent == pytest.approx(2.0)
    # Reports and plain labels show the number of users, so nothing is spent on it.
    without = dataclasses.replace(BASE, membership="ldp-agg").budget
    assert without.epsilon_0 == 0
    assert 3 * (without.epsilon_1 + without.epsilon_2) == pytest.approx(2.0)


def test_default_number_of_local_clusters() -> None:
    assert default_local_k(BASE, 2_000.0) >= 2
    assert default_local_k(dataclasses.replace(BASE, membership="ind-lap"), 2_000.0) == 5
    assert default_local_k(dataclasses.replace(BASE, membership="exact"), None) == 5


def combinations() -> list[tuple[str, str, str]]:
    every = itertools.product(MEMBERSHIPS, LOCALS, ESTIMATES)
    return [one for one in every if not (one[2] == "2pest" and one[0] in ("ind-lap", "exact"))]


@pytest.mark.filterwarnings("ignore:NOT P")
@pytest.mark.parametrize(("membership", "local", "estimate"), combinations())
def test_every_combination_repeats(membership: str, local: str, estimate: str) -> None:
    model = PaperKMeans(
        5,
        epsilon=4.0,
        delta=1e-4,
        membership=membership,
        local=local,
        estimate=estimate,
        n_local_clusters=3,
        random_state=2,
    )
    centres = model.fit(PARTS).cluster_centers_
    assert centres.shape == (5, 8)
    assert np.abs(centres).max() <= 1 + 1e-12  # rounding of a mean
    assert model.grid_weights_.shape == (3, 3, 3)
    assert model.grid_weights_.sum() == pytest.approx(2_000, rel=0.2)
    assert np.array_equal(model.fit(PARTS).cluster_centers_, centres)


@pytest.mark.filterwarnings("ignore:NOT P")
def test_without_noise_it_finds_the_clusters() -> None:
    model = PaperKMeans(
        5, epsilon=1, delta=1e-4, membership="exact", local="plain", random_state=0
    ).fit(PARTS)
    assert normalised_loss(ROWS, model.cluster_centers_) < 0.12  # 8 columns of variance 0.01
    assert model.grid_weights_.sum() == 2_000
    assert model.noisy_count_ is None


@pytest.mark.filterwarnings("ignore:NOT P")
@pytest.mark.parametrize("membership", MEMBERSHIPS)
def test_the_server_gets_by_with_messages(membership: str) -> None:
    """Messages of two runs alike give equal centres, and a message holds no rows."""
    settings = dataclasses.replace(BASE, membership=membership)
    done = vertical_clustering(
        PARTS, settings, noise=InsecureSeededNoise(1), rng=np.random.default_rng(1)
    )
    again = [
        server_phase(
            done.messages, settings, noisy_count=done.noisy_count, rng=np.random.default_rng(7)
        )[0]
        for _ in range(2)
    ]
    assert np.array_equal(*again)
    for rows, message in zip(PARTS, done.messages, strict=True):
        arrays = [message.centres, *vars(message.membership).values()]
        assert all(getattr(a, "size", 0) != rows.size for a in arrays)
        assert isinstance(message, PartyMessage)


def test_server_functions_name_no_rows() -> None:
    """What a server calls has parameters for messages and public values only."""
    tree = ast.parse(inspect.getsource(phases))
    server = {"server_phase", "weight_est"}
    found = [
        {a.arg for a in (*node.args.args, *node.args.kwonlyargs)}
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name in server
    ]
    assert found == [{"messages", "settings", "noisy_count", "rng"}] * 2


@pytest.mark.parametrize(
    ("chosen", "first"),
    [
        (
            {"membership": "dpfmps"},
            "NOT PROVED: the published privacy bound of membership='dpfmps' does not hold",
        ),
        ({"membership": "ldp-agg"}, "NOT PROVED: membership='ldp-agg' does not hide who"),
        ({"membership": "exact"}, "NOT PRIVATE: membership='exact' sends every user's cluster"),
        ({"membership": "ind-lap", "local": "plain"}, "NOT PRIVATE: local='plain' releases"),
        # The worse of two comes first.
        ({"membership": "dpfmps", "local": "plain"}, "NOT PRIVATE: local='plain' releases"),
    ],
)
def test_statement_and_warning_begin_with_what_does_not_hold(
    chosen: dict[str, str], first: str
) -> None:
    model = PaperKMeans(5, epsilon=1, delta=1e-4, n_local_clusters=2, **chosen)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="^NOT P") as of_model:
        statement = model.fit(PARTS).statement_
    settings = dataclasses.replace(BASE, **chosen)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="^NOT P") as of_function:
        done = vertical_clustering(
            PARTS, settings, n_local_clusters=2, noise=SecureNoise(), rng=np.random.default_rng(0)
        )
    for said, warned in ((statement, of_model), (done.statement, of_function)):
        assert said.startswith(first)
        assert str(warned[0].message).startswith(first)
        # No figure before the last of the sentences.
        lines = said.splitlines()
        claimed = lines.index(next(line for line in lines if line.startswith("budget as")))
        assert all(line.startswith("NOT P") for line in lines[:claimed])
        assert len(warned) == claimed


def test_methods_run_only_if_they_are_named() -> None:
    for given in (PaperKMeans, Settings):
        assert inspect.signature(given).parameters["membership"].default is inspect.Parameter.empty
    model = PaperKMeans(5, epsilon=1, delta=1e-4, membership="ind-lap")
    assert clone(model).get_params() == model.get_params()


@pytest.mark.filterwarnings("ignore:NOT P")
@pytest.mark.parametrize("membership", MEMBERSHIPS)
def test_statement_of_seeded_noise_begins_with_it(membership: str) -> None:
    model = PaperKMeans(5, epsilon=1, delta=1e-4, membership=membership, n_local_clusters=2)
    seeded = clone(model).set_params(random_state=0).fit(PARTS).statement_
    assert seeded.splitlines()[0] == "NOT PRIVATE: the noise comes from a seed, so it hides nothing"
    assert seeded.splitlines()[1:] == model.fit(PARTS).statement_.splitlines()


def test_proved_methods_fit_without_a_warning() -> None:
    model = PaperKMeans(3, epsilon=2, delta=1e-4, membership="ind-lap")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        statement = model.fit(PARTS).statement_
    # 2 % of epsilon for the number of users, the rest in six equal parts.
    assert statement.splitlines()[:4] == [
        "budget as published: epsilon 2, delta 0.0001, of which",
        "  number of users: epsilon 0.04",
        "  centres of each party: epsilon 0.3267",
        "  memberships of each party: epsilon 0.3267, delta 3.33e-05",
    ]


def test_noise_comes_from_the_system_without_a_seed() -> None:
    """The probability that two noisy counts of scale 25 are equal is 0.01; three times: 1e-6."""
    model = PaperKMeans(3, epsilon=2, delta=1e-4, membership="ind-lap")
    counts = {model.fit(PARTS).noisy_count_ for _ in range(4)}
    assert len(counts) > 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"membership": "sketch"}, "membership must be one of"),
        ({"local": "lloyd"}, "local must be one of"),
        ({"estimate": "best"}, "estimate must be one of"),
        ({"epsilon": 0}, "epsilon must be > 0"),
        ({"delta": 1.0}, "delta must be between 0 and 1"),
        ({"n_clusters": 0}, "n_clusters must be"),
        ({"n_local_clusters": 1}, "n_local_clusters must be"),
        ({"membership": "exact", "estimate": "2pest"}, "estimate='2pest' needs membership"),
    ],
)
def test_rules_of_parameters(changes: dict[str, object], message: str) -> None:
    given = {"n_clusters": 5, "epsilon": 1.0, "delta": 1e-4, "membership": "ind-lap"} | changes
    with pytest.raises(ParameterError, match=message):
        PaperKMeans(**given).fit(PARTS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("datasets", "message"),
    [
        ([ROWS], "at least two parties, got 1"),
        ([ROWS, ROWS[:-1]], r"X\[1\] must have as many rows as X\[0\], 2000, got 1999"),
        ([ROWS, 2 * ROWS], r"X\[1\] must have values from -1 to 1"),
        ([ROWS, np.full((2_000, 1), np.nan)], r"X\[1\] must have values from -1 to 1"),
        ([ROWS, np.zeros(2_000)], r"X\[1\] must have rows and columns, got shape \(2000,\)"),
    ],
)
def test_rules_of_rows(datasets: list[np.ndarray], message: str) -> None:
    with pytest.raises(DataError, match=message):
        PaperKMeans(5, epsilon=1, delta=1e-4, membership="ind-lap").fit(datasets)
