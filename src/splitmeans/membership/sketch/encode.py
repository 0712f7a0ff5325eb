"""Party side of the sketch: memberships to registers (paper, Algorithms 2 and 3)."""

import numpy as np

from splitmeans import _validate
from splitmeans._types import LabelArray, RegisterArray, WordArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.registers import user_registers
from splitmeans.membership.sketch.law import PublishedSketch
from splitmeans.privacy.noise import NoiseSource
from splitmeans.wire.messages import SketchMessage


def encode(
    law: PublishedSketch,
    *,
    id_words: WordArray,
    labels: LabelArray,
    n_local_clusters: int,
    noise: NoiseSource,
) -> SketchMessage:
    """Sketch a party's clusters, with phantom users from the party's own noise.

    Guarantee: unit of privacy is one user, neighbours differ by adding or removing one user. A user
    is in one cluster, so at most one register of each row depends on it. The released registers
    cost `law.event`: (epsilon, delta) by the paper's theorem, for this party's sketch alone and
    while the server does not know the key behind `id_words`. All parties use the same key, and
    what their sketches cost together is not covered (docs/concepts/published-argument.md).

    Args:
        law: The public parameters.
        id_words: Keyed hash of each user's id under the run's register key, shape (n, 2).
        labels: Each user's cluster, shape (n,).
        n_local_clusters: k'.
        noise: The party's own source, never shared with other parties.

    Returns:
        Registers of shape (M, k'), none below `law.floor`.
    """
    _check_users(id_words, labels, n_local_clusters=n_local_clusters)
    raw_registers = user_registers(
        id_words,
        labels,
        n_clusters=n_local_clusters,
        repetitions=law.repetitions,
        floor=law.floor,
        count_table=law.registers.count_table(repetitions=law.repetitions, floor=law.floor),
        excess_table=law.registers.value_table,
    )
    phantoms = _phantom_registers(law, n_local_clusters=n_local_clusters, noise=noise)
    return SketchMessage(registers=np.maximum(raw_registers, phantoms))


def _phantom_registers(
    law: PublishedSketch, *, n_local_clusters: int, noise: NoiseSource
) -> RegisterArray:
    """Draw the maximum of the phantoms for every row and cluster, shape (M, k')."""
    shape = (law.repetitions, n_local_clusters)
    words = noise.words(law.repetitions * n_local_clusters).reshape(shape)
    maxima = 1 + np.searchsorted(law.phantom_table, words, side="right")
    return maxima.astype(np.uint16)


def _check_users(id_words: WordArray, labels: LabelArray, *, n_local_clusters: int) -> None:
    _validate.at_least(1, n_local_clusters=n_local_clusters)
    if id_words.dtype != np.uint64 or id_words.ndim != 2 or id_words.shape[1] != 2:
        raise ParameterError(
            f"id_words must be 64-bit words of shape (n, 2), got {id_words.dtype} {id_words.shape}"
        )
    if labels.dtype != np.int32 or labels.shape != id_words.shape[:1]:
        raise ParameterError(
            f"labels must be 32-bit integers of shape ({id_words.shape[0]},), one for each user, "
            f"got {labels.dtype} {labels.shape}"
        )
    # The kernel writes where a label points, so this check also keeps it inside its memory.
    if labels.size and not (labels.min() >= 0 and labels.max() < n_local_clusters):
        raise ParameterError(f"labels must be between 0 and {n_local_clusters - 1}")
