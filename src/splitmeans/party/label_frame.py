"""A party's own data frame with the segments of its rows beside them (phase 5; see `labels`).

The rows stay where they are: the frame comes back with more columns, its index and ids as before.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitmeans._types import FloatArray
from splitmeans.errors import DataError
from splitmeans.party.labels import segment_probabilities
from splitmeans.plan.settle import make_plan
from splitmeans.result.result import Result, Segmentation
from splitmeans.study import PartySpec
from splitmeans.study.coding import coding_of
from splitmeans.table.checks.facts import BoundFacts, clipping_problems
from splitmeans.table.checks.problems import refuse
from splitmeans.table.checks.rows import check_rows
from splitmeans.table.frames import as_stream, is_pandas, is_polars, listed_names
from splitmeans.table.prepare import PartyTable


def label_frame(
    result: Result,
    data: Any,
    *,
    segments: Segmentation,
    party: str | None = None,
    allow_clipping: bool = False,
) -> Any:
    """Return the table with each row's likeliest segment and the probability of every segment.

    Guarantee: reads the party's own rows and published values; releases nothing. The labels are a
    function of the rows and as sensitive as they are.

    The party is found by the names of the columns if not given. `allow_clipping` takes a table also
    if more than half of a column's values lie outside the study's bounds.

    Raises:
        DataError: If the data breaks a rule of the study; values are never shown.
    """
    _, data, shares = frame_probabilities(
        result, data, segments=segments, party=party, allow_clipping=allow_clipping
    )
    return beside(data, label_columns(result, segments, shares))


def frame_probabilities(
    result: Result,
    data: Any,
    *,
    segments: Segmentation,
    party: str | None,
    allow_clipping: bool,
) -> tuple[PartySpec, Any, FloatArray]:
    """Return whose table it is, the table, and every row's probability of each segment."""
    result.check_segments()
    if not is_polars(data) and (stream := as_stream(data, where="the table")) is not None:
        data = stream.read_all()
    spec = settled_party(result, _party_of(result, data, party))
    # Ids are not looked at: the labels are beside them.
    no_ids = pa.array([], pa.large_string())
    checked = check_rows(spec, data, ids=no_ids)
    refuse(checked.problems, party=spec.name)
    if not allow_clipping:
        public = with_public_bounds(result, spec.name, checked.facts.bounds)
        refuse(clipping_problems(public), party=spec.name)
    table = PartyTable(party=spec.name, ids=no_ids, raw_rows=checked.rows, coding=coding_of(spec))
    return spec, data, segment_probabilities(table, result.synopsis, centres=segments.clustering)


def settled_party(result: Result, party: str) -> PartySpec:
    """Return a party with the bounds and categories that the run learned."""
    return make_plan(result.study, released=result.released).party(party)


def with_public_bounds(
    result: Result, party: str, bounds: Iterable[BoundFacts]
) -> list[BoundFacts]:
    """Return how columns fit their bounds, but for those that the run learned.

    Learned bounds may be off by bad luck; no unit of the table is to blame for that.
    """
    said = {column.name for column in result.study.party(party).columns if column.is_settled}
    return [own for own in bounds if own.column in said]


def label_columns(result: Result, segments: Segmentation, shares: Any) -> dict[str, Any]:
    """Return the columns that labels have, in a frame and in a file, as arrays.

    "segment" (its letter), "name" where people named segments, "probability" (of that segment),
    and "segment A", "segment B" and so on.
    """
    likeliest = shares.argmax(axis=1)
    columns: dict[str, Any] = {"segment": np.array(segments.letters, dtype=object)[likeliest]}
    if result.names_for(segments):
        columns["name"] = np.array(result.called(segments), dtype=object)[likeliest]
    columns["probability"] = shares[np.arange(len(likeliest)), likeliest]
    for letter, share in zip(segments.letters, shares.T, strict=True):
        columns[f"segment {letter}"] = np.ascontiguousarray(share)
    return columns


def _party_of(result: Result, data: Any, party: str | None) -> str:
    if party is not None:
        return result.study.party(party).name
    names = set(listed_names(data) or ())
    fitting = [
        spec for spec in result.study.parties if names >= {column.name for column in spec.columns}
    ]
    if len(fitting) == 1:
        return fitting[0].name
    listed = ", ".join(repr(name) for name in result.study.party_names)
    why = "no party's columns are all in it" if not fitting else "it fits more than one"
    raise DataError(f"party must be given: whose table is this? ({why}); the parties are {listed}")


def beside(data: Any, columns: dict[str, Any]) -> Any:
    """Return the table with further columns, of the kind that it is."""
    taken = [name for name in columns if name in (listed_names(data) or ())]
    if taken:
        raise DataError(f"the table must not have a column {taken[0]!r} yet; rename or drop it")
    if is_pandas(data):
        return data.assign(**columns)
    if is_polars(data):
        return data.hstack(type(data)(columns))
    arrays = {name: pa.array(values) for name, values in columns.items()}
    if isinstance(data, pa.Table):
        for name, values in arrays.items():
            data = data.append_column(name, values)
        return data
    return pa.table(arrays)


def chosen_rows(data: Any, kept: npt.NDArray[np.bool_]) -> Any:
    """Return some rows of a table, of the kind that it is; of an array the places of those rows."""
    if is_pandas(data):
        return data.loc[kept]
    if is_polars(data):
        return data[np.flatnonzero(kept)]
    if isinstance(data, pa.Table):
        return data.filter(pa.array(kept))
    return pa.table({"row": np.flatnonzero(kept)})
