"""The expected increase of the loss: what noise and the grid cost, from public quantities alone.

The increase is the loss over that of k-means on the pooled rows without privacy, minus one. Four
public quantities of a plan decide it (`Strain`), with constants that were fitted to simulated runs
(`python -m benchmarks plan --calibrate`, stored in `loss_model.json`). How clustered the data is
matters too, and nobody knows it before the run, so there are two answers:

    clear    segments with gaps between them: little is lost until noise hides a whole cluster,
             and much is lost once a party has fewer local clusters than there are segments
    smooth   one cloud that k-means cuts into pieces: the grid itself costs a few per cent, and
             noise adds to it gradually

Real tables lie between the two; the typical value is half-way, of logarithms. The range goes from
one to the other and on by the factor within which four of five of the fitted settings lay
(`spread`).
"""

import functools
import importlib.resources
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from splitmeans.forecasting.cell_error import cell_error
from splitmeans.local.laws.guided_lloyd import GuidedLloydLaw
from splitmeans.plan.plan import Plan
from splitmeans.study.features import features_of

STRUCTURES = ("clear", "smooth")
# Beyond this ratio of losses the noise decides where centres are, and no model says how far off.
MAX_RATIO = 10.0
# Increases are compared after adding this: below half a per cent nobody minds a factor.
NEGLIGIBLE = 0.005

# The grid's part is fitted relative to these, so that its constants are shares of the loss.
_USUAL_LOCAL_CLUSTERS, _USUAL_CLUSTERS, _USUAL_FEATURES = 8, 5, 4

_FILE = "loss_model.json"

# How the quantities are called that the model was fitted to a range of.
_CALLED = {
    "users": "users",
    "n_clusters": "segments",
    "n_local_clusters": "local clusters",
    "n_parties": "parties",
    "features": "columns of a party on average",
}

# The constants of each structure, by name.
Constants: TypeAlias = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, kw_only=True)
class Strain:
    """What the loss depends on, all of it public.

    Attributes:
        centre_noise: Mean squared error of local centres over the spread of their clusters, all
            columns of a party together.
        cell_noise: k labels^2 (cell error / users)^2: how far noise on cells moves the mean of a
            segment, squared, were cells as far apart as segments are wide.
        count_noise: Noise on the count of a local cluster over its users on average.
        n_clusters: Segments, k.
        n_local_clusters: Local clusters of a party, k'.
        n_parties: Parties, S.
        features: Columns of a party, one for each category; the mean over parties.
    """

    centre_noise: float
    cell_noise: float
    count_noise: float
    n_clusters: int
    n_local_clusters: int
    n_parties: int
    features: float


@dataclass(frozen=True, kw_only=True)
class LossForecast:
    """The expected ratio of the loss to that of k-means on pooled rows without privacy.

    Attributes:
        clear: If the segments have gaps between them.
        smooth: If they have none.
        low: Lower end of the range: the better of the two, less what the fit was off.
        high: Upper end: the worse of the two, and what the fit was off.
        structure: Which of the two was asked for, None for both.
    """

    clear: float
    smooth: float
    low: float
    high: float
    structure: str | None = None

    @property
    def typical(self) -> float:
        """Half-way between the two in logarithms of the increase, or the one asked for."""
        both = {"clear": self.clear, "smooth": self.smooth}
        if self.structure is not None:
            return both[self.structure]
        increases = [ratio - 1 + NEGLIGIBLE for ratio in both.values()]
        return 1 + math.sqrt(math.prod(increases)) - NEGLIGIBLE


def strain_of(plan: Plan, *, users: int) -> Strain:
    """Return what the plan's loss depends on; the plan must be one that `refusal` lets through."""
    features = [len(features_of(party)) for party in plan.parties]
    k, width, labels = plan.study.n_clusters, max(plan.n_local_clusters), max(plan.n_labels)
    centre_noise, count_noise = 0.0, 0.0
    for law, d in zip(plan.local, features, strict=True):
        assert isinstance(law, GuidedLloydLaw)
        # A party's share of the loss is about its share of the columns.
        share = d / sum(features)
        centre_noise += share * d * law.centre_deviation(users) ** 2
        count_noise += share * law.count_deviation * width / users
    error = cell_error(plan, users=users)
    return Strain(
        centre_noise=centre_noise,
        cell_noise=k * labels**2 * (error / users) ** 2,
        count_noise=count_noise,
        n_clusters=k,
        n_local_clusters=width,
        n_parties=len(features),
        features=sum(features) / len(features),
    )


