"""How kernels are compiled, where the compiled code is kept, and how it is called.

numba compiles a kernel once for the types of its arguments; what is kept is object code alone
(`object_code.py`), which is linked and called without numba. Loading numba takes as long as a fit
of 20,000 users, and so does getting its own compiled functions back from a disk. Where object code
cannot be had (another system than Linux, odd arguments), numba calls the kernel itself. A wheel may
bring the code of all kernels (`ready.py`); then nothing is compiled.

The folder's name holds the version and a digest of all kernels' sources: whatever changes, old code
is not found. The folder belongs to the user (compiled code is run as it is).
"""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from splitmeans._version import __version__
from splitmeans.kernels.object_code import Linked, can_link, host_name, stored
from splitmeans.kernels.ready import ready, sources_digest

# What a kernel can be given besides arrays, and how types are written in the names of files.
_SCALARS = {
    int: "int64",
    float: "float64",
    np.int64: "int64",
    np.float64: "float64",
    np.float32: "float32",
    np.uint64: "uint64",
}
_DTYPES = {
    np.dtype(name): name
    for name in ("bool", "int8", "uint8", "int16", "uint16", "int32", "int64", "uint64")
} | {np.dtype(name): name for name in ("uint32", "float32", "float64")}
# NumPy's flags of an array.
_CONTIGUOUS, _ALIGNED = 0x1, 0x100
_LAYOUT = _CONTIGUOUS | _ALIGNED
_COMPILING = threading.RLock()


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
    # Uncompiled for whoever measures which lines tests reach, as with any function of numba.
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return function
    return Kernel(function, fastmath=fastmath)


class Kernel:
    """A compiled function: linked object code for each list of argument types it was called with.

    Attributes:
        function: What it compiles.
        linked: The code by types; of numba's own making where object code cannot be had.
    """

    def __init__(self, function: Callable[..., Any], *, fastmath: Any) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.linked: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._fastmath = fastmath
        self._dispatchers: dict[tuple[tuple[str, bool], ...], Any] = {}

    def __call__(self, *args: Any) -> Any:
        """Call the function with arrays and numbers."""
        key = tuple(
            [
                (arg.dtype, arg.ndim, arg.flags.num & _LAYOUT)
                if type(arg) is np.ndarray
                else type(arg)
                for arg in args
            ]
        )
        found = self.linked.get(key)
        if found is None:
            with _COMPILING:
                found = self.linked[key] = self._find(key)
        return found(*args)

    def _find(self, key: tuple[Any, ...]) -> Callable[..., Any]:
        types = [name for one in key if (name := _name(one)) is not None]
        if not can_link() or len(types) < len(key):
            return self.by_numba
        own = f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"
        name = f"{own}-{'-'.join(types)}"
        found = ready(name) or stored(object_folder(), name)
        if found is not None:
            return Linked(found, types)
        from splitmeans.kernels import compiling

        made = compiling.compile_kernel(self, types)
        if made is None:
            return self.by_numba
        made.store(object_folder(), name)
        return Linked(made, types)

    @property
    def by_numba(self) -> Callable[..., Any]:
        """The function as numba compiles, keeps and calls it."""
        with _COMPILING, _stored_in(cache_folder()):
            found: Callable[..., Any] = self.dispatcher(cache=True)
            return found

    def dispatcher(self, **options: bool) -> Any:
        """Return numba's dispatcher of the function; other kernels that it calls are such too."""
        key = tuple(sorted(options.items()))
        if key not in self._dispatchers:
            import numba

            from splitmeans.kernels.compiling import with_dispatchers

            function = with_dispatchers(self.function, options)
            made = numba.njit(error_model="numpy", nogil=True, fastmath=self._fastmath, **options)
            self._dispatchers[key] = made(function)
        return self._dispatchers[key]


def _name(key: Any) -> str | None:
    """Return how a type is written, as `float64_2C`, or None if object code does not take it."""
    if not isinstance(key, tuple):
        return _SCALARS.get(key)
    dtype, ndim, layout = key
    name = _DTYPES.get(dtype)
    if name is None or not layout & _ALIGNED or not ndim:
        return None
    return f"{name}_{ndim}{'C' if layout & _CONTIGUOUS else 'A'}"


@functools.cache
def cache_folder() -> Path:
    """Where compiled kernels of exactly this version are."""
    chosen = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    base = Path(chosen) if chosen else Path.home() / ".cache"
    return base / "splitmeans" / f"kernels-{__version__}-{sources_digest()[:12]}"


def object_folder() -> Path:
    """Where object code for this kind of machine is."""
    return cache_folder() / host_name()


@contextlib.contextmanager
def _stored_in(folder: Path) -> Iterator[None]:
    """Let numba put the cache of functions that are decorated meanwhile into this folder.

    If the folder cannot be written, numba falls back to its own choice.
    """
    import numba

    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before
