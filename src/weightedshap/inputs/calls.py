"""How each library's models are called on rows, and on which scale they answer.

A call is a plain value (a bound method or a frozen dataclass), so that it travels to other processes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from weightedshap.checks import require
from weightedshap.inputs.columns import kind_of
from weightedshap.inputs.networks import OnnxCall, TorchCall

__all__ = ["Call", "how_to_call", "feeding", "trained_columns"]


@dataclass(frozen=True)
class Call:
    """A function of rows, the scale of its answers, and the names of its outputs where it knows them."""

    function: Callable[[Any], Any]
    space: str
    names: tuple[str, ...] | None = None


def how_to_call(model: Any, predict: Callable[[Any], Any] | None) -> Call:
    """The way to call `model`: probabilities of a classifier, else values; `predict` overrides."""
    if predict is not None:
        if not callable(predict):
            raise TypeError(f"`predict` must be a function of rows; got {type(predict).__name__}.")
        own = getattr(predict, "__self__", None) is model
        return Call(feeding(predict, model) if own else predict, "value", _classes(model))
    library = _library(model)
    if library == "torch":
        return Call(TorchCall(model), "value")
    if library == "onnxruntime":
        onnx = OnnxCall.of(model)
        return Call(onnx, "probability" if onnx.is_probability else "value")
    if library == "xgboost" and type(model).__name__ == "Booster":
        return Call(XGBoostCall(model), _xgboost_space(model))
    if library == "lightgbm" and type(model).__name__ == "Booster":
        return Call(feeding(model.predict, model), _lightgbm_space(model))
    if library == "catboost" and type(model).__name__ == "CatBoost":
        return Call(feeding(model.predict, model), _catboost_space(model))
    return _scikit_learn(model)


def _scikit_learn(model: Any) -> Call:
    """A model by its methods; a classifier that knows no probabilities is explained by its margin."""
    if hasattr(model, "predict_proba"):
        return Call(feeding(model.predict_proba, model), "probability", _classes(model))
    if hasattr(model, "decision_function") and _classes(model):
        names = _classes(model) or ()
        return Call(feeding(model.decision_function, model), "margin", names[1:] if len(names) == 2 else names)
    if _classes(model):
        raise TypeError(_labels_only(type(model).__name__))
    if hasattr(model, "predict"):
        return Call(feeding(model.predict, model), "value")
    if callable(model):
        return Call(model, "value")
    raise TypeError(
        f"Cannot call a {type(model).__name__} as a model: it has no `predict_proba` or `predict` and is no "
        "function. Pass `predict=`, a function of rows."
    )


def _labels_only(name: str) -> str:
    return (
        f"This {name} answers with labels of classes, which are no numbers to average. Pass `predict=` a function "
        "of rows that returns probabilities, or 1.0 for one class and 0.0 for the others."
    )


def _library(model: Any) -> str:
    """The library a model belongs to; a user's own subclass of ``torch.nn.Module`` is torch's."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return "torch"
    return type(model).__module__.partition(".")[0]


def _classes(model: Any) -> tuple[str, ...] | None:
    """The names of a classifier's classes."""
    classes = getattr(model, "classes_", None)
    if classes is None or any(isinstance(c, (list, np.ndarray)) for c in classes):
        return None
    return tuple(str(c) for c in classes)


def _lightgbm_space(model: Any) -> str:
    """The scale of what a bare LightGBM booster predicts, by the objective in its text form."""
    text = model.model_to_string(num_iteration=1)
    objective = text.partition("\nobjective=")[2].partition("\n")[0]
    return "probability" if objective.startswith(("binary", "multiclass", "cross_entropy")) else "value"


def _xgboost_space(model: Any) -> str:
    objective = json.loads(model.save_config())["learner"]["objective"]["name"]
    if objective == "multi:softmax":
        raise TypeError(_labels_only("booster with the objective multi:softmax"))
    if objective in ("binary:logistic", "multi:softprob"):
        return "probability"
    return "margin" if objective == "binary:logitraw" else "value"


def _catboost_space(model: Any) -> str:
    """A bare `CatBoost` answers with its raw formula, which is a margin for a classifier."""
    loss = str(model.get_all_params().get("loss_function", "")) if model.is_fitted() else ""
    return "margin" if loss.startswith(("Logloss", "CrossEntropy", "MultiClass")) else "value"


@dataclass(frozen=True)
class XGBoostCall:
    """A bare XGBoost booster, which wants its own kind of matrix."""

    booster: Any

    def __call__(self, rows: Any) -> Any:
        xgboost = require("xgboost", "dev")
        frame = not isinstance(rows, np.ndarray)
        names = None if frame else self.booster.feature_names
        return self.booster.predict(xgboost.DMatrix(rows, feature_names=names, enable_categorical=frame))


@dataclass(frozen=True)
class Feeding:
    """A method of a fitted model, handed the kind of rows that the model was fitted on."""

    method: Callable[[Any], Any]
    names: Any = field(repr=False)  # the columns it was fitted on; None for an array

    def __call__(self, rows: Any) -> Any:
        if self.names is None:
            return self.method(rows if isinstance(rows, np.ndarray) else _array(rows))
        return self.method(pd.DataFrame(rows, columns=self.names) if isinstance(rows, np.ndarray) else rows)


@dataclass(frozen=True)
class Translating:
    """A method of a model that takes frames of polars, but not polars' own categories: it is handed those of pandas."""

    method: Callable[[Any], Any]

    def __call__(self, rows: Any) -> Any:
        types = () if isinstance(rows, np.ndarray) else map(str, rows.dtypes)
        return self.method(rows.to_pandas() if any(t.startswith(("Categorical", "Enum")) for t in types) else rows)


def _array(rows: Any) -> Any:
    """A frame as an array: of numbers if all columns are, else of objects."""
    if isinstance(rows, pd.DataFrame):
        return rows.to_numpy()
    columns = [kind_of(rows).column(rows, c, "X") for c in range(rows.shape[1])]
    return np.stack(columns, axis=1)


def feeding(call: Callable[[Any], Any], model: Any) -> Callable[[Any], Any]:
    """`call`, handed the kind of rows that `model` was fitted on, or can read."""
    library = _library(model)
    if library in ("lightgbm", "catboost"):
        call = Translating(call)
    if getattr(model, "n_features_in_", None) is None or library == "catboost":
        return call
    return Feeding(call, getattr(model, "feature_names_in_", None))


def trained_columns(model: Any) -> Sequence[str] | None:
    """The column names a model was trained on, in that order; None if it does not tell."""
    original = getattr(model, "original", model)
    for attribute in ("feature_names_in_", "feature_names_", "feature_name", "feature_names"):
        names = getattr(original, attribute, None)
        if callable(names) and _library(original) == "lightgbm":
            names = names()
        if isinstance(names, (list, tuple, np.ndarray)) and len(names):
            return [str(name) for name in names]
    return None
