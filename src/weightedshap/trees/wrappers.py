"""Trees inside other models: what can be read through them, and why the rest cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from weightedshap._checks import FloatArray, offered, with_axis
from weightedshap.inputs import Data, UserModel, feeding
from weightedshap.inputs.predict import how_to_call
from weightedshap.trees.links import agree
from weightedshap.trees.pipelines import read_pipeline, same_prediction, singles
from weightedshap.trees.readers import (
    READERS,
    ReadModel,
    UnreadableModel,
    base_among,
    checked,
    read_model,
    refuse_own_prediction,
)

DEEPEST = 5  # wrappers around trees that are looked for
MOST = 100  # things that are looked at in a list

MEAN = "the mean of several models is not read"
CALIBRATED = "probabilities are calibrated after trees are added up, and averaged over several fits"
UNLIKE_A_SUM = {
    ("sklearn", "CalibratedClassifierCV"): CALIBRATED,
    (
        "sklearn",
        "IsolationForest",
    ): "a score is no sum over trees but a curve of a row's mean depth",
    ("sklearn", "AdaBoostRegressor"): "a prediction is the weighted median of those of its trees",
    ("sklearn", "AdaBoostClassifier"): "its trees vote",
    ("sklearn", "BaseBagging"): MEAN,
    ("sklearn", "_BaseVoting"): MEAN,
    ("sklearn", "_BaseStacking"): "another model makes the prediction of theirs",
    ("sklearn", "_BaseChain"): "later outputs are predicted from earlier ones",
}
"""Why trees inside some estimators of scikit-learn cannot be read exactly, by class."""


def read_through(model: UserModel, rows: Data) -> ReadModel:
    """Read the trees of a model that is called on `rows`, also inside pipelines and wrappers."""
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        return read_pipeline(model, rows, _left_out(model), read_through)
    wrapper = base_among(model, WRAPPERS)
    if wrapper is not None:
        refuse_own_prediction(model, wrapper)
        return WRAPPERS[wrapper](model, rows)
    if base_among(model, READERS) is None and find_trees(model) is not None:
        known = base_among(model, UNLIKE_A_SUM)
        why = UNLIKE_A_SUM[known] if known else "how it predicts from theirs is not known"
        raise _unlike_a_sum(model, why)
    return read_model(model, rows)


def _unlike_a_sum(model: UserModel, why: str) -> UnreadableModel:
    """Return the error for a model that makes something else of its trees than a sum."""
    name = type(model).__name__
    return UnreadableModel(f"The trees inside {name} cannot be read exactly: {why}.")


def _left_out(model: UserModel) -> float:
    """Return what the trees inside a model take for cells that sparse matrices leave out.

    They are missing to XGBoost, and zero to all others.
    """
    base = base_among(find_trees(model), READERS)
    return np.nan if base is not None and base[0] == "xgboost" else 0.0


def _read_inner(attribute: str, model: UserModel, rows: Data) -> ReadModel:
    """Read a model whose predictions are those of the fitted one that it holds."""
    held = vars(model)
    inner = held[attribute] if attribute in held else held["estimator"]
    read = read_through(inner, rows)
    if not same_prediction(model, rows, inner, rows):
        raise _unlike_a_sum(model, "it predicts otherwise than the model that it holds")
    return read


def _read_transformed_target(model: Any, rows: Data) -> ReadModel:
    """Read a regressor of a scaled target: leaf values are scaled back.

    Offsets follow from the predictions of `model`, which the scaled trees are held against.
    """
    slope = _slope(model.transformer_)
    if slope is None:
        name = type(model.transformer_).__name__
        raise _unlike_a_sum(model, f"its target is transformed by a {name}, not linearly")

    read = read_through(model.regressor_, rows)
    own = np.asarray(how_to_call(model.regressor_, None)[0](rows))
    if not agree(read.predict(rows), with_axis(own)):
        raise _unlike_a_sum(
            model, "its regressor predicts something else than the sum of its trees"
        )

    slopes = np.broadcast_to(slope, len(read.ensembles)).tolist()
    scaled = [
        replace(one, value=one.value * factor, offset=one.offset * factor)
        for one, factor in zip(read.ensembles, slopes, strict=True)
    ]
    raw = feeding(model.predict, model)
    of_model = replace(read, raw=raw, picked=None, factor=1.0, one_thread=False)
    return checked(replace(of_model, ensembles=tuple(scaled)), rows)


def _slope(transformer: Any) -> FloatArray | float | None:
    """Return what the inverse of a transformer multiplies by; None if not known to be linear."""
    from sklearn import pipeline, preprocessing

    kind = type(transformer)
    if kind is pipeline.Pipeline:
        total: FloatArray | float = 1.0
        for _, step in transformer.steps:
            slope = _slope(step)
            if slope is None:
                return None
            total = total * slope
        return total
    if transformer in (None, "passthrough"):
        return 1.0
    if kind is preprocessing.FunctionTransformer:
        return 1.0 if transformer.inverse_func is None else None
    if kind is preprocessing.MinMaxScaler:
        return np.asarray(1 / transformer.scale_)
    scalers = preprocessing.StandardScaler, preprocessing.RobustScaler, preprocessing.MaxAbsScaler
    if kind in scalers:
        return 1.0 if transformer.scale_ is None else np.asarray(transformer.scale_)
    return None


def _read_outputs(model: Any, rows: Data) -> ReadModel:
    """Read a model that holds one regressor for each output."""
    return _side_by_side([read_through(one, rows) for one in model.estimators_], rows)


def _read_one_vs_rest(model: Any, rows: Data) -> ReadModel:
    """Read a classifier that holds one of two classes for each class or label."""
    if len(model.estimators_) == 1:
        return read_through(model.estimators_[0], rows)

    parts = [read_through(one, rows) for one in model.estimators_]
    if any(len(part.ensembles) > 1 for part in parts) and not model.multilabel_:
        raise _unlike_a_sum(model, "it divides the probability of each class by the sum of all")
    return _side_by_side([_of_second(part) for part in parts], rows)


def _of_second(read: ReadModel) -> ReadModel:
    """Return a reading of two classes with the second alone; some have only that one's margin."""
    if len(read.ensembles) == 1:
        return read
    return replace(read, ensembles=read.ensembles[1:2], picked=(1,))


