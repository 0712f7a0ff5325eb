"""The cell sketch: encoding and likelihoods against naive twins, bad messages, consistency."""

import bisect
import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.kernels.registers import user_registers
from splitmeans.kernels.siphash import hash_ids, prf_word
from splitmeans.membership.sketch.encode import encode, own_labels
from splitmeans.membership.sketch.estimate import CellSketchEstimator
from splitmeans.membership.sketch.law import SketchLaw
from splitmeans.membership.sketch.likelihood import (
    PairTally,
    RegisterScale,
    pair_log_likelihood,
    pair_score,
    set_sizes,
    shared_sizes,
    size_score,
    tally,
    tally_pairs,
)
from splitmeans.table.walk.memory import MemoryUsers
from splitmeans.wire.keys import PHANTOM_REGISTERS, USER_REGISTERS, subkey
from splitmeans.wire.messages import CellSketchMessage

KEY = bytes(range(32))
PAIRS = ((0, 1), (0, 2), (1, 2))
WIDTHS = (2, 3, 4)


def law_of(**changes) -> SketchLaw:
    public = {"repetitions": 64, "gamma": 1.0, "phantoms": 3, "floor": 3}
    return SketchLaw(**{**public, **changes})


def ids_of(n: int) -> pa.Array:
    return pa.array([f"user {i}" for i in range(n)], type=pa.string())


def labels_of(n: int, k: int, *, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, k, n).astype(np.int32)


def message(law, position, *, n=40, groups=PAIRS, widths=WIDTHS, key=KEY) -> CellSketchMessage:
    return encode(
        law,
        users=MemoryUsers(ids=ids_of(n), labels=labels_of(n, widths[position], seed=position)),
        position=position,
        groups=groups,
        n_local_clusters=widths,
        run_key=key,
    )


# ---- encoding ----


def naive_phantoms(law, widths, group_key: bytes) -> dict[tuple[int, ...], list[int]]:
    """Every cell's phantom value in every row; labels equal to the width mean absent."""
    first, second = (int.from_bytes(group_key[i : i + 8], "little") for i in (0, 8))
    table = law.phantom_table.tolist()
    cells = list(itertools.product(*(range(width + 1) for width in widths)))
    cells.remove(tuple(widths))
    values = {}
    for number, cell in enumerate(cells):
        with np.errstate(over="ignore"):
            words = [
                int(prf_word(np.uint64(first), np.uint64(second), np.uint64(row * 2**32 + number)))
                for row in range(law.repetitions)
            ]
        values[cell] = [1 + bisect.bisect_right(table, word) for word in words]
    return values


def naive_block(law, *, ids, labels, own, widths, group) -> np.ndarray:
    """Registers of one group with Python loops: users first, then the phantoms of all cells."""
    registers = user_registers(
        hash_ids(subkey(KEY, USER_REGISTERS, group=group), ids),
        labels,
        n_clusters=widths[own],
        repetitions=law.repetitions,
        floor=law.floor,
        count_table=law.registers.count_table(repetitions=law.repetitions, floor=law.floor),
        excess_table=law.registers.value_table,
    ).tolist()
    phantoms = naive_phantoms(law, widths, subkey(KEY, PHANTOM_REGISTERS, group=group))
    for cell, values in phantoms.items():
        if cell[own] < widths[own]:
            for row, value in enumerate(values):
                registers[row][cell[own]] = max(registers[row][cell[own]], value)
    return np.array(registers)


@pytest.mark.parametrize(
    ("groups", "position"),
    [(PAIRS, 0), (PAIRS, 2), (((0, 1, 2),), 1), (((2, 1),), 2), (((1,),), 1)],
)
def test_encoding_equals_the_naive_twin(groups, position) -> None:
    law = law_of(gamma=0.5)
    ids, labels = ids_of(40), labels_of(40, WIDTHS[position], seed=position)
    expected = [
        naive_block(
            law,
            ids=ids,
            labels=labels,
            own=group.index(position),
            widths=[WIDTHS[member] for member in group],
            group=group,
        )
        for group in groups
        if position in group
    ]
    found = message(law, position, groups=groups).registers
    assert found.dtype == np.uint16
    np.testing.assert_array_equal(found, np.vstack(expected))


