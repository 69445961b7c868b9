"""Modules that are imported when first used, so that importing the package stays fast.

They are pandas and the parts of scipy that the package needs, under their usual names. Nothing of
the package is imported here, and every module may use this one.
"""

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["LazyModule", "linalg", "optimize", "pd", "special"]


class LazyModule:
    """A placeholder for a module, which is imported when one of its attributes is first read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        # Tools such as doctest and pickle look for special names on every object that they find;
        # an answer would import the module at the start.
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        value = getattr(importlib.import_module(self._name), attribute)
        # From now on the attribute is read directly, without a call of `__getattr__`.
        setattr(self, attribute, value)
        return value


if TYPE_CHECKING:
    import pandas as pd
    from scipy import linalg, optimize, special
else:
    pd = LazyModule("pandas")
    special = LazyModule("scipy.special")
    linalg = LazyModule("scipy.linalg")
    optimize = LazyModule("scipy.optimize")
