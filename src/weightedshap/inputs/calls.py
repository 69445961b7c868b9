"""How each library's models are called on rows, and on which scale they answer.

A call is a plain value (a bound method or a partial function), so that it travels to other processes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from types import BuiltinMethodType, MethodType
from typing import Any

import numpy as np
import pandas as pd

from weightedshap.checks import offered, require
from weightedshap.inputs.columns import Array, Data, UserModel, kind_of
from weightedshap.inputs.networks import onnx_answer, onnx_output, torch_answer

Predict = Callable[[Data], Any]
Call = tuple[Predict, str, tuple[str, ...]]
"""A function of rows, the scale of its answers, and the names of its outputs where it knows them."""

METHODS = ("predict_proba", "decision_function", "predict")
COLUMNS = ("feature_names_in_", "feature_names_", "feature_name", "feature_names")
LABELS_ONLY = (
    "This {} answers with labels of classes, which are no numbers to average. Pass `predict=` a function of rows that "
    "returns probabilities, or 1.0 for one class and 0.0 for the others."
)


def traits(model: UserModel) -> dict[str, Any]:
    """What a fitted model says about itself, None where it says nothing.

    The object is asked and not its class: some methods come and go with its settings.
    """
    names = (*METHODS, *COLUMNS, "classes_", "n_features_in_")
    return dict.fromkeys(names) | offered(model, *names)


def how_to_call(model: UserModel, predict: Predict | None) -> Call:
    """The way to call `model`: probabilities of a classifier, else values; `predict` overrides."""
    if predict is not None:
        if not callable(predict):
            raise TypeError(f"`predict` must be a function of rows; got {type(predict).__name__}.")
        own = isinstance(predict, (MethodType, BuiltinMethodType)) and predict.__self__ is model
        return feeding(predict, model) if own else predict, "value", _classes(model)
    library, name = library_of(model), type(model).__name__
    if library == "torch":
        return partial(torch_answer, model), "value", ()
    if library == "onnxruntime":
        output, space = onnx_output(model)
        return partial(onnx_answer, model, output), space, ()
    if (library, name) == ("xgboost", "Booster"):
        return partial(_booster_answer, model), _xgboost_space(model), ()
    if (library, name) == ("lightgbm", "Booster"):
        return feeding(model.predict, model), _lightgbm_space(model), ()
    if (library, name) == ("catboost", "CatBoost"):
        return feeding(model.predict, model), _catboost_space(model), ()
    return _by_method(model)


def _by_method(model: UserModel) -> Call:
    """A model by its methods; a classifier that knows no probabilities is explained by its margin."""
    told, classes, name = traits(model), _classes(model), type(model).__name__
    if told["predict_proba"] is not None:
        return feeding(told["predict_proba"], model), "probability", classes
    if told["decision_function"] is not None and classes:
        return feeding(told["decision_function"], model), "margin", classes[1:] if len(classes) == 2 else classes
    if classes:
        raise TypeError(LABELS_ONLY.format(name))
    if told["predict"] is not None:
        return feeding(told["predict"], model), "value", ()
    if callable(model):
        return model, "value", ()
    raise TypeError(
        f"Cannot call a {name} as a model: it has no `predict_proba` or `predict` and is no function. "
        "Pass `predict=`, a function of rows."
    )


def library_of(model: UserModel) -> str:
    """The library a model belongs to; a user's own subclass of ``torch.nn.Module`` is torch's."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return "torch"
    return type(model).__module__.partition(".")[0]


def _classes(model: UserModel) -> tuple[str, ...]:
    """The names of a classifier's classes; none where it has several targets."""
    classes = traits(model)["classes_"]
    if classes is None or any(isinstance(c, (list, np.ndarray)) for c in classes):
        return ()
    return tuple(str(c) for c in classes)


def _lightgbm_space(booster: UserModel) -> str:
    text = booster.model_to_string(num_iteration=1)
    objective = text.partition("\nobjective=")[2].partition("\n")[0]
    return "probability" if objective.startswith(("binary", "multiclass", "cross_entropy")) else "value"


def _xgboost_space(booster: UserModel) -> str:
    objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
    if objective == "multi:softmax":
        raise TypeError(LABELS_ONLY.format("booster with the objective multi:softmax"))
    spaces = {"binary:logistic": "probability", "multi:softprob": "probability", "binary:logitraw": "margin"}
    return spaces.get(objective, "value")


def _catboost_space(model: UserModel) -> str:
    """A bare `CatBoost` answers with its raw formula, which is a margin for a classifier."""
    loss = str(model.get_all_params().get("loss_function", "")) if model.is_fitted() else ""
    return "margin" if loss.startswith(("Logloss", "CrossEntropy", "MultiClass")) else "value"


def _booster_answer(booster: UserModel, rows: Data) -> object:
    """What a bare XGBoost booster predicts; it wants its own kind of matrix."""
    frame = not isinstance(rows, np.ndarray)
    names = None if frame else booster.feature_names
    return booster.predict(require("xgboost", "dev").DMatrix(rows, feature_names=names, enable_categorical=frame))


def feeding(call: Predict, model: UserModel) -> Predict:
    """`call`, handed the kind of rows that `model` was fitted on, or can read."""
    library, told = library_of(model), traits(model)
    if library in ("lightgbm", "catboost"):
        call = partial(_with_categories_of_pandas, call)
    if told["n_features_in_"] is None or library == "catboost":
        return call
    return partial(_as_fitted, call, told["feature_names_in_"])


def _as_fitted(call: Predict, names: Array | None, rows: Data) -> object:
    """The answer of a model that was fitted on a frame with these `names`, or on an array."""
    if names is None:
        return call(kind_of(rows).to_array(rows))
    return call(pd.DataFrame(rows, columns=names) if isinstance(rows, np.ndarray) else rows)


def _with_categories_of_pandas(call: Predict, rows: Data) -> object:
    """The answer of a model that takes frames of polars, but not polars' own categories."""
    types = () if isinstance(rows, np.ndarray) else map(str, rows.dtypes)
    return call(rows.to_pandas() if any(t.startswith(("Categorical", "Enum")) for t in types) else rows)
