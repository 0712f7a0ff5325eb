"""Public law of plain k-means: there is no privacy; see `local.plain`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from splitmeans._types import NoiseLine
from splitmeans.local.law import LocalMethod, check_public
from splitmeans.privacy.events import NonPrivateEvent
from splitmeans.study.methods import PLAIN


@dataclass(frozen=True, kw_only=True)
class PlainKMeansLaw:
    """Exact k-means centres of the rows.

    Guarantee: none. The centres are released as they are.
    """

    TAG: ClassVar[str] = "PlainKMeans"

    n_clusters: int
    bounds: tuple[int, ...]

    def __post_init__(self) -> None:
        check_public(n_clusters=self.n_clusters, bounds=self.bounds)

    @property
    def event(self) -> NonPrivateEvent:
        """A release without protection."""
        return NonPrivateEvent(reason="local centres are computed without noise")

    def noise_lines(self, users: int) -> Iterable[NoiseLine]:
        """Return nothing: there is no noise."""
        return ()


def _at_any_cost(
    *, n_clusters: int, bounds: tuple[int, ...], epsilon: float = 0, mu: float = 0
) -> PlainKMeansLaw:
    return PlainKMeansLaw(n_clusters=n_clusters, bounds=bounds)


METHOD = LocalMethod(facts=PLAIN, tight=_at_any_cost, published=_at_any_cost)
