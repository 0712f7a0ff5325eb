"""DPFMPS-Gen: a party's partition sketch, an instance of MemEnc (paper, Algorithm 3)."""

from dataclasses import dataclass, field

import numpy as np

from splitmeans._types import FloatArray, RegisterArray
from splitmeans.kernels.row_numbers import RowNumbers
from splitmeans.kmeans.nearest import nearest_centres
from splitmeans.paper.dpfm import SketchParameters, dpfm
from splitmeans.privacy.noise import NoiseSource


@dataclass(frozen=True, kw_only=True, eq=False)
class PartitionSketch:
    """The message of one party: registers A, shape (M, k')."""

    registers: RegisterArray = field(repr=False)

    @property
    def n_bytes(self) -> int:
        """Size of the message."""
        return self.registers.nbytes


def dpfmps_gen(
    rows: FloatArray,
    centres: FloatArray,
    parameters: SketchParameters,
    *,
    hash_key: bytes,
    noise: NoiseSource,
) -> PartitionSketch:
    """Return the sketches of a party's clusters.

    Guarantee: for one party's message alone (epsilon_2, delta_2)-DP for adding or removing one
    user, while the server does not know `hash_key`; a user is in one cluster, so clusters cost no
    more than one of them. It does NOT hold for the messages of all parties together. They hash
    with the same keys, so a user puts one value into the sketches of every party, and two equal
    large registers betray a user who is alone in a combination of clusters. At two parties and a
    claimed (0.49, 5e-5) the true epsilon is 1.8 or more (docs/concepts/published-argument.md).

    Row i is user i at every party. `hash_key` has 16 bytes that all parties share and the server
    does not know.
    """
    users = RowNumbers(start=0, end=len(rows)).tags(hash_key)
    labels = nearest_centres(rows, centres)
    columns = [dpfm(users[labels == a], parameters, noise=noise) for a in range(len(centres))]
    return PartitionSketch(registers=np.column_stack(columns))
