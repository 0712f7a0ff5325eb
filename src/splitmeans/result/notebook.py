"""How a result looks in a notebook: its segments, and what it cost."""

from typing import TYPE_CHECKING

from splitmeans.privacy.accountant import Cost, cost_text
from splitmeans.synopsis.notebook import centres_table
from splitmeans.templates import render

if TYPE_CHECKING:
    from splitmeans.result.result import Result


def result_html(result: "Result") -> str:
    """Return a result: its segments, and what it cost."""
    saved = result.privacy["total"]
    total = None if saved is None else Cost(epsilon=saved["epsilon"], delta=saved["delta"])
    about = f"run {result.facts['run']}; the run cost {cost_text(total)}; sizes are noisy estimates"
    item = result.published
    centres = centres_table(
        item.letters, sizes=item.sizes, centres=item.centres, names=result.synopsis.feature_names
    )
    titles = (result.privacy.get("warning"), f"Result of study {result.study.name}")
    return render(
        "notebook.html.jinja",
        strong=[text for text in titles if text],
        lines=[about, result.origin],
        notes=[] if result.remark is None else [result.remark],
        tables=[centres],
        assumptions=[],
    )
