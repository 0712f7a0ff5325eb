"""Segments as a pandas data frame: a row for each."""

from typing import TYPE_CHECKING, Any

import numpy as np

from splitmeans.errors import ParameterError

if TYPE_CHECKING:
    from splitmeans.result.result import Result


def segment_frame(result: "Result", k: int | None = None) -> Any:
    """Return the segments for k as a data frame; see `Result.to_pandas`."""
    try:
        import pandas as pd
    except ImportError as problem:
        raise ParameterError(
            "to_pandas needs pandas: pip install 'splitmeans[pandas]'"
        ) from problem

    item = result.segments(k)
    intervals = result.size_intervals(k) if result.synopsis.total > 0 else None
    unknown = np.full(item.k, np.nan)
    total = result.synopsis.total
    head = {
        "segment": list(item.letters),
        "name": [result.names_for(item).get(letter) for letter in item.letters],
        "users": item.sizes,
        "share": item.sizes / total if total > 0 else unknown,
        "users_low": unknown if intervals is None else intervals.low,
        "users_high": unknown if intervals is None else intervals.high,
    }
    centres = pd.DataFrame(item.centres, columns=list(result.synopsis.feature_names))
    return pd.concat([pd.DataFrame(head), centres], axis=1)
