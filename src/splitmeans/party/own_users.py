"""A digest of a party's users, by which it notices after a restart that they changed.

Nobody else ever sees it: it stays in the party's home until its release, with the key that it was
made with, drawn anew for every run.
"""

from functools import partial

import numpy as np

from splitmeans._types import WordArray
from splitmeans.kernels.siphash import hash_ids
from splitmeans.table.walk.interface import Table, UserBlock
from splitmeans.wire.keys import HASH_KEY_BYTES


def users_digest(table: Table, *, key: bytes) -> bytes:
    """Return the key, the number of users and the sum of their tags under the key.

    A sum needs no order. Two sets have the same one with a probability of 2^-128.
    """
    total = np.zeros(2, dtype=np.uint64)
    for part in table.users.each(partial(_tag_sum, key=key)):
        total += part
    return key + len(table).to_bytes(8, "little") + total.astype("<u8").tobytes()


def same_users(digest: bytes, table: Table) -> bool:
    """Whether the table has the users that a digest is of."""
    return users_digest(table, key=digest[:HASH_KEY_BYTES]) == digest


def _tag_sum(block: UserBlock, *, key: bytes) -> WordArray:
    return np.asarray(hash_ids(key, block.ids).sum(axis=0, dtype=np.uint64))