def _side_by_side(parts: Sequence[ReadModel], rows: Data) -> ReadModel:
    """Return one reading with the outputs of all parts.

    Each part encodes the rows in its own way, so the columns of all parts stand side by side.
    """
    origins = [part.origins or singles(rows.shape[1]) for part in parts]
    before = np.cumsum([0, *map(len, origins)])
    ensembles = [
        replace(one, column=one.column + np.int32(start))
        for part, start in zip(parts, before, strict=False)
        for one in part.ensembles
    ]
    return ReadModel(
        tuple(ensembles),
        partial(_stacked, tuple(part.predict for part in parts)),
        one_thread=all(part.one_thread for part in parts),
        encoder=partial(_stacked, tuple(part.encode for part in parts)),
        origins=tuple(of for part in origins for of in part),
    )


def _stacked(calls: Sequence[Callable[[Data], FloatArray]], rows: Data) -> FloatArray:
    """Return the columns that all functions of rows give."""
    return np.concatenate([call(rows) for call in calls], axis=1)


WRAPPERS: Mapping[tuple[str, str], Callable[[Any, Data], ReadModel]] = {
    ("sklearn", "BaseSearchCV"): partial(_read_inner, "best_estimator_"),
    ("sklearn", "BaseThresholdClassifier"): partial(_read_inner, "estimator_"),
    ("sklearn", "FrozenEstimator"): partial(_read_inner, "estimator"),
    ("sklearn", "TransformedTargetRegressor"): _read_transformed_target,
    ("sklearn", "MultiOutputRegressor"): _read_outputs,
    ("sklearn", "OneVsRestClassifier"): _read_one_vs_rest,
}
"""What reads through a wrapper, by the package and the name of its class."""


def find_trees(model: UserModel) -> Any:
    """Return a fitted tree ensemble that a model is, or holds to predict with, or None."""
    level = [model]
    seen = set[int]()
    for _ in range(DEEPEST):
        for one in level:
            if base_among(one, READERS) is not None and _is_fitted(one):
                return one
        seen.update(map(id, level))
        level = [part for one in level for part in _parts(one) if id(part) not in seen]
    return None


def _parts(model: Any) -> Iterator[Any]:
    """Yield the models that a model holds, in lists too; of a pipeline only its last step
    predicts."""
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        yield model[-1]
        return
    for thing in offered(model, "__dict__").get("__dict__", {}).values():
        yield from _models_in(thing, DEEPEST)


def _models_in(thing: Any, depth: int) -> Iterator[Any]:
    """Yield `thing` if it predicts, or what predicts in it if it is a list, or a list of lists."""
    if isinstance(thing, dict):
        thing = list(islice(thing.values(), MOST))
    of_objects = isinstance(thing, np.ndarray) and thing.dtype == object and thing.ndim > 0
    if isinstance(thing, (list, tuple)) or of_objects:
        for part in islice(thing, MOST if depth else 0):
            yield from _models_in(part, depth - 1)
    elif not isinstance(thing, type) and offered(thing, "predict", "predict_proba"):
        yield thing


def _is_fitted(model: Any) -> bool:
    """Return whether a tree ensemble has been fitted; boosters always are."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if hasattr(type(model), "is_fitted"):  # CatBoost's
        return bool(model.is_fitted())
    if not hasattr(model, "fit"):
        return True
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True
