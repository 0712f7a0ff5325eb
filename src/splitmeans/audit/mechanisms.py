"""The mechanisms under audit, each with its claim, its exact cost and a way to run it.

Parameters are chosen so that a few thousand trials can tell noise that is wrong by a factor from
noise that is right: rather large epsilons, and a delta of 10^-3 where there is one. Cases that run
a whole local clustering or a whole run are slow; their quick form has just enough trials to notice
that noise is missing altogether. What is audited is the code; that its parameters fit a budget is
the accountant's part.
"""

import functools
import math
from collections.abc import Callable, Mapping

import numpy as np

from splitmeans.audit import decoy_views, fit_views, local_views, sketch_views
from splitmeans.audit.case import Case
from splitmeans.local import make_local
from splitmeans.local.lsh_tree import LshTree
from splitmeans.local.mechanism import COUNT_UNITS
from splitmeans.membership.cell_sketch.law import CellSketch, phantoms_for
from splitmeans.membership.decoy.law import DecoyLaw, decoy_law
from splitmeans.membership.independent.law import NoisyHistogram
from splitmeans.membership.ldp.law import RandomisedLabels
from splitmeans.membership.sketch.law import PublishedSketch
from splitmeans.plan import make_plan
from splitmeans.privacy.events import CountGaussianEvent, GaussianEvent, LaplaceEvent
from splitmeans.privacy.pld import epsilon_for

DELTA = 1e-3
_TREE_DEPTH = 3


def audit_decoys(mu: float = 0.5) -> DecoyLaw:
    """The decoy law that is audited; twins halve its noise."""
    return decoy_law(mu, delta_share=1e-5)


def audit_gaussian_tree() -> LshTree:
    """A tree whose Gaussian leaf sums are audited at (1, DELTA)."""
    return LshTree(
        n_clusters=1,
        bounds=(2**20, 2**19),
        epsilon=1.25,
        sum_share=0.8,
        delta=DELTA,
        sums="gaussian",
    )


def _user_count() -> Case:
    # The paper's split gives the count 2 % of epsilon.
    study = fit_views.small_study(
        membership="independent", epsilon=50.0, delta=DELTA, accounting="paper"
    )
    plan = make_plan(study)
    assert plan.count_scale is not None
    return Case(
        name="user-count",
        what="noisy number of users (Laplace)",
        claimed=1.0,
        delta=0.0,
        exact=1 / plan.count_scale,
        sample=functools.partial(local_views.user_count, plan),
        trials=10_000,
        long_trials=50_000,
    )


def _histogram() -> Case:
    law = NoisyHistogram(epsilon=1.0)
    return Case(
        name="histogram",
        what="noisy cluster size (Laplace)",
        claimed=law.epsilon,
        delta=0.0,
        exact=1 / law.scale,
        sample=functools.partial(local_views.histogram, law),
        trials=20_000,
        long_trials=500_000,
    )


def _randomised(name: str, n_local_clusters: int) -> Case:
    law = RandomisedLabels(epsilon=1.0, n_local_clusters=n_local_clusters)
    return Case(
        name=name,
        what=f"a user's randomised label among {n_local_clusters}, replaced",
        claimed=law.epsilon,
        delta=0.0,
        exact=math.log(law.true_words / law.other_words),
        sample=functools.partial(local_views.randomised_label, law),
        trials=20_000,
        long_trials=1_000_000,
    )


def _tree_counts_laplace() -> Case:
    levels, scale = _TREE_DEPTH + 1, 4.0
    event = LaplaceEvent(noise_multiplier=scale, single_count=True)
    return Case(
        name="tree-counts",
        what=f"noisy counts on {levels} levels of a hash tree (Laplace)",
        claimed=levels / scale,
        delta=DELTA,
        exact=epsilon_for((event,) * levels, DELTA),
        sample=functools.partial(
            local_views.tree_counts, count_scale=scale, depth=_TREE_DEPTH, law="laplace"
        ),
        trials=2_000,
        long_trials=20_000,
    )


def _tree_counts_gaussian() -> Case:
    levels, multiplier = _TREE_DEPTH + 1, 4
    cost = epsilon_for((GaussianEvent(noise_multiplier=multiplier),) * levels, DELTA)
    return Case(
        name="tree-counts-gaussian",
        what=f"noisy counts on {levels} levels of a hash tree (Gaussian)",
        claimed=cost,
        delta=DELTA,
        exact=cost,
        sample=functools.partial(
            local_views.tree_counts,
            count_scale=multiplier * COUNT_UNITS,
            depth=_TREE_DEPTH,
            law="gaussian",
        ),
        trials=2_000,
        long_trials=20_000,
    )


def _leaf_sum() -> Case:
    tree = LshTree(n_clusters=1, bounds=(1000, 500), epsilon=1.25, sum_share=0.8)
    return Case(
        name="leaf-sum",
        what="noisy sum of a leaf's rows (Laplace)",
        claimed=1.0,
        delta=0.0,
        exact=sum(tree.bounds) / tree.sum_scale,
        sample=functools.partial(local_views.leaf_sum, tree),
        trials=20_000,
        long_trials=200_000,
    )


