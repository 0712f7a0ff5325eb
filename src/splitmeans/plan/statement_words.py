"""What the figures of a statement mean for each observer, and what they rest on."""

import math
from typing import TYPE_CHECKING, NamedTuple

from splitmeans.plan.views import coalition_events, party_events
from splitmeans.privacy.accountant import Cost
from splitmeans.privacy.calibrate import Views
from splitmeans.privacy.pld import delta_for

if TYPE_CHECKING:
    from splitmeans.plan.statement import PrivacyReport

DRAWN_NOISE = "noise comes from the operating system's secure source"
KEYED_NOISE = (
    "the parties' noise comes from the operating system's secure source; the server's own follows "
    "from its private key, which stays with the server, by ChaCha20 and HMAC-SHA256"
)

SIMULATED_CHANNEL = (
    "parties exchange key contributions over a channel the server can neither read nor change"
)
SEALED_CHANNEL = (
    "each party's key file and home stay with the party until the run has ended, when the run's "
    "own keys are erased, and the parties compared the study's digits"
)
ASSUMPTIONS = (
    "no party shows the run key or another party's message to the server",
    "a run key is used once, and a message that was sent is resent as it is, never recomputed",
    "without the secret keys, outputs of SipHash and HKDF cannot be told from random ones, as "
    "cryptography assumes",
    "column bounds, categories and expected_users were not chosen by looking at the data",
)
LEARNED_BOUNDS = (
    "expected_users, categories, and column bounds but for those that the run learns, were not "
    "chosen by looking at the data"
)

NO_BOUND = "no bound"

# e^epsilon is written out up to this epsilon.
_MOST_WRITTEN = 20.0


class Meaning(NamedTuple):
    """What a bound means for some observers; figures are rounded up, to what is true.

    Attributes:
        who: The observers.
        what: How the two cases differ that they try to tell apart.
        factor: How many times as likely a conclusion is in one case as in the other, at most, plus
            delta.
        guess: In per cent, how often the best guess at even odds which case it is is right, at
            most.
    """

    who: str
    what: str
    factor: str
    guess: str


def meanings(report: "PrivacyReport") -> tuple[Meaning, ...]:
    """Return what the bounds of a run mean, for every observer."""
    plan, budget = report.plan, report.plan.study.budget
    towards_party = report.towards_party
    about, party = ("", None) if towards_party is None else towards_party
    about_values, coalition = report.views[-1].bounds[0]
    return (
        _meaning(
            "the server, also one that breaks the rules, and readers of the result",
            "a user added or removed",
            report.total,
            (plan.lifetime_events,),
            interval=report.interval,
        ),
        _meaning(
            "another party, or several that share what they know, if the server follows the rules",
            about,
            party,
            party_events(plan),
            interval=report.step(budget.party_epsilon),
        ),
        _meaning(
            "parties and the server together, or a party if the server breaks the rules",
            about_values,
            coalition,
            coalition_events(plan),
            interval=report.step(budget.coalition_epsilon),
        ),
    )


def in_words(report: "PrivacyReport") -> tuple[str, ...]:
    """Return the same as lines of a statement."""
    lines = ["  in words, for a user in two cases that differ as in brackets"]
    for one in meanings(report):
        if one.factor == NO_BOUND:
            lines.append(f"    {one.who}: {NO_BOUND}")
            continue
        lines.append(
            f"    {one.who} ({one.what}): any conclusion is at most {one.factor} times as likely "
            f"in one case as in the other, plus {report.delta:g}; the best guess between the two "
            f"at even odds is right in at most {one.guess} of cases, on average over the noise"
        )
    return tuple(lines)


def best_guess(cost: Cost, views: Views, *, interval: float) -> float:
    """Return the largest share of guesses at even odds between both cases that can be right.

    It is half of one plus the total variation of the two laws, which is delta at epsilon 0 of the
    exact losses; and by any (epsilon, delta) at most (e^epsilon + delta) / (e^epsilon + 1).
    """
    odds = math.exp(-cost.epsilon)
    bound = (1 + odds * cost.delta) / (1 + odds)
    if views:
        distance = max(delta_for(view, 0.0, interval=interval) for view in views)
        bound = min(bound, (1 + distance) / 2)
    return min(1.0, bound)


def likelier(epsilon: float) -> str:
    """Return e^epsilon, rounded up."""
    if epsilon > _MOST_WRITTEN:
        return f"e^{math.ceil(1000 * epsilon) / 1000:g}"
    return f"{math.ceil(100 * math.exp(epsilon)) / 100:,.2f}"


def _meaning(who: str, what: str, cost: Cost | None, views: Views, *, interval: float) -> Meaning:
    if cost is None or math.isinf(cost.epsilon):
        return Meaning(who=who, what=what, factor=NO_BOUND, guess=NO_BOUND)
    share = best_guess(cost, views, interval=interval)
    return Meaning(
        who=who,
        what=what,
        factor=likelier(cost.epsilon),
        guess=f"{math.ceil(1000 * share) / 10:.1f} %",
    )
