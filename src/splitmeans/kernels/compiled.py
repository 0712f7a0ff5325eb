"""How kernels are compiled: by numba, once for each version of these sources on a machine.

numba compiles a kernel on its first call and keeps the code in a folder of the user. The folder's
name holds a digest of all packages with kernels: numba notices a change of a kernel's own file, but
not one of another kernel that it calls.
"""

import functools
import hashlib
import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import event

PACKAGES = ("kernels", "kmeans")  # All that have kernels; reading every package would take 10 ms.


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function on its first call, without the interpreter's lock.

    Division follows NumPy (no exceptions); no option lets the compiler reorder floating-point
    arithmetic, because bounds on sensitivity depend on it.
    """
    folder = cache_folder()
    chosen, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
    try:
        # Where the folder cannot be written each process compiles for itself: any other folder
        # that numba would choose may hold code of other sources.
        make = numba.njit(cache=_is_writable(folder), nogil=True, error_model="numpy")
        return make(function)  # type: ignore[no-any-return]
    finally:
        numba.config.CACHE_DIR = chosen


@functools.cache
def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


@functools.cache
def cache_folder() -> Path:
    """Where compiled kernels of exactly these sources are."""
    chosen = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    base = Path(chosen) if chosen else Path.home() / ".cache"
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((Path(__file__).parents[1] / package).glob("*.py")):
            digest.update(path.read_bytes())
    return base / "splitmeans" / f"kernels-{digest.hexdigest()[:12]}"


class _FirstCompilation(event.Listener):  # type: ignore[misc]
    """Prints one line when the first kernel is compiled, not when compiled code is loaded."""

    has_printed = False

    def on_start(self, event: Any) -> None:
        """Print the line, unless this is a worker process or somebody else's function."""
        module = event.data["dispatcher"].py_func.__module__
        is_worker = multiprocessing.parent_process() is not None
        if self.has_printed or is_worker or not module.startswith("splitmeans."):
            return
        self.has_printed = True
        sys.stderr.write("compiling splitmeans, once per installation (about 10 seconds)\n")

    def on_end(self, event: Any) -> None:
        """Nothing is left to print."""


event.register("numba:compile", _FirstCompilation())
