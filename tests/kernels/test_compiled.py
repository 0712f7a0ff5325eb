"""How kernels are compiled, where the code is kept, and that it does what numba's own does."""

import os
import subprocess
import sys
import threading

import numba
import numpy as np
import pytest

from splitmeans._version import __version__
from splitmeans.kernels import compiled, compiling, object_code
from splitmeans.kernels.assign import _clipped_sums, nearest
from splitmeans.kernels.compiled import Kernel, kernel, screening_kernel
from splitmeans.kernels.discrete_gaussian import _fill
from splitmeans.kernels.object_code import can_link, stored

DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
linked = pytest.mark.skipif(DISABLED or not can_link(), reason="no object code here")


@kernel
def _scaled(values, factor, out):
    """A kernel of the tests' own: strides, a scalar, a scratch array, a result of two numbers."""
    room = np.empty(values.shape[1])
    largest = np.int64(-1)
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            room[j] = values[i, j] * factor
        for j in range(values.shape[1]):
            out[i, j] = _twice(room[j])
            largest = max(largest, np.int64(out[i, j]))
    return largest, np.int64(values.size)


@kernel
def _twice(value):
    return 2.0 * value


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "object_folder", lambda: tmp_path)
    return tmp_path


def fresh(function=_scaled):
    """The kernel as in a new process."""
    return Kernel(function.function, fastmath=False)


def call(function, *, values=None, factor=1.5):
    values = np.arange(24.0).reshape(4, 6)[::2, ::3] if values is None else values
    out = np.zeros((len(values), 4))[:, ::2]
    return function(values, factor, out), out.tolist()


def test_the_folder_names_version_and_sources(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compiled.cache_folder.cache_clear()
    try:
        folder = compiled.cache_folder()
    finally:
        compiled.cache_folder.cache_clear()
    assert folder.parent == tmp_path / "splitmeans"
    assert folder.name.startswith(f"kernels-{__version__}-")


@linked
def test_object_code_and_numba_and_the_function_itself_agree(own_folder):
    expected = call(_by_hand)
    assert expected == ((45, 4), [[0.0, 9.0], [36.0, 45.0]]) == call(fresh())
    assert call(fresh().by_numba) == expected
    (name,) = (path.name for path in own_folder.iterdir())
    assert name == "test_compiled._scaled-float64_2A-float64-float64_2A"


def _by_hand(values, factor, out):
    out[:] = 2 * factor * values
    return int(out.max()), values.size


@linked
def test_the_code_is_kept_and_found_again(own_folder, monkeypatch):
    first = call(fresh())
    monkeypatch.setattr(compiling, "compile_kernel", lambda *_: pytest.fail("compiled again"))
    assert call(fresh()) == first


@linked
@pytest.mark.parametrize("damage", [lambda code: code[:-1], lambda code: b"", lambda code: b"{}\n"])
def test_a_file_that_is_not_whole_is_compiled_anew(own_folder, damage):
    first = call(fresh())
    (path,) = own_folder.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert stored(own_folder, path.name) is None
    assert call(fresh()) == first
    assert stored(own_folder, path.name) is not None


@linked
def test_what_object_code_does_not_take_goes_to_numba(own_folder):
    """An array whose items lie at odd addresses."""
    odd = np.frombuffer(b"x" + np.arange(8.0).tobytes(), dtype=np.float64, offset=1).reshape(4, 2)
    assert not odd.flags.aligned
    assert call(fresh(), values=odd) == call(_by_hand, values=odd)
    assert not list(own_folder.iterdir())


@linked
def test_a_version_of_numba_that_is_not_known_calls_its_own(own_folder, monkeypatch):
    monkeypatch.setattr(compiling, "KNOWN_NUMBA", ((0, 1), (0, 2)))
    assert call(fresh()) == call(_scaled)
    assert not list(own_folder.iterdir())


def test_this_version_of_numba_is_known():
    low, high = compiling.KNOWN_NUMBA
    assert low <= numba.version_info[:2] <= high, "try its calling convention, then add it"


@linked
def test_many_threads_may_call_it_first(own_folder):
    function, found = fresh(), []
    threads = [threading.Thread(target=lambda: found.append(call(function))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [call(_by_hand)] * 8


@linked
def test_kernels_of_the_package_do_what_numba_s_do():
    """One that rounds and needs room, one with a result of two numbers; others have naive twins."""
    rng = np.random.default_rng(0)
    rows, centres = rng.integers(-900, 900, (50, 3)), rng.integers(-900, 900, (4, 3))
    labels, radii = nearest(rows, centres), np.array([200.0, 300.0, 1.0, 5000.0])
    sums = np.zeros((2, 4, 7), dtype=np.int64)
    _clipped_sums(rows, labels, centres, radii, sums[0])
    _clipped_sums.by_numba(rows, labels, centres, radii, sums[1])
    np.testing.assert_array_equal(*sums)
    tape, drawn = rng.integers(0, 2**63, 400).astype(np.uint64), np.zeros((2, 20), dtype=np.int64)
    assert _fill(tape, 7, 2, 0, drawn[0]) == tuple(_fill.by_numba(tape, 7, 2, 0, drawn[1]))
    np.testing.assert_array_equal(*drawn)


def test_other_packages_keep_their_folder():
    assert str(numba.config.CACHE_DIR) != str(compiled.cache_folder())


@linked
def test_a_second_process_does_without_numba():
    nearest(np.array([[1]]), np.array([[0]]))
    text = (
        "import sys, numpy as np; from splitmeans.kernels.assign import nearest\n"
        "print(nearest(np.array([[1]]), np.array([[0]])), 'numba' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=300
    )
    assert found.stdout == "[0] False\n"


def test_screening_kernels_may_leave_out_a_rounding():
    made = screening_kernel(_by_hand)
    assert DISABLED or made._fastmath == {"contract"}


@linked
def test_a_machine_without_a_linker_uses_numba(monkeypatch):
    def broken():
        raise OSError("no LLVM")

    monkeypatch.setattr(object_code, "_linker", broken)
    can_link.cache_clear()
    try:
        assert not can_link()
    finally:
        can_link.cache_clear()
