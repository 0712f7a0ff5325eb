"""A private test of equal users: each run answers a fellow party one guess at them (rule R6).

Two parties hold sets of ids and want to know whether they are the same, and nothing else. A digest
that one shows to the other would not do: who gets it can try sets of ids on it, thousands in a
second. So the digest is the password of a password-authenticated key exchange, SPAKE2 on Ed25519
(RFC 9382 has the construction): each party sends one share, and both get the same key only if
their passwords are equal. A share is a random point whatever the password is, and a share that was
made for one password tells about that password alone. What the parties then show each other, under
the key (`confirm.py`), tells who made its share for another password that it was another one.

The order of parties in the study decides who is A and who is B, and both names are part of the key,
so a share has one place. The password has study and run in it.
"""

import hashlib
from functools import partial
from typing import Any

import numpy as np

from splitmeans._types import WordArray
from splitmeans.errors import ProtocolError
from splitmeans.kernels.row_numbers import RowNumbers, as_text
from splitmeans.kernels.set_sums import NUMBER_BITS, number_sum
from splitmeans.kernels.siphash import hash_ids
from splitmeans.party.session import Session
from splitmeans.study import Study
from splitmeans.table.walk.interface import Table, UserBlock
from splitmeans.wire.keys import HASH_KEY_BYTES, share_seed

# How a digest begins.
_USER_SET = b"splitmeans user set 2\n"
SECRET_BYTES = 32
# A side, "A" or "B", and a point.
SHARE_BYTES = 33

# A sum of so many numbers that their count fits 64 bits.
_COUNT_BYTES = 8
_SUM_BYTES = NUMBER_BITS // 8 + _COUNT_BYTES

# Ids are compared in the form in which they are used; texts that are hashed name it.
_OWN_FORM = "own"


def user_set_digest(study: Study, table: Table, *, run: str, simulated: bool = False) -> bytes:
    """Return a digest of the party's set of users, whatever order its rows are in.

    Empty where user sets may differ: nothing is compared there, because one guess at one user's
    presence would then be an answer about that user. The digest is secret: ids are guessable, and
    study and run are known. It is the password of the exchange, and tells a restarted party that
    its users are still the same. A simulated one tells sets apart as well, but not if somebody
    looks for two sets that have the same.
    """
    if study.user_sets != "equal":
        return b""
    return (_quick_digest if simulated else _digest)(study, table, run=run)


def make_share(session: Session, other: str, *, users: bytes, secret: bytes) -> bytes:
    """Return the share that a party sends to another one; empty where nothing is compared.

    The same again whenever it is called with the same arguments.

    `users` is the party's `user_set_digest`; `secret` has fresh random bytes of this run, which no
    other participant ever sees.
    """
    if session.simulated or not users:  # nobody in the process keeps anything from anybody
        return b""
    share: bytes = _side(session, other, users=users, secret=secret).start()
    return share


def agree(session: Session, other: str, *, users: bytes, secret: bytes, share: bytes) -> bytes:
    """Return the key that follows from another party's share, 32 bytes; empty without users.

    The other party gets the same key if its users are the same, and otherwise cannot tell this key
    from a random one.

    Raises:
        ProtocolError: If the share is not what `make_share` returns.
    """
    if session.simulated:
        return users
    if len(share) != (SHARE_BYTES if users else 0):
        raise _malformed(other)
    if not users:
        return b""
    side = _side(session, other, users=users, secret=secret)
    side.start()
    try:
        key: bytes = side.finish(share)
    except Exception as problem:  # the library has no common type for what is no share
        raise _malformed(other) from problem
    return key


def _malformed(other: str) -> ProtocolError:
    return ProtocolError(
        f"party {other!r} sent no share for comparing users that can be used; do all parties run "
        "the same version of splitmeans?"
    )


def _side(session: Session, other: str, *, users: bytes, secret: bytes) -> Any:
    """Return this party's side of the exchange, from the same secret the same."""
    # Imported where it is used: most commands compare no users.
    from spake2 import SPAKE2_A, SPAKE2_B

    pair = sorted((session.party, other), key=session.study.party_names.index)
    kind = SPAKE2_A if pair[0] == session.party else SPAKE2_B
    return kind(
        users,
        idA=pair[0].encode(),
        idB=pair[1].encode(),
        entropy_f=partial(share_seed, secret, f"{_OWN_FORM}\n{other}"),
    )


def _digest(study: Study, table: Table, *, run: str) -> bytes:
    """Return SHA-256 of the sum of all users' numbers, bound to study and run.

    A sum needs no order, so nobody sorts or gathers ids for it. Its key is public: whoever takes
    part knows the numbers of all ids, and what keeps two sets from having the same sum is how long
    the numbers are (`kernels/set_sums.py`).
    """
    bound, code = _begun(study, run=run)
    key = hashlib.sha256(b"splitmeans user numbers 1\n" + bound).digest()
    parts = table.users.each(partial(_part_sum, key=key))
    total = sum(int.from_bytes(part, "little") for part in parts)
    code.update(len(table).to_bytes(_COUNT_BYTES, "little") + total.to_bytes(_SUM_BYTES, "little"))
    return code.digest()


def _quick_digest(study: Study, table: Table, *, run: str) -> bytes:
    """Return the same of the sum of all tags, which needs no order.

    Two sets by chance have the same sum with a probability of 2^-128. Whoever knows the key can
    find such sets, but in a simulation there is nobody to do it.
    """
    bound, code = _begun(study, run=run)
    key = hashlib.sha256(b"splitmeans user tags 1\n" + bound).digest()[:HASH_KEY_BYTES]
    total = np.zeros(2, dtype=np.uint64)
    for part in table.users.each(partial(_tag_sum, key=key)):
        total += part
    code.update(len(table).to_bytes(_COUNT_BYTES, "little") + total.tobytes())
    return code.digest()


def _begun(study: Study, *, run: str) -> tuple[bytes, "hashlib._Hash"]:
    """Return what a digest is bound to, and the hash of everything but users."""
    bound = f"{study.hash}\n{run}\n{_OWN_FORM}\n".encode()
    return bound, hashlib.sha256(_USER_SET + bound)


def _part_sum(block: UserBlock, *, key: bytes) -> bytes:
    return number_sum(key, as_text(block.ids)).to_bytes(_SUM_BYTES, "little")


def _tag_sum(block: UserBlock, *, key: bytes) -> WordArray:
    if isinstance(block.ids, RowNumbers):
        # Of tables without ids only the numbers of rows can differ, and those are hashed as well.
        return np.zeros(2, dtype=np.uint64)
    tags = hash_ids(key, block.ids)
    return np.asarray(tags.sum(axis=0, dtype=np.uint64))
