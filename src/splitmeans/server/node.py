"""The server's side of the protocol as a state machine without input or output.

Gathering ──all values of all stages, and all ready──> Collecting ──all releases──> Done
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from splitmeans.errors import ProtocolError
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import plan_of_run
from splitmeans.plan.stages import ReleasedValues, flat_values
from splitmeans.privacy.noise import NoiseSource
from splitmeans.result.previous import Previous, series_run
from splitmeans.result.publish import publish
from splitmeans.result.signed import Stamp, privacy_to_compare
from splitmeans.server.combine import check_release, combine
from splitmeans.study import Study
from splitmeans.synopsis.clustering import Clustering, no_segments
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.messages import (
    Message,
    PartyRelease,
    PublishedResult,
    Ready,
    RunPlan,
    StageRelease,
    kind_of,
    staged,
)
from splitmeans.wire.slot import SERVER

UNSIGNED = Stamp()


@dataclass(frozen=True, kw_only=True)
class Gathering:
    """Waits for the values of every stage, one after the other, and until every party is ready.

    `values` are those of the current stage by party, `released` those of the stages before.
    """

    study: Study
    ready: frozenset[str]
    released: ReleasedValues
    values: Mapping[str, tuple[int, ...]]
    run: str = "1"
    previous: Previous | None = None

    @property
    def plan(self) -> Plan:
        """What follows from the values so far."""
        this = series_run(self.study, self.run, self.previous)
        return plan_of_run(self.study, released=self.released, series_run=this)


@dataclass(frozen=True, kw_only=True)
class Collecting:
    """Waits for the parties' releases."""

    plan: Plan
    releases: Mapping[str, PartyRelease]
    run: str = "1"
    previous: Previous | None = None


@dataclass(frozen=True, kw_only=True)
class Done:
    """Holds everything the server learned.

    `synopsis` and `clustering` may be published; `published` is the message that did it. `releases`
    must stay with the server: parties know the run key and could remove decoys and phantoms from
    them.
    """

    plan: Plan
    releases: Mapping[str, PartyRelease]
    synopsis: Synopsis
    clustering: Clustering
    published: PublishedResult


ServerState: TypeAlias = Gathering | Collecting | Done


def start(study: Study, *, run: str = "1", previous: Previous | None = None) -> ServerState:
    """Begin a run; one of a series follows a previous result."""
    return Gathering(
        study=study, ready=frozenset(), released=(), values={}, run=run, previous=previous
    )


def expects(state: ServerState) -> frozenset[tuple[str, str]]:
    """Return the messages that the state can take, as senders and kinds (`wire.messages`)."""
    match state:
        case Gathering(study=study, ready=ready, released=released, values=values):
            waiting = {(party, Ready.TAG) for party in study.party_names if party not in ready}
            stage = state.plan.next_stage
            if stage is not None:
                word = staged(StageRelease, len(released) + 1)
                waiting |= {(party, word) for party in stage.parties if party not in values}
            return frozenset(waiting)
        case Collecting(plan=plan, releases=releases):
            names = plan.study.party_names
            return frozenset((party, PartyRelease.TAG) for party in names if party not in releases)
        case Done():
            return frozenset()


def step(
    state: ServerState,
    envelope: Envelope,
    *,
    noise: NoiseSource,
    rng: np.random.Generator,
    stamp: Stamp = UNSIGNED,
) -> tuple[ServerState, list[Envelope]]:
    """Take one message and return the next state and the messages to send.

    `stamp` dates the result and signs it; without a signature it is a simulation's.
    """
    sender = envelope.sender
    kind = kind_of(envelope.message)
    if (sender, kind) not in expects(state):
        raise ProtocolError(
            f"server in state {type(state).__name__} cannot take {kind} from {sender!r}"
        )
    match state, envelope.message:
        case Gathering(study=study), Ready(study_hash=study_hash):
            if study_hash != study.hash:
                raise ProtocolError(f"party {sender!r} runs another study (hash {study_hash:.12})")
            return _gathered(replace(state, ready=state.ready | {sender}), noise=noise)
        case Gathering(), StageRelease() as release:
            return _gathered(_with_values(state, sender, release), noise=noise)
        case Collecting(), PartyRelease() as release:
            return _take_release(state, sender, release, noise=noise, rng=rng, stamp=stamp)
    raise AssertionError("every expected message has a case")


def _with_values(state: Gathering, sender: str, release: StageRelease) -> Gathering:
    """Take a party's values of the current stage; with the last of them the next stage begins."""
    stage = state.plan.next_stage
    assert stage is not None, "no stage is expected otherwise"
    values = {**state.values, sender: stage.checked(sender, release.values.ravel().tolist())}
    if len(values) < len(stage.parties):
        return replace(state, values=values)
    in_order = tuple(values[party] for party in stage.parties)
    return replace(state, released=(*state.released, in_order), values={})


def _gathered(state: Gathering, *, noise: NoiseSource) -> tuple[ServerState, list[Envelope]]:
    if expects(state):
        return state, []
    plan = state.plan
    proposal = RunPlan(
        n_local_clusters=np.array(plan.n_local_clusters),
        released=np.array(flat_values(plan.released), dtype=np.int64),
        fingerprint=plan.fingerprint,
        statement=privacy_to_compare(plan, secure_noise=noise.secure),
    )
    invitations = [_to(party, proposal) for party in plan.study.party_names]
    collecting = Collecting(plan=plan, releases={}, run=state.run, previous=state.previous)
    return collecting, invitations


def _take_release(
    state: Collecting,
    sender: str,
    release: PartyRelease,
    *,
    noise: NoiseSource,
    rng: np.random.Generator,
    stamp: Stamp,
) -> tuple[ServerState, list[Envelope]]:
    check_release(state.plan, sender, release)
    releases = {**state.releases, sender: release}
    plan = state.plan
    if len(releases) < len(plan.study.parties):
        return replace(state, releases=releases), []
    in_order = [releases[party] for party in plan.study.party_names]
    synopsis, presence = combine(
        plan,
        in_order,
        noise=noise.spawn("publication"),
        rng=rng,
        previous=None if state.previous is None else state.previous.synopsis,
    )
    # A study of counts alone has no segments.
    k = 0 if plan.study.counts_only else plan.study.n_clusters
    clustering = synopsis.cluster(k, random_state=rng) if k else no_segments(synopsis)
    result = publish(
        plan,
        synopsis,
        clustering,
        [release.centres for release in in_order],
        presence=presence,
        run=state.run,
        stamp=stamp,
        secure_noise=noise.secure,
    )
    done = Done(
        plan=plan,
        releases=releases,
        synopsis=synopsis,
        clustering=clustering,
        published=result,
    )
    return done, [_to(party, result) for party in plan.study.party_names]


def _to(party: str, message: Message) -> Envelope:
    return Envelope(sender=SERVER, receiver=party, message=message)
