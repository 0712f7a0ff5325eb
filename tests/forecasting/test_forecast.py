"""Forecasts: noise by hand, the same as in a run; sizes against real bytes; forward and back."""

import dataclasses
import itertools
import math
import re

import numpy as np
import pytest

from splitmeans import Budget, Column, InsecureSeededNoise, PartySpec, Study, VerticalKMeans
from splitmeans.errors import ParameterError
from splitmeans.forecasting.cell_error import cell_error
from splitmeans.forecasting.forecast import Forecast, forecast
from splitmeans.forecasting.loss_model import Strain, smooth_increase
from splitmeans.forecasting.noise import noise_levels
from splitmeans.forecasting.rough_plan import rough_plan, study_at
from splitmeans.membership.decoy.estimate import DecoyEstimator
from splitmeans.plan.message_sizes import message_sizes
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.study import DecoyOptions, DetailOptions
from splitmeans.study.id_rules import AS_IS


def tiny_study(*, parties=2, columns=2, epsilon=1.0, **changes) -> Study:
    specs = tuple(
        PartySpec(
            name=f"p{i}",
            columns=tuple(Column(name=f"c{j}", low=-1, high=1) for j in range(columns)),
        )
        for i in range(parties)
    )
    return Study(
        **{
            "name": "tiny",
            "parties": specs,
            "n_clusters": 4,
            "budget": Budget(epsilon=epsilon, delta=1e-5),
            "expected_users": 20_000,
            "ids": AS_IS,
            **changes,
        }
    )


def test_noise_of_the_default_by_hand():
    """Half of mu^2 for memberships, a quarter for each of two parties."""
    study = tiny_study(n_local_clusters=8)
    mu = 1 / gaussian_multiplier(1.0, 1e-5)
    levels = {(x.party, x.what): x.deviation for x in forecast(study, users=16_000).noise}
    assert levels["all parties", "decoys in each cell"] == pytest.approx(
        math.sqrt(2) / mu, rel=0.01
    )
    local = mu * math.sqrt(0.25)
    rows = local * math.sqrt(0.2 * 0.02)
    assert levels["p0", "number of rows"] == pytest.approx(1 / rows, rel=0.01)
    # 1.3 spreads of radius, sqrt(89/64) of sensitivity, 2,000 users in a cluster.
    centre = 1.3 * math.sqrt(89 / 64) / (local * math.sqrt(0.8)) / 2000
    assert levels["p0", "each coordinate of a centre"] == pytest.approx(centre, rel=0.01)


@pytest.mark.parametrize(
    ("membership", "parties", "off"), [("decoy", 2, 0.01), ("decoy", 4, 0.01), ("sketch", 2, 0.05)]
)
def test_rough_plans_are_close(membership, parties, off):
    for epsilon in (0.05, 1.0, 8.0):
        study = tiny_study(membership=membership, parties=parties, epsilon=epsilon)
        exact, rough = (
            noise_levels(plan, users=20_000) for plan in (make_plan(study), rough_plan(study))
        )
        for one, other in zip(exact, rough, strict=True):
            # Phantoms are whole numbers, at large epsilon few.
            assert other.deviation == pytest.approx(one.deviation, rel=off, abs=1.01)


@pytest.mark.parametrize("collusion", [None, 4.0])
@pytest.mark.parametrize("max_users", [20_000_000, 5_000])
def test_cell_error_is_what_the_server_estimates(collusion, max_users):
    options = DecoyOptions(collusion_epsilon=collusion, max_users=max_users)
    study = tiny_study(parties=3, n_local_clusters=5, decoy=options)
    plan = make_plan(study)
    users, group = 20_000, plan.groups[0]
    inside = round(users * plan.sample_rate / 25)
    estimator = DecoyEstimator(
        law=plan.membership,
        noisy_tables={group: np.full((6, 6), inside + plan.membership.mean)},
        n_local_clusters=plan.n_local_clusters,
        sample_rate=plan.sample_rate,
        collusion=plan.collusion_laws,
    )
    expected = estimator.deviation(group)
    assert cell_error(plan, users=users) == pytest.approx(expected, rel=1e-3)


