"""A digest of what all parties derive from a run key, compared before anything is released.

Decoys hide users only where every party makes the same ones (rule R5): two parties with different
derivations leave the server a join in which every match is a user. So parties compare what they
derive in this very run, by the functions that the release itself uses.
"""

import hashlib
from collections.abc import Iterator

import pyarrow as pa

from splitmeans.kernels.siphash import hash_ids
from splitmeans.party.memberships import PARTY_SIDES
from splitmeans.plan.plan import Plan
from splitmeans.wire import keys

# An id that stands for the users; who is really there has no part in this.
_PROBE = pa.array(["splitmeans probe"], pa.large_string())


def shared_check(plan: Plan, *, run_key: bytes) -> bytes:
    """Return a digest of decoys, phantoms and tags of this run, the same at all parties."""
    code = hashlib.sha256()
    for piece in _pieces(plan, run_key):
        code.update(len(piece).to_bytes(8, "little") + piece)
    return code.digest()


def _pieces(plan: Plan, run_key: bytes) -> Iterator[bytes]:
    yield hash_ids(keys.subkey(run_key, keys.USER_ORDER), _PROBE).tobytes()
    shared_pieces = PARTY_SIDES[plan.study.membership].shared_pieces
    yield from shared_pieces(plan.membership, plan, run_key)
