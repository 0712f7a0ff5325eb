"""Epsilon of whole studies, claimed against two accountants of other constructions.

Laws are read from the whole numbers of the plan, with sensitivities written down here once more;
then a contour integral (`contour.py`) and Google's dp-accounting calculate epsilon. Only the
charge for discrete noise (`Gap`) is taken over. Run as a module it prints the table of
docs/concepts/audits.md: `python -m tests.privacy.test_independent_epsilon`.
"""

import functools
import math
import sys

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as library
from scipy import stats

from splitmeans.local.law import mu_scale
from splitmeans.local.laws.guided_lloyd import GuidedLloydLaw as GuidedLloyd
from splitmeans.local.laws.guided_lloyd import sensitivity
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.sketch.law import SketchLaw
from splitmeans.plan.bounds_stage import BoundsLaw
from splitmeans.plan.settle import make_plan
from splitmeans.plan.size_stage import SizeLaw
from splitmeans.plan.stages import PerParty
from splitmeans.plan.views import fellow_party_cost, fellow_party_events
from splitmeans.privacy.accountant import total_cost
from splitmeans.privacy.events import Relation
from splitmeans.privacy.pld import flatten, gap_of
from splitmeans.study import Budget, Column, PartySpec, Study
from splitmeans.study.id_rules import AS_IS
from tests.privacy.contour import Normal, Pure, Table, delta_at, epsilon_at, shifted

ROW = 2**20  # a row of a Gaussian count, in units of its noise
FINE = 2**8  # a grid unit of a round's sums, likewise
SCORE = 2**8  # a score of 1


def study(n_parties, epsilon, delta, *, columns=3, bounds=None, more=(), **options):
    parties = tuple(
        PartySpec(
            name=f"p{i}",
            columns=(
                *(Column(name=f"x{j}", low=-1.0, high=1.0, bounds=bounds) for j in range(columns)),
                *more,
            ),
        )
        for i in range(n_parties)
    )
    return Study(
        name="independent",
        parties=parties,
        n_clusters=4,
        budget=Budget(epsilon=epsilon, delta=delta),
        expected_users=8_000,
        ids=AS_IS,
        **{"n_local_clusters": 4} | options,
    )


STUDIES = {
    "decoy, S=2": study(2, 1.0, 5e-5),
    "decoy, S=2, one column": study(2, 0.3, 1e-6, columns=1),
    "decoy, S=2, partial sets": study(2, 0.5, 1e-6, user_sets="partial"),
    "decoy, S=3 in pairs": study(3, 1.0, 1e-5),
    "decoy, S=3, partial sets": study(3, 2.0, 1e-5, user_sets="partial"),
    "decoy, S=5 in pairs": study(5, 4.0, 1e-6),
    "decoy, S=2, k' from a size": study(2, 1.0, 5e-5, n_local_clusters="auto"),
    "decoy, S=3, k' from sizes, partial sets": study(
        3, 1.0, 1e-5, user_sets="partial", n_local_clusters="auto"
    ),
    "decoy, S=2, private bounds": study(2, 1.0, 5e-5, bounds="private", n_local_clusters="auto"),
    "decoy, S=2, open categories": study(
        2, 1.0, 5e-5, columns=1, more=[Column(name="c", categories="open")]
    ),
    "sketch, k' from a size": study(2, 1.0, 5e-5, membership="sketch", n_local_clusters="auto"),
    "sketch, S=2": study(2, 1.0, 5e-5, membership="sketch"),
    "sketch, S=3 in pairs": study(3, 2.0, 1e-5, membership="sketch"),
}


@functools.cache
def plan_of(name):
    return make_plan(STUDIES[name])


def local_laws(mechanism, *, factor=1):
    """What one user's row does to a local release; a replaced row moves it by twice as much."""
    d = len(mechanism.bounds)
    match mechanism:
        case GuidedLloyd(survey=survey):
            # A column of categories is one column: a row is in one of its levels.
            d = len(mechanism.levels or mechanism.bounds)
            mus = [ROW / survey.size_scale, math.sqrt(d) * ROW / survey.column_scale]
            if d > 1:
                # Equal scores have the longest products: all are l^2 / d then.
                longest = math.isqrt(int(1.5 * d * SCORE**2))
                products = math.sqrt(d * (d - 1) / 2) * longest**2 / d
                mus += [products / survey.product_scale, ROW / survey.cell_scale]
            largest = math.sqrt(sum(bound**2 for bound in mechanism.bounds))
            radii = np.geomspace(mechanism.smallest_radius, largest, 500).astype(int).tolist()
            for mu in mechanism.round_mus:
                scales = [mu_scale(sensitivity(r), mu=mu) for r in radii]
                # A row adds an offset of length r, 3/8 r for the count and r/2 for the squares.
                moves = [FINE * math.hypot(r, 3 * r / 8, r / 2) for r in radii]
                mus.append(max(move / scale for move, scale in zip(moves, scales, strict=True)))
            return [Normal(factor * math.hypot(*mus))]
    raise AssertionError(mechanism)


