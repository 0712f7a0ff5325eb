"""Party side of the cell sketch: memberships to registers, one block per group of parties."""

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial, reduce

import numpy as np
import pyarrow as pa

from splitmeans import _validate
from splitmeans._types import LabelArray, RegisterArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.phantoms import raise_to_phantoms
from splitmeans.kernels.registers import user_registers
from splitmeans.kernels.siphash import hash_ids
from splitmeans.membership.estimator import check_parties
from splitmeans.membership.method import RunFacts
from splitmeans.membership.sketch.law import SketchLaw
from splitmeans.membership.sketch.registers import RegisterLaw
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import UserBlock, Users
from splitmeans.table.walk.memory import MemoryUsers
from splitmeans.wire.keys import PHANTOM_REGISTERS, USER_REGISTERS, subkey
from splitmeans.wire.messages import CellSketchMessage

# A phantom's place in the key stream has 32 bits for the cell.
_MOST_CELLS = 2**32

# What parties compare: rows of the sketch, and an id that stands for the users.
_COMPARED_ROWS = 16
_PROBE = pa.array(["splitmeans probe"], pa.large_string())


def encode(
    law: SketchLaw,
    *,
    users: Users,
    position: int,
    groups: Sequence[tuple[int, ...]],
    n_local_clusters: Sequence[int],
    run_key: bytes,
) -> CellSketchMessage:
    """Sketch a party's clusters once for each group that it is in.

    Guarantee: unit of privacy is one user, neighbours differ by adding or removing one user, at all
    parties or at some. All parties of a group draw the same value for the same user and the same
    value for the phantoms of the same cell, so the group's registers depend on users and phantoms
    only through one maximum per cell and row, of which a user changes one (see `SketchLaw`). What
    all parties send for a group costs `law.event`, once; groups compose. It holds towards a server
    that does not know `run_key`, for labels that are a function of a user's own columns and of
    what was released before, and for registers that are sent once under a run key.

    No id is there twice (already checked), and every party passes the same groups. Registers have
    the shape (groups of this party x M, k'), none below `law.floor`.
    """
    own_groups = [group for group in groups if position in group]
    _check_groups(own_groups, position=position, n_local_clusters=n_local_clusters)
    blocks = [
        _block(
            law,
            users=users,
            own=group.index(position),
            widths=[n_local_clusters[member] for member in group],
            user_key=subkey(run_key, USER_REGISTERS, group=group),
            phantom_key=subkey(run_key, PHANTOM_REGISTERS, group=group),
        )
        for group in own_groups
    ]
    return CellSketchMessage(registers=np.vstack(blocks))


def own_labels(law: SketchLaw, widths: Sequence[int], *, own: int) -> LabelArray:
    """Return one party's label in every cell of its group, shape (cells,), -1 for absent.

    Cells are in row-major order of the parties' labels, absent last, without the all-absent cell.
    """
    shape = law.labels_of(widths)
    labels = np.arange(shape[own], dtype=np.int32)
    labels[widths[own] :] = -1
    along = [1] * len(shape)
    along[own] = shape[own]
    cells = np.broadcast_to(labels.reshape(along), shape).reshape(-1)
    return cells[:-1]


def _block(
    law: SketchLaw,
    *,
    users: Users,
    own: int,
    widths: Sequence[int],
    user_key: bytes,
    phantom_key: bytes,
) -> RegisterArray:
    """Return the registers of one group, shape (M, k')."""
    n_cells = law.shared_phantoms(widths) // law.phantoms
    if n_cells > _MOST_CELLS:
        raise ParameterError(
            f"a group must have at most {_MOST_CELLS} cells, got {n_cells}; use smaller groups"
        )
    registers = sketch_users(
        law.registers,
        users,
        key=user_key,
        n_clusters=widths[own],
        repetitions=law.repetitions,
        floor=law.floor,
    )
    raise_to_phantoms(
        registers,
        key=phantom_key,
        own_labels=own_labels(law, widths, own=own),
        maximum_table=law.phantom_table,
    )
    return registers


def sketch_users(
    law: RegisterLaw,
    users: Users,
    *,
    key: bytes,
    n_clusters: int,
    repetitions: int,
    floor: int,
) -> RegisterArray:
    """Return the users' registers, shape (M, k'), none below the floor.

    Guarantee: none by itself. A user changes at most one register of each row, and only a server
    without `key` faces registers whose law is known; phantoms are to be added.

    `key` is the 128-bit register key that the parties share, and M is `repetitions`.
    """
    task = partial(
        _block_registers,
        law=law,
        key=key,
        n_clusters=n_clusters,
        repetitions=repetitions,
        floor=floor,
    )
    return reduce(np.maximum, users.each(task))


def _block_registers(
    block: UserBlock,
    *,
    law: RegisterLaw,
    key: bytes,
    n_clusters: int,
    repetitions: int,
    floor: int,
) -> RegisterArray:
    labels = block.labels
    # The kernel writes where a label points, so this check also keeps it inside its memory.
    if labels.size and not (labels.min() >= 0 and labels.max() < n_clusters):
        raise ParameterError(f"labels must be between 0 and {n_clusters - 1}")
    return user_registers(
        hash_ids(key, block.ids),
        labels,
        n_clusters=n_clusters,
        repetitions=repetitions,
        floor=floor,
        count_table=law.count_table(repetitions=repetitions, floor=floor),
        excess_table=law.value_table,
    )


def _check_groups(
    own_groups: Sequence[tuple[int, ...]], *, position: int, n_local_clusters: Sequence[int]
) -> None:
    for width in n_local_clusters:
        _validate.at_least(1, n_local_clusters=width)
    if not own_groups:
        raise ParameterError(f"groups must name position {position} at least once")
    for group in own_groups:
        check_parties(group, n_parties=len(n_local_clusters))


def release(
    law: SketchLaw,
    plan: RunFacts,
    position: int,
    users: Users,
    *,
    run_key: bytes,
    noise: NoiseSource,
) -> CellSketchMessage:
    """Return the message of a party of a plan; see `encode`."""
    return encode(
        law,
        users=users,
        position=position,
        groups=plan.groups,
        n_local_clusters=plan.n_local_clusters,
        run_key=run_key,
    )


def shared_pieces(law: SketchLaw, plan: RunFacts, run_key: bytes) -> Iterator[bytes]:
    """Yield what all parties derive from the run key: the first rows, with one made-up user."""
    for position in range(len(plan.n_local_clusters)):
        message = encode(
            dataclasses.replace(law, repetitions=min(_COMPARED_ROWS, law.repetitions)),
            users=MemoryUsers(ids=_PROBE, labels=np.zeros(1, dtype=np.int32)),
            position=position,
            groups=plan.groups,
            n_local_clusters=plan.n_local_clusters,
            run_key=run_key,
        )
        yield message.registers.astype("<u2").tobytes()
