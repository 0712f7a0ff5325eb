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
from dataclasses import replace

import numpy as np
import pyarrow as pa
from scipy import stats
from splitmeans.local.algorithms import mechanism_of
from splitmeans.local.dplloyd import DpLloyd
from splitmeans.local.dplsf import Dplsf
from splitmeans.local.dplsf_paper import Leaf, grow

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
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.events import (
    CellSketchEvent,
    GaussianEvent,
    LaplaceEvent,
    PublishedSketchEvent,
    PureEvent,
    RandomisedResponseEvent,
    RareEvent,
)
from splitmeans.privacy.noise import NoiseSource, SecureNoise
from splitmeans.privacy.pld import flatten
from splitmeans.study import Budget
from splitmeans.study.coding import coding_of
from splitmeans.table.prepare import prepare_table
from splitmeans.table.walk.memory import MemoryUsers, as_rows
from splitmeans.wire.messages import (
    CellSketchMessage,
    DecoyMessage,
    HistogramMessage,
    MembershipMessage,
    RandomisedLabelsMessage,
    SketchMessage,
)
from tests.statistical.noise_laws import (
    TAIL,
    Release,
    errors_of,
    p_gaussian,
    p_laplace,
    p_share,
    p_table,
)
from tests.statistical.noisy_studies import STUDIES, plan_of, tables_of


def scales(event: object) -> list[float]:
    """The scales that the Gaussian parts of an event were accounted with."""
    parts = flatten((event,))
    return [part.realised.scale for part in parts if isinstance(part, GaussianEvent)]


# ---- what a party releases with Gaussian noise, by name: plan, release, scale, repetitions ----


def gaussian_cases() -> Iterator[tuple[str, Release, float, int]]:
    yield from stage_cases()
    yield from guided_cases()
    yield from detail_cases()
    plan = plan_of("hash tree")
    tree, law = mechanism_of(plan.local[0]), plan.local[0]
    assert isinstance(tree, Dplsf)
    *counts, sums = scales(law.event)
    leaves = [Leaf(prefix="", noisy_count=1, raw_members=np.arange(3))] * 4
    rows = np.arange(6).reshape(3, 2)
    yield "sums of leaves", lambda noise: tree.leaf_sums(rows, leaves, noise=noise), sums, 500

    def children(noise: NoiseSource) -> IntArray:
        bits = np.array([[False] * 400 + [True] * 400])
        grown = grow(
            bits,
            count_scale=tree.count_scale,
            low_noise_points=1,
            n_clusters=1,
            noise=noise,
            law="gaussian",
        )
        return np.array([leaf.noisy_count for leaf in grown])

    yield "counts of a tree", children, math.hypot(counts[1] / COUNT_UNITS, 12**-0.5), 1000


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
    plan = plan_of("pairs of three")
    guided, event = mechanism_of(plan.local[0]), plan.local[0].event
    assert isinstance(guided, GuidedLloyd)
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


def laplace_cases() -> Iterator[tuple[str, Release, float]]:
    # Little budget, so that scales are large.
    study = replace(STUDIES["Lloyd as published"](), budget=Budget(epsilon=0.2, delta=1e-4))
    plan = make_plan(study)
    (stage,) = plan.stages
    table, *_ = tables_of(study)
    event = stage.law_of(table.party).event
    assert isinstance(event, LaplaceEvent)
    own = event.noise_multiplier
    yield "number of users", lambda n: release_stage(stage, 1, table, noise=n).values, own
    lloyd = mechanism_of(plan.local[0])
    assert isinstance(lloyd, DpLloyd)
    rows = as_rows(np.zeros((5, 2), dtype=np.int64))
    centres = np.zeros((lloyd.n_clusters, 2), dtype=np.int64)
    counts, sums = lloyd.iteration_scales(3)
    _, event = flatten((plan.local[0].event,))
    assert isinstance(event, PureEvent)
    per_row = 1 / counts + sum(b / scale for b, scale in zip(lloyd.bounds, sums, strict=True))
    assert 3 * per_row <= event.epsilon
    units = np.array([*sums, counts]) / 100

    def steps(noise: NoiseSource) -> FloatArray:
        return lloyd.noisy_sums(rows, centres, iterations=3, noise=noise) / units

    yield "a step of Lloyd's", steps, 100.0
    event = plan.membership.event
    assert isinstance(event, LaplaceEvent)

    def histogram(noise: NoiseSource) -> IntArray:
        message = encode_membership(plan, 0, NOBODY, run_key=bytes(32), noise=noise)
        assert isinstance(message, HistogramMessage)
        return message.noisy_counts

    yield "sizes of clusters", histogram, event.noise_multiplier


def test_laplace_noise_of_parties_is_that_of_their_events() -> None:
    for name, release, scale in laplace_cases():
        assert p_laplace(errors_of(release, 600, SecureNoise), scale) > TAIL, name
        half = errors_of(release, 600, lambda: HalfNoise(SecureNoise()))
        assert p_laplace(half, scale) < TAIL, name


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
    for name in ("randomised labels", "against collusion"):
        plan = plan_of(name)
        law = plan.collusion_laws[0] or plan.membership
        assert isinstance(law.event, RandomisedResponseEvent)
        messages = [
            encode_membership(plan, 0, users, run_key=bytes(32), noise=noise)
            for noise in (Silence(), SecureNoise())
        ]
        without, kept = (zeros_in(plan, message) for message in messages)
        # Of k labels the true one is exp(epsilon) times as likely as each other one.
        odds, k = math.exp(law.event.epsilon), plan.n_local_clusters[0]
        assert p_share(n - (without - kept), n, odds / (odds + k - 1)) > TAIL, name


def zeros_in(plan: Plan, message: MembershipMessage) -> int:
    """How many records of a message have the first label, decoys among them."""
    if isinstance(message, RandomisedLabelsMessage):
        return int(np.sum(message.reports == 0))
    assert isinstance(message, DecoyMessage)
    (length,) = message.lengths.tolist()
    labels = unpack(message.labels, length, n_clusters=plan.n_local_clusters[0])
    return int(np.sum(labels == 0))


# ---- phantoms in registers ----


def test_phantoms_are_as_many_as_their_event_says() -> None:
    """Registers of a party without users: the largest of so many hash values, floored."""
    for name, kind in (
        ("registers", CellSketchEvent),
        ("registers as published", PublishedSketchEvent),
    ):
        plan = plan_of(name)
        event = next(iter(flatten((plan.membership_event,))))
        assert isinstance(event, kind)
        # In every cell, of which a label has as many as the other party has labels; or by cluster.
        per_label = plan.n_local_clusters[1] if plan.groups else 1
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
        assert p_table(found.astype(np.int64), tuple(chances)) > TAIL, name
        fewer = np.diff(np.append(np.sqrt(cdf[:-1]), 1.0), prepend=0.0)
        assert p_table(found.astype(np.int64), tuple(fewer)) < TAIL, name


def registers_of(message: MembershipMessage) -> IntArray:
    assert isinstance(message, CellSketchMessage | SketchMessage)
    return message.registers.astype(np.int64)
