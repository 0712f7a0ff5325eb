"""A digest of what all parties derive from a run key, compared before anything is released.

Decoys hide users only where every party makes the same ones (rule R5): two parties with different
derivations leave the server a join in which every match is a user. So parties compare what they
derive in this very run, by the functions that the release itself uses.
"""

import hashlib

from splitmeans.party.memberships import PARTY_SIDES
from splitmeans.plan.plan import Plan


def shared_check(plan: Plan, *, run_key: bytes) -> bytes:
    """Return a digest of decoys, phantoms and tags of this run, the same at all parties."""
    code = hashlib.sha256()
    shared_pieces = PARTY_SIDES[plan.study.membership].shared_pieces
    for piece in shared_pieces(plan.membership, plan, run_key):
        code.update(len(piece).to_bytes(8, "little") + piece)
    return code.digest()