def learned_laws(law, *, factor=1):
    """What one user's row does to the counts that bounds or categories are learned from."""
    # A row is in one bin of each column, in each of seven rounds; in one category.
    scales = law.scales if isinstance(law, BoundsLaw) else (law.scale,)
    return [Normal(factor * math.sqrt(len(law.columns)) * ROW / scale) for scale in scales]


def register_table(law):
    """F^n floored, from its definition, with and without one more element; all rows."""
    values = np.arange(law.floor, law.floor + 90, dtype=float)
    log_cdf = np.log1p(-np.exp(-values * math.log1p(law.gamma)))

    def pmf(n):
        survival = -np.expm1(n * log_cdf)
        survival[-1] = 0.0
        return -np.diff(survival, prepend=1.0)

    return Table(pmf(law.phantoms), pmf(law.phantoms + 1), law.repetitions)


def laws_of(plan):
    """All releases towards the server."""
    laws = [law for mechanism in plan.local for law in local_laws(mechanism)]
    for stage in plan.stages:
        match stage.law:
            case SizeLaw(scale=scale):
                laws += [Normal(ROW / scale)] * len(stage.parties)
            case PerParty(laws=own):
                laws += [normal for law in own for normal in learned_laws(law)]
    match plan.membership:
        case DecoyLaw(weights=weights):
            presence = () if plan.presence is None else (plan.presence.weights,)
            laws += [shifted(weights)] * (len(plan.groups) - len(presence))
            laws += [shifted(own) for own in presence]
        case SketchLaw() as law:
            laws += [register_table(law)] * len(plan.groups)
    return laws


def gap_of_plan(plan):
    return gap_of(flatten(plan.events))


def laws_towards_party(plan):
    """Replaced values elsewhere, towards the party that sees most: local releases and H + D + E."""
    sigma = plan.membership.server_sigma
    noise = stats.norm.pdf(np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1) / sigma)
    # Parties are alike here, so any of them sees as much as another one.
    laws = [law for mechanism in plan.local[1:] for law in local_laws(mechanism, factor=2)]
    for stage in plan.stages:
        if isinstance(stage.law, PerParty):
            # A replaced value leaves one bin for another.
            learned = [learned_laws(law, factor=math.sqrt(2)) for law in stage.law.laws[1:]]
            laws += [normal for own in learned for normal in own]
    # Who is at which parties does not change with values.
    n_tables = len(plan.groups) - (plan.presence is not None)
    return [*laws, *[shifted(noise)] * (2 * n_tables)]


def of_library(law, interval):
    match law:
        case Normal(mu=mu):
            return library.from_gaussian_mechanism(1 / mu, value_discretization_interval=interval)
        case Pure(epsilon=epsilon):
            likely = 1 / (1 + math.exp(-epsilon))
            return of_library(Table([1 - likely, likely], [likely, 1 - likely]), interval)
        case Table(laws=(away, there)):
            return library.PrivacyLossDistribution(
                _direction(away, there, interval), _direction(there, away, interval)
            )
    raise AssertionError(law)


def _direction(upper, lower, interval):
    both = (upper > 0) & (lower > 0)
    loss = np.log(upper[both] / lower[both])
    steps = np.arange(math.floor(loss.min() / interval), math.ceil(loss.max() / interval) + 1)
    deltas = [np.maximum(upper - math.exp(step * interval) * lower, 0).sum() for step in steps]
    return pld_pmf.create_pmf_pessimistic_connect_dots(interval, steps, np.array(deltas))


def library_epsilon(laws, delta, gap):
    """By dp-accounting; none for sketches, whose rows are finer than any grid it could carry."""
    if any(isinstance(law, Table) and law.count > 1 for law in laws):
        return None
    composed = functools.reduce(
        lambda one, other: one.compose(other), [of_library(law, 1e-3) for law in laws]
    )
    epsilon = 0.0
    for _ in range(20):
        left = delta - gap.rare - (1 + math.exp(epsilon)) * gap.distance
        found = composed.get_epsilon_for_delta(left * math.exp(-gap.loss)) + gap.loss
        epsilon, before = found, epsilon
        if abs(epsilon - before) < 1e-9:
            break
    return epsilon


