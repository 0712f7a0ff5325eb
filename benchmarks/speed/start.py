"""What people wait for: a fit in a process that has just started, and one that has not; commands.

The first fit of a process loads libraries, plans and reads compiled kernels; the first one on a
machine compiles them as well. A fit of a process that has done one before is what experiments
repeat, and what is compared with k-means on the pooled table. Commands are processes of their own,
so all that they load counts: `party run` of three parties with `server run` and `relay serve`. The
first run of each finds no bytecode, and is not the shortest.
"""

import atexit
import contextlib
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.kept_bytecode import environment
from benchmarks.speed.inputs import N_CLUSTERS, N_COLUMNS, Inputs
from benchmarks.speed.measure import Task
from benchmarks.speed.stage import Stage
from benchmarks.whole_run import agree, run_five

FIT = "VerticalKMeans.fit, labels included"
_FIRST_USERS = 20_000
FIRST_FIT = f"first fit of {_FIRST_USERS:,} users from process start, compiled before"
FIRST_FIT_OF_ALL = f"first fit of {_FIRST_USERS:,} users from process start, nothing compiled"
HELP = "splitmeans --help"
WHOLE_RUN = f"party run of 3 parties with {_FIRST_USERS:,} users, server run and relay, over TLS"

_FIRST_FIT = f"""
import sys, warnings
import numpy as np
from splitmeans import VerticalKMeans
warnings.simplefilter("ignore")
rows = np.load(sys.argv[1], mmap_mode="r")[:{_FIRST_USERS}]
blocks = np.split(rows, [{N_COLUMNS // 2}], axis=1)
VerticalKMeans({N_CLUSTERS}, bounds=(-1, 1)).fit(blocks).labels_
"""


def _fit(inputs: Inputs) -> Task:
    from splitmeans import VerticalKMeans

    half = N_COLUMNS // 2
    blocks = [inputs.rows[:, :half], inputs.rows[:, half:]]

    def task() -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of another number of users than expected_users
            model = VerticalKMeans(N_CLUSTERS, bounds=(-1, 1)).fit(blocks)
        _ = model.labels_  # worked out when it is asked for; k-means has them, too
        return int(model.result_.bytes_from("party1"))

    return task


def _first_fit(inputs: Inputs, *, compiled: bool) -> Task:
    command = [sys.executable, "-c", _FIRST_FIT, str(inputs.folder / "rows.npy")]

    def task() -> None:
        with contextlib.ExitStack() as folders:
            changes = {} if compiled else folders.enter_context(_no_kernels())
            subprocess.run(command, env=environment() | changes, check=True)

    return task


def _help(_: Inputs) -> Task:
    command = [sys.executable, "-m", "splitmeans", "--help"]
    return lambda: subprocess.run(command, env=environment(), check=True, capture_output=True)


def _whole_run(inputs: Inputs) -> Task:
    users = min(inputs.n, _FIRST_USERS)
    kept = tempfile.TemporaryDirectory(prefix="splitmeans-whole-run-")
    atexit.register(kept.cleanup)
    agree(Path(kept.name), users)
    numbers = iter(range(10_000))

    def task() -> None:
        run_five(Path(kept.name), f"run-{next(numbers)}")

    return task


@contextlib.contextmanager
def _no_kernels() -> Iterator[dict[str, str]]:
    """Give the changes of the environment under which no compiled kernel is found."""
    with tempfile.TemporaryDirectory(prefix="splitmeans-no-kernels-") as nothing:
        yield {"NUMBA_CACHE_DIR": nothing}


START_STAGES = (
    Stage(name=FIT, group="fit", prepare=_fit),
    *(
        Stage(name=name, group="start", prepare=prepare, by_users=False)
        for name, prepare in (
            (HELP, _help),
            (FIRST_FIT, partial(_first_fit, compiled=True)),
            (FIRST_FIT_OF_ALL, partial(_first_fit, compiled=False)),
            (WHOLE_RUN, _whole_run),
        )
    ),
)
