"""A party's side of the protocol as a state machine without input or output.

    Joined ──all contributions──> Keyed ──all confirmed──> Prepared ──plan──> Released ──> Finished
                                    └──> Counting ──count──> Planned ──all confirmed──┘
                                         (methods that need the number of users)

`expects` says which messages a state can take; `step` takes one and returns the next state and what
to send, and refuses every other. Everything that could fail because of the party's data has been
checked before `join` (R12), so nothing the server sees depends on the data except the releases.
"""

from dataclasses import replace

import numpy as np

from splitmeans.errors import ProtocolError
from splitmeans.party.check_result import check_result
from splitmeans.party.confirm import (
    confirmation,
    explain_mismatch,
    plan_confirmation,
    transcript,
)
from splitmeans.party.equal_users import SECRET_BYTES, agree, make_shares, user_set_digest
from splitmeans.party.release import release_count, release_party
from splitmeans.party.session import Session
from splitmeans.party.shared_check import shared_check
from splitmeans.party.states import (
    Counting,
    Finished,
    Joined,
    Keyed,
    PartyState,
    Planned,
    Prepared,
    Released,
)
from splitmeans.plan.plan import Plan, counting_party
from splitmeans.plan.settle import make_plan, needs_count
from splitmeans.plan.statement import PrivacyReport
from splitmeans.privacy.noise import NoiseSource
from splitmeans.result.signed import statement_to_compare
from splitmeans.study import Study
from splitmeans.table.walk.interface import Table
from splitmeans.wire import keys
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.messages import (
    Confirmation,
    CountRelease,
    KeyContribution,
    Message,
    PlanConfirmation,
    PublishedResult,
    Ready,
    RunPlan,
)
from splitmeans.wire.slot import SERVER


