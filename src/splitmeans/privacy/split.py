"""How a budget is divided among the releases of a run; a function of public quantities only.

`split_precision` divides squared Gaussian precision: a Gaussian release with noise multiplier s has
precision mu = 1/s, precisions compose as a sum of squares, and other releases are built so that
their privacy loss has about the mean of a Gaussian one of the same mu. What the releases cost
together is then calculated exactly (`privacy.pld`) and one factor scales all of them
(`privacy.calibrate`), so the division decides accuracy, never privacy.
"""

import math
from dataclasses import dataclass, replace

from splitmeans.study import Study

# Share of mu^2 for the numbers of users of all parties together, where only k' follows from them.
# At epsilon 1 that is a deviation of some 60 users. k' follows about the square root of the number,
# so even a tenth of 1,000 users moves it by one in twenty; and all other noise grows by 0.25 %.
_SIZE_SHARE = 0.005

# Of the memberships' share, that of a presence table beside pair tables, by measurement
# (docs/concepts/budget.md).
PRESENCE_SHARE = 0.2

# Share of mu^2 for bounds that are learned, were all columns private: by measurement, a tenth at
# epsilon 1 and more, a fifth at a quarter and less, where bounds would otherwise be mostly noise.
_BOUNDS_SHARE, _MOST_BOUNDS_SHARE = 0.1, 0.2

# Share of mu^2 for categories that are learned, of all parties together, by measurement; and of
# delta, for a category of one user that the noise may show.
_CATEGORIES_SHARE = 0.05
_CATEGORIES_DELTA = 0.05


@dataclass(frozen=True, kw_only=True)
class Precisions:
    """How precise each release is, as mu. Per party: local, detail, size; per group: membership.

    `size` is that of each party that releases its number of users, `bounds` of each party what it
    spends on learning bounds of columns and `categories` on categories, 0 where it learns none.

    `detail` is that of the shapes within clusters, 0 where the study does not ask for them.

    `server` is that of the noise which the server adds to memberships before it publishes; None
    takes the same as for the memberships.
    """

    size: float
    local: float
    membership: float
    server: float | None = None
    bounds: tuple[float, ...] = ()
    categories: tuple[float, ...] = ()
    detail: float = 0.0


def presence_precisions(precisions: Precisions, *, n_pairs: int) -> Precisions:
    """Return the precisions of a presence table beside those of so many pair tables.

    Its squared precision is `PRESENCE_SHARE` of all memberships': as that of so many pairs.
    """
    factor = math.sqrt(n_pairs * PRESENCE_SHARE / (1 - PRESENCE_SHARE))
    server = None if precisions.server is None else factor * precisions.server
    return replace(precisions, membership=factor * precisions.membership, server=server)


def split_precision(study: Study, *, n_groups: float, n_sizes: int, scale: float) -> Precisions:
    """Split the squared precision `scale`^2 among the releases of a run.

    `n_groups` is how many membership releases touch one user: one for a joint release of all
    parties, or one per pair; where a presence table has a part, as many pair tables as all of it
    would be worth. `n_sizes` is how many parties release their number of users.
    """
    facts = study.membership_facts
    sizes = _SIZE_SHARE if n_sizes else 0.0
    share = facts.share_of(len(study.parties))
    if study.counts_only:
        none = (0.0,) * len(study.parties)
        membership = scale / math.sqrt(n_groups)
        return Precisions(size=0.0, local=0.0, membership=membership, bounds=none, categories=none)
    learned, named = bounds_shares(study), categories_shares(study)
    before = sizes + math.fsum(learned) + math.fsum(named)
    membership = share * (1 - before)
    local = 1 - before - membership
    detail = 0.0 if study.detail is None else study.detail.share
    return Precisions(
        size=scale * math.sqrt(sizes / max(n_sizes, 1)),
        local=scale * math.sqrt((1 - detail) * local / len(study.parties)),
        membership=scale * math.sqrt(membership / n_groups),
        bounds=tuple(scale * math.sqrt(own) for own in learned),
        categories=tuple(scale * math.sqrt(own) for own in named),
        detail=scale * math.sqrt(detail * local / len(study.parties)),
    )


def categories_shares(study: Study) -> tuple[float, ...]:
    """Return each party's share of mu^2 for categories that are learned."""
    return tuple(
        _CATEGORIES_SHARE / len(study.parties) * any(column.is_open for column in party.columns)
        for party in study.parties
    )


def category_delta(study: Study) -> float:
    """Return the probability with which a category of one user may show, for each open column.

    In one run, where there are several.
    """
    n_open = sum(column.is_open for party in study.parties for column in party.columns)
    return _CATEGORIES_DELTA * study.budget.delta / (max(n_open, 1) * study.n_runs)


def bounds_shares(study: Study) -> tuple[float, ...]:
    """Return each party's share of mu^2 for bounds that are learned.

    In proportion to its private columns among all of them, so that a column's noise does not depend
    on how many others are private.
    """
    epsilon = study.budget.epsilon / math.sqrt(study.n_runs)  # about what one run has
    share = min(max(_BOUNDS_SHARE / math.sqrt(epsilon), _BOUNDS_SHARE), _MOST_BOUNDS_SHARE)
    return tuple(
        share
        / len(study.parties)
        * sum(column.is_private for column in party.columns)
        / len(party.columns)
        for party in study.parties
    )
