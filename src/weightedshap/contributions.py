"""The marginal contributions Δ[j, i] of every feature i at every coalition size j (Equation 2).

``delta[j - 1, i]`` = Δ_j(x_i): the row is the number of features known before x_i is added (0 …
d−1), the column the feature. An axis of data rows comes before these two axes, an axis of the
model's outputs after them.

Every estimator returns `Contributions`, and `Chains` summarise the random draws behind it. Only
numpy is needed here.
"""

from dataclasses import dataclass
from math import prod
from typing import Self

import numpy as np
import numpy.typing as npt

from weightedshap._checks import FloatArray, IntArray, as_array, shallow_asdict

# Why nothing was sampled, in results.
EXACT_BY_GAME = "exact: the game's own contributions"


@dataclass(frozen=True)
class Chains:
    """Running means and variances of Δ in c independent sampling chains (Welford's update)."""

    counts: FloatArray  # (c, d, d) draws in every cell
    mean: FloatArray  # (c, d, d[, k]) their mean; 0 where there are none
    squares: FloatArray  # (c, d, d[, k]) sum of squared deviations from that mean

    @classmethod
    def empty(cls, n_chains: int, d: int, out: tuple[int, ...] = ()) -> Self:
        """Return `n_chains` chains that contain no draws yet.

        `out` is the shape of the outputs: () or (k,).
        """
        shape = (n_chains, d, d)
        return cls(
            counts=np.zeros(shape), mean=np.zeros(shape + out), squares=np.zeros(shape + out)
        )

    @classmethod
    def from_draws(cls, cells: IntArray, draws: FloatArray, n_chains: int, d: int) -> Self:
        """Summarise draws as chains; `cells` gives the flat index of the cell of each draw.

        Draws are (n,) or (n, k), and `cells` is (n,). A cell is [chain, j − 1, i], and the index
        runs over `n_chains` × d × d cells.
        """
        counts = np.bincount(cells, minlength=n_chains * d * d).astype(np.float64)
        at_least_one = broadcast_cells(np.maximum(counts, 1), draws)
        mean = sum_by_cell(draws, cells, len(counts)) / at_least_one
        squares = sum_by_cell((draws - mean[cells]) ** 2, cells, len(counts))
        shape = (n_chains, d, d)
        out = draws.shape[1:]
        return cls(
            counts=counts.reshape(shape),
            mean=mean.reshape(shape + out),
            squares=squares.reshape(shape + out),
        )

    def __add__(self, other: Self) -> Self:
        """Combine the draws of two `Chains` objects, chain by chain (Chan's pairwise update)."""
        counts = self.counts + other.counts
        share = np.divide(other.counts, counts, out=np.zeros_like(counts), where=counts > 0)
        share = broadcast_cells(share, self.mean)
        gap = other.mean - self.mean
        between = gap**2 * share * broadcast_cells(self.counts, self.mean)
        return type(self)(
            counts=counts,
            mean=self.mean + gap * share,
            squares=self.squares + other.squares + between,
        )

    def pooled(self, axis: int = 0) -> Self:
        """Combine all draws along an axis, which then has length one.

        Axis 0 combines the chains, (1, d, d[, k]), and axis 1 the sizes, (c, 1, d[, k]).
        """
        counts = self.counts.sum(axis, keepdims=True)
        at_least_one = broadcast_cells(np.maximum(counts, 1), self.mean)
        weights = broadcast_cells(self.counts, self.mean)
        mean = (weights * self.mean).sum(axis, keepdims=True) / at_least_one
        between = (weights * (self.mean - mean) ** 2).sum(axis, keepdims=True)
        squares = self.squares.sum(axis, keepdims=True) + between
        return type(self)(counts, mean, squares)


