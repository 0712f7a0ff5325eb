"""A party's side of the protocol as a state machine without input or output.

    Joined ──all contributions──> Keyed ──all confirmed──> Prepared ──plan──> Released ──> Finished
                                    └──> Surveying ──values──> Agreeing ──all confirmed──┘
                                         (once for every stage; a study may have none)

`expects` says which messages a state can take; `step` takes one and returns the next state and what
to send, and refuses every other. Everything that could fail because of the party's data has been
checked before `join` (R12), so nothing the server sees depends on the data except the releases.
"""

from dataclasses import replace

import numpy as np

from splitmeans.errors import PrivacyError, ProtocolError
from splitmeans.kernels.row_numbers import RowNumbers
from splitmeans.party.check_result import check_result
from splitmeans.party.confirm import confirmation, plan_confirmation, transcript
from splitmeans.party.own_users import users_digest
from splitmeans.party.release import release_party
from splitmeans.party.session import Session
from splitmeans.party.shared_check import shared_check
from splitmeans.party.stages import release_stage
from splitmeans.party.states import (
    Agreeing,
    Finished,
    Joined,
    Keyed,
    PartyState,
    Prepared,
    Released,
    Surveying,
)
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import plan_of_run
from splitmeans.plan.stages import ReleasedValues, Stage, flat_values
from splitmeans.privacy.noise import NoiseSource
from splitmeans.result.previous import Previous
from splitmeans.result.signed import privacy_to_compare
from splitmeans.study import Study
from splitmeans.table.walk.interface import Table
from splitmeans.wire import keys
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.messages import (
    Confirmation,
    KeyContribution,
    Message,
    PlanConfirmation,
    PublishedResult,
    Ready,
    RunPlan,
    StageRelease,
    kind_of,
    staged,
)
from splitmeans.wire.slot import SERVER


