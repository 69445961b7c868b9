"""People's tree ensembles as flat arrays: LightGBM, XGBoost, CatBoost and scikit-learn.

Each is read through its public dump, and the sum of the trees is compared with the library's own
raw prediction on background rows and on rows at the thresholds, so a model that cannot be read
exactly is refused, not explained wrongly.
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
from weightedshap.inputs import Column, Data, column_of, feeding, kind_of
from weightedshap.inputs.predict import METHODS
from weightedshap.trees.ensembles import Ensemble, Tree, pack

if TYPE_CHECKING:
    from catboost import CatBoost
    from lightgbm import Booster, LGBMModel
    from sklearn.base import BaseEstimator
    from sklearn.tree._tree import Tree as Nodes
    from xgboost import Booster as XGBooster
    from xgboost import XGBModel

PROBES = 200  # rows made to hold a reading against the model
TINY = 1e-30  # LightGBM reads what is nearer to zero than 1e-35 as zero
GAMES_FOR_OTHERS = "'tree_surrogate', 'marginal' and 'baseline' work with any model"

Node = Mapping[str, Any]  # of a library's JSON


class UnreadableModel(ValueError, TypeError):
    """A model that is no tree ensemble, or one whose trees cannot be read exactly."""

    def __init__(self, reason: str, advice: str = f"{GAMES_FOR_OTHERS}.") -> None:
        super().__init__(reason, advice)

    def __str__(self) -> str:
        return " ".join(self.args).strip()

    @property
    def reason(self) -> str:
        """Why, in a sentence that makes sense beside the games that explain the model instead."""
        return str(self.args[0])


@dataclass(frozen=True)
class ReadModel:
    """A tree ensemble that was read.

    Its splits are on the columns of the rows, or on columns that an ``encoder`` makes of them;
    ``origins`` are the columns of the rows that each of these comes from.
    """

    ensembles: tuple[Ensemble, ...]  # one for each raw output
    raw: Callable[[Any], Any]  # rows → (n, k), the library's own prediction on that scale
    # By column, where the model has them.
    categories: Mapping[int, Sequence[Any]] = field(default_factory=dict)
    picked: tuple[int, ...] | None = (
        None  # which of the raw outputs are looked at; None looks at all
    )
    factor: float | FloatArray = 1.0  # what they are times
    missing: float = np.nan  # the number that stands for a missing value
    one_thread: bool = False  # whether `raw` keeps to one
    encoder: Callable[[Data], FloatArray] | None = None  # rows → (n, c) what splits compare
    origins: tuple[frozenset[int], ...] | None = None  # (c,); None for the columns of the rows
    rounds_integers: bool = False  # whether the library rounds integers of arrays to float32

    def encode(self, rows: Data) -> FloatArray:
        """Rows as the numbers that splits compare: categories as their codes, missing values as
        NaN."""
        if self.encoder is not None:
            return self.encoder(rows)
        if isinstance(rows, np.ndarray):
            rounds = self.rounds_integers and rows.dtype not in (np.float32, np.float64)
            X = np.ascontiguousarray(rows.astype(np.float32) if rounds else rows, dtype=np.float64)
        else:
            if not isinstance(rows, pd.DataFrame):
                rows = pd.DataFrame(
                    {name: column_of(rows, c) for c, name in enumerate(rows.columns)}
                )
            columns = [
                _encoded(rows.iloc[:, c], self.categories.get(c)) for c in range(rows.shape[1])
            ]
            X = np.ascontiguousarray(np.stack(columns, axis=1))
        if np.isnan(self.missing):
            return X
        # Compared as XGBoost does.
        return np.where(X.astype(np.float32) == np.float32(self.missing), np.nan, X)

    def predict(self, rows: Data) -> FloatArray:
        """(n, k) the library's own raw prediction."""
        raw = np.asarray(self.raw(rows), dtype=np.float64).reshape(len(rows), -1)
        return (raw if self.picked is None else raw[:, self.picked]) * self.factor


def _encoded(column: pd.Series[Any], categories: Sequence[Any] | None) -> FloatArray:
    if categories is not None or isinstance(column.dtype, pd.CategoricalDtype):
        known = pd.Index(categories) if categories is not None else column.cat.categories
        codes = known.get_indexer(pd.Index(column, dtype=object)).astype(np.float64)
        return np.where(codes < 0, np.nan, codes)
    try:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError) as error:
        raise UnreadableModel(
            f"Column {str(column.name)!r} holds {column.dtype} values, which these trees do not"
            " compare.",
            f"Turn it into numbers, or into a category before training; {GAMES_FOR_OTHERS}.",
        ) from error


