"""People's tree ensembles as flat arrays: LightGBM, XGBoost, CatBoost and scikit-learn.

Each library is read through its public dump, and the sum of the trees is compared with the library's own
raw prediction on background rows, so a model that cannot be read exactly is refused and never
explained wrongly.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from weightedshap.checks import FloatArray
from weightedshap.inputs import Data, column_of, feeding
from weightedshap.trees.ensembles import Ensemble, Tree, pack

__all__ = ["ReadModel", "read_model"]

PLAIN_LIGHTGBM = ("", "none", "custom", "regression", "regression_l1", "huber", "fair", "quantile", "mape")
GAMES_FOR_OTHERS = "'tree_surrogate', 'marginal' and 'baseline' work with any model"


@dataclass(frozen=True)
class ReadModel:
    """A tree ensemble that was read.

    Attributes
    ----------
    ensembles : one for each raw output
    space : "margin", "probability" or "value", the scale on which trees add up
    raw : rows → (n, k), the library's own prediction on that scale
    categories : column position → the categories behind its codes, where the model has them
    """

    ensembles: tuple[Ensemble, ...]
    space: str
    raw: Callable[[Any], Any]
    categories: Mapping[int, Sequence[Any]]

    def encode(self, rows: Data) -> FloatArray:
        """Rows as the numbers that the splits compare."""
        return encode_rows(rows, self.categories)

    def predict(self, rows: Data) -> FloatArray:
        """(n, k) the library's own raw prediction."""
        raw = np.asarray(self.raw(rows), dtype=np.float64)
        return raw.reshape(len(rows), -1)


def encode_rows(rows: Data, categories: Mapping[int, Sequence[Any]] | None = None) -> FloatArray:
    """A table as float64: numbers as they are, categories as their codes, missing values as NaN."""
    if isinstance(rows, np.ndarray):
        return np.ascontiguousarray(rows, dtype=np.float64)
    if not isinstance(rows, pd.DataFrame):
        rows = pd.DataFrame({name: column_of(rows, c) for c, name in enumerate(rows.columns)})
    columns = [_encoded(rows.iloc[:, c], (categories or {}).get(c)) for c in range(rows.shape[1])]
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _encoded(column: pd.Series[Any], categories: Sequence[Any] | None) -> FloatArray:
    if categories is not None or isinstance(column.dtype, pd.CategoricalDtype):
        known = pd.Index(categories) if categories is not None else column.cat.categories
        codes = known.get_indexer(pd.Index(column, dtype=object)).astype(np.float64)
        return np.where(codes < 0, np.nan, codes)
    try:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"Column {str(column.name)!r} holds {column.dtype} values, which these trees do not compare. Turn it into "
            f"numbers, or into a category before training; {GAMES_FOR_OTHERS}."
        ) from error


def read_model(model: Any, rows: Data) -> ReadModel:
    """Read `model`, and check the reading against its own predictions for `rows`."""
    library = type(model).__module__.partition(".")[0]
    reader = READERS.get(library)
    found = reader(model, rows) if reader else None
    if found is None:
        raise TypeError(
            f"{type(model).__name__} is not a tree ensemble that can be read (LightGBM, XGBoost, CatBoost, and "
            f"scikit-learn's trees, forests and boosting can). {GAMES_FOR_OTHERS}."
        )
    return _checked(found, rows)


def _checked(found: ReadModel, rows: Data) -> ReadModel:
    """`found` with offsets set so that trees add up to the library's own prediction, or an error."""
    X, own = found.encode(rows), found.predict(rows)
    if own.shape[1] != len(found.ensembles):
        raise ValueError(
            f"The model predicts {own.shape[1]} raw outputs but {len(found.ensembles)} ensembles were read; "
            "this kind of model is not supported."
        )
    trees = np.stack([ensemble.predict(X) for ensemble in found.ensembles], axis=1)
    offsets = np.median(own - trees, axis=0)
    worst = float(np.abs(own - trees - offsets).max())
    if not worst <= 1e-5 * (1 + float(np.abs(own).max())):
        raise ValueError(
            f"The trees of this model do not add up to its prediction (they differ by up to {worst:.3g}), so it cannot "
            "be explained exactly. This happens with an initial estimator that depends on the row, or categories "
            f"that are coded otherwise than in training. {GAMES_FOR_OTHERS}."
        )
    ensembles = tuple(replace(e, offset=e.offset + o) for e, o in zip(found.ensembles, offsets, strict=True))
    return replace(found, ensembles=ensembles)


def _refuse(what: str) -> None:
    raise ValueError(f"{what} cannot be read as splits on single columns, so Δ would not be exact. {GAMES_FOR_OTHERS}.")


