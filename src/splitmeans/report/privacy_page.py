"""The privacy part of the report: what was spent, on what, and who can see what."""

from splitmeans import templates
from splitmeans.plan.facts import PrivacyFacts


def privacy_page(privacy: PrivacyFacts, statement: str) -> str:
    """Return the privacy facts as HTML, with the statement as text."""
    return templates.render("privacy.html.jinja", privacy=privacy, statement=statement)
