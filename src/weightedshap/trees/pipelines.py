"""Trees behind the preprocessing of a scikit-learn pipeline, read as splits on the columns that people pass."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from weightedshap.checks import FloatArray, IntArray, field_values
from weightedshap.inputs import Data, UserModel, feeding
from weightedshap.inputs.calls import how_to_call, library_of
from weightedshap.inputs.groups import code_of_one_player, listed
from weightedshap.trees.readers import ReadModel, UnreadableModel, read_model

Origin = frozenset[int]
"""The input columns that a transformed column comes from; none for a constant."""

BY_COLUMN = ("sklearn.preprocessing", "sklearn.impute", "sklearn.feature_selection")  # modules, but for
MIXING = ("Normalizer", "KernelCenterer", "KNNImputer", "IterativeImputer", "FunctionTransformer")
TOKEN = "\ue000{}\ue001"  # letters for private use: a name that no column has


class MixedColumns(UnreadableModel):
    """A pipeline that makes one column of several which are players of their own."""


@dataclass(frozen=True)
class Piped(ReadModel):
    """Trees on transformed columns, for rows as they are before."""

    transform: Callable[[Data], Data] = deepcopy

    def encode(self, rows: Data) -> FloatArray:
        X = super().encode(self.transform(rows))
        if np.isinf(X).any():
            raise ValueError("The pipeline turns a value into an infinite one. Replace it, or make it missing.")
        return X

    def predict(self, rows: Data) -> FloatArray:
        return super().predict(self.transform(rows))


def read_through(model: UserModel, rows: Data, owner: IntArray, names: Sequence[str]) -> tuple[ReadModel, IntArray]:
    """The trees of a model or of the last step of a pipeline, and the player of each column that they split on.

    `owner` (c,) and `names` are the players and names of the columns of `rows`. A split on a transformed column asks
    about the player of its input, so games of the pipeline are exact; a column made of several players is refused.
    """
    if not is_pipeline(model):
        return read_model(model, rows), owner
    front, last = model[:-1], model[-1]
    call, left_out = front.transform if front.steps else np.asarray, np.nan if library_of(last) == "xgboost" else 0.0
    step = partial(_transformed, feeding(call, model), left_out)
    read = Piped(**field_values(read_model(last, step(rows))), transform=step)
    own, alone = (np.asarray(how_to_call(one, None)[0](of)) for one, of in ((model, rows), (last, step(rows))))
    if not np.allclose(own, alone, rtol=1e-5):
        raise UnreadableModel("The last step predicts otherwise by itself than in its pipeline. Explain it by itself.")
    return read, np.array([_player(of, owner, names) for of in origins(front, len(owner))], dtype=np.intp)


def _transformed(call: Callable[[Data], Any], left_out: float, rows: Data) -> Data:
    """Rows as the last step of a pipeline gets them, never sparse: cells that are left out have a value."""
    made = call(deepcopy(rows))  # some steps write to what they get
    if not issparse(made):
        return made
    cells = made.tocoo()
    dense = np.full(cells.shape, left_out)
    dense[cells.row, cells.col] = cells.data
    return dense


def is_pipeline(model: UserModel) -> bool:
    """Whether a model is a pipeline of scikit-learn."""
    from sklearn.pipeline import Pipeline

    return isinstance(model, Pipeline)


def _player(of: Origin, owner: IntArray, names: Sequence[str]) -> int:
    """The player that a transformed column belongs to; any for a constant, which no split asks about."""
    players = {int(owner[c]) for c in of} or {0}
    if len(players) > 1:
        inputs = listed([names[c] for c in sorted(of)])
        said = f"The pipeline makes one column out of {inputs}, so its trees cannot be read by column"
        code = code_of_one_player(of, owner, names)
        raise MixedColumns(f"{said}. Explain these as one player, exactly, by {code}.")
    return players.pop()


def origins(step: Any, n: int) -> list[Origin]:
    """Where each column comes from that a fitted step makes of n columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import FeatureUnion

    if step in (None, "passthrough"):
        return [frozenset([c]) for c in range(n)]
    if is_pipeline(step):
        made = origins(None, n)
        for _, inner in step.steps:
            made = [frozenset[int]().union(*(made[c] for c in of)) for of in origins(inner, len(made))]
        return made
    if isinstance(step, FeatureUnion):
        return [of for _, inner in step.transformer_list if inner != "drop" for of in origins(inner, n)]
    if not isinstance(step, ColumnTransformer):
        return _of_leaf(step, n)
    made = [frozenset()] * max(where.stop for where in step.output_indices_.values())
    for name, inner, _ in step.transformers_:
        where, inputs = step.output_indices_[name], step._transformer_to_input_indices.get(name, ())
        if where.stop > where.start:
            made[where] = [frozenset(inputs[c] for c in of) for of in origins(inner, len(inputs))]
    return made


def _of_leaf(step: Any, n: int) -> list[Origin]:
    """By the names that a step gives when its inputs are called by tokens, where its kind works column by column."""
    kind, anonymous = type(step), copy(step)
    if kind.__name__ == "FunctionTransformer" and (step.func is None or isinstance(step.func, np.ufunc)):
        return origins(None, n)
    vars(anonymous).pop("feature_names_in_", None)
    by_column = kind.__module__.startswith(BY_COLUMN) and kind.__name__ not in MIXING
    try:
        made = anonymous.get_feature_names_out([TOKEN.format(c) for c in range(n)] if by_column else None)
    except (AttributeError, ValueError) as error:
        raise UnreadableModel(f"{kind.__name__} does not tell the columns that it makes: {error}") from error
    if by_column:
        return [frozenset(map(int, re.findall(TOKEN.format(r"(\d+)"), name))) for name in made]
    return [frozenset(range(n))] * len(made)
