"""The origins of a transformer's output columns: the input columns that each is computed from.

`pipelines` uses them to assign splits on transformed columns to players.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from weightedshap._checks import optional_attrs
from weightedshap.trees.readers import UnreadableModelError

Origin = frozenset[int]
"""The input columns from which a transformed column is computed; empty for a known constant."""

# Modules whose transformers work column by column, and the exceptions, which mix columns.
BY_COLUMN = ("sklearn.preprocessing", "sklearn.impute", "sklearn.feature_selection")
MIXING = ("Normalizer", "KernelCenterer", "KNNImputer", "IterativeImputer")
TOKEN = "\ue000{}\ue001"  # private-use characters: a name that no column has


def source_columns(step: Any, n: int) -> list[Origin]:
    """Return, for each output column of a fitted step, which of n input columns it comes from."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import FeatureUnion, Pipeline

    if step in (None, "passthrough"):
        return [frozenset([c]) for c in range(n)]
    if isinstance(step, Pipeline):
        made = source_columns(None, n)
        for _, inner in step.steps:
            made = compose_origins(source_columns(inner, len(made)), made)
        return made
    if isinstance(step, FeatureUnion):
        kept = [inner for _, inner in step.transformer_list if inner != "drop"]
        return [of for inner in kept for of in source_columns(inner, n)]
    if isinstance(step, ColumnTransformer):
        return _of_column_transformer(step)
    return _of_single_step(step, n)


def compose_origins(later: Sequence[Origin], earlier: Sequence[Origin]) -> list[Origin]:
    """Return which inputs of the earlier step each output of the later step comes from."""
    return [frozenset[int]().union(*(earlier[c] for c in of)) for of in later]


def _of_column_transformer(step: Any) -> list[Origin]:
    """Return the origins of the output columns of a fitted ColumnTransformer."""
    made: list[Origin] = [frozenset()] * max(where.stop for where in step.output_indices_.values())
    for name, inner, _ in step.transformers_:
        where = step.output_indices_[name]
        inputs = step._transformer_to_input_indices.get(name, ())
        width = where.stop - where.start
        if width == 0:
            continue

        part = source_columns(inner, len(inputs))
        # A part with another number of columns would shift all parts after it.
        check_width(inner, len(part), width)
        made[where] = [frozenset(inputs[c] for c in of) for of in part]
    return made


def check_width(step: Any, named: int, made: int) -> None:
    """Raise an error if a step names a different number of columns than it makes."""
    if named != made:
        raise UnreadableModelError(
            f"{type(step).__name__} makes {made} columns but names {named}, so it is not known"
            " which input each of them comes from."
        )


def _of_single_step(step: Any, n: int) -> list[Origin]:
    """Return the origins of the output columns of a step that contains no other steps.

    Only scikit-learn's own classes are known to work column by column. In any other class, and in
    subclasses, every output column may depend on every input.
    """
    from sklearn import preprocessing

    kind = type(step)
    taken = optional_attrs(step, "n_features_in_").get("n_features_in_", n)
    if taken != n:
        raise UnreadableModelError(
            f"{kind.__name__} takes {taken} columns where the step before it makes {n}."
        )

    # The column names of these contain the user's text: categories, classes, or names that a
    # function makes.
    if kind is preprocessing.OneHotEncoder:
        return _repeat_inputs(_widths(step))
    if kind is preprocessing.TargetEncoder:
        return _repeat_inputs([len(step.encodings_) // n] * n)
    if kind is preprocessing.PolynomialFeatures:
        return [frozenset(np.flatnonzero(powers).tolist()) for powers in step.powers_]
    if kind is preprocessing.FunctionTransformer:
        if step.func is None or _by_element(step.func):
            return source_columns(None, n)
    elif kind.__module__.startswith(BY_COLUMN) and kind.__name__ not in MIXING:
        return _by_names(step, n)
    return [frozenset(range(n))] * len(_names(step, None))


def _by_element(function: Any) -> bool:
    """Return whether a function is a numpy ufunc that maps every element separately."""
    return isinstance(function, np.ufunc) and function.nin == 1 and function.signature is None


def _repeat_inputs(widths: Sequence[int]) -> list[Origin]:
    """Return the origins of output columns, of which ``widths[c]`` successive ones come from c."""
    return [frozenset([c]) for c, width in enumerate(widths) for _ in range(width)]


def _widths(encoder: Any) -> list[int]:
    """Return the number of output columns of a OneHotEncoder for each input column."""
    n = len(encoder.categories_)
    dropped = [None] * n if encoder.drop_idx_ is None else encoder.drop_idx_
    rare = optional_attrs(encoder, "infrequent_categories_").get(
        "infrequent_categories_", [None] * n
    )

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
    """Return the origins of a step's output columns, found in their names.

    The inputs are named by unique tokens, which occur again in the names of the outputs.
    """
    made: list[Origin] = []
    for name in _names(step, [TOKEN.format(c) for c in range(n)]):
        of = frozenset(map(int, re.findall(TOKEN.format(r"(\d+)"), name)))
        if not of:
            raise UnreadableModelError(
                f"{type(step).__name__} makes a column without naming the input it comes from, so"
                " splits on it cannot be credited to one."
            )
        made.append(of)
    return made


def _names(step: Any, inputs: list[str] | None) -> Sequence[str]:
    """Return the names that a step gives its output columns when its inputs are named `inputs`."""
    try:
        anonymous = copy(step)
        vars(anonymous).pop("feature_names_in_", None)
        return list(anonymous.get_feature_names_out(inputs))
    except Exception as error:  # any kind of error, because the class may be the user's own
        raise UnreadableModelError(
            f"{type(step).__name__} does not tell the columns that it makes: {error}."
        ) from error
