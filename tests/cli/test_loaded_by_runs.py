"""What the processes of a run load: each library takes longer to load than a run's own work."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import whole_run

# What no participant needs, whatever is installed: others' tables, models, screens, HTTP.
NEVER = {
    *("pandas", "polars", "duckdb", "scipy", "sklearn", "matplotlib"),
    *("rich", "httpx", "httpcore", "requests", "trio", "starlette", "uvicorn", "fsspec"),
}
COMPILER = {"numba"}
ARRAYS = {"numpy", "pyarrow", "llvmlite", "pandas", "scipy"}

# Reads a table whose ids and categories are looked at in every way, as `party run` does.
READ = """
import sys
import splitmeans.cli.party, splitmeans.cli.server, splitmeans.mailbox.http
from splitmeans.study.parties import Column, PartySpec
from splitmeans.table.sources.open import open_source
party = PartySpec(
    name="bank",
    columns=(
        Column(name="income", low=0.0, high=100.0, missing="midpoint"),
        Column(name="region", categories=("north", "south"), missing="level"),
    ),
    id_column="id",
)
with open_source(party, sys.argv[1], allow_clipping=True) as table:
    print(len(table), *sorted({name.split(".")[0] for name in sys.modules}))
"""

# The command, which writes down what it has loaded when it ends.
COMMAND = """
import atexit, json, os, sys
from splitmeans.cli import main
atexit.register(lambda: open(f"loaded-{sys.argv[1]}-{os.getpid()}.json", "w").write(
    json.dumps(sorted({name.split(".")[0] for name in sys.modules}))))
main()
"""


def test_a_table_with_gaps_and_odd_ids_is_read_without_pandas(tmp_path: Path) -> None:
    table = {
        "id": ["007", " x ", "Ab", "né", *map(str, range(96))],
        "income": pa.array([None, 3.5, *range(98)], pa.float64()),
        "region": [None, "north", *["south"] * 98],
    }
    pq.write_table(pa.table(table), tmp_path / "bank.parquet")
    done = subprocess.run(
        [sys.executable, "-c", READ, str(tmp_path / "bank.parquet")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows, *loaded = done.stdout.split()
    assert rows == "100"
    assert not NEVER & set(loaded)


@pytest.mark.slow
def test_no_process_of_a_run_loads_what_it_does_not_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole_run.agree(tmp_path, 200)
    whole_run.run_five(tmp_path, "first")  # compiles what was not compiled yet
    monkeypatch.setattr(
        whole_run, "_splitmeans", lambda *given: [sys.executable, "-c", COMMAND, *given]
    )
    whole_run.run_five(tmp_path, "second")
    loaded = {
        file.name: set(json.loads(file.read_text())) for file in tmp_path.glob("loaded-*.json")
    }
    assert len(loaded) == 5
    for name, modules in loaded.items():
        if name.startswith("loaded-relay"):
            assert not (NEVER - {"starlette", "uvicorn"} | ARRAYS | COMPILER) & modules, name
        else:
            assert "numpy" in modules
            assert not (NEVER | COMPILER) & modules, name
