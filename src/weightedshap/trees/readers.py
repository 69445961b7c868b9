"""Readers of the user's tree ensembles: LightGBM, XGBoost, CatBoost and scikit-learn.

Each reader turns the library's public dump into flat arrays. The sum of the trees is then compared
with the library's own raw prediction, on background rows and on rows with values at the thresholds.
So a model that cannot be read exactly is refused, not explained wrongly. `wrappers` and `pipelines`
build on this module.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt
import pandas as pd

from weightedshap._checks import FloatArray, IntArray
from weightedshap.inputs import Column, Data, container_of, input_converter, plain_column
from weightedshap.inputs.predict import METHODS
from weightedshap.trees.ensembles import Ensemble, Tree, pack_trees

if TYPE_CHECKING:
    from catboost import CatBoost
    from lightgbm import Booster, LGBMModel
    from sklearn.base import BaseEstimator
    from sklearn.tree._tree import Tree as Nodes
    from xgboost import Booster as XGBooster
    from xgboost import XGBModel

# The number of artificial rows on which trees are compared with their model.
PROBES = 200
# Thresholds nearer to zero are not tested: LightGBM takes numbers below 1e-35 for zero.
TINY = 1e-30
GAMES_FOR_OTHERS = "'tree_surrogate', 'marginal' and 'baseline' work with any model"

Node = Mapping[str, Any]  # a node of a tree in a library's JSON


class UnreadableModelError(ValueError, TypeError):
    """Raised when a model is not a tree ensemble, or when its trees cannot be read exactly."""

    def __init__(self, reason: str, advice: str = f"{GAMES_FOR_OTHERS}.") -> None:
        super().__init__(reason, advice)

    def __str__(self) -> str:
        return " ".join(self.args).strip()

    @property
    def reason(self) -> str:
        """The error message without the advice to use games that work with any model."""
        return str(self.args[0])


@dataclass(frozen=True)
class TreeModelReading:
    """A model's trees as flat arrays, with its raw prediction and its way to encode rows.

    Splits are on the columns of the rows, or on columns that ``encoder`` computes from them;
    ``origins`` are then the input columns that each encoded column comes from.
    """

    ensembles: tuple[Ensemble, ...]  # one for each raw output
    raw: Callable[[Any], Any]  # rows → (n, k), the library's own raw prediction
    # The categories by column, for columns whose categories the model stores.
    categories: Mapping[int, Sequence[Any]] = field(default_factory=dict)
    # Which of the raw outputs are explained; None for all.
    picked: tuple[int, ...] | None = None
    # What raw outputs are multiplied by.
    factor: float | FloatArray = 1.0
    missing: float = np.nan  # the number that means a missing value
    is_single_threaded: bool = False  # whether `raw` uses one thread only
    encoder: Callable[[Data], FloatArray] | None = None  # rows → (n, c), what splits compare
    origins: tuple[frozenset[int], ...] | None = None  # (c,); None for the columns of the rows
    rounds_integers: bool = False  # whether the library rounds integers of arrays to float32

    def encode(self, rows: Data) -> FloatArray:
        """Encode rows as the numbers (n, c) that splits compare.

        Categories become their codes, and missing values NaN.
        """
        if self.encoder is not None:
            return self.encoder(rows)
        if isinstance(rows, np.ndarray):
            rounds = self.rounds_integers and rows.dtype not in (np.float32, np.float64)
            X = np.ascontiguousarray(rows.astype(np.float32) if rounds else rows, dtype=np.float64)
        else:
            if not isinstance(rows, pd.DataFrame):
                rows = pd.DataFrame(
                    {name: plain_column(rows, c) for c, name in enumerate(rows.columns)}
                )
            columns = [
                _encode_column(rows.iloc[:, c], self.categories.get(c))
                for c in range(rows.shape[1])
            ]
            X = np.ascontiguousarray(np.stack(columns, axis=1))
        if np.isnan(self.missing):
            return X
        # XGBoost compares with its missing value in single precision.
        return np.where(X.astype(np.float32) == np.float32(self.missing), np.nan, X)

    def predict(self, rows: Data) -> FloatArray:
        """Return the raw prediction (n, k) for rows, as computed by the model's library."""
        raw = np.asarray(self.raw(rows), dtype=np.float64).reshape(len(rows), -1)
        return (raw if self.picked is None else raw[:, self.picked]) * self.factor


