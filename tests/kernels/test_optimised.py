"""Kernels are compiled without numba's machine code, and numba is left as it was."""

import gc
import os
import threading

import numba
import numpy as np
import pytest

from splitmeans.kernels.optimised import compile_optimised

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"), reason="numba compiles nothing here"
)

FLOATS = numba.types.Array(numba.types.float64, 1, "C")


def _sum_of_room(values):
    """Uses a function of numba's own, which is compiled with it and kept for later."""
    room = np.empty(values.size + 1)
    for i in range(values.size):
        room[i] = values[i]
    room[values.size] = 1.0
    total = 0.0
    for i in range(room.size):
        total += room[i]
    return total


def codegen():
    return numba.core.registry.cpu_target.target_context.codegen()


def test_there_is_optimised_code_and_nothing_to_call():
    before = codegen()
    function = numba.njit(no_cpython_wrapper=True)(_sum_of_room)
    made = compile_optimised(function, (FLOATS,))
    assert codegen() is before
    function = made.library.get_function(made.fndesc.llvm_func_name)
    # Variables were places in memory, which is what optimising ends first.
    assert "alloca" not in str(function)
    assert made.library.get_pointer_to_function(made.fndesc.llvm_func_name) == 0


def test_numba_itself_goes_on_with_what_was_compiled_meanwhile():
    compile_optimised(numba.njit(no_cpython_wrapper=True)(_sum_of_room), (FLOATS,))
    assert numba.njit(_sum_of_room)(np.array([1.0, 2.5])) == 4.5


def test_numba_is_as_it_was_after_an_error():
    before = codegen()

    def unknown(values):
        return values.no_such_thing

    with pytest.raises(numba.core.errors.NumbaError):
        compile_optimised(numba.njit(unknown), (FLOATS,))
    assert codegen() is before
    assert gc.isenabled()


@pytest.mark.parametrize("is_on", [True, False])
def test_garbage_is_collected_as_before(is_on):
    was_on = gc.isenabled()
    (gc.enable if is_on else gc.disable)()
    try:
        compile_optimised(numba.njit(lambda values: values.size), (FLOATS,))
        assert gc.isenabled() is is_on
    finally:
        (gc.enable if was_on else gc.disable)()


def test_another_thread_that_compiles_gets_code_that_can_be_called():
    found = []

    def compile_both(number):
        def times(value):
            return number * value

        compile_optimised(numba.njit(_sum_of_room, no_cpython_wrapper=True), (FLOATS,))
        found.append(numba.njit(times)(2.0))

    threads = [threading.Thread(target=compile_both, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0.0, 2.0, 4.0, 6.0]
