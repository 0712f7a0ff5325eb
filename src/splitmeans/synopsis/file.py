"""A synopsis as a Parquet file: readable by any tool, restored exactly by ours."""

import dataclasses
import io
import json
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from splitmeans import _validate
from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.plan.grid_limits import MAX_CELLS
from splitmeans.study import Column
from splitmeans.study.features import Feature
from splitmeans.study.shown_names import SCALED
from splitmeans.synopsis.precision import Precision

if TYPE_CHECKING:
    from splitmeans.synopsis.synopsis import Synopsis

_METADATA_KEY = b"splitmeans synopsis"
_FORMAT = 2


def write_synopsis(synopsis: "Synopsis", place: str | Path | IO[bytes]) -> None:
    """Write weights, nodes in own units, nodes in distance units, and labels if there are any."""
    names = synopsis.feature_names
    columns: list[tuple[str, Any]] = [("weight", synopsis.weights)]
    columns += zip(names, synopsis.nodes.T, strict=True)
    columns += zip([f"{name}{SCALED}" for name in names], synopsis.scaled_nodes.T, strict=True)
    if synopsis.labels is not None:
        labelled = [f"{party} (local cluster)" for party in synopsis.party_names]
        columns += zip(labelled, synopsis.labels.T, strict=True)
    arrays = [_as_arrow(values) for _, values in columns]
    fields = [
        pa.field(name, array.type, nullable=False)
        for (name, _), array in zip(columns, arrays, strict=True)
    ]
    header = json.dumps(_header(synopsis), allow_nan=False).encode()
    schema = pa.schema(fields, metadata={_METADATA_KEY: header})
    import pyarrow.parquet as pq  # loaded where files are: a fit writes none

    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), place)


def is_file_of(path: str | Path, synopsis: "Synopsis") -> bool:
    """Whether a file has the names, header and values that `write_synopsis` writes.

    Values in own units, which are not read back, may differ in their last digits.
    """
    import pyarrow.parquet as pq

    again = io.BytesIO()
    write_synopsis(synopsis, again)
    found, expected = pq.read_table(path), pq.read_table(again)
    if not found.schema.equals(expected.schema, check_metadata=True) or len(found) != len(expected):
        return False
    pairs = zip(found.columns, expected.columns, strict=True)
    return all(_is_close(own.to_numpy(), other.to_numpy()) for own, other in pairs)


def _is_close(values: FloatArray, others: FloatArray) -> bool:
    return np.allclose(values, others, rtol=1e-9, atol=1e-9 * float(np.abs(others).max(initial=0)))


def _as_arrow(values: Any) -> pa.Array:
    """Return numbers as Arrow has them; `pa.array` would load pandas wherever there is one."""
    own = np.ascontiguousarray(values)
    buffers = [None, pa.py_buffer(own)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(own.dtype), len(own), buffers)


def _header(synopsis: "Synopsis") -> dict[str, Any]:
    """Everything but the arrays over nodes; what is not known is left out."""
    header: dict[str, Any] = {
        "format": _FORMAT,
        "party_names": synopsis.party_names,
        "features": [[dataclasses.asdict(item) for item in group] for group in synopsis.features],
        "labels": synopsis.labels is not None,
    }
    if synopsis.columns is not None:
        header["columns"] = [[_column(item) for item in group] for group in synopsis.columns]
    if synopsis.centres is not None:
        header["centres"] = [own.tolist() for own in synopsis.centres]
    if synopsis.stretch is not None:
        header["stretch"] = synopsis.stretch.tolist()
    if synopsis.weight_deviation is not None:
        header["weight_deviation"] = float(synopsis.weight_deviation)
    if synopsis.precision is not None:
        header["precision"] = dataclasses.asdict(synopsis.precision)
    return header


def _column(column: Column) -> dict[str, Any]:
    """A column as plain values; nothing of it is left to learn, so the rules for that are out."""
    fields = dataclasses.asdict(column)
    return {name: value for name, value in fields.items() if name not in ("bounds", "others")}


def read_synopsis(path: str | Path) -> dict[str, Any]:
    """Return the fields of a synopsis; a file of another kind raises one of many errors."""
    # By position, not by name: two parties may have names that make columns clash.
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    header = json.loads((file.schema_arrow.metadata or {})[_METADATA_KEY])
    if header["format"] != _FORMAT:
        raise ParameterError(f"format must be {_FORMAT}, got {_validate.shown(header['format'])}")
    features = tuple(tuple(Feature(**item) for item in group) for group in header["features"])
    n_columns = sum(len(group) for group in features)
    n_labels = len(features) if header.get("labels") else 0
    # Before anything is unpacked: a small file can stand for very many rows and columns.
    expected = 1 + 2 * n_columns + n_labels
    if file.metadata.num_columns != expected or file.metadata.num_rows > MAX_CELLS:
        raise ParameterError(
            f"the file must have {expected} columns and at most {MAX_CELLS} rows, "
            f"got {file.metadata.num_columns} and {file.metadata.num_rows}"
        )
    table = file.read()
    fields: dict[str, Any] = {
        "scaled_nodes": _matrix(table, start=1 + n_columns, stop=1 + 2 * n_columns),
        "weights": _matrix(table, start=0, stop=1)[:, 0],
        "party_names": tuple(header["party_names"]),
        "features": features,
        "weight_deviation": header.get("weight_deviation"),
    }
    if n_labels:
        start = 1 + 2 * n_columns
        labels = _matrix(table, start=start, stop=start + n_labels)
        if not np.all((labels >= 0) & (labels < 2**31)):
            raise ParameterError("labels must be whole numbers from 0")
        fields["labels"] = labels.astype(np.int32)
    if "columns" in header:
        groups = header["columns"]
        fields["columns"] = tuple(tuple(Column(**item) for item in group) for group in groups)
    if "stretch" in header:
        fields["stretch"] = np.array(header["stretch"], dtype=np.float64)
    if "precision" in header:
        fields["precision"] = Precision(**header["precision"])
    if "centres" in header:
        fields["centres"] = tuple(np.array(own, dtype=np.float64) for own in header["centres"])
    return fields


def _matrix(table: Any, *, start: int, stop: int) -> FloatArray:
    """Return columns of an Arrow table as one array, shape (rows, stop - start)."""
    columns = [table.column(position).to_numpy() for position in range(start, stop)]
    if not columns:
        return np.zeros((table.num_rows, 0))
    return np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.float64)
