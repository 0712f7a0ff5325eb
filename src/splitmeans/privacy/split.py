"""How a budget is divided among the releases of a run; a function of public quantities only.

Two ways. `paper_split` divides epsilon and delta as the paper's Algorithm 1 does and adds costs up.
`tight_split` divides squared Gaussian precision: a Gaussian release with noise multiplier s has
precision mu = 1/s, precisions compose as a sum of squares, and other releases are built so that
their privacy loss has about the mean of a Gaussian one of the same mu. What the releases cost
together is then calculated exactly (`privacy.pld`) and one factor scales all of them
(`privacy.calibrate`), so the division decides accuracy, never privacy.
"""

import math
from dataclasses import dataclass

from splitmeans.study import Budget, Study

# The paper, section 3.4: the user count takes 2 % of epsilon where it is needed.
COUNT_SHARE = 0.02

_TIGHT_COUNT_SHARE = 0.02


@dataclass(frozen=True, kw_only=True)
class Shares:
    """What each release may cost. Per party: local and membership; once per run: count."""

    count_epsilon: float
    local_epsilon: float
    membership_epsilon: float
    membership_delta: float


@dataclass(frozen=True, kw_only=True)
class Precisions:
    """How precise each release is, as mu. Per party: local; per group: membership; once: count.

    `server` is that of the noise which the server adds to memberships before it publishes; None
    takes the same as for the memberships.
    """

    count: float
    local: float
    membership: float
    server: float | None = None


def paper_split(budget: Budget, *, n_parties: int, needs_count: bool) -> Shares:
    """Split as in the paper's Algorithm 1: half of each party's share to each of phases 1 and 2."""
    count_epsilon = COUNT_SHARE * budget.epsilon if needs_count else 0.0
    per_phase = (budget.epsilon - count_epsilon) / (2 * n_parties)
    return Shares(
        count_epsilon=count_epsilon,
        local_epsilon=per_phase,
        membership_epsilon=per_phase,
        membership_delta=budget.delta / n_parties,
    )


def tight_split(study: Study, *, n_groups: int, needs_count: bool, scale: float) -> Precisions:
    """Split the squared precision `scale`^2 among the releases of a run.

    `n_groups` is how many membership releases touch one user: one for a joint release of all
    parties, one per pair, or one per party.
    """
    count = _TIGHT_COUNT_SHARE if needs_count else 0.0
    share = study.membership_facts.share_of(len(study.parties))
    assert share is not None, "a study whose method has no tight accounting is refused"
    membership = share * (1 - count)
    local = 1 - count - membership
    return Precisions(
        count=scale * math.sqrt(count),
        local=scale * math.sqrt(local / len(study.parties)),
        membership=scale * math.sqrt(membership / n_groups),
    )
