"""People's models in: anything → a function from rows to numbers of shape (n,) or (n, k)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from weightedshap.checks import FloatArray, as_outputs, unknown_sentence
from weightedshap.tables import Table

__all__ = ["Model", "as_model"]

BATCH_BYTES = 2**26

Outputs = int | str | Sequence[int | str] | None


@dataclass(frozen=True)
class Model:
    """A model as the games call it: ``model(rows)`` → (n,) or (n, k), always finite.

    Attributes
    ----------
    original : the object the user passed
    output_names : names of the outputs explained
    space : "probability", "margin" or "value", the scale of the numbers
    n_raw, chosen, has_axis : how many outputs there are, which are explained, whether the axis k is there
    custom : whether `predict` overrides the model's own method
    """

    predict: Callable[[Any], Any]
    original: Any
    output_names: tuple[str, ...]
    space: str
    n_raw: int
    chosen: tuple[int, ...]
    has_axis: bool
    custom: bool = False

    def __call__(self, rows: Any) -> FloatArray:
        """Predictions of the chosen outputs; the axis k is there only if several are explained."""
        at_most = max(1, BATCH_BYTES // (8 * rows.shape[1]))
        if len(rows) > at_most:
            return np.concatenate([self(part) for part in _parts(rows, at_most)])
        raw = _two_axes(as_outputs(self.predict(rows), len(rows), "The model"))
        if raw.shape[1] != self.n_raw:
            raise ValueError(
                f"The model returned {raw.shape[1]} outputs where it returned {self.n_raw} before. "
                "A model must return the same number of outputs for every row."
            )
        picked = raw[:, list(self.chosen)]
        return picked if self.has_axis else picked[:, 0]


def as_model(
    model: Any, background: Table, predict: Callable[[Any], Any] | None = None, outputs: Outputs = None
) -> Model:
    """Wrap `model`, looking at what it returns for the first background rows.

    Classifiers are called through ``predict_proba`` (of two classes the second is explained), other
    estimators through ``predict``, plain functions directly; `predict` overrides all of these.
    `outputs` picks outputs by position or name: one of them, or a list, which keeps the axis k.
    """
    if isinstance(model, Model):
        return model
    call, space = _how_to_call(model, predict)
    _check_width(model, background)
    call = feeding(call, model)
    probe = background.take(slice(0, 2))
    raw = _two_axes(as_outputs(call(probe), len(probe), "The model"))
    names = _output_names(model, raw.shape[1], space)
    binary = space == "probability" and raw.shape[1] == 2
    chosen, has_axis = _choose(outputs, names, (1,) if binary else tuple(range(raw.shape[1])))
    picked = tuple(names[o] for o in chosen)
    return Model(call, model, picked, space, raw.shape[1], chosen, has_axis, predict is not None)


def _parts(rows: Any, size: int) -> Iterator[Any]:
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        yield rows.iloc[part] if isinstance(rows, pd.DataFrame) else rows[part]


def _how_to_call(model: Any, predict: Callable[[Any], Any] | None) -> tuple[Callable[[Any], Any], str]:
    if predict is not None:
        if not callable(predict):
            raise TypeError(f"`predict` must be a function of rows; got {type(predict).__name__}.")
        return predict, "value"
    if type(model).__name__ == "Booster" and type(model).__module__.startswith("xgboost"):
        return _xgboost_booster(model), "value"
    if hasattr(model, "predict_proba"):
        return model.predict_proba, "probability"
    if type(model).__name__ == "Booster" and type(model).__module__.startswith("lightgbm"):
        return model.predict, _lightgbm_space(model)
    if hasattr(model, "predict"):
        return model.predict, "value"
    if callable(model):
        return model, "value"
    raise TypeError(
        f"Cannot call a {type(model).__name__} as a model: it has no `predict_proba` or `predict` and is no "
        "function. Pass `predict=`, a function of rows."
    )


def _lightgbm_space(model: Any) -> str:
    """The scale of what a bare LightGBM booster predicts, by the objective in its text form."""
    text = model.model_to_string(num_iteration=1)
    objective = text.partition("\nobjective=")[2].partition("\n")[0]
    return "probability" if objective.startswith(("binary", "multiclass", "cross_entropy")) else "value"


def _xgboost_booster(model: Any) -> Callable[[Any], Any]:
    """A bare XGBoost booster, which wants its own kind of matrix."""
    import xgboost

    def predict(rows: Any) -> Any:
        frame = isinstance(rows, pd.DataFrame)
        names = None if frame else model.feature_names
        return model.predict(xgboost.DMatrix(rows, feature_names=names, enable_categorical=frame))

    return predict


def feeding(call: Callable[[Any], Any], model: Any) -> Callable[[Any], Any]:
    """`call`, handed the kind of rows that a scikit-learn style `model` was fitted on."""
    width = getattr(model, "n_features_in_", None)
    if width is None:
        return call
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return lambda rows: call(rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows)
    return lambda rows: call(rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=names))


def _check_width(model: Any, background: Table) -> None:
    expected = getattr(model, "n_features_in_", None)
    if expected is not None and expected != len(background.names):
        raise ValueError(
            f"The background has {len(background.names)} columns but the model expects {expected}. "
            "Pass the columns used in training, in the same order."
        )


def _two_axes(values: FloatArray) -> FloatArray:
    return values[:, None] if values.ndim == 1 else values


def _output_names(model: Any, n_outputs: int, space: str) -> tuple[str, ...]:
    classes = getattr(model, "classes_", None) if space == "probability" else None
    if classes is not None and len(classes) == n_outputs:
        return tuple(str(c) for c in classes)
    return tuple(f"output {o}" for o in range(n_outputs)) if n_outputs > 1 else ("output",)


def _choose(outputs: Outputs, names: tuple[str, ...], default: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """Positions of the outputs to explain, and whether results carry the axis k."""
    if outputs is None:
        return default, len(default) > 1
    if isinstance(outputs, (int, np.integer, str)):
        return (_output_position(outputs, names),), False
    chosen = tuple(_output_position(o, names) for o in outputs)
    if not chosen:
        raise ValueError("`outputs` is an empty list; name at least one output, or leave it out.")
    return chosen, True


def _output_position(output: int | str, names: tuple[str, ...]) -> int:
    if isinstance(output, str) and output in names:
        return names.index(output)
    if isinstance(output, (int, np.integer)) and -len(names) <= output < len(names):
        return int(output) % len(names)
    raise ValueError(unknown_sentence("output", output, names) + f" Or a position 0..{len(names) - 1}.")
