"""All stages of a run by name; here the ones that take every participant: planning, runs, fits."""

import itertools
from functools import partial

from splitmeans import protocol
from splitmeans.bench.speed.inputs import Inputs
from splitmeans.bench.speed.measure import Task
from splitmeans.bench.speed.party import PARTY_STAGES
from splitmeans.bench.speed.server import SERVER_STAGES
from splitmeans.bench.speed.stage import Stage
from splitmeans.party.table import prepare_table
from splitmeans.plan import make_plan
from splitmeans.study import Study

_numbers = itertools.count(1)


def _new_study(inputs: Inputs, method: str) -> Study:
    """Return a study that this process has no plan of yet.

    Plans are remembered within a process. A budget that differs in its last digits makes every run
    find its own, as a real one has to.
    """
    return inputs.study(method, epsilon=1 + 1e-9 * next(_numbers))


def _plan(inputs: Inputs, *, method: str) -> Task:
    def task() -> None:
        make_plan(_new_study(inputs, method))

    return task


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


_WHOLE_STAGES = (
    *(
        Stage(
            name=f"plan {method}",
            group="plan",
            prepare=partial(_plan, method=method),
            by_users=False,
        )
        for method in ("decoy", "sketch")
    ),
    *(
        Stage(name=f"run {method}", group="fit", prepare=partial(_run, method=method))
        for method in ("decoy", "sketch")
    ),
    *(
        Stage(name=f"check and run {method}", group="fit", prepare=partial(_fit, method=method))
        for method in ("decoy", "sketch")
    ),
)

STAGES = {stage.name: stage for stage in (*PARTY_STAGES, *SERVER_STAGES, *_WHOLE_STAGES)}
