"""Compiled loops over the splits of trees: the directions of rows, and predictions.

These loops build on nothing else in the package. `weightedshap.trees.ensembles` and
`weightedshap.trees.path_dependent` call them; `goes_left` is a part of `coalitions.masked_values`
as well. `Splits` and `TreeNodes` are the arrays of an `Ensemble` that they read.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap._compile import compiled, inlined


class Splits(NamedTuple):
    """The split conditions of inner nodes, and the sets of categories that some of them use."""

    column: npt.NDArray[np.int32]  # (I,) the column that is compared
    threshold: FloatArray  # (I,) numbers up to here go left
    nan_left: BoolArray  # (I,) whether missing values go left
    special: IntArray  # nodes that split by category, or take zero (≤ 1e-35) for missing
    category_slot: npt.NDArray[np.int32]  # (I,) the number of the set of categories, or −1
    category_start: npt.NDArray[np.int64]  # (C + 1,) where the words of each set begin
    category_words: npt.NDArray[np.uint32]  # the sets as bits
    members_left: BoolArray  # (C,) whether the members of a set go left, or all others


class TreeNodes(NamedTuple):
    """The roots of trees and the children of inner nodes; leaves are numbered after inner nodes."""

    roots: npt.NDArray[np.int32]  # (T,) the root of each tree
    left: npt.NDArray[np.int32]  # (I,) children
    right: npt.NDArray[np.int32]  # (I,)


@compiled
def find_directions(X, splits, out):
    """Write whether row ``X[row]`` goes left at each inner node into ``out[row, node]``.

    Except at special nodes, x goes left if x ≤ threshold, or if x is missing and
    `nan_left` holds.
    """
    column = splits.column
    threshold = splits.threshold
    nan_left = splits.nan_left
    special = splits.special
    slot = splits.category_slot
    category_start = splits.category_start
    category_words = splits.category_words
    members_left = splits.members_left
    for row in range(X.shape[0]):
        x = X[row]
        left = out[row]

        # All nodes compare numbers, special ones too: a loop without branches is vectorised. A
        # missing value is not at most any threshold, so it goes right.
        for node in range(column.shape[0]):
            left[node] = x[column[node]] <= threshold[node]

        # Missing values are sent to their side; rows without any are spared the loop.
        if np.isnan(x.sum()):
            for node in range(column.shape[0]):
                left[node] |= np.isnan(x[column[node]]) & nan_left[node]

        # All is right by now but at special nodes.
        for node in special:
            left[node] = goes_left(
                x[column[node]],
                left[node],
                nan_left[node],
                slot[node],
                category_start,
                category_words,
                members_left,
            )


@inlined
def goes_left(x, compared, nan_left, slot, category_start, category_words, members_left):
    """Return whether the number `x` goes left at a split that is not a plain comparison.

    A special split is by category if it has a `slot` among the sets of categories. Else it treats
    zero as missing, and other numbers go left if `compared`, the result of x ≤ threshold, is true.
    """
    if slot < 0:
        return nan_left if abs(x) <= 1e-35 else compared
    if np.isnan(x):
        return compared
    begin = category_start[slot]
    n_words = category_start[slot + 1] - category_start[slot]
    # Codes beyond the words of a set are not in it.
    if x < 0 or x >= 32 * n_words:
        return not members_left[slot]
    code = np.uint32(x)
    word = category_words[begin + (code >> np.uint32(5))]
    bit = (word >> (code & np.uint32(31))) & np.uint32(1)
    return (bit == np.uint32(1)) == members_left[slot]


@compiled
def add_predictions(x_left, nodes, leaf_value, out):
    """Add the prediction of each row, the sum of the leaves that it reaches, to ``out[row]``.

    ``x_left[row, node]`` says whether the row goes left at an inner node; node n_inner + l is the
    leaf with ``leaf_value[l]``.
    """
    roots = nodes.roots
    left = nodes.left
    right = nodes.right
    n_inner = left.shape[0]
    for row in range(x_left.shape[0]):
        # The trees are summed up separately; their sum is then added to what `out` contains.
        total = 0.0
        for root in roots:
            node = root
            while node < n_inner:
                node = left[node] if x_left[row, node] else right[node]
            total += leaf_value[node - n_inner]
        out[row] += total