@pytest.fixture(scope="module")
def runs():
    """One small run of each method, with the forecast of its study."""
    rng = np.random.default_rng(5)
    label = rng.integers(4, size=3000)
    rows = np.clip(rng.uniform(-1, 1, (4, 4))[label] + 0.1 * rng.standard_normal((3000, 4)), -1, 1)
    found = {}
    for membership in ("decoy", "sketch"):
        model = VerticalKMeans(
            4,
            epsilon=2.0,
            bounds=(-1, 1),
            membership=membership,
            expected_users=3000,
            noise=InsecureSeededNoise(1),
            random_state=1,
        )
        model.fit([rows[:, :2], rows[:, 2:]])
        found[membership] = model.result_, forecast(model.study_)
    return found


@pytest.mark.parametrize("membership", ["decoy", "sketch"])
def test_a_run_has_the_noise_and_sizes_of_its_forecast(runs, membership):
    run, expected = runs[membership]
    assert noise_levels(run.plan, users=3000) == expected.noise
    assert run.plan.events == expected.plan.events
    assert run.plan.n_local_clusters == expected.plan.n_local_clusters
    if not run.plan.stages:
        assert run.plan.fingerprint == expected.plan.fingerprint
    for party in ("party1", "party2"):
        real = run.traffic[party, "PartyRelease"]
        assert expected.sizes.releases[party] == pytest.approx(real, rel=0.02, abs=60)
        others = run.bytes_from(party) - real
        assert expected.sizes.small[party] == pytest.approx(others, rel=0.5)
    result = run.traffic["server", "PublishedResult"] / 2  # one to each party
    assert expected.sizes.result >= result - 60


def test_sizes_with_partial_overlap():
    """Tags are sent then, and decoys for the cells in which the party is present."""
    rng = np.random.default_rng(5)
    rows = rng.uniform(-1, 1, (3000, 2))
    model = VerticalKMeans(
        4,
        epsilon=2.0,
        bounds=(-1, 1),
        expected_users=2000,
        noise=InsecureSeededNoise(1),
    )
    ids = [np.arange(2000), np.arange(1000, 3000)]
    model.fit([rows[:2000, :1], rows[1000:, 1:]], ids=ids)
    expected = forecast(model.study_).sizes
    for party in ("party1", "party2"):
        real = model.result_.traffic[party, "PartyRelease"]
        assert expected.releases[party] == pytest.approx(real, rel=0.05)


def test_sketch_error_is_the_error_of_runs():
    """Counts of 36 cells in 20 sketches against the forecast deviation.

    The mean over 720 squared errors, of which rows and columns tie some together, is within 20 %
    unless chance is against it more than once in a thousand times (standard error about 5 %).
    """
    from splitmeans.kernels.assign import nearest
    from splitmeans.protocol import run
    from splitmeans.table.prepare import prepare_table

    rng = np.random.default_rng(3)
    rows = rng.uniform(-1, 1, (6000, 2))
    study = tiny_study(
        columns=1, membership="sketch", n_local_clusters=6, expected_users=6000, n_clusters=4
    )
    tables = [
        prepare_table(party, rows[:, [i]], ids=np.arange(6000))
        for i, party in enumerate(study.parties)
    ]
    squares = []
    for seed in range(20):
        done = run(study, tables, noise=InsecureSeededNoise(seed), rng=rng).server
        labels = [
            nearest(table.raw_rows.astype(np.int64), done.releases[table.party].centres)
            for table in tables
        ]
        truth = np.zeros((6, 6))
        np.add.at(truth, tuple(labels), 1)
        squares.append((done.weights - truth) ** 2)
    measured = math.sqrt(np.mean(squares))
    assert 0.8 < measured / forecast(study).cell_error < 1.2


