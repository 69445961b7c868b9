"""How loops are compiled with numba: at their first call, and stored on disk for later sessions.

Compiled loops release Python's global lock, so that threads run them side by side. The kernels of
trees, imputation and networks are compiled with `compiled` and `inlined`. This is the only module
that sets options of numba.
"""

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit
from numba.core.compiler import Compiler


class NoGCCompiler(Compiler):  # type: ignore[misc]  # numba has no types
    """A numba compiler that switches Python's garbage collector off while it compiles.

    Nearly all objects that compiling creates stay alive, so the collector would search them in
    vain, which takes a tenth of the time.
    """

    def compile_extra(self, func: Any) -> Any:
        """Compile a function as numba does, with Python's garbage collector switched off."""
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if was_enabled:
                gc.enable()


OPTIONS = {
    "nogil": True,
    "no_cfunc_wrapper": True,
    "error_model": "numpy",
    "pipeline_class": NoGCCompiler,
}


def compiled(loop: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a loop with numba; use it as a decorator, with or without further `options`.

    Compiled code is stored on disk. `options` are those of ``numba.njit``.
    """
    if loop is None:
        return partial(compiled, **options)
    try:
        return njit(cache=True, **OPTIONS, **options)(loop)
    except RuntimeError:
        # No folder can be written to: then the loop is compiled anew in every session.
        return njit(**OPTIONS, **options)(loop)


inlined = njit(inline="always")
"""Insert a loop into every loop that calls it, and compile it only there.

A loop with `compiled` would be compiled separately, and once more within each loop that calls it.
"""
