"""One cell: a method on a data set with all settings and one seed; the unit of work and of reuse.

Cells are values. Settings that a method does not look at are set to one standard value, so that
figures share whatever they can: a central method has the same cell for any number of parties.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.data import Recipe
from splitmeans._version import __version__

CENTRAL = ("central", "central-dplsf", "central-diffprivlib", "silhouette")
_NON_PRIVATE = ("central", "vertical-plain", "exact", "silhouette")
_SKETCHES = ("sketch", "sketch-paper", "sketch-paper-basic", "plain-sketch-paper")
# The paper gives its baselines as many local clusters as there are segments.
_EQUAL_CLUSTERS = ("vertical-plain", "independent", "ldp", "exact", "dplsf-exact-weights")
# The paper's M.
REPETITIONS = 4096


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What is run once.

    Attributes:
        method: A name from `measure.METHODS`.
        data: Name of the data set.
        epsilon: Total privacy loss; None for methods without privacy.
        n_parties: S.
        seed: Decides drawn data, random splits and noise.
        n_clusters: k.
        n_local_clusters: k'; None leaves it to the method's rule.
        repetitions: M of the sketches; None for other methods.
        party_sizes: Columns of each party; None splits as the paper does.
        users: Rows of mixed Gaussian data.
        timed: Whether the server's work is timed on its own.
    """

    method: str
    data: str = "mixed-gaussian"
    epsilon: float | None = 1.0
    n_parties: int = 2
    seed: int = 0
    n_clusters: int = 5
    n_local_clusters: int | None = None
    repetitions: int | None = None
    party_sizes: tuple[int, ...] | None = None
    users: int | None = None
    timed: bool = False

    def standard(self) -> "Cell":
        """Return the cell with settings that the method does not look at set to one value."""
        changes: dict[str, Any] = {}
        if self.method in _NON_PRIVATE:
            changes["epsilon"] = None
        if self.method in CENTRAL:
            changes |= {"n_parties": 2, "party_sizes": None, "n_local_clusters": None}
        elif self.method in _EQUAL_CLUSTERS and self.n_local_clusters is None:
            changes["n_local_clusters"] = self.n_clusters
        if self.party_sizes is not None and len(set(self.party_sizes)) == 1:
            changes["party_sizes"] = None
        changes["repetitions"] = (
            (self.repetitions or REPETITIONS) if self.method in _SKETCHES else None
        )
        if self.data == "mixed-gaussian":
            changes["users"] = self.users or Recipe().n
        else:
            changes["users"] = None
        return dataclasses.replace(self, **changes)

    def key(self, data_digests: Mapping[str, str]) -> str:
        """Return the hash of the cell, the version and, for real data, the file's content."""
        described = {
            "cell": dataclasses.asdict(self),
            "splitmeans": __version__,
            "data": data_digests.get(self.data, ""),
        }
        text = json.dumps(described, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]
