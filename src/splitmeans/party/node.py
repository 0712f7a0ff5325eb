"""A party's side of the protocol as a state machine without input or output.

    Joined ──all contributions──> Keyed ──all confirmed──> Prepared ──plan──> Released ──> Finished

`step` takes a state and an envelope and returns the next state and what to send. A message that
does not fit the state is refused. Everything that could fail because of the party's data has been
checked before `join` (R12), so nothing the server sees depends on the data except the releases.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from splitmeans.engine.walk import Table
from splitmeans.errors import ProtocolError
from splitmeans.party.release import (
    confirmation,
    release_count,
    release_party,
    user_set_digest,
)
from splitmeans.plan import counting_party, make_plan, needs_count
from splitmeans.privacy.noise import NoiseSource
from splitmeans.study import Study
from splitmeans.wire import keys
from splitmeans.wire.envelope import SERVER, Envelope
from splitmeans.wire.messages import (
    Confirmation,
    CountRequest,
    KeyContribution,
    Message,
    PublishedResult,
    Ready,
    RunPlan,
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Joined:
    """Waits for the other parties' key contributions; confirmations may arrive early."""

    study: Study
    table: Table
    contributions: Mapping[str, bytes]
    confirmations: Mapping[str, Confirmation]


@dataclass(frozen=True, kw_only=True, repr=False)
class Keyed:
    """Holds the run key; waits for the other parties' confirmations."""

    study: Study
    table: Table
    run_key: bytes
    users: bytes
    confirmations: Mapping[str, Confirmation]


@dataclass(frozen=True, kw_only=True, repr=False)
class Prepared:
    """All parties hold the same key and the same users; waits for the server."""

    study: Study
    table: Table
    run_key: bytes
    released_count: int | None


@dataclass(frozen=True, kw_only=True, repr=False)
class Released:
    """Has sent its one message; rows and key are gone from the state."""

    study: Study
    party: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Finished:
    """Holds the published result."""

    study: Study
    party: str
    result: PublishedResult


PartyState: TypeAlias = Joined | Keyed | Prepared | Released | Finished


