"""XGBoost's JSON and UBJSON, checked before the library reads them.

XGBoost trusts its files: a child beyond the end, nodes in a circle, a tree of a class that there is
not, or fewer numbers than it counts on end the interpreter, or it never comes back. What is checked
here is every number that it uses as a position, a size or a count. Both formats hold one document.
"""

import json
import re
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap.trees import ubjson
from weightedshap.trees.nodes import node_depths

BASE_SCORE = re.compile(r"[-+]?[0-9.]{1,40}(?:[eE][-+]?[0-9]{1,2})?")
MOST_CATEGORIES = 2**24  # XGBoost takes no codes from here on
MOST_BITS = 2**33  # for sets of categories: each node keeps a bit for every code up to its largest

WHOLE = (int,)
NUMBER = (int, float)
# In JSON, and the kinds of numpy that arrays have in UBJSON.
TYPES = {
    int: "iu",
    float: "f",
    bool: "b",
}

CATEGORIES = ("categories_nodes", "categories_segments", "categories_sizes", "categories")
OF_NODES = {
    "left_children": WHOLE,
    "right_children": WHOLE,
    "parents": WHOLE,
    "split_indices": WHOLE,
    "split_conditions": NUMBER,
    "default_left": (int, bool),
    "loss_changes": NUMBER,
    "sum_hessian": NUMBER,
}

Table = Mapping[str, Any]
Types = tuple[type, ...]


@dataclass(frozen=True)
class DocumentFacts:
    """What a document says about its model."""

    features: int
    outputs: int
    estimator: str  # that wrote it: "classifier", "regressor", "ranker", or "" for a booster


def read_json(content: bytes) -> Any:
    """Return the value that `content` holds as JSON, each name once within a table."""
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_table)
    except RecursionError:
        raise ValueError("it is nested too deeply.") from None


def _table(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("it says something twice within one table.")
    return table


def check_document(document: object) -> DocumentFacts:
    """Check the document of an XGBoost model; a ValueError says what is wrong with it."""
    learner = _member(_kind(document, dict, "the document"), "learner", dict)
    parameters = _member(learner, "learner_model_param", dict)
    features = _whole(parameters, "num_feature")
    outputs = max(_whole(parameters, "num_class", 0), _whole(parameters, "num_target", 1), 1)
    _check_base_score(_member(parameters, "base_score", str), outputs)
    _check_objective(_member(learner, "objective", dict), outputs)
    for name in ("feature_names", "feature_types"):
        texts = _member(learner, name, list, [])
        if len(texts) not in (0, features) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"`{name}` are not {features} texts.")

    booster = _member(learner, "gradient_booster", dict)
    name = _member(booster, "name", str)
    trees = []
    if name == "gblinear":
        rounds = _check_linear(_member(booster, "model", dict), features, outputs)
    elif name in ("gbtree", "dart"):
        gbtree = _member(booster, "gbtree", dict) if name == "dart" else booster
        if _member(gbtree, "name", str) != "gbtree":
            raise ValueError("it holds a booster within a booster that is none of trees.")
        model = _member(gbtree, "model", dict)
        trees = [_kind(tree, dict, "a tree") for tree in _member(model, "trees", list)]
        rounds = _check_booster(booster, model, trees, features, outputs)
    else:
        raise ValueError(f"it holds a booster of the unknown kind {name[:20]!r}.")

    estimator = _estimator(_member(learner, "attributes", dict, {}), rounds)
    _check_depth(document, {id(tree[name]) for tree in trees for name in OF_NODES})
    return DocumentFacts(features, outputs, estimator)


def _check_depth(document: object, flat: Container[int]) -> None:
    """Check that values are not nested so deeply that a library that goes down by recursion ends.

    `flat` are the ids of lists that hold numbers alone: most of a document, and not gone through
    again.
    """
    level: list[Any] = [document]
    for _ in range(ubjson.DEEPEST):
        values = chain.from_iterable(
            one.values() if isinstance(one, dict) else one for one in level
        )
        level = [
            value for value in values if isinstance(value, (dict, list)) and id(value) not in flat
        ]
        if not level:
            return
    raise ValueError(f"it is nested deeper than {ubjson.DEEPEST} levels.")


def _check_base_score(text: str, outputs: int) -> None:
    """Check the number that is added to all predictions, or one for each output."""
    words = text.removeprefix("[").removesuffix("]").split(",")
    if len(words) not in (1, outputs) or not all(BASE_SCORE.fullmatch(word) for word in words):
        raise ValueError(f"`base_score` is not a finite number, or {outputs} of them.")