@pytest.mark.parametrize("widths", [(2, 3), (1, 1), (2, 3, 2)])
def test_cells_list_every_combination_of_labels_once(widths) -> None:
    law = law_of()
    cells = list(
        zip(*(own_labels(law, widths, own=i).tolist() for i in range(len(widths))), strict=True)
    )
    assert len(set(cells)) == len(cells) == math.prod(w + 1 for w in widths) - 1
    assert (-1,) * len(widths) not in cells
    assert {label for cell in cells for label in cell} >= set(range(max(widths)))
    assert any(-1 in cell for cell in cells)


def test_both_parties_draw_the_same_value_for_the_same_cell() -> None:
    # Without users, a register is the maximum of a row or a column of one table of cell values.
    law = law_of(floor=0)
    one, other = (
        message(law, position, n=0, groups=((0, 1),)).registers.astype(int) for position in (0, 1)
    )
    phantoms = naive_phantoms(law, WIDTHS[:2], subkey(KEY, PHANTOM_REGISTERS, group=(0, 1)))
    phantoms[2, 3] = [0] * law.repetitions  # absent at both: no cell
    table = np.array([[phantoms[a, b] for b in range(4)] for a in range(3)])  # (3, 4, M)
    np.testing.assert_array_equal(one, table[:-1].max(axis=1).T)
    np.testing.assert_array_equal(other, table[:, :-1].max(axis=0).T)


def test_groups_share_nothing() -> None:
    blocks = message(law_of(floor=0), 0).registers.reshape(2, 64, 2)
    # Two independent draws of values with deviation 1.9 agree in a third of all places at most.
    assert (blocks[0] == blocks[1]).mean() < 0.5


def test_order_of_users_does_not_matter_and_runs_differ() -> None:
    law, n = law_of(), 50
    order = np.random.default_rng(3).permutation(n)
    ids, labels = ids_of(n), labels_of(n, 2)
    public = {"position": 0, "groups": ((0, 1),), "n_local_clusters": (2, 3)}
    straight = encode(law, users=MemoryUsers(ids=ids, labels=labels), run_key=KEY, **public)
    mixed = encode(
        law,
        users=MemoryUsers(ids=ids.take(pa.array(order)), labels=labels[order]),
        run_key=KEY,
        **public,
    )
    np.testing.assert_array_equal(straight.registers, mixed.registers)
    later = encode(law, users=MemoryUsers(ids=ids, labels=labels), run_key=KEY[::-1], **public)
    assert (straight.registers != later.registers).any()


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"position": 3}, "groups must name position 3 at least once"),
        ({"groups": ((1, 2),)}, "groups must name position 0"),
        ({"groups": ((0, 0),)}, "parties must be one or more different positions"),
        ({"groups": ((0, 3),)}, "parties must be between 0 and 2"),
        ({"n_local_clusters": (2, 0, 4)}, "n_local_clusters must be a whole number >= 1, got 0"),
        ({"labels": np.zeros(4, dtype=np.int32)}, r"32-bit integers of shape \(5,\)"),
        ({"labels": np.zeros(5)}, "labels must be 32-bit integers"),
        ({"labels": np.full(5, 2, dtype=np.int32)}, "labels must be between 0 and 1"),
        ({"labels": np.full(5, -1, dtype=np.int32)}, "labels must be between 0 and 1"),
        (
            {"groups": ((0, 1, 2),), "n_local_clusters": (2, 70_000, 70_000)},
            "a group must have at most 4294967296 cells, got 14700420003",
        ),
    ],
)
def test_wrong_arguments_are_refused(change, rule) -> None:
    arguments = {
        "ids": ids_of(5),
        "labels": np.zeros(5, dtype=np.int32),
        "position": 0,
        "groups": PAIRS,
        "n_local_clusters": WIDTHS,
        "run_key": KEY,
    }
    arguments |= change
    ids, labels = arguments.pop("ids"), arguments.pop("labels")
    with pytest.raises(ParameterError, match=rule):
        encode(law_of(), users=MemoryUsers(ids=ids, labels=labels), **arguments)


# ---- likelihood ----


def scale_of(gamma: float = 1.0, floor: int = 2, largest: int = 12) -> RegisterScale:
    return RegisterScale.of(gamma=gamma, floor=floor, largest=largest)


def random_registers(rows: int, k: int, *, seed: int, floor: int = 2) -> np.ndarray:
    # Few different values, so that ties are frequent.
    values = floor + np.random.default_rng(seed).integers(0, 5, size=(rows, k))
    return values.astype(np.uint16)


