"""What a party learns of its columns before it clusters them, under audit with half its noise.

And a threshold that is too low, which shows a category that one user alone has.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from audits import column_views
from audits.case import Part, Twin
from audits.claims import BudgetClaim, GaussianClaim
from audits.noise_twins import with_half_noise
from splitmeans.local.law import COUNT_UNITS
from splitmeans.plan.bounds_stage import BoundsLaw, PrivateColumn
from splitmeans.plan.categories_stage import CategoriesLaw, OpenColumn
from splitmeans.privacy.pld import epsilon_for

_MU = 0.5
# Of categories: noise of one user, and one in a hundred that a single user has is shown.
_CATEGORIES_MU, _SHOWN = 1.0, 0.01
_OPEN = (OpenColumn(place=0, name="audit", listed=()),)


@dataclass(frozen=True, kw_only=True)
class LowThreshold(CategoriesLaw):
    """Broken: a threshold of one user and one deviation, whatever may be shown."""

    @property
    def threshold(self) -> float:
        """What a category of one user passes with one chance in six."""
        return 1 + self.scale / COUNT_UNITS


def _bounds() -> Part:
    column = PrivateColumn(place=0, low=None, high=None)
    law = BoundsLaw(columns=(column, column), mu=_MU)
    sample = functools.partial(column_views.bounds_counts, law)
    return Part(
        name="bounds",
        what="counts of all rounds from which bounds of two columns are learned",
        claim=GaussianClaim(mu=_MU),
        sample=sample,
        halved=with_half_noise(sample),
        trials=4_000,
        long_trials=100_000,
    )


def _categories() -> Part:
    law = CategoriesLaw(columns=_OPEN, mu=_CATEGORIES_MU, shown=_SHOWN)
    sample = functools.partial(column_views.released_category, law)
    return Part(
        name="categories",
        what="whether a category with as many users as the threshold is learned",
        claim=GaussianClaim(mu=_CATEGORIES_MU),
        sample=sample,
        halved=with_half_noise(sample),
        trials=8_000,
        long_trials=100_000,
    )


def _low_threshold() -> Twin:
    law = LowThreshold(columns=_OPEN, mu=_CATEGORIES_MU, shown=_SHOWN)
    delta = 2 * _SHOWN
    return Twin(
        name="low-threshold",
        what="categories of one user alone, learned with a threshold that is too low",
        claim=BudgetClaim(epsilon=epsilon_for((law.event,), delta), delta=delta),
        sample=functools.partial(column_views.category_of_one, law),
        trials=4_000,
        long_trials=20_000,
        event_at=1.0,
    )


COLUMN_PARTS: Mapping[str, Callable[[], Part]] = {"bounds": _bounds, "categories": _categories}
COLUMN_TWINS: Mapping[str, Callable[[], Twin]] = {"low-threshold": _low_threshold}
