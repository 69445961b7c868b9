"""How each library's models are called on rows, and on which scale; a call is a plain value that
can be pickled."""

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

from weightedshap._checks import FloatArray, offered, require
from weightedshap._lazy import pd
from weightedshap.inputs.containers import (
    Array,
    Data,
    UserModel,
    as_numbers,
    column_of,
    in_dtype,
    kind_of,
)

Predict = Callable[..., Any]  # of rows
Call = tuple[Predict, str, tuple[str, ...]]
"""A function of rows, the scale of its answers, and the names of its outputs where it knows
them."""

METHODS = ("predict_proba", "decision_function", "predict")
COLUMNS = ("feature_names_in_", "feature_names_", "feature_name", "feature_names")
# No estimators of scikit-learn.
BARE = {
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
_SWITCHING = threading.RLock()


def traits(model: UserModel) -> dict[str, Any]:
    """What a fitted model says about itself, None where it says nothing; some methods come and go
    with its settings."""
    names = (*METHODS, *COLUMNS, "classes_", "labels_", "n_features_in_")
    return dict.fromkeys(names) | offered(model, *names)


def how_to_call(model: UserModel, predict: Predict | None) -> Call:
    """The way to call `model`: probabilities of a classifier, else values; `predict` overrides."""
    if predict is not None:
        if not callable(predict):
            raise TypeError(f"`predict` must be a function of rows; got {type(predict).__name__}.")
        own = isinstance(predict, (MethodType, BuiltinMethodType)) and predict.__self__ is model
        return feeding(predict, model) if own else predict, "value", _classes(model)
    if isinstance(model, type):
        name = model.__name__
        raise TypeError(
            f"{name} is a class. Pass a fitted model of it: {name}(…).fit(X, y), or `predict=` a"
            " function."
        )
    library = library_of(model)
    if library == "torch":
        return partial(_torch_answer, model), "value", ()
    if library == "onnxruntime":
        output, space = _onnx_output(model)
        return partial(_onnx_answer, model, output), space, ()
    if (library, type(model).__name__) in BARE:
        call = feeding(
            partial(_booster_answer, model) if library == "xgboost" else model.predict, model
        )
        return call, _space_of(library, model), ()
    return _by_method(model)


def _by_method(model: UserModel) -> Call:
    """A model by its methods; a classifier that knows no probabilities is explained by its
    margin."""
    told = traits(model)
    classes = _classes(model)
    name = type(model).__name__
    if told["predict_proba"] is not None:
        return feeding(told["predict_proba"], model), "probability", classes
    if told["decision_function"] is not None and (classes or told["labels_"] is None):
        # without classes how far inside a row is, where `predict` says 1 or −1
        return (
            feeding(told["decision_function"], model),
            "margin",
            classes[1:] if len(classes) == 2 else classes,
        )
    if classes or told["labels_"] is not None:
        raise TypeError(LABELS_ONLY.format(name))
    if told["predict"] is not None:
        return feeding(told["predict"], model), "value", ()
    if callable(model):
        return model, "value", ()
    lacks = "has no `predict_proba` or `predict` and is no function"
    advice = "Pass `predict=`, a function of rows."
    raise TypeError(f"Cannot call a {name} as a model: it {lacks}. {advice}")


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


def _space_of(library: str, model: UserModel) -> str:
    """The scale on which a bare booster answers; CatBoost's is its raw formula, for a classifier a
    margin."""
    if library == "lightgbm":
        objective = (
            model.model_to_string(num_iteration=1).partition("\nobjective=")[2].partition("\n")[0]
        )
        return (
            "probability"
            if objective.startswith(("binary", "multiclass", "cross_entropy"))
            else "value"
        )
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
    """Return the loss that a CatBoost model was trained for.

    A sum of models has no parameters, only the loss that they share.
    """
    held = dict(model.get_metadata().items())
    if "params" in held:
        return str(model.get_all_params().get("loss_function", ""))
    return str(json.loads(held.get("loss_function", "{}")).get("type", ""))


def _booster_answer(booster: UserModel, rows: Data) -> object:
    """What a bare XGBoost booster predicts; it wants its own kind of matrix."""
    array = isinstance(rows, np.ndarray)
    named = {
        "feature_names": booster.feature_names if array else None,
        "enable_categorical": not array,
    }
    return booster.predict(require("xgboost", "dev").DMatrix(rows, **named))


def feeding(call: Predict, model: UserModel) -> Predict:
    """`call`, handed the kind of rows that `model` was fitted on, or can read."""
    library = library_of(model)
    told = traits(model)
    if library in ("lightgbm", "catboost", "xgboost"):
        call = partial(_as_pandas, call)
    if told["n_features_in_"] is None or library == "catboost":
        return call
    return partial(_as_fitted, call, told["feature_names_in_"])


def _as_fitted(call: Predict, names: Array | None, rows: Data, **options: Any) -> object:
    """The answer of a model that was fitted on a frame with these `names`, or on an array."""
    if names is None:
        return call(kind_of(rows).to_array(rows), **options)
    return call(
        pd.DataFrame(rows, columns=names) if isinstance(rows, np.ndarray) else rows, **options
    )


def _as_pandas(call: Predict, rows: Data, **options: Any) -> object:
    """The answer of a model that takes no polars, or not in all versions, or not polars' own
    categories."""
    return call(
        rows if isinstance(rows, np.ndarray | pd.DataFrame) else rows.to_pandas(), **options
    )


def _matrix(rows: Data, dtype: npt.DTypeLike) -> Array:
    """Rows as an array (n, c) in `dtype`; an error where whole numbers are wanted and there are
    fractions or holes."""
    if (names := kind_of(rows).names(rows)) is not None:
        rows = np.stack(
            [as_numbers(column_of(rows, c), repr(name), "X") for c, name in enumerate(names)],
            axis=1,
        )
    cast = in_dtype(rows, np.dtype(dtype))
    if cast.dtype != dtype:
        wrong = "numbers that are not: fractions, missing values or numbers out of range"
        advice = (
            "Fill the holes, use game='marginal', which makes up no values, or pass `predict=`."
        )
        raise ValueError(f"The network takes {np.dtype(dtype)} and was handed {wrong}. {advice}")
    return cast


@contextmanager
def _evaluating(module: UserModel) -> Iterator[None]:
    """`module` in eval mode; afterwards every module in it is in the mode it was in before."""
    with _SWITCHING:
        if training := [inner for inner in module.modules() if inner.training]:
            module.eval()
            try:
                yield
            finally:
                for inner in training:
                    inner.training = True
            return
    yield


def _torch_answer(module: UserModel, rows: Data) -> FloatArray:
    """What a torch module says in eval mode of one tensor (n, c), in the dtype and on the device of
    its parameters."""
    torch = require("torch", "neural")
    plain = torch.empty(0, dtype=torch.float32, device="cpu")
    like = next((p for p in module.parameters() if p.is_floating_point()), plain)
    X = torch.from_numpy(_matrix(rows, np.float64)).to(dtype=like.dtype, device=like.device)
    with _evaluating(module), torch.no_grad():
        answer = module(X)
    return np.asarray(answer.detach().to(device="cpu", dtype=torch.float64).numpy())


def _onnx_output(session: UserModel) -> tuple[str, str]:
    """The output of a session to explain, and its scale: one named like probabilities, else the
    first one of floats."""
    outputs = [(o.name, o.type) for o in session.get_outputs()]
    likely = [name for name, _ in outputs if "prob" in name.lower()]
    chosen = likely or [name for name, held in outputs if held in ONNX_FLOATS]
    if not chosen:
        raise TypeError(
            f"The ONNX session has no output of floats: {outputs}. Pass `predict=`, a function of"
            " rows."
        )
    return chosen[0], "probability" if likely else "value"


def _onnx_answer(session: UserModel, output: str, rows: Data) -> Array:
    """What a session says that takes one matrix, or one input for each column, by name."""
    wanted = session.get_inputs()
    kind = kind_of(rows)
    inputs = {wanted[0].name: rows}
    if 1 < len(wanted) != rows.shape[1]:
        raise ValueError(
            f"The ONNX session has {len(wanted)} inputs but rows have {rows.shape[1]} columns."
        )
    if len(wanted) > 1:
        names = kind.names(rows) or [one.name for one in wanted]
        inputs = {name: kind.select(rows, [c]) for c, name in enumerate(names)}
    answer = session.run(
        [output], {one.name: _onnx_input(inputs[one.name], one.type) for one in wanted}
    )[0]
    # a list holds one dictionary class → probability for each row
    return np.array([list(row.values()) for row in answer] if isinstance(answer, list) else answer)


def _onnx_input(rows: Data, held: str) -> Array:
    """Rows as an array (n, c) in the type of an ONNX input."""
    if held == "tensor(string)":
        columns = [
            ["" if v is None else str(v) for v in column_of(rows, c)] for c in range(rows.shape[1])
        ]
        return np.array(columns, dtype=object).T
    return _matrix(rows, ONNX_DTYPES.get(held, np.float32))
