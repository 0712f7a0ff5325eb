"""A kernel in LLVM's language as numba optimises it, without numba's machine code.

numba makes machine code of every function that a kernel calls and of the kernel itself, so that
Python can call each of them. Nobody does: object code is made of the optimised kernel
(`compiling.py`), into which they are linked. Leaving it out saves a fifth of the time that
compiling takes. Optimising each function before it is linked stays: without that, compiling takes
a tenth less again, and the passes over rows a tenth longer.

What is here rests on numba's inside; `compiling.KNOWN_NUMBA` says of which versions.
"""

import contextlib
import functools
import gc
from collections.abc import Iterator
from typing import Any


def compile_optimised(dispatcher: Any, signature: tuple[Any, ...]) -> Any:
    """Return what numba knows of a function, its `library` with the optimised code."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    context = cpu_target.target_context
    # Whoever else compiles in this process waits for the lock, and finds numba as it was.
    with global_compiler_lock, _no_garbage_collection():
        numbas_own = context.codegen()
        context._internal_codegen = _without_machine_code()
        try:
            dispatcher.compile(signature)
        finally:
            context._internal_codegen = numbas_own
    return dispatcher.overloads[signature]


@functools.cache
def _without_machine_code() -> Any:
    """Return what numba puts code together with, and gives to nobody to make machine code of."""
    from numba.core import codegen

    class Library(codegen.JITCodeLibrary):  # type: ignore[misc]
        def _finalize_specific(self) -> None:
            pass

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0  # what numba has for a function that cannot be called

    class Codegen(codegen.JITCPUCodegen):  # type: ignore[misc]
        _library_class = Library

        def _add_module(self, module: Any) -> None:
            pass

        def set_env(self, name: str, environment: Any) -> None:
            pass

    return Codegen("splitmeans.kernels")


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Leave out a sixth of numba's own time: it makes many small objects, and keeps most."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
