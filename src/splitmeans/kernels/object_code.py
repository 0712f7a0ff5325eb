"""Object code of kernels: kept in files, linked into the process, called by address.

A file holds one kernel for one list of types: a line of JSON (the symbol, what it returns, a digest
of the code) and the code, as a compiler writes it into an object file. LLVM's linker, which comes
with numba as a package of its own, makes it callable.

The function in it takes where the result goes, where an exception goes, then the arguments, and for
an array the address of NumPy's object (`entry.py` reads it).
"""

import contextlib
import ctypes
import functools
import hashlib
import json
import os
import platform
import struct
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from splitmeans.errors import SplitmeansError

# What kernels return, by numba's name of it: as `struct` reads it.
RETURNS = {
    "none": "",
    "bool": "?",
    "int64": "q",
    "uint64": "Q",
    "float64": "d",
    "UniTuple(int64 x 2)": "qq",
}
_C_TYPES: dict[str, Any] = {
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "float64": ctypes.c_double,
    "float32": ctypes.c_float,
}


@functools.cache
def can_link() -> bool:
    """Return whether object code is used on this system; elsewhere numba does all."""
    # What `entry.py` reads is laid out like this: 64 bits, two words at the head of an object.
    if sys.platform != "linux" or sys.maxsize < 2**32 or object.__basicsize__ != 16:
        return False
    try:
        _linker()
    except Exception:  # An old or broken LLVM must not end a fit: numba says what is wrong.
        return False
    return True


@functools.cache
def host_name() -> str:
    """Name a folder for code that this version of LLVM made for this kind of machine."""
    import llvmlite.binding as llvm

    features = sorted(word for word, has in llvm.get_host_cpu_features().items() if has)
    digest = hashlib.sha256(" ".join(features).encode()).hexdigest()[:8]
    version = ".".join(map(str, llvm.llvm_version_info))
    system = f"{sys.platform}-{platform.machine()}"
    return f"{system}-{llvm.get_host_cpu_name()}-{digest}-llvm-{version}"


@dataclass(frozen=True, kw_only=True)
class ObjectCode:
    """A kernel's code.

    Attributes:
        symbol: Its name in the code.
        returns: A key of `RETURNS`.
        code: An object file, as bytes.
    """

    symbol: str
    returns: str
    code: bytes

    def store(self, folder: Path, name: str) -> None:
        """Write the file, whole or not at all; without a place to keep it nothing is kept."""
        digest = hashlib.sha256(self.code).hexdigest()
        head = {"symbol": self.symbol, "returns": self.returns, "sha256": digest}
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=folder)
            with os.fdopen(handle, "wb") as file:
                file.write(json.dumps(head).encode() + b"\n" + self.code)
            os.replace(temporary, folder / name)


def stored(folder: Path, name: str) -> ObjectCode | None:
    """Read a kernel's file; None if there is none, or if it is not whole."""
    try:
        head, _, code = (folder / name).read_bytes().partition(b"\n")
        told = json.loads(head)
        if told["sha256"] != hashlib.sha256(code).hexdigest() or told["returns"] not in RETURNS:
            return None
        return ObjectCode(symbol=told["symbol"], returns=told["returns"], code=code)
    except (OSError, ValueError, KeyError):
        return None


class Linked:
    """Object code that can be called with arguments of its types."""

    def __init__(self, found: ObjectCode, types: Sequence[str]) -> None:
        self._code = _link(found)
        kinds = [_C_TYPES.get(name, ctypes.c_void_p) for name in types]
        # Calls of such a function let go of the interpreter's lock.
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *kinds)
        self._call = prototype(self._code[found.symbol])
        self._result = RETURNS[found.returns]
        self._nothing = ctypes.create_string_buffer(16)
        self._nowhere = ctypes.addressof(self._nothing)

    def __call__(self, *args: Any) -> Any:
        """Call it; see `Kernel.__call__`."""
        # The arguments stay alive while the kernel runs: the caller holds them.
        flat = [id(arg) if type(arg) is np.ndarray else arg for arg in args]
        if not self._result:
            failed, result = self._call(self._nowhere, self._nowhere, *flat), None
        else:
            room = ctypes.create_string_buffer(16)
            failed = self._call(ctypes.addressof(room), self._nowhere, *flat)
            found = struct.unpack_from(f"<{self._result}", room)
            result = found[0] if len(found) == 1 else found
        if failed:
            raise SplitmeansError(f"a compiled kernel failed with status {failed}")
        return result


@functools.cache
def _linker() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_lljit_compiler()


def _link(found: ObjectCode) -> Any:
    import llvmlite.binding as llvm

    # Two kernels may have code of the same name inside; each is a library of its own.
    library = llvm.JITLibraryBuilder().add_object_img(found.code).add_current_process()
    return library.export_symbol(found.symbol).link(_linker(), f"library {next(_NUMBERS)}")


_NUMBERS = iter(range(2**62))