def join(
    study: Study,
    table: Table,
    *,
    run: str = "1",
    noise: NoiseSource,
    simulated: bool = False,
    previous: Previous | None = None,
) -> tuple[PartyState, list[Envelope]]:
    """Enter a run: draw a fresh contribution to the run key and send it to every other party."""
    study.party(table.party)
    if not simulated and isinstance(getattr(table, "ids", None), RowNumbers):
        raise PrivacyError(
            f"the table of {table.party!r} has row numbers for ids, whose tags are no secret: they "
            "are for simulations; prepare it with ids"
        )
    session = Session(
        study=study, run=run, party=table.party, simulated=simulated, previous=previous
    )
    contribution = noise.spawn("contribution").words(keys.CONTRIBUTION_BYTES // 8).tobytes()
    own_key = noise.spawn("users").words(keys.HASH_KEY_BYTES // 8).tobytes()
    state = Joined(
        session=session,
        table=table,
        users=users_digest(table, key=own_key),
        contributions={table.party: contribution},
    )
    return state, first_words(state)


def first_words(state: Joined) -> list[Envelope]:
    """Return what a party that has joined sends to every other party: the same at every call."""
    own = state.contributions[state.session.party]
    return _to_others(state.session, KeyContribution(secret=own))


def expects(state: PartyState) -> frozenset[tuple[str, str]]:
    """Return the messages that the state can take, as senders and kinds (`wire.messages`)."""
    others = set(state.session.others)
    match state:
        case Joined(contributions=known):
            return frozenset((party, KeyContribution.TAG) for party in others - set(known))
        case Keyed(awaited=awaited):
            return frozenset((party, Confirmation.TAG) for party in awaited)
        case Surveying(released=released, values=values):
            stage = _current_stage(state)
            word = staged(StageRelease, len(released) + 1)
            return frozenset((party, word) for party in stage.parties if party not in values)
        case Agreeing(released=released, confirmed=confirmed):
            word = staged(PlanConfirmation, len(released))
            return frozenset((party, word) for party in others - confirmed)
        case Prepared():
            return frozenset({(SERVER, RunPlan.TAG)})
        case Released():
            return frozenset({(SERVER, PublishedResult.TAG)})
        case Finished():
            return frozenset()


def step(
    state: PartyState, envelope: Envelope, *, noise: NoiseSource, rng: np.random.Generator
) -> tuple[PartyState, list[Envelope]]:
    """Take one message and return the next state and the messages to send."""
    sender = envelope.sender
    kind = kind_of(envelope.message)
    if (sender, kind) not in expects(state):
        raise ProtocolError(
            f"party {state.session.party!r} in state {type(state).__name__} cannot take {kind} "
            f"from {sender!r}"
        )
    match state, envelope.message:
        case Joined(), KeyContribution() as part:
            return _take_contribution(state, sender, part)
        case Keyed(), Confirmation() as word:
            return _take_confirmation(state, sender, word, noise=noise)
        case Surveying(), StageRelease() as release:
            return _take_values(state, sender, release)
        case Agreeing(), PlanConfirmation() as word:
            return _take_plan_confirmation(state, sender, word, noise=noise)
        case Prepared(), RunPlan() as proposal:
            return _answer_plan(state, proposal, noise=noise, rng=rng)
        case Released(session=session), PublishedResult() as result:
            plan = _plan(session, state.released)
            check_result(
                session,
                plan,
                result,
                released_centres=state.centres,
                secure_noise=noise.secure,
            )
            return Finished(session=session, released=state.released, result=result), []
    raise AssertionError("every expected message has a case")


def _take_contribution(
    state: Joined, sender: str, part: KeyContribution
) -> tuple[PartyState, list[Envelope]]:
    contributions = {**state.contributions, sender: part.secret}
    if len(contributions) < len(state.session.study.parties):
        return replace(state, contributions=contributions), []
    session = state.session
    plan = _plan(session)
    run_key = keys.run_key(contributions, transcript=transcript(session, plan))
    shared = shared_check(plan, run_key=run_key)
    words = {
        party: confirmation(session, plan, sender=party, run_key=run_key, shared=shared)
        for party in session.study.party_names
    }
    own = words.pop(session.party)
    keyed = Keyed(
        session=session, table=state.table, run_key=run_key, users=state.users, awaited=words
    )
    return keyed, _to_others(session, own)


def _take_confirmation(
    state: Keyed, sender: str, word: Confirmation, *, noise: NoiseSource
) -> tuple[PartyState, list[Envelope]]:
    """Go on only if all parties hold the same key (R10); nothing is released yet."""
    session = state.session
    expected = state.awaited[sender]
    if word.key_check != expected.key_check:
        raise ProtocolError(
            f"parties {session.party!r} and {sender!r} hold different run keys, studies or "
            "versions of splitmeans; one of them may have gone on from a home that was put back "
            f"from a backup, or someone changed messages on their way{_other_series(session)}"
        )
    if word.shared_check != expected.shared_check:
        raise ProtocolError(
            f"parties {session.party!r} and {sender!r} derive different decoys or tags from the "
            "same key, so the server would see users where decoys should hide them; run the same "
            "version of splitmeans at all parties"
        )
    awaited = {name: other for name, other in state.awaited.items() if name != sender}
    if awaited:
        return replace(state, awaited=awaited), []
    return _next_stage(state, released=(), noise=noise)


def _next_stage(
    state: Keyed | Agreeing, *, released: ReleasedValues, noise: NoiseSource
) -> tuple[PartyState, list[Envelope]]:
    """Go to the next stage of the plan that all parties have confirmed, or get ready."""
    session = state.session
    stage = _plan(session, released).next_stage
    if stage is None:
        prepared = Prepared(
            session=session,
            table=state.table,
            run_key=state.run_key,
            users=state.users,
            released=released,
        )
        return prepared, [_to_server(session, Ready(study_hash=session.study.hash))]
    surveying = Surveying(
        session=session,
        table=state.table,
        run_key=state.run_key,
        users=state.users,
        released=released,
        values={},
    )
    if session.party not in stage.parties:
        return surveying, []
    # Each releasing party tells everyone itself: a server that carried the values could tell each
    # party others.
    own = noise.spawn(f"stage {len(released) + 1}")
    release = release_stage(stage, len(released) + 1, state.table, noise=own)
    following, sent = _take_values(surveying, session.party, release)
    return following, [_to_server(session, release), *_to_others(session, release), *sent]


def _take_values(
    state: Surveying, sender: str, release: StageRelease
) -> tuple[PartyState, list[Envelope]]:
    """The values decide what follows, so the next plan is confirmed like the first (R10)."""
    session, stage = state.session, _current_stage(state)
    own_values = stage.checked(sender, release.values.ravel().tolist())
    values = {**state.values, sender: own_values}
    if len(values) < len(stage.parties):
        return replace(state, values=values), []
    agreeing = Agreeing(
        session=session,
        table=state.table,
        run_key=state.run_key,
        users=state.users,
        released=(*state.released, tuple(values[party] for party in stage.parties)),
        confirmed=frozenset(),
    )
    plan = _plan(session, agreeing.released)
    own = plan_confirmation(session, session.party, run_key=state.run_key, plan=plan)
    return agreeing, _to_others(session, own)


def _take_plan_confirmation(
    state: Agreeing, sender: str, word: PlanConfirmation, *, noise: NoiseSource
) -> tuple[PartyState, list[Envelope]]:
    session = state.session
    plan = _plan(session, state.released)
    if word != plan_confirmation(session, sender, run_key=state.run_key, plan=plan):
        raise ProtocolError(
            f"parties {session.party!r} and {sender!r} have different plans for this run"
        )
    confirmed = state.confirmed | {sender}
    if confirmed < set(session.others):
        return replace(state, confirmed=confirmed), []
    return _next_stage(state, released=state.released, noise=noise)


def _current_stage(state: Surveying) -> Stage:
    stage = _plan(state.session, state.released).next_stage
    assert stage is not None, "the state was made for a stage"
    return stage


def _answer_plan(
    state: Prepared, proposal: RunPlan, *, noise: NoiseSource, rng: np.random.Generator
) -> tuple[PartyState, list[Envelope]]:
    session = state.session
    if not np.array_equal(proposal.released, flat_values(state.released)):
        raise ProtocolError("the server's plan has other values than the stages released")
    plan = _plan(session, state.released)
    if not np.array_equal(proposal.n_local_clusters, plan.n_local_clusters):
        # One too many shows that there are more; the server may have sent thousands.
        shown = proposal.n_local_clusters.ravel()[: len(plan.n_local_clusters) + 1]
        proposed = tuple(shown.tolist())
        raise ProtocolError(
            f"the server's plan has n_local_clusters={proposed}, "
            f"the study gives {plan.n_local_clusters}"
        )
    if plan.fingerprint != proposal.fingerprint:
        raise ProtocolError(
            "server and party computed different noise parameters from the same study; do both run "
            "the same version of splitmeans?"
        )
    if proposal.statement != privacy_to_compare(plan, secure_noise=noise.secure):
        raise ProtocolError(
            "server and party have different privacy facts of the same study; do both run the "
            "same version of splitmeans?"
        )
    release = release_party(
        plan,
        state.table,
        run_key=state.run_key,
        noise=noise.spawn("release"),
        rng=rng,
        previous=None if session.previous is None else session.previous.synopsis,
    )
    following = Released(session=session, released=state.released, centres=release.centres)
    return following, [_to_server(session, release)]


def _plan(session: Session, released: ReleasedValues = ()) -> Plan:
    """What follows from the study and the values released so far."""
    return plan_of_run(session.study, released=released, series_run=session.series_run)


def _other_series(session: Session) -> str:
    """What else may differ in a run of a series, in words."""
    this = session.series_run
    if this is None:
        return ""
    after = f"the result {this.previous[:16]}" if this.previous else "no earlier result"
    return (
        f"; or they begin from different results: this party's run {this.number} follows {after} "
        "(`splitmeans result show` tells a result's hash; --previous takes another)"
    )


def _to_others(session: Session, message: Message) -> list[Envelope]:
    return [
        Envelope(sender=session.party, receiver=other, message=message) for other in session.others
    ]


def _to_server(session: Session, message: Message) -> Envelope:
    return Envelope(sender=session.party, receiver=SERVER, message=message)