def library_of_class(kind: type) -> str:
    """Return the name of the package that a class belongs to."""
    return kind.__module__.partition(".")[0]


def base_among(model: Any, known: Container[tuple[str, str]]) -> tuple[str, str] | None:
    """Return package and name of the first class of a model, or base of it, among `known`."""
    kinds = ((library_of_class(kind), kind.__name__) for kind in type(model).__mro__)
    return next((kind for kind in kinds if kind in known), None)


def refuse_own_prediction(model: Any, base: tuple[str, str]) -> None:
    """Raise an error for a user's subclass of `base` (package, name) that predicts otherwise."""
    for kind in type(model).__mro__:
        if (library_of_class(kind), kind.__name__) == base:
            return
        own = [name for name in METHODS if name in vars(kind)]
        if own and library_of_class(kind) != base[0]:
            said = f"{kind.__name__} is a {base[1]} with a `{own[0]}` of its own"
            raise UnreadableModel(f"{said}, of which its trees may know nothing.")


def read_model(model: Any, rows: Data) -> ReadModel:
    """Read `model`, and check the reading against its own predictions, see `probes`."""
    base = base_among(model, READERS)
    if base is None:
        raise UnreadableModel(
            f"{type(model).__name__} is not a tree ensemble that can be read (LightGBM, XGBoost,"
            " CatBoost, and scikit-learn's trees, forests and boosting can)."
        )
    refuse_own_prediction(model, base)
    return checked(READERS[base](model, rows), rows)


def checked(read: ReadModel, rows: Data) -> ReadModel:
    """Return `read` with offsets by which trees add up to its raw prediction, or raise an error."""
    rows = probes(read, rows)
    X = read.encode(rows)
    own = read.predict(rows)
    if own.shape[1] != len(read.ensembles):
        raise UnreadableModel(
            f"The model predicts {own.shape[1]} raw outputs but {len(read.ensembles)} ensembles"
            " were read; this kind of model is not supported."
        )
    trees = np.stack([ensemble.predict(X) for ensemble in read.ensembles], axis=1)
    offsets = np.median(own - trees, axis=0)
    worst = float(np.abs(own - trees - offsets).max())
    if not worst <= 1e-5 * (1 + float(np.abs(own).max())):
        raise UnreadableModel(
            "The trees of this model do not add up to its prediction (they differ by up to"
            f" {worst:.3g}), so it cannot be explained exactly. This happens with an initial"
            " estimator that depends on the row, or categories that are coded otherwise than in"
            " training."
        )
    ensembles = tuple(
        replace(e, offset=e.offset + o) for e, o in zip(read.ensembles, offsets, strict=True)
    )
    return replace(read, ensembles=ensembles)


def probes(found: ReadModel, rows: Data) -> Data:
    """`rows` and others made of their values, of the thresholds and the numbers next to these, and
    of holes.

    One row, or copies of one, would pass with any trees at all: an offset could make up for what
    they miss. Where trees do not split on the columns of the rows, the rows are all there is.
    """
    if found.origins is not None:
        return rows
    kind = kind_of(rows)
    rng = np.random.default_rng(0)
    columns = [_probed(column_of(rows, c), found, c, rng) for c in range(rows.shape[1])]
    made = kind.build(columns, rows, "background")
    try:
        found.predict(made)
    except Exception:  # of any library, which takes no missing values
        whole = [column[~pd.isna(column)] for column in columns]
        made = kind.build(
            [rng.choice(c, PROBES) if len(c) else np.zeros(PROBES) for c in whole],
            rows,
            "background",
        )
    # In the same dtypes.
    own = kind.build([column_of(rows, c) for c in range(rows.shape[1])], made, "background")
    return kind.join([own, made])


