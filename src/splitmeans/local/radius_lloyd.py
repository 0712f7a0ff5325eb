"""Lloyd's steps with a radius: noise is in proportion to the clusters, not to the whole box.

A step adds up how far each row is from its nearest centre, clipped to that centre's radius, so a
row moves the sum by at most the radius. Constraining updates to a radius is the idea of Diaa,
Humphries and Kerschbaum, "FastLloyd" (2024); here radii follow the clusters' own released spread,
rows are clipped rather than centres, and successive steps are averaged by how precise they are.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.assign import clipped_sums
from splitmeans.local.law import l2_sensitivity, to_grid
from splitmeans.local.laws.radius_lloyd import FINE_UNITS, RADIUS_FACTOR, RadiusLloydLaw
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import RawRows
from splitmeans.table.walk.memory import as_rows

# A cluster whose count is within two deviations of zero keeps its centre.
COUNT_DEVIATIONS = 2.0

# Between two steps the true mean of a cluster moves, because other rows are nearest: by about this
# share of the mean square distance.
DRIFT = 0.02

_UNKNOWN = 1e60


class RadiusLloyd(RadiusLloydLaw):
    """A fixed number of Lloyd's steps on noisy sums; for what they cost see the law."""

    def release(
        self,
        raw_rows: IntArray | RawRows,
        *,
        centres: FloatArray,
        spreads: FloatArray,
        noise: NoiseSource,
    ) -> IntArray:
        """Return the improved centres, shape (k', d).

        Args:
            raw_rows: Shape (n, d), int64 on the grid.
            centres: Where to start, shape (k', d); independent of the rows or released.
            spreads: Mean squared distance of rows from each centre, roughly; likewise.
            noise: Hides the users.
        """
        rows = as_rows(raw_rows)
        current = to_grid(centres, self.bounds)
        # Of each centre, the variance of its place, per column; as good as infinite at the start.
        uncertainty = np.full(len(current), _UNKNOWN)
        for _ in range(self.steps):
            radii = self._radii(spreads)
            step = self._noisy_step(rows, current, radii, noise=noise)
            # The average of two estimates, each weighted by the other one's variance.
            gain = np.where(step.useful, uncertainty / (uncertainty + step.variance), 0.0)
            current = to_grid(current + gain[:, np.newaxis] * step.offsets, self.bounds)
            spreads = np.where(step.useful, step.spreads, spreads)
            drift = DRIFT * spreads / len(self.bounds)
            uncertainty = np.where(step.useful, gain * step.variance + drift, uncertainty)
        return current

    def _radii(self, spreads: FloatArray) -> IntArray:
        wanted = RADIUS_FACTOR * np.sqrt(np.maximum(spreads, 0.0))
        clipped = np.clip(wanted, self.smallest_radius, l2_sensitivity(self.bounds))
        return np.asarray(np.rint(clipped), dtype=np.int64)

    def noisy_sums(
        self, raw_rows: RawRows, centres: IntArray, radii: IntArray, *, noise: NoiseSource
    ) -> IntArray:
        """Return all that a step releases, shape (k', d + 2), in 1/256 grid units.

        For each centre: offsets, count and squared lengths; see the class for their weights.
        """
        limits = np.array(self.bounds, dtype=np.int64)
        raw = raw_rows.total(partial(clipped_sums, limits=limits, centres=centres, radii=radii))
        raw[:, -2] *= _count_weight(radii)
        scales = [self.scale(int(radius)) for radius in radii]
        errors = np.stack([noise.gaussian(scale, raw.shape[1]) for scale in scales])
        return np.asarray(raw * FINE_UNITS + errors)

    def _noisy_step(
        self, raw_rows: RawRows, centres: IntArray, radii: IntArray, *, noise: NoiseSource
    ) -> "_Step":
        noisy = self.noisy_sums(raw_rows, centres, radii, noise=noise) / FINE_UNITS
        count_weights = _count_weight(radii)
        scales = [self.scale(int(radius)) for radius in radii]
        deviations = np.array(scales) / FINE_UNITS
        noisy_counts = noisy[:, -2] / count_weights
        counts = np.maximum(noisy_counts, 1.0)
        squares = noisy[:, -1] * 4 * radii / counts
        return _Step(
            offsets=noisy[:, :-2] / counts[:, np.newaxis],
            variance=(deviations / counts) ** 2,
            spreads=np.clip(squares, (radii / 20) ** 2, radii.astype(np.float64) ** 2),
            useful=noisy_counts > COUNT_DEVIATIONS * deviations / count_weights,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Step:
    """What one step says of each centre: where to move, how surely, and how wide its cluster is."""

    offsets: FloatArray
    variance: FloatArray
    spreads: FloatArray
    useful: npt.NDArray[np.bool_]


def _count_weight(radii: IntArray) -> IntArray:
    return 3 * radii // 8
