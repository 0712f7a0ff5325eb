"""The study: every public fact that the parties agree on before any data is touched.

A study is a value. It says who takes part with which columns and bounds, how many segments are
wanted, which methods run, and what they may cost. Its canonical hash is what people compare and
what every message of a run is bound to, so two parties with equal hashes run the same protocol.
"""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w

from splitmeans import _validate
from splitmeans.errors import StudyError
from splitmeans.study import plain_values
from splitmeans.study.counting import check_counting
from splitmeans.study.id_keys import matching_key, with_matching_columns
from splitmeans.study.id_rules import AS_IS, IDS_NEEDED, IdKey, IdRules
from splitmeans.study.methods import MEMBERSHIPS, N_POINTS, MembershipFacts
from splitmeans.study.options import (
    Budget,
    DecoyOptions,
    DetailOptions,
    SketchOptions,
    check_delta,
    check_detail,
)
from splitmeans.study.parties import (
    Column,
    KeyColumn,
    PartySpec,
    check_learned,
    check_name,
    check_participant_keys,
    to_builtin,
)
from splitmeans.study.private_shorthand import spread_bounds
from splitmeans.study.renewal import Renewal, check_renewal
from splitmeans.study.shown_names import check_shown_names
from splitmeans.wire.slot import SERVER

__all__ = ["Budget", "Column", "DecoyOptions", "IdRules", "PartySpec", "SketchOptions", "Study"]

GRID_METHODS = ("auto", "pairs", "many")
USER_SETS = ("equal", "partial")
SHARED, EVERYONE = "shared", "everyone"
POPULATIONS = (SHARED, EVERYONE)
BY_BOUNDS, EQUAL = "bounds", "equal"
SCALINGS = (BY_BOUNDS, EQUAL)

# With partial user sets a table has a cell for every way to be at some parties of all: 4095 here.
MAX_PARTIAL_PARTIES = 12

# Where nobody says otherwise; it suits fewer than 100,000 users.
DEFAULT_DELTA = 1e-5

# What stands in for the number of users where the parties say none and none is released: for
# delta, which must be below one over it, and for how much room messages need.
ASSUMED_USERS = 10_000

# More than any grid of the plans gives; a larger number would only keep a reader busy.
MAX_CLUSTERS = 1_000_000

_HASH_PREFIX = b"splitmeans study 1\n"

# What every study has alike, so it cannot be said; a hash covers it as what parties agree on.
_ALIKE = {"local": "auto", "accounting": "tight"}
_SKETCH_ALIKE = {"estimator": "calibrated"}


