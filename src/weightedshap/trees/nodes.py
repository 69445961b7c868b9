"""Nodes that a file describes, checked to be trees before any library walks them."""

import numpy as np

from weightedshap._checks import IntArray

DEEPEST = 500  # splits above a leaf: libraries, and JSON in Python, go down trees by recursion


def node_depths(inner: IntArray, children: IntArray, roots: IntArray, count: int) -> IntArray:
    """Return how many splits stand above each of `count` nodes, (count,); −1 where no root leads.

    `inner` (I,) are the nodes that split, and `children` (I, 2) where they lead. A ValueError says
    why they are no trees.
    """
    if len(children) and (children.min() < 0 or children.max() >= count):
        raise ValueError("its trees name children that do not exist.")

    # With one parent at most, and none for a root, no walk from a root can come back to a node.
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
