"""The server's view of the decoy join comes from the noisy counts alone; broken twins are caught.

`twin_view` writes down, in plain form, what all parties send together, and can be broken on
purpose. Seeds are fixed. Checks of the real protocol ask for p > 1e-4 each, about forty of them, so
that a new seed would fail with probability below 1 in 200; checks that must fail, for p < 1e-9.
"""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from splitmeans.kernels.siphash import hash_ids, prf_word
from splitmeans.membership.decoy.direct_labels import randomise
from splitmeans.membership.decoy.encode import encode
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.law import DecoyLaw, collusion_law, decoy_law
from splitmeans.membership.decoy.layout import pack, unpack
from splitmeans.membership.decoy.tag_lists import LOW_BITS, code_tags, short_tags, tag_pieces
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.table.walk.memory import MemoryUsers
from splitmeans.wire import keys
from splitmeans.wire.messages import DecoyMessage

GROUP = (0, 1)
WIDTHS = (3, 2)
RUNS = 150
HIGH_BITS = 12
TAG_BITS = LOW_BITS + HIGH_BITS
LAW = decoy_law(0.5, delta_share=1e-6)


@dataclass(frozen=True)
class Users:
    """Who has which label where; label k' means absent."""

    names: list[str]
    cells: np.ndarray  # shape (n, 2)

    def of(self, party: int, widths) -> tuple[pa.Array, np.ndarray]:
        present = self.cells[:, party] < widths[party]
        names = [name for name, here in zip(self.names, present, strict=True) if here]
        return pa.array(names, type=pa.string()), self.cells[present, party].astype(np.int32)


def run_key(seed: int) -> bytes:
    return InsecureSeededNoise(seed).words(4).tobytes()