@functools.cache
def figures(name):
    """Return claimed epsilon and that of the contour integral and of dp-accounting."""
    plan = plan_of(name)
    budget = plan.study.budget
    claimed = total_cost(plan.events, delta=budget.delta).epsilon
    laws, gap = laws_of(plan), gap_of_plan(plan)
    return (
        claimed,
        epsilon_at(laws, budget.delta, gap=gap),
        library_epsilon(laws, budget.delta, gap),
    )


@pytest.mark.parametrize("name", STUDIES)
def test_claimed_epsilon_is_that_of_independent_accountants(name):
    claimed, contour, of_google = figures(name)
    assert claimed <= STUDIES[name].budget.epsilon
    # Never below what is true, and hardly above: our grid rounds towards more loss.
    assert contour * (1 - 1e-6) <= claimed <= contour * (1 + 1e-4)
    if of_google is not None:
        assert claimed == pytest.approx(of_google, rel=1e-3)


DECOYS = [name for name in STUDIES if name.startswith("decoy")]


@functools.cache
def figures_towards_party(name):
    plan = plan_of(name)
    delta = plan.study.budget.delta
    cost = fellow_party_cost(plan, Relation.REPLACE)
    gap = gap_of(flatten(fellow_party_events(plan, Relation.REPLACE)[0]))
    return cost.epsilon, epsilon_at(laws_towards_party(plan), delta, gap=gap)


@pytest.mark.parametrize("name", DECOYS)
def test_epsilon_towards_a_party_is_that_of_the_contour_integral(name):
    claimed, contour = figures_towards_party(name)
    assert contour * (1 - 1e-6) <= claimed <= contour * (1 + 1e-4)


def test_one_percent_less_noise_is_noticed():
    """The broken twin: figures of laws with 1 % less noise lie outside the tolerance above."""
    plan = plan_of("decoy, S=2")
    claimed, contour, _ = figures("decoy, S=2")
    local = [Normal(law.mu * 1.01) for mechanism in plan.local for law in local_laws(mechanism)]
    laws = [*local, *laws_of(plan)[len(plan.local) :]]
    broken = epsilon_at(laws, plan.study.budget.delta, gap=gap_of_plan(plan))
    assert broken > claimed * (1 + 2e-3) > contour


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_contour_integral_of_a_normal_law(mu, epsilon):
    expected = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(
        -mu / 2 - epsilon / mu
    )
    assert delta_at([Normal(mu)], epsilon) == pytest.approx(expected, rel=1e-9)
    halves = [Normal(mu / math.sqrt(2))] * 2
    assert delta_at(halves, epsilon) == pytest.approx(expected, rel=1e-9)


def test_contour_integral_of_tables_by_hand():
    """Two outcomes once: delta is the sum of positive parts; and an outcome of one law alone."""
    coin = Table([0.25, 0.75], [0.75, 0.25])
    assert delta_at([coin], 0.5) == pytest.approx(0.75 - 0.25 * math.exp(0.5), rel=1e-4)
    assert delta_at([Pure(math.log(3))], 0.5) == pytest.approx(
        0.75 - 0.25 * math.exp(0.5), rel=1e-4
    )
    ends = shifted([1, 2, 1])
    positive = 0.25 + max(0.0, 0.5 - math.exp(0.2) * 0.25)
    assert delta_at([ends], 0.2) == pytest.approx(positive, rel=1e-4)


def table():
    """Yield the lines of the tables."""
    yield "| study | budget | claimed | contour integral | ratio | dp-accounting |"
    yield "|---|---|---|---|---|---|"
    for name, chosen in STUDIES.items():
        claimed, contour, of_google = figures(name)
        google = "-" if of_google is None else f"{of_google:.6f}"
        budget = f"({chosen.budget.epsilon:g}, {chosen.budget.delta:g})"
        ratio = f"{claimed / contour:.6f}"
        yield f"| {name} | {budget} | {claimed:.6f} | {contour:.6f} | {ratio} | {google} |"
    yield ""
    yield "| study, towards a party | claimed | contour integral | ratio |"
    yield "|---|---|---|---|"
    for name in DECOYS:
        claimed, contour = figures_towards_party(name)
        yield f"| {name} | {claimed:.6f} | {contour:.6f} | {claimed / contour:.6f} |"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in table())
