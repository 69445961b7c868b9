"""How to call the models of each library on rows, and on which scale they predict.

`resolve_predict` returns the function, the scale and the names of the outputs of any model;
`input_converter` wraps a function so that it accepts rows in any container. All functions are
module-level functions and partials, never closures, so that models can be pickled. `model` and the
readers of trees use this.
"""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import BuiltinMethodType, MethodType
from typing import Any

import numpy as np
import numpy.typing as npt

from weightedshap._checks import FloatArray, optional_attrs, require
from weightedshap._lazy import pd
from weightedshap.inputs.containers import (
    Array,
    Data,
    UserModel,
    as_numbers,
    cast_if_lossless,
    container_of,
    plain_column,
)

Predict = Callable[..., Any]
"""A function of rows."""
Prediction = tuple[Predict, str, tuple[str, ...]]
"""A function of rows, the scale of its values, and the names of its outputs, () if unknown."""

METHODS = ("predict_proba", "decision_function", "predict")
# Attributes in which models of different libraries store the names of their columns.
NAME_ATTRIBUTES = ("feature_names_in_", "feature_names_", "feature_name", "feature_names")
# These have a `predict` but are no estimators of scikit-learn.
BOOSTERS = {
    ("lightgbm", "Booster"),
    ("xgboost", "Booster"),
    ("catboost", "CatBoost"),
}
LABELS_ONLY = (
    "This {} answers with labels of classes or clusters, which are no numbers to average. Pass"
    " `predict=` a function of rows that returns probabilities, or 1.0 for one class and 0.0 for"
    " the others."
)
ONNX_FLOATS = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
}
ONNX_DTYPES = ONNX_FLOATS | {
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
# A module that must be switched to eval mode serves one thread at a time.
_EVAL_LOCK = threading.RLock()


def model_attributes(model: UserModel) -> dict[str, Any]:
    """Return a dict of the attributes that show how to call a fitted model; None for absent ones.

    Some methods exist only under some settings of the model, such as ``predict_proba``.
    """
    names = (*METHODS, *NAME_ATTRIBUTES, "classes_", "labels_", "n_features_in_")
    return dict.fromkeys(names) | optional_attrs(model, *names)


def resolve_predict(model: UserModel, predict: Predict | None) -> Prediction:
    """Return a model's prediction function, the scale of its values, and the names of its outputs.

    A classifier's function returns probabilities if it has any. `predict` is the user's own
    function, which overrides the model's methods.
    """
    if predict is not None:
        if not callable(predict):
            raise TypeError(f"`predict` must be a function of rows; got {type(predict).__name__}.")
        # A method of the model itself, such as predict=model.predict, takes the model's container;
        # a function of the user takes the rows as they are.
        if isinstance(predict, (MethodType, BuiltinMethodType)) and predict.__self__ is model:
            predict = input_converter(predict, model)
        return predict, "value", _class_names(model)
    if isinstance(model, type):
        name = model.__name__
        raise TypeError(
            f"{name} is a class. Pass a fitted model of it: {name}(…).fit(X, y), or `predict=` a"
            " function."
        )
    library = library_of(model)
    if library == "torch":
        return partial(_predict_torch, model), "value", ()
    if library == "onnxruntime":
        output, space = _onnx_output(model)
        return partial(_predict_onnx, model, output), space, ()
    if (library, type(model).__name__) in BOOSTERS:
        call = partial(_predict_xgboost, model) if library == "xgboost" else model.predict
        return input_converter(call, model), _booster_space(library, model), ()
    return _resolve_by_methods(model)


def _resolve_by_methods(model: UserModel) -> Prediction:
    """Return the prediction function, scale and output names found from the model's methods.

    A classifier without probabilities is explained by its margin.
    """
    attributes = model_attributes(model)
    classes = _class_names(model)
    name = type(model).__name__
    if attributes["predict_proba"] is not None:
        return input_converter(attributes["predict_proba"], model), "probability", classes
    is_clustering = not classes and attributes["labels_"] is not None
    # A detector of outliers has this method too, but no classes: it returns how far inside a row
    # is, where `predict` returns only 1 or −1.
    if attributes["decision_function"] is not None and not is_clustering:
        # With two classes there is one output, which belongs to the second class.
        names = classes[1:] if len(classes) == 2 else classes
        return input_converter(attributes["decision_function"], model), "margin", names
    if classes or attributes["labels_"] is not None:
        raise TypeError(LABELS_ONLY.format(name))
    if attributes["predict"] is not None:
        return input_converter(attributes["predict"], model), "value", ()
    if callable(model):
        return model, "value", ()
    raise TypeError(
        f"Cannot call a {name} as a model: it has no `predict_proba` or `predict` and is no"
        " function. Pass `predict=`, a function of rows."
    )


def library_of(model: UserModel) -> str:
    """Return the name of the library that a model comes from, such as "lightgbm".

    A user's subclass of ``torch.nn.Module`` belongs to "torch".
    """
    # Not imported: a model of torch cannot exist without it.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return "torch"
    return type(model).__module__.partition(".")[0]


def _class_names(model: UserModel) -> tuple[str, ...]:
    """Return the class names of a classifier; () for other models, or for several targets."""
    classes = model_attributes(model)["classes_"]
    if classes is None or any(isinstance(c, (list, np.ndarray)) for c in classes):
        return ()
    return tuple(str(c) for c in classes)


def _booster_space(library: str, model: UserModel) -> str:
    """Return the scale of a booster's predictions: "probability", "margin" or "value".

    It follows from the objective that the booster was trained for. CatBoost predicts its raw
    formula, which for a classifier is a margin.
    """
    if library == "lightgbm":
        text = model.model_to_string(num_iteration=1)
        objective = text.partition("\nobjective=")[2].partition("\n")[0]
        is_probability = objective.startswith(("binary", "multiclass", "cross_entropy"))
        return "probability" if is_probability else "value"
    if library == "catboost":
        loss = _catboost_loss(model) if model.is_fitted() else ""
        return "margin" if loss.startswith(("Logloss", "CrossEntropy", "MultiClass")) else "value"
    objective = json.loads(model.save_config())["learner"]["objective"]["name"]
    if objective == "multi:softmax":
        raise TypeError(LABELS_ONLY.format("booster with the objective multi:softmax"))
    spaces = {
        "binary:logistic": "probability",
        "multi:softprob": "probability",
        "binary:logitraw": "margin",
    }
    return spaces.get(objective, "value")


def _catboost_loss(model: UserModel) -> str:
    """Return the name of the loss that a CatBoost model was trained for.

    A sum of models has no parameters, only the loss that they share.
    """
    metadata = dict(model.get_metadata().items())
    if "params" in metadata:
        return str(model.get_all_params().get("loss_function", ""))
    return str(json.loads(metadata.get("loss_function", "{}")).get("type", ""))


def _predict_xgboost(booster: UserModel, rows: Data) -> object:
    """Return the predictions of an XGBoost booster, for which rows are converted to a `DMatrix`."""
    is_array = isinstance(rows, np.ndarray)
    options = {
        "feature_names": booster.feature_names if is_array else None,
        "enable_categorical": not is_array,
    }
    return booster.predict(require("xgboost", "dev").DMatrix(rows, **options))


def input_converter(call: Predict, model: UserModel) -> Predict:
    """Wrap the prediction function `call` so that it accepts rows in any container.

    Rows are converted to the container that `model` was trained on, or else can read.
    """
    library = library_of(model)
    attributes = model_attributes(model)
    if library in ("lightgbm", "catboost", "xgboost"):
        call = partial(_call_without_polars, call)
    if attributes["n_features_in_"] is None or library == "catboost":
        return call
    return partial(_call_as_trained, call, attributes["feature_names_in_"])


def _call_as_trained(call: Predict, names: Array | None, rows: Data, **options: Any) -> object:
    """Call a model's function on rows in the container of its training data: a frame or an array.

    `names` are the column names of that frame; None for an array.
    """
    if names is None:
        return call(container_of(rows).to_array(rows), **options)
    if isinstance(rows, np.ndarray):
        rows = pd.DataFrame(rows, columns=names)
    return call(rows, **options)


def _call_without_polars(call: Predict, rows: Data, **options: Any) -> object:
    """Call a model's function on rows, with polars frames converted to pandas.

    For libraries that do not accept polars frames, or not in all versions, or not with categories.
    """
    if not isinstance(rows, np.ndarray | pd.DataFrame):
        rows = rows.to_pandas()
    return call(rows, **options)


def _as_matrix(rows: Data, dtype: npt.DTypeLike) -> Array:
    """Convert rows to an array (n, c) of `dtype`; raise a ValueError if the numbers do not fit.

    They do not fit if a network takes integers, but rows have fractions or missing values.
    """
    names = container_of(rows).names(rows)
    if names is not None:
        columns = [
            as_numbers(plain_column(rows, c), repr(name), "X") for c, name in enumerate(names)
        ]
        rows = np.stack(columns, axis=1)
    cast = cast_if_lossless(rows, np.dtype(dtype))
    if cast.dtype != dtype:
        raise ValueError(
            f"The network takes {np.dtype(dtype)} and was handed numbers that are not: fractions,"
            " missing values or numbers out of range. Fill the holes, use game='marginal', which"
            " makes up no values, or pass `predict=`."
        )
    return cast


@contextmanager
def _eval_mode(module: UserModel) -> Iterator[None]:
    """Switch a torch module to eval mode inside a ``with`` block, and restore it at the end.

    Each of its submodules gets its own mode back.
    """
    with _EVAL_LOCK:
        training = [inner for inner in module.modules() if inner.training]
        if training:
            module.eval()
            try:
                yield
            finally:
                for inner in training:
                    inner.training = True
            return
    # Nothing to switch: threads may run the module side by side.
    yield


def _predict_torch(module: UserModel, rows: Data) -> FloatArray:
    """Return the predictions of a torch module in eval mode, for rows as one tensor (n, c).

    The tensor has the dtype and the device of the module's parameters.
    """
    torch = require("torch", "neural")
    plain = torch.empty(0, dtype=torch.float32, device="cpu")
    like = next((p for p in module.parameters() if p.is_floating_point()), plain)
    matrix = torch.from_numpy(_as_matrix(rows, np.float64))
    X = matrix.to(dtype=like.dtype, device=like.device)
    with _eval_mode(module), torch.no_grad():
        answer = module(X)
    return np.asarray(answer.detach().to(device="cpu", dtype=torch.float64).numpy())


def _onnx_output(session: UserModel) -> tuple[str, str]:
    """Return the name of the output of an ONNX session to explain, and its scale.

    It is the first output with "prob" in its name, else the first output of floats.
    """
    outputs = [(output.name, output.type) for output in session.get_outputs()]
    probabilities = [name for name, _ in outputs if "prob" in name.lower()]
    if probabilities:
        return probabilities[0], "probability"
    floats = [name for name, onnx_type in outputs if onnx_type in ONNX_FLOATS]
    if not floats:
        raise TypeError(
            f"The ONNX session has no output of floats: {outputs}. Pass `predict=`, a function of"
            " rows."
        )
    return floats[0], "value"


def _predict_onnx(session: UserModel, output: str, rows: Data) -> Array:
    """Run an ONNX session on rows, and return the predictions of the named output.

    The session has a single input, a matrix, or one input for each column, matched by name.
    """
    session_inputs = session.get_inputs()
    container = container_of(rows)
    inputs = {session_inputs[0].name: rows}
    if 1 < len(session_inputs) != rows.shape[1]:
        raise ValueError(
            f"The ONNX session has {len(session_inputs)} inputs but rows have {rows.shape[1]}"
            " columns."
        )
    if len(session_inputs) > 1:
        names = container.names(rows) or [one.name for one in session_inputs]
        inputs = {name: container.select(rows, [c]) for c, name in enumerate(names)}
    arrays = {one.name: _onnx_input(inputs[one.name], one.type) for one in session_inputs}
    answer = session.run([output], arrays)[0]
    # A list holds one dictionary class → probability for each row.
    if isinstance(answer, list):
        return np.array([list(row.values()) for row in answer])
    return np.array(answer)


def _onnx_input(rows: Data, onnx_type: str) -> Array:
    """Convert rows to an array (n, c) for an ONNX input of the type `onnx_type`.

    A type is a text such as "tensor(float)".
    """
    if onnx_type == "tensor(string)":
        columns = [
            ["" if value is None else str(value) for value in plain_column(rows, c)]
            for c in range(rows.shape[1])
        ]
        return np.array(columns, dtype=object).T
    return _as_matrix(rows, ONNX_DTYPES.get(onnx_type, np.float32))
