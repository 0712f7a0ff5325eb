"""IND-LAP at the party: noisy cluster sizes (paper, section 4.1, baseline 1)."""

from functools import partial, reduce

import numpy as np

from splitmeans import _validate
from splitmeans._types import IntArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.membership.independent.law import NoisyHistogram
from splitmeans.membership.method import RunFacts
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import UserBlock, Users
from splitmeans.wire.messages import HistogramMessage


def encode(
    law: NoisyHistogram, *, labels: LabelArray, n_local_clusters: int, noise: NoiseSource
) -> HistogramMessage:
    """Return the noisy sizes of this party's clusters, empty clusters included.

    Guarantee: `law.event`, for adding or removing one user. The noise is added to whole counts;
    the authors' code adds it to fractions of n, which is n times more noise than needed.

    Args:
        law: The public parameters.
        labels: Each user's cluster, shape (n,).
        n_local_clusters: k', which is public.
        noise: Where the noise comes from.
    """
    raw_counts = count_labels(labels, n_local_clusters=n_local_clusters)
    return encode_counts(law, raw_counts=raw_counts, noise=noise)


def encode_counts(
    law: NoisyHistogram, *, raw_counts: IntArray, noise: NoiseSource
) -> HistogramMessage:
    """Do the same for clusters that are counted already, shape (k',)."""
    return HistogramMessage(noisy_counts=raw_counts + noise.laplace(law.scale, raw_counts.size))


def count_labels(labels: LabelArray, *, n_local_clusters: int) -> IntArray:
    """Return the sizes of all clusters, shape (k',); those of parts of a table add up."""
    _validate.at_least(1, n_local_clusters=n_local_clusters)
    if labels.size and not 0 <= labels.min() <= labels.max() < n_local_clusters:
        raise ParameterError(f"labels must be between 0 and {n_local_clusters - 1}")
    return np.bincount(labels, minlength=n_local_clusters).astype(np.int64)


def release(
    law: NoisyHistogram,
    plan: RunFacts,
    position: int,
    users: Users,
    *,
    run_key: bytes,
    noise: NoiseSource,
) -> HistogramMessage:
    """Return the message of a party of a plan; see `encode`."""
    k = plan.n_local_clusters[position]
    raw_counts = reduce(np.add, users.each(partial(_label_counts, n_local_clusters=k)))
    return encode_counts(law, raw_counts=raw_counts, noise=noise)


def _label_counts(block: UserBlock, *, n_local_clusters: int) -> IntArray:
    return count_labels(block.labels, n_local_clusters=n_local_clusters)
