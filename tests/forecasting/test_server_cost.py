"""What a run takes at the server: bounded, refused where it is too much, and forecast."""

import re
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.membership.sketch import estimate
from splitmeans.membership.sketch.cost import decoding_work, most_clusters, register_values
from splitmeans.membership.sketch.estimate import CellSketchEstimator
from splitmeans.membership.sketch.law import SketchLaw
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
    # log base 1.1 of 10 x (100 users + 20 phantoms, of those absent at a party as well) x 256 rows
    # is 132.6, from the floor of 30 on.
    assert values == pytest.approx(102.6, abs=0.1)


def test_sketches_that_take_too_long_are_refused_with_a_number_that_works():
    wanted = study(membership="sketch", sketch=SketchOptions(gamma=0.01))
    with pytest.raises(ParameterError, match="takes the server too long to read") as refused:
        make_plan(replace(wanted, n_local_clusters=250))
    works = int(re.search(r"n_local_clusters must be <= (\d+)", str(refused.value))[1])
    plan = make_plan(replace(wanted, n_local_clusters=works))
    assert works == most_clusters(plan.membership, n_groups=len(plan.groups), users=10_000)
