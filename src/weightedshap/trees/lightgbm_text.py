"""LightGBM's text format, checked before the library reads it.

LightGBM trusts its text: a child beyond the end, nodes in a circle or a wrong size end the
interpreter, or it never comes back. What is checked here is every number that it uses as a
position, a size or a count.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from weightedshap._checks import IntArray
from weightedshap.trees.nodes import node_depths

MOST_LINES = 22  # of one tree; LightGBM reads no further
# Kinds of splits on numbers: 2 is left, 4 and 8 are what is missing.
MISSING = frozenset({0, 2, 4, 6, 8, 10})

POSITIONS = ("split_feature", "decision_type", "left_child", "right_child")
COUNTS = frozenset({"internal_count", "leaf_count"})

# Possessive quantifiers match a megabyte in three milliseconds. Numbers of so few digits are
# finite.
DIGITS = r"(?:[0-9]{1,40}+(?:\.[0-9]{0,40}+)?+|\.[0-9]{1,40}+)"
WHOLE = r"-?[0-9]{1,18}+"
FINITE = rf"-?{DIGITS}(?:e(?:-[0-9]{{1,3}}+|\+?[0-9]{{1,2}}+))?+"
NUMBER = rf"-?(?:inf|{DIGITS}(?:e[-+]?[0-9]{{1,3}}+)?+)"

# What LightGBM keeps beside; with other words it could not write its own JSON.
STATISTICS = {
    "split_gain": rf"(?:-?nan|{NUMBER})",
    "internal_value": NUMBER,
    "internal_weight": NUMBER,
    "leaf_weight": FINITE,
}

FEATURE_INFO = re.compile(rf"none|\[{NUMBER}:{NUMBER}\]|-?[0-9]+(?::-?[0-9]+)*")
PARAMETER = re.compile(r"\[\w+: .*\]")
UNQUOTABLE = re.compile(r'["\x00-\x1f]')  # in a name it would break LightGBM's own JSON

Fields = Mapping[str, str]  # of the head, or of one tree


@dataclass(frozen=True)
class TextFacts:
    """What a text says about its trees."""

    features: int
    outputs: int
    numeric: bool  # whether all splits are on numbers, and all leaves hold constants


def check_text(text: str) -> TextFacts:
    """Check the text of a LightGBM model; a ValueError says what is wrong with it."""
    if "\0" in text:
        raise ValueError("it is no text.")
    start = text.find("\nTree=") + 1
    end = text.find("\nend of trees\n", start) + 1
    if not start or not end:
        raise ValueError("it is cut off, or holds no trees.")

    head = _head(text[:start])
    features = _check_features(head)
    outputs = _check_outputs(head)
    trees = [_tree(block) for block in _blocks(text[start:end], head.get("tree_sizes"))]
    if len(trees) % outputs:
        raise ValueError(f"it holds {len(trees)} trees, which do not belong to {outputs} outputs.")

    leaves = np.array([_whole(tree, "num_leaves", 1) for tree in trees])
    splitting = leaves > 1
    if splitting.any():
        _check_splits(list(compress(trees, splitting)), leaves[splitting], features)
    linear = _check_leaves(trees, leaves, features)
    _check_tail(text[end:])
    categorical = any(tree["num_cat"] != "0" for tree in trees)
    return TextFacts(features, outputs, numeric=not linear and not categorical)


def check_own_text(text: str, columns: int) -> str:
    """Return the text of a learned game's trees, checked: one output, splits on numbers, and so
    many columns."""
    facts = check_text(text)
    if facts.features != columns:
        raise ValueError(f"its trees have {facts.features} columns where {columns} are needed.")
    if facts.outputs != 1 or not facts.numeric:
        raise ValueError("its trees are not splits on numbers.")
    return text


def _head(text: str) -> Fields:
    """Return what stands before the trees, by name."""
    lines = [line for line in text.split("\n") if line]
    fields = {name: value for name, _, value in (line.partition("=") for line in lines)}
    if len(fields) < len(lines):
        raise ValueError("it says something twice before its trees.")
    return fields


def _check_features(head: Fields) -> int:
    """Return how many features there are."""
    features = _whole(head, "max_feature_idx", 0) + 1
    _whole(head, "label_index", -1)

    names = _listed(head, "feature_names", features)
    if any(UNQUOTABLE.search(name) for name in names):
        raise ValueError("`feature_names` hold a quotation mark, or what cannot be printed.")

    infos = _listed(head, "feature_infos", features)
    if not all(FEATURE_INFO.fullmatch(info) for info in infos):
        raise ValueError("`feature_infos` are neither ranges nor categories.")

    if "monotone_constraints" in head:
        signs = _listed(head, "monotone_constraints", features)
        if not set(signs) <= {"-1", "0", "1"}:
            raise ValueError("`monotone_constraints` hold other than -1, 0 and 1.")
    return features


def _check_outputs(head: Fields) -> int:
    """Return how many outputs there are, which each iteration has a tree for."""
    outputs = _whole(head, "num_class", 1)
    if "num_tree_per_iteration" in head and _whole(head, "num_tree_per_iteration", 1) != outputs:
        raise ValueError("`num_tree_per_iteration` is another than `num_class`.")

    # The objective turns the numbers of so many classes into probabilities, whatever the head says.
    objective = head.get("objective", "none").split(" ")  # an own one is not written
    if not re.fullmatch(r"\w+", objective[0]):
        raise ValueError("`objective` has no name.")
    classes = [word for word in objective if word.startswith("num_class:")]
    if classes not in ([], [f"num_class:{outputs}"]):
        raise ValueError("`objective` has another number of classes than `num_class`.")
    return outputs


def _blocks(trees: str, sizes: str | None) -> list[str]:
    """Return the text of each tree; LightGBM goes by `sizes` where the file has them."""
    if not trees.isascii():
        raise ValueError("its trees hold letters that are no ASCII.")
    blocks = ["Tree=" + block for block in ("\n" + trees).split("\nTree=")[1:]]
    lengths = [len(block) + 1 for block in blocks[:-1]] + [len(blocks[-1])]
    if sizes is not None and sizes.split() != list(map(str, lengths)):
        raise ValueError(
            "`tree_sizes` are not those of its trees; put them right if you edited it by hand."
        )
    return blocks


def _tree(block: str) -> Fields:
    """Return the fields of one tree."""
    body, _, rest = block.partition("\n\n")
    lines = body.split("\n")[1:]
    parts = [line.partition("=") for line in lines]
    fields = {name: value for name, equals, value in parts if equals}
    if rest.strip("\n") or len(lines) > MOST_LINES or len(fields) < len(lines):
        raise ValueError(
            f"a tree is not a block of up to {MOST_LINES} lines `name=value`, each name once."
        )
    return fields


def _check_splits(trees: Sequence[Fields], leaves: IntArray, features: int) -> None:
    """Check the splits of trees that have some, all at once; `leaves` (T,) counts the leaves of
    each."""
    inner = leaves - 1
    feature, kind, left, right = (_wholes(trees, name, inner) for name in POSITIONS)  # (I,) each
    tree = np.repeat(np.arange(len(trees)), inner)  # (I,) the tree that a node belongs to

    children = np.stack([left, right], axis=1)  # (I, 2)
    n = leaves[tree][:, None]
    if (children < -n).any() or (children >= n - 1).any():
        raise ValueError("its trees name children that do not exist.")

    # All nodes in one row: of each tree its inner nodes, then its leaves, in the text −1, −2, …
    size = 2 * leaves - 1
    start = np.cumsum(size) - size
    below = start[tree][:, None] + np.where(children >= 0, children, n - 2 - children)
    own = start[tree] + np.arange(len(tree)) - (np.cumsum(inner) - inner)[tree]
    if (node_depths(own, below, start, int(size.sum())) < 0).any():
        raise ValueError("its trees have nodes that no root leads to, or that run in a circle.")

    if ((feature < 0) | (feature >= features)).any():
        raise ValueError(f"its trees split features that are none of {features}.")
    on_sets = kind % 2 == 1
    if not set(np.unique(kind - on_sets)) <= MISSING:
        raise ValueError("its trees have splits of an unknown kind.")
    thresholds = _words(trees, "threshold", inner, NUMBER)
    places = list(compress(thresholds.split(" "), on_sets)) if on_sets.any() else []
    _check_sets(trees, tree[on_sets], places)

    names = frozenset[str]().union(*trees)
    for name in STATISTICS.keys() & names:
        _words(trees, name, leaves if name.startswith("leaf") else inner, STATISTICS[name])
    for name in COUNTS & names:
        rows = _wholes(trees, name, leaves if name.startswith("leaf") else inner)
        if ((rows < 0) | (rows >= 2**31)).any():
            raise ValueError(f"`{name}` holds what is no number of rows.")


def _check_sets(trees: Sequence[Fields], tree: IntArray, places: Sequence[str]) -> None:
    """Check splits on sets of categories: the threshold is the place of the set among those of its
    `tree`.

    A set is bits in words of 32, from one of the tree's `cat_boundaries` to the next.
    """
    sets = np.array([_whole(one, "num_cat", 0) for one in trees])
    for place, count in zip(places, sets[tree], strict=True):
        if not re.fullmatch(WHOLE, place) or not 0 <= int(place) < count:
            raise ValueError("its trees split on sets of categories that do not exist.")

    for one, count in zip(trees, sets, strict=True):
        if count:
            ends = _wholes([one], "cat_boundaries", np.array([count + 1]))
            words = _wholes([one], "cat_threshold", ends[-1:])
            if ends[0] or (np.diff(ends) < 0).any() or ((words < 0) | (words >= 2**32)).any():
                raise ValueError("its sets of categories do not follow each other.")


def _check_leaves(trees: Sequence[Fields], leaves: IntArray, features: int) -> bool:
    """Check the values of leaves; return whether some are linear functions."""
    _words(trees, "leaf_value", leaves, FINITE)
    for shrinkage in {tree.get("shrinkage", "1") for tree in trees}:
        if not re.fullmatch(FINITE, shrinkage):
            raise ValueError("`shrinkage` is no number.")
    if not all("num_cat" in tree for tree in trees):
        raise ValueError("`num_cat` is missing.")
    if not {tree.get("is_linear", "0") for tree in trees} <= {"0", "1"}:
        raise ValueError("its trees do not say whether they have linear leaves.")

    linear = [tree.get("is_linear") == "1" for tree in trees]
    for tree, n in zip(compress(trees, linear), compress(leaves, linear), strict=True):
        _check_linear(tree, int(n), features)
    return any(linear)


def _check_linear(tree: Fields, n: int, features: int) -> None:
    """Check the linear functions of n leaves; there the text has runs of spaces."""
    one = [{name: " ".join(value.split()) for name, value in tree.items()}]
    sizes = _wholes(one, "num_features", np.array([n]))
    if (sizes < 0).any():
        raise ValueError("`num_features` is negative.")
    columns = _wholes(one, "leaf_features", sizes.sum(keepdims=True))
    if ((columns < 0) | (columns >= features)).any():
        raise ValueError(f"its linear leaves use features that are none of {features}.")
    _words(one, "leaf_coeff", sizes.sum(keepdims=True), FINITE)
    _words(one, "leaf_const", np.array([n]), FINITE)


def _check_tail(text: str) -> None:
    """Check what stands behind the trees: parameters, and the categories that pandas had."""
    _, _, parameters = text.partition("\nparameters:\n")
    parameters, _, _ = parameters.partition("\nend of parameters\n")
    if not all(PARAMETER.fullmatch(line) for line in parameters.split("\n") if line):
        raise ValueError("its `parameters` are not lines `[name: value]`.")

    _, name, categories = text.rpartition("\npandas_categorical:")
    if name:
        lists = json.loads(categories) or []
        if not isinstance(lists, list) or not all(isinstance(one, list) for one in lists):
            raise ValueError("`pandas_categorical` is no list of lists.")
        if not all(isinstance(value, (str, int, float)) for one in lists for value in one):
            raise ValueError("`pandas_categorical` holds what is neither text nor number.")


def _whole(fields: Fields, name: str, least: int) -> int:
    """Return a whole number of at least `least`."""
    text = fields.get(name, "")
    if not re.fullmatch(WHOLE, text) or not least <= int(text) < 2**31:
        raise ValueError(f"`{name}` must be a whole number from {least} on; it is {text[:20]!r}.")
    return int(text)


def _listed(fields: Fields, name: str, count: int) -> list[str]:
    """Return the words of a field, of which there must be `count`."""
    words = [word for word in fields.get(name, "").split(" ") if word]
    if len(words) != count:
        raise ValueError(f"`{name}` holds {len(words)} words where {count} are needed.")
    return words


def _wholes(trees: Sequence[Fields], name: str, counts: IntArray) -> IntArray:
    """Return the whole numbers of a field of all trees, (sum of counts,)."""
    words = _words(trees, name, counts, WHOLE)
    return np.fromstring(words, np.int64, sep=" ") if words else np.empty(0, np.int64)


def _words(trees: Sequence[Fields], name: str, counts: IntArray, word: str) -> str:
    """Return a field of all trees in one text, checked to hold so many words of a kind for each."""
    texts = [tree.get(name, "") for tree in trees]
    for text, count in zip(texts, counts.tolist(), strict=True):
        words = text.count(" ") + 1 if text else 0
        if words != count:
            raise ValueError(f"`{name}` holds {words} numbers where {count} are needed.")

    joined = " ".join(text for text in texts if text)
    if joined and not re.fullmatch(rf"{word}(?: {word})*+", joined):
        raise ValueError(f"`{name}` holds what is no number.")
    return joined
