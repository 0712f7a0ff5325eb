"""How a budget is divided among the releases of a run; a function of public quantities only."""

from dataclasses import dataclass

from splitmeans.study import Budget

# The paper, section 3.4: the user count takes 2 % of epsilon where it is needed.
COUNT_SHARE = 0.02


@dataclass(frozen=True, kw_only=True)
class Shares:
    """What each release may cost. Per party: local and membership; once per run: count."""

    count_epsilon: float
    local_epsilon: float
    membership_epsilon: float
    membership_delta: float


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
