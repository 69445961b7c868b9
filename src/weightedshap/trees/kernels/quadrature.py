"""Compiled loops for semivalues of path-dependent games by quadrature.

Let every player be known with probability q, independently. The expected gain if player i becomes
known is then g_i(q) = Σ_j C(d−1, j−1) q^{j−1} (1−q)^{d−j} Δ_j(x_i), on a tree a polynomial of lower
degree than a leaf has members. So that many points determine all Δ_j of a tree, and each φ_w is a
weighted sum of g_i over the points.

A node with shares a and b of the cover and children's values u and v is a u + b v for a hidden
player, and the value of the row's child for a known one; the difference is its gap. Where an
earlier split asked the same player, and sent the row and its share r of the cover this way, the
player is known with probability c = q / (q + r (1 − q)); where it sent the row elsewhere, the
player must be hidden. Functions that only one loop calls are compiled as a part of it.

`steps` are records of `weightedshap.trees.ensembles.STEP`. `weightedshap.trees.quadrature` calls
the loops; `weigh` adds up gains of `patterns` as well.
"""

from typing import NamedTuple

import numpy as np

from weightedshap._checks import FloatArray, IntArray
from weightedshap._compile import compiled, inlined


class PointGroups(NamedTuple):
    """The quadrature points of groups of trees; the last group has the most points."""

    first_step: IntArray  # (G + 1,) of each group
    first_point: IntArray  # (G + 1,) in `points`
    points: FloatArray  # (P,) of all groups
    lift: FloatArray  # (P, Q) takes gains there to the points of the last group


@compiled
def find_ancestors(steps, path, waiting):
    """Set the level, the width and the last split above by the same player, for each node.

    Parents come before children, and first children before second ones.

    ``level``: splits above the node; ``above``: the level of the last split above that asks the
    same player, or −1; ``ratio``: the share of the cover that all such splits send this way;
    ``width``: distinct players from the root to here. `path` and `waiting` have room for one path.
    """
    level = 0
    for at in range(steps.shape[0]):
        step = steps[at]

        # ``path[:level + 1]`` are the steps from the root to the one before, and ``waiting`` says
        # how many inner children of each are still to come: the last that waits is the parent.
        level = 0 if step.is_root else level
        step.width = 1
        if not step.is_root:
            while waiting[level] == 0:
                level -= 1
            step.width = steps[path[level]].width + 1
            waiting[level] -= 1
            level += 1
        step.level = level
        path[level] = at
        waiting[level] = step.inner

        # Look upwards for the same player: what is known of it there holds here as well.
        step.above = -1
        step.ratio = 1.0
        for up in range(level - 1, -1, -1):
            earlier = steps[path[up]]
            if earlier.player == step.player:
                step.above = up
                step.ratio = earlier.ratio * (earlier.b if steps[path[up + 1]].turn else earlier.a)
                step.width -= 1
                break


