"""A private test of equal users: each run answers a fellow party one guess at them (rule R6).

Two parties hold sets of ids and want to know whether they are the same, and nothing else. A digest
that one shows to the other would not do: who gets it can try sets of ids on it, thousands in a
second. So the digest is the password of a password-authenticated key exchange, SPAKE2 on Ed25519
(RFC 9382 has the construction): each party sends one share, and both get the same key only if
their passwords are equal. A share is a random point whatever the password is, and a share that was
made for one password tells about that password alone. What the parties then show each other, under
the key (`confirm.py`), tells who made its share for another password that it was another one.

The order of parties in the study decides who is A and who is B, and both names are part of the key,
so a share has one place. The password has study, run and form of the ids in it.
"""

import hashlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from splitmeans._types import WordArray
from splitmeans.errors import ProtocolError
from splitmeans.kernels.row_numbers import RowNumbers, as_text
from splitmeans.kernels.set_sums import NUMBER_BITS, number_sum
from splitmeans.kernels.siphash import hash_ids
from splitmeans.party.session import Session
from splitmeans.study import Study
from splitmeans.table.ids.coarse_forms import FOLDS, folded
from splitmeans.table.walk.interface import Table, UserBlock
from splitmeans.wire.keys import HASH_KEY_BYTES, share_seed

# How a digest begins.
_USER_SET = b"splitmeans user set 2\n"
DIGEST_BYTES = 32
SECRET_BYTES = 32
# A side, "A" or "B", and a point.
SHARE_BYTES = 33

# A sum of so many numbers that their count fits 64 bits.
_COUNT_BYTES = 8
_SUM_BYTES = NUMBER_BITS // 8 + _COUNT_BYTES

# The form in which ids are used; coarser ones follow it.
_OWN_FORM = "own"


def user_forms(study: Study) -> tuple[str, ...]:
    """Return the names of the forms of ids that parties compare, none where sets may differ.

    Where user sets may differ nothing is compared: one guess at one user's presence would then be
    an answer about that user.
    """
    if study.user_sets != "equal":
        return ()
    coarser = FOLDS if study.id_rules.explain_mismatch else ()
    return (_OWN_FORM, *(fold.name for fold in coarser))


def user_set_digest(study: Study, table: Table, *, run: str, simulated: bool = False) -> bytes:
    """Return a digest of the party's set of users in each form, whatever order its rows are in.

    It is secret: ids are guessable, and study and run are known. It is the password of the
    exchange, and tells a restarted party that its users are still the same. A simulated one tells
    sets apart as well, but not if somebody looks for two sets that have the same.
    """
    digest = _quick_digest if simulated else _digest
    return b"".join(digest(study, table, run=run, form=form) for form in user_forms(study))


def make_shares(session: Session, other: str, *, users: bytes, secret: bytes) -> bytes:
    """Return what a party sends to another one, a share for each form in a row.

    The same again whenever it is called with the same arguments.

    Args:
        session: The run, and which party this is.
        other: Who gets the shares.
        users: The party's `user_set_digest`.
        secret: Fresh random bytes of this run, which no other participant ever sees.
    """
    if session.simulated:  # nobody in the process keeps anything from anybody
        return b""
    sides = _sides(session, other, users=users, secret=secret)
    return b"".join(side.start() for side in sides)


def agree(session: Session, other: str, *, users: bytes, secret: bytes, shares: bytes) -> bytes:
    """Return the keys that follow from another party's shares, 32 bytes for each form in a row.

    The other party gets the same key for a form if its users are the same in that form, and
    otherwise cannot tell this key from a random one.

    Args:
        session: As for `make_shares`.
        other: Who sent the shares.
        users: As for `make_shares`.
        secret: As for `make_shares`.
        shares: What the other party sent.

    Raises:
        ProtocolError: If the shares are not what `make_shares` returns.
    """
    if session.simulated:
        return users
    forms = user_forms(session.study)
    if len(shares) != SHARE_BYTES * len(forms):
        raise _malformed(other)
    keys = []
    for at, side in enumerate(_sides(session, other, users=users, secret=secret)):
        side.start()
        try:
            keys.append(side.finish(shares[SHARE_BYTES * at : SHARE_BYTES * (at + 1)]))
        except Exception as problem:  # the library has no common type for what is no share
            raise _malformed(other) from problem
    return b"".join(keys)