# LightGBM ------------------------------------------------------------------------------------------


def read_lightgbm(model: Any, rows: Data) -> ReadModel:
    """A `lightgbm.Booster` or scikit-learn wrapper, through ``dump_model``."""
    booster = getattr(model, "booster_", model)
    dump = booster.dump_model()
    k = dump["num_tree_per_iteration"]
    trees = [lightgbm_tree(tree["tree_structure"]) for tree in dump["tree_info"]]
    scale = k / len(trees) if dump["average_output"] and trees else 1.0
    objective = str(dump.get("objective", "")).split(" ")[0]
    plain = objective in PLAIN_LIGHTGBM
    categories = dump.get("pandas_categorical") or []
    types = [] if isinstance(rows, np.ndarray) else map(str, rows.dtypes)
    positions = [c for c, name in enumerate(types) if name.lower().startswith(("categor", "enum"))]
    return ReadModel(
        tuple(pack(trees[output::k], scale) for output in range(k)),
        "value" if plain else "margin",
        lambda rows: scale * feeding(partial(booster.predict, raw_score=True), booster)(rows),
        dict(zip(positions, categories, strict=False)),
    )


def lightgbm_tree(structure: Mapping[str, Any]) -> Tree:
    """A nested LightGBM tree as arrays, parents before children."""
    nodes = [structure]
    left, right, column, threshold, nan_left, zero, value, cover = ([] for _ in range(8))
    categories: dict[int, Sequence[int]] = {}
    for node in nodes:  # the list grows while it is walked
        split = "split_feature" in node
        if "leaf_coeff" in node:
            _refuse("LightGBM's linear trees")
        left.append(len(nodes) if split else -1)
        right.append(len(nodes) + 1 if split else -1)
        nodes += [node["left_child"], node["right_child"]] if split else []
        column.append(node.get("split_feature", 0))
        categorical = node.get("decision_type") == "=="
        if categorical:
            categories[len(left) - 1] = [int(code) for code in str(node["threshold"]).split("||")]
        threshold.append(float(node["threshold"]) if split and not categorical else 0.0)
        missing = node.get("missing_type", "None")
        default = bool(node.get("default_left", False))
        nan_left.append(not categorical and (threshold[-1] >= 0 if missing == "None" else default))
        zero.append(missing == "Zero" and not categorical)
        value.append(node.get("leaf_value", 0.0))
        cover.append(node.get("internal_count", node.get("leaf_count", 0)))
    return Tree(left, right, column, threshold, nan_left, value, cover, zero, categories)


# XGBoost -------------------------------------------------------------------------------------------


