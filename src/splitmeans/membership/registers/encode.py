"""Sketch a party's users: the maximum of each one's geometric values, by row and cluster."""

from functools import partial, reduce

import numpy as np

from splitmeans._types import RegisterArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.registers import user_registers
from splitmeans.kernels.siphash import hash_ids
from splitmeans.membership.registers.law import RegisterLaw
from splitmeans.table.walk.interface import UserBlock, Users


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

    Args:
        law: The law of one value.
        users: The party's users with each one's cluster.
        key: The 128-bit register key that the parties share.
        n_clusters: k'.
        repetitions: Rows of the sketch, M.
        floor: Smallest register value.
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
