"""Tables of other libraries, recognised by what they offer: none of these is ever imported.

A table that offers an Arrow stream (`__arrow_c_stream__`: polars, DuckDB, readers) is read as one.
Only pandas is taken column by column: it converts whole tables, and fails on a column of mixed
values even if the study does not have it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from splitmeans.errors import DataError
from splitmeans.table.columns import is_text, without_views


def is_pandas(data: Any) -> bool:
    """Whether it is a data frame whose columns are taken one by one, by place."""
    return hasattr(data, "iloc") and hasattr(data, "columns")


def is_polars(data: Any) -> bool:
    """Whether it is a polars data frame, to which columns can be added."""
    return hasattr(data, "hstack") and hasattr(data, "__arrow_c_stream__")


def listed_names(data: Any) -> list[str] | None:
    """Return the names of a table's columns, None for a plain array."""
    names: Iterable[Any] | None
    if isinstance(data, Mapping):
        names = data
    elif isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        names = data.schema.names
    else:
        names = getattr(data, "columns", None)  # pandas and polars
    return None if names is None else [str(name) for name in names]


def named_columns(data: Any, *, where: str) -> list[tuple[str, Any]] | None:
    """Return names and columns of a table, or None for a plain array."""
    if isinstance(data, Mapping):
        return [(str(name), values) for name, values in data.items()]
    if is_pandas(data):
        # By column: a whole-table conversion fails on columns outside the study.
        return [(str(name), data.iloc[:, place]) for place, name in enumerate(data.columns)]
    if (stream := as_stream(data, where=where)) is not None:
        data = stream.read_all()
    if isinstance(data, pa.Table | pa.RecordBatch):
        return list(zip(data.schema.names, data.columns, strict=True))
    return None


def as_stream(data: Any, *, where: str) -> pa.RecordBatchReader | None:
    """Return a reader of a table that offers a stream; None for Arrow tables, pandas and arrays."""
    if isinstance(data, pa.Table | pa.RecordBatch) or is_pandas(data):
        return None
    if not hasattr(data, "__arrow_c_stream__"):
        return None
    try:
        reader = pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, TypeError, ValueError):
        raise DataError(f"{where}: the data must be a table, got one column of it") from None
    schema = pa.schema([field.with_type(without_views(field.type)) for field in reader.schema])
    return reader if schema == reader.schema else reader.cast(schema)


def text_names(data: Any) -> set[str]:
    """Return the names of columns that hold text or a list of categories, by their types alone."""
    if isinstance(data, pa.RecordBatchReader):
        return {field.name for field in data.schema if _is_texts(field.type)}
    named = named_columns(data, where="the table") or []
    return {name for name, values in named if _is_texts(_type_of(values))}


def _type_of(values: Any) -> pa.DataType:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values.type
    try:
        # An object column of pandas says nothing by itself.
        return pa.array(values, from_pandas=True).type
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.null()  # mixed: the checks of values say what is wrong


def _is_texts(kind: pa.DataType) -> bool:
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)
