"""What parties compare before anything is released, without showing it to the server (R6, R10)."""

from functools import partial
from itertools import chain

from splitmeans.engine.walk import Records, Table, UserBlock
from splitmeans.kernels.siphash import hash_ids
from splitmeans.party.id_folds import FOLDS, advice, folded
from splitmeans.plan import Plan
from splitmeans.study import Study
from splitmeans.wire import keys
from splitmeans.wire.envelope import Session
from splitmeans.wire.messages import Confirmation, PlanConfirmation

_DIGEST_BYTES = 32


def user_set_digest(study: Study, table: Table, *, run_key: bytes) -> bytes:
    """Return a keyed digest of the party's set of users, whatever order its rows are in.

    If the study says so, digests of coarser forms of the ids follow (`id_folds.py`). Each is of
    all users at once, so it tells whoever holds the key nothing about one of them that is not in a
    guess at all the others.

    Where user sets may differ it is empty: the other parties hold the key, so a digest of the ids
    would tell them whether a guess at this party's users is right.
    """
    if study.user_sets != "equal":
        return b""
    records_of = partial(_order_records, key=keys.subkey(run_key, keys.USER_ORDER))
    pieces = table.users.in_tag_order(records_of, finish=_tag_bytes)
    own = keys.keyed_digest(keys.subkey(run_key, keys.USER_SET), pieces)
    if not study.id_rules.explain_mismatch:
        return own
    return own + b"".join(_folded_digest(table, fold.name, run_key=run_key) for fold in FOLDS)


def _folded_digest(table: Table, name: str, *, run_key: bytes) -> bytes:
    records_of = partial(_folded_records, name=name, key=keys.subkey(run_key, keys.FOLDED_ORDER))
    pieces = table.users.in_tag_order(records_of, finish=_tag_bytes)
    named = chain((name.encode() + b"\n",), pieces)
    return keys.keyed_digest(keys.subkey(run_key, keys.FOLDED_SET), named)


def confirmation(
    session: Session, party: str, users: bytes, *, run_key: bytes, plan: Plan
) -> Confirmation:
    """Return what `party` says to the others if it has this key, study, run, plan and these users.

    The name is part of it, so that a party's own words sent back to it are not taken for
    another's.
    """
    key = keys.subkey(run_key, keys.CONFIRM)
    text = session.transcript(plan) + party.encode()
    own, coarser = users[:_DIGEST_BYTES], users[_DIGEST_BYTES:]
    return Confirmation(
        key_check=keys.keyed_digest(key, [b"key\n", text]),
        user_check=keys.keyed_digest(key, [b"users\n", own, text]),
        folded_checks=b"".join(
            keys.keyed_digest(key, [b"folded users\n", digest, text])
            for digest in _digests(coarser)
        ),
    )


def explain_mismatch(word: Confirmation, expected: Confirmation) -> str:
    """Say what is known about why another party's users differ.

    Args:
        word: What the other party said.
        expected: What it would have said with this party's users.
    """
    theirs, ours = _digests(word.folded_checks), _digests(expected.folded_checks)
    if not ours or len(theirs) != len(ours):
        return (
            "keep the ids that all parties have, written the same way, and run again (a new study "
            "with ids.explain_mismatch = true would tell whether they are only written differently)"
        )
    return advice(a == b for a, b in zip(theirs, ours, strict=True))


def _digests(data: bytes) -> list[bytes]:
    return [data[at : at + _DIGEST_BYTES] for at in range(0, len(data), _DIGEST_BYTES)]


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


def _folded_records(block: UserBlock, *, name: str, key: bytes) -> Records:
    return hash_ids(key, folded(block.ids, name)), block.labels


def _tag_bytes(records: Records) -> bytes:
    return records[0].tobytes()
