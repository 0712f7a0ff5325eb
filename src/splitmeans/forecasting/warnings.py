"""What a study must expect before anything is spent: noise as large as what it should show."""

import math

from splitmeans.forecasting.cell_error import cell_error, cells_of_group
from splitmeans.intervals.sizes import WIDTH_95
from splitmeans.plan.enough_users import learning_warnings
from splitmeans.plan.plan import Plan
from splitmeans.study import EVERYONE
from splitmeans.synopsis.decode import LEAST_DEVIATIONS

# Noise "nears" a quantity when its 95 % interval is half of it.
_NEAR = 0.5


def plan_warnings(plan: Plan, *, users: int) -> tuple[str, ...]:
    """Return warnings about the result of a run with this many users, the most serious first."""
    return (*_about_noise(plan, users=users), *learning_warnings(plan.stages, users=users))


def count_deviation(plan: Plan) -> float:
    """Return the standard deviation of one count of a presence table, in users."""
    assert plan.presence is not None
    return math.sqrt(float(plan.presence.variance) + plan.presence.server_sigma**2) / (
        plan.sample_rate
    )


def _about_noise(plan: Plan, *, users: int) -> tuple[str, ...]:
    if plan.study.counts_only:
        return _about_counts(plan, users=users)
    if plan.presence is not None:
        return _about_presence(plan, users=users)
    error, study = cell_error(plan, users=users), plan.study
    average = users / study.n_clusters
    total_noise = WIDTH_95 * error * math.sqrt(cells_of_group(plan))
    size_noise = total_noise / math.sqrt(study.n_clusters)
    if total_noise >= users:
        return (
            f"the noise on the number of all users is plus or minus {total_noise:,.0f}, more "
            f"than the {users:,} users: a run may count nobody, and what it finds is noise. "
            f"{_FIX}",
        )
    if size_noise >= _NEAR * average:
        nears = "exceeds" if size_noise >= average else "nears"
        return (
            f"the noise on a segment's size, plus or minus {size_noise:,.0f}, {nears} the "
            f"{average:,.0f} users of an average segment: sizes say little, and segments of "
            f"average size or less may be noise. {_FIX}",
        )
    return ()


def _about_counts(plan: Plan, *, users: int) -> tuple[str, ...]:
    """Say what to expect of a study of counts alone."""
    half = WIDTH_95 * count_deviation(plan)
    if half < _NEAR * users:
        return ()
    return (
        f"each count has a noise of plus or minus {half:,.0f}, beside {users:,} users of a party: "
        "whether parties share any will not show. More users or a larger epsilon help.",
    )


def _about_presence(plan: Plan, *, users: int) -> tuple[str, ...]:
    """Say what to expect where three or more parties share only some of their users."""
    deviation = count_deviation(plan)
    n_parties, width = len(plan.study.parties), max(plan.n_local_clusters)
    assumed = (
        f"k' = {width} is for {plan.study.assumed_users:,} users at all parties; how many there "
        "are nobody knows before the run, and with far fewer a smaller n_local_clusters is better"
    )
    if plan.study.population == EVERYONE:
        return (
            f"segments are of everyone at one or more of the {n_parties} parties, and what a user "
            "is like at a party where it is not is filled in from users like it: sizes are off "
            f"where absence depends on what is not seen. {assumed}",
        )
    least = LEAST_DEVIATIONS * deviation
    few = (
        f"segments are of the users at all {n_parties} parties, whose number is counted with a "
        f"noise of plus or minus {WIDTH_95 * deviation:,.0f}; below {least:,.0f} of them no "
        "segments are published, and the budget is spent"
    )
    if users < least:
        few = f"all {users:,} users of a party would be too few, were they at all parties: {few}"
    return (f"{few}. {assumed}",)


_FIX = "More users, fewer segments, fewer local clusters or a larger epsilon help."
