"""Semivalues of path-dependent games by Gauss quadrature, see `kernels.quadrature`.

If every other player is known with probability q, the expected gain g(q) of a player is a
polynomial of q, and each φ_w is a weighted sum of the values of g at Gauss's points.
`path_dependent` uses them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
import numpy.typing as npt

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap.trees.ensembles import Ensemble, Int32, Steps, coefficient_table
from weightedshap.trees.kernels import paths as path_kernels
from weightedshap.trees.kernels import quadrature as point_kernels
from weightedshap.trees.kernels.paths import PathTable
from weightedshap.trees.kernels.quadrature import PointGroups

# Trees are grouped by how many points they need, rounded up to one of these. More sizes save
# points, and make more groups to lift. It makes no difference that can be told from noise: with all
# sizes from 2 to 64, and with every second one, times were within 4 %.
GROUP_SIZES = 4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64
# Rows that are evaluated together, in one traversal of the trees: more share its overhead, fewer
# stay in the cache.
# Timed with 100 trees: at half 28 % slower, at double 0 to 5 % slower.
LANES = 64
# Outputs that share the traversal of a tree. With 16 outputs, half and double are within the noise
# of timing, 7 %.
OUTPUTS = 8
# The most memory for gains at points, so that many players do not leave the cache. With 100 and 300
# players it makes no difference: half and double are within 1 %.
GAIN_BYTES = 2**24
# A weighted sum over the points may enlarge rounding errors by at most this.
STEADY = 1000.0

LongArray = npt.NDArray[np.longdouble]


def legendre(x: LongArray, n: int) -> LongArray:
    """Return the values of the Legendre polynomials P_0 … P_{n−1} at x, (n, len(x))."""
    P = np.ones((n, len(x)), dtype=np.longdouble)
    P[1:2] = x
    for k in range(1, n - 1):
        P[k + 1] = ((2 * k + 1) * x * P[k] - k * P[k - 1]) / (k + 1)
    return P


def legendre_by_size(d: int, n: int) -> LongArray:
    """Return marginal contributions Δ (n, d) whose gain functions are Legendre polynomials.

    For k < n ≤ d, row k contains the Δ_1 … Δ_d whose g(q) = Σ_j C(d−1, j−1) q^{j−1} (1−q)^{d−j} Δ_j
    is P_k(1 − 2q). They are Hahn's orthogonal polynomials of j for uniform weights, with a
    recurrence like Legendre's.
    """
    H = np.ones((n, d), dtype=np.longdouble)
    last = d - 1
    x = last - 2 * np.arange(d, dtype=np.longdouble)
    H[1:2] = x / max(last, 1)
    for k in range(1, n - 1):
        H[k + 1] = ((2 * k + 1) * x * H[k] - k * (last + k + 1) * H[k - 1]) / ((k + 1) * (last - k))
    return H


def gauss(n: int) -> tuple[FloatArray, FloatArray]:
    """Return the n points and n weights of Gauss's quadrature rule for integrals over (0, 1)."""
    x, omega = np.polynomial.legendre.leggauss(n)
    return (1 - x) / 2, omega / 2


def functional_weights(values: LongArray, n: int) -> FloatArray:
    """Return weights (n, m) of Gauss's n points for m linear functionals of polynomials.

    They are exact for all polynomials of a degree below n. Row k of `values` (at least n, m)
    contains the functionals of P_k(1 − 2q). The coefficient of P_k in g is
    (2k + 1) Σ_t ω_t P_k(1 − 2 q_t) g(q_t), so no system of equations is solved. The weights are
    corrected once for the rounding of the points.
    """
    q, omega = gauss(n)
    P = legendre(1 - 2 * q.astype(np.longdouble), n)
    parts = P.T * (2 * np.arange(n) + 1) * omega[:, None]
    weights = parts @ values[:n]
    return np.asarray(weights + parts @ (values[:n] - P @ weights), dtype=np.float64)


def point_weights(vectors: FloatArray, n: int) -> FloatArray:
    """Return weights (n, m) of n points that turn gains at the points into m semivalues φ_w.

    φ_w = Σ_t weights[t, w] g(q_t) holds for gains g of a degree below n. `vectors` (m, d) are the
    weight vectors w, and n ≤ d.
    """
    by_size = legendre_by_size(vectors.shape[1], n)
    return functional_weights(by_size @ vectors.T.astype(np.longdouble), n)


def interpolation_matrices(sizes: Sequence[int]) -> FloatArray:
    """Return matrices that interpolate from the points of each Gauss rule to the largest one's.

    `sizes` are the numbers of points of the rules, in rising order, and n is the last of them. The
    matrices are stacked: (Σ sizes, n).
    """
    n = max(sizes)
    values = legendre(1 - 2 * gauss(n)[0].astype(np.longdouble), n)
    return np.concatenate([*(functional_weights(values, size) for size in sizes[:-1]), np.eye(n)])


