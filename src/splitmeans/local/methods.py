"""All local algorithms, by the name that studies call them; dispatch reads these records.

Laws only: nothing here sees rows. What an algorithm does with them is listed in `mechanisms.py`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from splitmeans import _validate
from splitmeans.errors import ParameterError
from splitmeans.local.law import LocalLaw, LocalMethod
from splitmeans.local.laws.dplloyd import METHOD as DPLLOYD
from splitmeans.local.laws.dplsf import METHOD as DPLSF
from splitmeans.local.laws.guided_lloyd import METHOD as GUIDED_LLOYD
from splitmeans.local.laws.plain import METHOD as PLAIN

METHODS: Mapping[str, LocalMethod] = {
    method.facts.name: method for method in (GUIDED_LLOYD, DPLSF, DPLLOYD, PLAIN)
}


def local_law(
    method: str,
    *,
    n_clusters: int,
    bounds: Iterable[int],
    levels: tuple[int, ...] = (),
    epsilon: float | None = None,
    mu: float | None = None,
) -> LocalLaw:
    """Return the law of the local algorithm of this name.

    One of `epsilon` and `mu` is given, but for algorithms without privacy, which have no use for
    either.

    Args:
        method: A name of `METHODS`.
        n_clusters: Number of local centres, k'.
        bounds: Largest grid integer of each feature, shape (d,).
        levels: Number of levels of each column, 0 for numbers, for algorithms that know of them;
            empty if every feature is a column of numbers that every row has.
        epsilon: Cost of one release in the published form.
        mu: Cost of one release under tight accounting: sqrt of the sum of (sensitivity / scale)^2
            over its Gaussian parts.
    """
    _validate.one_of(tuple(METHODS), method=method)
    record = METHODS[method]
    facts: dict[str, Any] = {
        "n_clusters": n_clusters,
        "bounds": tuple(int(bound) for bound in bounds),
    }
    if record.takes_codes:
        facts["levels"] = levels
    if not record.facts.is_private and record.published is not None:
        return record.published(**facts)
    if (epsilon is None) == (mu is None):
        raise ParameterError(f"one of epsilon and mu must be given, got {epsilon!r} and {mu!r}")
    if mu is not None:
        if record.tight is None:
            raise ParameterError(f'"{method}" has no form for tight accounting')
        return record.tight(**facts, mu=mu)
    if record.published is None:
        raise ParameterError(f'"{method}" has no published form: use tight accounting')
    return record.published(**facts, epsilon=epsilon)
