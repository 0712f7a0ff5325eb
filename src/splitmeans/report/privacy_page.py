"""The privacy part of the page: what was spent, on what, and who can see what."""

import math
from decimal import Decimal

from splitmeans.report.data import PrivacyInfo, ReleaseInfo, ViewInfo
from splitmeans.report.words import cost, escape, heads, table


def privacy_page(privacy: PrivacyInfo) -> str:
    """Return the privacy statement as HTML; its wording is that of the statement itself."""
    releases = "".join(_release(release) for release in privacy.releases)
    views = "".join(_view(view) for view in privacy.views)
    assumptions = "".join(f"<li>{escape(text)}</li>" for text in privacy.assumptions)
    released = table(
        "releases, with what each would cost alone",
        head=heads("By", "What", "Would cost alone", "In the message"),
        body=releases,
        kind="releases",
    )
    seen = table(
        "onlookers, what they see, and what limits it",
        head=heads("Who", "Sees", "Bound"),
        body=views,
        kind="views",
    )
    return (
        f"{warning_box(privacy)}{_total(privacy)}{_caveats(privacy)}"
        f"<h3>What was released</h3>{released}"
        f"<p>{_adding_up(privacy)} Memberships of “all parties” are made by all parties under one "
        "key and have one cost together.</p>"
        f"<h3>Who can see what</h3>{seen}"
        f"<h3>This holds if</h3><ul>{assumptions}</ul>"
        "<p>This report is computed from the published result alone. Neither making it nor looking "
        "at other numbers of segments costs any privacy.</p>"
        "<details><summary>The statement as text</summary>"
        f'<pre tabindex="0">{escape(privacy.statement)}</pre></details>'
    )


def warning_box(privacy: PrivacyInfo) -> str:
    """Return the warning of a run whose total is no proved bound; nothing where it is."""
    if privacy.warning is None:
        return ""
    return f'<p class="warning"><strong>{escape(privacy.warning)}</strong></p>'


def _total(privacy: PrivacyInfo) -> str:
    if privacy.total is None:
        return ""
    budget = cost(privacy.budget, none="")
    figures = (
        '<dl class="figures">'
        f"<div><dt>epsilon, total</dt><dd>{privacy.total.epsilon:.4g}</dd></div>"
        f"<div><dt>delta, total</dt><dd>{privacy.total.delta:.3g}</dd></div></dl>"
        f"<p>Unit: {escape(privacy.unit)}. Budget: {budget}; {escape(privacy.accounting)} "
        "accounting.</p>"
    )
    if privacy.warning is not None or not privacy.secure_noise:
        return figures
    ratio = _factor(privacy.total.epsilon)
    return (
        f"{figures}<p>In words: take anything that the server could receive or publish in this "
        f"run. With a user in the data its probability is at most {ratio} times that without the "
        f"user, plus {_decimal(privacy.total.delta)}, and the other way round. This holds for the "
        "server and for readers of the result; other parties have figures of their own, below.</p>"
    )


def _factor(epsilon: float) -> str:
    """Return e^epsilon, rounded up."""
    if epsilon > 20:
        return f"e^{epsilon:.4g}"
    factor = math.exp(epsilon)
    return f"{math.ceil(factor):,}" if factor >= 1000 else f"{math.ceil(100 * factor) / 100:.2f}"


def _decimal(number: float) -> str:
    """Return a small number with three digits and without an exponent, if that is not too long."""
    digits = f"{number:.3g}"
    return digits if number < 1e-7 else f"{Decimal(digits):f}"


def _caveats(privacy: PrivacyInfo) -> str:
    return "".join(
        f'<p class="warning"><strong>Note.</strong> {escape(text)}</p>' for text in privacy.caveats
    )


def _adding_up(privacy: PrivacyInfo) -> str:
    if privacy.accounting == "tight":
        return (
            "These costs do not add up to the total: the total is computed from all releases "
            "together."
        )
    return "The total adds costs up as published."


def _release(release: ReleaseInfo) -> str:
    return (
        f'<tr><th scope="row">{escape(release.party)}</th><td>{escape(release.what)}</td>'
        f"<td>{cost(release.alone, none='no privacy')}</td><td>{escape(release.message)}</td></tr>"
    )


def _view(view: ViewInfo) -> str:
    bounds = "".join(
        f"<li>{escape(what)}: <strong>{cost(bound, none='no guarantee')}</strong></li>"
        for what, bound in view.bounds
    )
    return (
        f'<tr><th scope="row">{escape(view.who)}</th><td>{escape(view.sees)}</td>'
        f"<td><ul>{bounds}</ul></td></tr>"
    )
