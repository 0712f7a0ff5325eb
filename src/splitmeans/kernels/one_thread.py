"""Linear algebra on one thread: products of a fit are too small to gain from more.

Threads of OpenBLAS wait for the next product by spinning, which takes more processor time than all
products of a fit; and with a fixed number of threads sums do not depend on the machine's cores.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
T = TypeVar("T")


def on_one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function's linear algebra run on one thread."""

    @functools.wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
