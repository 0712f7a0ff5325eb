"""LDP-AGG at the party: randomise each user's label (paper, appendix "LDP-AGG Details")."""

import numpy as np
import numpy.typing as npt

from splitmeans._types import LabelArray, WordArray
from splitmeans.errors import ParameterError
from splitmeans.membership.exact.encode import in_secret_order
from splitmeans.membership.ldp.law import RandomisedLabels, hash_labels
from splitmeans.membership.method import RunFacts
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import Users
from splitmeans.wire.messages import RandomisedLabelsMessage


def encode(
    law: RandomisedLabels, *, labels: LabelArray, noise: NoiseSource
) -> RandomisedLabelsMessage:
    """Return one randomised report per user.

    Guarantee: `law.event`: epsilon-local DP for each user's label. Seeds do not depend on data.
    A report must be drawn once per user: a second draw costs epsilon again.

    Args:
        law: The public parameters.
        labels: Each user's cluster, in the user order that all parties share, shape (n,).
        noise: Where the random words come from.
    """
    if labels.size and not 0 <= labels.min() <= labels.max() < law.n_local_clusters:
        raise ParameterError(f"labels must be between 0 and {law.n_local_clusters - 1}")
    if law.uses_hashing:
        seeds = (noise.words(labels.size) >> np.uint64(32)).astype(np.uint32)
        raw_values = hash_labels(seeds, labels, n_values=law.n_values)
    else:
        seeds = np.empty(0, dtype=np.uint32)
        raw_values = labels.astype(np.uint8)
    reports = _respond(law, raw_values=raw_values, words=noise.words(labels.size))
    return RandomisedLabelsMessage(reports=reports, seeds=seeds)


def _respond(
    law: RandomisedLabels, *, raw_values: npt.NDArray[np.uint8], words: WordArray
) -> npt.NDArray[np.uint8]:
    """Keep each value, or replace it by another one, as its word says."""
    changed = words >= np.uint64(law.true_words)
    beyond = words[changed] - np.uint64(law.true_words)
    pick = (beyond // np.uint64(law.other_words)).astype(np.uint8)  # 0 .. n_values-2
    reports = raw_values.copy()
    reports[changed] = pick + (pick >= raw_values[changed])  # step over the true value
    return reports


def release(
    law: RandomisedLabels,
    plan: RunFacts,
    position: int,
    users: Users,
    *,
    run_key: bytes,
    noise: NoiseSource,
) -> RandomisedLabelsMessage:
    """Return the message of a party of a plan; see `encode`."""
    return encode(law, labels=in_secret_order(users, run_key), noise=noise)
