"""Shrinkage of noisy values towards a model's (empirical Bayes)."""

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray


def shrinkage(
    differences: FloatArray,
    deviations: npt.ArrayLike,
    *,
    sizes: npt.ArrayLike = 1.0,
    beyond_chance: bool = False,
) -> FloatArray:
    """Return the weight of each noisy value against the model's, in [0, 1].

    The mean square of all differences beyond their noise is the model's variance v, and the weight
    v / (v + noise variance). Values with more noise say less about v.

    Args:
        differences: Noisy values minus the model's, any shape.
        deviations: Standard deviations of the noise, broadcast to that shape.
        sizes: The model's variance is in proportion to these, such as expected counts.
        beyond_chance: Whether to leave out one standard deviation of what noise alone adds to the
            sum of squares, so that pure noise seldom has any weight.
    """
    if differences.size == 0:
        return differences
    noise = np.square(np.broadcast_to(deviations, differences.shape))
    noise = np.maximum(noise, np.finfo(np.float64).tiny)
    precise = np.square(noise.min() / noise)
    surplus = float(np.sum(precise * (np.square(differences) - noise)))
    if beyond_chance:
        surplus -= float(np.sqrt(2 * np.sum(np.square(precise * noise))))
    variance = max(surplus, 0.0) / float(np.sum(precise * sizes)) * np.asarray(sizes)
    return np.asarray(variance / (variance + noise))