def test_more_epsilon_never_means_more_noise_or_loss():
    for membership in ("decoy", "sketch"):
        study = tiny_study(membership=membership, n_local_clusters=8)
        points = forecast(study).sweep((0.01, 0.05, 0.1, 0.3, 1.0, 3.0, 8.0, 12.0))
        assert len(points) == 8
        for lower, higher in itertools.pairwise(points):
            assert higher.cell_error < lower.cell_error
            for part in ("clear", "smooth", "low", "typical", "high"):
                assert getattr(higher.loss, part) <= getattr(lower.loss, part)


def test_more_users_never_mean_more_loss():
    study = tiny_study(n_local_clusters=8)
    losses = [forecast(study, users=n).loss.typical for n in (1000, 10_000, 100_000, 10**7)]
    assert losses == sorted(losses, reverse=True)


def test_epsilons_that_accounting_refuses_are_left_out():
    points = forecast(tiny_study()).sweep((0.001, 0.05, 50.0))
    assert [point.epsilon for point in points] == [0.05]


@pytest.mark.parametrize(
    ("membership", "ratio"), [("decoy", 1.03), ("decoy", 1.2), ("sketch", 1.15), ("sketch", 1.5)]
)
def test_inverse_agrees_with_forward(membership, ratio):
    study = tiny_study(expected_users=10_000, membership=membership)
    needed = forecast(study).epsilon_for(ratio)
    assert needed.typical <= needed.pessimistic
    for epsilon, which in ((needed.typical, "typical"), (needed.pessimistic, "high")):
        assert getattr(forecast(study_at(study, epsilon)).loss, which) <= ratio
        less = forecast(study_at(study, 0.93 * epsilon)).loss
        assert getattr(less, which) > ratio


def test_an_unreachable_ratio_is_refused():
    study = tiny_study(expected_users=2000)
    needed = forecast(study).epsilon_for(1.0001)
    assert (needed.typical, needed.pessimistic) == (None, None)
    assert "1.0001 is not reached by any epsilon up to 12" in needed.refusal
    assert f"{needed.best.typical:.4g} is expected there" in needed.refusal
    between = (needed.best.typical + needed.best.high) / 2
    half = forecast(study).epsilon_for(between)
    assert half.typical is not None
    assert half.pessimistic is None
    assert "not reached on the safe side" in half.refusal
    assert forecast(study).epsilon_for(1.5).refusal is None
    with pytest.raises(ParameterError, match="must be > 1"):
        forecast(study).epsilon_for(0.9)


@pytest.mark.parametrize("parties", [2, 3])
def test_partial_sets_are_forecast_as_if_all_users_were_shared(parties):
    partial = forecast(tiny_study(parties=parties))
    assert partial.loss is not None
    assert any("--users M" in note for note in partial.loss_notes)


def test_what_the_loss_comes_from():
    def noise_share(**changes) -> float:
        return forecast(tiny_study(n_local_clusters=8, **changes)).noise_share

    assert 0 <= noise_share(epsilon=8) < noise_share(epsilon=1) < noise_share(epsilon=0.05) <= 1


def test_shares_of_the_loss_by_hand():
    constants = dict.fromkeys(
        ("grid", "centres", "cells", "grid_power", "features_power", "clusters_power"), 1.0
    )
    strain = Strain(
        centre_noise=0.01,
        cell_noise=0.06,
        count_noise=0.0,
        n_clusters=10,
        n_local_clusters=16,
        n_parties=4,
        features=8.0,
    )
    found = smooth_increase(strain, {**constants, "grid": 0.02, "parties_power": 1.0})
    # 0.02 at k' = 8, 4 columns and k = 5: half for twice the k', twice for columns, twice for k.
    assert found.coarse == pytest.approx(0.04)
    # The cells' noise is divided by the three tables of every local cluster.
    assert found.noise == pytest.approx(0.01 + 0.02)
    assert found.total == pytest.approx(0.07)


