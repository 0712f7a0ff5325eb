"""Spark itself: is it there, does it start, can its workers do our work, and what went wrong."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from splitmeans import errors
from splitmeans.errors import EngineError, SplitmeansError
from splitmeans.kernels.compiled import cache_folder

# Spark 4 needs it.
MIN_JAVA = 17

# More rows than any cluster runs tasks.
_MANY_ROWS = 2**20

_INSTALL = 'install it with: pip install "splitmeans[spark]"'


def start_session(
    master: str = "local[*]", *, settings: Mapping[str, str] | None = None, name: str = "splitmeans"
) -> Any:
    """Start a Spark session, after a check that Spark and Java are there.

    A party that has a session (a notebook, a job of `spark-submit`) uses its own instead.

    Args:
        master: Where Spark runs: "local[4]", "yarn", "spark://host:7077" and so on; "sc://host" is
            a server of Spark Connect.
        settings: Further settings of Spark.
        name: What Spark's own pages call the application.

    Raises:
        EngineError: If pyspark or Java is missing, or Java is too old.
    """
    check_pyspark()
    is_server = master.startswith("sc://")
    if is_server:
        _check_connect()
    else:
        check_java()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if master.startswith("local"):
        # Workers on this machine are to be this Python, not whatever is called python3.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # Nobody else on the network is to reach a session that has a party's rows.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder
    builder = builder.remote(master) if is_server else builder.master(master).appName(name)
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except PySparkException as problem:
        raise EngineError(f"Spark did not start ({_condition(problem)}); see its log") from problem


def check_pyspark() -> None:
    """Refuse if pyspark, or pandas which it needs for Arrow, is not installed."""
    try:
        import pandas  # noqa: F401
        import pyspark
    except ImportError as problem:
        raise EngineError(f"tables in Spark need {problem.name}; {_INSTALL}") from None
    major = int(pyspark.__version__.split(".")[0])
    if major < 4:
        raise EngineError(
            f"tables in Spark need pyspark 4 or newer, found {pyspark.__version__}; {_INSTALL}"
        )


def _check_connect() -> None:
    """Refuse if what a client of Spark Connect needs is not installed."""
    try:
        import google.rpc  # noqa: F401
        import grpc  # noqa: F401
        import grpc_status  # noqa: F401
    except ImportError as problem:
        raise EngineError(
            f'Spark Connect needs {problem.name}; install it with: pip install "pyspark[connect]"'
        ) from None


def is_remote(session: Any) -> bool:
    """Say whether a session is one of Spark Connect: it has no Java in this process."""
    return not hasattr(session, "_jsparkSession")


def own_session(session: Any) -> Any:
    """Return another session of the same Spark, whose settings are its own.

    Raises:
        EngineError: If pyspark is too old for that with Spark Connect.
    """
    with running("opening a session of its own"):
        try:
            return session.newSession()
        except (AttributeError, NotImplementedError):
            raise EngineError(
                "a table of a Spark Connect session needs pyspark 4.3 or newer, here and at the "
                "server; older ones can use spark-submit, or a cluster of your own"
            ) from None


def check_java() -> int:
    """Return the version of the Java that pyspark would start, or refuse."""
    fix = (
        f"install Java {MIN_JAVA} or newer (Debian: apt-get install "
        f"openjdk-{MIN_JAVA}-jre-headless), or let JAVA_HOME name its folder"
    )
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else "java"
    found = shutil.which(program)
    if found is None:
        where = f"JAVA_HOME has no {program}" if home else "there is no `java` on the PATH"
        raise EngineError(f"Spark needs Java, and {where}; {fix}")
    try:
        said = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        raise EngineError(f"Spark needs Java, and {found} does not run; {fix}") from None
    # "17.0.15", or "1.8.0_392" as versions were written before 9.
    match = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if match is None:
        raise EngineError(f"Spark needs Java, and {found} does not tell its version; {fix}")
    if int(match[1]) < MIN_JAVA:
        raise EngineError(f"Spark needs Java {MIN_JAVA} or newer, {found} is {match[1]}; {fix}")
    return int(match[1])


def check_workers(session: Any) -> int:
    """Return how many tasks Spark runs at the same time.

    Refuses if its Python workers have no splitmeans, or another one than the driver.
    """
    from pyspark.sql import functions as sql

    with running("looking at the workers"):
        # Not asked of the context, which Spark Connect does not have: a range has as many parts.
        parts = session.range(_MANY_ROWS).select(sql.spark_partition_id().alias("part"))
        tasks = max(1, int(parts.distinct().count()))
        frame = session.range(0, tasks, 1, tasks).mapInArrow(_probe_function(), "said string")
        found = {row.said for row in frame.collect()}
    own = cache_folder().name
    if other := found - {own}:
        missing = sorted(text.removeprefix("no ") for text in other if text.startswith("no "))
        what = f"do not have {', '.join(missing)}" if missing else "have another splitmeans"
        raise EngineError(
            f"Spark's Python workers {what}; install the driver's version of splitmeans on every "
            "worker (a cluster library, or an environment shipped with --archives), and let "
            "PYSPARK_PYTHON name its Python"
        )
    return tasks


def _probe_function() -> Callable[[Any], Any]:
    """Return what tells a worker's version; it travels whole: splitmeans may not be there."""

    def probe(batches: Any) -> Any:
        for batch in batches:
            try:
                import splitmeans.table.spark.tasks  # noqa: F401
                from splitmeans.kernels.compiled import cache_folder

                said = cache_folder().name
            except ImportError as problem:
                said = f"no {problem.name}"
            yield pa.record_batch({"said": pa.array([said] * batch.num_rows, pa.string())})

    return probe


@contextlib.contextmanager
def running(what: str) -> Iterator[None]:
    """Turn the errors of Spark into ours.

    Without their text and cause: both may quote values, and Spark's log has them.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as problem:
        text = str(problem)
        if "No module named" in text:
            why = "a package is missing on a worker: install splitmeans there as on the driver"
        elif re.search("OutOfMemory|MemoryError|exit code 137|ExecutorLostFailure", text):
            why = "a worker was lost or had too little memory: give executors more of it"
        elif re.search("No space left|DiskErrorException", text):
            why = "a disk is full: choose a spool folder with enough room"
        else:
            why = "its log has the cause"
        raise EngineError(f"Spark stopped while {what} ({_condition(problem)}); {why}") from None


def small_table(frame: Any) -> pa.Table:
    """Return a frame of few and short rows."""
    frame.sparkSession.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    return frame.toArrow()


def raise_problem(description: str, *, where: str = "") -> None:
    """Raise what a worker described."""
    kind, _, text = description.partition(": ")
    found = getattr(errors, kind, SplitmeansError)
    raise found(f"{where}{text}")


def _condition(problem: Exception) -> str:
    """Return the name of an error without its text."""
    condition = getattr(problem, "getCondition", lambda: None)()
    java = getattr(getattr(problem, "java_exception", None), "getClass", None)
    name = java().getSimpleName() if java is not None else type(problem).__name__
    return str(condition or name)