@dataclass(frozen=True, kw_only=True)
class Study:
    """Everything public about one joint clustering; see the module text.

    Attributes:
        name: What people call the study.
        parties: Who takes part, in the order that centres and weights use.
        n_clusters: Number of segments wanted, k; 1 for a study of counts alone (`counting.py`).
        budget: What the run may cost a user, towards which observer.
        membership: How parties tell which user is in which of their clusters.
        n_local_clusters: Clusters per party, k', or "auto".
        grid: How cell weights of all parties are found.
        user_sets: "equal" if every party holds the same users (checked before anything is sent),
            "partial" if some users are at some parties only.
        population: Whose segments, with partial user sets: "shared" for users at all parties,
            "everyone" for all users, whose values at parties they are not at are filled in by a
            model; that needs three or more parties. None, the default, is "shared".
        expected_users: A public rough number of users, if the parties can say one; where a run
            learns bounds or categories they must, as with too few it would learn noise. Lengths of
            messages follow from it, and delta must be below one over it.
        sketch: Parameters of the cell sketch.
        decoy: Parameters of the decoy join.
        server_key: Public identity of the server, for runs between organisations.
        ids: How ids are written; None takes them as they are. Where user sets are partial the
            parties cannot compare their ids, so it must be said. See `id_rules`.
        scaling: How columns count in the distances of the final k-means: None or "bounds" through
            their bounds, "equal" each the same (`synopsis/scaling.py`), times its weight.
        detail: If set, parties also release how their columns spread, whole and within clusters,
            from a share of the budget; None for not.
        renewal: How many runs the budget is for, where there are several; None for one run.
    """

    name: str
    parties: tuple[PartySpec, ...]
    n_clusters: int
    budget: Budget
    membership: str = "decoy"
    n_local_clusters: int | str = "auto"
    grid: str = "auto"
    user_sets: str = "equal"
    population: str | None = None
    expected_users: int | None = None
    sketch: SketchOptions = field(default_factory=SketchOptions)
    decoy: DecoyOptions = field(default_factory=DecoyOptions)
    server_key: str | None = None
    ids: IdRules | None = None
    scaling: str | None = None
    detail: DetailOptions | None = None
    renewal: Renewal | None = None

    def __post_init__(self) -> None:
        check_name("study name", self.name)
        object.__setattr__(self, "parties", tuple(self.parties))
        if len(self.parties) < 2:
            raise StudyError(f"a study needs at least 2 parties, got {len(self.parties)}")
        check_shown_names(self.parties)
        _validate.at_least(1, error=StudyError, n_clusters=self.n_clusters)
        if self.n_clusters > MAX_CLUSTERS:
            raise StudyError(f"n_clusters must be <= {MAX_CLUSTERS}, got {self.n_clusters}")
        _validate.one_of(tuple(MEMBERSHIPS), error=StudyError, membership=self.membership)
        _validate.one_of(GRID_METHODS, error=StudyError, grid=self.grid)
        if self.counts_only and self.n_local_clusters == 1:
            object.__setattr__(self, "n_local_clusters", "auto")
        if self.n_local_clusters != "auto":
            _validate.at_least(2, error=StudyError, n_local_clusters=self.n_local_clusters)
            to_builtin(self, n_local_clusters=int)
        _validate.one_of(USER_SETS, error=StudyError, user_sets=self.user_sets)
        if self.population is not None:
            _validate.one_of(POPULATIONS, error=StudyError, population=self.population)
        if self.population == SHARED:  # a default has the hash of what is left out
            object.__setattr__(self, "population", None)
        if self.scaling is not None:
            _validate.one_of(SCALINGS, error=StudyError, scaling=self.scaling)
        if self.scaling == BY_BOUNDS:
            object.__setattr__(self, "scaling", None)  # as for the population
        to_builtin(self, n_clusters=int)
        if self.expected_users is not None:
            _validate.at_least(1, error=StudyError, expected_users=self.expected_users)
            to_builtin(self, expected_users=int)
        if not isinstance(self.ids, IdRules | None):
            raise StudyError("ids must be a table of rules for ids ([ids], or IdRules)")
        object.__setattr__(self, "parties", with_matching_columns(self.ids, self.parties))
        if self.ids == AS_IS and self.user_sets == "equal":
            object.__setattr__(self, "ids", None)  # a default has the hash of what is left out
        self._check_combination()
        check_delta(self.budget, self.expected_users, self.assumed_users)
        check_participant_keys(self.server_key, self.parties)

    def _check_combination(self) -> None:
        """Refuse methods that have no proof, or no meaning, together."""
        method = self.membership_facts
        check_counting(self)
        check_learned(self.parties, expected_users=self.expected_users)
        if self.budget.party_epsilon is not None and not method.hides_from_parties:
            raise StudyError("party_epsilon needs membership='decoy': no other method bounds it")
        if self.budget.coalition_epsilon is not None and (
            not method.hides_from_parties or self.decoy.collusion_epsilon is None
        ):
            raise StudyError(
                "coalition_epsilon needs membership='decoy' and decoy.collusion_epsilon, which "
                "randomises labels; take about half of coalition_epsilon, shared among the other "
                "parties"
            )
        if self.population == EVERYONE and (self.user_sets == "equal" or len(self.parties) == 2):
            raise StudyError(
                "population='everyone' needs user_sets='partial' and three or more parties: with "
                "equal user sets everyone is at all parties, and two parties count only the users "
                "that both have; leave population out"
            )
        if len(self.parties) > 2:
            self._check_many_parties()
        if self.user_sets == "partial" and self.ids is None:
            raise StudyError(IDS_NEEDED)
        check_detail(self)
        check_renewal(self.renewal)

    def _check_many_parties(self) -> None:
        if self.user_sets == "equal":
            return
        # A pair's cells alone hold the users of that pair, not those of all parties.
        if not self.membership_facts.counts_presence or self.grid != "auto":
            raise StudyError(
                "user_sets='partial' with more than two parties needs membership='decoy' and "
                "grid='auto'"
            )
        if len(self.parties) > MAX_PARTIAL_PARTIES:
            raise StudyError(
                f"user_sets='partial' is for at most {MAX_PARTIAL_PARTIES} parties, got "
                f"{len(self.parties)}: who is at which of them is counted in one table, and more "
                "parties make more cells than users; take fewer parties, or only users that all "
                "parties have (user_sets='equal')"
            )

    @property
    def n_runs(self) -> int:
        """How many runs the budget is for."""
        return 1 if self.renewal is None else self.renewal.runs

    @property
    def counts_only(self) -> bool:
        """Whether the study asks only how many users are at which parties."""
        return self.n_clusters == 1

    @property
    def assumed_users(self) -> int:
        """The number of users that the study says, or what stands in for it."""
        return ASSUMED_USERS if self.expected_users is None else self.expected_users

    @property
    def party_names(self) -> tuple[str, ...]:
        """Names of the parties, in the order that centres and weights use."""
        return tuple(party.name for party in self.parties)

    @property
    def all_public(self) -> bool:
        """Whether the study says all bounds and categories, so that a run learns none."""
        return all(column.is_settled for party in self.parties for column in party.columns)

    @property
    def membership_facts(self) -> MembershipFacts:
        """What is known of the study's membership method."""
        return MEMBERSHIPS[self.membership]

    @property
    def n_points(self) -> int:
        """How many synthetic points each party releases; none in a study of counts alone."""
        return 0 if self.counts_only else N_POINTS

    @property
    def id_rules(self) -> IdRules:
        """How the ids are written that users are matched by."""
        key = self.matching_key
        return self.ids.of_key(key) if self.ids and key else self.ids or AS_IS

    @property
    def matching_key(self) -> IdKey | None:
        """The key that users are matched by; None for a study without several keys."""
        return matching_key(self.ids, self.parties) if self.ids and self.ids.keys else None

    @property
    def public_keys(self) -> dict[str, str]:
        """The public identity of every participant, as text; empty for a simulation."""
        if self.server_key is None:
            return {}
        keys = {party.name: party.public_key or "" for party in self.parties}
        return {**keys, SERVER: self.server_key}

    def without_keys(self) -> "Study":
        """Return the study for a simulation, which nobody can sign; itself if it has no keys."""
        if self.server_key is None:
            return self
        parties = tuple(replace(party, public_key=None) for party in self.parties)
        return replace(self, parties=parties, server_key=None)

    def party(self, name: str) -> PartySpec:
        """Return the party of this name."""
        for party in self.parties:
            if party.name == name:
                return party
        listed = ", ".join(self.party_names)
        raise StudyError(f"study {self.name!r} has no party {name!r}; its parties are {listed}")

    def to_mapping(self) -> dict[str, Any]:
        """Return the study as plain values, in the shape of `study.toml`."""
        mapping: dict[str, Any] = plain_values.to_plain(self)
        return mapping

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> "Study":
        """Build and check a study from plain values; unknown keys are refused."""
        mapping = spread_bounds(mapping)
        ids = mapping.get("ids") if isinstance(mapping, Mapping) else None
        unnamed = isinstance(ids, Mapping) and not {"type", "keys"} & set(ids)
        if unnamed and mapping.get("user_sets") == "partial":
            raise StudyError(IDS_NEEDED)
        return plain_values.build(cls, mapping, where="study", tables=_TABLES, lists=_LISTS)

    def to_toml(self) -> str:
        """Return the study as the text of a `study.toml`."""
        return tomli_w.dumps(self.to_mapping())

    @classmethod
    def from_toml(cls, text: str) -> "Study":
        """Build and check a study from the text of a `study.toml`."""
        try:
            mapping = tomllib.loads(text)
        except RecursionError as problem:
            raise StudyError("study is not valid TOML: its lists are nested too deep") from problem
        except ValueError as problem:  # also for numbers with thousands of digits
            raise StudyError(f"study is not valid TOML: {problem}") from problem
        return cls.from_mapping(mapping)

    @classmethod
    def read(cls, path: str | Path) -> "Study":
        """Read a study file; errors name the file."""
        try:
            return cls.from_toml(Path(path).read_text(encoding="utf-8"))
        except OSError as problem:
            raise StudyError(f"{path}: cannot be read ({problem.strerror})") from problem
        except (StudyError, UnicodeDecodeError) as problem:
            raise StudyError(f"{path}: {problem}") from problem

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical form (`plain_values.canonical_hash`), in hex."""
        agreed = {**_ALIKE, **self.to_mapping()}
        agreed["sketch"] = {**_SKETCH_ALIKE, **agreed["sketch"]}
        return plain_values.canonical_hash(agreed, prefix=_HASH_PREFIX)


# The nested tables of study.toml.
_TABLES: dict[str, type] = {
    "budget": Budget,
    "sketch": SketchOptions,
    "decoy": DecoyOptions,
    "detail": DetailOptions,
    "ids": IdRules,
    "renewal": Renewal,
}
_LISTS: dict[str, type] = {
    "parties": PartySpec,
    "columns": Column,
    "keys": IdKey,
    "id_columns": KeyColumn,
}