def read_xgboost(model: Any, rows: Data) -> ReadModel:
    """An `xgboost.Booster` or scikit-learn wrapper, through its JSON format."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    learner = json.loads(booster.save_raw("json"))["learner"]
    ensemble = learner["gradient_booster"]
    if ensemble["name"] == "gblinear":
        _refuse("XGBoost's gblinear booster")
    forest = ensemble.get("gbtree", ensemble)["model"]
    weights = ensemble.get("weight_drop") or [1.0] * len(forest["trees"])
    end = len(forest["trees"])
    best = booster.attr("best_iteration") if booster is not model else None
    if best is not None:
        end = forest["iteration_indptr"][int(best) + 1]
    trees = [_xgboost_tree(tree, weight) for tree, weight in zip(forest["trees"], weights, strict=True)]
    groups = np.asarray(forest["tree_info"])
    parameters = learner["learner_model_param"]
    k = max(int(parameters["num_class"]), int(parameters.get("num_target", 1)), 1)
    chosen = [[t for t in range(end) if groups[t] == output] for output in range(k)]
    objective = learner["objective"]["name"]
    plain = objective.startswith(("reg:squarederror", "reg:absoluteerror", "reg:pseudohuber", "reg:quantile"))
    return ReadModel(
        tuple(pack([trees[t] for t in part], single=True) for part in chosen),
        "value" if plain else "margin",
        lambda rows: _xgboost_margin(booster, rows, (0, int(best) + 1 if best is not None else 0)),
        _xgboost_categories(forest.get("cats", {}).get("enc", [])),
    )


def _xgboost_categories(columns: Sequence[Mapping[str, Any]]) -> dict[int, Sequence[Any]]:
    """The categories of training by column, which XGBoost keeps from 3.1 on: numbers, or bytes of text and its ends.

    Text beyond ASCII is left out: XGBoost counts its letters and cuts its bytes.
    """
    found: dict[int, Sequence[Any]] = {}
    for c, column in enumerate(columns):
        values, ends = column["values"], column.get("offsets")
        if ends is None:
            found[c] = values
        elif values and all(0 <= letter < 128 for letter in values):
            found[c] = [bytes(values[a:b]).decode() for a, b in pairwise(ends)]
    return found


def _xgboost_margin(booster: Any, rows: Data, iterations: tuple[int, int]) -> Any:
    import xgboost

    names = booster.feature_names
    matrix = xgboost.DMatrix(
        rows,
        feature_names=names if isinstance(rows, np.ndarray) else None,
        enable_categorical=not isinstance(rows, np.ndarray),
    )
    return booster.predict(matrix, output_margin=True, iteration_range=iterations)


def _xgboost_tree(tree: Mapping[str, Any], weight: float) -> Tree:
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        _refuse("XGBoost's trees with vector leaves")
    left = np.asarray(tree["left_children"])
    conditions = np.asarray(tree["split_conditions"], dtype=np.float32)
    below = np.nextafter(conditions, np.float32(-np.inf))  # x < t is x ≤ the number before t
    codes, segments = tree.get("categories", []), tree.get("categories_segments", [])
    sets = {
        node: codes[begin : begin + size]
        for node, begin, size in zip(
            tree.get("categories_nodes", []), segments, tree.get("categories_sizes", []), strict=True
        )
    }
    return Tree(
        left,
        tree["right_children"],
        tree["split_indices"],
        below.astype(np.float64),
        np.asarray(tree["default_left"], dtype=bool),
        np.where(left < 0, conditions.astype(np.float64) * weight, 0.0),
        tree["sum_hessian"],
        categories=sets,
        categories_left=False,
    )


# CatBoost ------------------------------------------------------------------------------------------


def read_catboost(model: Any, rows: Data) -> ReadModel:
    """A CatBoost model with splits on numbers, through its JSON format."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        dump = json.loads(path.read_text())
    columns = {f["feature_index"]: f for f in dump["features_info"].get("float_features", [])}
    scale, biases = dump["scale_and_bias"]
    read = _oblivious_tree if "oblivious_trees" in dump else _nested_tree
    k = max(len(np.atleast_1d(biases)), 1)
    trees = [read(tree, columns, k) for tree in dump.get("oblivious_trees", dump.get("trees", []))]
    loss = str(model.get_all_params().get("loss_function", "")) if model.is_fitted() else ""
    plain = loss.startswith(("RMSE", "MAE", "Quantile", "MultiRMSE", "Huber", "MAPE"))
    return ReadModel(
        tuple(pack([tree[output] for tree in trees], scale, single=True) for output in range(k)),
        "value" if plain else "margin",
        lambda rows: model.predict(rows, prediction_type="RawFormulaVal"),
        {},
    )


def _catboost_split(split: Mapping[str, Any], columns: Mapping[int, Any]) -> tuple[int, float, bool]:
    """Column, border and side of the missing value of a CatBoost split: left if x ≤ border."""
    if split["split_type"] != "FloatFeature":
        _refuse(f"CatBoost's {split['split_type']} splits on categories and combinations")
    feature = columns[split["float_feature_index"]]
    return feature["flat_feature_index"], float(split["border"]), feature["nan_value_treatment"] != "AsTrue"


def _oblivious_tree(tree: Mapping[str, Any], columns: Mapping[int, Any], k: int) -> list[Tree]:
    """One tree for each output; the last split stands at the root, as in CatBoost's own attributions."""
    splits = [_catboost_split(split, columns) for split in reversed(tree["splits"] or [])]
    inner, leaves = 2 ** len(splits) - 1, 2 ** len(splits)
    nodes = np.arange(inner + leaves)
    level = np.array([s for depth, split in enumerate(splits) for s in [split] * 2**depth] + [(0, 0.0, True)] * leaves)
    values = np.asarray(tree["leaf_values"], dtype=np.float64).reshape(leaves, k)
    cover = np.zeros(inner + leaves)
    cover[inner:] = tree["leaf_weights"]
    for node in range(inner - 1, -1, -1):
        cover[node] = cover[2 * node + 1] + cover[2 * node + 2]
    split = nodes < inner
    shape = np.where(split, 2 * nodes + 1, -1), np.where(split, 2 * nodes + 2, -1)
    pad = np.zeros(inner)
    return [
        Tree(*shape, level[:, 0], level[:, 1], level[:, 2], np.concatenate([pad, values[:, output]]), cover)
        for output in range(k)
    ]