def naive_pair_mass(x: int, y: int, *, a, b, w, gamma, floor) -> float:
    """P(A = x, B = y) as the difference of the joint cdf at four corners."""

    def f(v: int) -> float:
        return 1 - (1 + gamma) ** -v if v >= floor else 0.0

    def cdf(x: int, y: int) -> float:
        return f(min(x, y)) ** w * f(x) ** (a - w) * f(y) ** (b - w)

    return cdf(x, y) - cdf(x - 1, y) - cdf(x, y - 1) + cdf(x - 1, y - 1)


def test_tallies_equal_the_naive_count() -> None:
    scale = scale_of()
    one, other = random_registers(30, 2, seed=0), random_registers(30, 3, seed=1)
    found = tally_pairs(one, other, scale)
    for i, j in itertools.product(range(2), range(3)):
        expected = np.zeros((3, scale.size), dtype=int)
        for x, y in zip(one[:, i].tolist(), other[:, j].tolist(), strict=True):
            expected[0 if x > y else 1 if x < y else 2, max(x, y) - 2] += 1
        for part, counts in zip(found, expected, strict=True):
            np.testing.assert_array_equal(part[i, j], counts)
    np.testing.assert_array_equal(
        tally(one, scale), [[(one[:, i] == v).sum() for v in range(2, 13)] for i in range(2)]
    )


@pytest.mark.parametrize(("gamma", "floor"), [(1.0, 2), (0.5, 4), (1.0, 0), (3.0, 1)])
def test_pair_likelihood_equals_brute_force(gamma: float, floor: int) -> None:
    lowest = max(floor, 1)
    scale = scale_of(gamma, floor, lowest + 8)
    one = random_registers(40, 1, seed=2, floor=lowest)
    other = random_registers(40, 1, seed=3, floor=lowest)
    tallies = tally_pairs(one, other, scale)
    a, b = np.array([[9.0]]), np.array([[14.0]])

    def naive(w: float) -> float:
        rows = zip(one[:, 0].tolist(), other[:, 0].tolist(), strict=True)
        law = {"a": 9.0, "b": 14.0, "w": w, "gamma": gamma, "floor": lowest}
        return math.fsum(math.log(naive_pair_mass(x, y, **law)) for x, y in rows)

    found = [
        float(pair_log_likelihood(np.array([[w]]), a, b, tallies, scale)[0, 0])
        for w in (0.0, 1.5, 4.0, 8.5)
    ]
    # The likelihood is up to a factor without w, so differences are compared.
    expected = [naive(w) - naive(0.0) for w in (0.0, 1.5, 4.0, 8.5)]
    np.testing.assert_allclose(np.array(found) - found[0], expected, rtol=1e-7, atol=1e-7)


