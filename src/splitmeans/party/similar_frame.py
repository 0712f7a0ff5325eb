"""Lookalikes and audiences of a data frame that is in memory; see `similar.py`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitmeans.errors import DataError
from splitmeans.party.label_frame import beside, chosen_rows, frame_probabilities
from splitmeans.party.similar import Audience, audience, check_threshold, chosen_segments, lifts
from splitmeans.result.result import Result, Segmentation
from splitmeans.table.frames import named_columns
from splitmeans.table.ids.canonical import canonical_text


def similar_frame(
    result: Result,
    data: Any,
    *,
    seed: Any,
    segments: Segmentation,
    party: str | None = None,
    allow_clipping: bool = False,
) -> Any:
    """Return the table with a column "lift" for every row, and "seed", whether it is in the seed.

    Rows stay in their order. `seed` is a list of ids as the table has them, or a truth value for
    each row.
    """
    spec, data, shares = frame_probabilities(
        result, data, segments=segments, party=party, allow_clipping=allow_clipping
    )
    given = np.asarray(seed)
    if given.dtype == bool:
        if given.shape != (len(shares),):
            raise DataError(
                f"seed must have one truth value for each of {len(shares)} rows, got {given.shape}"
            )
        is_seed = given
    else:
        columns = dict(named_columns(data, where=f"party {spec.name!r}") or ())
        if spec.id_column not in columns:
            raise DataError(
                f"the table must have the id column {spec.id_column!r} to find the seed's ids; or "
                "give seed as a truth value for each row"
            )
        rules = result.study.id_rules
        own = canonical_text(columns[spec.id_column], rules=rules)
        wanted = canonical_text(given.tolist(), rules=rules)
        found = pc.is_in(own.cast(pa.large_string()), value_set=wanted.cast(pa.large_string()))
        is_seed = np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)
    return beside(data, {"lift": lifts(shares, is_seed), "seed": is_seed})


def audience_frame(
    result: Result,
    data: Any,
    *,
    wanted: Sequence[str],
    at_least: float,
    segments: Segmentation,
    party: str | None = None,
    allow_clipping: bool = False,
) -> tuple[Any, Audience]:
    """Return the rows that are in some segments with a probability of `at_least` or more.

    Added are "probability" (of being in one of the segments), "segment" (the likeliest of all) and
    "name" where segments have names; and what the list is worth. `wanted` are letters or names.
    """
    check_threshold(at_least)
    result.check_segments()
    chosen = chosen_segments(result, segments, wanted)
    _, data, shares = frame_probabilities(
        result, data, segments=segments, party=party, allow_clipping=allow_clipping
    )
    kept, own = audience(shares, chosen, at_least=at_least)
    best = shares[kept].argmax(axis=1)
    columns: dict[str, Any] = {
        "probability": own[kept],
        "segment": np.array(segments.letters, dtype=object)[best],
    }
    if result.names_for(segments):
        columns["name"] = np.array(result.called(segments), dtype=object)[best]
    worth = Audience(
        users=int(kept.sum()),
        right=float(own[kept].sum()),
        of_all=float(own.sum()),
        rows=len(shares),
    )
    return beside(chosen_rows(data, kept), columns), worth