@dataclass(frozen=True)
class Contributions:
    """Estimates of the contributions Δ, with the draws and the standard error of each.

    >>> from weightedshap.estimators import exact
    >>> from weightedshap.games import FunctionGame
    >>> together = FunctionGame(lambda coalitions: coalitions.prod(axis=1), d=2)
    >>> exact(together).mean
    array([[0., 0.],
           [1., 1.]])
    """

    # (d, d[, k]) ``mean[j - 1, i]`` = Δ_j(x_i); NaN where the cell has no draws
    mean: FloatArray
    # (d, d[, k]) the number of draws behind each mean: infinity where Δ is exact
    counts: FloatArray
    # The number of coalitions at which the game was called; for `walks`, of calls of the model.
    evaluations: int = 0
    # Why no more coalitions were evaluated.
    stopped: str = "exact"
    # The independent chains of draws behind the mean; None if all of Δ is exact.
    chains: Chains | None = None
    # A fingerprint of each random stream, so that `+` can refuse to count one twice.
    draws: frozenset[str] = frozenset()
    # (d, d[, k]) standard errors, if the sampler has better ones than the chains give.
    cell_errors: FloatArray | None = None

    @property
    def adjusted(self) -> bool:
        """Whether Δ was estimated with the help of a model fitted to the draws.

        Then Δ is not linear in the game.
        """
        return self.cell_errors is not None

    @classmethod
    def from_exact(cls, mean: FloatArray, evaluations: int = 0, stopped: str = "exact") -> Self:
        """Return contributions without sampling error, from a closed form or from enumeration."""
        return cls(mean, np.full(mean.shape, np.inf), evaluations, stopped)

    @classmethod
    def from_chains(
        cls,
        chains: Chains,
        exact: FloatArray,
        evaluations: int,
        stopped: str = "",
        draws: frozenset[str] = frozenset(),
        cell_errors: FloatArray | None = None,
    ) -> Self:
        """Return the contributions estimated by the sampling in `chains`.

        `exact` (d, d[, k]) has the values of cells that are known without error, else NaN. The
        other arguments are described at the attributes.
        """
        pool = chains.pooled()
        is_exact = ~np.isnan(exact)
        counts = np.where(is_exact, np.inf, broadcast_cells(pool.counts[0], exact))
        mean = np.where(is_exact, exact, np.where(counts > 0, pool.mean[0], np.nan))
        errors = None if cell_errors is None else np.where(is_exact, 0.0, cell_errors)
        return cls(mean, counts, evaluations, stopped, chains, draws, errors)

    @property
    def d(self) -> int:
        """The number of players d."""
        return len(self.mean)

    @property
    def exact(self) -> bool:
        """Whether all cells of Δ are free of sampling error."""
        return bool(np.isinf(self.counts).all())

    @property
    def visited(self) -> bool:
        """Whether every cell of Δ has at least one draw."""
        return bool((self.counts > 0).all())

    @property
    def replicates(self) -> FloatArray | None:
        """Δ estimated from each of c chains separately, (c, d, d[, k]); NaN in cells without draws.

        None if Δ is exact.
        """
        if self.chains is None:
            return None
        has_draws = broadcast_cells(self.chains.counts, self.chains.mean) > 0
        by_chain = np.where(has_draws, self.chains.mean, np.nan)
        return np.where(np.isinf(self.counts), self.mean, by_chain)

    @property
    def standard_error(self) -> FloatArray:
        """The standard error (d, d[, k]) of every cell of Δ.

        It is 0 where the cell is exact, and NaN with fewer than two draws.
        """
        if self.cell_errors is not None:
            return self.cell_errors
        if self.chains is None:
            return np.zeros_like(self.mean)
        pool = self.chains.pooled()
        n = broadcast_cells(pool.counts[0], self.mean)
        with np.errstate(invalid="ignore", divide="ignore"):
            sampled = np.where(n > 1, np.sqrt(pool.squares[0] / (n - 1) / n), np.nan)
        return np.where(np.isinf(self.counts), 0.0, sampled)

    def standard_error_of(self, w: npt.ArrayLike) -> FloatArray:
        """Return the standard error of φ_w = Σ_j w_j Δ_j, from the spread between chains.

        It is (d,) or (d, k). With c chains, it has c − 1 degrees of freedom. Cells of Δ are not
        independent, as one order of players gives draws for many cells; chains are. NaN where fewer
        than two chains have draws in all cells that w uses.
        """
        w = as_array("w", w)
        if w.shape != (self.d,):
            raise ValueError(
                f"`w` must hold one weight for each of {self.d} sizes; got shape {w.shape}."
            )
        is_sampled = ~np.isinf(self.counts.reshape(self.d, -1)).all(axis=1) & (w > 0)
        if self.chains is None or not is_sampled.any():
            return np.zeros(self.mean.shape[1:])
        complete = (self.chains.counts[:, is_sampled] > 0).all(axis=(1, 2))
        if complete.sum() < 2:
            return np.full(self.mean.shape[1:], np.nan)
        by_chain = self.chains.mean[complete][:, is_sampled]
        phi = np.einsum("j,cj...->c...", w[is_sampled], by_chain)

        # Chains are weighted by their draws: E Σ share (φ − mean)² = σ² (c − 1), share ∝ draws.
        n_draws = self.chains.counts[complete][:, is_sampled].mean(axis=(1, 2))
        share = n_draws / n_draws.sum()
        mean = np.einsum("c,c...->...", share, phi)
        variance = np.einsum("c,c...->...", share, (phi - mean) ** 2)
        return np.asarray(np.sqrt(variance / (len(share) - 1)))

    def __add__(self, other: Self) -> Self:
        """Pool two independent estimates of Δ for the same game."""
        if not isinstance(other, Contributions):
            return NotImplemented
        chains = self._pooled_chains(other)
        stopped = self.stopped
        if self.stopped != other.stopped:
            stopped = f"{self.stopped}; {other.stopped}"
        exact_by_other = np.where(np.isinf(other.counts), other.mean, np.nan)
        exact = np.where(np.isinf(self.counts), self.mean, exact_by_other)

        errors = None
        if self.adjusted or other.adjusted:
            # Weighted by the numbers of draws; values at exact cells are not used.
            n = np.where(np.isnan(exact), self.counts, 1.0)
            m = np.where(np.isnan(exact), other.counts, 1.0)
            errors = np.hypot(n * self.standard_error, m * other.standard_error) / (n + m)
        return self.from_chains(
            chains,
            exact,
            self.evaluations + other.evaluations,
            stopped,
            self.draws | other.draws,
            errors,
        )

    def _pooled_chains(self, other: Self) -> Chains:
        """Join the chains of both objects into one; raise an error if they cannot be pooled."""
        if self.mean.shape != other.mean.shape:
            raise ValueError(
                f"Cannot pool contributions of shape {self.mean.shape} with {other.mean.shape}:"
                " both must come from the same game."
            )
        if self.chains is None or other.chains is None:
            raise ValueError(
                "Cannot pool an exact table: it has no sampling error, so there is nothing to add."
            )
        if self.draws & other.draws:
            raise ValueError(
                "Cannot pool these tables: they hold the same random draws, and counting them"
                " twice would understate the error. Draw the second one with another seed."
            )
        # Samplers that compute Δ_1 and Δ_d exactly must agree on them.
        exact_in_both = np.isinf(self.counts) & np.isinf(other.counts)
        ours = self.mean[exact_in_both]
        theirs = other.mean[exact_in_both]
        largest = np.abs(np.stack([ours, theirs])).max(initial=0)
        if not np.allclose(ours, theirs, rtol=1e-6, atol=1e-9 * (1 + largest)):
            raise ValueError(
                "Cannot pool these tables: their exact Δ_1 and Δ_d differ, so the games differ."
            )
        pairs = zip(
            shallow_asdict(self.chains).values(), shallow_asdict(other.chains).values(), strict=True
        )
        return Chains(*map(np.concatenate, pairs))


def sum_by_cell(values: FloatArray, cells: IntArray, n_cells: int) -> FloatArray:
    """Return the sum of the values in each cell, (n_cells,) or (n_cells, k).

    `cells` (n,) has the index of each value's cell.
    """
    columns = values.reshape(len(values), prod(values.shape[1:])).T
    totals = [np.bincount(cells, column, n_cells).astype(np.float64) for column in columns]
    return np.stack(totals, axis=-1).reshape(n_cells, *values.shape[1:])


def broadcast_cells(cells: FloatArray, values: FloatArray) -> FloatArray:
    """Append axes of length one to `cells` until it broadcasts against `values`."""
    return cells.reshape(cells.shape + (1,) * (values.ndim - cells.ndim))
