"""The server's side of the protocol as a state machine without input or output.

Gathering ──all ready──> Counting ──count──> Collecting ──all releases──> Done
                └── no count needed ──────────┘
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.errors import ProtocolError
from splitmeans.features import GRID_UNITS
from splitmeans.grid.synopsis import Clustering, Synopsis
from splitmeans.plan import Plan, counting_party, make_plan, needs_count
from splitmeans.privacy.noise import NoiseSource
from splitmeans.server.combine import check_release, combine
from splitmeans.study import Study
from splitmeans.wire.envelope import SERVER, Envelope
from splitmeans.wire.messages import (
    CountRelease,
    CountRequest,
    Message,
    PartyRelease,
    PublishedResult,
    Ready,
    RunPlan,
)


@dataclass(frozen=True, kw_only=True)
class Gathering:
    """Waits until every party is ready."""

    study: Study
    ready: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Counting:
    """Waits for the noisy user count."""

    study: Study


@dataclass(frozen=True, kw_only=True)
class Collecting:
    """Waits for the parties' releases."""

    plan: Plan
    releases: Mapping[str, PartyRelease]


@dataclass(frozen=True, kw_only=True)
class Done:
    """Holds everything the server learned.

    `weights`, `synopsis` and `clustering` may be published. `releases` must stay with the server:
    parties know the run key and could remove decoys and phantoms from them.
    """

    plan: Plan
    releases: Mapping[str, PartyRelease]
    weights: FloatArray | None
    synopsis: Synopsis
    clustering: Clustering


ServerState: TypeAlias = Gathering | Counting | Collecting | Done


def start(study: Study) -> ServerState:
    """Begin a run."""
    return Gathering(study=study, ready=frozenset())


def step(
    state: ServerState, envelope: Envelope, *, noise: NoiseSource, rng: np.random.Generator
) -> tuple[ServerState, list[Envelope]]:
    """Take one message and return the next state and the messages to send."""
    sender = envelope.sender
    match state, envelope.message:
        case Gathering(study=study, ready=ready), Ready(study_hash=study_hash):
            _check_party(study, sender)
            if study_hash != study.hash:
                raise ProtocolError(f"party {sender!r} runs another study (hash {study_hash:.12})")
            return _take_ready(study, ready | {sender})
        case Counting(study=study), CountRelease(noisy_count=noisy_count) if (
            sender == counting_party(study)
        ):
            return _collect(make_plan(study, noisy_count=noisy_count))
        case Collecting(), PartyRelease() as release:
            _check_party(state.plan.study, sender)
            return _take_release(state, sender, release, noise=noise, rng=rng)
    raise ProtocolError(
        f"server in state {type(state).__name__} cannot take {type(envelope.message).__name__} "
        f"from {sender!r}"
    )


def _take_ready(study: Study, ready: frozenset[str]) -> tuple[ServerState, list[Envelope]]:
    if len(ready) < len(study.parties):
        return Gathering(study=study, ready=ready), []
    if needs_count(study):
        return Counting(study=study), [_to(counting_party(study), CountRequest())]
    return _collect(make_plan(study, noisy_count=None))


def _collect(plan: Plan) -> tuple[ServerState, list[Envelope]]:
    proposal = RunPlan(
        n_local_clusters=np.array(plan.n_local_clusters),
        noisy_count=plan.noisy_count,
        fingerprint=plan.fingerprint,
    )
    invitations = [_to(party, proposal) for party in plan.study.party_names]
    return Collecting(plan=plan, releases={}), invitations


def _take_release(
    state: Collecting,
    sender: str,
    release: PartyRelease,
    *,
    noise: NoiseSource,
    rng: np.random.Generator,
) -> tuple[ServerState, list[Envelope]]:
    if sender in state.releases:
        raise ProtocolError(f"party {sender!r} sent a second release")
    check_release(state.plan, sender, release)
    releases = {**state.releases, sender: release}
    plan = state.plan
    if len(releases) < len(plan.study.parties):
        return Collecting(plan=plan, releases=releases), []
    in_order = [releases[party] for party in plan.study.party_names]
    synopsis, weights = combine(plan, in_order, noise=noise.spawn("publication"), rng=rng)
    clustering = synopsis.cluster(plan.study.n_clusters, random_state=rng)
    done = Done(
        plan=plan, releases=releases, weights=weights, synopsis=synopsis, clustering=clustering
    )
    result = PublishedResult(
        nodes=np.rint(synopsis.scaled_nodes * GRID_UNITS).astype(np.int64),
        weights=synopsis.weights,
        centres=clustering.scaled_centres,
    )
    return done, [_to(party, result) for party in plan.study.party_names]


def _check_party(study: Study, sender: str) -> None:
    if sender not in study.party_names:
        raise ProtocolError(f"{sender!r} is not a party of study {study.name!r}")


def _to(party: str, message: Message) -> Envelope:
    return Envelope(sender=SERVER, receiver=party, message=message)
