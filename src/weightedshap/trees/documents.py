"""Checks of XGBoost's model files, JSON or UBJSON, before the library reads them.

XGBoost trusts its files. A child beyond the last node, a circle of nodes, a tree of a class that
does not exist, or a list that is too short can crash the interpreter or make it hang. So every
number that XGBoost uses as a position, a size or a count is checked here. Both formats contain the
same document: nested dictionaries (tables), lists and numbers.

`weightedshap.jobs.model_files` calls `check_document` with what `read_json` or `ubjson.decode`
returned. The messages of its errors continue "… cannot be read as a model: ".
"""

import json
import re
from collections import Counter
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
MOST_CATEGORIES = 2**24  # XGBoost accepts no codes from here on
# Memory of all sets of categories: each node keeps a bit for every code up to its largest one.
MOST_BITS = 2**33

WHOLE = (int,)
NUMBER = (int, float)
# The types of numbers in JSON, and the `kind` of a numpy array that UBJSON has instead.
TYPES = {
    int: "iu",
    float: "f",
    bool: "b",
}

CATEGORIES = ("categories_nodes", "categories_segments", "categories_sizes", "categories")
# The lists that have an entry for each node, and the types of their entries.
NODE_LISTS = {
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
    """The numbers of features and outputs in a model file, and the kind of its estimator."""

    features: int  # the number of features
    outputs: int  # the number of outputs
    # The kind of estimator that wrote the file: "classifier", "regressor" or "ranker"; "" for a
    # booster.
    estimator: str


def read_json(content: bytes) -> Any:
    """Parse `content` as JSON; raise a ValueError if a dictionary has a key twice."""
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_build_table)
    except RecursionError:
        raise ValueError("it is nested too deeply.") from None


