"""What a party learns of its columns before it clusters them, under audit with half its noise."""

import functools
from collections.abc import Callable, Mapping

from splitmeans.audit import column_views
from splitmeans.audit.case import Part
from splitmeans.audit.claims import GaussianClaim
from splitmeans.audit.noise_twins import with_half_noise
from splitmeans.plan.bounds_stage import BoundsLaw, PrivateColumn

_MU = 0.5


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


COLUMN_PARTS: Mapping[str, Callable[[], Part]] = {"bounds": _bounds}