def join(study: Study, table: Table, *, noise: NoiseSource) -> tuple[PartyState, list[Envelope]]:
    """Enter a run: draw a fresh contribution to the run key and send it to every other party."""
    study.party(table.party)
    secret = noise.spawn("contribution").words(keys.CONTRIBUTION_BYTES // 8).tobytes()
    state = Joined(study=study, table=table, contributions={table.party: secret}, confirmations={})
    return state, _to_others(study, table.party, KeyContribution(secret=secret))


def step(
    state: PartyState, envelope: Envelope, *, noise: NoiseSource, rng: np.random.Generator
) -> tuple[PartyState, list[Envelope]]:
    """Take one message and return the next state and the messages to send."""
    _check_sender(state, envelope)
    match state, envelope.message:
        case Joined(), KeyContribution(secret=secret):
            return _take_contribution(state, envelope.sender, secret)
        case Joined() | Keyed(), Confirmation() as word:
            return _take_confirmation(state, envelope.sender, word)
        case Prepared(released_count=None), CountRequest():
            return _answer_count(state, noise=noise)
        case Prepared(), RunPlan() as proposal:
            return _answer_plan(state, proposal, noise=noise, rng=rng)
        case Released(study=study, party=party), PublishedResult() as result:
            return Finished(study=study, party=party, result=result), []
    raise ProtocolError(
        f"party {_name(state)!r} in state {type(state).__name__} cannot take "
        f"{type(envelope.message).__name__} from {envelope.sender!r}"
    )


def _take_contribution(
    state: Joined, sender: str, secret: bytes
) -> tuple[PartyState, list[Envelope]]:
    if sender in state.contributions:
        raise ProtocolError(f"party {sender!r} sent a second key contribution")
    contributions = {**state.contributions, sender: secret}
    study, table = state.study, state.table
    if len(contributions) < len(study.parties):
        return replace(state, contributions=contributions), []
    run_key = keys.run_key(contributions, study_hash=study.hash)
    users = user_set_digest(study, table, run_key=run_key)
    own = confirmation(study, table.party, users, run_key=run_key)
    keyed = Keyed(
        study=study,
        table=table,
        run_key=run_key,
        users=users,
        confirmations={**state.confirmations, table.party: own},
    )
    next_state, ready = _compare_confirmations(keyed)
    return next_state, _to_others(study, table.party, own) + ready


def _take_confirmation(
    state: Joined | Keyed, sender: str, word: Confirmation
) -> tuple[PartyState, list[Envelope]]:
    if sender in state.confirmations:
        raise ProtocolError(f"party {sender!r} sent a second confirmation")
    confirmations = {**state.confirmations, sender: word}
    if isinstance(state, Joined):
        return replace(state, confirmations=confirmations), []
    return _compare_confirmations(replace(state, confirmations=confirmations))


def _compare_confirmations(state: Keyed) -> tuple[PartyState, list[Envelope]]:
    """Go on only if all parties hold the same key (R10) and users (R6); nothing is released yet."""
    study, table = state.study, state.table
    for party, word in state.confirmations.items():
        expected = confirmation(study, party, state.users, run_key=state.run_key)
        if word.key_check != expected.key_check:
            raise ProtocolError(
                f"parties {table.party!r} and {party!r} hold different run keys or studies; "
                "someone changed messages on their way"
            )
        if word.user_check != expected.user_check:
            raise ProtocolError(
                f"parties {table.party!r} and {party!r} hold different users; "
                f"membership={study.membership!r} needs the same users at every party: keep "
                "the ids that all parties have, written the same way, and run again"
            )
    if len(state.confirmations) < len(study.parties):
        return state, []
    prepared = Prepared(study=study, table=table, run_key=state.run_key, released_count=None)
    return prepared, [_to_server(table.party, Ready(study_hash=study.hash))]


def _answer_count(state: Prepared, *, noise: NoiseSource) -> tuple[PartyState, list[Envelope]]:
    party = state.table.party
    if not needs_count(state.study) or party != counting_party(state.study):
        raise ProtocolError(f"party {party!r} was asked for a user count that the study excludes")
    plan = make_plan(state.study)
    release = release_count(plan, state.table, noise=noise.spawn("count"))
    counted = Prepared(
        study=state.study,
        table=state.table,
        run_key=state.run_key,
        released_count=release.noisy_count,
    )
    return counted, [_to_server(party, release)]


def _answer_plan(
    state: Prepared, proposal: RunPlan, *, noise: NoiseSource, rng: np.random.Generator
) -> tuple[PartyState, list[Envelope]]:
    party = state.table.party
    plan = make_plan(state.study, noisy_count=proposal.noisy_count)
    if needs_count(state.study) != (proposal.noisy_count is not None):
        raise ProtocolError(
            "the server's plan has a user count where the study has none, or lacks it"
        )
    if state.released_count is not None and proposal.noisy_count != state.released_count:
        raise ProtocolError("the server's plan has another user count than was released")
    proposed = tuple(proposal.n_local_clusters.tolist())
    if plan.n_local_clusters != proposed:
        raise ProtocolError(
            f"the server's plan has n_local_clusters={proposed}, "
            f"the study gives {plan.n_local_clusters}"
        )
    if plan.fingerprint != proposal.fingerprint:
        raise ProtocolError(
            "server and party computed different noise parameters from the same study; do both run "
            "the same version of splitmeans?"
        )
    release = release_party(
        plan, state.table, run_key=state.run_key, noise=noise.spawn("release"), rng=rng
    )
    return Released(study=state.study, party=party), [_to_server(party, release)]


def _check_sender(state: PartyState, envelope: Envelope) -> None:
    """A message for parties comes from another party of the study, a server's from the server."""
    between_parties = isinstance(envelope.message, KeyContribution | Confirmation)
    others = set(state.study.party_names) - {_name(state)}
    expected = others if between_parties else {SERVER}
    if envelope.sender not in expected:
        raise ProtocolError(
            f"party {_name(state)!r} got {type(envelope.message).__name__} from "
            f"{envelope.sender!r}, who may not send it"
        )


def _name(state: PartyState) -> str:
    return state.party if isinstance(state, Released | Finished) else state.table.party


def _to_others(study: Study, party: str, message: Message) -> list[Envelope]:
    return [
        Envelope(sender=party, receiver=other, message=message)
        for other in study.party_names
        if other != party
    ]


def _to_server(party: str, message: Message) -> Envelope:
    return Envelope(sender=party, receiver=SERVER, message=message)
