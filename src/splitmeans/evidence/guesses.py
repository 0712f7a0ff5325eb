"""What epsilon and delta mean for one person, for each observer by name."""

import math

from splitmeans.evidence.pages import Section
from splitmeans.plan.statement import PrivacyReport
from splitmeans.plan.statement_words import meanings


def meaning(report: PrivacyReport) -> Section:
    """Return what the figures of a run mean for one person."""
    epsilon, delta = report.epsilon, report.delta
    found_out = "that people with high savings buy little"
    if report.plan.study.counts_only:
        found_out = "how many people two organisations share"
    return Section(
        heading="What the figures mean",
        text=(
            f"{_what(report)} epsilon {epsilon:.4g} and delta {delta:g}, computed for all messages "
            "of all organisations together, towards the server and readers of the result. Other "
            "observers have other figures.",
            "Take any one person, and two cases that differ as in the second column: what "
            "happened, and what would have happened otherwise. An observer may know everything "
            "about everybody else. Any conclusion from what is seen is at most the stated "
            f"number of times as likely in one case as in the other, plus {_chance(delta)}. The "
            "last column is for an observer to whom both cases are equally likely beforehand: how "
            "often the best guess between them is right, on average over the noise. Without "
            "looking it is 50 %.",
        ),
        head=("Who", "The two cases", "Times as likely, at most", "Guesses right, at most"),
        rows=tuple((one.who, one.what, one.factor, one.guess) for one in meanings(report)),
        notes=(
            "These are the worst cases, for the person who is easiest to recognise.",
            "Guesses are an average: after some outcomes an observer is surer than that, after "
            "others less.",
            f"The figures protect single people, not facts about groups: {found_out} is what the "
            "study is to find out.",
            "Other runs on the same people add to them; the ledger of each organisation keeps the "
            "sums.",
        ),
    )


def _what(report: PrivacyReport) -> str:
    runs = report.plan.study.n_runs
    return "The run has" if runs == 1 else f"All {runs} runs of the series together have"


def _chance(delta: float) -> str:
    return f"{delta:g} (one in {math.floor(round(1 / delta, 6)):,})" if delta > 0 else "0"
