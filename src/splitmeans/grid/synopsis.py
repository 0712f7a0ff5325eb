"""The synopsis: a weighted grid of pseudo-points that stands for all users (paper, section 3.4).

Its nodes are all combinations of the parties' local centres, its weights the estimated number of
users near each. It is made from released messages only, so clustering it for any k, saving it or
publishing it costs no privacy.
"""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.features import GRID_UNITS, Feature, features_of, to_own_units
from splitmeans.grid.weighted_kmeans import weighted_kmeans
from splitmeans.study import PartySpec

_METADATA_KEY = b"splitmeans synopsis"
_FORMAT = 1
_CHUNK_ROWS = 65_536


@dataclass(frozen=True, kw_only=True, eq=False)
class Clustering:
    """Centres found on a synopsis.

    Attributes:
        centres: Centres in the columns' own units, party order, shape (k, D).
        scaled_centres: The same in distance units, shape (k, D).
        sizes: Estimated users of each cluster, shape (k,).
        loss: Mean squared distance to the nearest centre over the weighted nodes, in distance
            units. It leaves out how far users are from their nodes, so it is below the true loss.
    """

    centres: FloatArray
    scaled_centres: FloatArray
    sizes: FloatArray
    loss: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Synopsis:
    """Weighted pseudo-points over the columns of all parties.

    Attributes:
        scaled_nodes: Pseudo-points in distance units, shape (cells, D).
        weights: Estimated users at each, zero or more, shape (cells,).
        party_names: Names of the parties, in column order.
        features: The features of each party; D in all.
    """

    scaled_nodes: FloatArray
    weights: FloatArray
    party_names: tuple[str, ...]
    features: tuple[tuple[Feature, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "party_names", tuple(self.party_names))
        object.__setattr__(self, "features", tuple(tuple(group) for group in self.features))
        if len(self.party_names) != len(self.features):
            raise ParameterError(
                "party_names and features must have one entry per party, "
                f"got {len(self.party_names)} and {len(self.features)}"
            )
        expected = (self.weights.size, len(self._all_features))
        if self.weights.ndim != 1 or self.scaled_nodes.shape != expected or 0 in expected:
            raise ParameterError(
                f"scaled_nodes must have the shape (cells, columns) = {expected}, none of them 0, "
                f"got {self.scaled_nodes.shape}"
            )
        if not (np.isfinite(self.scaled_nodes).all() and np.isfinite(self.weights).all()):
            raise ParameterError("scaled_nodes and weights must be finite")
        if self.weights.min() < 0:
            raise ParameterError(f"weights must be >= 0, got {self.weights.min()!r}")

    @property
    def _all_features(self) -> tuple[Feature, ...]:
        return tuple(feature for group in self.features for feature in group)

    @property
    def nodes(self) -> FloatArray:
        """Pseudo-points in the columns' own units, shape (cells, D)."""
        return to_own_units(self._all_features, self.scaled_nodes)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the D columns, as "party: column"."""
        return tuple(
            f"{party}: {feature.name}"
            for party, group in zip(self.party_names, self.features, strict=True)
            for feature in group
        )

    @property
    def total(self) -> float:
        """Estimated number of users."""
        return float(self.weights.sum())

    def cluster(
        self, k: int, *, random_state: int | np.random.Generator | None = None
    ) -> Clustering:
        """Find k centres on the weighted nodes; any k and any number of calls cost no privacy.

        Args:
            k: How many clusters; with fewer nodes than that, centres repeat.
            random_state: Seeds the starting centres.
        """
        _validate.at_least(1, k=k)
        rng = np.random.default_rng(random_state)
        scaled_centres = weighted_kmeans(self.scaled_nodes, self.weights, n_clusters=k, rng=rng)
        sizes, cost = _assign(self.scaled_nodes, self.weights, scaled_centres)
        return Clustering(
            centres=to_own_units(self._all_features, scaled_centres),
            scaled_centres=scaled_centres,
            sizes=sizes,
            loss=cost / self.total if self.total > 0 else 0.0,
        )

    def to_parquet(self, path: str | Path) -> None:
        """Write the synopsis: weight, then each column in own units, then each in distance units.

        Readers of the file want the first set; `from_parquet` restores from the second, which is
        exact. Party names and features are in the schema's metadata, as JSON.
        """
        own_units = self.nodes
        names = ["weight", *self.feature_names]
        names += [f"{name} (scaled)" for name in self.feature_names]
        columns = [self.weights, *own_units.T, *self.scaled_nodes.T]
        header = {
            "format": _FORMAT,
            "party_names": self.party_names,
            "features": [[dataclasses.asdict(item) for item in group] for group in self.features],
        }
        schema = pa.schema(
            [pa.field(name, pa.float64(), nullable=False) for name in names],
            metadata={_METADATA_KEY: json.dumps(header, allow_nan=False).encode()},
        )
        arrays = [pa.array(np.ascontiguousarray(column)) for column in columns]
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path)

    @classmethod
    def from_parquet(cls, path: str | Path) -> "Synopsis":
        """Read a file that `to_parquet` wrote; errors name the file."""
        try:
            # By position, not by name: two parties may have names that make columns clash.
            table = pq.ParquetFile(path).read()
            header = json.loads((table.schema.metadata or {})[_METADATA_KEY])
            if header["format"] != _FORMAT:
                raise ParameterError(f"format must be {_FORMAT}, got {header['format']!r}")
            features = tuple(
                tuple(Feature(**item) for item in group) for group in header["features"]
            )
            n_columns = sum(len(group) for group in features)
            return cls(
                scaled_nodes=_matrix(table, start=1 + n_columns, stop=1 + 2 * n_columns),
                weights=_matrix(table, start=0, stop=1)[:, 0],
                party_names=tuple(header["party_names"]),
                features=features,
            )
        except OSError as problem:
            raise ParameterError(f"{path}: cannot be read ({problem})") from problem
        except (pa.ArrowException, KeyError, TypeError, IndexError, ValueError) as problem:
            raise ParameterError(f"{path}: not a splitmeans synopsis ({problem})") from problem


def build_synopsis(
    weights: FloatArray, centres: Sequence[IntArray], parties: Sequence[PartySpec]
) -> Synopsis:
    """Combine local centres to the grid of all their combinations; no cell is dropped.

    Args:
        weights: Weight of each cell, shape (k'_1, ..., k'_S).
        centres: Local centres of each party in grid integers, each of shape (k'_l, d_l).
        parties: The public facts of each party.
    """
    features = tuple(features_of(party) for party in parties)
    if not weights.ndim == len(centres) == len(features):
        raise ParameterError(
            "weights, centres and parties must agree on the number of parties, "
            f"got {weights.ndim}, {len(centres)} and {len(features)}"
        )
    for party, group, local, width in zip(parties, features, centres, weights.shape, strict=True):
        if local.shape != (width, len(group)):
            raise ParameterError(
                f"centres of party {party.name!r} must have the shape {(width, len(group))}, "
                f"got {local.shape}"
            )
    cells = np.indices(weights.shape).reshape(weights.ndim, -1)  # in the order of ravel
    scaled = [local[cell] / GRID_UNITS for local, cell in zip(centres, cells, strict=True)]
    return Synopsis(
        scaled_nodes=np.concatenate(scaled, axis=1),
        weights=weights.ravel().astype(np.float64),
        party_names=tuple(party.name for party in parties),
        features=features,
    )


def _assign(
    points: FloatArray, weights: FloatArray, centres: FloatArray
) -> tuple[FloatArray, float]:
    """Return the weight nearest to each centre, shape (k,), and the weighted squared distance."""
    sizes = np.zeros(len(centres))
    cost = 0.0
    for start in range(0, len(points), _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        distances = np.stack(
            [np.square(points[rows] - centre).sum(axis=1) for centre in centres], axis=1
        )
        nearest = distances.argmin(axis=1)
        sizes += np.bincount(nearest, weights=weights[rows], minlength=len(centres))
        cost += float(weights[rows] @ distances.min(axis=1))
    return sizes, cost


def _matrix(table: Any, *, start: int, stop: int) -> FloatArray:
    """Return columns of an Arrow table as one array, shape (rows, stop - start)."""
    columns = [table.column(position).to_numpy() for position in range(start, stop)]
    return np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.float64)
