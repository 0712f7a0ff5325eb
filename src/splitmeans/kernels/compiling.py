"""Object code of a kernel by numba, for the types of some arguments.

Kernels get room for scratch arrays from two functions of numba's runtime, which is not there when
object code is linked without numba; `_ROOM` stands for them, with the layout that the runtime has.
"""

import types
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from splitmeans.kernels.entry import ENTRY, entry
from splitmeans.kernels.object_code import RETURNS, ObjectCode
from splitmeans.kernels.optimised import compile_optimised

if TYPE_CHECKING:
    from splitmeans.kernels.compiled import Kernel

# First and last version whose calling convention and layout of arrays were seen to be those of
# `entry.py`, and whose inside to be as `optimised.py` has it: with any other, code that reads
# memory would rest on a guess, and numba calls kernels.
KNOWN_NUMBA = ((0, 68), (0, 68))

# A block of memory: how many use it, three words that are not used here, where the data begin, and
# their number. The data of a block are at an address that a cache line begins at.
_ROOM = """
target triple = "{triple}"
declare ptr @malloc(i64)
declare void @free(ptr)
define linkonce_odr ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {{
  %more = add i64 %size, 112
  %block = call ptr @malloc(i64 %more)
  %number = ptrtoint ptr %block to i64
  %behind = add i64 %number, 111
  %aligned = and i64 %behind, -64
  %data = inttoptr i64 %aligned to ptr
  %dtor = getelementptr i64, ptr %block, i64 1
  %info = getelementptr i64, ptr %block, i64 2
  %where = getelementptr i64, ptr %block, i64 3
  %length = getelementptr i64, ptr %block, i64 4
  %external = getelementptr i64, ptr %block, i64 5
  store i64 1, ptr %block
  store ptr null, ptr %dtor
  store ptr null, ptr %info
  store ptr %data, ptr %where
  store i64 %size, ptr %length
  store ptr null, ptr %external
  ret ptr %block
}}
define linkonce_odr void @NRT_MemInfo_call_dtor(ptr %block) {{
  call void @free(ptr %block)
  ret void
}}
"""
_OPTIONS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compile_kernel(kernel: "Kernel", arguments: Sequence[str]) -> ObjectCode | None:
    """Return a kernel's object code; None if this numba is not known or the kernel needs more."""
    import llvmlite.binding as llvm
    import numba

    if not KNOWN_NUMBA[0] <= numba.version_info[:2] <= KNOWN_NUMBA[1]:
        return None
    signature = tuple(_type(argument) for argument in arguments)
    made = compile_optimised(kernel.dispatcher(**_OPTIONS), signature)
    code = made.library.get_llvm_str() + entry(made.fndesc.llvm_func_name, arguments)
    module = llvm.parse_assembly(code)
    returns = str(made.signature.return_type)
    if not _is_whole(module) or returns not in RETURNS:
        return None
    return ObjectCode(symbol=ENTRY, returns=returns, code=_machine().emit_object(module))


def with_dispatchers(function: Any, options: Mapping[str, bool]) -> Any:
    """Return a function that calls numba's dispatchers where it calls kernels."""
    from splitmeans.kernels.compiled import Kernel

    own = {
        name: value.dispatcher(**options) if isinstance(value, Kernel) else value
        for name, value in function.__globals__.items()
        if name in function.__code__.co_names or not isinstance(value, Kernel)
    }
    copied = types.FunctionType(function.__code__, own, function.__name__, function.__defaults__)
    copied.__module__, copied.__qualname__ = function.__module__, function.__qualname__
    return copied


def _is_whole(module: Any) -> bool:
    """Link in what kernels need of numba's runtime; return whether the rest is in any process."""
    import llvmlite.binding as llvm

    declared = {one.name for one in module.functions if one.is_declaration}
    if declared & {"NRT_MemInfo_alloc_aligned", "NRT_MemInfo_call_dtor"}:
        module.link_in(llvm.parse_assembly(_ROOM.format(triple=module.triple)))
    known = {"malloc", "free", "sqrt", "exp", "erfc", "memset", "memcpy"}
    missing = {
        one.name
        for one in module.functions
        if one.is_declaration and not one.name.startswith("llvm.")
    }
    return missing <= known and not any(one.is_declaration for one in module.global_variables)


def _machine() -> Any:
    """Return LLVM's machine of the kind that numba compiles for."""
    import llvmlite.binding as llvm
    from numba.core import config

    processor = config.CPU_NAME or llvm.get_host_cpu_name()
    features = config.CPU_FEATURES
    if features is None:
        features = "" if config.CPU_NAME else llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=processor, features=features, opt=3, reloc="pic")


def _type(argument: str) -> Any:
    """Return numba's type of `float64` or `float64_2C`."""
    import numba

    name, _, form = argument.partition("_")
    if not form:
        return getattr(numba.types, name)
    scalar = numba.types.boolean if name == "bool" else getattr(numba.types, name)
    return numba.types.Array(scalar, int(form[0]), form[1])
