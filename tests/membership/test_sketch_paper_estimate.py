"""The server's estimates: cardinalities by hand, unions against a naive twin, bad messages."""

import itertools
import math

import numpy as np
import pytest

from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.membership.sketch_paper import estimate
from splitmeans.membership.sketch_paper.estimate import SketchEstimator, cardinality
from splitmeans.membership.sketch_paper.law import SketchPaperLaw
from splitmeans.wire.messages import SketchMessage

LAW = SketchPaperLaw(epsilon=1.0, delta=0.01, gamma=1.0, repetitions=32)


def message(k: int, *, seed: int, law: SketchPaperLaw = LAW) -> SketchMessage:
    # Few different values, so that ties for the largest are frequent.
    rng = np.random.default_rng(seed)
    values = law.floor + rng.integers(0, 5, size=(law.repetitions, k))
    return SketchMessage(registers=values.astype(np.uint16))


def naive_unions(tables: list[np.ndarray]) -> np.ndarray:
    """Registers of the union of all clusters but the cell's own, shape (M, k'_1, ..., k'_s)."""
    shape = [table.shape[1] for table in tables]
    unions = np.zeros((tables[0].shape[0], *shape), dtype=np.uint16)
    for cell in itertools.product(*map(range, shape)):
        for row in range(unions.shape[0]):
            unions[(row, *cell)] = max(
                table[row, a]
                for table, own in zip(tables, cell, strict=True)
                for a in range(table.shape[1])
                if a != own
            )
    return unions


def estimator_of(*sizes: int, estimator: str = "calibrated") -> SketchEstimator:
    messages = tuple(message(k, seed=seed) for seed, k in enumerate(sizes))
    return SketchEstimator(law=LAW, messages=messages, noisy_count=5000, estimator=estimator)


def test_calibrated_cardinality_by_hand() -> None:
    registers = np.array([[1, 3], [2, 3]], dtype=np.uint16)
    # Column sums of 2^-register are 3/4 and 1/4; M = 2; 1/(2 ln 2) and 3 ln 2 - 1 at gamma = 1.
    factor = 1 / (2 * math.log(2)) / (1 + (3 * math.log(2) - 1) / 2)
    found = cardinality(registers, gamma=1.0, estimator="calibrated")
    np.testing.assert_allclose(found, [2 / 0.75 * factor, 2 / 0.25 * factor], rtol=1e-12)


def test_calibrated_constants_are_those_of_the_authors_at_gamma_one() -> None:
    rows = 4096
    registers = np.full((rows, 1), 10, dtype=np.uint16)
    published = 2**10 * 0.7213 / (1 + 1.079 / rows)
    found = cardinality(registers, gamma=1.0, estimator="calibrated")
    assert found[0] == pytest.approx(published, rel=1e-4)


def test_printed_cardinality_by_hand() -> None:
    registers = np.array([[2, 5], [4, 5]], dtype=np.uint16)
    # The harmonic mean of 2 and 4 is 8/3.
    found = cardinality(registers, gamma=0.5, estimator="printed")
    np.testing.assert_allclose(found, [1.5 ** (8 / 3), 1.5**5], rtol=1e-12)


def test_cardinality_keeps_trailing_axes() -> None:
    registers = np.full((4, 2, 3), 7, dtype=np.uint16)
    assert cardinality(registers, gamma=1.0, estimator="printed").shape == (2, 3)


def test_cluster_sizes_are_cardinalities_without_phantoms() -> None:
    sketches = estimator_of(3, 2)
    registers = sketches.messages[0].registers
    expected = cardinality(registers, gamma=1.0, estimator="calibrated") - LAW.phantoms
    np.testing.assert_allclose(sketches.one(0), expected)
    assert sketches.one(1).shape == (2,)
    assert sketches.n_local_clusters == (3, 2)


@pytest.mark.parametrize("estimator", ["calibrated", "printed"])
@pytest.mark.parametrize("sizes", [(3,), (2, 2), (3, 5), (2, 3, 4), (2, 2, 3, 2)])
def test_cells_equal_the_naive_union(sizes: tuple[int, ...], estimator: str) -> None:
    sketches = estimator_of(*sizes, estimator=estimator)
    unions = naive_unions([m.registers for m in sketches.messages])
    phantoms = LAW.phantoms * sum(k - 1 for k in sizes)
    expected = 5000 - (cardinality(unions, gamma=1.0, estimator=estimator) - phantoms)
    found = sketches.joint(range(len(sizes)))
    assert found.shape == sizes
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("chunk", [1, 24, 100])
def test_chunks_do_not_change_cells(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    sketches = estimator_of(2, 3, 4)
    expected = sketches.joint([0, 1, 2])
    monkeypatch.setattr(estimate, "_CHUNK", chunk)
    np.testing.assert_allclose(sketches.joint([0, 1, 2]), expected, rtol=1e-12)


def test_order_of_parties_is_the_order_of_axes() -> None:
    sketches = estimator_of(2, 3, 4)
    np.testing.assert_allclose(
        sketches.joint([2, 0]), sketches.joint([0, 2]).T, rtol=1e-12, atol=1e-9
    )


@pytest.mark.parametrize("parties", [[], [0, 0], [0, 2], [-1, 0]])
def test_wrong_parties_are_refused(parties: list[int]) -> None:
    with pytest.raises(ParameterError, match="parties must be"):
        estimator_of(2, 3).joint(parties)


def test_wrong_single_party_is_refused() -> None:
    with pytest.raises(ParameterError, match="parties must be"):
        estimator_of(2, 3).one(2)


def bad(rows: int = 32, k: int = 3, value: int = LAW.floor, dtype: type = np.uint16) -> np.ndarray:
    return np.full((rows, k), value, dtype=dtype)


@pytest.mark.parametrize(
    ("registers", "rule"),
    [
        (bad(rows=31), r"number 1 must have 32 rows and at least 2 clusters, got shape \(31, 3\)"),
        (bad(k=1), "at least 2 clusters"),
        (bad(k=0), "at least 2 clusters"),
        (bad()[0], "must be a table of 16-bit registers"),
        (bad(dtype=np.int64), "must be a table of 16-bit registers"),
        (bad(value=LAW.floor - 1), f"registers below the floor {LAW.floor}"),
        (bad(value=65_535), "registers above"),
    ],
)
def test_malformed_messages_are_refused(registers: np.ndarray, rule: str) -> None:
    messages = (message(2, seed=0), SketchMessage(registers=registers))
    with pytest.raises(ProtocolError, match=rule):
        SketchEstimator(law=LAW, messages=messages, noisy_count=10, estimator="calibrated")


def test_largest_registers_are_accepted_and_finite() -> None:
    top = SketchMessage(registers=bad(value=LAW.largest_register))
    sketches = SketchEstimator(law=LAW, messages=(top, top), noisy_count=10)
    assert np.isfinite(sketches.joint([0, 1])).all()


def test_unknown_estimator_and_wrong_count_are_refused() -> None:
    with pytest.raises(ParameterError, match="estimator must be one of"):
        estimator_of(2, 2, estimator="mean")
    with pytest.raises(ParameterError, match="estimator must be one of"):
        cardinality(bad(), gamma=1.0, estimator="mean")
    with pytest.raises(ParameterError, match="noisy_count must be a finite number"):
        SketchEstimator(law=LAW, messages=(message(2, seed=0),), noisy_count=math.nan)
