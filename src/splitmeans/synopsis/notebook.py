"""How segments and fitted models look in a notebook."""

from collections.abc import Sequence

import numpy as np

from splitmeans._html import box, line, table
from splitmeans._types import FloatArray
from splitmeans.figures import number, percent, users
from splitmeans.plan.statement import PrivacyReport
from splitmeans.privacy.accountant import cost_text
from splitmeans.synopsis.clustering import Clustering, about_found
from splitmeans.synopsis.segments import letter
from splitmeans.synopsis.synopsis import Synopsis

# A notebook shows an overview; the report and the files have all of it.
_MOST_COLUMNS, _MOST_SEGMENTS = 40, 15


def model_html(
    text: str,
    *,
    found: tuple[Synopsis, Clustering] | None = None,
    privacy: PrivacyReport | None = None,
) -> str:
    """Return an estimator: its parameters as text, and what it found if it was fitted."""
    parts = [line(text, strong=True)]
    if found is None or privacy is None:
        return box(*parts, line("not fitted"))
    if privacy.warning is not None:
        parts.insert(0, line(privacy.warning, strong=True))
    synopsis, clustering = found
    about = (
        f"fitted on {len(synopsis.party_names)} parties, about {users(synopsis.total)} users "
        f"(noisy); {cost_text(privacy.total)}"
    )
    remark = about_found(len(clustering.sizes), privacy.plan.study)
    if remark is not None:
        parts.append(line(f"NOTE: {remark}", strong=True))
    centres = centres_html(
        [letter(rank) for rank in range(len(clustering.sizes))],
        sizes=clustering.sizes,
        centres=clustering.centres,
        names=synopsis.feature_names,
    )
    return box(*parts, line(about), centres)


def centres_html(
    segments: Sequence[str], *, sizes: FloatArray, centres: FloatArray, names: Sequence[str]
) -> str:
    """Return segments as a table: a row for each column of the data."""
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
    page = table(
        "segments and their centres, in the columns' own units",
        ("segment", *shown),
        rows,
        numbers=True,
    )
    left = []
    if len(names) > len(listed):
        left.append(f"{len(names) - len(listed)} more columns")
    if len(segments) > len(shown):
        left.append(f"{len(segments) - len(shown)} more segments")
    return page + (line(f"and {', '.join(left)}") if left else "")
