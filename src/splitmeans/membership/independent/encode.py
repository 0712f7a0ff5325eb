"""IND-LAP at the party: noisy cluster sizes (paper, section 4.1, baseline 1)."""

import numpy as np

from splitmeans import _validate
from splitmeans._types import LabelArray
from splitmeans.errors import ParameterError
from splitmeans.membership.independent.law import NoisyHistogram
from splitmeans.privacy.noise import NoiseSource
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
    _validate.at_least(1, n_local_clusters=n_local_clusters)
    if labels.size and not 0 <= labels.min() <= labels.max() < n_local_clusters:
        raise ParameterError(f"labels must be between 0 and {n_local_clusters - 1}")
    raw_counts = np.bincount(labels, minlength=n_local_clusters).astype(np.int64)
    return HistogramMessage(noisy_counts=raw_counts + noise.laplace(law.scale, n_local_clusters))
