"""Workers that lack what the driver has."""

import os
import subprocess
import sys

import pytest

from .conftest import ROOT

SCRIPT = """
from splitmeans.table.spark import open_spark, start_session
from splitmeans.errors import EngineError
from splitmeans.study import Column, PartySpec

spark = start_session("local[1]", settings={"spark.ui.enabled": "false"})
party = PartySpec(name="bank", columns=(Column(name="x", low=0, high=1),))
try:
    open_spark(party, spark.createDataFrame([(1, 0.5)], "id long, x double"), spool=".")
except EngineError as problem:
    print("refused:", problem)
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.usefixtures("spark")  # skips where Spark cannot run
def test_workers_without_packages_are_refused_with_the_fix(tmp_path):
    python = tmp_path / "python"
    # A Python without its installed packages; Spark's own travel with it.
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH=$(echo "$PYTHONPATH" | tr : "\\n" | grep zip | '
        f'paste -sd:) exec "{sys.executable}" -S "$@"\n'
    )
    python.chmod(0o700)
    environment = os.environ | {"PYSPARK_PYTHON": str(python), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
        timeout=300,
    )
    assert "refused: " in done.stdout, done.stderr[-2000:]
    assert "install" in done.stdout
    assert list(tmp_path.iterdir()) == [python]
