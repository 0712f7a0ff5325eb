"""How a result looks in a notebook: its segments, and what it cost."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from splitmeans._html import box, line
from splitmeans.privacy.accountant import Cost, cost_text
from splitmeans.synopsis.notebook import centres_html

if TYPE_CHECKING:
    from splitmeans.result.result import Result, Segmentation


def result_html(result: "Result") -> str:
    """Return a result: its segments, and what it cost."""
    saved = result.privacy["total"]
    total = None if saved is None else Cost(epsilon=saved["epsilon"], delta=saved["delta"])
    about = f"run {result.facts['run']}; the run cost {cost_text(total)}; sizes are noisy estimates"
    remark = [] if result.remark is None else [line(f"NOTE: {result.remark}", strong=True)]
    warning = result.privacy.get("warning")
    return box(
        *(() if warning is None else (line(warning, strong=True),)),
        line(f"Result of study {result.study.name}", strong=True),
        line(about),
        line(result.origin),
        *remark,
        segments_html(result.published, result.synopsis.feature_names),
    )


def segments_html(item: "Segmentation", names: Sequence[str]) -> str:
    """Return segments as a table: a row for each column of the data."""
    return centres_html(item.letters, sizes=item.sizes, centres=item.centres, names=names)
