"""Exchanging partners: as a naive twin does it, and never a row of a party lost."""

import numpy as np

from splitmeans.kernels.swaps import exchange


def made_up(n=300, seed=0):
    """Three parties with two, one and two columns; tables of all columns of different parties."""
    rng = np.random.default_rng(seed)
    parties, widths = np.array([0, 0, 1, 2, 2]), [3, 4, 2, 5, 3]
    labels = np.stack([rng.integers(width, size=n) for width in widths], axis=1)
    firsts = np.full((5, 5), -1)
    strides = np.zeros((5, 5), dtype=np.int64)
    excess, at = [], 0
    for i in range(5):
        for j in range(i + 1, 5):
            if parties[i] == parties[j]:
                continue
            firsts[i, j] = firsts[j, i] = at
            strides[i, j], strides[j, i] = widths[j], 1
            found = np.zeros((widths[i], widths[j]))
            np.add.at(found, (labels[:, i], labels[:, j]), 1)
            wanted = rng.uniform(size=found.shape)
            excess.append((found - n * wanted / wanted.sum()).ravel())
            at += found.size
    return {
        "labels": labels,
        "parties": parties,
        "firsts": firsts,
        "strides": strides,
        "excess": np.concatenate(excess),
    }


def naive(labels, *, parties, firsts, strides, excess, steps, rng):
    """The same by counting every table anew for each exchange."""
    n, c = labels.shape
    rows = np.tile(np.arange(n), (parties.max() + 1, 1))
    drawn = rng.integers(n, size=(steps, 2), dtype=np.int64)
    chosen = rng.integers(len(rows), size=steps, dtype=np.int64)
    pairs = [(i, j) for i in range(c) for j in range(i + 1, c) if firsts[i, j] >= 0]

    def counted(rows):
        at = np.zeros(len(excess))
        for i, j in pairs:
            one, other = labels[rows[parties[i]], i], labels[rows[parties[j]], j]
            cells = firsts[i, j] + one * strides[i, j] + other * strides[j, i]
            np.add.at(at, cells, 1)
        return at

    start = counted(rows)
    now = excess.copy()
    for (r, s), party in zip(drawn, chosen, strict=True):
        tried = rows.copy()
        tried[party, [r, s]] = rows[party, [s, r]]
        then = excess + counted(tried) - start
        if np.square(then).sum() < np.square(now).sum() - 1e-6:
            rows, now = tried, then
    return rows


def test_it_exchanges_what_a_naive_twin_does() -> None:
    case = made_up(n=60)
    fast = exchange(**case, steps=400, rng=np.random.default_rng(1))
    slow = naive(**case, steps=400, rng=np.random.default_rng(1))
    assert np.array_equal(fast, slow)


def test_every_party_keeps_all_its_rows_and_arguments_stay_as_they_are() -> None:
    case = made_up()
    before = {name: value.copy() for name, value in case.items()}
    rows = exchange(**case, steps=5000, rng=np.random.default_rng(2))
    assert all(sorted(own) == list(range(300)) for own in rows)
    assert (rows[0] != np.arange(300)).any()
    assert all(np.array_equal(case[name], value) for name, value in before.items())


def test_without_tables_nobody_moves() -> None:
    case = made_up()
    case["firsts"][:] = -1
    rows = exchange(**case, steps=2000, rng=np.random.default_rng(2))
    assert np.array_equal(rows, np.tile(np.arange(300), (3, 1)))
