"""How loops are compiled: when first called, without the lock of the interpreter, and kept for
later sessions."""

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit
from numba.core.compiler import Compiler


class Uncollected(Compiler):  # type: ignore[misc]  # numba has no types
    """Compiles while no garbage is collected: what a compiler makes is kept, and looking through it
    takes a tenth."""

    def compile_extra(self, func: Any) -> Any:
        collects = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if collects:
                gc.enable()


OPTIONS = {
    "nogil": True,
    "no_cfunc_wrapper": True,
    "error_model": "numpy",
    "pipeline_class": Uncollected,
}


def compiled(loop: Callable[..., Any] | None = None, **options: Any) -> Any:
    """A loop that numba compiles, with further `options` of its own."""
    if loop is None:
        return partial(compiled, **options)
    try:
        return njit(cache=True, **OPTIONS, **options)(loop)
    except RuntimeError:  # there is no folder to keep it in
        return njit(**OPTIONS, **options)(loop)


inlined = njit(inline="always")
"""A loop that becomes a part of every loop that calls it, and is compiled with those alone: a loop
that is compiled by itself is compiled once more within each that calls it."""
