"""Readers for tree ensembles inside other estimators, and the reasons why some cannot be read.

The tree games call `read_through`; it builds on `readers` and `pipelines`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from weightedshap._checks import FloatArray, as_2d, optional_attrs
from weightedshap.inputs import Data, UserModel, input_converter
from weightedshap.inputs.predict import resolve_predict
from weightedshap.trees.links import are_close
from weightedshap.trees.pipelines import read_pipeline, same_prediction, singles
from weightedshap.trees.readers import (
    READERS,
    TreeModelReading,
    UnreadableModelError,
    base_among,
    check_reading,
    read_model,
    refuse_own_prediction,
)

# Wrappers inside each other that are searched for trees, at most.
DEEPEST = 5
# Members of a list that are searched, at most.
MOST = 100

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


def read_through(model: UserModel, rows: Data) -> TreeModelReading:
    """Read the trees of a model, pipeline or wrapper, and check them on `rows`."""
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        return read_pipeline(model, rows, _value_left_out(model), read_through)
    wrapper = base_among(model, WRAPPERS)
    if wrapper is not None:
        refuse_own_prediction(model, wrapper)
        return WRAPPERS[wrapper](model, rows)
    if base_among(model, READERS) is None and find_trees(model) is not None:
        known = base_among(model, UNLIKE_A_SUM)
        why = UNLIKE_A_SUM[known] if known else "how it predicts from theirs is not known"
        raise _not_a_sum_error(model, why)
    return read_model(model, rows)


def _not_a_sum_error(model: UserModel, why: str) -> UnreadableModelError:
    """Return the error for a model that does not predict the sum of its trees, with the reason."""
    name = type(model).__name__
    return UnreadableModelError(f"The trees inside {name} cannot be read exactly: {why}.")


def _value_left_out(model: UserModel) -> float:
    """Return the value that trees in a model assume for cells that a sparse matrix leaves out.

    XGBoost treats such cells as missing; all other libraries as zero.
    """
    base = base_among(find_trees(model), READERS)
    return np.nan if base is not None and base[0] == "xgboost" else 0.0


def _read_inner(attribute: str, model: UserModel, rows: Data) -> TreeModelReading:
    """Read a wrapper that predicts as its inner fitted model does, stored as `attribute`."""
    held = vars(model)
    inner = held[attribute] if attribute in held else held["estimator"]
    read = read_through(inner, rows)
    if not same_prediction(model, rows, inner, rows):
        raise _not_a_sum_error(model, "it predicts otherwise than the model that it holds")
    return read


def _read_transformed_target(model: Any, rows: Data) -> TreeModelReading:
    """Read a regressor that was trained on a scaled target; its leaf values are scaled back.

    The offsets follow from comparing the scaled trees with the predictions of `model`.
    """
    slope = _slope(model.transformer_)
    if slope is None:
        name = type(model.transformer_).__name__
        raise _not_a_sum_error(model, f"its target is transformed by a {name}, not linearly")

    read = read_through(model.regressor_, rows)
    own = np.asarray(resolve_predict(model.regressor_, None)[0](rows))
    if not are_close(read.predict(rows), as_2d(own)):
        raise _not_a_sum_error(
            model, "its regressor predicts something else than the sum of its trees"
        )

    slopes = np.broadcast_to(slope, len(read.ensembles)).tolist()
    scaled = [
        replace(one, value=one.value * factor, offset=one.offset * factor)
        for one, factor in zip(read.ensembles, slopes, strict=True)
    ]
    raw = input_converter(model.predict, model)
    of_model = replace(read, raw=raw, picked=None, factor=1.0, is_single_threaded=False)
    return check_reading(replace(of_model, ensembles=tuple(scaled)), rows)


def _slope(transformer: Any) -> FloatArray | float | None:
    """Return the slope of a transformer's inverse; None if it is not known to be linear."""
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