def test_bad_arguments():
    with pytest.raises(ParameterError, match="users must be a whole number >= 1, got 0"):
        forecast(tiny_study(), users=0)
    with pytest.raises(ParameterError, match="structure must be one of 'clear', 'smooth'"):
        forecast(tiny_study(), structure="round")


def test_notes_warn():
    study = tiny_study(n_clusters=12, n_local_clusters=6)
    notes = " ".join(forecast(study, users=2_000_000).notes)
    assert "fewer than the 12 segments" in notes
    assert "outside what the loss model was fitted to" in notes
    assert "expected_users = 20000" in notes
    unsaid = " ".join(forecast(tiny_study(expected_users=None), users=500_000).notes)
    assert "expected_users" not in unsaid
    fixed = tiny_study(expected_users=None, n_local_clusters=12)
    assert "does not say expected_users, and takes 10000" in " ".join(
        forecast(fixed, users=500_000).notes
    )
    assert forecast(tiny_study(n_local_clusters=12)).notes == ()


def test_the_note_on_columns_is_of_their_average():
    wide, narrow = tiny_study(columns=60).parties[0], tiny_study(columns=1).parties[1]
    study = dataclasses.replace(tiny_study(), parties=(wide, narrow))
    notes = " ".join(forecast(study).notes)
    assert "30.5 columns of a party on average (fitted to 2-16)" in notes


def test_segment_error_by_hand():
    """Of 64 cells a segment of four has 16, each with noise of its own."""
    expected = forecast(tiny_study(n_local_clusters=8))
    assert expected.segment_error == pytest.approx(4 * expected.cell_error)
    assert forecast(tiny_study(membership="sketch")).segment_error is None
    assert forecast(tiny_study(n_local_clusters=8, detail=DetailOptions())).segment_error is None


@pytest.mark.parametrize(
    ("parties", "clear", "least", "most"), [(2, False, 0.8, 1.5), (4, True, 0.3, 0.7)]
)
def test_segment_error_is_what_the_report_finds(parties, clear, least, most):
    """About as much if few cells are empty, less if the server can clear many of them.

    Noise is drawn 50 times. Where segments are is chance too, so three tables are averaged: single
    ones of two parties gave 1.13 to 1.33 times the forecast, of four 0.41 to 0.71.
    """
    ratios = [_error_ratio(parties, clear=clear, seed=seed) for seed in (1, 2, 3)]
    assert least < np.mean(ratios) < most


def _error_ratio(parties: int, *, clear: bool, seed: int) -> float:
    """The error of a fit's segments by repeated noise, as a multiple of the forecast."""
    from splitmeans.intervals.sizes import size_intervals

    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (10_000, 2 * parties))
    if clear:
        centres = rng.uniform(-0.8, 0.8, (4, 2 * parties))
        rows = np.clip(centres[rng.integers(4, size=10_000)] + 0.08 * rows, -1, 1)
    model = VerticalKMeans(
        4,
        epsilon=1.0,
        bounds=(-1, 1),
        expected_users=10_000,
        noise=InsecureSeededNoise(seed),
        random_state=1,
    )
    model.fit(np.split(rows, parties, axis=1))
    centres = model.result_.server.clustering.scaled_centres
    (found,) = size_intervals(model.result_.plan, model.synopsis_, [centres], rng=rng)
    measured = math.sqrt(np.mean(np.square(found.noise)))
    return measured / forecast(model.study_).segment_error


def test_structure_narrows_the_range():
    study = tiny_study()
    both = forecast(study).loss
    for structure in ("clear", "smooth"):
        loss = forecast(study, structure=structure).loss
        assert loss.typical == getattr(both, structure)
        assert both.low <= loss.low < loss.typical < loss.high <= both.high
    # Half-way of logarithms, half a per cent added to the increases.
    increases = [both.clear - 0.995, both.smooth - 0.995]
    assert both.typical == pytest.approx(math.sqrt(math.prod(increases)) + 0.995)


