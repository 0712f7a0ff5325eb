"""The tables of a study that have rules of their own: its budget, and options of the methods."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from splitmeans import _validate
from splitmeans.errors import StudyError
from splitmeans.study.parties import to_builtin

if TYPE_CHECKING:
    from splitmeans.study.study import Study

MIN_EPSILON = 1e-100

# Of whom the budget's epsilon is; every other observer has a figure of its own, or none.
TOWARDS_SERVER = "towards the server and readers of the result"

# Less of the local budget would tell nothing but noise; more would leave clusters without a place.
MIN_DETAIL_SHARE, MAX_DETAIL_SHARE = 0.05, 0.8

# Base of the registers minus one, where a study leaves it open.
_GAMMA = 0.1

# Beyond it one label in 10^21 would change.
MAX_COLLUSION_EPSILON = 50


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What each kind of observer may learn about one user from the whole run, at all parties.

    Attributes:
        epsilon: Bound on what the server and readers of the result learn about a user; another
            party has a figure of its own, usually larger.
        delta: How far probabilities may exceed that bound, added to e^epsilon times; far below one
            over the number of users.
        party_epsilon: If set, also a bound on what another party learns about a user's columns
            elsewhere, at the same delta.
        coalition_epsilon: If set, also a bound on what a party and the server together learn about
            a user's values elsewhere; needs `decoy.collusion_epsilon`.
    """

    epsilon: float
    delta: float
    party_epsilon: float | None = None
    coalition_epsilon: float | None = None

    def __post_init__(self) -> None:
        _validate.positive(error=StudyError, epsilon=self.epsilon)
        _validate.open_unit(error=StudyError, delta=self.delta)
        to_builtin(self, epsilon=float, delta=float)
        # Shares of a smaller one could be rounded to zero.
        if self.epsilon < MIN_EPSILON:
            raise StudyError(f"epsilon must be >= {MIN_EPSILON:g}, got {self.epsilon!r}")
        for name in ("party_epsilon", "coalition_epsilon"):
            if getattr(self, name) is not None:
                _validate.positive(error=StudyError, **{name: getattr(self, name)})
                to_builtin(self, **{name: float})

    @property
    def words(self) -> str:
        """The budget as people read it."""
        text = f"epsilon {self.epsilon:g}, delta {self.delta:g}"
        if self.party_epsilon is not None:
            text += f", {self.party_epsilon:g} towards a party"
        if self.coalition_epsilon is not None:
            text += f", {self.coalition_epsilon:g} towards a party with the server"
        return text


def check_delta(budget: Budget, expected: int | None, assumed: int) -> None:
    """Refuse a delta with which publishing a random user's row whole would count as private.

    `expected` is the number of users that the study says, `assumed` that or what stands in for it.
    """
    limit = 1 / assumed
    if budget.delta < limit:
        return
    said = "which the study does not say" if expected is None else "as the study says"
    raise StudyError(
        f"delta must be below 1 / expected_users = 1 / {assumed} = {limit:.3g} "
        f"({said}), got {budget.delta:.3g}: a larger one would allow to publish whole "
        f"rows of some users; write delta = {_below(limit):g} or less, or the true "
        "expected_users"
    )


def _below(limit: float) -> float:
    """Return the largest power of ten that is a tenth of a limit or less."""
    return float(10.0 ** (math.floor(math.log10(limit)) - 1))


@dataclass(frozen=True, kw_only=True)
class DetailOptions:
    """How closely synthetic points follow a party's columns within its clusters.

    Attributes:
        share: Part of what a party's local clustering may cost (of its squared precision) that goes
            to histograms of its columns, whole and in each cluster. The clusters have the rest.
    """

    share: float = 0.4

    def __post_init__(self) -> None:
        _validate.finite(error=StudyError, **{"detail.share": self.share})
        if not MIN_DETAIL_SHARE <= self.share <= MAX_DETAIL_SHARE:
            raise StudyError(
                f"detail.share must be between {MIN_DETAIL_SHARE:g} and {MAX_DETAIL_SHARE:g}, got "
                f"{self.share!r}; leave [detail] out for a study without it"
            )
        to_builtin(self, share=float)


def check_detail(study: "Study") -> None:
    """Refuse detail that is not one, or that does not go with the rest of a study.

    In a series each run would begin where the last one ended, with points that detail has moved:
    nobody has measured what becomes of them, so the two are kept apart.
    """
    detail = study.detail
    if not isinstance(detail, DetailOptions | None):
        raise StudyError("detail must be a table with a share ([detail], or DetailOptions)")
    if detail is not None and study.counts_only:
        raise StudyError(
            "[detail] must be left out in a study of counts alone (n_clusters = 1): it tells how "
            "columns spread within clusters, and there are none; leave it out, or ask for more "
            "segments"
        )
    if detail is not None and study.renewal is not None:
        raise StudyError(
            "[detail] and [renewal] cannot be in one study: what detail does to a series of runs "
            "is not known; leave one of the two tables out"
        )


@dataclass(frozen=True, kw_only=True)
class SketchOptions:
    """Public parameters of the cell sketch.

    Attributes:
        repetitions: Rows of the sketch, the paper's M.
        gamma: Base of the registers minus one; smaller is finer, and costs next to nothing. None
            takes 0.1.
    """

    repetitions: int = 4096
    gamma: float | None = None

    def __post_init__(self) -> None:
        _validate.at_least(16, error=StudyError, repetitions=self.repetitions)
        if self.repetitions > 65_536:
            raise StudyError(f"repetitions must be <= 65536, got {self.repetitions}")
        to_builtin(self, repetitions=int)
        if self.gamma is not None:
            _validate.finite(error=StudyError, gamma=self.gamma)
            if not 0.01 <= self.gamma <= 3:
                raise StudyError(f"gamma must be between 0.01 and 3, got {self.gamma!r}")
            to_builtin(self, gamma=float)

    @property
    def base(self) -> float:
        """The base of the registers minus one, also where the study leaves it open."""
        return _GAMMA if self.gamma is None else self.gamma


@dataclass(frozen=True, kw_only=True)
class DecoyOptions:
    """Public parameters of the decoy join.

    Attributes:
        max_users: If `expected_users` is above, a secret sample of about this size is sent, which
            saves bandwidth; the join takes any number that a message can hold.
        collusion_epsilon: If set, every user's label passes a randomiser of this epsilon, which
            protects it should a party and the server collude; costs accuracy.
    """

    max_users: int = 20_000_000
    collusion_epsilon: float | None = None

    def __post_init__(self) -> None:
        _validate.at_least(1000, error=StudyError, max_users=self.max_users)
        to_builtin(self, max_users=int)
        if self.collusion_epsilon is not None:
            _validate.positive(error=StudyError, collusion_epsilon=self.collusion_epsilon)
            if self.collusion_epsilon > MAX_COLLUSION_EPSILON:
                raise StudyError(
                    f"collusion_epsilon must be <= {MAX_COLLUSION_EPSILON}, got "
                    f"{self.collusion_epsilon!r}: with more, every label stays as it is; leave it "
                    "out for labels without noise"
                )
            to_builtin(self, collusion_epsilon=float)