def join(
    study: Study, table: Table, *, run: str = "1", noise: NoiseSource, simulated: bool = False
) -> tuple[PartyState, list[Envelope]]:
    """Enter a run: draw a fresh contribution to the run key and send it to every other party."""
    study.party(table.party)
    session = Session(study=study, run=run, party=table.party, simulated=simulated)
    contribution = noise.spawn("contribution").words(keys.CONTRIBUTION_BYTES // 8).tobytes()
    secret = noise.spawn("user shares").words(SECRET_BYTES // 8).tobytes()
    users = user_set_digest(study, table, run=run)
    state = Joined(
        session=session,
        table=table,
        users=users,
        secret=secret,
        contributions={table.party: contribution},
        shares={},
    )
    return state, [
        Envelope(
            sender=session.party,
            receiver=other,
            message=KeyContribution(
                secret=contribution,
                user_shares=make_shares(session, other, users=users, secret=secret),
            ),
        )
        for other in session.others
    ]


def expects(state: PartyState) -> frozenset[tuple[str, type[Message]]]:
    """Return the messages that the state can take, as senders and kinds."""
    others = set(state.session.others)
    match state:
        case Joined(contributions=known):
            return frozenset((party, KeyContribution) for party in others - set(known))
        case Keyed(awaited=awaited):
            return frozenset((party, Confirmation) for party in awaited)
        case Counting(session=session):
            return frozenset({(counting_party(session.study), CountRelease)})
        case Planned(confirmed=confirmed):
            return frozenset((party, PlanConfirmation) for party in others - confirmed)
        case Prepared():
            return frozenset({(SERVER, RunPlan)})
        case Released():
            return frozenset({(SERVER, PublishedResult)})
        case Finished():
            return frozenset()


def step(
    state: PartyState, envelope: Envelope, *, noise: NoiseSource, rng: np.random.Generator
) -> tuple[PartyState, list[Envelope]]:
    """Take one message and return the next state and the messages to send."""
    sender = envelope.sender
    if (sender, type(envelope.message)) not in expects(state):
        raise ProtocolError(
            f"party {state.session.party!r} in state {type(state).__name__} cannot take "
            f"{type(envelope.message).__name__} from {sender!r}"
        )
    match state, envelope.message:
        case Joined(), KeyContribution() as part:
            return _take_contribution(state, sender, part)
        case Keyed(), Confirmation() as word:
            return _take_confirmation(state, sender, word, noise=noise)
        case Counting(), CountRelease(noisy_count=noisy_count):
            return _take_count(state, noisy_count)
        case Planned(), PlanConfirmation() as word:
            return _take_plan_confirmation(state, sender, word)
        case Prepared(), RunPlan() as proposal:
            return _answer_plan(state, proposal, noise=noise, rng=rng)
        case Released(session=session), PublishedResult() as result:
            plan = make_plan(session.study, noisy_count=state.noisy_count)
            report = PrivacyReport(plan=plan, secure_noise=noise.secure)
            check_result(session, report, result, released_centres=state.centres)
            count = state.noisy_count
            return Finished(session=session, noisy_count=count, result=result), []
    raise AssertionError("every expected message has a case")


def _take_contribution(
    state: Joined, sender: str, part: KeyContribution
) -> tuple[PartyState, list[Envelope]]:
    contributions = {**state.contributions, sender: part.secret}
    shares = {**state.shares, sender: part.user_shares}
    if len(contributions) < len(state.session.study.parties):
        return replace(state, contributions=contributions, shares=shares), []
    session, users, own = state.session, state.users, state.session.party
    plan = _first_plan(session)
    run_key = keys.run_key(contributions, transcript=transcript(session, plan))
    shared = shared_check(plan, run_key=run_key)
    awaited: dict[str, Confirmation] = {}
    sent: list[Envelope] = []
    for other in session.others:
        user_keys = agree(session, other, users=users, secret=state.secret, shares=shares[other])
        said, heard = (
            confirmation(
                session,
                plan,
                sender=speaker,
                receiver=listener,
                run_key=run_key,
                shared=shared,
                user_keys=user_keys,
            )
            for speaker, listener in ((own, other), (other, own))
        )
        awaited[other] = heard
        sent.append(Envelope(sender=own, receiver=other, message=said))
    keyed = Keyed(session=session, table=state.table, run_key=run_key, users=users, awaited=awaited)
    return keyed, sent


def _take_confirmation(
    state: Keyed, sender: str, word: Confirmation, *, noise: NoiseSource
) -> tuple[PartyState, list[Envelope]]:
    """Go on only if all parties hold the same key (R10) and users (R6); nothing is released yet."""
    session = state.session
    expected = state.awaited[sender]
    if word.key_check != expected.key_check:
        raise ProtocolError(
            f"parties {session.party!r} and {sender!r} hold different run keys, studies or "
            "versions of splitmeans; one of them may have gone on from a home that was put back "
            "from a backup, or someone changed messages on their way"
        )
    if word.shared_check != expected.shared_check:
        raise ProtocolError(
            f"parties {session.party!r} and {sender!r} derive different decoys or tags from the "
            "same key, so the server would see users where decoys should hide them; run the same "
            "version of splitmeans at all parties"
        )
    if word.user_check != expected.user_check:
        raise ProtocolError(
            f"parties {session.party!r} and {sender!r} hold different users; "
            f"membership={session.study.membership!r} needs the same users at every party: "
            f"{explain_mismatch(word, expected)}"
        )
    awaited = {name: other for name, other in state.awaited.items() if name != sender}
    if awaited:
        return replace(state, awaited=awaited), []
    if not needs_count(session.study):
        return _prepared(state, noisy_count=None)
    counting = Counting(
        session=session, table=state.table, run_key=state.run_key, users=state.users
    )
    if session.party != counting_party(session.study):
        return counting, []
    # The one party that the study names tells everyone: a server that carried the number could
    # tell each party another one.
    release = release_count(_first_plan(session), state.table, noise=noise.spawn("count"))
    planned, sent = _take_count(counting, release.noisy_count)
    return planned, [_to_server(session, release), *_to_others(session, release), *sent]


def _take_count(state: Counting, noisy_count: int) -> tuple[PartyState, list[Envelope]]:
    """The number decides k', so the plan that follows is confirmed like the first (R10)."""
    session = state.session
    planned = Planned(
        session=session,
        table=state.table,
        run_key=state.run_key,
        users=state.users,
        noisy_count=noisy_count,
        confirmed=frozenset(),
    )
    plan = make_plan(session.study, noisy_count=noisy_count)
    own = plan_confirmation(session, session.party, run_key=state.run_key, plan=plan)
    return planned, _to_others(session, own)


def _take_plan_confirmation(
    state: Planned, sender: str, word: PlanConfirmation
) -> tuple[PartyState, list[Envelope]]:
    session = state.session
    plan = make_plan(session.study, noisy_count=state.noisy_count)
    if word != plan_confirmation(session, sender, run_key=state.run_key, plan=plan):
        raise ProtocolError(
            f"parties {session.party!r} and {sender!r} have different plans for this run"
        )
    confirmed = state.confirmed | {sender}
    if confirmed < set(session.others):
        return replace(state, confirmed=confirmed), []
    return _prepared(state, noisy_count=state.noisy_count)


def _prepared(
    state: Keyed | Planned, *, noisy_count: int | None
) -> tuple[PartyState, list[Envelope]]:
    prepared = Prepared(
        session=state.session,
        table=state.table,
        run_key=state.run_key,
        users=state.users,
        noisy_count=noisy_count,
    )
    return prepared, [_to_server(state.session, Ready(study_hash=state.session.study.hash))]


def _answer_plan(
    state: Prepared, proposal: RunPlan, *, noise: NoiseSource, rng: np.random.Generator
) -> tuple[PartyState, list[Envelope]]:
    session = state.session
    if proposal.noisy_count != state.noisy_count:
        raise ProtocolError("the server's plan has another user count than was released")
    plan = make_plan(session.study, noisy_count=state.noisy_count)
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
    report = PrivacyReport(plan=plan, secure_noise=noise.secure)
    if proposal.statement != statement_to_compare(report):
        raise ProtocolError(
            "server and party have different privacy statements of the same study; do both run the "
            "same version of splitmeans?"
        )
    release = release_party(
        plan, state.table, run_key=state.run_key, noise=noise.spawn("release"), rng=rng
    )
    released = Released(session=session, noisy_count=state.noisy_count, centres=release.centres)
    return released, [_to_server(session, release)]


def _first_plan(session: Session) -> Plan:
    """What is settled before the first release; all of it but for methods that need a count."""
    return make_plan(session.study)


def _to_others(session: Session, message: Message) -> list[Envelope]:
    return [
        Envelope(sender=session.party, receiver=other, message=message) for other in session.others
    ]


def _to_server(session: Session, message: Message) -> Envelope:
    return Envelope(sender=session.party, receiver=SERVER, message=message)
