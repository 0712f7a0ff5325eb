"""How a result looks in a notebook: its segments, and what it cost."""

from typing import TYPE_CHECKING

from splitmeans.synopsis.notebook import centres_table
from splitmeans.templates import render

if TYPE_CHECKING:
    from splitmeans.result.result import Result


def result_html(result: "Result") -> str:
    """Return a result: its segments, and what it cost."""
    cost = result.privacy.total_words
    about = f"run {result.facts['run']}; the run cost {cost}; sizes are noisy estimates"
    item = result.published
    centres = centres_table(
        item.letters, sizes=item.sizes, centres=item.centres, names=result.synopsis.feature_names
    )
    return render(
        "notebook.html.jinja",
        strong=[f"Result of study {result.study.name}"],
        lines=[about, result.origin],
        notes=[] if result.remark is None else [result.remark],
        tables=[centres],
        assumptions=[],
    )
