"""A real Spark cluster on this machine: a driver and two workers, each a process of its own."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from splitmeans.errors import EngineError
from splitmeans.table.spark import start_session

ROOT = Path(__file__).parents[2]
WORKERS = 2
# The least that an executor starts with.
EXECUTOR_MIB = 512


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Whichever test comes first starts the session, which warns.
    expected = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(expected)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session of a cluster with two workers of one core and 512 MiB each."""
    # Workers import splitmeans, and the functions of these tests, from here.
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    settings = {
        "spark.executor.memory": f"{EXECUTOR_MIB}m",
        "spark.executorEnv.PYTHONPATH": path,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    try:
        session = start_session(f"local-cluster[{WORKERS},1,{EXECUTOR_MIB}]", settings=settings)
    except EngineError as problem:
        pytest.skip(f"{problem}; `make spark` installs what is missing")
    yield session
    # Of such a cluster the workers' logs stay behind, beside Spark itself.
    home = Path(os.environ.get("SPARK_HOME") or pyspark_place())
    logs = home / "work" / session.sparkContext.applicationId
    session.stop()
    shutil.rmtree(logs, ignore_errors=True)


def pyspark_place() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent
