"""How loops are compiled: when first called, without the lock of the interpreter, and kept for later sessions."""

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit
from numba.core.compiler import Compiler


class Uncollected(Compiler):  # type: ignore[misc]  # numba has no types
    """Compiles while no garbage is collected: what a compiler makes is kept, and looking through it takes a tenth."""

    def compile_extra(self, func: Any) -> Any:
        collects = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if collects:
                gc.enable()


OPTIONS = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy", "pipeline_class": Uncollected}


def compiled(loop: Callable[..., Any] | None = None, **options: Any) -> Any:
    """A loop that numba compiles, with further `options` of its own."""
    if loop is None:
        return partial(compiled, **options)
    try:
        return njit(cache=True, **OPTIONS, **options)(loop)
    except RuntimeError:  # there is no folder to keep it in
        return njit(**OPTIONS, **options)(loop)


inner = partial(compiled, no_cpython_wrapper=True)
"""The same for a loop that only loops call; called from Python it would crash."""