def test_many_parties_have_sizes_and_noise():
    study = tiny_study(parties=12, columns=1)
    expected = forecast(study, users=100_000)
    assert expected.plan.grid_method == "many"
    assert expected.loss.typical > 1
    assert expected.cell_error > 0


def test_forecast_is_of_plain_values():
    study = tiny_study()
    mapping = forecast(study).to_mapping((0.5, 1.0))
    assert [point["epsilon"] for point in mapping["sweep"]] == [0.5, 1.0]
    assert mapping["study_hash"] == study.hash
    assert isinstance(forecast(study), Forecast)
    assert re.fullmatch(
        r"<Forecast of 'tiny': loss ratio 1\.\d+ \(1\.\d+-1\.\d+\), cell error [\d.]+ users>",
        repr(forecast(study)),
    )
    changed = dataclasses.replace(forecast(study), users=40_000)
    assert changed.loss.typical < forecast(study).loss.typical


@pytest.mark.parametrize("parties", [3, 5, 6, 10, 12])
@pytest.mark.parametrize("users", [500, 20_000, 3_000_000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_partial_sets_of_many_parties_can_be_sent(parties, users, epsilon):
    """No plan has more decoys than everyone can send and join, whatever k' "auto" takes."""
    study = tiny_study(
        parties=parties,
        budget=Budget(epsilon=epsilon, delta=1e-7),
        expected_users=users,
    )
    sizes = message_sizes(rough_plan(study), users=users)
    records = sizes.records["p0"]
    assert records - parties * users <= max(2**22, parties * users)


def test_sizes_with_a_presence_table():
    rng = np.random.default_rng(6)
    rows = rng.uniform(-1, 1, (3000, 4))
    model = VerticalKMeans(
        4,
        epsilon=2.0,
        bounds=(-1, 1),
        expected_users=2000,
        noise=InsecureSeededNoise(1),
    )
    ids = [np.sort(rng.choice(3000, 2000, replace=False)) for _ in range(4)]
    model.fit([rows[own, [party]][:, np.newaxis] for party, own in enumerate(ids)], ids=ids)
    expected = forecast(model.study_).sizes
    for party in model.study_.party_names:
        real = model.result_.traffic[party, "PartyRelease"]
        assert expected.releases[party] == pytest.approx(real, rel=0.03)


def test_warnings_come_before_anything_is_spent():
    assert forecast(tiny_study()).warnings == ()
    # The k' of 20,000 users: of fewer, an automatic one would be smaller.
    (near,) = forecast(tiny_study(n_local_clusters=16), users=800).warnings
    assert "nears the 200 users of an average segment" in near
    (over,) = forecast(tiny_study(n_local_clusters=16), users=400).warnings
    assert "exceeds the 100 users of an average segment" in over
    (beyond,) = forecast(tiny_study(n_local_clusters=16), users=200).warnings
    assert "a run may count nobody" in beyond
    expected = forecast(tiny_study(parties=4))
    (partial,) = expected.warnings
    law = expected.plan.presence
    noise = math.sqrt(law.variance + law.server_sigma**2)
    assert f"a noise of plus or minus {1.96 * noise:,.0f}" in partial
    assert f"below {10 * noise:,.0f} of them no segments are published" in partial
    assert "a quarter of a party's 20,000 users" in partial
    assert expected.to_mapping()["warnings"] == [partial]
    (few,) = forecast(tiny_study(parties=4), users=100).warnings
    assert few.startswith("all 100 users of a party would be too few")
    everyone = tiny_study(parties=4, population="everyone")
    (filled,) = forecast(everyone).warnings
    assert "filled in from users like it" in filled