def users_of(n: int, *, widths=WIDTHS, seed: int = 0) -> Users:
    """Some cells are crowded and some empty."""
    rng = np.random.default_rng(seed)
    cells = np.stack([rng.integers(width + 1, size=n) for width in widths], axis=1)
    cells[: n // 2] = (1, 0)
    somewhere = (cells < widths).any(axis=1) & (cells != (2, 1)).any(axis=1)
    return Users([f"user {i}" for i in np.flatnonzero(somewhere)], cells[somewhere])


def true_cells(users: Users, *, widths=WIDTHS) -> np.ndarray:
    table = np.zeros([width + 1 for width in widths], dtype=np.int64)
    np.add.at(table, tuple(users.cells.T), 1)
    return table


def real_view(users: Users, key: bytes, *, law=LAW, widths=WIDTHS, **options):
    """What the parties send."""
    return [
        encode(
            law,
            users=MemoryUsers(ids=users.of(party, widths)[0], labels=users.of(party, widths)[1]),
            position=party,
            groups=(GROUP,),
            n_local_clusters=widths,
            run_key=key,
            high_bits=HIGH_BITS,
            noise=InsecureSeededNoise(0),
            **options,
        )
        for party in range(2)
    ]


def view_of(words, cells, *, widths, in_tag_order=True) -> list[DecoyMessage]:
    """Lay records out as the parties do: where a party is present, by tag, equal ones by label."""
    tags = short_tags(words, high_bits=HIGH_BITS)
    messages = []
    for party, width in enumerate(widths):
        here = np.flatnonzero(cells[:, party] < width)
        order = here[np.lexsort((cells[here, party], tags[here]))]
        lows, bitmap = code_tags(tags[order], high_bits=HIGH_BITS)
        labels = cells[order if in_tag_order else here, party].astype(np.uint8)
        messages.append(
            DecoyMessage(
                lengths=np.array([labels.size]),
                lows=lows,
                bitmaps=bitmap,
                labels=pack(labels, n_clusters=width),
            )
        )
    return messages


def tags_of(message: DecoyMessage) -> np.ndarray:
    """The tags of a message, as whole numbers."""
    pieces = tag_pieces(
        message.lows,
        message.bitmaps,
        high_bits=HIGH_BITS,
        n_pieces=1,
        most=len(message.lows),
    )
    return next(pieces)


def simulated_view(counts: np.ndarray, rng, *, widths=WIDTHS):
    """Make a view from the noisy counts H + D and fresh randomness, and from nothing else."""
    cells = np.repeat(np.argwhere(np.ones_like(counts)), counts.ravel(), axis=0)
    tags = rng.integers(0, 2**64, size=len(cells), dtype=np.uint64)
    return view_of(tags, cells, widths=widths)


@np.errstate(over="ignore")  # hashes wrap, which shows when they run uncompiled
def twin_view(users: Users, key: bytes, *, law=LAW, widths=WIDTHS, sample_rate=1.0, fault=""):
    """Write down the protocol in plain form, with one fault."""
    shape = [width + 1 for width in widths]
    grid = np.argwhere(np.ones(shape))[: math.prod(shape) - 1]
    first, second = words_of(key, keys.DECOY_COUNT)
    drawn = [prf_word(first, second, np.uint64(cell)) for cell in range(len(grid))]
    counts = np.searchsorted(law.cdf_table, np.array(drawn, dtype=np.uint64), side="right")
    if fault == "occupied cells only":
        raw_counts = true_cells(users, widths=widths).ravel()
        counts = np.where(raw_counts[: len(grid)] > 0, counts, 0)
    if fault == "one party's decoys only":
        counts = np.where((grid < widths).all(axis=1), 0, counts)
    first, second = words_of(key, keys.DECOY_TAG)
    span = 2 * law.truncation + 1
    places = [cell * span + number for cell, d in enumerate(counts) for number in range(d)]
    decoy_tags = [prf_word(first, second, np.uint64(place)) for place in places]
    decoy_cells = np.repeat(grid, counts, axis=0)
    if fault == "randomised decoys":
        response = collusion_law(1.0, n_local_clusters=widths[0])
        here = decoy_cells[:, 0] < widths[0]
        own = decoy_cells[here, 0].astype(np.int32)
        decoy_cells[here, 0] = randomise(response, own, noise=InsecureSeededNoise(4))
    names = pa.array(users.names, type=pa.string())
    user_tags = hash_ids(keys.subkey(key, keys.USER_TAG, group=GROUP), names)[:, 0]
    words = hash_ids(keys.subkey(key, keys.SAMPLE), names)[:, 0]
    if fault == "tag as sample":
        words = user_tags
    kept = words <= np.uint64(min(2**64 - 1, int(sample_rate * 2**64)))
    return view_of(
        np.concatenate([user_tags[kept], np.array(decoy_tags, dtype=np.uint64)]),
        np.concatenate([users.cells[kept], decoy_cells]),
        widths=widths,
        in_tag_order=fault != "users before decoys",
    )


def words_of(key: bytes, label: str) -> np.ndarray:
    return np.frombuffer(keys.subkey(key, label, group=GROUP), dtype=np.uint64)


def count(view, *, widths=WIDTHS) -> np.ndarray:
    tables = join_counts(view, groups=(GROUP,), n_local_clusters=widths, high_bits=HIGH_BITS)
    return tables[GROUP]


def features(view) -> dict[str, np.ndarray]:
    """Counts that say where a view puts its tags and labels, to be added up over runs."""
    found = {}
    for party, (message, width) in enumerate(zip(view, WIDTHS, strict=True)):
        labels = unpack(message.labels, int(message.lengths[0]), n_clusters=width).astype(int)
        eighth = np.arange(labels.size) * 8 // max(1, labels.size)
        found[f"place of labels {party}"] = np.bincount(labels * 8 + eighth, minlength=8 * width)
        following = labels[:-1] * width + labels[1:]
        found[f"following labels {party}"] = np.bincount(following, minlength=width * width)
        tags = tags_of(message)
        leading = (tags >> np.uint64(TAG_BITS - 5)).astype(int)
        found[f"leading bits {party}"] = np.bincount(leading, minlength=32)
        found[f"trailing bits {party}"] = np.bincount(
            (tags & np.uint64(31)).astype(int), minlength=32
        )
    return found


def add_up(views) -> dict[str, np.ndarray]:
    parts = [features(view) for view in views]
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def same_bytes(first, second) -> bool:
    return all(
        a.lows.tobytes() == b.lows.tobytes()
        and a.bitmaps.tobytes() == b.bitmaps.tobytes()
        and a.labels.tobytes() == b.labels.tobytes()
        for a, b in zip(first, second, strict=True)
    )


# ---- the simulator ----


def test_the_plain_form_is_the_protocol():
    users = users_of(40)
    assert same_bytes(real_view(users, run_key(1)), twin_view(users, run_key(1)))


def compare_with_simulator(view_maker, *, runs=RUNS, **options) -> dict[str, float]:
    """Return p-values by feature: is the view like one made from its own noisy counts?"""
    users = users_of(60)
    rng = np.random.default_rng(5)
    views = [view_maker(users, run_key(seed), **options) for seed in range(runs)]
    counts = [count(view) for view in views]
    simulated = [simulated_view(table, rng) for table in counts]
    # Some tags of 28 bits are equal by chance, and counted nowhere.
    for view, table in zip(simulated, counts, strict=True):
        assert np.abs(count(view) - table).sum() <= 2
    found, expected = add_up(views), add_up(simulated)
    return {
        name: float(stats.chi2_contingency(np.stack([found[name], expected[name]])).pvalue)
        for name in found
    }


def test_the_view_can_be_made_from_the_noisy_counts():
    p_values = compare_with_simulator(real_view)
    assert len(p_values) == 8
    assert min(p_values.values()) > 1e-4, p_values


def test_the_simulator_tells_broken_views():
    unsorted = compare_with_simulator(twin_view, runs=30, fault="users before decoys")
    assert unsorted["place of labels 0"] < 1e-9
    by_tag = compare_with_simulator(twin_view, runs=60, fault="tag as sample", sample_rate=0.5)
    assert by_tag["leading bits 0"] < 1e-9


def test_the_noisy_counts_are_the_users_plus_the_law():
    users = users_of(60)
    tables = np.array([count(real_view(users, run_key(seed))) for seed in range(RUNS)])
    decoys = (tables - true_cells(users)).reshape(RUNS, -1)[:, :-1]
    assert (true_cells(users) == 0).any()
    assert follows_the_law(decoys, LAW) > 1e-4
    for cell in range(decoys.shape[1]):  # each alone too: crowded, sparse and empty
        standard_error = math.sqrt(float(LAW.variance) / RUNS)
        assert abs(decoys[:, cell].mean() - LAW.mean) < 5 * standard_error
    # Correlations of 55 pairs of cells, 5 standard errors of 1 / sqrt(runs).
    correlation = np.corrcoef(decoys, rowvar=False) - np.eye(decoys.shape[1])
    assert np.abs(correlation).max() < 5 / math.sqrt(RUNS)


def test_nothing_tells_users_from_decoys():
    users = users_of(60)
    by_place = np.zeros((2, 8), dtype=np.int64)
    by_bits = np.zeros((2, 32), dtype=np.int64)
    for seed in range(RUNS):
        key = run_key(seed)
        names, _ = users.of(0, WIDTHS)
        words = hash_ids(keys.subkey(key, keys.USER_TAG, group=GROUP), names)[:, 0]
        mine = set((words >> np.uint64(64 - TAG_BITS)).tolist())
        tags = tags_of(real_view(users, key)[0])
        is_user = np.array([tag in mine for tag in tags.tolist()], dtype=int)
        assert is_user.sum() >= len(mine)
        np.add.at(by_place, (is_user, np.arange(len(tags)) * 8 // len(tags)), 1)
        np.add.at(by_bits, (is_user, (tags >> np.uint64(TAG_BITS - 5)).astype(int)), 1)
    for table in (by_place, by_bits):
        assert stats.chi2_contingency(table).pvalue > 1e-4


# ---- audit: every cell of a large group is one trial ----

AUDIT_WIDTHS = (48, 48)
AUDIT_LAW = decoy_law(1.0, delta_share=1e-6)
AUDIT_DELTA = 1e-3


def stated_epsilon(law: DecoyLaw, delta: float) -> float:
    probabilities = np.array(law.weights, dtype=np.float64) / 2**64
    without, with_user = np.append(probabilities, 0), np.append(0, probabilities)
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        excess = np.maximum(with_user - math.exp(middle) * without, 0).sum()
        low, high = (low, middle) if excess <= delta else (middle, high)
    return high


def audit(view_maker, *, runs: int, threshold: int, **options) -> float:
    """Return a lower bound on epsilon at `AUDIT_DELTA`, wrong with probability below 1e-3.

    Neighbours differ by one user in a cell; the test is whether H + D reaches the threshold.
    """
    names = [f"user {i}" for i in range(math.prod(AUDIT_WIDTHS))]
    full = Users(names, np.argwhere(np.ones(AUDIT_WIDTHS)))
    nobody = Users([], np.empty((0, 2), dtype=np.int64))
    hits = []
    for users in (full, nobody):
        tables = [
            count(
                view_maker(users, run_key(1000 + seed), widths=AUDIT_WIDTHS, **options),
                widths=AUDIT_WIDTHS,
            )
            for seed in range(runs)
        ]
        both = np.array(tables)[:, : AUDIT_WIDTHS[0], : AUDIT_WIDTHS[1]]
        hits.append((int((both >= threshold).sum()), both.size))
    (yes, n), (no, _) = hits
    with_user = stats.binomtest(yes, n).proportion_ci(0.999, "exact").low
    without = stats.binomtest(no, n).proportion_ci(0.999, "exact").high
    return math.log(max(with_user - AUDIT_DELTA, 1e-300) / without)


def test_the_audit_of_the_real_protocol_stays_below_its_epsilon():
    stated = stated_epsilon(AUDIT_LAW, AUDIT_DELTA)
    for above in (1, 2, 3):
        found = audit(real_view, runs=8, threshold=AUDIT_LAW.truncation + above, law=AUDIT_LAW)
        assert 0.5 < found < stated  # the lower end shows that the audit finds something


@pytest.mark.parametrize("fault", ["occupied cells only", "one party's decoys only"])
def test_cells_without_decoys_are_caught(fault):
    found = audit(twin_view, runs=2, threshold=1, law=AUDIT_LAW, fault=fault)
    assert found > stated_epsilon(AUDIT_LAW, AUDIT_DELTA)


def test_half_the_noise_is_caught():
    half = DecoyLaw(sigma=AUDIT_LAW.sigma / 2, truncation=AUDIT_LAW.truncation, server_sigma=1.0)
    found = audit(real_view, runs=8, threshold=half.truncation + 2, law=half)
    assert found > stated_epsilon(AUDIT_LAW, AUDIT_DELTA)


# ---- further broken twins ----


def tag_bits(view_maker, **options) -> float:
    """Return the p-value of uniform leading bits of one party's tags.

    One party's: most tags are at both, and counting them twice would not be a chi-square.
    """
    users = users_of(60)
    total = sum(
        np.bincount((tags_of(view[0]) >> np.uint64(TAG_BITS - 5)).astype(int), minlength=32)
        for seed in range(RUNS)
        for view in [view_maker(users, run_key(seed), sample_rate=0.5, **options)]
    )
    return float(stats.chisquare(total).pvalue)


def test_sampling_by_the_tag_is_caught():
    assert tag_bits(real_view) > 1e-4
    assert tag_bits(twin_view) > 1e-4
    assert tag_bits(twin_view, fault="tag as sample") < 1e-9


def test_a_reused_key_shows_the_difference_exactly():
    before, after = (users_of(n) for n in (60, 67))
    change = true_cells(after) - true_cells(before)
    assert change.any()

    def seen(first_key: bytes, second_key: bytes) -> np.ndarray:
        tables = [
            count(real_view(users, key))
            for users, key in ((before, first_key), (after, second_key))
        ]
        return tables[1] - tables[0]

    np.testing.assert_array_equal(seen(run_key(7), run_key(7)), change)
    assert (seen(run_key(7), run_key(8)) != change).any()


def follows_the_law(decoys: np.ndarray, law: DecoyLaw) -> float:
    """Return the p-value of the decoy law, rare values joined to classes of 10 or more."""
    observed = np.bincount(decoys.ravel(), minlength=2 * law.truncation + 1)
    expected = decoys.size * np.array(law.weights, dtype=np.float64) / 2**64
    often = np.flatnonzero(expected >= 10)
    low, high = often[0], often[-1]
    classes = []
    for counts in (observed, expected):
        inner = counts[low : high + 1].astype(np.float64)
        inner[0] += counts[:low].sum()
        inner[-1] += counts[high + 1 :].sum()
        classes.append(inner)
    return float(stats.chisquare(*classes).pvalue)


def test_randomised_decoys_are_caught():
    law = decoy_law(0.08, delta_share=1e-6)
    nobody = Users([], np.empty((0, 2), dtype=np.int64))
    options = {"widths": (24, 24)}
    views = {
        "real": real_view(nobody, run_key(1), law=law, **options),
        "twin": twin_view(nobody, run_key(1), law=law, **options),
        "broken": twin_view(nobody, run_key(1), law=law, fault="randomised decoys", **options),
    }
    decoys = {name: count(view, **options) for name, view in views.items()}
    assert follows_the_law(decoys["real"], law) > 1e-4
    np.testing.assert_array_equal(decoys["real"], decoys["twin"])
    # Spread over the cells, the decoys of many cells average out: less noise than was paid for.
    assert follows_the_law(np.clip(decoys["broken"], 0, 2 * law.truncation), law) < 1e-9
    assert decoys["broken"].var() < 0.7 * float(law.variance)