def _probed(column: Column, found: ReadModel, c: int, rng: np.random.Generator) -> Column:
    """(PROBES,) values of one column, as it is where no number is compared."""
    asked = [e.threshold[(e.column == c) & (e.cat_slot < 0)] for e in found.ensembles]
    at = np.unique(np.concatenate(asked))
    at = at[(np.abs(at) < np.finfo(np.float32).max) & (np.abs(at) > TINY)]
    if column.dtype == object or not len(at):
        return rng.choice(column, PROBES)
    dtype = np.float32 if found.ensembles[0].single else np.float64
    beside = [
        np.nextafter(at.astype(dtype), dtype(end)).astype(np.float64) for end in (-np.inf, np.inf)
    ]
    pool = np.concatenate([at, *beside])
    picked = np.concatenate(
        [rng.choice(pool, PROBES), rng.choice(column, PROBES), np.zeros(PROBES // 4)]
    )
    gone = np.full(PROBES // 4, np.nan), np.full(PROBES // 4, found.missing)
    return rng.choice(np.concatenate([picked, *gone]), PROBES)


def _refuse(what: str) -> NoReturn:
    raise UnreadableModel(
        f"{what} cannot be read as splits on single columns, so Δ would not be exact."
    )


def _flat(root: Node, left_key: str, right_key: str) -> tuple[list[Node], IntArray]:
    """The nodes of a nested tree, and where the left child of each is, the right one being next; −1
    for a leaf."""
    nodes = [root]
    left = []
    for node in nodes:  # the list grows while it is walked
        left.append(len(nodes) if left_key in node else -1)
        nodes += [node[left_key], node[right_key]] if left_key in node else []
    return nodes, np.array(left, dtype=np.intp)


def read_lightgbm(model: Booster | LGBMModel, rows: Data) -> ReadModel:
    """A `lightgbm.Booster` or scikit-learn wrapper, through ``dump_model``."""
    import lightgbm

    booster = model if isinstance(model, lightgbm.Booster) else model.booster_
    dump = booster.dump_model()
    averaged = dump["average_output"] and dump["tree_info"]
    scale = dump["num_tree_per_iteration"] / len(dump["tree_info"]) if averaged else 1.0
    types = [] if isinstance(rows, np.ndarray) else map(str, rows.dtypes)
    positions = [c for c, name in enumerate(types) if name.lower().startswith(("categor", "enum"))]
    return ReadModel(
        lightgbm_ensembles(dump, scale),
        feeding(partial(booster.predict, raw_score=True, num_threads=1), booster),
        dict(zip(positions, dump.get("pandas_categorical") or [], strict=False)),
        factor=scale,
        one_thread=True,
        rounds_integers=True,
    )


def lightgbm_ensembles(dump: Mapping[str, Any], scale: float = 1.0) -> tuple[Ensemble, ...]:
    """The trees of ``booster.dump_model()``, one ensemble for each output, leaf values times
    `scale`."""
    k = dump["num_tree_per_iteration"]
    trees = [_lightgbm_tree(tree["tree_structure"]) for tree in dump["tree_info"]]
    return tuple(pack(trees[output::k], scale) for output in range(k))


def lightgbm_mean(dumps: Sequence[Mapping[str, Any]]) -> Ensemble:
    """The mean of several boosters of one output."""
    trees = [tree for dump in dumps for tree in dump["tree_info"]]
    return lightgbm_ensembles({"num_tree_per_iteration": 1, "tree_info": trees}, 1 / len(dumps))[0]


def _lightgbm_tree(structure: Node) -> Tree:
    nodes, left = _flat(structure, "left_child", "right_child")
    on_sets = [at for at, node in enumerate(nodes) if node.get("decision_type") == "=="]
    sets = {at: [int(code) for code in nodes[at]["threshold"].split("||")] for at in on_sets}
    column, threshold, nan_left, value, cover, zero = zip(*map(_lightgbm_node, nodes), strict=True)
    return Tree(left, left + 1, column, threshold, nan_left, value, cover, zero, sets)


def _lightgbm_node(node: Node) -> tuple[int, float, bool, float, float, bool]:
    """Column, threshold, whether NaN goes left, value, cover, and whether zero is missing."""
    if "leaf_coeff" in node:
        _refuse("LightGBM's linear trees")
    if "split_feature" not in node:
        return 0, 0.0, False, node["leaf_value"], node.get("leaf_count", 0), False
    column = node["split_feature"]
    cover = node["internal_count"]
    missing = node["missing_type"]
    if node["decision_type"] == "==":
        return column, 0.0, False, 0.0, cover, False
    threshold = float(node["threshold"])
    # Where none was missing, NaN is read as 0.
    nan_left = threshold >= 0 if missing == "None" else node["default_left"]
    return column, threshold, nan_left, 0.0, cover, missing == "Zero"


def read_xgboost(model: XGBooster | XGBModel, rows: Data) -> ReadModel:
    """An `xgboost.Booster` or scikit-learn wrapper, through its JSON format."""
    import xgboost

    booster = model if isinstance(model, xgboost.Booster) else model.get_booster()
    learner = json.loads(booster.save_raw("json"))["learner"]
    ensemble = learner["gradient_booster"]
    if ensemble["name"] == "gblinear":
        _refuse("XGBoost's gblinear booster")
    forest = ensemble.get("gbtree", ensemble)["model"]
    # Dart's; from 3.4 on in the latter place.
    dropped = ensemble.get("weight_drop") or forest.get("weight_drop")
    weights = dropped or [1.0] * len(forest["trees"])
    missing = (
        np.nan if booster is model else float(np.nan if model.missing is None else model.missing)
    )
    # Wrappers stop there, boosters do not.
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
    return ReadModel(
        tuple(pack(one_output, single=True) for one_output in chosen),
        feeding(partial(_xgboost_margin, booster, iterations, missing), booster),
        _xgboost_categories(forest.get("cats", {}).get("enc", [])),
        missing=missing,
    )


def _xgboost_margin(booster: XGBooster, iterations: int, missing: float, rows: Data) -> FloatArray:
    """What the first `iterations` of them predict; 0 for all."""
    import xgboost

    frame = not isinstance(rows, np.ndarray)
    names = None if frame else booster.feature_names
    matrix = xgboost.DMatrix(rows, missing=missing, feature_names=names, enable_categorical=frame)
    return np.asarray(booster.predict(matrix, output_margin=True, iteration_range=(0, iterations)))


def _xgboost_categories(columns: Sequence[Mapping[str, Any]]) -> dict[int, Sequence[Any]]:
    """Categories by column, kept from XGBoost 3.1 on: numbers, or ASCII text (other text it cuts
    within letters)."""
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
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        _refuse("XGBoost's trees with vector leaves")
    conditions = np.asarray(tree["split_conditions"], dtype=np.float32)  # of leaves: their values
    below = np.nextafter(conditions, np.float32(-np.inf))  # x < t is x ≤ the number before t
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


def read_catboost(model: CatBoost, rows: Data) -> ReadModel:
    """A CatBoost model with splits on numbers, through its JSON format."""
    from catboost import CatBoostError

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            model.save_model(str(path), format="json")
        except CatBoostError as error:  # of features made of text or of embeddings
            said = str(error).rpartition(": ")[2]
            raise UnreadableModel(
                f"CatBoost saves these trees in no format to read ({said})."
            ) from error
        dump = json.loads(path.read_text())
    columns = {f["feature_index"]: f for f in dump["features_info"].get("float_features", [])}
    scale, biases = dump["scale_and_bias"]
    k = max(len(np.atleast_1d(biases)), 1)
    levels = dump.get("oblivious_trees", [])
    oblivious = [
        _nested(tree["splits"] or [], tree["leaf_values"], tree["leaf_weights"]) for tree in levels
    ]
    trees = [_catboost_trees(tree, columns, k) for tree in oblivious or dump.get("trees", [])]
    return ReadModel(
        tuple(pack([tree[output] for tree in trees], scale, single=True) for output in range(k)),
        partial(model.predict, prediction_type="RawFormulaVal"),
    )


def _nested(splits: Sequence[Node], values: Sequence[float], weights: Sequence[float]) -> Node:
    """An oblivious tree, with one split for each level, as a nested one; the last split stands at
    the root."""
    if not splits:
        return {"value": values, "weight": weights}
    v = len(values) // 2
    w = len(weights) // 2
    left = _nested(splits[:-1], values[:v], weights[:w])
    right = _nested(splits[:-1], values[v:], weights[w:])
    return {"split": splits[-1], "left": left, "right": right}


def _catboost_trees(tree: Node, columns: Mapping[int, Any], k: int) -> list[Tree]:
    """A nested tree as one tree for each output."""
    nodes, left = _flat(tree, "left", "right")
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
    """Column, border and side of the missing value of a CatBoost split: left if x ≤ border."""
    if split["split_type"] != "FloatFeature":
        _refuse(f"CatBoost's {split['split_type']} splits on categories and combinations")
    feature = columns[split["float_feature_index"]]
    return (
        feature["flat_feature_index"],
        float(split["border"]),
        feature["nan_value_treatment"] != "AsTrue",
    )


def read_sklearn(model: BaseEstimator, rows: Data) -> ReadModel:
    """Single trees, forests, and both kinds of gradient boosting."""
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
        ensembles = [pack(trees, model.learning_rate, single=True) for trees in outputs]
        return ReadModel(tuple(ensembles), feeding(_raw_of(model, classifier), model))
    return _read_histograms(model, classifier)


def _raw_of(model: BaseEstimator, classifier: bool) -> Callable[[Any], Any]:
    """Return the method of a boosted model that gives the sum of its trees."""
    return model.decision_function if classifier else model.predict  # type: ignore[no-any-return]


def _read_forest(
    model: BaseEstimator, members: Sequence[BaseEstimator], classifier: bool
) -> ReadModel:
    """The mean of the members' trees."""
    if classifier and model.n_outputs_ > 1:
        _refuse("A classifier with several targets")
    raw = model.predict_proba if classifier else model.predict
    outputs = range(members[0].tree_.value.shape[2 if classifier else 1])
    trees = (
        [_sklearn_tree(member.tree_, output, classifier) for member in members]
        for output in outputs
    )
    ensembles = (pack(one_output, 1 / len(members), single=True) for one_output in trees)
    return ReadModel(tuple(ensembles), feeding(raw, model))


def _sklearn_tree(tree: Nodes, output: int = 0, classifier: bool = False) -> Tree:
    """A scikit-learn ``tree_``; class shares for a classifier."""
    table = (
        tree.value[:, 0, :] / tree.value[:, 0, :].sum(axis=1, keepdims=True)
        if classifier
        else tree.value[:, :, 0]
    )
    left = tree.children_left
    right = tree.children_right
    nan_left = tree.missing_go_to_left
    return Tree(
        left,
        right,
        tree.feature,
        tree.threshold,
        nan_left,
        table[:, output],
        tree.weighted_n_node_samples,
    )


def _read_histograms(model: BaseEstimator, classifier: bool) -> ReadModel:
    """Read histogram boosting.

    scikit-learn has no public way to its trees, nor to the encoder that turns categories into the
    codes that they ask about, NaN for unknown ones; the private ways are checked like all.
    """
    if not classifier and model.loss in ("poisson", "gamma"):
        _refuse(
            f"Histogram boosting with the {model.loss} loss, which has no public raw prediction and"
        )
    columns = np.arange(model.n_features_in_)
    encoder = None
    if np.any(model.is_categorical_):
        is_categorical = np.asarray(model.is_categorical_, dtype=bool)
        # the encoder puts columns with categories first
        columns = np.argsort(~is_categorical, kind="stable")
        transform = feeding(model._preprocessor.transform, model)
        encoder = partial(_histogram_numbers, transform, columns)

    outputs = zip(*model._predictors, strict=True)
    trees = ([_histogram_tree(one, columns) for one in predictors] for predictors in outputs)
    ensembles = tuple(pack(one_output) for one_output in trees)
    return ReadModel(ensembles, feeding(_raw_of(model, classifier), model), encoder=encoder)


def _histogram_numbers(
    transform: Callable[[Data], Any], columns: IntArray, rows: Data
) -> FloatArray:
    """Return rows as the numbers that histogram boosting compares, in the order of the rows'
    columns.

    `columns` are the positions in the rows of the columns that `transform` makes.
    """
    made = np.asarray(transform(rows), dtype=np.float64)
    X = np.empty_like(made)
    X[:, columns] = made
    return X


def _histogram_tree(predictor: Any, columns: IntArray) -> Tree:
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
    """Return which bits of words of 32 are set."""
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
READERS: Mapping[tuple[str, str], Callable[[Any, Any], ReadModel]] = {
    ("lightgbm", "Booster"): read_lightgbm,
    ("lightgbm", "LGBMModel"): read_lightgbm,
    ("xgboost", "Booster"): read_xgboost,
    ("xgboost", "XGBModel"): read_xgboost,
    ("catboost", "CatBoost"): read_catboost,
    **{("sklearn", name): read_sklearn for name in FROM_SKLEARN},
}
"""What reads a tree ensemble, by the package and the name of its class."""
