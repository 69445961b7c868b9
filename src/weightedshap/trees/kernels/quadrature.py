"""Compiled loops for semivalues of path-dependent games, read at points q: lanes are rows.

Let every player be known with probability q, independently. The gain by knowing player i for sure
is then g_i(q) = Σ_j C(d−1, j−1) q^{j−1} (1−q)^{d−j} Δ_j(x_i), on a tree a polynomial of lower
degree than a leaf has members. So as many points tell all Δ_j of a tree, and each φ_w is a weighted
sum of g_i over the points.

A node with shares a and b of the cover and children's values u and v is a u + b v for a hidden
player, and the value of the row's child for a known one; the difference is its gap. Where an
earlier split asked the same player, and sent the row and its share r of the cover this way, the
player is known with probability c = q / (q + r (1 − q)); where it sent the row elsewhere, the
player must be hidden. Functions that only one loop calls are compiled as a part of it.
"""

import numpy as np

from weightedshap._compile import compiled, inlined


@compiled
def find_ancestors(steps, way, waiting):
    """Fill in where each node stands in its tree; parents come before children, and first children
    first.

    ``level``: splits above the node; ``above``: the level of the last split above that asks the
    same player, or −1; ``ratio``: the share of the cover that all such splits send this way;
    ``width``: distinct players from the root to here. `way` and `waiting` have room for one path.
    """
    here = 0
    for i in range(steps.shape[0]):
        step = steps[i]
        here = 0 if step.is_root else here
        step.width = 1
        if not step.is_root:
            while waiting[here] == 0:
                here -= 1
            step.width = steps[way[here]].width + 1
            waiting[here] -= 1
            here += 1
        step.level = here
        step.above = -1
        step.ratio = 1.0
        way[here] = i
        waiting[here] = step.inner
        for up in range(here - 1, -1, -1):
            earlier = steps[way[up]]
            if earlier.player == step.player:
                step.above = up
                step.ratio = earlier.ratio * (earlier.b if steps[way[up + 1]].turn else earlier.a)
                step.width -= 1
                break


@compiled
def add_gains(x_left, every, first_step, first_point, points, lift, depth, lines, out):
    """Add to ``out[p, t, s]`` the gain g_p(q_t) of row s, for the players of the first output, then
    of the second, ….

    ``every[o]`` are the steps of output o. All outputs share the way down.

    On the way down `reach` is the weight of a node; on the way back its value is mixed, and reach
    times gap is the gain of its player, for one asked before times r / (q + r (1 − q))²: reach
    already holds q + r (1 − q), gap what is left. Groups of narrow trees are read at fewer points,
    and `lift` takes the gains from there to the points of the last.
    """
    n = out.shape[2]
    most = out.shape[1]
    gain = np.empty(out.shape)
    outputs = every.shape[0]
    steps = every[0]
    reach = np.empty((depth + 1, most, n))
    value = np.empty((outputs * lines, most, n))
    leaves = np.empty(n)
    went = np.empty((depth + 1, 2, n))
    gap = np.empty((depth + 1, 2, n))
    known = np.empty((depth + 1, most))
    weight = np.empty((depth + 1, most))
    way = np.empty(depth + 1, np.int64)
    for k in range(most):
        for s in range(n):
            reach[0, k, s] = 1.0
    for g in range(first_step.shape[0] - 1):
        begin = first_point[g]
        end = first_step[g + 1]
        here = -1
        n_points = first_point[g + 1] - begin
        top = -1
        for p in range(out.shape[0]):
            for k in range(n_points):
                for s in range(n):
                    gain[p, k, s] = 0.0
        for i in range(first_step[g], end + 1):
            down = np.int64(steps[i].level) if i < end else 0
            while here >= down:
                at = way[here]
                top += 1 - steps[at].inner
                for o in range(outputs):
                    first = o * (out.shape[0] // outputs)
                    line = o * lines + top
                    leave(
                        every[o, at],
                        first,
                        here,
                        line,
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
            if i == end:
                break
            # Numbers of the step are bound to names: a loop that writes to arrays cannot tell that
            # they stay the same.
            step = steps[i]
            turn = step.turn
            up = step.above
            ratio = step.ratio
            if down == 0:
                top = -1
            else:
                a = steps[way[here]].b if turn else steps[way[here]].a
                for k in range(n_points):
                    c = known[here, k]
                    for s in range(n):
                        reach[down, k, s] = reach[here, k, s] * (a + c * gap[here, turn, s])
            here = down
            way[down] = i
            for k in range(n_points):
                q = points[begin + k]
                either = q + ratio * (1.0 - q)
                known[here, k] = q / either
                weight[here, k] = ratio / (either * either)
            side = steps[way[up + 1]].turn if up >= 0 else 0
            a = step.a
            b = step.b
            node = step.node
            first = step.left_first
            for s in range(n):
                z = went[up, side, s] if up >= 0 else 1.0
                x = z if x_left[s, node] == first else 0.0
                went[here, 0, s], went[here, 1, s] = x, z - x
                gap[here, 0, s], gap[here, 1, s] = x - a * z, z - x - b * z
        add_lifted(gain, lift, begin, n_points, out)


@inlined
def leave(step, first, here, top, gap, known, weight, reach, value, leaves, gain, n_points):
    """Mix the values of both children of a node, which are leaves, or ``value[top]`` and above; add
    to the gain."""
    a = step.a
    b = step.b
    p = first + step.player
    u = step.u
    v = step.v
    n = leaves.shape[0]
    mean = a * u + b * v
    inner = step.inner
    for s in range(n):
        leaves[s] = gap[here, 0, s] * u + gap[here, 1, s] * v
    for k in range(n_points):
        c = known[here, k]
        w = weight[here, k]
        if inner == 0:
            for s in range(n):
                value[top, k, s] = mean + c * leaves[s]
                gain[p, k, s] += w * reach[here, k, s] * leaves[s]
        elif inner == 1:
            for s in range(n):
                u = value[top, k, s]
                e = gap[here, 0, s] * u + leaves[s]
                value[top, k, s] = a * u + mean + c * e
                gain[p, k, s] += w * reach[here, k, s] * e
        else:
            for s in range(n):
                u = value[top, k, s]
                v = value[top + 1, k, s]
                e = gap[here, 0, s] * u + gap[here, 1, s] * v
                value[top, k, s] = a * u + b * v + c * e
                gain[p, k, s] += w * reach[here, k, s] * e


@inlined
def add_lifted(gain, lift, begin, n_points, out):
    """Take gains at the points of a group, from `begin` on, to the points of the last group."""
    for p in range(out.shape[0]):
        for t in range(out.shape[1]):
            for k in range(n_points):
                part = lift[begin + k, t]
                for s in range(out.shape[2]):
                    out[p, t, s] += part * gain[p, k, s]


@compiled
def weigh(gains, weights, players, out):
    """``out[s, w, players[p]] = Σ_t gains[p, t, s] · weights[t, w]``, in one order; players by
    eights, as in `out`."""
    n = gains.shape[2]
    few = np.empty((8, gains.shape[2]))
    for begin in range(0, gains.shape[0], 8):
        end = min(begin + 8, gains.shape[0])
        for w in range(weights.shape[1]):
            for p in range(begin, end):
                for s in range(n):
                    few[p - begin, s] = 0.0
                for t in range(weights.shape[0]):
                    part = weights[t, w]
                    for s in range(n):
                        few[p - begin, s] += part * gains[p, t, s]
            for s in range(n):
                for p in range(begin, end):
                    out[s, w, players[p]] = few[p - begin, s]
