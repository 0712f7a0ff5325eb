"""Measure stages and peers at several numbers of users, each in a process of its own."""

import dataclasses
import os
import platform
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.speed.inputs import N_CLUSTERS, N_COLUMNS, Inputs
from benchmarks.speed.measure import ChildError, in_child, measure
from benchmarks.speed.peers import PEERS
from benchmarks.speed.results import FAILED, MEASURED, NOT_INSTALLED, SKIPPED, Row
from benchmarks.speed.stage import GROUPS, Peer, Stage
from benchmarks.speed.stages import STAGES
from splitmeans import _validate
from splitmeans.errors import SplitmeansError

# What `quick` runs instead.
QUICK_SIZES = (20_000,)

# Users of the table that loads and compiles everything before a measurement.
_WARM_USERS = 1_000

_LIBRARIES = (
    *("numpy", "numba", "pyarrow", "scikit-learn"),
    *("pandas", "duckdb", "datasketch", "datasketches", "diffprivlib"),
)


def run_speed(
    *,
    sizes: Sequence[int],
    groups: Sequence[str] = GROUPS,
    repeat: int = 3,
    peers: bool = True,
    cores: int = 2,
    isolated: bool = True,
    folder: Path | None = None,
) -> Iterator[Row]:
    """Measure everything that is asked for and yield rows as they are found.

    Args:
        sizes: Numbers of users.
        groups: Parts of a run, from `GROUPS`.
        repeat: Runs of each task, of which the shortest counts.
        peers: Whether to measure peers too.
        cores: Processor cores that every measuring process may use.
        isolated: Whether every measurement has a process of its own. One process for all starts
            once, which saves minutes, and cannot tell how much memory a stage needs.
        folder: Where tables are kept meanwhile, about 280 bytes a user; None takes the system's.
    """
    for n in sizes:
        _validate.at_least(_WARM_USERS, sizes=n)
    for group in groups:
        _validate.one_of(GROUPS, stages=group)
    _validate.at_least(1, repeat=repeat, cores=cores)
    with tempfile.TemporaryDirectory(prefix="splitmeans-speed-", dir=folder) as name:
        warm = Inputs(folder=Path(name) / "warm", n=_WARM_USERS)
        warm.write()
        for n in sorted(sizes):
            inputs = Inputs(folder=Path(name) / str(n), n=n)
            in_child(_write, inputs, cores=cores)
            parts = jobs(n, sizes=sizes, groups=groups, peers=peers)
            if isolated:
                for part in parts:
                    yield measure_part(part, inputs, warm=warm, repeat=repeat, cores=cores)
            else:
                names = [part.name for part in parts]
                yield from in_child(measure_all_here, names, inputs, warm, repeat, cores=cores)
            for file in inputs.folder.iterdir():
                file.unlink()


def jobs(n: int, *, sizes: Sequence[int], groups: Sequence[str], peers: bool) -> list[Stage]:
    """Return what is measured at this n: stages that do not depend on n once only, at the end."""
    stages = [
        stage
        for stage in STAGES.values()
        if stage.group in groups and (stage.by_users or n == max(sizes))
    ]
    return [*stages, *(peer for peer in PEERS.values() if peers and peer.group in groups)]


def measure_part(part: Stage, inputs: Inputs, *, warm: Inputs, repeat: int, cores: int) -> Row:
    """Measure one stage or peer in a fresh process; what goes wrong becomes part of the row."""
    try:
        return in_child(measure_here, part.name, inputs, warm, repeat, cores=cores)
    except ChildError as problem:
        return _row(part, inputs.n, status=FAILED, reason=str(problem))


def measure_all_here(names: Sequence[str], inputs: Inputs, warm: Inputs, repeat: int) -> list[Row]:
    """Measure several stages and peers in this process; nothing is said about memory."""
    return [
        dataclasses.replace(
            measure_here(name, inputs, warm, repeat), peak_bytes=None, working_bytes=None
        )
        for name in names
    ]


def measure_here(name: str, inputs: Inputs, warm: Inputs, repeat: int) -> Row:
    """Measure one stage or peer in this process."""
    part = STAGES.get(name) or PEERS[name]
    if isinstance(part, Peer) and inputs.n > part.most_users:
        reason = f"would take minutes above {part.most_users:,} users"
        return _row(part, inputs.n, status=SKIPPED, reason=reason)
    try:
        part.ready(warm).task()
        prepared = part.ready(inputs)
        found = measure(prepared.task, repeat=repeat)
    except ImportError as problem:
        return _row(part, inputs.n, status=NOT_INSTALLED, reason=str(problem))
    except (SplitmeansError, MemoryError) as problem:
        return _row(part, inputs.n, status=FAILED, reason=str(problem) or "out of memory")
    figures = dataclasses.asdict(found) | {"seconds": found.seconds * prepared.factor}
    return _row(part, inputs.n, status=MEASURED, scaled=prepared.scaled, **figures)


def environment(*, cores: int) -> dict[str, Any]:
    """Return what figures depend on beside the code."""
    versions = {}
    for library in _LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            versions[library] = "not installed"
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor_name(),
        "processors": os.cpu_count(),
        "cores_allowed": cores,
        "load_before": os.getloadavg()[0],
        "columns": N_COLUMNS,
        "clusters": N_CLUSTERS,
        "libraries": versions,
    }


def processor_name() -> str:
    """Return the processor's name, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _write(inputs: Inputs) -> None:
    inputs.write()


def _row(part: Stage, n: int, *, status: str, **values: Any) -> Row:
    return Row(
        name=part.name,
        group=part.group,
        peer=isinstance(part, Peer),
        n=n,
        by_users=part.by_users,
        status=status,
        **values,
    )