def _read_outputs(model: Any, rows: Data) -> TreeModelReading:
    """Read a model that consists of one regressor for each output."""
    return _join_outputs([read_through(one, rows) for one in model.estimators_], rows)


def _read_one_vs_rest(model: Any, rows: Data) -> TreeModelReading:
    """Read a classifier that consists of one binary classifier for each class or label."""
    if len(model.estimators_) == 1:
        return read_through(model.estimators_[0], rows)

    parts = [read_through(one, rows) for one in model.estimators_]
    if any(len(part.ensembles) > 1 for part in parts) and not model.multilabel_:
        raise _not_a_sum_error(model, "it divides the probability of each class by the sum of all")
    return _join_outputs([_second_class(part) for part in parts], rows)


def _second_class(read: TreeModelReading) -> TreeModelReading:
    """Return the reading of a binary classifier with its second class only.

    Some libraries only have the margin of this class, so nothing changes.
    """
    if len(read.ensembles) == 1:
        return read
    return replace(read, ensembles=read.ensembles[1:2], picked=(1,))


def _join_outputs(parts: Sequence[TreeModelReading], rows: Data) -> TreeModelReading:
    """Join the readings of several models into one, with the outputs of all of them.

    Each part encodes the rows in its own way, so the encoded columns of all parts are concatenated.
    """
    origins = [part.origins or singles(rows.shape[1]) for part in parts]
    before = np.cumsum([0, *map(len, origins)])
    ensembles = [
        replace(one, column=one.column + np.int32(start))
        for part, start in zip(parts, before, strict=False)
        for one in part.ensembles
    ]
    return TreeModelReading(
        tuple(ensembles),
        partial(_stack_columns, tuple(part.predict for part in parts)),
        is_single_threaded=all(part.is_single_threaded for part in parts),
        encoder=partial(_stack_columns, tuple(part.encode for part in parts)),
        origins=tuple(of for part in origins for of in part),
    )


def _stack_columns(calls: Sequence[Callable[[Data], FloatArray]], rows: Data) -> FloatArray:
    """Call each function on the rows, and concatenate the columns of the results."""
    return np.concatenate([call(rows) for call in calls], axis=1)


WRAPPERS: Mapping[tuple[str, str], Callable[[Any, Data], TreeModelReading]] = {
    ("sklearn", "BaseSearchCV"): partial(_read_inner, "best_estimator_"),
    ("sklearn", "BaseThresholdClassifier"): partial(_read_inner, "estimator_"),
    ("sklearn", "FrozenEstimator"): partial(_read_inner, "estimator"),
    ("sklearn", "TransformedTargetRegressor"): _read_transformed_target,
    ("sklearn", "MultiOutputRegressor"): _read_outputs,
    ("sklearn", "OneVsRestClassifier"): _read_one_vs_rest,
}
"""The function that reads a wrapper, by the package and the name of the wrapper's class."""


def find_trees(model: UserModel) -> Any:
    """Return the first fitted tree ensemble in a model, which may be the model, or None."""
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
    """Yield the models inside a model, also those in lists; of a pipeline only the last step."""
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        yield model[-1]
        return
    for thing in optional_attrs(model, "__dict__").get("__dict__", {}).values():
        yield from _models_in(thing, DEEPEST)


def _models_in(thing: Any, depth: int) -> Iterator[Any]:
    """Yield `thing` if it can predict; search a list or dictionary, nested up to `depth` levels."""
    if isinstance(thing, dict):
        thing = list(islice(thing.values(), MOST))
    of_objects = isinstance(thing, np.ndarray) and thing.dtype == object and thing.ndim > 0
    if isinstance(thing, (list, tuple)) or of_objects:
        for part in islice(thing, MOST if depth else 0):
            yield from _models_in(part, depth - 1)
    elif not isinstance(thing, type) and optional_attrs(thing, "predict", "predict_proba"):
        yield thing


def _is_fitted(model: Any) -> bool:
    """Return whether a tree ensemble has been fitted; a booster always counts as fitted."""
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