def _check_objective(objective: Table, outputs: int) -> None:
    """Check that the objective, which makes probabilities of outputs, has as many classes."""
    _member(objective, "name", str)
    for table in objective.values():
        if (
            isinstance(table, dict)
            and "num_class" in table
            and _whole(table, "num_class") != outputs
        ):
            raise ValueError(
                "`objective` has another number of classes than the model has outputs."
            )


def _estimator(attributes: Table, rounds: int) -> str:
    """Return what kind of estimator wrote the file; its best iteration must be one of so many
    rounds."""
    if not all(isinstance(value, str) for value in attributes.values()):
        raise ValueError("`attributes` are not texts.")
    if "best_iteration" in attributes and not _whole(attributes, "best_iteration") < rounds:
        raise ValueError(f"`best_iteration` is none of {rounds} rounds.")
    facts = read_json(attributes.get("scikit_learn", "{}").encode())
    estimator = facts.get("_estimator_type") if isinstance(facts, dict) else None
    return estimator if isinstance(estimator, str) else ""


def _check_linear(model: Table, features: int, outputs: int) -> int:
    """Check a linear model; return how many rounds it was boosted."""
    weights = _array(model, "weights", NUMBER)
    if len(weights) != (features + 1) * outputs or not _are_finite(weights):
        raise ValueError(f"`weights` are not {(features + 1) * outputs} finite numbers.")
    return int(_member(model, "boosted_rounds", int, 0))


def _check_booster(
    booster: Table, model: Table, trees: Sequence[Table], features: int, outputs: int
) -> int:
    """Check a booster of trees; return how many rounds it was boosted."""
    parameters = _member(model, "gbtree_model_param", dict)
    parallel = max(_whole(parameters, "num_parallel_tree", 1), 1)
    if _whole(parameters, "num_trees") != len(trees):
        raise ValueError("`num_trees` is not the number of its trees.")

    for table in (booster, model):  # newer versions keep the weights of dart in the latter
        if "weight_drop" not in table:
            continue
        weights = _array(table, "weight_drop", NUMBER)
        if len(weights) != len(trees) or not _are_finite(weights):
            raise ValueError("`weight_drop` is not a finite number for each tree.")

    output = _array(model, "tree_info", WHOLE)
    if len(output) != len(trees) or not ((output >= 0) & (output < outputs)).all():
        raise ValueError(f"`tree_info` names outputs that are none of {outputs}.")
    ends = np.arange(0, len(trees) + 1, outputs * parallel)  # before XGBoost 2.0
    if "iteration_indptr" in model:
        ends = _array(model, "iteration_indptr", WHOLE)
    if not len(ends) or ends[0] != 0 or ends[-1] != len(trees) or (np.diff(ends) < 0).any():
        raise ValueError("`iteration_indptr` does not divide its trees into rounds.")

    vector = _check_trees(trees, features, outputs)
    if outputs > max(len(trees), 1) and not vector:
        raise ValueError(f"it claims {outputs} outputs and has {len(trees)} trees.")
    if "cats" in model:
        _check_cats(_member(model, "cats", dict), features)
    return len(ends) - 1


def _check_trees(trees: Sequence[Table], features: int, outputs: int) -> bool:
    """Check all trees at once; return whether their leaves hold a number for each output."""
    if not trees:
        return False
    if sorted(_member(tree, "id", int) for tree in trees) != list(range(len(trees))):
        raise ValueError("its trees are not numbered one after the other.")

    parameters = [_member(tree, "tree_param", dict) for tree in trees]
    (length, *others) = {max(_whole(one, "size_leaf_vector", 1), 1) for one in parameters}
    if others or length not in (1, outputs):
        raise ValueError(f"its leaves do not all hold 1 number, or {outputs} for the outputs.")

    size = np.array([_whole(one, "num_nodes") for one in parameters])
    if not size.all():
        raise ValueError("it holds trees without nodes.")
    nodes = _nodes(trees, size)
    deleted = np.array([_whole(one, "num_deleted", 0) for one in parameters])
    inner, leaves = _check_shape(nodes, deleted)
    _check_splits(nodes, inner, features)
    if length > 1:
        _check_vectors(nodes, leaves, outputs)
    elif not _are_finite(nodes.columns["split_conditions"][leaves]):
        raise ValueError("its trees have leaves without a finite value.")
    elif (nodes.columns["right_children"][leaves] != -1).any():
        raise ValueError("its trees have leaves with a child.")
    return bool(length > 1)


@dataclass(frozen=True)
class _Nodes:
    """The nodes of all trees, N in one row, one tree after the other."""

    trees: Sequence[Table]
    size: IntArray  # (T,) how many nodes a tree has
    columns: Mapping[str, Any]  # what each node holds, (N,) each, by the name in the document

    @property
    def roots(self) -> IntArray:
        """The first node of each tree, (T,)."""
        return np.asarray(np.cumsum(self.size) - self.size)


