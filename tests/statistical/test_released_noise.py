"""The noise in every release has the law of the event that the plan accounts for.

Each case calls the code of a real participant many times on fixed rows, with the operating
system's noise (the server's is keyed, as in a run), and subtracts what it releases without noise.
What is left is compared with the event's own numbers, never with a property that the code under
test may have changed too. `noise_laws.py` says how often a case fails by chance.
`test_drawn_noise.py` ties the draws of whole runs to the same events.
"""

import math
import os
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from scipy import stats

from audits.noise_twins import HalfNoise, Silence
from splitmeans._types import FloatArray, IntArray
from splitmeans.local.detail import Detail
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.local.law import COUNT_UNITS
from splitmeans.local.laws.guided_lloyd import sensitivity
from splitmeans.membership.decoy.layout import unpack
from splitmeans.party.open_categories import learn_categories
from splitmeans.party.private_bounds import count_round
from splitmeans.party.range_search import RangeSearch
from splitmeans.party.release import encode_membership
from splitmeans.party.stages import release_stage
from splitmeans.plan.plan import Plan
from splitmeans.privacy.events import (
    CellSketchEvent,
    GaussianEvent,
    RareEvent,
)
from splitmeans.privacy.noise import NoiseSource, SecureNoise
from splitmeans.privacy.pld import flatten
from splitmeans.study.coding import coding_of
from splitmeans.table.prepare import prepare_table
from splitmeans.table.walk.memory import MemoryUsers, as_rows
from splitmeans.wire.messages import (
    CellSketchMessage,
    DecoyMessage,
    MembershipMessage,
)
from tests.statistical.noise_laws import (
    TAIL,
    Release,
    errors_of,
    p_gaussian,
    p_share,
    p_table,
)
from tests.statistical.noisy_studies import plan_of, tables_of


def scales(event: object) -> list[float]:
    """The scales that the Gaussian parts of an event were accounted with."""
    parts = flatten((event,))
    return [part.realised.scale for part in parts if isinstance(part, GaussianEvent)]


# ---- what a party releases with Gaussian noise, by name: plan, release, scale, repetitions ----


def gaussian_cases() -> Iterator[tuple[str, Release, float, int]]:
    yield from stage_cases()
    yield from guided_cases()
    yield from detail_cases()


def stage_cases() -> Iterator[tuple[str, Release, float, int]]:
    plan = plan_of("values learned before")
    size, bounds, _ = plan.stages
    table, *_ = tables_of(plan.study)
    (scale,) = scales(size.law_of("bank").event)
    # Rounded to whole users at last.
    own = math.hypot(scale / COUNT_UNITS, 12**-0.5)
    yield "number of users", lambda n: release_stage(size, 1, table, noise=n).values, own, 3000
    law = bounds.law_of("bank")
    bins = tuple(RangeSearch(low=one.low, high=one.high).bins for one in law.columns)
    for number, scale in enumerate(scales(law.event)):
        yield (
            f"bounds, round {number}",
            lambda noise, at=number: count_round(
                law.columns, table.rows, bins, scale=law.scales[at], noise=noise
            ),
            scale / COUNT_UNITS,
            20,
        )


def guided_cases() -> Iterator[tuple[str, Release, float, int]]:
    plan = plan_of("presence and pairs")
    guided, event = GuidedLloyd.of(plan.local[0]), plan.local[0].event
    survey = guided.survey
    limits = np.array(guided.bounds)
    rows = as_rows(np.random.default_rng(1).integers(-limits, limits + 1, (400, 2)))
    known = survey.release(rows, noise=Silence())
    assert known.cells is not None
    columns = known.cells.columns
    bins = survey.bins(16)
    scores = [np.arange(16)] * 2
    size, column, product, cell, *rounds = scales(event)
    yield (
        "survey: number of rows",
        lambda noise: np.array([survey.release(rows, noise=noise).size]),
        size / COUNT_UNITS,
        250,
    )
    yield (
        "survey: bins of columns",
        lambda noise: survey.noisy_histograms(rows, bins, noise=noise),
        column / COUNT_UNITS,
        100,
    )
    yield (
        "survey: products",
        lambda noise: survey.noisy_products(rows, scores, noise=noise),
        product,
        2000,
    )
    yield (
        "survey: cells",
        lambda noise: survey.noisy_cells(rows, columns, noise=noise),
        cell / COUNT_UNITS,
        300,
    )
    centres = np.array([[-1, 0], [1, 0], [0, 1]]) * limits // 2
    multipliers = [part.noise_multiplier for part in flatten((event,))][-len(rounds) :]
    # Noise is in proportion to what a row can move at a centre of its radius.
    radii = guided.smallest_radius * np.array([1, 3, 20])
    units = np.array([[sensitivity(radius)] for radius in radii.tolist()])
    for number, multiplier in enumerate(multipliers):

        def sums(noise: NoiseSource, at: int = number) -> FloatArray:
            mu = guided.round_mus[at]
            return guided.noisy_sums(rows, centres, radii, mu=mu, noise=noise) / units

        yield f"round {number} of local clustering", sums, multiplier, 200


