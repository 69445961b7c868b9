"""A check that the nodes of a model file form trees, before any library follows their links.

`documents` (XGBoost) and `lightgbm_text` use it.
"""

import numpy as np

from weightedshap._checks import IntArray

DEEPEST = 500  # splits above a leaf: libraries, and JSON in Python, descend trees by recursion


def node_depths(inner: IntArray, children: IntArray, roots: IntArray, count: int) -> IntArray:
    """Return the depth of each of `count` nodes, (count,); −1 for nodes that no root leads to.

    `inner` (I,) are the nodes with a split, and `children` (I, 2) their children. Raise a
    ValueError if the nodes do not form trees.
    """
    if len(children) and (children.min() < 0 or children.max() >= count):
        raise ValueError("its trees name children that do not exist.")

    # If each node has at most one parent, and roots have none, no path from a root forms a circle.
    parents = np.bincount(children.ravel(), minlength=count)
    if (parents > 1).any() or parents[roots].any():
        raise ValueError("its trees have nodes with two parents, or a root below another node.")

    row = np.full(count, -1)
    row[inner] = np.arange(len(inner))

    depth = np.full(count, -1)
    reached = roots
    for level in range(DEEPEST + 1):
        depth[reached] = level
        splitting = row[reached]
        reached = children[splitting[splitting >= 0]].ravel()
        if not len(reached):
            return depth

    raise ValueError(f"its trees are deeper than {DEEPEST} splits.")
