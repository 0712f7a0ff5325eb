"""How privacy facts look in a notebook."""

from typing import TYPE_CHECKING

from splitmeans.privacy.accountant import cost_text
from splitmeans.templates import render

if TYPE_CHECKING:
    from splitmeans.plan.facts import PrivacyFacts


def privacy_html(facts: "PrivacyFacts") -> str:
    """Return the privacy statement, with the same content as its text."""
    total = f"total {facts.total_words} (budget {facts.budget.words})"
    largest = facts.towards_party
    party = "no guarantee" if largest is None else f"{cost_text(largest[1])}: {largest[0]}"
    releases = [(one.party, one.what, cost_text(one.cost)) for one in facts.releases]
    seen = [
        (observer.who, observer.sees, bound.case, bound.text)
        for observer in facts.observers
        for bound in observer.bounds
    ]
    tables = [
        ("what was released", ("party", "release", "cost alone, towards the server"), releases),
        ("who can learn what", ("who", "sees", "about", "guarantee"), seen),
    ]
    return render(
        "notebook.html.jinja",
        strong=[f"Privacy of study {facts.study}"],
        lines=[total, f"to a party {party}"],
        notes=facts.caveats,
        tables=[
            {"caption": caption, "head": head, "rows": rows, "align": "left", "left_out": ""}
            for caption, head, rows in tables
        ],
        assumptions=facts.assumptions,
    )