def _malformed(other: str) -> ProtocolError:
    return ProtocolError(
        f"party {other!r} sent no share for comparing users that can be used; do all parties run "
        "the same version of splitmeans?"
    )


def _sides(session: Session, other: str, *, users: bytes, secret: bytes) -> Iterator[Any]:
    """Return this party's side of the exchange of each form, from the same secret the same."""
    # Imported where it is used: most commands compare no users.
    from spake2 import SPAKE2_A, SPAKE2_B

    pair = sorted((session.party, other), key=session.study.party_names.index)
    kind = SPAKE2_A if pair[0] == session.party else SPAKE2_B
    for at, form in enumerate(user_forms(session.study)):
        yield kind(
            users[DIGEST_BYTES * at : DIGEST_BYTES * (at + 1)],
            idA=pair[0].encode(),
            idB=pair[1].encode(),
            entropy_f=partial(share_seed, secret, f"{form}\n{other}"),
        )


def _digest(study: Study, table: Table, *, run: str, form: str) -> bytes:
    """Return SHA-256 of the sum of all users' numbers, bound to study, run and form.

    A sum needs no order, so nobody sorts or gathers ids for it. Its key is public: whoever takes
    part knows the numbers of all ids, and what keeps two sets from having the same sum is how long
    the numbers are (`kernels/set_sums.py`).
    """
    bound, code = _begun(study, run=run, form=form)
    key = hashlib.sha256(b"splitmeans user numbers 1\n" + bound).digest()
    parts = table.users.each(partial(_part_sum, form=form, key=key))
    total = sum(int.from_bytes(part, "little") for part in parts)
    code.update(len(table).to_bytes(_COUNT_BYTES, "little") + total.to_bytes(_SUM_BYTES, "little"))
    return code.digest()


def _quick_digest(study: Study, table: Table, *, run: str, form: str) -> bytes:
    """Return the same of the sum of all tags, which needs no order.

    Two sets by chance have the same sum with a probability of 2^-128. Whoever knows the key can
    find such sets, but in a simulation there is nobody to do it.
    """
    bound, code = _begun(study, run=run, form=form)
    key = hashlib.sha256(b"splitmeans user tags 1\n" + bound).digest()[:HASH_KEY_BYTES]
    total = np.zeros(2, dtype=np.uint64)
    for part in table.users.each(partial(_tag_sum, form=form, key=key)):
        total += part
    code.update(len(table).to_bytes(_COUNT_BYTES, "little") + total.tobytes())
    return code.digest()


def _begun(study: Study, *, run: str, form: str) -> tuple[bytes, "hashlib._Hash"]:
    """Return what a digest is bound to, and the hash of everything but users."""
    bound = f"{study.hash}\n{run}\n{form}\n".encode()
    return bound, hashlib.sha256(_USER_SET + bound)


def _part_sum(block: UserBlock, *, form: str, key: bytes) -> bytes:
    return number_sum(key, as_text(_in_form(block, form))).to_bytes(_SUM_BYTES, "little")


def _tag_sum(block: UserBlock, *, form: str, key: bytes) -> WordArray:
    ids = _in_form(block, form)
    if isinstance(ids, RowNumbers):
        # Of tables without ids only the numbers of rows can differ, and those are hashed as well.
        return np.zeros(2, dtype=np.uint64)
    tags = hash_ids(key, ids)
    return np.asarray(tags.sum(axis=0, dtype=np.uint64))


def _in_form(block: UserBlock, form: str) -> "pa.LargeStringArray | RowNumbers":
    return block.ids if form == _OWN_FORM else folded(as_text(block.ids), form)
