"""How loops are compiled: when first called, without the lock of the interpreter, and kept for later sessions."""

from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit

OPTIONS = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy"}


def compiled(loop: Callable[..., Any] | None = None, **options: Any) -> Any:
    """A loop that numba compiles, with further `options` of its own."""
    if loop is None:
        return partial(compiled, **options)
    try:
        return njit(cache=True, **OPTIONS, **options)(loop)
    except RuntimeError:  # there is no folder to keep it in
        return njit(**OPTIONS, **options)(loop)