def _encode_column(column: pd.Series[Any], categories: Sequence[Any] | None) -> FloatArray:
    """Encode a column as numbers (n,): categories as codes, missing or unknown ones as NaN."""
    if categories is not None or isinstance(column.dtype, pd.CategoricalDtype):
        known = pd.Index(categories) if categories is not None else column.cat.categories
        codes = known.get_indexer(pd.Index(column, dtype=object)).astype(np.float64)
        return np.where(codes < 0, np.nan, codes)
    try:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError) as error:
        raise UnreadableModelError(
            f"Column {str(column.name)!r} holds {column.dtype} values, which these trees do not"
            " compare.",
            f"Turn it into numbers, or into a category before training; {GAMES_FOR_OTHERS}.",
        ) from error


def library_of_class(kind: type) -> str:
    """Return the name of the top-level package in which a class is defined."""
    return kind.__module__.partition(".")[0]


def base_among(model: Any, known: Container[tuple[str, str]]) -> tuple[str, str] | None:
    """Return (package, name) of the first class in a model's MRO that is in `known`, or None."""
    kinds = ((library_of_class(kind), kind.__name__) for kind in type(model).__mro__)
    return next((kind for kind in kinds if kind in known), None)


def refuse_own_prediction(model: Any, base: tuple[str, str]) -> None:
    """Raise an error if the user's subclass of a library class overrides how it predicts.

    `base` is the package and the name of the library class.
    """
    for kind in type(model).__mro__:
        if (library_of_class(kind), kind.__name__) == base:
            return
        own = [name for name in METHODS if name in vars(kind)]
        if own and library_of_class(kind) != base[0]:
            raise UnreadableModelError(
                f"{kind.__name__} is a {base[1]} with a `{own[0]}` of its own, of which its trees"
                " may know nothing."
            )


def read_model(model: Any, rows: Data) -> TreeModelReading:
    """Read the trees of `model`, and check that they reproduce its predictions."""
    base = base_among(model, READERS)
    if base is None:
        raise UnreadableModelError(
            f"{type(model).__name__} is not a tree ensemble that can be read (LightGBM, XGBoost,"
            " CatBoost, and scikit-learn's trees, forests and boosting can)."
        )
    refuse_own_prediction(model, base)
    return check_reading(READERS[base](model, rows), rows)


def check_reading(read: TreeModelReading, rows: Data) -> TreeModelReading:
    """Check that the trees add up to the raw prediction; return them with the right offsets.

    Raise an error if they differ by more than a constant for each output.
    """
    rows = make_probes(read, rows)
    X = read.encode(rows)
    own = read.predict(rows)
    if own.shape[1] != len(read.ensembles):
        raise UnreadableModelError(
            f"The model predicts {own.shape[1]} raw outputs but {len(read.ensembles)} ensembles"
            " were read; this kind of model is not supported."
        )
    trees = np.stack([ensemble.predict(X) for ensemble in read.ensembles], axis=1)
    offsets = np.median(own - trees, axis=0)
    worst = float(np.abs(own - trees - offsets).max())
    if not worst <= 1e-5 * (1 + float(np.abs(own).max())):
        raise UnreadableModelError(
            "The trees of this model do not add up to its prediction (they differ by up to"
            f" {worst:.3g}), so it cannot be explained exactly. This happens with an initial"
            " estimator that depends on the row, or categories that are coded otherwise than in"
            " training."
        )
    ensembles = tuple(
        replace(e, offset=e.offset + o) for e, o in zip(read.ensembles, offsets, strict=True)
    )
    return replace(read, ensembles=ensembles)


