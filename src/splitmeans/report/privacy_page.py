"""The privacy part of the report: what was spent, on what, and who can see what."""

from splitmeans import templates
from splitmeans.report import words
from splitmeans.report.data import PrivacyInfo


def privacy_page(privacy: PrivacyInfo) -> str:
    """Return the privacy statement as HTML; its wording is that of the statement itself."""
    return templates.render("privacy.html.jinja", privacy=privacy, words=words)