def test_naive_mass_is_a_law() -> None:
    # Guards the brute force itself: all masses are positive and sum to one.
    law = {"a": 5, "b": 4, "w": 3, "gamma": 1.0, "floor": 1}
    masses = [naive_pair_mass(x, y, **law) for x in range(1, 50) for y in range(1, 50)]
    assert min(masses) > -1e-15
    assert math.fsum(masses) == pytest.approx(1, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(
    gamma=st.sampled_from([0.05, 0.5, 1.0, 3.0]),
    a=st.floats(1, 1e5),
    b=st.floats(1, 1e5),
    share=st.floats(0.001, 0.999),
    seed=st.integers(0, 1000),
)
def test_scores_are_slopes(gamma: float, a: float, b: float, share: float, seed: int) -> None:
    floor = max(int(math.log(a) / math.log1p(gamma)), 1)
    scale = scale_of(gamma, floor, floor + 10)
    tallies = tally_pairs(
        random_registers(20, 1, seed=seed, floor=floor),
        random_registers(20, 1, seed=seed + 1, floor=floor),
        scale,
    )
    sizes = np.array([[a]]), np.array([[b]])
    w = share * min(a, b)
    step = 1e-4 * min(w, min(a, b) - w)
    low, high = (
        float(pair_log_likelihood(np.array([[x]]), *sizes, tallies, scale)[0, 0])
        for x in (w - step, w + step)
    )
    found = float(pair_score(np.array([[w]]), *sizes, tallies, scale)[0, 0])
    # Each of 20 rows changes by up to 1 / (distance to the limit); rounding is 1e-12 of the sum.
    bound = 1e-4 * (20 / min(w, min(a, b) - w)) + 1e-10 * (abs(low) + 1) / step
    assert found == pytest.approx((high - low) / (2 * step), rel=1e-4, abs=bound)


def test_most_likely_overlap_is_the_peak_of_a_fine_grid() -> None:
    law = law_of(repetitions=256, floor=2)
    one, other = (message(law, p, n=60, groups=((0, 1),)).registers for p in (0, 1))
    scale = scale_of(floor=2, largest=law.largest_register)
    tallies = tally_pairs(one, other, scale)
    a, b = (set_sizes(tally(registers, scale), scale) for registers in (one, other))
    found = shared_sizes(a, b, tallies, scale)
    assert found.shape == (2, 3)
    for i, j in itertools.product(range(2), range(3)):
        grid = np.linspace(0, min(a[i], b[j]), 4001)[1:-1]
        one_pair = PairTally(*(part[i, j] for part in tallies))
        heights = pair_log_likelihood(
            grid, np.full(grid.shape, a[i]), np.full(grid.shape, b[j]), one_pair, scale
        )
        assert found[i, j] == pytest.approx(grid[heights.argmax()], abs=1.5 * (grid[1] - grid[0]))


def test_most_likely_size_solves_the_score_and_is_zero_at_the_floor() -> None:
    scale = scale_of(gamma=0.5, floor=3, largest=20)
    registers = random_registers(200, 3, seed=5, floor=3)
    registers[:, 2] = 3
    counts = tally(registers, scale)
    sizes = set_sizes(counts, scale)
    assert sizes[2] == 0
    slope = size_score(sizes[:2], counts[:2], scale)
    np.testing.assert_allclose(slope * sizes[:2], 0, atol=1e-9)


def test_size_of_registers_that_are_all_equal_by_hand() -> None:
    # P(A = v) = F(v)^n - F(v-1)^n with F = 3/4 and 1/2 at v = 2 peaks where
    # (3/4)^n ln(3/4) = (1/2)^n ln(1/2), so n = ln(ln 2 / ln(4/3)) / ln(3/2).
    scale = scale_of(floor=1)
    counts = tally(np.full((7, 1), 2, dtype=np.uint16), scale)
    expected = math.log(math.log(2) / math.log(4 / 3)) / math.log(1.5)
    assert set_sizes(counts, scale)[0] == pytest.approx(expected, rel=1e-9)


def test_overlap_of_equal_and_of_empty_sets_is_finite() -> None:
    scale = scale_of()
    registers = random_registers(50, 2, seed=6)
    same = tally_pairs(registers, registers, scale)
    sizes = set_sizes(tally(registers, scale), scale)
    found = shared_sizes(sizes, sizes, same, scale)
    np.testing.assert_allclose(np.diag(found), sizes, rtol=1e-6)
    empty = shared_sizes(np.array([0.0, -5.0]), sizes, same, scale)
    np.testing.assert_allclose(empty, 0, atol=1e-8)


# ---- estimator ----


def estimator_of(law=None, *, groups=PAIRS, widths=WIDTHS, n=200, **options) -> CellSketchEstimator:
    law = law or law_of(repetitions=256)
    messages = [message(law, p, n=n, groups=groups, widths=widths) for p in range(len(widths))]
    return CellSketchEstimator(
        law=law, groups=groups, n_local_clusters=widths, messages=messages, **options
    )


def test_sizes_are_those_of_the_groups_without_phantoms() -> None:
    found = estimator_of()
    scale = scale_of(floor=3, largest=found.law.largest_register)
    blocks = found.messages[1].registers.reshape(2, 256, 3)
    sizes = [set_sizes(tally(block, scale), scale) for block in blocks]
    expected = (sizes[0] - 3 * 3 + sizes[1] - 3 * 5) / 2  # 3 and 5 cells for each cluster
    np.testing.assert_allclose(found.one(1), expected, rtol=1e-6)
    assert found.n_local_clusters == WIDTHS


def test_cells_are_the_overlaps_without_phantoms() -> None:
    found = estimator_of(law_of(repetitions=256))
    scale = scale_of(floor=3, largest=found.law.largest_register)
    one = found.messages[0].registers[256:]
    other = found.messages[2].registers[:256]
    a = found.one(0) + 3 * 5
    b = found.one(2) + 3 * 3
    expected = shared_sizes(a, b, tally_pairs(one, other, scale), scale) - 3
    np.testing.assert_allclose(found.joint([0, 2]), expected, rtol=1e-6, atol=1e-6)
    assert found.joint([0, 2]).min() >= -3


def test_order_of_parties_is_the_order_of_axes() -> None:
    found = estimator_of()
    np.testing.assert_allclose(found.joint([2, 1]), found.joint([1, 2]).T, atol=1e-6)
    np.testing.assert_array_equal(found.joint([1]), found.one(1))


def test_answers_are_copies() -> None:
    found = estimator_of()
    sizes = found.one(0)
    sizes *= 0
    assert found.one(0).any()


def test_pairs_can_be_read_from_a_larger_group() -> None:
    found = estimator_of(groups=((0, 1, 2),), n=2000)
    scale = scale_of(floor=3, largest=found.law.largest_register)
    one, other = found.messages[0].registers, found.messages[1].registers
    a, b = found.one(0) + 3 * 20, found.one(1) + 3 * 15
    expected = shared_sizes(a, b, tally_pairs(one, other, scale), scale) - 3 * 5
    np.testing.assert_allclose(found.joint([0, 1]), expected, rtol=1e-6, atol=1e-6)


def test_wrong_requests_are_refused() -> None:
    found = estimator_of()
    with pytest.raises(ParameterError, match="cells of 3 parties cannot be read from"):
        found.joint([0, 1, 2])
    for parties in ([], [0, 0], [3], [-1, 0]):
        with pytest.raises(ParameterError, match="parties must be"):
            found.joint(parties)
    with pytest.raises(ParameterError, match="parties must be between 0 and 2"):
        found.one(3)
    apart = estimator_of(groups=((0, 1), (2,)))
    with pytest.raises(ParameterError, match=r"no group holds both parties of \(0, 2\)"):
        apart.joint([0, 2])
    single = estimator_of(groups=((0, 1),), widths=(1, 2))
    assert single.joint([0, 1]).shape == (1, 2)


def bad(rows: int = 128, k: int = 3, value: int = 3, dtype: type = np.uint16) -> np.ndarray:
    return np.full((rows, k), value, dtype=dtype)


@pytest.mark.parametrize(
    ("registers", "rule"),
    [
        (bad(rows=64), r"number 1 must be 16-bit registers of shape \(128, 3\), got uint16 \(64"),
        (bad(k=2), "must be 16-bit registers of shape"),
        (bad()[0], "must be 16-bit registers of shape"),
        (bad(dtype=np.int64), "got int64"),
        (bad(value=2), "registers below 3, the smallest"),
        (bad(value=65_535), "registers above 68, the largest"),
    ],
)
def test_malformed_messages_are_refused(registers: np.ndarray, rule: str) -> None:
    law = law_of()
    messages = [message(law, p) for p in range(3)]
    messages[1] = CellSketchMessage(registers=registers)
    with pytest.raises(ProtocolError, match=rule):
        CellSketchEstimator(law=law, groups=PAIRS, n_local_clusters=WIDTHS, messages=messages)


def test_extreme_registers_give_finite_sizes() -> None:
    law = law_of()
    for value in (3, law.largest_register):
        messages = [CellSketchMessage(registers=bad(rows=128, k=k, value=value)) for k in WIDTHS]
        found = CellSketchEstimator(
            law=law, groups=PAIRS, n_local_clusters=WIDTHS, messages=messages
        )
        assert np.isfinite(found.joint([0, 1])).all()
        assert np.isfinite(found.one(2)).all()


def test_wrong_structure_is_refused() -> None:
    law = law_of()
    messages = [message(law, p) for p in range(3)]
    public = {"law": law, "n_local_clusters": WIDTHS}
    with pytest.raises(ProtocolError, match="a sketch from each of 3 parties, got 2"):
        CellSketchEstimator(**public, groups=PAIRS, messages=messages[:2])
    two = [message(law, p, groups=((0, 1),)) for p in (0, 1)]
    with pytest.raises(ParameterError, match="groups must name position 2 at least once"):
        CellSketchEstimator(**public, groups=((0, 1),), messages=[*two, messages[2]])
    with pytest.raises(ParameterError, match="parties must be"):
        CellSketchEstimator(**public, groups=((0, 5),), messages=messages)


def test_registers_of_a_floor_of_zero_are_at_least_one() -> None:
    law = law_of(floor=0)
    messages = [message(law, p) for p in range(3)]
    messages[0] = CellSketchMessage(registers=bad(k=2, value=0))
    with pytest.raises(ProtocolError, match="registers below 1"):
        CellSketchEstimator(law=law, groups=PAIRS, n_local_clusters=WIDTHS, messages=messages)
