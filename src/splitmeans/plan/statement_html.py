"""How a privacy statement looks in a notebook."""

from typing import TYPE_CHECKING

from splitmeans.privacy.accountant import cost_text
from splitmeans.templates import render

if TYPE_CHECKING:
    from splitmeans.plan.statement import PrivacyReport


def privacy_html(report: "PrivacyReport") -> str:
    """Return the privacy statement, with the same content as its text."""
    study = report.plan.study
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
    tables = [
        ("what was released", ("party", "release", "cost alone"), releases),
        ("who can learn what", ("who", "sees", "about", "guarantee"), views),
    ]
    total = cost_text(report.total)
    return render(
        "notebook.html.jinja",
        strong=[f"Privacy of study {study.name}"],
        lines=[f"total {total} (budget {budget})"],
        notes=report.caveats,
        tables=[
            {"caption": caption, "head": head, "rows": rows, "align": "left", "left_out": ""}
            for caption, head, rows in tables
        ],
        assumptions=report.assumptions,
    )
