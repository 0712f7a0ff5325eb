"""Users at some parties only, three parties or more: the loss and the total for both populations.

Losses are those of rows with all columns, also of users who are not at all parties: a simulation
has them. The yardstick is central k-means without privacy on the rows of the same population.
"""

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.data import split_columns
from benchmarks.data_files import read_rows
from benchmarks.pool import run_jobs
from splitmeans import VerticalKMeans
from splitmeans._types import FloatArray, LabelArray
from splitmeans.paper.datasets import mixed_gaussian
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.simulate.baselines import central_kmeans
from splitmeans.simulate.evaluation import assign_labels, normalised_loss

POPULATIONS = ("shared", "everyone")
_CLUSTERS, _DELTA = 5, 1e-5
_PRESENCE_STREAM, _START_STREAM = 77_000, 91_000


@dataclass(frozen=True, kw_only=True)
class PartialSetting:
    """Who is where.

    Attributes:
        absence: "random": each user is at each party with probability `share`; "by segment": the
            probability is even between 2 x share - 1 and 1 for each segment and party; "own": this
            share of the users of a party is at all parties, the others at one.
        share: See `absence`.
        n_parties: Number of parties.
        data: "mixed-gaussian" or "letter".
        n_users: Users in all, of mixed Gaussian data.
    """

    absence: str = "random"
    share: float = 0.7
    n_parties: int = 4
    data: str = "mixed-gaussian"
    n_users: int = 20_000

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.data}, {self.share:.0%} {self.absence}, S = {self.n_parties}"


SETTINGS = (
    *(PartialSetting(n_parties=s) for s in (3, 4, 8)),
    *(PartialSetting(n_parties=s, share=0.5) for s in (3, 4, 8)),
    *(PartialSetting(n_parties=s, absence="by segment") for s in (3, 4, 8)),
    PartialSetting(n_parties=3, absence="own", share=0.05, n_users=50_000),
    *(PartialSetting(n_parties=s, data="letter") for s in (3, 4, 8)),
)


@dataclass(frozen=True, kw_only=True)
class PartialScore:
    """What one run gave."""

    setting: str
    population: str
    epsilon: float
    seed: int
    n_local_clusters: int
    loss_ratio: float
    users: int
    counted: float
    kilobytes: float
    seconds: float


def run_partial(
    settings: Sequence[PartialSetting],
    *,
    epsilon: float,
    seeds: int,
    data_dir: Path | None,
    workers: int,
) -> Iterator[PartialScore]:
    """Run every setting for both populations."""
    tasks = [
        (setting, population, epsilon, seed, data_dir)
        for setting in settings
        for population in POPULATIONS
        for seed in range(seeds)
    ]
    for _, score in run_jobs(run_one, tasks, workers=workers):
        yield score


def run_one(
    setting: PartialSetting, population: str, epsilon: float, seed: int, data_dir: Path | None
) -> PartialScore:
    """Run one setting for one population."""
    rows, classes = _rows(setting, seed=seed, data_dir=data_dir)
    columns = split_columns(
        rows, setting.n_parties, rng=np.random.default_rng([seed, setting.n_parties])
    )
    present = who_is_where(setting, classes, seed=seed)
    users = [np.flatnonzero(column) for column in present.T]
    model = VerticalKMeans(
        _CLUSTERS,
        epsilon=epsilon,
        delta=_DELTA,
        bounds=(-1, 1),
        expected_users=_rounded(len(users[0])),
        population=population,
        noise=InsecureSeededNoise(seed),
        random_state=_START_STREAM + seed,
    )
    blocks = [rows[np.ix_(own, cols)] for own, cols in zip(users, columns, strict=True)]
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few segments are what is looked for
        model.fit(blocks, ids=users)
    seconds = time.perf_counter() - start
    wanted = present.all(axis=1) if population == "shared" else present.any(axis=1)
    pooled = rows[wanted][:, np.concatenate(columns)]
    best = normalised_loss(pooled, central_kmeans(pooled, _CLUSTERS, random_state=seed))
    done, names = model.result_.server, model.study_.party_names
    return PartialScore(
        setting=setting.name,
        population=population,
        epsilon=epsilon,
        seed=seed,
        n_local_clusters=max(done.plan.n_local_clusters),
        loss_ratio=normalised_loss(pooled, done.clustering.scaled_centres) / best,
        users=int(wanted.sum()),
        counted=done.synopsis.total,
        kilobytes=float(np.mean([model.result_.bytes_from(name) for name in names])) / 1000,
        seconds=seconds,
    )


def _rows(
    setting: PartialSetting, *, seed: int, data_dir: Path | None
) -> tuple[FloatArray, LabelArray]:
    """Return rows in [-1, 1] with the segments that absence may depend on."""
    if setting.data == "mixed-gaussian":
        n_columns = max(8, setting.n_parties)
        drawn = mixed_gaussian(setting.n_users, n_columns=n_columns, random_state=seed)
        return drawn.rows, drawn.labels
    rows = read_rows(setting.data, data_dir)
    if setting.absence != "by segment":
        return rows, np.zeros(len(rows), dtype=np.int32)
    return rows, assign_labels(rows, central_kmeans(rows, _CLUSTERS, random_state=0))


def who_is_where(
    setting: PartialSetting, classes: LabelArray, *, seed: int
) -> npt.NDArray[np.bool_]:
    """Draw who is at which party, shape (n, S)."""
    rng = np.random.default_rng(_PRESENCE_STREAM + seed)
    n, n_parties, share = len(classes), setting.n_parties, setting.share
    if setting.absence == "own":
        per_party = n / (share + n_parties * (1 - share))
        present = rng.integers(n_parties, size=n)[:, np.newaxis] == np.arange(n_parties)
        present[rng.permutation(n)[: round(share * per_party)]] = True
        return np.asarray(present)
    chances = np.full((n, n_parties), share)
    if setting.absence == "by segment":
        table = rng.uniform(2 * share - 1, 1, size=(int(classes.max()) + 1, n_parties))
        chances = table[classes]
    return np.asarray(rng.random((n, n_parties)) < chances)


def _rounded(n: int) -> int:
    """Return a public size: one significant digit, rounded down."""
    unit = int(10 ** (len(str(n)) - 1))
    return n // unit * unit
