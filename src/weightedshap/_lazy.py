"""Modules that are loaded when something of them is first asked for, so that importing the package
stays light."""

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["Lazily", "linalg", "optimize", "pd", "special"]


class Lazily:
    """A module by its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # asked by who looks at objects of any kind
            raise AttributeError(attribute)
        found = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, found)  # from now on it is found without this detour
        return found


if TYPE_CHECKING:
    import pandas as pd
    from scipy import linalg, optimize, special
else:
    pd = Lazily("pandas")
    special = Lazily("scipy.special")
    linalg = Lazily("scipy.linalg")
    optimize = Lazily("scipy.optimize")
