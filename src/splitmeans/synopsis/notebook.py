"""How segments and fitted models look in a notebook."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.figures import number, percent, users
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.study import Study
from splitmeans.synopsis.clustering import Clustering, about_found
from splitmeans.synopsis.segments import letter
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.templates import render

# A notebook shows an overview; the report and the files have all of it.
_MOST_COLUMNS, _MOST_SEGMENTS = 40, 15


def model_html(
    text: str,
    *,
    found: tuple[Synopsis, Clustering] | None = None,
    privacy: PrivacyFacts | None = None,
    study: Study | None = None,
) -> str:
    """Return an estimator: its parameters as text, and what it found if it was fitted."""
    lines, notes, tables = ["not fitted"], [], []
    if found is not None and privacy is not None and study is not None:
        synopsis, clustering = found
        lines = [
            f"fitted on {len(synopsis.party_names)} parties, about {users(synopsis.total)} users "
            f"(noisy); {privacy.total_words}"
        ]
        notes = [about_found(len(clustering.sizes), study)]
        centres = centres_table(
            [letter(rank) for rank in range(len(clustering.sizes))],
            sizes=clustering.sizes,
            centres=clustering.centres,
            names=synopsis.feature_names,
        )
        tables = [centres]
    return render(
        "notebook.html.jinja",
        strong=[text],
        lines=lines,
        notes=[note for note in notes if note],
        tables=tables,
        assumptions=[],
    )


def centres_table(
    segments: Sequence[str], *, sizes: FloatArray, centres: FloatArray, names: Sequence[str]
) -> dict[str, Any]:
    """Return segments as a table for a notebook: a row for each column of the data."""
    shown, listed = segments[:_MOST_SEGMENTS], names[:_MOST_COLUMNS]
    total = float(np.sum(sizes))
    rows = [
        ("users", *(users(size) for size in sizes[: len(shown)])),
        ("share", *(percent(size / total, 1) if total else "" for size in sizes[: len(shown)])),
    ]
    rows += [
        (name, *(number(value) for value in centres[: len(shown), at]))
        for at, name in enumerate(listed)
    ]
    left = []
    if len(names) > len(listed):
        left.append(f"{len(names) - len(listed)} more columns")
    if len(segments) > len(shown):
        left.append(f"{len(segments) - len(shown)} more segments")
    return {
        "caption": "segments and their centres, in the columns' own units",
        "head": ("segment", *shown),
        "rows": rows,
        "align": "right",
        "left_out": ", ".join(left),
    }
