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
from benchmarks.synthetic.measures import distances
from benchmarks.synthetic.peers import PEERS, PeerOptions, peer_rows
from benchmarks.synthetic.tables import MixedTable, load_table
from splitmeans import VerticalKMeans
from splitmeans._types import IntArray
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study import Budget, DetailOptions, PartySpec, Study

POOLED, INDEPENDENT = "pooled rows again", "independent columns"
OURS, DETAIL = "splitmeans", "splitmeans, detail"

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
    """Yield the rows of cases as they finish: those of one table, epsilon and seed together.

    What sees pooled rows does not depend on who holds which columns, so it is fitted once for all
    numbers of parties.
    """
    alike: dict[tuple[str, float, int], list[Case]] = {}
    for case in cases:
        alike.setdefault((case.data, case.epsilon, case.seed), []).append(case)
    jobs = [(tuple(group), setup) for group in alike.values()]
    for _, rows in run_jobs(run_cases, jobs, workers=workers):
        yield rows


def run_cases(cases: Sequence[Case], setup: Setup) -> list[Row]:
    """Return what every contender reaches in cases that differ in the number of parties alone."""
    first = cases[0]
    table = load_table(first.data, seed=first.seed, n=setup.n, data_dir=setup.data_dir)
    rng = np.random.default_rng([first.seed, 0xC0])
    order = rng.permutation(len(table.rows))
    cut = len(order) // _HELD_OUT
    held_out, used = table.rows.take(order[:cut]), table.rows.take(order[cut:])
    coder = Coder.of(table, used)
    real, tested = coder.codes(used), coder.codes(held_out)
    target = [column.name for column in table.columns].index(table.target)

    def rows_of(
        contender: str, codes: IntArray | None, seconds: float | None, among: Sequence[Case]
    ) -> list[Row]:
        if codes is None:
            return [
                Row(contender=contender, case=case, measures=None, processor_seconds=seconds)
                for case in among
            ]
        splits = [table.splits[case.n_parties] for case in among]
        found = distances(real, codes, coder=coder, splits=splits, target=target, held_out=tested)
        return [
            Row(contender=contender, case=case, measures=asdict(one), processor_seconds=seconds)
            for case, one in zip(among, found, strict=True)
        ]

    again = real[rng.integers(len(real), size=len(real))]
    apart = np.stack([rng.permutation(column) for column in real.T], axis=1)
    rows = [*rows_of(POOLED, again, None, cases), *rows_of(INDEPENDENT, apart, None, cases)]
    for case in cases:
        for name, options in OWN_FORMS.items():
            start = time.process_time()
            drawn = own_rows(table, used, case, delta=setup.delta, **options)
            spent = time.process_time() - start
            rows += rows_of(name, coder.codes(drawn), spent, (case,))
    for method in setup.peers:
        found = peer_rows(
            method,
            real,
            sizes=coder.sizes,
            epsilon=first.epsilon,
            delta=setup.delta,
            seed=first.seed,
            options=setup.peer_options,
        )
        codes, seconds = (None, None) if found is None else found
        rows += rows_of(peer_name(method), codes, seconds, cases)
    return rows


def peer_name(method: str) -> str:
    """Return what tables call a method of others."""
    assert method in PEERS
    return f"{method.upper()}, pooled"


# What of splitmeans takes part: arguments of the study for each.
OWN_FORMS: dict[str, dict[str, Any]] = {
    OURS: {},
    DETAIL: {"detail": DetailOptions()},
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
