"""Epsilon in words, and as what it does to somebody's guess about one person."""

import math

from splitmeans.evidence.pages import Section
from splitmeans.plan.statement import PrivacyReport

_PRIORS = (0.01, 0.1, 0.5, 0.9)


def best_guess(prior: float, epsilon: float) -> float:
    """Return the highest probability that a guess can reach, by Bayes' rule, leaving out delta.

    The odds grow by at most e^epsilon.
    """
    odds = math.exp(-epsilon) * (1 - prior) / prior
    return 1 / (1 + odds)


def least_guess(prior: float, epsilon: float) -> float:
    """Return the lowest probability that a guess can fall to, in the same way."""
    return 1 - best_guess(1 - prior, epsilon)


def meaning(report: PrivacyReport) -> Section:
    """Return what the figure of a run means for one person."""
    if not report.proved:
        return Section(
            heading="What the figures mean",
            text=("The methods of this study have no proved bound, so there is no figure.",),
        )
    epsilon, delta = report.epsilon, report.delta
    found_out = "that people with high savings buy little"
    if report.plan.study.counts_only:
        found_out = "how many people two organisations share"
    return Section(
        heading="What the figures mean",
        text=(
            f"{_what(report)} epsilon {epsilon:.4g} and delta {delta:g}, computed for all messages "
            "of all organisations together. Take any one person, with everything that all "
            "organisations have about that person. Compare what happened with what would have "
            "happened had the person not been in the data at all. Whatever anybody concludes from "
            f"the messages or the result was at most {_factor(epsilon)} times as likely in one "
            f"case as in the other, but for a remainder of {_chance(delta)}.",
            "So whoever had a guess whether a certain person is in the data can improve it by this "
            "much at most, however much that somebody knows about everybody else (leaving out "
            "the remainder):",
        ),
        head=("Before", "At most afterwards", "At least afterwards"),
        rows=tuple(
            (
                f"{100 * prior:g} %",
                f"{_ceiling(100 * best_guess(prior, epsilon)):.1f} %",
                f"{_floor(100 * least_guess(prior, epsilon)):.1f} %",
            )
            for prior in _PRIORS
        ),
        notes=(
            "These are the worst cases, for the person who is easiest to recognise.",
            f"The figure protects single people, not facts about groups: {found_out} is what the "
            "study is to find out.",
            "Other runs on the same people add to it; the ledger of each organisation keeps the "
            "sums.",
        ),
    )


def _what(report: PrivacyReport) -> str:
    runs = report.plan.study.n_runs
    return "The run has" if runs == 1 else f"All {runs} runs of the series together have"


def _factor(epsilon: float) -> str:
    return f"{_ceiling(math.exp(epsilon), places=2):,.2f}" if epsilon < 20 else f"e^{epsilon:.4g}"


def _chance(delta: float) -> str:
    return f"{delta:g} (one in {math.floor(round(1 / delta, 6)):,})" if delta > 0 else "0"


def _ceiling(number: float, *, places: int = 1) -> float:
    # Rounded first, so that 73.10000000000001 does not become 73.2.
    return math.ceil(round(number * 10.0**places, 6)) / 10.0**places


def _floor(number: float, *, places: int = 1) -> float:
    return math.floor(round(number * 10.0**places, 6)) / 10.0**places
