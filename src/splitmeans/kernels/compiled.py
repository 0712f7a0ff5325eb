"""How kernels are compiled and where the compiled code is kept.

Compiling takes seconds, so numba stores its result. Its own check looks at the file of the function
alone and would go on using a kernel after a function in another file that it calls has changed.
Here the folder's name holds the version and a digest of all kernels' sources instead: whatever
changes, old code is not found. The folder belongs to the user (compiled code is run as it is).
"""

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba

from splitmeans._version import __version__


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function on its first call, without the interpreter's lock.

    Division follows NumPy (no exceptions); no option lets the compiler reorder floating-point
    arithmetic, because bounds on sensitivity depend on it.
    """
    return _compiled(function, fastmath=False)


def screening_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that screens (`screen.py`): a product and a sum may be one operation.

    That leaves out a rounding, so bounds on rounding hold; nothing is reordered. What a screen
    finds is certain by such a bound or is found again by exact arithmetic.
    """
    return _compiled(function, fastmath={"contract"})


def _compiled(function: Callable[..., Any], *, fastmath: Any) -> Callable[..., Any]:
    with _stored_in(cache_folder()):
        compiled = numba.njit(cache=True, error_model="numpy", nogil=True, fastmath=fastmath)
        return compiled(function)  # type: ignore[no-any-return]


@functools.cache
def cache_folder() -> Path:
    """Where compiled kernels of exactly this version are."""
    chosen = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    base = Path(chosen) if chosen else Path.home() / ".cache"
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    return base / "splitmeans" / f"kernels-{__version__}-{digest[:12]}"


@contextlib.contextmanager
def _stored_in(folder: Path) -> Iterator[None]:
    """Let numba put the cache of functions that are decorated meanwhile into this folder.

    If the folder cannot be written, numba falls back to its own choice.
    """
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before
