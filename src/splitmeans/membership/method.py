"""The record of a membership method: everything that public code asks of it.

Each method's folder has one in its `method.py`; `methods.py` lists them. Nothing here, and nothing
that a record refers to, sees a row: what a party does with its users is in the folder's `encode.py`
and listed in `party/memberships.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeAlias, TypeVar

from splitmeans._types import FloatArray, NoiseLine
from splitmeans.membership.bundles import Bundles
from splitmeans.membership.decoy.direct_labels import DirectLabels
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.estimator import WeightEstimator
from splitmeans.privacy.events import Event
from splitmeans.privacy.noise import NoiseSource
from splitmeans.privacy.split import Precisions
from splitmeans.study import Study
from splitmeans.study.methods import MembershipFacts

# Positions of parties that share one membership release under keys of its own.
Group: TypeAlias = tuple[int, ...]


class MembershipLaw(Protocol):
    """Public parameters of a method's releases."""

    TAG: ClassVar[str]

    @property
    def event(self) -> Event:
        """What one release costs a user: of a party, or of all parties of a group together."""
        ...


class RunFacts(Protocol):
    """What a method may know of a plan."""

    @property
    def study(self) -> Study:
        """What was agreed."""
        ...

    @property
    def tagged_users(self) -> float:
        """For about how many users of a party tags are made."""
        ...

    @property
    def n_local_clusters(self) -> tuple[int, ...]:
        """The k' of each party."""
        ...

    @property
    def bundles(self) -> Bundles:
        """How local clusters become labels of a table of two parties."""
        ...

    @property
    def groups(self) -> tuple[Group, ...]:
        """Which parties share a membership release; empty where each party has its own."""
        ...

    @property
    def presence(self) -> DecoyLaw | None:
        """The law of the presence table, where the group of all parties is one."""
        ...

    @property
    def sample_rate(self) -> float:
        """Share of users in a message."""
        ...

    @property
    def collusion_laws(self) -> tuple[DirectLabels | None, ...]:
        """For each party the randomiser its users' labels pass against collusion, if any."""
        ...


L = TypeVar("L", bound=MembershipLaw)
M = TypeVar("M")


@dataclass(frozen=True, kw_only=True)
class MembershipMethod(Generic[L, M]):
    """All that dispatch reads of one method.

    Attributes:
        facts: What studies and statements read.
        law: Type of its law.
        message: Type of the message that a party's release carries.
        default_labels: How many labels each party has in a table of a study with about so many
            users; as many as local clusters, k', if `clusters_of` says no other.
        clusters_of: How many local clusters a party may have for so many labels.
        law_at: The law at given precisions, for a number of membership releases.
        estimator: Reads the messages of all parties, with noise of the server's own.
        noise_lines: The noise of a release.
        message_size: Bytes of the message of the party at a position with so many users, and how
            many records it has; the last argument is by how many standard deviations it may be
            longer than expected.
        cell_error: Standard deviation of a cell's count, by the number of users.
        deviation: Standard deviation of a cell of a group with an estimated table, where the noise
            on cells is known; else None.
        server_noise: Scale of the Gaussian noise that the server adds to every cell before it
            publishes, where it does.
        table_hash: Hash of a table that draws are looked up in and the law's parameters do not
            show (rule R3), where there is one.
        check_plan: Refuses a plan that nobody could compute.
    """

    facts: MembershipFacts
    law: type[L]
    message: type[M]
    default_labels: Callable[[Study, int], int]
    clusters_of: Callable[[Study, int], int] = lambda _, labels: labels
    law_at: Callable[[Study, Precisions, int], L]
    estimator: Callable[[L, RunFacts, Sequence[M], NoiseSource], WeightEstimator]
    noise_lines: Callable[[L, RunFacts], Iterable[NoiseLine]]
    message_size: Callable[[L, RunFacts, int, int, int], tuple[int, int]]
    cell_error: Callable[[L, RunFacts, int], float]
    deviation: Callable[[L, RunFacts, Group, FloatArray], float] | None = None
    server_noise: Callable[[L], float] | None = None
    table_hash: Callable[[L], str] | None = None
    check_plan: Callable[[L, RunFacts], None] = lambda *_: None


def enough_clusters(study: Study) -> int:
    """Return the smallest k' whose grid has at least n_clusters cells."""
    n_parties = len(study.parties)
    return next(k for k in range(2, study.n_clusters + 2) if k**n_parties >= study.n_clusters)
