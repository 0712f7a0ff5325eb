"""What parties compare before anything is released, without showing it to the server (R6, R10)."""

from functools import partial

from splitmeans.engine.walk import Records, Table, UserBlock
from splitmeans.kernels.siphash import hash_ids
from splitmeans.plan import Plan
from splitmeans.study import Study
from splitmeans.wire import keys
from splitmeans.wire.envelope import Session
from splitmeans.wire.messages import Confirmation, PlanConfirmation


def user_set_digest(study: Study, table: Table, *, run_key: bytes) -> bytes:
    """Return a keyed digest of the party's set of users, whatever order its rows are in.

    Where user sets may differ it is empty: the other parties hold the key, so a digest of the ids
    would tell them whether a guess at this party's users is right.
    """
    if study.user_sets != "equal":
        return b""
    records_of = partial(_order_records, key=keys.subkey(run_key, keys.USER_ORDER))
    pieces = table.users.in_tag_order(records_of, finish=_tag_bytes)
    return keys.keyed_digest(keys.subkey(run_key, keys.USER_SET), pieces)


def confirmation(
    session: Session, party: str, users: bytes, *, run_key: bytes, plan: Plan
) -> Confirmation:
    """Return what `party` says to the others if it has this key, study, run, plan and these users.

    The name is part of it, so that a party's own words sent back to it are not taken for
    another's.
    """
    key = keys.subkey(run_key, keys.CONFIRM)
    text = session.transcript(plan) + party.encode()
    return Confirmation(
        key_check=keys.keyed_digest(key, [b"key\n", text]),
        user_check=keys.keyed_digest(key, [b"users\n", users, text]),
    )


def plan_confirmation(
    session: Session, party: str, *, run_key: bytes, plan: Plan
) -> PlanConfirmation:
    """Return what `party` says to the others if it goes by this plan, once all of it is known."""
    key = keys.subkey(run_key, keys.CONFIRM)
    text = session.transcript(plan) + party.encode()
    # Where k' is fixed the plan does not show the count, but the server reads memberships by it.
    count = f"plan {plan.noisy_count}\n".encode()
    return PlanConfirmation(plan_check=keys.keyed_digest(key, [count, text]))


def _order_records(block: UserBlock, *, key: bytes) -> Records:
    return hash_ids(key, block.ids), block.labels


def _tag_bytes(records: Records) -> bytes:
    return records[0].tobytes()