def _build_table(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return pairs of name and value as a dictionary; raise a ValueError if a name occurs twice."""
    table = dict(pairs)
    if len(table) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"it holds the name {name[:20]!r} twice in one table.")
    return table


def check_document(document: object) -> DocumentFacts:
    """Check the parsed file of an XGBoost model; return its numbers of features and outputs.

    Also return the kind of estimator. Raise a ValueError that says what is wrong.
    """
    learner = _member(_check_type(document, dict, "the document"), "learner", dict)
    parameters = _member(learner, "learner_model_param", dict)
    features = _whole_number(parameters, "num_feature")
    outputs = max(
        _whole_number(parameters, "num_class", 0), _whole_number(parameters, "num_target", 1), 1
    )
    _check_base_score(_member(parameters, "base_score", str), outputs)
    _check_objective(_member(learner, "objective", dict), outputs)
    for name in ("feature_names", "feature_types"):
        texts = _member(learner, name, list, [])
        if len(texts) not in (0, features) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"`{name}` must be {features} strings, one for each feature.")

    booster = _member(learner, "gradient_booster", dict)
    name = _member(booster, "name", str)
    trees = []
    if name == "gblinear":
        rounds = _check_linear(_member(booster, "model", dict), features, outputs)
    elif name in ("gbtree", "dart"):
        gbtree = _member(booster, "gbtree", dict) if name == "dart" else booster
        inner_name = _member(gbtree, "name", str)
        if inner_name != "gbtree":
            raise ValueError(
                f"the booster inside a 'dart' booster must be 'gbtree'; it is {inner_name[:20]!r}."
            )
        model = _member(gbtree, "model", dict)
        trees = [_check_type(tree, dict, "a tree") for tree in _member(model, "trees", list)]
        rounds = _check_booster(booster, model, trees, features, outputs)
    else:
        raise ValueError(
            f"its booster is of the unknown kind {name[:20]!r}; known are 'gbtree', 'dart' and"
            " 'gblinear'."
        )

    estimator = _estimator_kind(_member(learner, "attributes", dict, {}), rounds)
    _check_depth(document, {id(tree[name]) for tree in trees for name in NODE_LISTS})
    return DocumentFacts(features, outputs, estimator)


def _check_depth(document: object, flat: Container[int]) -> None:
    """Raise a ValueError if values are nested so deeply that recursion over them would crash.

    `flat` are the ids of lists that contain only numbers. They are most of a document, so they are
    skipped.
    """
    level: list[Any] = [document]
    for _ in range(ubjson.DEEPEST):
        values = chain.from_iterable(
            parent.values() if isinstance(parent, dict) else parent for parent in level
        )
        level = [
            value for value in values if isinstance(value, (dict, list)) and id(value) not in flat
        ]
        if not level:
            return
    raise ValueError(f"it is nested deeper than {ubjson.DEEPEST} levels.")


def _check_base_score(text: str, outputs: int) -> None:
    """Check `base_score`: one number added to all predictions, or one number for each output."""
    words = text.removeprefix("[").removesuffix("]").split(",")
    if len(words) not in (1, outputs) or not all(BASE_SCORE.fullmatch(word) for word in words):
        raise ValueError(
            f"`base_score` must be a finite number, or {outputs} of them, one for each output; it"
            f" is {text[:20]!r}."
        )


def _check_objective(objective: Table, outputs: int) -> None:
    """Check that an objective with classes has as many classes as the model has outputs."""
    _member(objective, "name", str)
    for table in objective.values():
        if (
            isinstance(table, dict)
            and "num_class" in table
            and _whole_number(table, "num_class") != outputs
        ):
            raise ValueError(
                f"`objective` has {_whole_number(table, 'num_class')} classes, but the model has"
                f" {outputs} outputs."
            )


def _estimator_kind(attributes: Table, rounds: int) -> str:
    """Return the kind of estimator that wrote the file, or an empty string for a booster.

    Also check that `best_iteration`, if present, is one of the `rounds` boosting rounds.
    """
    if not all(isinstance(value, str) for value in attributes.values()):
        raise ValueError("all values of `attributes` must be strings.")
    if "best_iteration" in attributes and not _whole_number(attributes, "best_iteration") < rounds:
        raise ValueError(
            f"`best_iteration` must be one of {rounds} rounds, counted from 0; it is"
            f" {_whole_number(attributes, 'best_iteration')}."
        )
    facts = read_json(attributes.get("scikit_learn", "{}").encode())
    estimator = facts.get("_estimator_type") if isinstance(facts, dict) else None
    return estimator if isinstance(estimator, str) else ""


def _check_linear(model: Table, features: int, outputs: int) -> int:
    """Check the contents of a 'gblinear' booster; return its number of boosting rounds."""
    weights = _number_array(model, "weights", NUMBER)
    if len(weights) != (features + 1) * outputs or not _are_finite(weights):
        raise ValueError(
            f"`weights` must be {(features + 1) * outputs} finite numbers; it holds"
            f" {len(weights)} numbers."
        )
    return int(_member(model, "boosted_rounds", int, 0))


def _check_booster(
    booster: Table, model: Table, trees: Sequence[Table], features: int, outputs: int
) -> int:
    """Check the contents of a tree booster; return its number of boosting rounds."""
    parameters = _member(model, "gbtree_model_param", dict)
    parallel = max(_whole_number(parameters, "num_parallel_tree", 1), 1)
    n_trees = _whole_number(parameters, "num_trees")
    if n_trees != len(trees):
        raise ValueError(f"`num_trees` is {n_trees}, but it holds {len(trees)} trees.")

    # Older versions store the weights of dart trees in the booster, newer ones in the model.
    for table in (booster, model):
        if "weight_drop" not in table:
            continue
        weights = _number_array(table, "weight_drop", NUMBER)
        if len(weights) != len(trees) or not _are_finite(weights):
            raise ValueError("`weight_drop` must be a finite number for each tree.")

    output = _number_array(model, "tree_info", WHOLE)
    if len(output) != len(trees) or not ((output >= 0) & (output < outputs)).all():
        raise ValueError(f"`tree_info` must name one of {outputs} outputs for each tree.")
    # Before XGBoost 2.0, all rounds have as many trees.
    ends = np.arange(0, len(trees) + 1, outputs * parallel)
    if "iteration_indptr" in model:
        ends = _number_array(model, "iteration_indptr", WHOLE)
    if not len(ends) or ends[0] != 0 or ends[-1] != len(trees) or (np.diff(ends) < 0).any():
        raise ValueError(
            f"`iteration_indptr` must divide its {len(trees)} trees into rounds: numbers that rise"
            f" from 0 to {len(trees)}."
        )

    has_vector_leaves = _check_trees(trees, features, outputs)
    if outputs > max(len(trees), 1) and not has_vector_leaves:
        raise ValueError(f"it claims {outputs} outputs but has only {len(trees)} trees.")
    if "cats" in model:
        _check_categories(_member(model, "cats", dict), features)
    return len(ends) - 1


def _check_trees(trees: Sequence[Table], features: int, outputs: int) -> bool:
    """Check all trees; return whether each leaf contains one number for every output."""
    if not trees:
        return False
    if sorted(_member(tree, "id", int) for tree in trees) != list(range(len(trees))):
        raise ValueError(f"the `id` of its trees must be 0 to {len(trees) - 1}, each once.")

    parameters = [_member(tree, "tree_param", dict) for tree in trees]
    lengths = {max(_whole_number(of_tree, "size_leaf_vector", 1), 1) for of_tree in parameters}
    if lengths not in ({1}, {outputs}):
        raise ValueError(
            f"its leaves must all hold 1 number, or all {outputs}, one for each output;"
            f" `size_leaf_vector` is {', '.join(map(str, sorted(lengths)[:5]))}."
        )

    size = np.array([_whole_number(of_tree, "num_nodes") for of_tree in parameters])
    if not size.all():
        raise ValueError("it holds trees without nodes.")
    nodes = _collect_nodes(trees, size)
    deleted = np.array([_whole_number(of_tree, "num_deleted", 0) for of_tree in parameters])
    inner, leaves = _check_shape(nodes, deleted)
    _check_splits(nodes, inner, features)
    has_vectors = lengths != {1}
    if has_vectors:
        _check_vectors(nodes, leaves, outputs)
    elif not _are_finite(nodes.columns["split_conditions"][leaves]):
        raise ValueError("its trees have leaves without a finite value.")
    elif (nodes.columns["right_children"][leaves] != -1).any():
        raise ValueError("its trees have leaves with a child.")
    return has_vectors


@dataclass(frozen=True)
class _Nodes:
    """The nodes of all trees as concatenated arrays, one tree after the other."""

    trees: Sequence[Table]
    size: IntArray  # (T,) the number of nodes of each tree
    columns: Mapping[str, Any]  # (N,) one array for each name in `NODE_LISTS`

    @property
    def roots(self) -> IntArray:
        """The position of the first node of each tree among all nodes, (T,)."""
        return np.asarray(np.cumsum(self.size) - self.size)


def _collect_nodes(trees: Sequence[Table], size: IntArray) -> _Nodes:
    """Concatenate the node arrays of all trees; `size` (T,) is each tree's number of nodes."""
    # Splits have a type since XGBoost 1.3.
    types = NODE_LISTS | ({"split_type": WHOLE} if "split_type" in trees[0] else {})
    columns = {}
    for name in types:
        parts = [_member(tree, name, (list, np.ndarray)) for tree in trees]
        if [len(part) for part in parts] != size.tolist():
            raise ValueError(f"`{name}` must have as many entries as its tree has nodes.")
        if all(isinstance(part, np.ndarray) for part in parts):
            columns[name] = _as_array(np.concatenate(parts), name, types[name])
        else:
            columns[name] = _as_array(list(chain.from_iterable(parts)), name, types[name])
    return _Nodes(trees, size, columns)


def _check_shape(nodes: _Nodes, deleted: IntArray) -> tuple[IntArray, IntArray]:
    """Check that the nodes form trees; return the positions of inner nodes and of leaves.

    `deleted` (T,) is the number of pruned nodes of each tree, which no root leads to.
    """
    first = np.repeat(nodes.roots, nodes.size)  # (N,) the root of each node's tree
    size = np.repeat(nodes.size, nodes.size)
    left = nodes.columns["left_children"]
    right = nodes.columns["right_children"]

    inner = np.flatnonzero(left != -1)
    children = np.stack([left, right], axis=1)[inner]  # (I, 2)
    if (children < 0).any() or (children >= size[inner, None]).any():
        raise ValueError("its trees name children that do not exist.")
    # The value of a root's parent depends on the version.
    parents = np.delete(nodes.columns["parents"], nodes.roots)
    if (parents < 0).any() or (parents >= np.delete(size, nodes.roots)).any():
        raise ValueError("its trees name parents that do not exist.")

    depth = node_depths(inner, children + first[inner, None], nodes.roots, len(left))
    unreached = np.add.reduceat(depth < 0, nodes.roots, dtype=np.intp)
    if (unreached != deleted).any():
        raise ValueError("its trees have nodes that no root leads to, or that run in a circle.")
    return inner, np.flatnonzero((left == -1) & (depth >= 0))


def _check_splits(nodes: _Nodes, inner: IntArray, features: int) -> None:
    """Check the features, thresholds and sets of categories of the splits at `inner` nodes."""
    feature = nodes.columns["split_indices"][inner]
    if ((feature < 0) | (feature >= features)).any():
        raise ValueError(f"its trees split on features that are none of {features}.")
    on_set = _check_sets(nodes)[inner]
    if np.isnan(nodes.columns["split_conditions"][inner][~on_set]).any():
        raise ValueError("its trees have thresholds that are not numbers.")

    cover = nodes.columns["sum_hessian"]
    if not ((cover >= 0) & (cover < np.inf)).all():
        raise ValueError("`sum_hessian` must be finite and not negative: it is a weight of rows.")


def _check_sets(nodes: _Nodes) -> BoolArray:
    """Check the splits on sets of categories; return whether each node has such a split, (N,)."""
    kind = nodes.columns.get("split_type", np.zeros(nodes.size.sum(), dtype=np.intp))
    if not np.isin(kind, (0, 1)).all():
        raise ValueError("its trees have splits of an unknown kind.")

    bits = 0
    ends = np.cumsum(nodes.size)
    for tree, begin, end in zip(nodes.trees, nodes.roots.tolist(), ends.tolist(), strict=True):
        lists = [_member(tree, name, (list, np.ndarray), ()) for name in CATEGORIES]
        if kind[begin:end].any() or any(map(len, lists)):
            bits += _check_sets_of_tree(tree, np.flatnonzero(kind[begin:end]))
    if bits > MOST_BITS:
        raise ValueError(
            f"its sets of categories would take {bits / 2**33:,.1f} GiB of memory, and at most"
            f" {MOST_BITS / 2**33:,.0f} GiB are allowed."
        )
    return np.asarray(kind == 1)


def _check_sets_of_tree(tree: Table, on_sets: IntArray) -> int:
    """Check the sets of categories of one tree; return how many bits of memory they need.

    `on_sets` are the nodes that split on a set of categories.
    """
    node, begin, length, category = (_number_array(tree, name, WHOLE) for name in CATEGORIES)
    if not np.array_equal(node, on_sets):
        raise ValueError(
            "`categories_nodes` does not name the nodes that split on categories, as `split_type`"
            " does."
        )

    # XGBoost writes one set after the other. Sets that overlap could need any amount of memory.
    if len(length) != len(node) or (length < 1).any():
        raise ValueError(
            "`categories_sizes` must be at least 1 for each node that splits on categories."
        )
    if not np.array_equal(begin, np.cumsum(length) - length):
        raise ValueError("its sets of categories do not follow each other.")
    if length.sum() != len(category) or ((category < 0) | (category >= MOST_CATEGORIES)).any():
        raise ValueError(
            f"its sets must hold {length.sum()} categories, numbered from 0 to"
            f" {MOST_CATEGORIES - 1}."
        )
    return int(np.maximum.reduceat(category, begin).sum())


def _check_vectors(nodes: _Nodes, leaves: IntArray, outputs: int) -> None:
    """Check leaves that contain a vector: one number for each output.

    In such trees, the "right child" of a leaf is the position of its vector among all of the tree.
    """
    of_tree = np.repeat(np.arange(len(nodes.trees)), nodes.size)[leaves]
    count = np.bincount(of_tree, minlength=len(nodes.trees))
    place = nodes.columns["right_children"][leaves]
    if (place < 0).any() or (place >= count[of_tree]).any():
        raise ValueError("its trees have leaves without numbers.")
    for tree, size, n in zip(nodes.trees, nodes.size.tolist(), count.tolist(), strict=True):
        weights = _number_array(tree, "leaf_weights", NUMBER)
        if len(weights) != n * outputs or not _are_finite(weights):
            raise ValueError(f"`leaf_weights` must be {outputs} finite numbers for each leaf.")
        if len(_number_array(tree, "base_weights", NUMBER)) not in range(
            size, size * outputs + 1, size
        ):
            raise ValueError("`base_weights` must hold as many numbers for each node.")


def _check_categories(cats: Table, features: int) -> None:
    """Check the categories of the training data, which XGBoost stores from version 3.1 on."""
    columns = _member(cats, "enc", list)
    if len(columns) not in (0, features):
        raise ValueError(
            f"`enc` must hold the categories of {features} features; it has {len(columns)} entries."
        )
    counts = [_count_categories(_check_type(column, dict, "`enc`")) for column in columns]

    ends = np.cumsum([0, *counts]) if columns else np.empty(0, dtype=np.intp)
    if not np.array_equal(_number_array(cats, "feature_segments", WHOLE), ends):
        raise ValueError(
            "`feature_segments` does not divide the categories into those of each feature."
        )

    order = _number_array(cats, "sorted_idx", WHOLE)
    if len(order) != sum(counts):
        raise ValueError(
            f"`sorted_idx` must hold each of {sum(counts)} categories once; it holds {len(order)}."
        )
    for part in np.split(order, ends[1:-1]):
        if not np.array_equal(np.sort(part), np.arange(len(part))):
            raise ValueError("`sorted_idx` does not hold each category once.")


def _count_categories(column: Table) -> int:
    """Return how many categories a feature has.

    `column` contains them as numbers, or as strings joined into one text.
    """
    values = _number_array(column, "values", WHOLE)
    if "offsets" not in column:
        _member(column, "type", int)
        return len(values)
    ends = _number_array(column, "offsets", WHOLE)
    if not len(ends) and not len(values):
        return 0
    if not len(ends) or ends[0] or (np.diff(ends) < 0).any() or ends[-1] != len(values):
        raise ValueError("`offsets` does not divide the text into categories.")
    return len(ends) - 1


def _number_array(table: Table, name: str, types: Types) -> Any:
    """Return the list `name` of a table as an array (n,), whose values must have the `types`."""
    return _as_array(_member(table, name, (list, np.ndarray)), name, types)


def _as_array(values: list[Any] | npt.NDArray[Any], name: str, types: Types) -> Any:
    """Convert `values` to an array (n,); raise a ValueError if a value has another type.

    The types are checked before numpy converts anything: if one value is a string, numpy would use
    as much memory for each number as for the string. `name` is for the error.
    """
    dtype = np.float64 if float in types else np.int64
    if isinstance(values, np.ndarray):
        if not len(values) or any(values.dtype.kind in TYPES[one] for one in types):
            return values.astype(dtype)
    elif set(map(type, values)) <= {*types}:
        # A whole number may have more than 64 bits.
        with suppress(OverflowError):
            return np.fromiter(values, dtype)
    kind = "numbers" if float in types else "whole numbers of 64 bits"
    raise ValueError(f"`{name}` must hold {kind} only.")


def _are_finite(values: FloatArray) -> bool:
    """Return whether all values are finite in single precision, which XGBoost uses."""
    return bool((np.abs(values) <= np.finfo(np.float32).max).all())


def _whole_number(table: Table, name: str, default: int | None = None) -> int:
    """Parse the parameter `name` as a whole number; the file stores all parameters as strings."""
    text = _member(table, name, str, None if default is None else str(default))
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) >= 2**32:
        raise ValueError(f"`{name}` must be a whole number from 0 on; it is {text[:20]!r}.")
    return int(text)


def _member(table: Table, name: str, kind: Any, default: Any = None) -> Any:
    """Return the entry `name` of a table, or `default` if it is missing.

    Raise a ValueError if it is not of the type `kind`, or missing without a default.
    """
    if name not in table and default is not None:
        return default
    return _check_type(table.get(name), kind, f"`{name}`")


def _check_type(value: Any, kind: Any, what: str) -> Any:
    """Return `value` if it is of the type `kind`; else raise a ValueError that names it `what`."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{what} is missing, or not of the type that XGBoost writes.")
    return value
