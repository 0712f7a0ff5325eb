"""How a privacy statement looks in a notebook."""

from typing import TYPE_CHECKING

from splitmeans._html import box, bullets, line, table
from splitmeans.privacy.accountant import cost_text

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
    return box(
        *(() if report.warning is None else (line(report.warning, strong=True),)),
        line(f"Privacy of study {study.name}", strong=True),
        line(f"total {cost_text(report.total)} ({study.accounting} accounting, {budget})"),
        *(line(f"NOTE: {caveat}", strong=True) for caveat in report.caveats),
        table("what was released", ("party", "release", "cost alone"), releases),
        table("who can learn what", ("who", "sees", "about", "guarantee"), views),
        line("holds if"),
        bullets(report.assumptions),
    )
