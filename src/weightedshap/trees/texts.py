"""LightGBM's text of trees, written anew from what was examined: a damaged one would end the interpreter."""

import re
from collections.abc import Mapping

import numpy as np

from weightedshap.checks import IntArray

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
DEEPEST = 1000  # splits above a leaf: LightGBM walks its trees by recursion
MISSING = {default_left | kind for default_left in (0, 2) for kind in (0, 4, 8)}  # of splits on numbers
NEEDED = ("split_feature", "threshold", "decision_type", "left_child", "right_child")
OF_SPLITS = (*NEEDED, "split_gain", "internal_value", "internal_weight", "internal_count")
OF_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")


def examined(text: str, columns: int) -> str:
    """The same trees on so many columns for ``lightgbm.Booster(model_str=…)``; a ValueError where they are damaged."""
    trees, found, _ = text.partition("\nend of trees\n")
    if not found:
        raise ValueError("the text of its trees is truncated.")
    blocks = [_block(block, columns, t) for t, block in enumerate(trees.split("\nTree=")[1:])]
    head = ["tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0"]
    head += [f"max_feature_idx={columns - 1}", "objective=regression"]
    head += ["feature_names=" + " ".join(f"Column_{c}" for c in range(columns))]
    head += ["feature_infos=" + " ".join(["none"] * columns), "tree_sizes=" + " ".join(str(len(b)) for b in blocks)]
    return "\n".join(head) + "\n\n" + "".join(blocks) + "end of trees\n\n"


def _block(block: str, columns: int, t: int) -> str:
    """One tree."""
    fields = dict(line.split("=", 1) for line in block.splitlines()[1:] if line)
    n = int(fields["num_leaves"])
    if n < 1 or fields.get("num_cat", "0") != "0" or fields.get("is_linear", "0") != "0":
        raise ValueError("its trees are not splits on numbers.")
    sizes = dict.fromkeys(OF_SPLITS, n - 1) | dict.fromkeys(OF_LEAVES, n)
    kept = {name: _numbers(name, fields[name], size) for name, size in sizes.items() if name in fields}
    if n > 1:
        _check_splits({name: np.array(kept[name], dtype=np.float64) for name in NEEDED}, n, columns)
    lines = [f"{name}={' '.join(numbers)}" for name, numbers in kept.items() if numbers]
    (shrinkage,) = _numbers("shrinkage", fields.get("shrinkage", "1"), 1)
    ends = ["is_linear=0", f"shrinkage={shrinkage}"]
    return "\n".join([f"Tree={t}", f"num_leaves={n}", "num_cat=0", *lines, *ends]) + "\n\n\n"


def _numbers(name: str, text: str, size: int) -> list[str]:
    found = text.split()
    if len(found) != size and (found or name in ("leaf_value", *NEEDED)):
        raise ValueError(f"`{name}` of its trees holds {len(found)} numbers where {size} are needed.")
    infinite = ("inf", "-inf") if name == "threshold" else ()  # parts what is missing from all else
    if not all(number in infinite or NUMBER.fullmatch(number) for number in found):
        raise ValueError(f"`{name}` of its trees holds what is no number.")
    return found


def _check_splits(splits: Mapping[str, IntArray], n: int, columns: int) -> None:
    """Columns that exist, and every node but the root the child of one that stands before it."""
    children = np.stack([splits["left_child"], splits["right_child"]], axis=1)
    if not set(np.unique(splits["decision_type"])) <= MISSING:
        raise ValueError("its trees are not splits on numbers.")
    if not np.isin(splits["split_feature"], np.arange(columns)).all():
        raise ValueError(f"its trees split columns that are none of {columns}.")
    if sorted(children.ravel()) != [*range(-n, 0), *range(1, n - 1)]:
        raise ValueError("its trees have nodes that hang nowhere, or twice.")
    depth = np.ones(n - 1)
    for node, pair in enumerate(children.astype(np.intp)):
        for child in pair[pair >= 0]:
            depth[child] = depth[node] + 1
            if child <= node or depth[child] > DEEPEST:
                raise ValueError("its trees run in a circle, or are too deep.")
