"""Semivalues of path-dependent games from values at points, see `point_kernels`."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
import numpy.typing as npt

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap.trees.ensembles import Ensemble, Int32, Paths, Steps, coefficient_table
from weightedshap.trees.kernels import paths as path_kernels
from weightedshap.trees.kernels import quadrature as point_kernels

GROUPS = 4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64  # trees are grouped by how many points they need
LANES = 64
OUTPUTS = 8  # rows and outputs at a time
GAIN_BYTES = 2**24  # of their values at points
STEADY = 1000.0  # by how much a weighted sum over the points may enlarge rounding errors
LongArray = npt.NDArray[np.longdouble]


def legendre(x: LongArray, n: int) -> LongArray:
    """(n, len(x)) Legendre polynomials P_0 … P_{n−1} at x."""
    P = np.ones((n, len(x)), dtype=np.longdouble)
    P[1:2] = x
    for k in range(1, n - 1):
        P[k + 1] = ((2 * k + 1) * x * P[k] - k * P[k - 1]) / (k + 1)
    return P


def legendre_by_size(d: int, n: int) -> LongArray:
    """(n, d) the numbers Δ_1 … Δ_d whose g(q) = Σ_j C(d−1, j−1) q^{j−1} (1−q)^{d−j} Δ_j is P_k(1 −
    2q), for k < n ≤ d.

    They are Hahn's orthogonal polynomials of j for uniform weights, and follow from each other like
    Legendre's.
    """
    H = np.ones((n, d), dtype=np.longdouble)
    last = d - 1
    x = last - 2 * np.arange(d, dtype=np.longdouble)
    H[1:2] = x / max(last, 1)
    for k in range(1, n - 1):
        H[k + 1] = ((2 * k + 1) * x * H[k] - k * (last + k + 1) * H[k - 1]) / ((k + 1) * (last - k))
    return H


def gauss(n: int) -> tuple[FloatArray, FloatArray]:
    """Points q (n,) and weights of Gauss's rule for the integral over (0, 1)."""
    x, omega = np.polynomial.legendre.leggauss(n)
    return (1 - x) / 2, omega / 2


def read_at_points(values: LongArray, n: int) -> FloatArray:
    """(n, m) weights of the n points of Gauss that give the linear functionals of all polynomials
    of lower degree.

    Row k of `values` (at least n, m) holds those of P_k(1 − 2q), whose part in g is
    (2k + 1) Σ_t ω_t P_k(1 − 2 q_t) g(q_t): no system is solved. Weights are corrected once for
    rounded points.
    """
    q, omega = gauss(n)
    P = legendre(1 - 2 * q.astype(np.longdouble), n)
    parts = P.T * (2 * np.arange(n) + 1) * omega[:, None]
    weights = parts @ values[:n]
    return np.asarray(weights + parts @ (values[:n] - P @ weights), dtype=np.float64)


def point_weights(vectors: FloatArray, n: int) -> FloatArray:
    """(n, m) weights with φ_w = Σ_t weights[t, w] g(q_t), if g has a lower degree than n ≤ d."""
    return read_at_points(
        legendre_by_size(vectors.shape[1], n) @ vectors.T.astype(np.longdouble), n
    )


def lifts(sizes: Sequence[int]) -> FloatArray:
    """(Σ sizes, n) for the points of each size one below the other: g there → g at the n points of
    the largest."""
    n = max(sizes)
    values = legendre(1 - 2 * gauss(n)[0].astype(np.longdouble), n)
    return np.concatenate([*(read_at_points(values, size) for size in sizes[:-1]), np.eye(n)])