@dataclass(frozen=True)
class QuadraturePlan:
    """Trees that are prepared for quadrature by `kernels.quadrature.add_gains`.

    The ensembles have the same nodes. The trees are grouped by the number of points that they need.
    """

    steps: Steps  # (k, I) whose players are positions in `players`
    groups: PointGroups  # of the trees, the last one with the most points, Q
    depth: int
    stack_size: int
    players: IntArray  # (u,) the players of all splits

    @classmethod
    def build(cls, ensembles: Sequence[Ensemble], most_points: int | None = None) -> Self:
        """Prepare ensembles with the same nodes for quadrature.

        With `most_points`, leaves with more players than that are left out.
        """
        # The ensembles have the nodes of the first one in common.
        nodes = ensembles[0]

        # Find where each node stands in its tree, parents first.
        order = nodes.parents_first(~nodes.left_first)
        position = np.empty(len(order), dtype=np.intp)
        position[nodes.steps["node"]] = np.arange(len(order))
        steps = nodes.steps[position[order]]
        path = np.zeros(nodes.depth + 1, np.int64)
        waiting = np.zeros(nodes.depth + 1, np.int64)
        point_kernels.find_ancestors(steps, path, waiting)

        width = steps["width"]
        if most_points is not None:
            width = np.minimum(width, most_points)
        tree = np.cumsum(steps["is_root"], dtype=np.intp) - 1
        sizes, group = _group_by_points(tree, width)
        by_group = np.argsort(group, kind="stable")
        players, steps["player"] = np.unique(steps["player"], return_inverse=True)

        valued = nodes.with_leaf_values(steps[by_group], ensembles)
        is_narrow = (steps["width"] == width)[by_group]
        for leaf in ("u", "v"):
            valued[leaf] *= is_narrow
        return cls(
            steps=valued,
            groups=PointGroups(
                first_step=np.searchsorted(group[by_group], np.arange(len(sizes) + 1)),
                first_point=np.append(0, np.cumsum(sizes)),
                points=np.concatenate([gauss(size)[0] for size in sizes]),
                lift=interpolation_matrices(sizes.tolist()),
            ),
            depth=nodes.depth,
            stack_size=nodes.stack_size,
            players=players,
        )

    @property
    def n_points(self) -> int:
        """The number of quadrature points of the last group of trees, which has the most."""
        return int(self.groups.lift.shape[1])

    def player_gains(self, steps: Steps, goes_left: BoolArray) -> FloatArray:
        """Return the gains of u players in n rows at all Q quadrature points, (k, u, Q, n).

        `steps` (k, I) are those of k outputs; `goes_left` (n, I) says whether each of n rows goes
        left at each inner node.
        """
        k = len(steps)
        u = len(self.players)
        out = np.zeros((k * u, self.n_points, len(goes_left)))
        point_kernels.add_gains(goes_left, steps, self.groups, self.depth, self.stack_size, out)
        return out.reshape(k, u, *out.shape[1:])


def _group_by_points(tree: IntArray, width: Int32) -> tuple[IntArray, IntArray]:
    """Group trees by the number of points they need; return these numbers, and each step's group.

    `tree` (I,) is the tree of each step, and `width` (I,) the number of distinct players on the
    path from the root to the step.
    """
    widths = np.ones(tree.max(initial=0) + 1, dtype=np.intp)
    widest = width.max(initial=1)
    np.maximum.at(widths, tree, width)
    bounds = np.array([*(size for size in GROUP_SIZES if size < widest), widest])
    sizes, group = np.unique(bounds[np.searchsorted(bounds, widths)], return_inverse=True)
    return sizes, group[tree]


@dataclass(frozen=True)
class QuadratureSemivalues:
    """Tables from which the semivalues φ_w of path-dependent games are computed.

    The k games have the same nodes, and w is each of m weight vectors. With nearly d points, the
    weighted sum for a single Δ_j loses digits. So leaves with too many players are added up one by
    one instead.
    """

    plan: QuadraturePlan  # of the leaves that quadrature evaluates
    weights: FloatArray  # (Q, m) of the points of the plan
    paths: PathTable | None  # the paths to all leaves, if some leaves are added up one by one
    value: FloatArray  # (k, L) the values of leaves that are added up, 0 for the others
    table: FloatArray  # (K, m) coefficients K(s, t) times the vectors, see `coefficient_table`

    @classmethod
    def build(
        cls, ensembles: Sequence[Ensemble], plan: QuadraturePlan, vectors: FloatArray
    ) -> Self:
        """Prepare the tables for weight vectors (m, d), with as many points as are stable."""
        n = plan.n_points
        weights = point_weights(vectors, n)
        while n > 1 and np.abs(weights).sum(axis=0).max(initial=0.0) > STEADY:
            n -= 1
            weights = point_weights(vectors, n)
        if n == plan.n_points:
            return cls(plan, weights, None, np.zeros((0, 0)), np.zeros((0, 0)))

        paths = ensembles[0].paths
        table = np.ascontiguousarray(coefficient_table(vectors.shape[1], paths.widest) @ vectors.T)
        value = np.stack([ensemble.value for ensemble in ensembles])[:, paths.leaf]
        wide_value = np.where(np.diff(paths.start) > n, value, 0.0)
        return cls(QuadraturePlan.build(ensembles, n), weights, paths, wide_value, table)

    def fill(self, goes_left: BoolArray, outputs: slice, out: FloatArray) -> None:
        """Write the semivalues φ_w of the given outputs into `out` (k, n, m, d).

        `goes_left` (n, I) says whether each of n rows goes left at each inner node.
        """
        out[:] = 0.0
        plan = self.plan
        steps = plan.steps[outputs]
        bytes_per_row = 8 * len(plan.players) * plan.n_points * min(len(steps), OUTPUTS)
        size = min(LANES, max(8, GAIN_BYTES // max(bytes_per_row, 1)))
        for output, start in product(range(0, len(out), OUTPUTS), range(0, len(goes_left), size)):
            some = slice(output, output + OUTPUTS)
            rows = slice(start, start + size)
            all_gains = plan.player_gains(steps[some], goes_left[rows])
            for gains, phi in zip(all_gains, out[some, rows], strict=True):
                point_kernels.weigh(gains, self.weights, plan.players, phi)

        if self.paths is not None:
            wide = np.zeros_like(out)
            for value, phi in zip(self.value[outputs], wide, strict=True):
                path_kernels.semivalues(goes_left, value, self.paths, self.table, phi)
            out += wide
