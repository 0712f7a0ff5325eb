"""The record of the people in a party's table; it stays in the party's home (`privacy.people`)."""

from functools import partial

import numpy as np
import pyarrow.compute as pc

from splitmeans._types import WordArray
from splitmeans.kernels.siphash import hash_ids
from splitmeans.privacy.people import SIZE, People, hash_key
from splitmeans.table.walk.interface import Table, UserBlock


def people_of(table: Table, *, secret: bytes) -> People:
    """Return the record of a table's people under a secret; the same in any order of rows."""
    found = np.empty(0, dtype=np.uint64)
    for part in table.users.each(partial(_smallest, key=hash_key(secret))):
        found = np.unique(np.concatenate([found, part]))[:SIZE]
    return People(hashes=found)


def _smallest(block: UserBlock, *, key: bytes) -> WordArray:
    """Return the smallest hashes of a block of users.

    Studies differ in how they write ids. Case, blanks at the ends and leading zeros are left out,
    so that the same people are known again where one study takes ids as text and another as
    numbers.
    """
    bare = pc.utf8_ltrim(pc.utf8_trim_whitespace(pc.utf8_lower(block.ids)), characters="0")
    hashes = np.unique(hash_ids(key, bare)[:, 0])
    return hashes[:SIZE]
