"""Which input columns the columns that a transformer of scikit-learn makes come from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from weightedshap._checks import offered
from weightedshap.trees.readers import UnreadableModel

Origin = frozenset[int]
"""The input columns that a transformed column is made of; none for a known constant."""

# The modules of steps that work column by column, but for those that mix.
BY_COLUMN = ("sklearn.preprocessing", "sklearn.impute", "sklearn.feature_selection")
MIXING = ("Normalizer", "KernelCenterer", "KNNImputer", "IterativeImputer")
TOKEN = "\ue000{}\ue001"  # letters for private use: a name that no column has


def origins(step: Any, n: int) -> list[Origin]:
    """Return where each column comes from that a fitted step makes of n columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import FeatureUnion, Pipeline

    if step in (None, "passthrough"):
        return [frozenset([c]) for c in range(n)]
    if isinstance(step, Pipeline):
        made = origins(None, n)
        for _, inner in step.steps:
            made = composed(origins(inner, len(made)), made)
        return made
    if isinstance(step, FeatureUnion):
        kept = [inner for _, inner in step.transformer_list if inner != "drop"]
        return [of for inner in kept for of in origins(inner, n)]
    if isinstance(step, ColumnTransformer):
        return _of_parts(step)
    return _of_leaf(step, n)


def composed(later: Sequence[Origin], earlier: Sequence[Origin]) -> list[Origin]:
    """Return the origins of a step's columns before the step that made its inputs."""
    return [frozenset[int]().union(*(earlier[c] for c in of)) for of in later]


def _of_parts(step: Any) -> list[Origin]:
    """Return the origins of a ColumnTransformer's columns: each part has its inputs and place."""
    made: list[Origin] = [frozenset()] * max(where.stop for where in step.output_indices_.values())
    for name, inner, _ in step.transformers_:
        where = step.output_indices_[name]
        inputs = step._transformer_to_input_indices.get(name, ())
        width = where.stop - where.start
        if width == 0:
            continue

        part = origins(inner, len(inputs))
        # a part of another width would push all parts after it to wrong places
        check_width(inner, len(part), width)
        made[where] = [frozenset(inputs[c] for c in of) for of in part]
    return made


def check_width(step: Any, named: int, made: int) -> None:
    """Raise an error where a step does not make as many columns as it says."""
    if named != made:
        said = f"{type(step).__name__} makes {made} columns but names {named}"
        raise UnreadableModel(f"{said}, so it is not known which input each of them comes from.")


def _of_leaf(step: Any, n: int) -> list[Origin]:
    """Return the origins of the columns of a step that is made of no other steps.

    Only scikit-learn's own classes are known to work column by column: of any other, a subclass of
    these included, every column may come from every input.
    """
    from sklearn import preprocessing

    kind = type(step)
    taken = offered(step, "n_features_in_").get("n_features_in_", n)
    if taken != n:
        said = f"{kind.__name__} takes {taken} columns where the step before it makes {n}"
        raise UnreadableModel(f"{said}.")

    # Names of these hold text of people: categories, classes, or what a function makes of both.
    if kind is preprocessing.OneHotEncoder:
        return _repeated(_widths(step))
    if kind is preprocessing.TargetEncoder:
        return _repeated([len(step.encodings_) // n] * n)
    if kind is preprocessing.PolynomialFeatures:
        return [frozenset(np.flatnonzero(powers).tolist()) for powers in step.powers_]
    if kind is preprocessing.FunctionTransformer:
        if step.func is None or _by_element(step.func):
            return origins(None, n)
    elif kind.__module__.startswith(BY_COLUMN) and kind.__name__ not in MIXING:
        return _by_names(step, n)
    return [frozenset(range(n))] * len(_names(step, None))


def _by_element(function: Any) -> bool:
    """Return whether a function is one of numpy's on single numbers."""
    return isinstance(function, np.ufunc) and function.nin == 1 and function.signature is None


def _repeated(widths: Sequence[int]) -> list[Origin]:
    """Return the origins of columns of which the first inputs have so many each."""
    return [frozenset([c]) for c, width in enumerate(widths) for _ in range(width)]


def _widths(encoder: Any) -> list[int]:
    """Return how many columns a OneHotEncoder makes of each input."""
    n = len(encoder.categories_)
    dropped = [None] * n if encoder.drop_idx_ is None else encoder.drop_idx_
    rare = offered(encoder, "infrequent_categories_").get("infrequent_categories_", [None] * n)

    widths = []
    for categories, without, together in zip(encoder.categories_, dropped, rare, strict=True):
        width = len(categories)
        if together is not None:
            width -= len(together) - 1
        if without is not None:
            width -= 1
        widths.append(width)
    return widths


def _by_names(step: Any, n: int) -> list[Origin]:
    """Return the origins by the names that a step gives when its inputs are called by tokens."""
    made: list[Origin] = []
    for name in _names(step, [TOKEN.format(c) for c in range(n)]):
        of = frozenset(map(int, re.findall(TOKEN.format(r"(\d+)"), name)))
        if not of:
            said = f"{type(step).__name__} makes a column without naming the input it comes from"
            raise UnreadableModel(f"{said}, so splits on it cannot be credited to one.")
        made.append(of)
    return made


def _names(step: Any, inputs: list[str] | None) -> Sequence[str]:
    """Return the names of a step's columns, as it makes them of the names of its inputs."""
    try:
        anonymous = copy(step)
        vars(anonymous).pop("feature_names_in_", None)
        return list(anonymous.get_feature_names_out(inputs))
    except Exception as error:  # of anybody's class
        said = f"{type(step).__name__} does not tell the columns that it makes"
        raise UnreadableModel(f"{said}: {error}.") from error