def detail_cases() -> Iterator[tuple[str, Release, float, int]]:
    plan = plan_of("detail and tables of columns")
    law = plan.detail[0]
    detail = Detail(n_columns=law.n_columns, n_pairs=law.n_pairs, mu=law.mu)
    coding = coding_of(plan.parties[0])
    limits = np.array(coding.bounds)
    edges = [np.array([0])] * 2 + [np.zeros(0, dtype=np.int64)]
    rng = np.random.default_rng(2)
    numbers = rng.integers(-limits[:2], limits[:2] + 1, (400, 2))
    rows = as_rows(np.column_stack([numbers, rng.integers(3, size=400)]))
    centres = np.array([[-1, 0, 0, 0, 0], [1, 0, 0, 0, 0]]) * limits // 2
    pairs = np.array([[0, 1], [0, 2]])
    assert len(pairs) == law.n_pairs
    whole, cluster, pair = (scale / COUNT_UNITS for scale in scales(law.event))

    def columns(noise: NoiseSource) -> FloatArray:
        return np.concatenate(detail.noisy_columns(rows, coding=coding, edges=edges, noise=noise))

    def clusters(noise: NoiseSource) -> tuple[FloatArray, FloatArray]:
        return detail.noisy_clusters(
            rows, centres=centres, coding=coding, edges=edges, pairs=pairs, noise=noise
        )

    yield "detail: whole columns", columns, whole, 300
    yield "detail: columns in clusters", lambda noise: clusters(noise)[0], cluster, 200
    yield "detail: pairs of columns", lambda noise: clusters(noise)[1], pair, 200


def test_gaussian_noise_of_parties_is_that_of_their_events() -> None:
    for name, release, scale, times in gaussian_cases():
        assert p_gaussian(errors_of(release, times, SecureNoise), scale) > TAIL, name


def test_half_of_it_would_be_caught() -> None:
    for name, release, scale, times in gaussian_cases():
        half = errors_of(release, times, lambda: HalfNoise(SecureNoise()))
        assert p_gaussian(half, scale) < TAIL, name


# ---- Laplace noise ----


NOBODY = MemoryUsers(ids=pa.array([], pa.large_string()), labels=np.zeros(0, dtype=np.int32))


# ---- categories above a threshold ----


def test_categories_pass_the_threshold_as_often_as_their_event_says() -> None:
    """Twenty categories, each a deviation of noise below the threshold."""
    plan = plan_of("values learned before")
    law = plan.stages[2].law_of("bank")
    counts, rare = flatten((law.event,))
    assert isinstance(counts, GaussianEvent)
    assert isinstance(rare, RareEvent)
    assert counts.realised is not None
    deviation = counts.realised.scale / COUNT_UNITS
    # One user alone shows with the probability of the event.
    threshold = 1 + stats.norm.isf(rare.probability) * deviation
    users = round(threshold - deviation)
    names = [f"job {number}" for number in range(20)]
    jobs = names * users
    data = {"id": np.arange(len(jobs)), "income": np.ones(len(jobs)), "job": jobs}
    table = prepare_table(plan.study.parties[0], data)
    times = 100
    shown = sum(
        len(learn_categories(law, table.rows, table.names, noise=SecureNoise())[0])
        for _ in range(times)
    )
    chance = float(stats.norm.sf((threshold - users) / deviation))
    assert p_share(shown, times * len(names), chance) > TAIL
    # Half the noise, or a threshold that is one deviation lower.
    for wrong in (stats.norm.sf(2 * (threshold - users) / deviation), 0.5):
        assert p_share(round(wrong * times * len(names)), times * len(names), chance) < TAIL


# ---- randomised labels ----


def test_labels_are_kept_as_often_as_their_event_says() -> None:
    n = 20_000
    ids = pa.array([str(number) for number in range(n)], pa.large_string())
    users = MemoryUsers(ids=ids, labels=np.zeros(n, dtype=np.int32))
    plan = plan_of("against collusion")
    law = plan.collusion_laws[0]
    assert law is not None
    messages = [
        encode_membership(plan, 0, users, run_key=bytes(32), noise=noise)
        for noise in (Silence(), SecureNoise())
    ]
    without, kept = (zeros_in(plan, message) for message in messages)
    # Of k labels the true one is exp(epsilon) times as likely as each other one.
    odds, k = math.exp(law.event.epsilon), plan.n_local_clusters[0]
    assert p_share(n - (without - kept), n, odds / (odds + k - 1)) > TAIL


def zeros_in(plan: Plan, message: MembershipMessage) -> int:
    """How many records of a message have the first label, decoys among them."""
    assert isinstance(message, DecoyMessage)
    (length,) = message.lengths.tolist()
    labels = unpack(message.labels, length, n_clusters=plan.n_local_clusters[0])
    return int(np.sum(labels == 0))


# ---- phantoms in registers ----


def test_phantoms_are_as_many_as_their_event_says() -> None:
    """Registers of a party without users: the largest of so many hash values, floored."""
    plan = plan_of("registers")
    event = next(iter(flatten((plan.membership_event,))))
    assert isinstance(event, CellSketchEvent)
    # In every cell, of which a label has as many as the other party has labels.
    per_label = plan.n_local_clusters[1]
    registers = np.concatenate(
        [
            registers_of(encode_membership(plan, 0, NOBODY, run_key=key, noise=SecureNoise()))
            for key in map(os.urandom, [32] * 12)
        ]
    )
    assert registers.size >= 2500
    floor = max(event.floor, 1)
    values = np.arange(floor, floor + 200)
    cdf = (1 - (1 + event.gamma) ** -values.astype(float)) ** (event.phantoms * per_label)
    chances = np.diff(np.append(cdf[:-1], 1.0), prepend=0.0)
    found = np.minimum(registers.ravel(), values[-1]) - floor
    assert p_table(found.astype(np.int64), tuple(chances)) > TAIL
    fewer = np.diff(np.append(np.sqrt(cdf[:-1]), 1.0), prepend=0.0)
    assert p_table(found.astype(np.int64), tuple(fewer)) < TAIL


def registers_of(message: MembershipMessage) -> IntArray:
    assert isinstance(message, CellSketchMessage)
    return message.registers.astype(np.int64)