@compiled
def add_gains(x_left, steps, groups, depth, stack_size, out):
    """Add the gain of player p at quadrature point t, for each row, to ``out[p, t, row]``.

    Indices p are the players of the first output, then those of the second, …. ``steps[o]`` are
    those of output o. All outputs share the traversal of the trees.

    On the way down `reach` is the weight of a node; on the way back its value is mixed, and reach
    times gap is the gain of its player, for one asked before times r / (q + r (1 − q))²: reach
    already holds q + r (1 − q), gap what is left. Groups of narrow trees are read at fewer points,
    and `lift` takes the gains from there to the points of the last.
    """
    first_step = groups.first_step
    first_point = groups.first_point
    points = groups.points
    lift = groups.lift
    n_rows = out.shape[2]
    most_points = out.shape[1]
    outputs = steps.shape[0]
    # Outputs differ in the values of leaves alone, so nodes are those of the first.
    nodes = steps[0]
    gain = np.empty(out.shape)
    value = np.empty((outputs * stack_size, most_points, n_rows))
    leaves = np.empty(n_rows)
    # Of the nodes from the root to here, by level. `reach` is the weight; `went` is 1 at the side
    # that the row takes, unless an earlier split of the player sent it elsewhere, and 0 otherwise;
    # `gap` is that less the side's share of the cover.
    reach = np.empty((depth + 1, most_points, n_rows))
    went = np.empty((depth + 1, 2, n_rows))
    gap = np.empty((depth + 1, 2, n_rows))
    # c and r / (q + r (1 − q))² at each point.
    known = np.empty((depth + 1, most_points))
    weight = np.empty((depth + 1, most_points))
    path = np.empty(depth + 1, np.int64)
    for point in range(most_points):
        for row in range(n_rows):
            reach[0, point, row] = 1.0
    for group in range(first_step.shape[0] - 1):
        begin = first_point[group]
        end = first_step[group + 1]
        here = -1
        n_points = first_point[group + 1] - begin
        top = -1
        for p in range(out.shape[0]):
            for point in range(n_points):
                for row in range(n_rows):
                    gain[p, point, row] = 0.0
        for at in range(first_step[group], end + 1):
            # Fold all nodes that are done: those on the path from the level of the next one on.
            # ``value[:top + 1]`` of each output are those of nodes whose parent is not folded yet.
            down = np.int64(nodes[at].level) if at < end else 0
            while here >= down:
                done = path[here]
                top += 1 - nodes[done].inner
                for o in range(outputs):
                    fold_children(
                        steps[o, done],
                        o * (out.shape[0] // outputs),
                        here,
                        o * stack_size + top,
                        gap,
                        known,
                        weight,
                        reach,
                        value,
                        leaves,
                        gain,
                        n_points,
                    )
                here -= 1
            if at == end:
                break

            # Numbers of the step are bound to names: the compiler cannot know that they stay the
            # same in a loop that writes to arrays.
            step = nodes[at]
            turn = step.turn
            up = step.above
            ratio = step.ratio

            # The weight of the node is that of its parent times what the parent sends this way.
            if down == 0:
                top = -1
            else:
                parent = nodes[path[here]]
                share = parent.b if turn else parent.a
                for point in range(n_points):
                    c = known[here, point]
                    for row in range(n_rows):
                        reach[down, point, row] = reach[here, point, row] * (
                            share + c * gap[here, turn, row]
                        )
            here = down
            path[down] = at
            for point in range(n_points):
                q = points[begin + point]
                either = q + ratio * (1.0 - q)
                known[here, point] = q / either
                weight[here, point] = ratio / (either * either)

            # Rows that an earlier split of the player sent elsewhere count on neither side.
            side = nodes[path[up + 1]].turn if up >= 0 else 0
            a = step.a
            b = step.b
            node = step.node
            first = step.left_first
            for row in range(n_rows):
                z = went[up, side, row] if up >= 0 else 1.0
                x = z if x_left[row, node] == first else 0.0
                went[here, 0, row] = x
                went[here, 1, row] = z - x
                gap[here, 0, row] = x - a * z
                gap[here, 1, row] = z - x - b * z
        add_lifted(gain, lift, begin, n_points, out)


@inlined
def fold_children(
    step, first_player, here, top, gap, known, weight, reach, value, leaves, gain, n_points
):
    """Compute a node's value from its two children, and add to the gain of its player.

    The mix is a u + b v + c e, with e = gap_0 u + gap_1 v, and the player gains weight · reach · e.
    Children are leaves, or stand in ``value[top]`` and above, where the mix goes to.
    """
    a = step.a
    b = step.b
    p = first_player + step.player
    u = step.u
    v = step.v
    n_rows = leaves.shape[0]
    # What the leaves add to the mix and to e; the value of an inner child counts as 0 here.
    mean = a * u + b * v
    inner = step.inner
    for row in range(n_rows):
        leaves[row] = gap[here, 0, row] * u + gap[here, 1, row] * v
    for point in range(n_points):
        c = known[here, point]
        w = weight[here, point]
        if inner == 0:
            for row in range(n_rows):
                value[top, point, row] = mean + c * leaves[row]
                gain[p, point, row] += w * reach[here, point, row] * leaves[row]
        elif inner == 1:
            for row in range(n_rows):
                u = value[top, point, row]
                e = gap[here, 0, row] * u + leaves[row]
                value[top, point, row] = a * u + mean + c * e
                gain[p, point, row] += w * reach[here, point, row] * e
        else:
            for row in range(n_rows):
                u = value[top, point, row]
                v = value[top + 1, point, row]
                e = gap[here, 0, row] * u + gap[here, 1, row] * v
                value[top, point, row] = a * u + b * v + c * e
                gain[p, point, row] += w * reach[here, point, row] * e


@inlined
def add_lifted(gain, lift, begin, n_points, out):
    """Interpolate gains of one group at the points of the last group, and add them to `out`.

    That is ``out[p, t, row]`` += Σ_k lift[begin + k, t] · gain[p, k, row], for the `n_points`
    points of the group, which start at `begin`.
    """
    for p in range(out.shape[0]):
        for t in range(out.shape[1]):
            for point in range(n_points):
                part = lift[begin + point, t]
                for row in range(out.shape[2]):
                    out[p, t, row] += part * gain[p, point, row]


@compiled
def weigh(gains, weights, players, out):
    """Write φ_w = Σ_t gains[p, t, row] · weights[t, w] into ``out[row, w, players[p]]``.

    Points are always added up in the same order.
    """
    n_rows = gains.shape[2]
    # Players are taken by eights, as they stand side by side in `out`: written one by one, each
    # would touch a line of the cache for every row.
    few = np.empty((8, n_rows))
    for begin in range(0, gains.shape[0], 8):
        end = min(begin + 8, gains.shape[0])
        for w in range(weights.shape[1]):
            for p in range(begin, end):
                for row in range(n_rows):
                    few[p - begin, row] = 0.0
                for t in range(weights.shape[0]):
                    part = weights[t, w]
                    for row in range(n_rows):
                        few[p - begin, row] += part * gains[p, t, row]
            for row in range(n_rows):
                for p in range(begin, end):
                    out[row, w, players[p]] = few[p - begin, row]
