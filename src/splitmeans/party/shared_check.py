"""A digest of what all parties derive from a run key, compared before anything is released.

Decoys hide users only where every party makes the same ones (rule R5): two parties with different
derivations leave the server a join in which every match is a user. So parties compare what they
derive in this very run, by the functions that the release itself uses.
"""

import dataclasses
import hashlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from splitmeans.engine.memory import MemoryUsers
from splitmeans.kernels.siphash import hash_ids
from splitmeans.membership.cell_sketch import encode as cell_sketch
from splitmeans.membership.cell_sketch.law import CellSketch
from splitmeans.membership.decoy import encode as decoy
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.plan import Plan
from splitmeans.wire import keys

# An id that stands for the users; who is really there has no part in this.
_PROBE = pa.array(["splitmeans probe"], pa.large_string())
# Cells of each group whose decoys' tags are looked at; counts are those of all cells.
_TAGGED_CELLS = 64
_SKETCH_ROWS = 16


def shared_check(plan: Plan, *, run_key: bytes) -> bytes:
    """Return a digest of decoys, phantoms and tags of this run, the same at all parties.

    Of decoys it has the counts of all cells of all groups, and the tags of the first cells.
    """
    code = hashlib.sha256()
    for piece in _pieces(plan, run_key):
        code.update(len(piece).to_bytes(8, "little") + piece)
    return code.digest()


def _pieces(plan: Plan, run_key: bytes) -> Iterator[bytes]:
    yield hash_ids(keys.subkey(run_key, keys.USER_ORDER), _PROBE).tobytes()
    match plan.membership:
        case DecoyLaw() as law:
            yield hash_ids(keys.subkey(run_key, keys.SAMPLE), _PROBE).tobytes()
            for group in plan.groups:
                yield hash_ids(keys.subkey(run_key, keys.USER_TAG, group=group), _PROBE).tobytes()
                counts, tags, labels = decoy.decoys_to_compare(
                    law,
                    group,
                    n_local_clusters=plan.n_local_clusters,
                    run_key=run_key,
                    equal_sets=plan.study.user_sets == "equal",
                    tagged_cells=_TAGGED_CELLS,
                )
                yield counts.astype("<i8").tobytes()
                yield tags.astype("<u8").tobytes()
                yield labels.tobytes()
        case CellSketch() as law:
            for position in range(len(plan.n_local_clusters)):
                message = cell_sketch.encode(
                    dataclasses.replace(law, repetitions=min(_SKETCH_ROWS, law.repetitions)),
                    users=MemoryUsers(ids=_PROBE, labels=np.zeros(1, dtype=np.int32)),
                    position=position,
                    groups=plan.groups,
                    n_local_clusters=plan.n_local_clusters,
                    run_key=run_key,
                )
                yield message.registers.astype("<u2").tobytes()
