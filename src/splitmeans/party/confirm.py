"""What parties compare before anything is released, without showing it to the server (R6, R10)."""

from splitmeans.party.derivation import derivation_digest
from splitmeans.party.equal_users import DIGEST_BYTES
from splitmeans.party.session import Session
from splitmeans.plan.plan import Plan
from splitmeans.table.ids.coarse_forms import advice
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
    receiver: str,
    run_key: bytes,
    shared: bytes,
    user_keys: bytes,
) -> Confirmation:
    """Return what `sender` says to `receiver` if all that it has is as in the arguments.

    The sender's name is part of it, so that a party's own words sent back to it are not taken for
    another's.

    Args:
        session: The run.
        plan: What is settled before the first release.
        sender: Who says it.
        receiver: Who hears it.
        run_key: The key of all parties.
        shared: What all parties derive from the key (`shared_check`).
        user_keys: The pair's keys of `equal_users.agree`, one for each form of ids.
    """
    key = keys.subkey(run_key, keys.CONFIRM)
    text = transcript(session, plan) + sender.encode()
    checks = [
        keys.keyed_digest(own, [b"users\n", text, b"\n", receiver.encode()])
        for own in _parts(user_keys)
    ]
    return Confirmation(
        key_check=keys.keyed_digest(key, [b"key\n", text]),
        shared_check=keys.keyed_digest(key, [b"shared\n", shared, text]),
        user_check=b"".join(checks[:1]),
        folded_checks=b"".join(checks[1:]),
    )


def explain_mismatch(word: Confirmation, expected: Confirmation) -> str:
    """Say what is known about why another party's users differ.

    Args:
        word: What the other party said.
        expected: What it would have said with this party's users.
    """
    theirs, ours = _parts(word.folded_checks), _parts(expected.folded_checks)
    if not ours or len(theirs) != len(ours):
        return (
            "keep the ids that all parties have, written the same way, and run again (a new study "
            "with ids.explain_mismatch = true would tell whether they are only written differently)"
        )
    return advice(a == b for a, b in zip(theirs, ours, strict=True))


def _parts(data: bytes) -> list[bytes]:
    return [data[at : at + DIGEST_BYTES] for at in range(0, len(data), DIGEST_BYTES)]


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
