"""Checks of LightGBM's text format, before the library reads it.

LightGBM trusts its text. A child beyond the last node, a circle of nodes or a wrong size can crash
the interpreter or make it hang. So every number that LightGBM uses as a position, a size or a count
is checked here.

`weightedshap.jobs.model_files` calls `check_text` for model files, and
`weightedshap.games.surrogates.boosting` calls `check_own_text` for the trees of saved games. The
messages of errors continue "… cannot be read as a model: ".
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from weightedshap._checks import IntArray
from weightedshap.trees.nodes import node_depths

MOST_LINES = 22  # of one tree; LightGBM accepts no more
# `decision_type` of splits on numbers is a sum: 2 if missing values go left, and 4 or 8 for the
# kind of value that counts as missing.
MISSING = frozenset({0, 2, 4, 6, 8, 10})

POSITIONS = ("split_feature", "decision_type", "left_child", "right_child")
COUNTS = frozenset({"internal_count", "leaf_count"})

# Possessive quantifiers (++, ?+) never backtrack, so that a megabyte takes three
# milliseconds. Numbers of so few digits are finite.
DIGITS = r"(?:[0-9]{1,40}+(?:\.[0-9]{0,40}+)?+|\.[0-9]{1,40}+)"
WHOLE = r"-?[0-9]{1,18}+"
FINITE = rf"-?{DIGITS}(?:e(?:-[0-9]{{1,3}}+|\+?[0-9]{{1,2}}+))?+"
NUMBER = rf"-?(?:inf|{DIGITS}(?:e[-+]?[0-9]{{1,3}}+)?+)"

# Statistics that LightGBM stores but does not predict with. With other words in their place it
# could not write its own JSON.
STATISTICS = {
    "split_gain": rf"(?:-?nan|{NUMBER})",
    "internal_value": NUMBER,
    "internal_weight": NUMBER,
    "leaf_weight": FINITE,
}

FEATURE_INFO = re.compile(rf"none|\[{NUMBER}:{NUMBER}\]|-?[0-9]+(?::-?[0-9]+)*")
PARAMETER = re.compile(r"\[\w+: .*\]")
# A name with one of these letters would break LightGBM's own JSON.
UNQUOTABLE = re.compile(r'["\x00-\x1f]')

Fields = Mapping[str, str]  # the lines `name=value` of the head, or of one tree


@dataclass(frozen=True)
class TextFacts:
    """The numbers of features and outputs in a model text, and whether it is purely numeric."""

    features: int  # the number of features
    outputs: int  # the number of outputs
    is_numeric: bool  # whether all splits are on numbers, and all leaves hold constants


def check_text(text: str) -> TextFacts:
    """Check the text of a LightGBM model; return its numbers of features and outputs.

    Also return whether all splits are on numbers. Raise a ValueError that says what is wrong.
    """
    if "\0" in text:
        raise ValueError("it is no text: it holds a zero byte.")
    start = text.find("\nTree=") + 1
    end = text.find("\nend of trees\n", start) + 1
    if not start or not end:
        raise ValueError("it is cut off, or holds no trees.")

    head = _parse_head(text[:start])
    features = _check_features(head)
    outputs = _check_outputs(head)
    trees = [_parse_tree(block) for block in _split_blocks(text[start:end], head.get("tree_sizes"))]
    if len(trees) % outputs:
        raise ValueError(
            f"it holds {len(trees)} trees, which is no multiple of its {outputs} outputs."
        )

    leaves = np.array([_whole_number(tree, "num_leaves", 1) for tree in trees])
    splitting = leaves > 1
    if splitting.any():
        _check_splits(list(compress(trees, splitting)), leaves[splitting], features)
    has_linear_leaves = _check_leaves(trees, leaves, features)
    _check_tail(text[end:])
    has_categories = any(tree["num_cat"] != "0" for tree in trees)
    return TextFacts(features, outputs, is_numeric=not (has_linear_leaves or has_categories))


def check_own_text(text: str, columns: int) -> str:
    """Check the LightGBM text of a saved game's trees, and return it.

    Its trees must have `columns` columns, one output, and splits on numbers only.
    """
    facts = check_text(text)
    if facts.features != columns:
        raise ValueError(f"its trees have {facts.features} columns where {columns} are needed.")
    if facts.outputs != 1 or not facts.is_numeric:
        others = "" if facts.is_numeric else ", and sets of categories or linear leaves"
        raise ValueError(
            "its trees must have one output, splits on numbers alone, and constant leaves; they"
            f" have {facts.outputs} outputs{others}."
        )
    return text


def _parse_head(text: str) -> Fields:
    """Parse the lines `name=value` before the trees into a dict; check that no name is repeated."""
    lines = [line for line in text.split("\n") if line]
    fields = {name: value for name, _, value in (line.partition("=") for line in lines)}
    if len(fields) < len(lines):
        raise ValueError("it holds a name twice before its trees.")
    return fields


def _check_features(head: Fields) -> int:
    """Check what the head of the text says about features; return their number."""
    features = _whole_number(head, "max_feature_idx", 0) + 1
    _whole_number(head, "label_index", -1)

    names = _word_list(head, "feature_names", features)
    if any(UNQUOTABLE.search(name) for name in names):
        raise ValueError("`feature_names` holds a quotation mark or a control character.")

    infos = _word_list(head, "feature_infos", features)
    if not all(FEATURE_INFO.fullmatch(info) for info in infos):
        raise ValueError("`feature_infos` holds what is neither a range nor categories.")

    if "monotone_constraints" in head:
        signs = _word_list(head, "monotone_constraints", features)
        if not set(signs) <= {"-1", "0", "1"}:
            raise ValueError("`monotone_constraints` must hold -1, 0 or 1 for each feature.")
    return features


def _check_outputs(head: Fields) -> int:
    """Check that every iteration has one tree per output; return the number of outputs."""
    outputs = _whole_number(head, "num_class", 1)
    if (
        "num_tree_per_iteration" in head
        and _whole_number(head, "num_tree_per_iteration", 1) != outputs
    ):
        raise ValueError(
            f"`num_tree_per_iteration` is {_whole_number(head, 'num_tree_per_iteration', 1)}, but"
            f" `num_class` is {outputs}."
        )

    # The objective states the number of classes a second time. An objective that is a function of
    # the user's is not written.
    objective = head.get("objective", "none").split(" ")
    if not re.fullmatch(r"\w+", objective[0]):
        raise ValueError("`objective` has no name.")
    classes = [word for word in objective if word.startswith("num_class:")]
    if classes not in ([], [f"num_class:{outputs}"]):
        raise ValueError(
            f"`objective` has {', '.join(classes)[:40]!r}, but `num_class` is {outputs}."
        )
    return outputs


def _split_blocks(trees: str, sizes: str | None) -> list[str]:
    """Split the text of all trees into one text for each tree, and check their lengths.

    `sizes` are the lengths that the head states, or None: LightGBM trusts them without a check.
    """
    if not trees.isascii():
        raise ValueError("its trees hold letters that are not ASCII.")
    blocks = ["Tree=" + block for block in ("\n" + trees).split("\nTree=")[1:]]
    lengths = [len(block) + 1 for block in blocks[:-1]] + [len(blocks[-1])]
    if sizes is not None and sizes.split() != list(map(str, lengths)):
        raise ValueError(
            "`tree_sizes` are not the lengths of its trees. If you edited the file by hand, correct"
            " them."
        )
    return blocks


def _parse_tree(block: str) -> Fields:
    """Parse the text of one tree, lines `name=value`, into a dict of strings."""
    body, _, rest = block.partition("\n\n")
    lines = body.split("\n")[1:]
    parts = [line.partition("=") for line in lines]
    fields = {name: value for name, equals, value in parts if equals}
    if rest.strip("\n") or len(lines) > MOST_LINES or len(fields) < len(lines):
        raise ValueError(
            f"a tree must be a block of up to {MOST_LINES} lines `name=value`, each name once."
        )
    return fields


def _check_splits(trees: Sequence[Fields], leaves: IntArray, features: int) -> None:
    """Check the splits of all trees at once.

    Each tree has at least one split; `leaves` (T,) are their numbers of leaves, and `features` is
    the number of features.
    """
    inner = leaves - 1
    feature, kind, left, right = (
        _whole_numbers(trees, name, inner) for name in POSITIONS
    )  # (I,) each
    tree = np.repeat(np.arange(len(trees)), inner)  # (I,) the tree of each node

    children = np.stack([left, right], axis=1)  # (I, 2)
    n = leaves[tree][:, None]
    if (children < -n).any() or (children >= n - 1).any():
        raise ValueError("its trees name children that do not exist.")

    # Number the nodes of all trees: the inner nodes of each tree, then its leaves, which the text
    # writes as −1, −2, …
    size = 2 * leaves - 1
    start = np.cumsum(size) - size
    below = start[tree][:, None] + np.where(children >= 0, children, n - 2 - children)
    own = start[tree] + np.arange(len(tree)) - (np.cumsum(inner) - inner)[tree]
    if (node_depths(own, below, start, int(size.sum())) < 0).any():
        raise ValueError("its trees have nodes that no root leads to, or that run in a circle.")

    if ((feature < 0) | (feature >= features)).any():
        raise ValueError(f"its trees split on features that are none of {features}.")

    # An odd `decision_type` is a split on a set of categories, and its threshold the set's number.
    on_sets = kind % 2 == 1
    if not set(np.unique(kind - on_sets)) <= MISSING:
        raise ValueError("its trees have splits of an unknown kind.")
    thresholds = _joined_words(trees, "threshold", inner, NUMBER)
    set_numbers = list(compress(thresholds.split(" "), on_sets)) if on_sets.any() else []
    _check_sets(trees, tree[on_sets], set_numbers)

    names = frozenset[str]().union(*trees)
    for name in STATISTICS.keys() & names:
        _joined_words(trees, name, leaves if name.startswith("leaf") else inner, STATISTICS[name])
    for name in COUNTS & names:
        rows = _whole_numbers(trees, name, leaves if name.startswith("leaf") else inner)
        if ((rows < 0) | (rows >= 2**31)).any():
            raise ValueError(f"`{name}` must hold numbers of rows, from 0 to {2**31 - 1}.")


def _check_sets(trees: Sequence[Fields], tree: IntArray, set_numbers: Sequence[str]) -> None:
    """Check the splits on sets of categories; split i is on set ``set_numbers[i]`` of ``tree[i]``.

    A set is stored as bits in words of 32, from one of the tree's `cat_boundaries` to the next.
    """
    sets = np.array([_whole_number(fields, "num_cat", 0) for fields in trees])
    for number, count in zip(set_numbers, sets[tree], strict=True):
        if not re.fullmatch(WHOLE, number) or not 0 <= int(number) < count:
            raise ValueError("its trees split on sets of categories that do not exist.")

    for fields, count in zip(trees, sets, strict=True):
        if count:
            ends = _whole_numbers([fields], "cat_boundaries", np.array([count + 1]))
            words = _whole_numbers([fields], "cat_threshold", ends[-1:])
            if ends[0] or (np.diff(ends) < 0).any() or ((words < 0) | (words >= 2**32)).any():
                raise ValueError("its sets of categories do not follow each other.")


def _check_leaves(trees: Sequence[Fields], leaves: IntArray, features: int) -> bool:
    """Check the values of all leaves; return whether some leaves are linear functions."""
    _joined_words(trees, "leaf_value", leaves, FINITE)
    for shrinkage in {tree.get("shrinkage", "1") for tree in trees}:
        if not re.fullmatch(FINITE, shrinkage):
            raise ValueError(f"`shrinkage` must be a number; it is {shrinkage[:20]!r}.")
    if not all("num_cat" in tree for tree in trees):
        raise ValueError("`num_cat` is missing.")
    if not {tree.get("is_linear", "0") for tree in trees} <= {"0", "1"}:
        raise ValueError("`is_linear` must be 0, or 1 for a tree with linear leaves.")

    is_linear = [tree.get("is_linear") == "1" for tree in trees]
    for tree, n in zip(compress(trees, is_linear), compress(leaves, is_linear), strict=True):
        _check_linear(tree, int(n), features)
    return any(is_linear)


def _check_linear(tree: Fields, n: int, features: int) -> None:
    """Check the linear functions in the n leaves of a tree."""
    # These fields have several spaces between words.
    fields = [{name: " ".join(value.split()) for name, value in tree.items()}]
    sizes = _whole_numbers(fields, "num_features", np.array([n]))
    if (sizes < 0).any():
        raise ValueError("`num_features` holds a negative number.")
    columns = _whole_numbers(fields, "leaf_features", sizes.sum(keepdims=True))
    if ((columns < 0) | (columns >= features)).any():
        raise ValueError(f"its linear leaves use features that are none of {features}.")
    _joined_words(fields, "leaf_coeff", sizes.sum(keepdims=True), FINITE)
    _joined_words(fields, "leaf_const", np.array([n]), FINITE)


def _check_tail(text: str) -> None:
    """Check the text after the trees: parameters, and the categories of pandas columns."""
    _, _, parameters = text.partition("\nparameters:\n")
    parameters, _, _ = parameters.partition("\nend of parameters\n")
    if not all(PARAMETER.fullmatch(line) for line in parameters.split("\n") if line):
        raise ValueError("its `parameters` must be lines `[name: value]`.")

    _, name, categories = text.rpartition("\npandas_categorical:")
    if name:
        lists = json.loads(categories) or []
        if not isinstance(lists, list) or not all(isinstance(values, list) for values in lists):
            raise ValueError("`pandas_categorical` must be a list of lists.")
        if not all(isinstance(value, (str, int, float)) for values in lists for value in values):
            raise ValueError("`pandas_categorical` must hold strings and numbers only.")


def _whole_number(fields: Fields, name: str, least: int) -> int:
    """Parse the field `name` as a whole number, which must be at least `least`."""
    text = fields.get(name, "")
    if not re.fullmatch(WHOLE, text) or not least <= int(text) < 2**31:
        raise ValueError(f"`{name}` must be a whole number from {least} on; it is {text[:20]!r}.")
    return int(text)


def _word_list(fields: Fields, name: str, count: int) -> list[str]:
    """Split the field `name` into words, and check that there are `count` of them."""
    words = [word for word in fields.get(name, "").split(" ") if word]
    if len(words) != count:
        raise ValueError(f"`{name}` holds {len(words)} words where {count} are needed.")
    return words


def _whole_numbers(trees: Sequence[Fields], name: str, counts: IntArray) -> IntArray:
    """Parse the whole numbers in the field `name` of all trees; return them as (Σ counts,)."""
    words = _joined_words(trees, name, counts, WHOLE)
    return np.fromstring(words, np.int64, sep=" ") if words else np.empty(0, np.int64)


def _joined_words(trees: Sequence[Fields], name: str, counts: IntArray, word: str) -> str:
    """Join the field `name` of all trees into one text, and check its words.

    Tree t must have ``counts[t]`` words, and each must match the regular expression `word`.
    """
    texts = [tree.get(name, "") for tree in trees]
    for text, count in zip(texts, counts.tolist(), strict=True):
        words = text.count(" ") + 1 if text else 0
        if words != count:
            raise ValueError(f"`{name}` holds {words} numbers where {count} are needed.")

    joined = " ".join(text for text in texts if text)
    if joined and not re.fullmatch(rf"{word}(?: {word})*+", joined):
        kind = "whole numbers" if word == WHOLE else "numbers"
        raise ValueError(f"`{name}` must hold {kind} with single spaces between them.")
    return joined
