"""Files of lookalikes and audiences, written as labels are (`label_file.py`): nothing is sent."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from splitmeans._types import FloatArray
from splitmeans.csv_cells import also_restored, safe_table
from splitmeans.errors import DataError
from splitmeans.kernels.row_numbers import as_text
from splitmeans.party.label_file import csv_ids, party_parts, replacing
from splitmeans.party.label_frame import settled_party
from splitmeans.party.labels import segment_probabilities
from splitmeans.party.similar import Audience, audience, check_threshold, chosen_segments, lifts
from splitmeans.result.result import Result, Segmentation
from splitmeans.study import PartySpec
from splitmeans.table.ids.canonical import canonical_text
from splitmeans.table.options import Progress


def write_similar(
    result: Result,
    data: str | Path,
    output: Path,
    *,
    party: str,
    seed: Path,
    segments: Segmentation,
    progress: Progress,
    query: str | None = None,
    allow_clipping: bool = False,
    most: int | None = None,
) -> tuple[int, int]:
    """Write the party's users that are not in the seed, the likest first; return users and seeds.

    Columns: the id as the table has it, "lift" (`similar.py`), "segment" (the likeliest of the
    result's) and its "probability". One number for each segment of each user is held in memory.

    `seed` is a csv or Parquet file with ids: its column of the table's name, or its only one. At
    most `most` users are written; the rest is as for `write_labels`.
    """
    spec = settled_party(result, party)
    wanted = pa.array(
        canonical_text(_seed_ids(spec, seed), rules=result.study.id_rules), pa.large_string()
    )
    is_csv = output.suffix.lower() == ".csv"
    ids, scores, labels, likely, seeds = [], [], [], [], []
    parts = party_parts(result, spec, data, query=query, allow_clipping=allow_clipping)
    with replacing(output) as draft:
        for table, own_ids, total in parts:
            shares = segment_probabilities(table, result.synopsis, centres=segments.clustering)
            scores.append(shares)
            named = segment_probabilities(
                table, result.synopsis, centres=result.published.clustering
            )
            labels.append(named.argmax(axis=1))
            likely.append(named.max(axis=1))
            ids.append(csv_ids(own_ids, canonical=table.ids) if is_csv else own_ids)
            found = pc.is_in(as_text(table.ids).cast(pa.large_string()), value_set=wanted)
            seeds.append(np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool))
            progress("similar", rows=len(table), of=total)
        is_seed = np.concatenate(seeds)
        lift = lifts(np.concatenate(scores), is_seed)
        others = np.flatnonzero(~is_seed)
        order = others[np.argsort(-lift[others], kind="stable")][:most]
        letters = np.array(result.published.letters, dtype=object)
        _write(
            draft,
            {
                spec.id_column: pa.chunked_array(ids).take(pa.array(order)),
                "lift": lift[order],
                "segment": letters[np.concatenate(labels)[order]],
                "probability": np.concatenate(likely)[order],
            },
            is_csv=is_csv,
        )
    return len(order), int(is_seed.sum())


def write_audience(
    result: Result,
    data: str | Path,
    output: Path,
    *,
    party: str,
    wanted: list[str],
    at_least: float,
    segments: Segmentation,
    progress: Progress,
    query: str | None = None,
    allow_clipping: bool = False,
) -> Audience:
    """Write the party's users who are in some segments with a probability of `at_least` or more.

    Columns: the id as the table has it, "probability" (of being in one of the segments), "segment"
    (the likeliest of all) and "name" where segments have names. Arguments are those of
    `write_similar`; `wanted` are letters or names.
    """
    check_threshold(at_least)
    result.check_segments()
    spec, chosen = settled_party(result, party), chosen_segments(result, segments, wanted)
    is_csv = output.suffix.lower() == ".csv"
    ids, probability, likeliest = [], [], []
    rows, of_all = 0, 0.0
    parts = party_parts(result, spec, data, query=query, allow_clipping=allow_clipping)
    with replacing(output) as draft:
        for table, own_ids, total in parts:
            shares = segment_probabilities(table, result.synopsis, centres=segments.clustering)
            kept, own = audience(shares, chosen, at_least=at_least)
            stored = csv_ids(own_ids, canonical=table.ids) if is_csv else own_ids
            ids.append(stored.filter(pa.array(kept)))
            probability.append(own[kept])
            likeliest.append(shares[kept].argmax(axis=1))
            rows, of_all = rows + len(table), of_all + float(own.sum())
            progress("audience", rows=len(table), of=total)
        found, best = np.concatenate(probability), np.concatenate(likeliest)
        columns = {
            spec.id_column: pa.chunked_array(ids),
            "probability": found,
            "segment": np.array(segments.letters, dtype=object)[best],
        }
        if result.names_for(segments):
            columns["name"] = np.array(result.called(segments), dtype=object)[best]
        _write(draft, columns, is_csv=is_csv)
    return Audience(users=len(found), right=float(found.sum()), of_all=of_all, rows=rows)


def _write(draft: Path, columns: dict[str, pa.ChunkedArray | FloatArray], *, is_csv: bool) -> None:
    arrays = [
        values if isinstance(values, pa.ChunkedArray) else pa.array(values)
        for values in columns.values()
    ]
    table = pa.table(arrays, names=list(columns))
    if is_csv:
        pyarrow.csv.write_csv(safe_table(table), draft)
    else:
        pq.write_table(table, draft)


def _seed_ids(spec: PartySpec, path: Path) -> pa.ChunkedArray:
    """Return the ids of a seed file: the column of the table's name, or the only one."""
    try:
        if path.suffix.lower() == ".csv":
            # As text: 007 stays 007.
            names = pyarrow.csv.open_csv(path).schema.names
            options = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
            table = also_restored(pyarrow.csv.read_csv(path, convert_options=options))
        elif path.suffix.lower() == ".parquet":
            table = pq.read_table(path)
        else:
            raise DataError(f"{path}: the seed must be a file of ids that ends in .csv or .parquet")
    except (OSError, pa.ArrowException) as problem:
        raise DataError(f"{path}: the seed cannot be read ({problem})") from problem
    if spec.id_column in table.column_names:
        return table.column(spec.id_column)
    if table.num_columns == 1:
        return table.column(0)
    raise DataError(
        f"{path}: the seed must have a column {spec.id_column!r} of ids, or one column, got "
        f"{', '.join(table.column_names)}"
    )