def _nodes(trees: Sequence[Table], size: IntArray) -> _Nodes:
    """Return the nodes of trees that have so many each, (T,)."""
    # Since XGBoost 1.3.
    types = OF_NODES | ({"split_type": WHOLE} if "split_type" in trees[0] else {})
    columns = {}
    for name in types:
        parts = [_member(tree, name, (list, np.ndarray)) for tree in trees]
        if [len(part) for part in parts] != size.tolist():
            raise ValueError(f"`{name}` are not as many as nodes.")
        if all(isinstance(part, np.ndarray) for part in parts):
            columns[name] = _numbers(np.concatenate(parts), name, types[name])
        else:
            columns[name] = _numbers(list(chain.from_iterable(parts)), name, types[name])
    return _Nodes(trees, size, columns)


def _check_shape(nodes: _Nodes, deleted: IntArray) -> tuple[IntArray, IntArray]:
    """Check that nodes are trees; return those that split, (I,), and the leaves.

    `deleted` (T,) is how many nodes of each tree were cut off, so that no root leads to them.
    """
    first = np.repeat(nodes.roots, nodes.size)  # (N,) the root of the tree that a node belongs to
    size = np.repeat(nodes.size, nodes.size)
    left = nodes.columns["left_children"]
    right = nodes.columns["right_children"]

    inner = np.flatnonzero(left != -1)
    children = np.stack([left, right], axis=1)[inner]  # (I, 2)
    if (children < 0).any() or (children >= size[inner, None]).any():
        raise ValueError("its trees name children that do not exist.")
    # That of a root depends on the version.
    parents = np.delete(nodes.columns["parents"], nodes.roots)
    if (parents < 0).any() or (parents >= np.delete(size, nodes.roots)).any():
        raise ValueError("its trees name parents that do not exist.")

    depth = node_depths(inner, children + first[inner, None], nodes.roots, len(left))
    lost = np.add.reduceat(depth < 0, nodes.roots, dtype=np.intp)
    if (lost != deleted).any():
        raise ValueError("its trees have nodes that no root leads to, or that run in a circle.")
    return inner, np.flatnonzero((left == -1) & (depth >= 0))


def _check_splits(nodes: _Nodes, inner: IntArray, features: int) -> None:
    """Check what nodes split on."""
    feature = nodes.columns["split_indices"][inner]
    if ((feature < 0) | (feature >= features)).any():
        raise ValueError(f"its trees split features that are none of {features}.")
    on_set = _check_sets(nodes)[inner]
    if np.isnan(nodes.columns["split_conditions"][inner][~on_set]).any():
        raise ValueError("its trees have thresholds that are no numbers.")

    cover = nodes.columns["sum_hessian"]
    if not ((cover >= 0) & (cover < np.inf)).all():
        raise ValueError("`sum_hessian` holds what is no weight of rows.")


def _check_sets(nodes: _Nodes) -> BoolArray:
    """Check splits on sets of categories; return which nodes have some, (N,)."""
    kind = nodes.columns.get("split_type", np.zeros(nodes.size.sum(), dtype=np.intp))
    if not np.isin(kind, (0, 1)).all():
        raise ValueError("its trees have splits of an unknown kind.")

    bits = 0
    ends = np.cumsum(nodes.size)
    for tree, begin, end in zip(nodes.trees, nodes.roots.tolist(), ends.tolist(), strict=True):
        lists = [_member(tree, name, (list, np.ndarray), ()) for name in CATEGORIES]
        if kind[begin:end].any() or any(map(len, lists)):
            bits += _check_sets_of(tree, np.flatnonzero(kind[begin:end]))
    if bits > MOST_BITS:
        raise ValueError("its sets of categories take more memory than any model should.")
    return np.asarray(kind == 1)


def _check_sets_of(tree: Table, on_sets: IntArray) -> int:
    """Check the sets of a tree's nodes that split on some; return how many bits they take."""
    node, begin, length, category = (_array(tree, name, WHOLE) for name in CATEGORIES)
    if not np.array_equal(node, on_sets):
        raise ValueError("its trees do not say which nodes split on categories.")

    # XGBoost writes one set after the other. Sets that overlap could ask for any amount of memory.
    if len(length) != len(node) or (length < 1).any():
        raise ValueError("its sets of categories are not one for each node, or are empty.")
    if not np.array_equal(begin, np.cumsum(length) - length):
        raise ValueError("its sets of categories do not follow each other.")
    if length.sum() != len(category) or ((category < 0) | (category >= MOST_CATEGORIES)).any():
        raise ValueError(
            f"its sets hold categories that are none of {MOST_CATEGORIES}, or too many."
        )
    return int(np.maximum.reduceat(category, begin).sum())


