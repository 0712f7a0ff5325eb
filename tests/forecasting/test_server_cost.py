"""What a run takes at the server: bounded, refused where it is too much, and forecast."""

import re
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.forecasting.forecast import forecast
from splitmeans.forecasting.memory import run_memory
from splitmeans.forecasting.timing import run_time
from splitmeans.membership.sketch import estimate
from splitmeans.membership.sketch.cost import decoding_work, most_clusters, register_values
from splitmeans.membership.sketch.estimate import CellSketchEstimator
from splitmeans.membership.sketch.law import SketchLaw
from splitmeans.plan.message_sizes import message_sizes
from splitmeans.plan.settle import make_plan
from splitmeans.study import Budget, Column, PartySpec, SketchOptions, Study
from splitmeans.wire.messages import CellSketchMessage

LAW = SketchLaw(repetitions=256, gamma=0.1, phantoms=20, floor=30)


def study(n_parties=2, *, columns=1, **changes):
    own = tuple(Column(name=f"c{number}", low=0, high=1) for number in range(columns))
    facts = {
        "name": "cost",
        "parties": tuple(PartySpec(name=f"p{number}", columns=own) for number in range(n_parties)),
        "n_clusters": 5,
        "budget": Budget(epsilon=1, delta=1e-6),
        "allow_unproved": True,
    }
    return Study(**facts | changes)


def estimator(law, width, *, users=2000):
    """Registers as two parties with equal clusters would send them, drawn from their law."""
    rng = np.random.default_rng(3)
    elements = users / width + law.phantoms * width

    def registers():
        largest = rng.random((law.repetitions, width)) ** (1 / elements)
        drawn = np.ceil(-np.log1p(-largest) / np.log1p(law.gamma))
        return np.clip(drawn, law.floor, law.largest_register).astype(np.uint16)

    messages = [CellSketchMessage(registers=registers()) for _ in range(2)]
    return CellSketchEstimator(
        law=law, groups=((0, 1),), n_local_clusters=(width, width), messages=messages
    )


@pytest.mark.parametrize("chunk", [1, 3000, 10**9])
def test_cells_do_not_depend_on_how_many_are_read_at_a_time(monkeypatch, chunk):
    expected = estimator(LAW, 7).joint((0, 1))
    monkeypatch.setattr(estimate, "_CHUNK", chunk)
    np.testing.assert_allclose(estimator(LAW, 7).joint((0, 1)), expected, rtol=1e-9, atol=1e-6)


def test_memory_does_not_grow_with_the_square_of_the_clusters(monkeypatch):
    monkeypatch.setattr(estimate, "_CHUNK", 20_000)

    def peak(width):
        read = estimator(LAW, width)
        tracemalloc.start()
        read.joint((0, 1))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(4)  # compiles
    # Sixteen times the pairs of clusters; registers and the chunk itself are no more than this.
    assert peak(48) < 2 * peak(12) + 10 * 2**20


@pytest.mark.parametrize("width", [4, 20])
@pytest.mark.parametrize("gamma", [0.05, 0.5])
def test_forecast_values_are_about_those_that_come(width, gamma):
    law = replace(LAW, gamma=gamma, floor=5)
    found = estimator(law, width)._scale.size
    expected = register_values(law, widths=(width, width), users=2000)
    assert found / 1.5 < expected < 1.5 * found


def test_work_by_hand():
    law = replace(LAW, phantoms=1)
    values = register_values(law, widths=(3, 4), users=100)
    found = decoding_work(law, groups=[(0, 1)], n_local_clusters=(3, 4), users=100)
    assert found == pytest.approx(12 * values)
    # log base 1.1 of 10 x (100 users + 12 phantoms) x 256 rows is 131.9, from the floor of 30 on.
    assert values == pytest.approx(101.9, abs=0.1)


@pytest.mark.parametrize(
    ("n_parties", "width", "sketch"),
    [(2, 250, SketchOptions(gamma=0.01)), (6, 100, SketchOptions(repetitions=64))],
)
def test_sketches_that_take_too_long_are_refused_with_a_number_that_works(n_parties, width, sketch):
    wanted = study(n_parties, membership="sketch", grid="many", sketch=sketch)
    with pytest.raises(ParameterError, match="takes the server too long to read") as refused:
        make_plan(replace(wanted, n_local_clusters=width))
    works = int(re.search(r"n_local_clusters must be <= (\d+)", str(refused.value))[1])
    plan = make_plan(replace(wanted, n_local_clusters=works))
    assert works == most_clusters(plan.membership, n_groups=len(plan.groups), users=10_000)


def test_many_sketch_clusters_take_minutes_and_say_so():
    """Two parties with 250 clusters took the server 53 to 65 s on one core, and 340 MB."""
    expected = forecast(study(membership="sketch", n_local_clusters=250))
    assert 30 < expected.run_time.server < 180
    assert 200e6 < expected.memory.server < 1e9
    # Each party draws phantoms for 62,500 cells in 4,096 rows: 11 s.
    assert 8 < max(expected.run_time.parties.values()) < 40


@pytest.mark.parametrize(
    ("n_parties", "width", "columns", "megabytes"),
    # Peaks from the counts to the written result, 250 MB of a fresh process included.
    [(2, 12, 2, 350), (6, 8, 2, 540), (6, 8, 8, 900), (5, 16, 2, 880)],
)
def test_memory_is_about_what_was_measured(n_parties, width, columns, megabytes):
    plan = make_plan(study(n_parties, columns=columns, n_local_clusters=width, grid="pairs"))
    found = run_memory(plan, message_sizes(plan, users=10_000)).server / 1e6
    assert megabytes / 2 < found < 2 * megabytes


def test_exact_noise_for_many_cells_is_part_of_the_time():
    """250 clusters at five parties: ten tables of 62,500 cells, and 13 s for as many draws."""
    plan = make_plan(study(5, n_local_clusters=250, grid="many"))
    assert 13 < run_time(plan, message_sizes(plan, users=1000), users=1000).server < 60


def test_a_grid_beyond_any_memory_is_refused_with_a_number_that_works():
    wanted = study(4, columns=40, grid="pairs")
    with pytest.raises(ParameterError, match="about 49 GB of memory at every participant") as told:
        make_plan(replace(wanted, n_local_clusters=50))
    works = int(re.search(r"lower n_local_clusters to (\d+)", str(told.value))[1])
    assert make_plan(replace(wanted, n_local_clusters=works)).n_local_clusters == (works,) * 4
    with pytest.raises(ParameterError, match="GB of memory"):
        make_plan(replace(wanted, n_local_clusters=works + 1))


def test_a_grid_beyond_any_memory_is_sampled_if_the_study_leaves_the_choice():
    wanted = study(4, columns=40, n_local_clusters=50)
    assert make_plan(wanted).grid_method == "many"
    assert make_plan(replace(wanted, n_local_clusters=20)).grid_method == "pairs"


@pytest.mark.parametrize("membership", ["independent", "exact", "ldp"])
def test_methods_that_cut_no_cells_have_a_forecast_and_no_word_about_a_cut(membership):
    expected = forecast(study(3, membership=membership, grid="joint", n_local_clusters=3))
    assert not any("are cut" in warning for warning in expected.warnings)
    assert expected.to_mapping()["memory"]["server"] > 0
