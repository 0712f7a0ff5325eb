"""How results, statements and fitted models look in a notebook: small, self-contained HTML.

Names of studies, parties and columns come from files that others wrote, so every text is escaped
here and nowhere else. No script, no style sheet, and no colour of its own: borders are translucent
and text is the notebook's, so that it reads on a light and on a dark page.
"""

import html
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.figures import number, percent, users
from splitmeans.grid.clustering import about_found
from splitmeans.grid.segments import letter
from splitmeans.privacy.accountant import Cost, cost_text

if TYPE_CHECKING:
    from splitmeans.grid.clustering import Clustering
    from splitmeans.grid.synopsis import Synopsis
    from splitmeans.privacy.statement import PrivacyReport
    from splitmeans.result import Result, Segmentation

# A notebook shows an overview; the report and the files have all of it.
_MOST_COLUMNS, _MOST_SEGMENTS = 40, 15

_LINE = "1px solid rgba(128,128,128,0.4)"
_CELL = f"padding:0.2em 0.7em;border-bottom:{_LINE};vertical-align:top;"
_TEXT, _NUMBER = _CELL + "text-align:left", _CELL + "text-align:right"


def result_html(result: "Result") -> str:
    """Return a result: its segments, and what it cost."""
    saved = result.privacy["total"]
    total = None if saved is None else Cost(epsilon=saved["epsilon"], delta=saved["delta"])
    about = f"run {result.facts['run']}; the run cost {cost_text(total)}; sizes are noisy estimates"
    remark = [] if result.remark is None else [_line(f"NOTE: {result.remark}", strong=True)]
    return _box(
        _line(f"Result of study {result.study.name}", strong=True),
        _line(about),
        _line(result.origin),
        *remark,
        segments_html(result.published, result.synopsis.feature_names),
    )


def segments_html(item: "Segmentation", names: Sequence[str]) -> str:
    """Return segments as a table: a row for each column of the data."""
    return _centres(item.letters, sizes=item.sizes, centres=item.centres, names=names)


def privacy_html(report: "PrivacyReport") -> str:
    """Return the privacy statement, with the same content as its text."""
    study = report.plan.study
    doubtful = not report.proved and math.isfinite(report.epsilon)
    proved = "; NOT A PROVED BOUND" if doubtful else ""
    budget = f"epsilon {study.budget.epsilon:g}, delta {study.budget.delta:g}"
    releases = [
        (release.party, release.what, cost_text(report.cost(release)))
        for release in report.releases
    ]
    views = [
        (view.who, view.sees, what, cost_text(cost))
        for view in report.views
        for what, cost in view.bounds
    ]
    return _box(
        _line(f"Privacy of study {study.name}", strong=True),
        _line(f"total {cost_text(report.total)}{proved} ({study.accounting} accounting, {budget})"),
        *(_line(f"NOTE: {caveat}", strong=True) for caveat in report.caveats),
        _table("what was released", ("party", "release", "cost alone"), releases),
        _table("who can learn what", ("who", "sees", "about", "guarantee"), views),
        _line("holds if"),
        _list(report.assumptions),
    )


def model_html(
    text: str,
    *,
    found: "tuple[Synopsis, Clustering] | None" = None,
    privacy: "PrivacyReport | None" = None,
) -> str:
    """Return an estimator: its parameters as text, and what it found if it was fitted."""
    parts = [_line(text, strong=True)]
    if found is None or privacy is None:
        return _box(*parts, _line("not fitted"))
    synopsis, clustering = found
    about = (
        f"fitted on {len(synopsis.party_names)} parties, about {users(synopsis.total)} users "
        f"(noisy); {cost_text(privacy.total)}"
    )
    asked = privacy.plan.study.n_clusters
    remark = about_found(len(clustering.sizes), asked=asked)
    if remark is not None:
        parts.append(_line(f"NOTE: {remark}", strong=True))
    table = _centres(
        [letter(rank) for rank in range(len(clustering.sizes))],
        sizes=clustering.sizes,
        centres=clustering.centres,
        names=synopsis.feature_names,
    )
    return _box(*parts, _line(about), table)


def bundle(text: str, page: str) -> Mapping[str, str]:
    """Return both forms as notebooks ask for them."""
    return {"text/plain": text, "text/html": page}


def _centres(
    segments: Sequence[str], *, sizes: FloatArray, centres: FloatArray, names: Sequence[str]
) -> str:
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
    page = _table(
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
    return page + (_line(f"and {', '.join(left)}") if left else "")


def _box(*parts: str) -> str:
    return f'<div style="overflow-x:auto;max-width:100%">{"".join(parts)}</div>'


def _line(text: str, *, strong: bool = False) -> str:
    weight = "bold" if strong else "normal"
    return f'<p style="margin:0.3em 0;font-weight:{weight}">{_escape(text)}</p>'


def _list(texts: Sequence[str]) -> str:
    items = "".join(f"<li>{_escape(text)}</li>" for text in texts)
    return f'<ul style="margin:0.3em 0">{items}</ul>'


def _table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = False
) -> str:
    """Return a table whose first column names the rows; the others are right-aligned numbers."""
    style = _NUMBER if numbers else _TEXT
    top = "".join(
        f'<th scope="col" style="{style if at else _TEXT}">{_escape(text)}</th>'
        for at, text in enumerate(head)
    )
    body = "".join(
        f'<tr><th scope="row" style="{_TEXT};font-weight:normal">{_escape(row[0])}</th>'
        + "".join(f'<td style="{style}">{_escape(text)}</td>' for text in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<table style="border-collapse:collapse;margin:0.5em 0">'
        f'<caption style="text-align:left;caption-side:top">{_escape(caption)}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    )


def _escape(text: Any) -> str:
    return html.escape(str(text), quote=True)
