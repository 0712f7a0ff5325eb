"""What a study must expect before anything is spent: noise as large as what it should show."""

import math

from splitmeans.forecasting.cell_error import cell_error, cells_of_group
from splitmeans.intervals.sizes import WIDTH_95, one_table
from splitmeans.membership.methods import method_of
from splitmeans.plan.plan import Plan
from splitmeans.synopsis.joint import NOISE_DEVIATIONS

# Noise "nears" a quantity when its 95 % interval is half of it.
_NEAR = 0.5


def plan_warnings(plan: Plan, *, users: int) -> tuple[str, ...]:
    """Return warnings about the result of a run with this many users, the most serious first."""
    found = []
    error, study = cell_error(plan, users=users), plan.study
    if error is not None:
        cells, average = cells_of_group(plan), users / study.n_clusters
        total_noise = WIDTH_95 * error * math.sqrt(cells)
        size_noise = total_noise / math.sqrt(study.n_clusters)
        if total_noise >= users:
            found.append(
                f"the noise on the number of all users is plus or minus {total_noise:,.0f}, more "
                f"than the {users:,} users: a run may count nobody, and what it finds is noise. "
                f"{_FIX}"
            )
        elif size_noise >= _NEAR * average:
            nears = "exceeds" if size_noise >= average else "nears"
            found.append(
                f"the noise on a segment's size, plus or minus {size_noise:,.0f}, {nears} the "
                f"{average:,.0f} users of an average segment: sizes say little, and segments of "
                f"average size or less may be noise. {_FIX}"
            )
    if error is not None and method_of(study).deviation is not None and one_table(plan):
        found.append(_about_one_table(plan, error, users=users))
    return tuple(found)


def _about_one_table(plan: Plan, error: float, *, users: int) -> str:
    """Say what to expect where the cells of three or more parties are counted in one table."""
    cells = cells_of_group(plan)
    least = NOISE_DEVIATIONS * error
    text = (
        f"the cells of all {len(plan.n_local_clusters)} parties are counted in one table of "
        f"{cells:,}, {users / cells:,.1f} users in each on average, with a noise of "
        f"{error:,.1f}: cells of less than {least:,.0f} users are cut, and what is left is scaled "
        "to the sums before the cut"
    )
    if users < least * cells:
        text += "; where users are spread over many cells the segments lose detail"
    if plan.study.user_sets == "partial":
        text += (
            ". Segments are of the users at all parties alone, and nobody knows their number "
            "before the run: for a guess of M run `splitmeans plan` with --users M"
        )
    return text


_FIX = "More users, fewer segments, fewer local clusters or a larger epsilon help."
