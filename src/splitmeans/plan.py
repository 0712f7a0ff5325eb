"""The plan of a run: a study with everything settled that is public before the first release.

Server and parties each compute the plan themselves from the study and the noisy user count; a plan
that another participant proposes is compared, never believed.
"""

from dataclasses import dataclass

from splitmeans.errors import ParameterError
from splitmeans.membership.law import MembershipLaw, membership_law
from splitmeans.membership.sketch.auto_clusters import paper_local_clusters
from splitmeans.privacy.split import Shares, paper_split
from splitmeans.study import Study

# A dense grid beyond this many cells no longer fits comfortably in memory.
MAX_CELLS = 10_000_000

# Labels travel as single bytes.
MAX_LOCAL_CLUSTERS = 255


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A study with its budget shares, number of local clusters and membership law."""

    study: Study
    shares: Shares
    noisy_count: int | None
    n_local_clusters: int
    membership: MembershipLaw

    @property
    def local_method(self) -> str:
        """The local algorithm that "auto" stands for: as private as the membership method."""
        if self.study.local != "auto":
            return self.study.local
        return "plain" if self.study.membership == "exact" else "dplsf"

    @property
    def grid_method(self) -> str:
        """The grid method that "auto" stands for: the paper's choice for each method."""
        if self.study.grid != "auto":
            return self.study.grid
        fits_pairs = self.study.membership in ("sketch-paper", "ldp")
        return "pairs-paper" if fits_pairs and len(self.study.parties) > 2 else "joint"


def needs_count(study: Study) -> bool:
    """Whether the server must know the noisy number of users to read the memberships."""
    return study.membership in ("sketch-paper", "independent")


def shares_of(study: Study) -> Shares:
    """Return the budget of every release of the study."""
    return paper_split(study.budget, n_parties=len(study.parties), needs_count=needs_count(study))


def counting_party(study: Study) -> str:
    """The one party that releases the user count.

    It is fixed by the study, not chosen by the server: a server that may pick could ask several
    parties and get several counts for the price of one.
    """
    return study.parties[0].name


def make_plan(study: Study, *, noisy_count: int | None) -> Plan:
    """Settle the plan of a run; `noisy_count` is None where the method needs no count."""
    shares = shares_of(study)
    n_local_clusters = _local_clusters(study, shares, noisy_count)
    _check_grid_size(study, n_local_clusters)
    law = membership_law(study, shares, n_local_clusters=n_local_clusters)
    return Plan(
        study=study,
        shares=shares,
        noisy_count=noisy_count,
        n_local_clusters=n_local_clusters,
        membership=law,
    )


def _local_clusters(study: Study, shares: Shares, noisy_count: int | None) -> int:
    if study.n_local_clusters != "auto":
        return int(study.n_local_clusters)
    if study.membership != "sketch-paper" or noisy_count is None:
        # The paper takes k' = k for its baselines.
        return study.n_clusters
    return paper_local_clusters(
        noisy_count=noisy_count,
        n_clusters=study.n_clusters,
        n_parties=len(study.parties),
        repetitions=study.sketch.repetitions,
        epsilon=shares.membership_epsilon,
        delta=shares.membership_delta,
    )


def _check_grid_size(study: Study, n_local_clusters: int) -> None:
    n_cells = n_local_clusters ** len(study.parties)
    if n_cells < study.n_clusters:
        raise ParameterError(
            f"n_local_clusters={n_local_clusters} at {len(study.parties)} parties gives {n_cells} "
            f"grid cells, fewer than n_clusters={study.n_clusters}; raise n_local_clusters"
        )
    if n_cells > MAX_CELLS or n_local_clusters > MAX_LOCAL_CLUSTERS:
        raise ParameterError(
            f"n_local_clusters={n_local_clusters} at {len(study.parties)} parties gives {n_cells} "
            f"grid cells, more than {MAX_CELLS}; lower n_local_clusters (at most "
            f"{MAX_LOCAL_CLUSTERS})"
        )
