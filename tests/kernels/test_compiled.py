"""How kernels are compiled, where the code is kept, and what is printed meanwhile."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from splitmeans.kernels import compiled
from splitmeans.kernels.assign import nearest
from splitmeans.kernels.compiled import kernel

CALL = """
import numpy as np
from splitmeans.kernels.packing import pack_bits, unpack_bits
values = np.array([1, 0, 1], dtype=np.uint8)
print(*unpack_bits(pack_bits(values, width=1), 3, width=1)[0])
"""


K_MEANS = """
import numpy as np
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
weighted_kmeans(np.eye(4), np.ones(4), n_clusters=2, rng=np.random.default_rng(0), starts=1)
"""


def call(folder: Path, code: str = CALL, **environment: str) -> subprocess.CompletedProcess[str]:
    changed = os.environ | {"NUMBA_CACHE_DIR": str(folder), **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=changed, capture_output=True, text=True, check=True
    )


def kept(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nbc"))


def test_the_first_process_compiles_and_prints_it_and_the_next_one_does_neither(
    tmp_path: Path,
) -> None:
    first = call(tmp_path)
    assert first.stdout == "1 0 1\n"
    assert first.stderr.count("\n") == 1
    assert "once per installation" in first.stderr
    code = kept(tmp_path)
    assert code
    assert {path.relative_to(tmp_path).parts[:2] for path in code} == {
        ("splitmeans", compiled.cache_folder().name)
    }
    before = [path.stat().st_mtime_ns for path in code]
    second = call(tmp_path)
    assert (second.stdout, second.stderr) == ("1 0 1\n", "")
    assert [path.stat().st_mtime_ns for path in kept(tmp_path)] == before


def test_compiling_a_kernel_of_another_package_is_printed_too(tmp_path: Path) -> None:
    assert call(tmp_path, K_MEANS).stderr.count("compiling splitmeans") == 1


def test_a_folder_that_cannot_be_made_keeps_nothing_and_the_kernel_still_runs(
    tmp_path: Path,
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    other = tmp_path / "home"
    assert call(blocked / "cache", HOME=str(other)).stdout == "1 0 1\n"
    assert kept(tmp_path) == []


def test_the_folder_changes_with_any_kernels_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(compiled.__file__).parents[1]
    kernels = [
        path.relative_to(package)
        for path in sorted(package.rglob("*.py"))
        if "\n@kernel" in path.read_text()
    ]
    assert {path.parent.name for path in kernels} == set(compiled.PACKAGES)
    for name in compiled.PACKAGES:
        shutil.copytree(package / name, tmp_path / name)
    monkeypatch.setattr(compiled, "__file__", str(tmp_path / "kernels" / "compiled.py"))
    folder = compiled.cache_folder.__wrapped__
    names = {folder().name}
    for path in kernels:
        with (tmp_path / path).open("a") as file:
            file.write("# changed\n")
        names.add(folder().name)
    assert len(names) == len(kernels) + 1


def test_division_follows_numpy_and_sums_are_not_reordered() -> None:
    @kernel
    def divided(values):
        return values[0] / values[1]

    @kernel
    def left_to_right(values):
        total = 0.0
        for value in values:
            total += value
        return total

    assert divided(np.array([1.0, 0.0])) == np.inf
    rng = np.random.default_rng(0)
    values = rng.normal(size=1000) * 10.0 ** rng.integers(-12, 12, size=1000)
    expected = 0.0
    for value in values.tolist():
        expected += value
    assert left_to_right(values) == expected


def test_rows_that_skip_memory_are_taken() -> None:
    rows = np.arange(24).reshape(6, 4)[::2, ::3]
    centres = np.array([[0, 3], [16, 19]])
    assert nearest(rows, centres).tolist() == nearest(rows.copy(), centres).tolist()
