"""How far to believe noisy differences: empirical Bayes, the share signal / (signal + noise).

How much of the differences is noise is known; the rest, over all of them, is the signal.
"""

import numpy as np

from splitmeans._types import FloatArray

# A cluster whose offsets are together more than so many times what noise would make them, squared,
# is believed by itself: a group of rows that no point is near would otherwise be moved to no
# farther than clusters on average are wrong.
_STANDING_OUT = 3.0


def believed(differences: FloatArray, deviations: FloatArray) -> FloatArray:
    """Return how much of each difference to believe, given the deviation of its noise.

    The mean square beyond the noise is estimated from all differences, the more of each the less
    noise it has: those of clusters with few rows are mostly noise and say nothing about the others.
    """
    if differences.size == 0:
        return differences
    noise = np.square(np.broadcast_to(deviations, differences.shape))
    weights = np.square(noise.min() / noise)
    surplus = weights * (np.square(differences) - noise)
    signal = max(float(surplus.sum() / weights.sum()), 0.0)
    return np.asarray(signal / (signal + noise))


def believed_offsets(differences: FloatArray, deviations: FloatArray) -> FloatArray:
    """Return the same for offsets of clusters, shape (k, d): more of one that stands out itself."""
    noise = _STANDING_OUT * np.square(deviations).sum(axis=1, keepdims=True)
    lengths = np.square(differences).sum(axis=1, keepdims=True)
    alone = 1 - np.divide(noise, lengths, out=np.ones_like(noise), where=lengths > 0)
    return np.asarray(np.maximum(believed(differences, deviations), alone))
