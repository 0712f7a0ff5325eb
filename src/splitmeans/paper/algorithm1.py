"""Algorithm 1: private vertical federated clustering, in four phases."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.paper.baselines import PlainLabels, count_cells, plain_kmeans, plain_labels
from splitmeans.paper.basic_est import basic_est
from splitmeans.paper.dpfm import SketchParameters
from splitmeans.paper.dpfmps_gen import PartitionSketch, dpfmps_gen
from splitmeans.paper.dplloyd import dplloyd
from splitmeans.paper.dplsf import dplsf
from splitmeans.paper.guarantees import missing_guarantees, statement
from splitmeans.paper.ind_lap import NoisyHistogram, ind_lap_encode, ind_lap_estimate
from splitmeans.paper.ldp_agg import (
    LabelResponse,
    RandomisedLabels,
    ldp_agg,
    ldp_agg_2pest,
    ldp_agg_encode,
)
from splitmeans.paper.local_k import local_k
from splitmeans.paper.two_party_est import two_party_est
from splitmeans.privacy.noise import NoiseSource

MEMBERSHIPS = ("dpfmps", "ind-lap", "ldp-agg", "exact")
LOCALS = ("dplsf", "dplloyd", "plain")
ESTIMATES = ("auto", "basic", "2pest")
# Share of epsilon for n-hat, 1 - b in the paper.
COUNT_SHARE = 0.02

MembershipMessage: TypeAlias = PartitionSketch | NoisyHistogram | RandomisedLabels | PlainLabels


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What each release may cost: n-hat once, centres and memberships at each party."""

    epsilon_0: float
    epsilon_1: float
    epsilon_2: float
    delta_2: float


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What all parties and the server agree on.

    `membership` is one of `MEMBERSHIPS`, `local` one of `LOCALS`, and `estimate` "basic", "2pest",
    or "auto": 2PEst where the method has it.
    """

    n_clusters: int
    epsilon: float
    delta: float
    n_parties: int
    membership: str
    local: str = "dplsf"
    estimate: str = "auto"
    gamma: float = 1.0
    repetitions: int = 4096

    def __post_init__(self) -> None:
        _validate.at_least(1, n_clusters=self.n_clusters)
        _validate.at_least(2, n_parties=self.n_parties)
        _validate.positive(epsilon=self.epsilon)
        _validate.open_unit(delta=self.delta)
        _validate.one_of(MEMBERSHIPS, membership=self.membership)
        _validate.one_of(LOCALS, local=self.local)
        _validate.one_of(ESTIMATES, estimate=self.estimate)
        if self.estimate == "2pest" and self.membership in ("ind-lap", "exact"):
            raise ParameterError(
                f"estimate='2pest' needs membership 'dpfmps' or 'ldp-agg', got "
                f"{self.membership!r}; take estimate='auto'"
            )

    @property
    def needs_count(self) -> bool:
        """Whether the server needs n-hat; reports and plain labels show the number of users."""
        return self.membership in ("dpfmps", "ind-lap")

    @property
    def budget(self) -> Budget:
        """The division of the budget: b epsilon in 2S equal parts, delta in S."""
        epsilon_0 = COUNT_SHARE * self.epsilon if self.needs_count else 0.0
        part = (self.epsilon - epsilon_0) / (2 * self.n_parties)
        delta_2 = self.delta / self.n_parties
        return Budget(epsilon_0=epsilon_0, epsilon_1=part, epsilon_2=part, delta_2=delta_2)

    @property
    def sketch(self) -> SketchParameters:
        """Parameters of DPFMPS."""
        return SketchParameters(
            epsilon_2=self.budget.epsilon_2,
            delta_2=self.budget.delta_2,
            gamma=self.gamma,
            repetitions=self.repetitions,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class PartyMessage:
    """All that a party sends: its private centres, shape (k', m), and memberships."""

    centres: FloatArray
    membership: MembershipMessage = field(repr=False)

    @property
    def n_bytes(self) -> int:
        """Size of the message."""
        return self.centres.nbytes + self.membership.n_bytes


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """What a run ends with: k centres, the grid's weights, and what the server received.

    `statement` says what the run claims; it begins with what does not hold.
    """

    centres: FloatArray
    weights: FloatArray
    noisy_count: float | None
    messages: tuple[PartyMessage, ...]
    statement: str = field(repr=False)


def vertical_clustering(
    datasets: Sequence[FloatArray],
    settings: Settings,
    *,
    n_local_clusters: int | None = None,
    noise: NoiseSource,
    rng: np.random.Generator,
) -> Outcome:
    """Run all four phases in one process.

    Guarantee: the paper claims (epsilon, delta)-DP. It does NOT hold with DPFMPS, whose sketches
    share hash keys (see `dpfmps_gen`); with LDP-AGG only for replacing a user's values, and the
    number of users shows; and there is none with exact memberships, plain local clustering or
    seeded noise. It warns of each chosen method without the guarantee.

    Each party has its rows in [-1, 1], shape (n, m_l), the same users in one order, and draws its
    own noise. Without k' it is `local_k` for DPFMPS and k for the baselines. `rng` is for starts
    and random choices that hide nothing.
    """
    for sentence in missing_guarantees(settings):
        warnings.warn(f"{sentence}. Use splitmeans.VerticalKMeans to protect people", stacklevel=2)
    party_noise = [noise.spawn(f"party {party}") for party in range(len(datasets))]
    # Phase 3a first, since k' may depend on it: a random party estimates the number of users.
    noisy_count = None
    if settings.needs_count:
        asked = int(rng.integers(len(datasets)))
        scale = 1 / settings.budget.epsilon_0
        noisy_count = float(len(datasets[asked]) + party_noise[asked].laplace(scale, 1)[0])
    if n_local_clusters is None:
        n_local_clusters = default_local_k(settings, noisy_count)
    # The parties agree on the hash keys; the server never learns them.
    hash_key = noise.spawn("hash keys").words(2).tobytes()
    messages = tuple(
        party_phase(
            rows, settings, n_local_clusters=n_local_clusters, hash_key=hash_key, noise=own, rng=rng
        )
        for rows, own in zip(datasets, party_noise, strict=True)
    )
    centres, weights = server_phase(messages, settings, noisy_count=noisy_count, rng=rng)
    return Outcome(
        centres=centres,
        weights=weights,
        noisy_count=noisy_count,
        messages=messages,
        statement=statement(settings, secure_noise=noise.secure),
    )


def default_local_k(settings: Settings, noisy_count: float | None) -> int:
    """Return k': the rule of section 5.2 for DPFMPS, k for the baselines."""
    if settings.membership != "dpfmps" or noisy_count is None:
        return settings.n_clusters
    k, n_parties = settings.n_clusters, settings.n_parties
    return local_k(noisy_count, settings.sketch, n_clusters=k, n_parties=n_parties)


def party_phase(
    rows: FloatArray,
    settings: Settings,
    *,
    n_local_clusters: int,
    hash_key: bytes,
    noise: NoiseSource,
    rng: np.random.Generator,
) -> PartyMessage:
    """Return a party's message: LocCluster (phase 1), then MemEnc (phase 2)."""
    budget = settings.budget
    if settings.local == "plain":
        centres = plain_kmeans(rows, n_local_clusters, rng=rng)
    else:
        loc_cluster = dplsf if settings.local == "dplsf" else dplloyd
        centres = loc_cluster(
            rows, n_local_clusters, epsilon=budget.epsilon_1, noise=noise, rng=rng
        )
    membership: MembershipMessage
    match settings.membership:
        case "dpfmps":
            membership = dpfmps_gen(rows, centres, settings.sketch, hash_key=hash_key, noise=noise)
        case "ind-lap":
            membership = ind_lap_encode(rows, centres, epsilon_2=budget.epsilon_2, noise=noise)
        case "ldp-agg":
            response = LabelResponse(epsilon_2=budget.epsilon_2, n_local_clusters=n_local_clusters)
            membership = ldp_agg_encode(rows, centres, response, noise=noise)
        case _:
            membership = plain_labels(rows, centres)
    return PartyMessage(centres=centres, membership=membership)


def server_phase(
    messages: Sequence[PartyMessage],
    settings: Settings,
    *,
    noisy_count: float | None,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return k centres, shape (k, m), and the grid's weights: phases 3 and 4."""
    weights = weight_est(messages, settings, noisy_count=noisy_count, rng=rng)
    cells = np.indices(weights.shape).reshape(len(messages), -1)
    grid = np.hstack([m.centres[own] for m, own in zip(messages, cells, strict=True)])
    centres = weighted_kmeans(grid, weights.ravel(), n_clusters=settings.n_clusters, rng=rng)
    return centres, weights


def weight_est(
    messages: Sequence[PartyMessage],
    settings: Settings,
    *,
    noisy_count: float | None,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the weights of all cells, shape (k', ..., k')."""
    sent = [message.membership for message in messages]
    basic = settings.estimate == "basic"
    if settings.membership == "exact":
        return count_cells([own for own in sent if isinstance(own, PlainLabels)])
    if settings.membership == "ldp-agg":
        labels = [own for own in sent if isinstance(own, RandomisedLabels)]
        k = len(messages[0].centres)
        response = LabelResponse(epsilon_2=settings.budget.epsilon_2, n_local_clusters=k)
        return ldp_agg(response, labels) if basic else ldp_agg_2pest(response, labels, rng=rng)
    if noisy_count is None:
        raise ParameterError(f"noisy_count must be given for {settings.membership!r}")
    if settings.membership == "ind-lap":
        return ind_lap_estimate(
            noisy_count, [own for own in sent if isinstance(own, NoisyHistogram)]
        )
    sketches = [own for own in sent if isinstance(own, PartitionSketch)]
    if basic:
        return basic_est(noisy_count, settings.sketch, sketches)
    return two_party_est(noisy_count, settings.sketch, sketches, rng=rng)
