"""Party side of the sketch: memberships to registers (paper, Algorithms 2 and 3)."""

import numpy as np

from splitmeans import _validate
from splitmeans._types import RegisterArray
from splitmeans.membership.method import RunFacts
from splitmeans.membership.registers.encode import sketch_users
from splitmeans.membership.sketch_paper.law import SketchPaperLaw
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import Users
from splitmeans.wire.keys import USER_REGISTERS, subkey
from splitmeans.wire.messages import SketchMessage


def encode(
    law: SketchPaperLaw,
    *,
    users: Users,
    key: bytes,
    n_local_clusters: int,
    noise: NoiseSource,
) -> SketchMessage:
    """Sketch a party's clusters, with phantom users from the party's own noise.

    Guarantee: unit of privacy is one user, neighbours differ by adding or removing one user. A user
    is in one cluster, so at most one register of each row depends on it. The released registers
    cost `law.event`: (epsilon, delta) by the paper's theorem, for this party's sketch alone and
    while the server does not know `key`. All parties use the same key, and
    what their sketches cost together is not covered (docs/concepts/published-argument.md).

    Args:
        law: The public parameters.
        users: The party's users with each one's cluster.
        key: The run's register key, which all parties share.
        n_local_clusters: k'.
        noise: The party's own source, never shared with other parties.

    Returns:
        Registers of shape (M, k'), none below `law.floor`.
    """
    _validate.at_least(1, n_local_clusters=n_local_clusters)
    raw_registers = sketch_users(
        law.registers,
        users,
        key=key,
        n_clusters=n_local_clusters,
        repetitions=law.repetitions,
        floor=law.floor,
    )
    phantoms = _phantom_registers(law, n_local_clusters=n_local_clusters, noise=noise)
    return SketchMessage(registers=np.maximum(raw_registers, phantoms))


def _phantom_registers(
    law: SketchPaperLaw, *, n_local_clusters: int, noise: NoiseSource
) -> RegisterArray:
    """Draw the maximum of the phantoms for every row and cluster, shape (M, k')."""
    shape = (law.repetitions, n_local_clusters)
    words = noise.words(law.repetitions * n_local_clusters).reshape(shape)
    maxima = 1 + np.searchsorted(law.phantom_table, words, side="right")
    return maxima.astype(np.uint16)


def release(
    law: SketchPaperLaw,
    plan: RunFacts,
    position: int,
    users: Users,
    *,
    run_key: bytes,
    noise: NoiseSource,
) -> SketchMessage:
    """Return the message of a party of a plan; see `encode`."""
    return encode(
        law,
        users=users,
        key=subkey(run_key, USER_REGISTERS),
        n_local_clusters=plan.n_local_clusters[position],
        noise=noise,
    )