def make_probes(found: TreeModelReading, rows: Data) -> Data:
    """Return test rows on which trees are compared with their model: `rows`, and artificial ones.

    Artificial rows combine values of the rows, thresholds and the numbers next to these, and
    missing values. A single row, or copies of it, would pass with any trees, because the offset
    can make up for every difference. If trees do not split on the columns of the rows themselves,
    only `rows` are returned.
    """
    if found.origins is not None:
        return rows
    container = container_of(rows)
    rng = np.random.default_rng(0)
    columns = [_probe_column(plain_column(rows, c), found, c, rng) for c in range(rows.shape[1])]
    made = container.from_columns(columns, rows, "background")
    try:
        found.predict(made)
    except Exception:  # any error of a library that accepts no missing values
        without_missing = [column[~pd.isna(column)] for column in columns]
        made = container.from_columns(
            [rng.choice(c, PROBES) if len(c) else np.zeros(PROBES) for c in without_missing],
            rows,
            "background",
        )
    # Convert `rows` to the same dtypes.
    own = container.from_columns(
        [plain_column(rows, c) for c in range(rows.shape[1])], made, "background"
    )
    return container.concat([own, made])


def _probe_column(
    column: Column, found: TreeModelReading, c: int, rng: np.random.Generator
) -> Column:
    """Draw values of column c for artificial rows: from the column, thresholds and missing values.

    If no split compares numbers of the column, values are drawn from the column alone.
    """
    thresholds = [e.threshold[(e.column == c) & (e.cat_slot < 0)] for e in found.ensembles]
    at = np.unique(np.concatenate(thresholds))
    at = at[(np.abs(at) < np.finfo(np.float32).max) & (np.abs(at) > TINY)]
    if column.dtype == object or not len(at):
        return rng.choice(column, PROBES)
    dtype = np.float32 if found.ensembles[0].single else np.float64
    neighbours = [
        np.nextafter(at.astype(dtype), dtype(end)).astype(np.float64) for end in (-np.inf, np.inf)
    ]
    pool = np.concatenate([at, *neighbours])
    picked = np.concatenate(
        [rng.choice(pool, PROBES), rng.choice(column, PROBES), np.zeros(PROBES // 4)]
    )
    gone = np.full(PROBES // 4, np.nan), np.full(PROBES // 4, found.missing)
    return rng.choice(np.concatenate([picked, *gone]), PROBES)


def _raise_unreadable(what: str) -> NoReturn:
    """Raise an error that trees, named by `what`, cannot be read as splits on single columns."""
    raise UnreadableModelError(
        f"{what} cannot be read as splits on single columns, so Δ would not be exact."
    )


def _flatten(root: Node, left_key: str, right_key: str) -> tuple[list[Node], IntArray]:
    """Return the nodes of a nested tree, and the position of each left child (−1 for a leaf).

    The right child comes right after the left one.
    """
    nodes = [root]
    left = []
    # The list grows during the loop.
    for node in nodes:
        left.append(len(nodes) if left_key in node else -1)
        nodes += [node[left_key], node[right_key]] if left_key in node else []
    return nodes, np.array(left, dtype=np.intp)


def read_lightgbm(model: Booster | LGBMModel, rows: Data) -> TreeModelReading:
    """Read a `lightgbm.Booster`, or its scikit-learn wrapper, through ``dump_model``."""
    import lightgbm

    booster = model if isinstance(model, lightgbm.Booster) else model.booster_
    dump = booster.dump_model()
    averaged = dump["average_output"] and dump["tree_info"]
    scale = dump["num_tree_per_iteration"] / len(dump["tree_info"]) if averaged else 1.0
    types = [] if isinstance(rows, np.ndarray) else map(str, rows.dtypes)
    positions = [c for c, name in enumerate(types) if name.lower().startswith(("categor", "enum"))]
    return TreeModelReading(
        lightgbm_ensembles(dump, scale),
        input_converter(partial(booster.predict, raw_score=True, num_threads=1), booster),
        dict(zip(positions, dump.get("pandas_categorical") or [], strict=False)),
        factor=scale,
        is_single_threaded=True,
        rounds_integers=True,
    )


def lightgbm_ensembles(dump: Mapping[str, Any], scale: float = 1.0) -> tuple[Ensemble, ...]:
    """Return the trees in the dump of a LightGBM booster, as one ensemble for each output.

    The dump is ``booster.dump_model()``. Leaf values are multiplied by `scale`.
    """
    k = dump["num_tree_per_iteration"]
    trees = [_lightgbm_tree(tree["tree_structure"]) for tree in dump["tree_info"]]
    return tuple(pack_trees(trees[output::k], scale) for output in range(k))


def lightgbm_mean(dumps: Sequence[Mapping[str, Any]]) -> Ensemble:
    """Return the mean of several LightGBM boosters with one output, given their dumps."""
    trees = [tree for dump in dumps for tree in dump["tree_info"]]
    return lightgbm_ensembles({"num_tree_per_iteration": 1, "tree_info": trees}, 1 / len(dumps))[0]


def _lightgbm_tree(structure: Node) -> Tree:
    """Return one tree of LightGBM's dump, given its ``tree_structure``."""
    nodes, left = _flatten(structure, "left_child", "right_child")
    on_sets = [at for at, node in enumerate(nodes) if node.get("decision_type") == "=="]
    sets = {at: [int(code) for code in nodes[at]["threshold"].split("||")] for at in on_sets}
    column, threshold, nan_left, value, cover, zero = zip(*map(_lightgbm_node, nodes), strict=True)
    return Tree(left, left + 1, column, threshold, nan_left, value, cover, zero, sets)


def _lightgbm_node(node: Node) -> tuple[int, float, bool, float, float, bool]:
    """Return the entries of `Tree` for one node of LightGBM's dump.

    These are the column, threshold, whether NaN goes left, value, cover, and whether zero counts
    as missing.
    """
    if "leaf_coeff" in node:
        _raise_unreadable("LightGBM's linear trees")
    if "split_feature" not in node:
        return 0, 0.0, False, node["leaf_value"], node.get("leaf_count", 0), False
    column = node["split_feature"]
    cover = node["internal_count"]
    missing = node["missing_type"]
    if node["decision_type"] == "==":
        return column, 0.0, False, 0.0, cover, False
    threshold = float(node["threshold"])
    # If no value was missing in training, LightGBM reads NaN as 0.
    nan_left = threshold >= 0 if missing == "None" else node["default_left"]
    return column, threshold, nan_left, 0.0, cover, missing == "Zero"


def read_xgboost(model: XGBooster | XGBModel, rows: Data) -> TreeModelReading:
    """Read an `xgboost.Booster`, or its scikit-learn wrapper, through its JSON format."""
    import xgboost

    booster = model if isinstance(model, xgboost.Booster) else model.get_booster()
    learner = json.loads(booster.save_raw("json"))["learner"]
    ensemble = learner["gradient_booster"]
    if ensemble["name"] == "gblinear":
        _raise_unreadable("XGBoost's gblinear booster")
    forest = ensemble.get("gbtree", ensemble)["model"]
    # The weights of dart trees; XGBoost stores them in the model from version 3.4 on.
    dropped = ensemble.get("weight_drop") or forest.get("weight_drop")
    weights = dropped or [1.0] * len(forest["trees"])
    missing = (
        np.nan if booster is model else float(np.nan if model.missing is None else model.missing)
    )
    # Wrappers predict with the best iteration, boosters with all.
    best = None if booster is model else booster.attr("best_iteration")
    iterations = 0 if best is None else int(best) + 1
    end = forest["iteration_indptr"][iterations] if iterations else len(forest["trees"])
    trees = [
        _xgboost_tree(tree, weight)
        for tree, weight in zip(forest["trees"][:end], weights[:end], strict=True)
    ]
    output_of = forest["tree_info"][:end]
    parameters = learner["learner_model_param"]
    k = max(int(parameters["num_class"]), int(parameters.get("num_target", 1)), 1)
    chosen = (
        [tree for tree, o in zip(trees, output_of, strict=True) if o == output]
        for output in range(k)
    )
    return TreeModelReading(
        tuple(pack_trees(one_output, single=True) for one_output in chosen),
        input_converter(partial(_xgboost_margin, booster, iterations, missing), booster),
        _xgboost_categories(forest.get("cats", {}).get("enc", [])),
        missing=missing,
    )


def _xgboost_margin(booster: XGBooster, iterations: int, missing: float, rows: Data) -> FloatArray:
    """Return the raw prediction (n[, k]) of a booster's first `iterations`; 0 means all."""
    import xgboost

    frame = not isinstance(rows, np.ndarray)
    names = None if frame else booster.feature_names
    matrix = xgboost.DMatrix(rows, missing=missing, feature_names=names, enable_categorical=frame)
    return np.asarray(booster.predict(matrix, output_margin=True, iteration_range=(0, iterations)))


def _xgboost_categories(columns: Sequence[Mapping[str, Any]]) -> dict[int, Sequence[Any]]:
    """Return the categories by column, given the entries that XGBoost 3.1 or later stores for them.

    They are numbers or ASCII text. Other text is left out, because XGBoost cuts it within letters.
    """
    found: dict[int, Sequence[Any]] = {}
    for c, column in enumerate(columns):
        values = column["values"]
        ends = column.get("offsets")
        if ends is None:
            found[c] = values
        elif values and all(0 <= letter < 128 for letter in values):
            found[c] = [bytes(values[a:b]).decode() for a, b in pairwise(ends)]
    return found


def _xgboost_tree(tree: Mapping[str, Any], weight: float) -> Tree:
    """Return one tree of XGBoost's JSON, with leaf values multiplied by `weight`."""
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        _raise_unreadable("XGBoost's trees with vector leaves")
    # The thresholds of splits, and the values of leaves.
    conditions = np.asarray(tree["split_conditions"], dtype=np.float32)
    # x < t is equivalent to x ≤ the largest number below t.
    below = np.nextafter(conditions, np.float32(-np.inf))
    left = tree["left_children"]
    right = tree["right_children"]
    column = tree["split_indices"]
    nan_left = tree["default_left"]
    value = conditions.astype(np.float64) * weight
    cover = tree["sum_hessian"]
    names = "categories_nodes", "categories_segments", "categories_sizes"
    nodes = zip(*(tree.get(name, []) for name in names), strict=True)
    sets = {node: tree["categories"][begin : begin + size] for node, begin, size in nodes}
    return Tree(
        left, right, column, below, nan_left, value, cover, categories=sets, categories_left=False
    )


def read_catboost(model: CatBoost, rows: Data) -> TreeModelReading:
    """Read a CatBoost model through its JSON format; all splits must be on numbers."""
    from catboost import CatBoostError

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            model.save_model(str(path), format="json")
        except CatBoostError as error:
            # The model uses features that CatBoost computes from text or embeddings.
            reason = str(error).rpartition(": ")[2]
            raise UnreadableModelError(
                f"CatBoost saves these trees in no format to read ({reason})."
            ) from error
        dump = json.loads(path.read_text())
    columns = {f["feature_index"]: f for f in dump["features_info"].get("float_features", [])}
    scale, biases = dump["scale_and_bias"]
    k = max(len(np.atleast_1d(biases)), 1)
    levels = dump.get("oblivious_trees", [])
    oblivious = [
        _nest(tree["splits"] or [], tree["leaf_values"], tree["leaf_weights"]) for tree in levels
    ]
    trees = [_catboost_trees(tree, columns, k) for tree in oblivious or dump.get("trees", [])]
    return TreeModelReading(
        tuple(
            pack_trees([tree[output] for tree in trees], scale, single=True) for output in range(k)
        ),
        partial(model.predict, prediction_type="RawFormulaVal"),
    )


def _nest(splits: Sequence[Node], values: Sequence[float], weights: Sequence[float]) -> Node:
    """Return an oblivious tree of CatBoost, with one split for each level, as a nested tree.

    The last split is at the root.
    """
    if not splits:
        return {"value": values, "weight": weights}
    v = len(values) // 2
    w = len(weights) // 2
    left = _nest(splits[:-1], values[:v], weights[:w])
    right = _nest(splits[:-1], values[v:], weights[w:])
    return {"split": splits[-1], "left": left, "right": right}


def _catboost_trees(tree: Node, columns: Mapping[int, Any], k: int) -> list[Tree]:
    """Convert a nested CatBoost tree into k trees, one for each output."""
    nodes, left = _flatten(tree, "left", "right")
    splits = [
        _catboost_split(node["split"], columns) if "split" in node else (0, 0.0, True)
        for node in nodes
    ]
    values = np.stack(
        [np.zeros(k) if "split" in node else np.atleast_1d(node["value"]) for node in nodes]
    )
    cover = np.array([np.sum(node.get("weight", 0.0)) for node in nodes], dtype=np.float64)
    for at in np.flatnonzero(left >= 0)[::-1]:
        cover[at] = cover[left[at]] + cover[left[at] + 1]
    column, border, nan_left = zip(*splits, strict=True)
    return [Tree(left, left + 1, column, border, nan_left, value, cover) for value in values.T]


def _catboost_split(split: Node, columns: Mapping[int, Any]) -> tuple[int, float, bool]:
    """Return the column and border of a split x ≤ border, and whether missing values go left."""
    if split["split_type"] != "FloatFeature":
        _raise_unreadable(f"CatBoost's {split['split_type']} splits on categories and combinations")
    feature = columns[split["float_feature_index"]]
    return (
        feature["flat_feature_index"],
        float(split["border"]),
        feature["nan_value_treatment"] != "AsTrue",
    )


def read_sklearn(model: BaseEstimator, rows: Data) -> TreeModelReading:
    """Read a scikit-learn tree, forest, or gradient boosting (plain or by histograms)."""
    from sklearn import base, ensemble, tree

    classifier = isinstance(model, base.ClassifierMixin)
    if isinstance(model, (tree.DecisionTreeClassifier, tree.DecisionTreeRegressor)):
        return _read_forest(model, [model], classifier)
    forests = ensemble.RandomForestClassifier, ensemble.RandomForestRegressor
    if isinstance(model, (*forests, ensemble.ExtraTreesClassifier, ensemble.ExtraTreesRegressor)):
        return _read_forest(model, model.estimators_, classifier)
    if isinstance(model, (ensemble.GradientBoostingClassifier, ensemble.GradientBoostingRegressor)):
        outputs = [
            [_sklearn_tree(member.tree_) for member in members] for members in model.estimators_.T
        ]
        ensembles = [pack_trees(trees, model.learning_rate, single=True) for trees in outputs]
        return TreeModelReading(
            tuple(ensembles), input_converter(_raw_of(model, classifier), model)
        )
    return _read_histograms(model, classifier)


def _raw_of(model: BaseEstimator, classifier: bool) -> Callable[[Any], Any]:
    """Return the method of a scikit-learn boosting model that predicts the sum of its trees."""
    return model.decision_function if classifier else model.predict  # type: ignore[no-any-return]


def _read_forest(
    model: BaseEstimator, members: Sequence[BaseEstimator], classifier: bool
) -> TreeModelReading:
    """Read a scikit-learn forest, whose prediction is the mean of its `members`."""
    if classifier and model.n_outputs_ > 1:
        _raise_unreadable("A classifier with several targets")
    raw = model.predict_proba if classifier else model.predict
    outputs = range(members[0].tree_.value.shape[2 if classifier else 1])
    trees = (
        [_sklearn_tree(member.tree_, output, classifier) for member in members]
        for output in outputs
    )
    ensembles = (pack_trees(one_output, 1 / len(members), single=True) for one_output in trees)
    return TreeModelReading(tuple(ensembles), input_converter(raw, model))


def _sklearn_tree(tree: Nodes, output: int = 0, classifier: bool = False) -> Tree:
    """Convert one output of a scikit-learn ``tree_``: class shares if it is of a classifier."""
    values = tree.value[:, :, 0]
    if classifier:
        counts = tree.value[:, 0, :]
        values = counts / counts.sum(axis=1, keepdims=True)
    left = tree.children_left
    right = tree.children_right
    nan_left = tree.missing_go_to_left
    return Tree(
        left,
        right,
        tree.feature,
        tree.threshold,
        nan_left,
        values[:, output],
        tree.weighted_n_node_samples,
    )


def _read_histograms(model: BaseEstimator, classifier: bool) -> TreeModelReading:
    """Read scikit-learn's histogram gradient boosting.

    Its trees, and the encoder that turns categories into codes (NaN for unknown ones), are private
    attributes; the trees are checked against predictions like those of any model.
    """
    if not classifier and model.loss in ("poisson", "gamma"):
        _raise_unreadable(
            f"Histogram boosting with the {model.loss} loss, which has no public raw prediction and"
        )
    columns = np.arange(model.n_features_in_)
    encoder = None
    if np.any(model.is_categorical_):
        is_categorical = np.asarray(model.is_categorical_, dtype=bool)
        # The encoder puts columns with categories first.
        columns = np.argsort(~is_categorical, kind="stable")
        transform = input_converter(model._preprocessor.transform, model)
        encoder = partial(_histogram_numbers, transform, columns)

    outputs = zip(*model._predictors, strict=True)
    trees = ([_histogram_tree(one, columns) for one in predictors] for predictors in outputs)
    ensembles = tuple(pack_trees(one_output) for one_output in trees)
    return TreeModelReading(
        ensembles, input_converter(_raw_of(model, classifier), model), encoder=encoder
    )


def _histogram_numbers(
    transform: Callable[[Data], Any], columns: IntArray, rows: Data
) -> FloatArray:
    """Encode rows by `transform` for histogram boosting, and restore the order of their columns.

    Column i of the transformed rows comes from column ``columns[i]`` of the rows.
    """
    made = np.asarray(transform(rows), dtype=np.float64)
    X = np.empty_like(made)
    X[:, columns] = made
    return X


def _histogram_tree(predictor: Any, columns: IntArray) -> Tree:
    """Return one tree of histogram boosting, with its feature i renumbered as ``columns[i]``."""
    nodes = predictor.nodes
    left = np.where(nodes["is_leaf"], -1, nodes["left"].astype(np.int64))
    on_sets = np.flatnonzero((nodes["is_categorical"] != 0) & (left >= 0))
    bits = predictor.raw_left_cat_bitsets
    sets = {int(node): _codes(bits[nodes["bitset_idx"][node]]) for node in on_sets}
    threshold = np.where(nodes["is_categorical"], 0.0, nodes["num_threshold"])
    column = columns[nodes["feature_idx"]]
    nan_left = nodes["missing_go_to_left"]
    value = nodes["value"]
    cover = nodes["count"]
    return Tree(left, nodes["right"], column, threshold, nan_left, value, cover, categories=sets)


def _codes(words: npt.NDArray[np.uint32]) -> list[int]:
    """Return the positions of all bits that are set in a bitset of 32-bit words."""
    return [
        32 * w + bit
        for w, word in enumerate(words.tolist())
        for bit in range(32)
        if word >> bit & 1
    ]


FROM_SKLEARN = (
    *("DecisionTreeClassifier", "DecisionTreeRegressor"),
    *("RandomForestClassifier", "RandomForestRegressor"),
    *("ExtraTreesClassifier", "ExtraTreesRegressor"),
    *("GradientBoostingClassifier", "GradientBoostingRegressor"),
    *("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"),
)
READERS: Mapping[tuple[str, str], Callable[[Any, Any], TreeModelReading]] = {
    ("lightgbm", "Booster"): read_lightgbm,
    ("lightgbm", "LGBMModel"): read_lightgbm,
    ("xgboost", "Booster"): read_xgboost,
    ("xgboost", "XGBModel"): read_xgboost,
    ("catboost", "CatBoost"): read_catboost,
    **{("sklearn", name): read_sklearn for name in FROM_SKLEARN},
}
"""The function that reads a tree ensemble, by the package and the name of its class."""
