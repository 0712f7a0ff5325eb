"""All stages of a run by name; here the ones that take every participant: planning, runs, fits."""

import itertools
from functools import partial

from benchmarks.speed.inputs import Inputs
from benchmarks.speed.measure import Task
from benchmarks.speed.party import PARTY_STAGES
from benchmarks.speed.server import SERVER_STAGES
from benchmarks.speed.stage import Stage
from benchmarks.speed.start import START_STAGES
from splitmeans import protocol
from splitmeans.plan.settle import make_plan
from splitmeans.study import Study
from splitmeans.table.prepare import prepare_table

_numbers = itertools.count(1)


def _new_study(inputs: Inputs, method: str) -> Study:
    """Return a study that this process has no plan of yet.

    Plans are remembered within a process. A budget that differs in its last digits makes every run
    find its own, as a real one has to.
    """
    return inputs.study(method, epsilon=1 + 1e-9 * next(_numbers))


def _plan(inputs: Inputs, *, method: str) -> Task:
    return lambda: make_plan(_new_study(inputs, method))


def _run(inputs: Inputs, *, method: str) -> Task:
    tables = inputs.tables()

    def task() -> int:
        study = _new_study(inputs, method)
        return protocol.run(study, tables).bytes_from(study.party_names[0])

    return task


def _fit(inputs: Inputs, *, method: str) -> Task:
    raw_tables = [inputs.arrow(party) for party in range(2)]

    def task() -> int:
        study = _new_study(inputs, method)
        tables = [
            prepare_table(party, table)
            for party, table in zip(study.parties, raw_tables, strict=True)
        ]
        return protocol.run(study, tables).bytes_from(study.party_names[0])

    return task


_WHOLE_STAGES = [
    Stage(
        name=f"{name} {method}",
        group=group,
        prepare=partial(prepare, method=method),
        by_users=group != "plan",
    )
    for name, group, prepare in (
        ("plan", "plan", _plan),
        ("run", "fit", _run),
        ("check and run", "fit", _fit),
    )
    for method in ("decoy", "sketch")
]

STAGES = {
    stage.name: stage for stage in (*PARTY_STAGES, *SERVER_STAGES, *_WHOLE_STAGES, *START_STAGES)
}
