"""Object code that a wheel brings: found, refused where it does not fit, and put into a wheel."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from splitmeans.errors import SplitmeansError
from splitmeans.kernels import compiled, compiling, make_ready, ready, warm_up
from splitmeans.kernels.compiled import Kernel, kernel
from splitmeans.kernels.object_code import can_link, stored

DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
LEVEL = next(iter(ready.LEVELS.get(ready.system(), {})), None)
linked = pytest.mark.skipif(
    DISABLED or not can_link() or LEVEL is None, reason="no object code of a wheel here"
)


@kernel
def _added(values):
    total = 0.0
    for value in values:
        total += value
    return total


@pytest.fixture(autouse=True)
def nothing_read():
    ready._file.cache_clear()
    yield
    ready._file.cache_clear()


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A folder with the code of one kernel, for the level of instructions that comes first."""
    own = tmp_path / "own"
    monkeypatch.setattr(compiled, "object_folder", lambda: own)
    monkeypatch.setattr(ready, "FOLDER", tmp_path)
    assert call() == 6.0
    (file,) = own.iterdir()
    ready.write_ready(tmp_path / f"{LEVEL}.code", {file.name: stored(own, file.name)})
    file.unlink()
    monkeypatch.setattr(ready, "_features", lambda: frozenset(ready.LEVELS[ready.system()][LEVEL]))
    ready._file.cache_clear()
    return tmp_path / f"{LEVEL}.code"


def call():
    return Kernel(_added.function, fastmath=False)(np.array([1.0, 2.0, 3.0]))


def compiles(monkeypatch) -> bool:
    """Whether a call compiles."""
    calls, make = [], compiling.compile_kernel
    with monkeypatch.context() as patch:
        patch.setattr(compiling, "compile_kernel", lambda *args: (calls.append(1), make(*args))[1])
        assert call() == 6.0
    return bool(calls)


@linked
def test_nothing_is_compiled_where_a_wheel_has_the_code(shipped, monkeypatch):
    assert not compiles(monkeypatch)
    assert warm_up.is_warm()


@linked
def test_types_that_it_does_not_have_are_compiled(shipped):
    other = Kernel(_added.function, fastmath=False)
    assert other(np.array([1, 2, 3])) == 6.0


@linked
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"{}\n" + data,
        lambda data: data[:-1],
        lambda data: data.replace(b'"sources": "', b'"sources": "0'),
    ],
)
def test_a_file_that_is_damaged_or_of_other_sources_is_not_used(shipped, monkeypatch, damage):
    shipped.write_bytes(damage(shipped.read_bytes()))
    assert compiles(monkeypatch)


@linked
def test_a_processor_that_can_do_less_does_not_use_it(shipped, monkeypatch):
    needed = ready.LEVELS[ready.system()][LEVEL]
    monkeypatch.setattr(ready, "_features", lambda: frozenset(needed[1:]))
    ready._file.cache_clear()
    assert not ready.is_ready()
    assert compiles(monkeypatch)


def test_another_system_has_none(monkeypatch):
    monkeypatch.setattr(ready, "system", lambda: "plan9-mips")
    assert not ready.is_ready()
    assert ready.ready("assign._pass_over") is None


@linked
def test_code_is_not_made_of_code_that_came_with_a_wheel(shipped, tmp_path):
    with pytest.raises(SplitmeansError, match="make them from sources"):
        make_ready.make_ready(tmp_path / "more")


@linked
def test_making_writes_what_every_level_compiled(tmp_path, monkeypatch):
    """Compiling is stood in for: it takes a minute, and `make dist` does it."""
    own = tmp_path / "own"
    monkeypatch.setattr(compiled, "object_folder", lambda: own)
    call()
    asked = []

    def run(command, *, env, **_):
        asked.append(env["NUMBA_CPU_NAME"])
        return type("Done", (), {"stdout": f"{own}\n"})

    monkeypatch.setattr(make_ready.subprocess, "run", run)
    files = make_ready.make_ready(tmp_path / "code")
    assert [file.stem for file in files] == asked == list(ready.LEVELS[ready.system()])
    for file in files:
        told = json.loads(file.read_bytes().partition(b"\n")[0])
        assert list(told["kernels"]) == [one.name for one in own.iterdir()]


def test_the_tag_of_a_wheel_says_its_platform(tmp_path, monkeypatch):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    try:
        from hatch_build import CompiledKernels
    finally:
        sys.path.pop(0)
    hook = object.__new__(CompiledKernels)
    data = {"force_include": {}}
    monkeypatch.delenv("SPLITMEANS_OBJECT_CODE", raising=False)
    hook.initialize("standard", data)
    assert data == {"force_include": {}}
    monkeypatch.setenv("SPLITMEANS_OBJECT_CODE", str(tmp_path))
    with pytest.raises(SystemExit, match="no code for a wheel"):
        hook.initialize("standard", data)
    (tmp_path / "x86-64-v3.code").touch()
    hook.initialize("editable", data)
    assert data == {"force_include": {}}
    if sys.platform == "linux":
        hook.initialize("standard", data)
        assert data["pure_python"] is False
        assert data["tag"].startswith("py3-none-manylinux_2_28_")
        assert list(data["force_include"].values()) == ["splitmeans/kernels/ready/x86-64-v3.code"]
