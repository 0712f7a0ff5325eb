"""The contest: rows of splitmeans from split columns against pooled rows and what others make."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.pool import run_jobs
from benchmarks.synthetic.codes import Coder
from benchmarks.synthetic.measures import distance
from benchmarks.synthetic.peers import PEERS, PeerOptions, peer_rows
from benchmarks.synthetic.tables import MixedTable, load_table
from splitmeans import VerticalKMeans
from splitmeans._types import IntArray
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study import Budget, DetailOptions, PartySpec, Study

POOLED, INDEPENDENT = "pooled rows again", "independent columns"
OURS = "splitmeans"

# One in five rows is held out for the classifier.
_HELD_OUT = 5
_SEGMENTS = 10


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run of all contenders.

    Attributes:
        data: Name of the table.
        n_parties: Between how many its columns are split.
        epsilon: The whole budget.
        seed: Decides what is drawn and the noise.
    """

    data: str
    n_parties: int
    epsilon: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What all runs share."""

    n: int = 40_000
    delta: float = 1e-6
    data_dir: Path | None = None
    peers: tuple[str, ...] = ()
    peer_options: PeerOptions = field(default_factory=PeerOptions)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A contender's result in a case; without measures it was given up."""

    contender: str
    case: Case
    measures: dict[str, float] | None
    processor_seconds: float | None


def run_contest(cases: Sequence[Case], setup: Setup, *, workers: int) -> Iterator[list[Row]]:
    """Yield the rows of each case as they finish."""
    jobs = [(case, setup) for case in cases]
    for _, rows in run_jobs(run_case, jobs, workers=workers):
        yield rows


def run_case(case: Case, setup: Setup) -> list[Row]:
    """Return what every contender reaches."""
    table = load_table(case.data, seed=case.seed, n=setup.n, data_dir=setup.data_dir)
    rng = np.random.default_rng([case.seed, 0xC0])
    order = rng.permutation(len(table.rows))
    cut = len(order) // _HELD_OUT
    held_out, used = table.rows.take(order[:cut]), table.rows.take(order[cut:])
    coder = Coder.of(table, used)
    real = coder.codes(used)

    def row(contender: str, codes: IntArray | None, seconds: float | None) -> Row:
        if codes is None:
            return Row(contender=contender, case=case, measures=None, processor_seconds=seconds)
        found = distance(
            real,
            codes,
            coder=coder,
            parties=table.splits[case.n_parties],
            target=[column.name for column in table.columns].index(table.target),
            held_out=coder.codes(held_out),
        )
        return Row(
            contender=contender, case=case, measures=asdict(found), processor_seconds=seconds
        )

    again = real[rng.integers(len(real), size=len(real))]
    apart = np.stack([rng.permutation(column) for column in real.T], axis=1)
    rows = [row(POOLED, again, None), row(INDEPENDENT, apart, None)]
    for name, options in OWN_FORMS.items():
        start = time.process_time()
        drawn = own_rows(table, used, case, delta=setup.delta, **options)
        seconds = time.process_time() - start
        rows.append(row(name, coder.codes(drawn), seconds))
    for method in setup.peers:
        found = peer_rows(
            method,
            real,
            sizes=coder.sizes,
            epsilon=case.epsilon,
            delta=setup.delta,
            seed=case.seed,
            options=setup.peer_options,
        )
        rows.append(row(peer_name(method), *(found or (None, None))))
    return rows


def peer_name(method: str) -> str:
    """Return what tables call a method of others."""
    assert method in PEERS
    return f"{method.upper()}, pooled"


# What of splitmeans takes part: arguments of the study for each.
OWN_FORMS: dict[str, dict[str, Any]] = {
    OURS: {},
    f"{OURS}, detail": {"detail": DetailOptions()},
}


def own_study(table: MixedTable, case: Case, *, delta: float, rows: int, **options: Any) -> Study:
    """Return the study of a case; its parties hold what the table's split says."""
    split = table.splits[case.n_parties]
    parties = tuple(
        PartySpec(
            name=f"party {number + 1}",
            columns=tuple(c for c, at in zip(table.columns, split, strict=True) if at == number),
        )
        for number in range(case.n_parties)
    )
    return Study(
        name="synthetic rows",
        parties=parties,
        n_clusters=_SEGMENTS,
        budget=Budget(epsilon=case.epsilon, delta=delta),
        expected_users=int(float(f"{rows:.0e}")),
        **options,
    )


def own_rows(
    table: MixedTable, used: pa.Table, case: Case, *, delta: float, **options: Any
) -> pa.Table:
    """Run the study and draw as many rows as there are."""
    study = own_study(table, case, delta=delta, rows=len(used), **options)
    blocks = [used.select([c.name for c in party.columns]) for party in study.parties]
    ids = [np.arange(len(used))] * len(blocks)
    model = VerticalKMeans(noise=InsecureSeededNoise(case.seed), random_state=case.seed)
    model.allow_clipping = True
    model.fit_study(study, blocks, ids=ids)
    drawn = model.synopsis_.sample(len(used), random_state=case.seed)
    return drawn.rename_columns([name.split(": ", 1)[1] for name in drawn.column_names])