def loss_forecast(
    strain: Strain, *, structure: str | None = None, constants: Constants | None = None
) -> LossForecast:
    """Return the expected ratio of losses, with the stored constants unless others are given."""
    constants = model()["constants"] if constants is None else constants
    increases = {name: INCREASES[name](strain, constants[name]).total for name in STRUCTURES}
    considered = STRUCTURES if structure is None else (structure,)
    # Factors are those of increases with NEGLIGIBLE added, as in the fit.
    ends = [
        max(0.0, (increases[name] + NEGLIGIBLE) * factor - NEGLIGIBLE)
        for name in considered
        for factor in (constants[name]["spread"], 1 / constants[name]["spread"])
    ]
    ratios = {name: min(1 + increase, MAX_RATIO) for name, increase in increases.items()}
    return LossForecast(
        **ratios,
        low=min(1 + min(ends), MAX_RATIO),
        high=min(1 + max(ends), MAX_RATIO),
        structure=structure,
    )


@dataclass(frozen=True, kw_only=True)
class Increase:
    """What the loss is expected to increase by, over that without privacy.

    Attributes:
        coarse: Because cells are coarse, or local clusters fewer than segments: more of them help.
        noise: Because of noise: more users help, and a larger epsilon.
    """

    coarse: float
    noise: float

    @property
    def total(self) -> float:
        """Both together."""
        return self.coarse + self.noise


def noise_share(strain: Strain, *, structure: str | None = None) -> float:
    """Return how much of the expected increase is noise, between 0 and 1."""
    constants = model()["constants"]
    chosen = STRUCTURES if structure is None else (structure,)
    found = [INCREASES[name](strain, constants[name]) for name in chosen]
    total = sum(one.total for one in found)
    return sum(one.noise for one in found) / total if total > 0 else 0.0


def smooth_increase(strain: Strain, constants: Mapping[str, float]) -> Increase:
    """Return the expected increase where segments have no gaps between them."""
    grid = (
        constants["grid"]
        * (_USUAL_LOCAL_CLUSTERS / strain.n_local_clusters) ** constants["grid_power"]
        * (strain.features / _USUAL_FEATURES) ** constants["features_power"]
        * (strain.n_clusters / _USUAL_CLUSTERS) ** constants["clusters_power"]
    )
    centres = constants["centres"] * strain.centre_noise
    cells = constants["cells"] * _cell_noise(strain, constants)
    return Increase(coarse=float(grid), noise=float(centres + cells))


def clear_increase(strain: Strain, constants: Mapping[str, float]) -> Increase:
    """Return the expected increase where segments have gaps between them.

    A party with few columns sees clear segments overlap, hence the power of `features`. A party
    with fewer local clusters than segments must merge some, and so must one whose start is so noisy
    that a cluster is missed.
    """
    k, width = strain.n_clusters, strain.n_local_clusters
    grid = (
        constants["grid"]
        * (_USUAL_LOCAL_CLUSTERS / width) ** constants["grid_power"]
        * (_USUAL_FEATURES / strain.features) ** constants["features_power"]
        * (k / _USUAL_CLUSTERS) ** constants["clusters_power"]
    )
    merged = constants["merged"] * max(0, k - width) / k / (strain.n_parties - 1)
    missed = constants["missed"] * strain.count_noise**2 * (k / width) ** constants["missed_power"]
    noise = constants["noise"] * (strain.centre_noise + _cell_noise(strain, constants))
    return Increase(coarse=float(grid + merged), noise=float(noise + missed))


def _cell_noise(strain: Strain, constants: Mapping[str, float]) -> float:
    """Return the noise of cells; every local cluster is in a table with each other party."""
    return float(strain.cell_noise / (strain.n_parties - 1) ** constants["parties_power"])


INCREASES = {"clear": clear_increase, "smooth": smooth_increase}


@functools.cache
def model() -> dict[str, Any]:
    """Return the fitted constants, what they were fitted to, and how well they held elsewhere."""
    text = importlib.resources.files("splitmeans.forecasting").joinpath(_FILE).read_text()
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def refusal(plan: Plan) -> str | None:
    """Return why the model does not apply to a plan; None if it does."""
    study = plan.study
    if study.counts_only:
        return "a study of counts alone has no segments, so there is no loss"
    return None


def outside(plan: Plan, *, users: int) -> list[str]:
    """Name the quantities that are outside what the model was fitted to."""
    strain = strain_of(plan, users=users)
    values = {"users": users, **asdict(strain)}
    found = []
    for name, (low, high) in model()["fitted_to"]["ranges"].items():
        if not low <= values[name] <= high:
            found.append(f"{values[name]:g} {_CALLED[name]} (fitted to {low:g}-{high:g})")
    return found