@dataclass(frozen=True)
class Descent:
    """Ensembles with the same nodes as `point_kernels.add_gains` reads them: trees by how many
    points they need."""

    steps: Steps  # (k, I) which ask about players by their place in `players`
    first_step: IntArray  # (G + 1,) of each group
    first_point: IntArray  # (G + 1,) of each group
    points: FloatArray  # (P,) of all groups, the last one with the most
    lift: FloatArray  # (P, Q) from them to the Q points of the last group
    depth: int
    lines: int
    players: IntArray  # (u,) all that are asked about

    @classmethod
    def of(cls, ensembles: Sequence[Ensemble], most: int | None = None) -> Self:
        """With at most so many points: without leaves that have more players."""
        ensemble = ensembles[0]  # for what all have in common
        order = ensemble.parents_first(~ensemble.left_first)
        place = np.empty(len(order), dtype=np.intp)
        place[ensemble.steps["node"]] = np.arange(len(order))
        steps = ensemble.steps[place[order]]
        point_kernels.find_ancestors(steps, *np.zeros((2, ensemble.depth + 1), np.int64))
        width = steps["width"] if most is None else np.minimum(steps["width"], most)
        sizes, group = _groups(np.cumsum(steps["is_root"], dtype=np.intp) - 1, width)
        kept = np.argsort(group, kind="stable")
        players, steps["player"] = np.unique(steps["player"], return_inverse=True)
        every = ensemble.valued(steps[kept], ensembles)
        for leaf in ("u", "v"):
            every[leaf] *= (steps["width"] == width)[kept]
        return cls(
            steps=every,
            first_step=np.searchsorted(group[kept], np.arange(len(sizes) + 1)),
            first_point=np.append(0, np.cumsum(sizes)),
            points=np.concatenate([gauss(size)[0] for size in sizes]),
            lift=lifts(sizes.tolist()),
            depth=ensemble.depth,
            lines=ensemble.lines,
            players=players,
        )

    @property
    def n_points(self) -> int:
        return int(self.lift.shape[1])

    def gains(self, steps: Steps, goes: BoolArray) -> FloatArray:
        """(k, u, Q, n) the gains of players at the points of the last group: of k outputs, at rows
        (n, I)."""
        shape = len(self.players), self.n_points, len(goes)
        out = np.zeros((len(steps) * shape[0], *shape[1:]))
        groups = self.first_step, self.first_point, self.points, self.lift, self.depth, self.lines
        point_kernels.add_gains(goes, steps, *groups, out)
        return out.reshape(len(steps), *shape)


def _groups(tree: IntArray, width: Int32) -> tuple[IntArray, IntArray]:
    """Points of each group, and the group of each step, for steps of trees with so many players
    from the root on."""
    widths = np.ones(tree.max(initial=0) + 1, dtype=np.intp)
    widest = width.max(initial=1)
    np.maximum.at(widths, tree, width)
    bounds = np.array([*(size for size in GROUPS if size < widest), widest])
    sizes, group = np.unique(bounds[np.searchsorted(bounds, widths)], return_inverse=True)
    return sizes, group[tree]


@dataclass(frozen=True)
class Semivalues:
    """φ_w of the path-dependent games of k ensembles with the same nodes, for m weight vectors.

    Δ_j by itself loses digits where it is read at nearly d points. So leaves with too many players
    are added up.
    """

    descent: Descent  # to the other leaves
    weights: FloatArray  # (Q, m) of its points
    paths: Paths | None  # the ways to all leaves, if some are added up
    value: FloatArray  # (k, L) of those, 0 for the others
    table: FloatArray  # (K, m) coefficients K(s, t) times the vectors, see `coefficient_table`

    @classmethod
    def of(cls, ensembles: Sequence[Ensemble], descent: Descent, vectors: FloatArray) -> Self:
        n = descent.n_points
        while (
            np.abs(weights := point_weights(vectors, n)).sum(axis=0).max(initial=0.0) > STEADY
            and n > 1
        ):
            n -= 1
        if n == descent.n_points:
            return cls(descent, weights, None, *np.zeros((2, 0, 0)))
        paths = ensembles[0].paths
        table = np.ascontiguousarray(coefficient_table(vectors.shape[1], paths.widest) @ vectors.T)
        value = np.where(
            np.diff(paths.start) > n, np.stack([e.value for e in ensembles])[:, paths.leaf], 0.0
        )
        return cls(Descent.of(ensembles, n), weights, paths, value, table)

    def fill(self, goes: BoolArray, outputs: slice, out: FloatArray) -> None:
        """φ (k, n, m, d) of rows with directions `goes` (n, I) and some outputs."""
        out[:] = 0.0
        steps = self.descent.steps[outputs]
        row = 8 * len(self.descent.players) * self.descent.n_points * min(len(steps), OUTPUTS)
        size = min(LANES, max(8, GAIN_BYTES // max(row, 1)))
        for first, start in product(range(0, len(out), OUTPUTS), range(0, len(goes), size)):
            some = slice(first, first + OUTPUTS)
            rows = slice(start, start + size)
            for gains, phi in zip(
                self.descent.gains(steps[some], goes[rows]), out[some, rows], strict=True
            ):
                point_kernels.weigh(gains, self.weights, self.descent.players, phi)
        if self.paths is not None:
            more = np.zeros_like(out)
            for value, phi in zip(self.value[outputs], more, strict=True):
                path_kernels.semivalues(goes, value, *self.paths[1:], self.table, phi)
            out += more