def _check_vectors(nodes: _Nodes, leaves: IntArray, outputs: int) -> None:
    """Check leaves that hold a number for each output; a leaf's right child says which are its
    own."""
    of_tree = np.repeat(np.arange(len(nodes.trees)), nodes.size)[leaves]
    count = np.bincount(of_tree, minlength=len(nodes.trees))
    place = nodes.columns["right_children"][leaves]
    if (place < 0).any() or (place >= count[of_tree]).any():
        raise ValueError("its trees have leaves without numbers.")
    for tree, size, n in zip(nodes.trees, nodes.size.tolist(), count.tolist(), strict=True):
        weights = _array(tree, "leaf_weights", NUMBER)
        if len(weights) != n * outputs or not _are_finite(weights):
            raise ValueError(f"`leaf_weights` are not {outputs} finite numbers for each leaf.")
        if len(_array(tree, "base_weights", NUMBER)) not in range(size, size * outputs + 1, size):
            raise ValueError("`base_weights` are not as many for each node.")


def _check_cats(cats: Table, features: int) -> None:
    """Check the categories that features had in training, as XGBoost keeps them from 3.1 on."""
    columns = _member(cats, "enc", list)
    if len(columns) not in (0, features):
        raise ValueError(f"`enc` are not the categories of {features} features.")
    counts = [_count_categories(_kind(column, dict, "`enc`")) for column in columns]

    ends = np.cumsum([0, *counts]) if columns else np.empty(0, dtype=np.intp)
    if not np.array_equal(_array(cats, "feature_segments", WHOLE), ends):
        raise ValueError(
            "`feature_segments` do not divide the categories into those of each feature."
        )

    order = _array(cats, "sorted_idx", WHOLE)
    if len(order) != sum(counts):
        raise ValueError("`sorted_idx` does not hold each category once.")
    for part in np.split(order, ends[1:-1]):
        if not np.array_equal(np.sort(part), np.arange(len(part))):
            raise ValueError("`sorted_idx` does not hold each category once.")


def _count_categories(column: Table) -> int:
    """Return how many categories a feature has: numbers, or texts one after the other."""
    values = _array(column, "values", WHOLE)
    if "offsets" not in column:
        _member(column, "type", int)
        return len(values)
    ends = _array(column, "offsets", WHOLE)
    if not len(ends) and not len(values):
        return 0
    if not len(ends) or ends[0] or (np.diff(ends) < 0).any() or ends[-1] != len(values):
        raise ValueError("`offsets` do not divide the texts of categories.")
    return len(ends) - 1


def _array(table: Table, name: str, types: Types) -> Any:
    """Return numbers of these types as an array."""
    return _numbers(_member(table, name, (list, np.ndarray)), name, types)


def _numbers(values: list[Any] | npt.NDArray[Any], name: str, types: Types) -> Any:
    """Return numbers of these types as an array (n,).

    Types are compared before numpy makes anything of the values: it would give each number the room
    of the longest text among them.
    """
    dtype = np.float64 if float in types else np.int64
    if isinstance(values, np.ndarray):
        if not len(values) or any(values.dtype.kind in TYPES[one] for one in types):
            return values.astype(dtype)
    elif set(map(type, values)) <= {*types}:
        with suppress(OverflowError):  # of a whole number of more than 64 bits
            return np.fromiter(values, dtype)
    raise ValueError(f"`{name}` holds what is no number, or no whole one.")


def _are_finite(values: FloatArray) -> bool:
    """Return whether all values are finite in single precision, in which XGBoost keeps them."""
    return bool((np.abs(values) <= np.finfo(np.float32).max).all())


def _whole(table: Table, name: str, default: int | None = None) -> int:
    """Return a whole number that is written as text, as all parameters are."""
    text = _member(table, name, str, None if default is None else str(default))
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) >= 2**32:
        raise ValueError(f"`{name}` must be a whole number from 0 on; it is {text[:20]!r}.")
    return int(text)


def _member(table: Table, name: str, kind: Any, default: Any = None) -> Any:
    """Return the member of a table, of one kind; it may be missing where there is a default."""
    if name not in table and default is not None:
        return default
    return _kind(table.get(name), kind, f"`{name}`")


def _kind(value: Any, kind: Any, what: str) -> Any:
    """Return a value that must be of one kind."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{what} is missing, or not of the kind that XGBoost writes.")
    return value