def _leaf_sum_gaussian() -> Case:
    tree = audit_gaussian_tree()
    return Case(
        name="leaf-sum-gaussian",
        what="noisy sum of a leaf's rows (Gaussian)",
        claimed=1.0,
        delta=DELTA,
        exact=epsilon_for(tree.event.parts[-1:], DELTA),
        sample=functools.partial(local_views.leaf_sum, tree),
        trials=20_000,
        long_trials=200_000,
    )


def _local(method: str, trials: int, **cost: float) -> Case:
    mechanism = make_local(method, n_clusters=1, bounds=(2**20,), **cost)
    exact = epsilon_for((mechanism.event,), DELTA)
    return Case(
        name=method,
        what="a centre from all steps of the local clustering",
        claimed=cost.get("epsilon", exact),
        delta=DELTA,
        exact=exact,
        sample=functools.partial(local_views.local_centre, mechanism, user=np.array([2**20])),
        trials=trials,
        long_trials=4_000,
    )


def _published_one_party() -> Case:
    law = PublishedSketch(epsilon=4.0, delta=DELTA, gamma=1.0, repetitions=1024)
    return Case(
        name="sketch-paper-one-party",
        what="one party's published sketch alone",
        claimed=law.epsilon,
        delta=DELTA,
        exact=epsilon_for((sketch_views.one_party_event(law),), DELTA),
        sample=functools.partial(sketch_views.published_one_party, law),
        trials=4_000,
        long_trials=50_000,
    )


def _cell_sketch() -> Case:
    rows, floor = 512, 4
    phantoms = phantoms_for(1.0, repetitions=rows, gamma=1.0, floor=floor)
    law = CellSketch(repetitions=rows, gamma=1.0, phantoms=phantoms, floor=floor)
    cost = epsilon_for((law.event,), DELTA)
    return Case(
        name="sketch",
        what="cell sketches of two parties together",
        claimed=cost,
        delta=DELTA,
        exact=cost,
        sample=functools.partial(sketch_views.cell_sketch, law),
        trials=1_200,
        long_trials=20_000,
    )


def _decoy() -> Case:
    law = audit_decoys()
    cost = epsilon_for((law.event,), DELTA)
    return Case(
        name="decoy",
        what="joined records of two parties, in the user's cell",
        claimed=cost,
        delta=DELTA,
        exact=cost,
        sample=functools.partial(decoy_views.changed_cell, law),
        trials=20_000,
        long_trials=1_000_000,
    )


def _decoy_sampled() -> Case:
    law = audit_decoys()
    cost = epsilon_for((law.event,), DELTA)
    return Case(
        name="decoy-sampled",
        what="tags of a sampled user's cluster",
        claimed=cost,
        delta=DELTA,
        exact=cost,
        sample=functools.partial(decoy_views.low_tags, law, rate=0.05, broken=False),
        trials=10_000,
        long_trials=200_000,
    )


def _server_noise() -> Case:
    law = audit_decoys()
    cost = epsilon_for((CountGaussianEvent(scale=law.server_sigma),) * 2, DELTA)
    return Case(
        name="server-noise",
        what="published counts, towards a party that knows the decoys",
        claimed=cost,
        delta=DELTA,
        exact=cost,
        sample=functools.partial(decoy_views.fellow_party, law),
        trials=50_000,
        long_trials=200_000,
    )


def _whole_run() -> Case:
    study = fit_views.small_study(membership="decoy", epsilon=1.0, delta=DELTA, accounting="tight")
    plan = make_plan(study)
    return Case(
        name="whole-run",
        what="all releases of a small run of two parties",
        claimed=study.budget.epsilon,
        delta=DELTA,
        exact=epsilon_for(plan.events, DELTA),
        sample=functools.partial(fit_views.small_fit, plan),
        trials=100,
        long_trials=2_000,
    )


MECHANISMS: Mapping[str, Callable[[], Case]] = {
    "user-count": _user_count,
    "histogram": _histogram,
    "ldp-direct": functools.partial(_randomised, "ldp-direct", 5),
    "ldp-hashed": functools.partial(_randomised, "ldp-hashed", 50),
    "tree-counts": _tree_counts_laplace,
    "tree-counts-gaussian": _tree_counts_gaussian,
    "leaf-sum": _leaf_sum,
    "leaf-sum-gaussian": _leaf_sum_gaussian,
    "dplloyd": functools.partial(_local, "dplloyd", 200, epsilon=2.0),
    "tree-lloyd": functools.partial(_local, "tree-lloyd", 120, mu=0.5),
    "sketch-paper-one-party": _published_one_party,
    "sketch": _cell_sketch,
    "decoy": _decoy,
    "decoy-sampled": _decoy_sampled,
    "server-noise": _server_noise,
    "whole-run": _whole_run,
}
