"""What parties compare before anything is released, without showing it to the server (R10)."""

from splitmeans.party.derivation import derivation_digest
from splitmeans.party.session import Session
from splitmeans.plan.plan import Plan
from splitmeans.wire import keys
from splitmeans.wire.messages import Confirmation, PlanConfirmation


def transcript(session: Session, plan: Plan) -> bytes:
    """Return the hash of protocol, study, run and plan, to which the run key is bound (R8)."""
    return session.transcript(plan, derivation=derivation_digest())


def confirmation(
    session: Session,
    plan: Plan,
    *,
    sender: str,
    run_key: bytes,
    shared: bytes,
) -> Confirmation:
    """Return what `sender` says to the others if all that it has is as in the arguments.

    The sender's name is part of it, so that a party's own words sent back to it are not taken for
    another's.

    `shared` is what all parties derive from the key (`shared_check`).
    """
    key = keys.subkey(run_key, keys.CONFIRM)
    text = transcript(session, plan) + sender.encode()
    return Confirmation(
        key_check=keys.keyed_digest(key, [b"key\n", text]),
        shared_check=keys.keyed_digest(key, [b"shared\n", shared, text]),
    )


def plan_confirmation(
    session: Session, party: str, *, run_key: bytes, plan: Plan
) -> PlanConfirmation:
    """Return what `party` says to the others after a stage if it goes by this plan.

    The plan's fingerprint names the released values, whether anything else follows from them or
    not: the server reads memberships by some of them.
    """
    key = keys.subkey(run_key, keys.CONFIRM)
    text = transcript(session, plan) + party.encode()
    number = len(plan.released)
    check = keys.keyed_digest(key, [f"plan {number}\n".encode(), text])
    return PlanConfirmation(stage=number, plan_check=check)
