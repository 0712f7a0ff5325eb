"""Mixtures, medians and trees from a run over split columns, beside the same models of pooled rows.

Objectives are those of true rows, in distance units: of mixtures the log likelihood of a row that
nobody was fitted to, of medians the mean absolute distance, of trees the mean squared distance at
each cut. Pooled rows are a synopsis too, of one user at each, so a reference is the same model
without noise and without cells. What k-means centres reach in a model's place is the yardstick.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.data import Recipe, load
from benchmarks.pool import run_jobs
from benchmarks.synthetic.contest import Case, own_study
from benchmarks.synthetic.tables import TABLES, MixedTable, load_table
from splitmeans._types import FloatArray
from splitmeans.estimator import VerticalKMeans
from splitmeans.intervals.sizes import size_intervals
from splitmeans.intervals.tree_sizes import tree_intervals
from splitmeans.kmeans.distances import nearest_distance
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.result.intervals import plan_of
from splitmeans.result.result import Result
from splitmeans.synopsis.models.borders import segments_of
from splitmeans.synopsis.models.medians import absolute_distances, distance_factors
from splitmeans.synopsis.models.mixture import Mixture
from splitmeans.synopsis.models.mixture_steps import Components
from splitmeans.synopsis.models.model_users import layout_of
from splitmeans.synopsis.models.tree import SegmentTree
from splitmeans.synopsis.synopsis import Synopsis

NUMBERS = ("mixed-gaussian", "letter", "loan", "uneven-clusters", "heavy-tails")
DATA_SETS = (*NUMBERS, "census-like", "credit-like")
NEED_FILES = ("letter", "loan")
TREE_KS = tuple(range(2, 13))
# With a fifth of the rows held out, as many are left as a model is fitted to.
_ROWS = 12_500
_HELD_OUT = 5
_DELTA = 1e-6


@dataclass(frozen=True, kw_only=True)
class Score:
    """What a model reached on true rows.

    Attributes:
        data: The data set.
        seed: Draws it, and the noise.
        model: "mixture", "medians" or "tree".
        k: Segments.
        ours: From the synopsis.
        pooled: The same model fitted to the pooled rows.
        means: k-means of the synopsis in its place.
        intervals: How many sizes have a 95 % interval.
        right: How many of them hold the true rows of the segment.
    """

    data: str
    seed: int
    model: str
    k: int
    ours: float
    pooled: float
    means: float
    intervals: int = 0
    right: int = 0


def run_models(
    *,
    data: Sequence[str],
    ks: Sequence[int],
    seeds: int,
    epsilon: float,
    data_dir: Path | None,
    workers: int,
) -> Iterator[list[Score]]:
    """Yield the scores of each run."""
    jobs = [(name, seed, tuple(ks), epsilon, data_dir) for name in data for seed in range(seeds)]
    for _, scores in run_jobs(_scores, jobs, workers=workers):
        yield scores


def _scores(
    name: str, seed: int, ks: tuple[int, ...], epsilon: float, data_dir: Path | None
) -> list[Score]:
    result, rows, held_out = fitted(name, seed=seed, epsilon=epsilon, data_dir=data_dir)
    pooled = _of_rows(result.synopsis, rows)
    found = []
    for k in ks:
        found.append(_mixtures(name, result, pooled, held_out, k=k, seed=seed))
        found.append(_medians(name, result, pooled, k=k, seed=seed))
    return found + _trees(name, result, pooled, seed=seed)


def fitted(
    name: str, *, seed: int, epsilon: float, data_dir: Path | None
) -> tuple[Result, FloatArray, FloatArray]:
    """Return the result of a run of two parties, its rows and others, in own units of features."""
    if name in TABLES:
        return _fitted_table(
            load_table(name, seed=seed, n=_ROWS, data_dir=data_dir), seed=seed, epsilon=epsilon
        )
    drawn = load(name, n_parties=2, seed=seed, recipe=Recipe(n=_ROWS), data_dir=data_dir)
    order = np.random.default_rng([seed, 0x3D]).permutation(len(drawn.rows))[:_ROWS]
    rows, cut = drawn.rows[order], len(order) // _HELD_OUT
    model = VerticalKMeans(
        5,
        epsilon=epsilon,
        delta=_DELTA,
        bounds=(-1, 1),
        noise=InsecureSeededNoise(seed),
        random_state=seed,
    ).fit([rows[cut:, own] for own in drawn.party_columns])
    columns = np.concatenate(drawn.party_columns)
    return model.published_, rows[cut:, columns], rows[:cut, columns]


def _fitted_table(
    table: MixedTable, *, seed: int, epsilon: float
) -> tuple[Result, FloatArray, FloatArray]:
    order = np.random.default_rng([seed, 0x3D]).permutation(len(table.rows))
    cut = len(order) // _HELD_OUT
    used, held_out = table.rows.take(order[cut:]), table.rows.take(order[:cut])
    case = Case(data="", n_parties=2, epsilon=epsilon, seed=seed)
    study = own_study(table, case, delta=_DELTA, rows=len(used))
    blocks = [used.select([column.name for column in one.columns]) for one in study.parties]
    model = VerticalKMeans(noise=InsecureSeededNoise(seed), random_state=seed)
    model.allow_clipping = True
    model.fit_study(study, blocks, ids=[np.arange(len(used))] * len(blocks))

    def features(rows: object) -> FloatArray:
        found = []
        for column in (column for one in study.parties for column in one.columns):
            own = rows[column.name]  # type: ignore[index]
            if column.levels:
                values = np.array(own.to_pylist(), dtype=object)
                found += [(values == level).astype(np.float64) for level in column.levels]
            else:
                found.append(np.clip(own.to_numpy().astype(np.float64), column.low, column.high))
        return np.stack(found, axis=1)

    return model.published_, features(used), features(held_out)


def _of_rows(synopsis: Synopsis, rows: FloatArray) -> Synopsis:
    """Return a synopsis of the rows themselves: a user at each."""
    return Synopsis(
        scaled_nodes=synopsis.scaled_centres(rows),
        weights=np.ones(len(rows)),
        party_names=synopsis.party_names,
        features=synopsis.features,
        columns=synopsis.columns,
        stretch=synopsis.stretch,
    )


def _mixtures(
    name: str, result: Result, pooled: Synopsis, held_out: FloatArray, *, k: int, seed: int
) -> Score:
    synopsis = result.synopsis
    return Score(
        data=name,
        seed=seed,
        model="mixture",
        k=k,
        ours=synopsis.mixture(k, random_state=seed).score(held_out),
        pooled=pooled.mixture(k, random_state=seed).score(held_out),
        means=_round_clusters(synopsis, k, seed=seed).score(held_out),
    )


def _round_clusters(synopsis: Synopsis, k: int, *, seed: int) -> Mixture:
    """Return k-means as a mixture: Gaussians of one variance in all columns."""
    clusters, layout = synopsis.cluster(k, random_state=seed), layout_of(synopsis)
    means = layout.numbers_of(clusters.scaled_centres)
    nodes = layout.numbers_of(synopsis.scaled_nodes)
    nearest = nearest_distance(nodes, means)
    variance = float(synopsis.weights @ nearest) / synopsis.total / max(1, means.shape[1])
    components = Components(
        shares=clusters.sizes / clusters.sizes.sum(),
        means=means,
        covariances=np.full(means.shape, max(variance, 1e-4)),
        probabilities=tuple(
            (own + 1e-3) / (own + 1e-3).sum(axis=1, keepdims=True)
            for own in layout.shares_of(clusters.scaled_centres)
        ),
    )
    return Mixture(synopsis=synopsis, components=components, log_likelihood=math.nan)


def _medians(name: str, result: Result, pooled: Synopsis, *, k: int, seed: int) -> Score:
    synopsis = result.synopsis
    factors, places = distance_factors(synopsis), pooled.scaled_nodes

    def distance(scaled_centres: FloatArray) -> float:
        found = absolute_distances(places * factors, scaled_centres * factors)
        return float(found.min(axis=1).mean())

    ours = synopsis.medians(k, random_state=seed)
    plan = plan_of(result)
    assert plan is not None
    rng = np.random.default_rng(seed)
    intervals = size_intervals(plan, synopsis, [ours.borders], rng=rng)
    truth = np.bincount(segments_of(ours.borders, places), minlength=ours.k)
    right = (
        0
        if intervals is None
        else int(((intervals[0].low <= truth) & (truth <= intervals[0].high)).sum())
    )
    return Score(
        data=name,
        seed=seed,
        model="medians",
        k=k,
        ours=distance(ours.scaled_centres),
        pooled=distance(pooled.medians(k, random_state=seed).scaled_centres),
        means=distance(synopsis.cluster(k, random_state=seed).scaled_centres),
        intervals=0 if intervals is None else ours.k,
        right=right,
    )


def _trees(name: str, result: Result, pooled: Synopsis, *, seed: int) -> list[Score]:
    ours, reference = result.tree(max(TREE_KS)), pooled.tree(max(TREE_KS), random_state=seed)
    places = pooled.scaled_nodes
    plan = plan_of(result)
    assert plan is not None
    ends = tree_intervals(plan, ours, rng=np.random.default_rng(seed))
    counts = branch_rows(ours, places)
    scores = []
    for k in TREE_KS:
        here = list(ours.at(k))
        known = [] if ends is None else [at for at in here if ours.branches[at].since == k]
        right = 0 if ends is None else sum(ends[0][at] <= counts[at] <= ends[1][at] for at in known)
        seen = pooled.seen
        centres = seen(result.synopsis.cluster(k, random_state=seed).scaled_centres)
        scores.append(
            Score(
                data=name,
                seed=seed,
                model="tree",
                k=k,
                ours=_cut_loss(ours, pooled, k),
                pooled=_cut_loss(reference, pooled, k),
                means=float(nearest_distance(seen(places), centres).mean()),
                intervals=len(known),
                right=int(right),
            )
        )
    return scores


def _cut_loss(tree: SegmentTree, pooled: Synopsis, k: int) -> float:
    """Return the mean squared distance of rows to the centre of the segment that they are in."""
    cut = tree.cut(k)
    own = segments_of(cut.borders, pooled.scaled_nodes)
    gaps = pooled.seen(pooled.scaled_nodes - cut.scaled_centres[own])
    return float(np.square(gaps).sum(axis=1).mean())


def branch_rows(tree: SegmentTree, places: FloatArray) -> FloatArray:
    """Return how many rows are in every branch."""
    last = segments_of(tree.last_borders, places)
    found = np.bincount(last, minlength=len(tree.branches)).astype(np.float64)
    for at in reversed(range(len(found))):
        children = tree.branches[at].children
        if children is not None:
            found[at] = found[list(children)].sum()
    return found
