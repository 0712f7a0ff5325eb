"""What participants other than the server can learn, with an accounting of its own.

A fellow party knows the run key, hence every decoy, and its own rows. In the published cell counts
H + D + E only the server's noise E hides users from it, and it sees the other parties' centres. So
one user's change at the other parties moves counts under E, and enters the other parties' local
releases. This holds while the server follows the protocol.

Where a study is renewed, a view is of all its runs: the onlooker sees each of them, and the user
may change in any.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from splitmeans.errors import PrivacyError
from splitmeans.membership.methods import method_of
from splitmeans.privacy.accountant import Cost
from splitmeans.privacy.calibrate import Views
from splitmeans.privacy.events import (
    ComposedEvent,
    CountGaussianEvent,
    Event,
    GaussianEvent,
    RandomisedResponseEvent,
    RareEvent,
    Relation,
)
from splitmeans.privacy.pld import FINE, epsilon_for, flatten

if TYPE_CHECKING:
    from splitmeans.plan.plan import Plan

# Noise is never so coarse that discreteness adds this much to a loss.
_SMALL_SLACK = 0.01


def fellow_party_cost(
    plan: "Plan", relation: Relation, *, interval: float = FINE, runs: int | None = None
) -> Cost | None:
    """Return the worst cost towards any parties, None where no guarantee is claimed.

    It is that of one party, or of several that share what they know (docs, "Towards another
    party"). ADD_OR_REMOVE is about the user's columns at the rest, REPLACE about their values.
    `runs` is how many runs the user is there in, by default all.
    """
    views = fellow_party_events(plan, relation, runs=runs)
    return _worst(views, plan.study.budget.delta, interval) if views else None


def coalition_cost(plan: "Plan", *, interval: float = FINE) -> Cost | None:
    """Return the cost, towards the server and parties together, of a user's values elsewhere.

    They can remove all decoys, so only the randomiser on each label and the noise of the other
    parties' local releases are left. None without `collusion_epsilon`; presence is never covered.
    The server and one party are the worst case: each further party takes events away.
    """
    views = coalition_events(plan)
    return _worst(views, plan.study.budget.delta, interval) if views else None


def spelled_apart_events(plan: "Plan") -> tuple[Event, ...]:
    """Return what the server sees of a person whose id is another one at every party.

    The person is then as many users as parties, each at one of them: the local releases change as
    they would anyway, and of a group's cells one for each of its parties instead of one in all.
    """
    others = plan.local_events
    cells = [plan.law_of(group).event for group in plan.groups for _ in group]
    if plan.columns is not None:
        cells += [plan.columns.event] * 2  # a table is of two parties
    one_run = (*plan.stage_events, *others, ComposedEvent(parts=tuple(cells)))
    return one_run * plan.study.n_runs


def party_events(plan: "Plan") -> Views:
    """Return what each party sees, for every relation in which a cost towards it is stated."""
    return tuple(view for relation in Relation for view in fellow_party_events(plan, relation))


def fellow_party_events(plan: "Plan", relation: Relation, *, runs: int | None = None) -> Views:
    """Return what each party sees of a user's change elsewhere, then what several see together.

    Nothing if no bound is claimed. Several parties have views of their own only where those may
    cost more than the views of fewer.
    """
    if method_of(plan.study).server_noise is None:
        return ()
    observers = range(len(plan.study.parties))
    views = tuple(_events(plan, observer, relation) for observer in observers)
    if relation is Relation.ADD_OR_REMOVE:
        views += _pooled_events(plan)
    times = plan.study.n_runs if runs is None else runs
    return tuple(view * times for view in views)


def coalition_events(plan: "Plan") -> Views:
    """Return what the server sees together with each party; nothing without `collusion_epsilon`."""
    views = []
    for observer, labels in enumerate(_run_labels(plan)):
        others = (event for party, event in enumerate(plan.local_events) if party != observer)
        name = plan.study.party_names[observer]
        staged = _staged_events(plan, Relation.REPLACE, without=name)
        one_run = (*staged, *(replaced(event) for event in others), *labels)
        views.append(one_run * plan.study.n_runs)
    return tuple(views)


def label_events(plan: "Plan") -> Views:
    """Return the randomised labels that each party together with the server sees."""
    return tuple(labels * plan.study.n_runs for labels in _run_labels(plan))


def _run_labels(plan: "Plan") -> Views:
    if all(law is None for law in plan.collusion_laws):
        return ()
    return tuple(
        tuple(
            law.event
            for party, law in enumerate(plan.collusion_laws)
            if party != observer and law is not None
        )
        for observer in range(len(plan.study.parties))
    )


def _worst(views: Views, delta: float, interval: float) -> Cost:
    return Cost(epsilon=max(_epsilon(view, delta, interval) for view in views), delta=delta)


def _epsilon(view: tuple[Event, ...], delta: float, interval: float) -> float:
    together = epsilon_for(view, delta, interval=interval)
    if math.isfinite(together):
        return together
    # Losses beyond the grid of exact accounting; pure ones may always be added up.
    pure = [event for event in view if isinstance(event, RandomisedResponseEvent)]
    rest = [event for event in view if not isinstance(event, RandomisedResponseEvent)]
    return epsilon_for(rest, delta, interval=interval) + sum(event.epsilon for event in pure)


def _events(plan: "Plan", observer: int, relation: Relation) -> tuple[Event, ...]:
    name = plan.study.party_names[observer]
    seen = _staged_events(plan, relation, without=name)
    local = [event for party, event in enumerate(plan.local_events) if party != observer]
    seen += [replaced(event) for event in local] if relation is Relation.REPLACE else local
    seen += _moved_counts(plan, (observer,), relation)
    return tuple(seen)


def _moved_counts(plan: "Plan", observers: Collection[int], relation: Relation) -> list[Event]:
    """Return the counts under E that move where a user changes at all but the observers."""
    server_noise = method_of(plan.study).server_noise
    assert server_noise is not None, "no bound is claimed"
    # Of other values at the same parties the presence table shows nothing.
    counted = [
        (group, server_noise(plan.law_of(group)))
        for group in plan.groups
        if relation is not Relation.REPLACE or plan.law_of(group) is not plan.presence
    ]
    if plan.columns is not None:
        counted += [(own.parties, plan.columns.law.server_sigma) for own in plan.columns.tables]
    moved: list[Event] = []
    for group, scale in counted:
        known = sum(party in observers for party in group)
        if known == len(group):
            continue  # no record of the group changes
        # With an observer in the group the user's record moves from one cell to another; without
        # one a record appears in, or leaves, one cell. A replaced user always moves.
        moves = 2 if known or relation is Relation.REPLACE else 1
        moved += [CountGaussianEvent(scale=scale)] * moves
    return moved


def _pooled_events(plan: "Plan") -> Views:
    """Return what parties who share what they know see of a user who comes or goes at the rest.

    They see fewer local releases than one of them, but of pairs of parties more have an observer:
    two counts of such a pair move instead of one. Groups are all pairs, or everyone, so the counts
    follow from how many parties pool; of tables of columns the most move that may. The rest are
    taken to have the costliest releases. Where no more counts move than for fewer parties, all that
    is seen is a part of what those see.
    """
    n_parties = len(plan.study.parties)
    releases = [
        (*_staged_events(plan, Relation.ADD_OR_REMOVE, only=name), *plan.local_events[party:][:1])
        for party, name in enumerate(plan.study.party_names)
    ]
    views: Views = ()
    most = len(_moved_counts(plan, (0,), Relation.ADD_OR_REMOVE))
    for size in range(2, n_parties):
        pools = [tuple(range(size))]
        if plan.columns is not None:
            pools = list(itertools.combinations(range(n_parties), size))
        moved = max((_moved_counts(plan, pool, Relation.ADD_OR_REMOVE) for pool in pools), key=len)
        if plan.columns is not None or len(moved) > most:
            most = len(moved)
            views += ((*_costliest(releases, n_parties - size), *moved),)
    return views


def _costliest(releases: Sequence[tuple[Event, ...]], n: int) -> list[Event]:
    """Return events that cost no less together than the releases of any `n` of the parties.

    Of each kind of event the `n` costliest are taken among every party's costliest one, `n` among
    every party's second one, and so on. Gaussian releases of a party compose to one exactly.
    """
    ranked: defaultdict[tuple[type, int], list[Event]] = defaultdict(list)
    precisions, slacks = [], []
    for own in releases:
        parts = tuple(flatten(own))
        gaussians = [part for part in parts if isinstance(part, GaussianEvent)]
        precisions.append(math.fsum(part.noise_multiplier**-2 for part in gaussians))
        slacks.append(math.fsum(part.slack for part in gaussians))
        seen: defaultdict[type, int] = defaultdict(int)
        others = (part for part in parts if not isinstance(part, GaussianEvent))
        for part in sorted(others, key=_size, reverse=True):
            ranked[type(part), seen[type(part)]].append(part)
            seen[type(part)] += 1
    largest = zip(sorted(precisions)[-n:], sorted(slacks)[-n:], strict=True)
    found: list[Event] = [
        GaussianEvent(noise_multiplier=precision**-0.5, slack=slack)
        for precision, slack in largest
        if precision
    ]
    for events in ranked.values():
        found += sorted(events, key=_size)[-n:]
    return found


def _size(event: Event) -> float:
    """Return what events of one kind are ordered by: the larger, the costlier."""
    match event:
        case RareEvent(probability=probability):
            return probability
    raise PrivacyError(f"no order is known of {type(event).__name__}, so it is refused")


def _staged_events(
    plan: "Plan", relation: Relation, *, without: str = "", only: str = ""
) -> list[Event]:
    """Return what stages cost, without the releases of a party that knows its rows, or of one."""
    found: list[Event] = []
    for stage in plan.stages:
        for party, law in zip(stage.parties, stage.laws, strict=True):
            event = law.event if relation is Relation.ADD_OR_REMOVE else law.replaced_event
            if event is not None and party != without and only in ("", party):
                found.append(event)
    return found


def replaced(event: Event) -> Event:
    """Return an event's cost when a user's values change instead of the user coming or going.

    A replacement is a removal and an addition in one release: sums move by twice their bound, and
    two counts move by one each.
    """
    match event:
        case GaussianEvent(noise_multiplier=multiplier, slack=slack) if slack < _SMALL_SLACK:
            # Twice as many coordinates move, each by up to twice as much: with 12 + 2 mu for 12 +
            # mu deviations `discrete_slack` grows by less than 2 x 4 e^(4 y), y < 3 slack.
            return GaussianEvent(noise_multiplier=multiplier / 2, slack=10 * slack)
        case RandomisedResponseEvent():
            # A randomised report is about a value, so replacing is what its epsilon is for.
            return event
        case RareEvent(probability=probability):
            # The new values may show, and so may those that were there before.
            return RareEvent(probability=2 * probability)
        case ComposedEvent(parts=parts):
            return ComposedEvent(parts=tuple(replaced(part) for part in parts))
    raise PrivacyError(f"no replacement bound is known for {type(event).__name__}")