def _nested_tree(tree: Mapping[str, Any], columns: Mapping[int, Any], k: int) -> list[Tree]:
    nodes = [tree]
    left, right, splits, values, cover = [], [], [], [], []
    for node in nodes:  # the list grows while it is walked
        inner = "split" in node
        left.append(len(nodes) if inner else -1)
        right.append(len(nodes) + 1 if inner else -1)
        nodes += [node["left"], node["right"]] if inner else []
        splits.append(_catboost_split(node["split"], columns) if inner else (0, 0.0, True))
        values.append(np.zeros(k) if inner else np.atleast_1d(np.asarray(node["value"], dtype=np.float64)))
        cover.append(0.0 if inner else float(np.sum(node.get("weight", 0.0))))
    for at in range(len(nodes) - 1, -1, -1):
        if left[at] >= 0:
            cover[at] = cover[left[at]] + cover[right[at]]
    column, border, nan_left = zip(*splits, strict=True)
    table = np.stack(values)
    return [Tree(left, right, column, border, nan_left, table[:, output], cover) for output in range(k)]


# scikit-learn --------------------------------------------------------------------------------------


def read_sklearn(model: Any, rows: Data) -> ReadModel | None:
    """Single trees, forests, and both kinds of gradient boosting."""
    if hasattr(model, "_predictors"):
        return _read_hist_boosting(model)
    if hasattr(model, "estimators_") and hasattr(model, "init_"):
        return _read_boosting(model)
    members = [model] if hasattr(model, "tree_") else getattr(model, "estimators_", None)
    averaging = hasattr(model, "tree_") or type(model).__name__.startswith(("RandomForest", "ExtraTrees"))
    if members is None or not averaging or not all(hasattr(tree, "tree_") for tree in members):
        return None
    classifier = hasattr(model, "predict_proba")
    if classifier and getattr(model, "n_outputs_", 1) > 1:
        _refuse("A classifier with several targets")
    raw = model.predict_proba if classifier else model.predict
    k = members[0].tree_.value.shape[2] if classifier else members[0].tree_.value.shape[1]
    ensembles = (
        pack([sklearn_tree(tree.tree_, output, classifier) for tree in members], 1 / len(members), single=True)
        for output in range(k)
    )
    return ReadModel(tuple(ensembles), "probability" if classifier else "value", feeding(raw, model), {})


def sklearn_tree(tree: Any, output: int = 0, classifier: bool = False) -> Tree:
    """A scikit-learn ``tree_``; class shares for a classifier."""
    table = tree.value[:, 0, :] / tree.value[:, 0, :].sum(axis=1, keepdims=True) if classifier else tree.value[:, :, 0]
    missing = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count))
    return Tree(
        tree.children_left,
        tree.children_right,
        np.maximum(tree.feature, 0),
        tree.threshold,
        np.asarray(missing, dtype=bool),
        table[:, output],
        tree.weighted_n_node_samples,
    )


def _read_boosting(model: Any) -> ReadModel:
    classifier = hasattr(model, "decision_function")
    raw = model.decision_function if classifier else model.predict
    ensembles = (
        pack([sklearn_tree(tree.tree_) for tree in trees], model.learning_rate, single=True)
        for trees in model.estimators_.T
    )
    return ReadModel(tuple(ensembles), "margin" if classifier else "value", feeding(raw, model), {})


def _read_hist_boosting(model: Any) -> ReadModel:
    """scikit-learn has no public way to the trees of this model; the private one is checked like all."""
    if getattr(model, "is_categorical_", None) is not None and np.any(model.is_categorical_):
        _refuse("scikit-learn's histogram boosting with categorical features")
    classifier = hasattr(model, "decision_function")
    if not classifier and model.loss in ("poisson", "gamma"):
        _refuse(f"Histogram boosting with the {model.loss} loss, which has no public raw prediction and")
    raw = model.decision_function if classifier else model.predict
    outputs = zip(*model._predictors, strict=True)
    ensembles = (pack([_hist_tree(predictor.nodes) for predictor in trees]) for trees in outputs)
    return ReadModel(tuple(ensembles), "margin" if classifier else "value", feeding(raw, model), {})


def _hist_tree(nodes: Any) -> Tree:
    leaf = nodes["is_leaf"].astype(bool)
    return Tree(
        np.where(leaf, -1, nodes["left"].astype(np.int64)),
        np.where(leaf, -1, nodes["right"].astype(np.int64)),
        nodes["feature_idx"].astype(np.int64),
        nodes["num_threshold"],
        nodes["missing_go_to_left"].astype(bool),
        nodes["value"],
        nodes["count"],
    )


READERS: Mapping[str, Callable[[Any, Any], ReadModel | None]] = {
    "lightgbm": read_lightgbm,
    "xgboost": read_xgboost,
    "catboost": read_catboost,
    "sklearn": read_sklearn,
}
