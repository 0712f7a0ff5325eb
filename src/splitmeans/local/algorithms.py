"""What runs at a party for each law of a local algorithm: it sees rows."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from splitmeans.local.dplloyd import DpLloyd
from splitmeans.local.dplsf import Dplsf
from splitmeans.local.dplsf_paper import DplsfPaper
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.local.law import LocalLaw
from splitmeans.local.laws.dplloyd import DpLloydLaw
from splitmeans.local.laws.dplsf import DplsfLaw, DplsfPaperLaw
from splitmeans.local.laws.guided_lloyd import GuidedLloydLaw
from splitmeans.local.laws.plain import PlainKMeansLaw
from splitmeans.local.methods import local_law
from splitmeans.local.plain import PlainKMeans
from splitmeans.local.rows import LocalClustering

MECHANISMS: Mapping[type, Callable[..., LocalClustering]] = {
    GuidedLloydLaw: GuidedLloyd,
    DplsfLaw: Dplsf,
    DplsfPaperLaw: DplsfPaper,
    DpLloydLaw: DpLloyd,
    PlainKMeansLaw: PlainKMeans,
}


def mechanism_of(law: LocalLaw) -> LocalClustering:
    """Return the algorithm that does what a law says."""
    names = [item.name for item in dataclasses.fields(cast(Any, law))]
    return MECHANISMS[type(law)](**{name: getattr(law, name) for name in names})


def make_local(
    method: str, *, n_clusters: int, bounds: Iterable[int], **cost: Any
) -> LocalClustering:
    """Return the local algorithm of this name; see `local_law` for its parameters."""
    return mechanism_of(local_law(method, n_clusters=n_clusters, bounds=bounds, **cost))
