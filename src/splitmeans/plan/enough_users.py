"""Whether a study has the users that learning bounds and categories takes, before it is spent.

The number of users is the study's public one, which a study that learns columns must say. Noise
does not depend on it, so with too few users what is learned would be noise, and nobody would see.
"""

import math
from collections.abc import Iterator, Sequence

from splitmeans.errors import ParameterError
from splitmeans.plan.bounds_stage import BoundsLaw, noise_share
from splitmeans.plan.categories_stage import CategoriesLaw, threshold_share, threshold_text
from splitmeans.plan.stages import Stage, StageLaw
from splitmeans.study import Study

# Of all users, the noise of bounds or the threshold of categories. Beyond the first share bounds
# begin to cost accuracy and usual categories are missed; beyond the second bounds are worse than
# careless public ones, and few columns have a category that passes.
WARN_SHARE, REFUSE_SHARE = 0.02, 0.10


def check_enough_users(study: Study, stages: Sequence[Stage]) -> None:
    """Refuse a study that would learn little but noise, before anything is spent.

    Raises:
        ParameterError: It says what to do about it.
    """
    users = study.assumed_users
    for party, law in _laws(stages):
        share = _share(law, users=users)
        if share <= REFUSE_SHARE:
            continue
        needed = math.ceil(users * share / REFUSE_SHARE)
        raise ParameterError(
            f"party {party!r}: {_why(law, share, users=users)} With this budget about {needed:,} "
            "users are enough: say another expected_users if there are as many"
        )


def learning_warnings(stages: Sequence[Stage], *, users: int) -> tuple[str, ...]:
    """Say where so many users are few for what the run learns."""
    return (
        *_warned(
            stages,
            BoundsLaw,
            "the bounds that the run learns will be rough: their noise, as a share of the "
            f"{users:,} users expected, is above {100 * WARN_SHARE:.0f} % at",
            "Public bounds (low and high) for columns whose range is known, or a larger epsilon, "
            "help.",
            users=users,
        ),
        *_warned(
            stages,
            CategoriesLaw,
            "the run will learn only categories that many users have: the threshold, as a share of "
            f"the {users:,} users expected, is above {100 * WARN_SHARE:.0f} % at",
            "Listed categories for columns where they are known, or a larger epsilon, help.",
            users=users,
        ),
    )


def _warned(
    stages: Sequence[Stage],
    kind: type[BoundsLaw | CategoriesLaw],
    what: str,
    fix: str,
    *,
    users: int,
) -> tuple[str, ...]:
    shares = {
        party: _share(law, users=users) for party, law in _laws(stages) if isinstance(law, kind)
    }
    few = {party: share for party, share in shares.items() if share > WARN_SHARE}
    if not few:
        return ()
    listed = ", ".join(f"{party!r} ({100 * share:.0f} %)" for party, share in few.items())
    return (f"{what} {listed}. {fix}",)


def _laws(stages: Sequence[Stage]) -> Iterator[tuple[str, StageLaw]]:
    for stage in stages:
        for party in stage.parties:
            yield party, stage.law_of(party)


def _share(law: StageLaw, *, users: int) -> float:
    if isinstance(law, BoundsLaw):
        return noise_share(law, users=users)
    if isinstance(law, CategoriesLaw):
        return threshold_share(law, users=users)
    return 0.0


def _why(law: StageLaw, share: float, *, users: int) -> str:
    if isinstance(law, CategoriesLaw):
        return (
            "categories = 'open' needs more users or a larger epsilon: a category is learned if "
            f"more than about {threshold_text(law)} users have it, {100 * share:.0f} % of "
            f"expected_users = {users:,}, and with more than {100 * REFUSE_SHARE:.0f} % little "
            "would be learned. List the categories, with '(other)' for all the rest, for some or "
            f"all of its {len(law.columns)} open columns."
        )
    assert isinstance(law, BoundsLaw)
    return (
        "bounds = 'private' needs more users or a larger epsilon: the noise would be "
        f"{100 * share:.0f} % of expected_users = {users:,}, and bounds learned with more than "
        f"{100 * REFUSE_SHARE:.0f} % are worse than rough public ones. Give low and high for some "
        f"or all of its {len(law.columns)} private columns."
    )
