"""Δ[j, i]: the marginal contribution of every feature at every coalition size (Equation 2).

``delta[j - 1, i]`` = Δ_j(x_i): the row is the number of features known before x_i is added (0 …
d−1), the column the feature. Rows of a data table stand in front of these two axes, outputs of a
model behind them.
"""

from dataclasses import dataclass
from math import prod
from typing import Self

import numpy as np
import numpy.typing as npt

from weightedshap._checks import FloatArray, IntArray, as_numbers_of, field_values

OWN = "exact: the game's own contributions"  # why nothing was sampled, in results


@dataclass(frozen=True)
class Chains:
    """Running means of Δ in c independent chains of draws (Welford's update)."""

    counts: FloatArray  # (c, d, d) draws in every cell
    mean: FloatArray  # (c, d, d[, k]) their mean; 0 where there are none
    squares: FloatArray  # (c, d, d[, k]) sum of squared deviations from that mean

    @classmethod
    def empty(cls, n_chains: int, d: int, out: tuple[int, ...] = ()) -> Self:
        return cls(np.zeros((n_chains, d, d)), *np.zeros((2, n_chains, d, d, *out)))

    @classmethod
    def of(cls, cells: IntArray, draws: FloatArray, n_chains: int, d: int) -> Self:
        """Chains of draws (n[, k]), each with the flat index (n,) of its cell [chain, j − 1, i]."""
        counts = np.bincount(cells, minlength=n_chains * d * d).astype(np.float64)
        mean = summed(draws, cells, len(counts)) / with_outputs(np.maximum(counts, 1), draws)
        squares = summed((draws - mean[cells]) ** 2, cells, len(counts))
        return cls(
            *(array.reshape(n_chains, d, d, *array.shape[1:]) for array in (counts, mean, squares))
        )

    def __add__(self, other: Self) -> Self:
        """Both sets of draws, chain by chain (Chan's pairwise update)."""
        counts = self.counts + other.counts
        share = with_outputs(
            np.divide(other.counts, counts, out=np.zeros_like(counts), where=counts > 0), self.mean
        )
        gap = other.mean - self.mean
        squares = (
            self.squares + other.squares + gap**2 * share * with_outputs(self.counts, self.mean)
        )
        return type(self)(counts, self.mean + gap * share, squares)

    def pooled(self, axis: int = 0) -> Self:
        """All draws along an axis as one: of the chains (1, d, d[, k]), or of the sizes (c, 1, d[,
        k])."""
        counts = self.counts.sum(axis, keepdims=True)
        weights = with_outputs(self.counts, self.mean)
        mean = (weights * self.mean).sum(axis, keepdims=True) / with_outputs(
            np.maximum(counts, 1), self.mean
        )
        between = (weights * (self.mean - mean) ** 2).sum(axis, keepdims=True)
        return type(self)(counts, mean, self.squares.sum(axis, keepdims=True) + between)


@dataclass(frozen=True)
class Contributions:
    """The table Δ with its counts and errors.

    >>> from weightedshap.estimators import exact
    >>> from weightedshap.games import FunctionGame
    >>> together = FunctionGame(lambda coalitions: coalitions.prod(axis=1), d=2)
    >>> exact(together).mean
    array([[0., 0.],
           [1., 1.]])
    """

    # (d, d[, k]) ``mean[j - 1, i]`` = Δ_j(x_i); NaN where the cell was never visited
    mean: FloatArray
    # (d, d[, k]) draws that a cell averages: 0 where unvisited, infinity where Δ is exact
    counts: FloatArray
    evaluations: int = 0  # coalitions on which the game was called; by `walks`, calls of the model
    stopped: str = "exact"  # why no more were asked for
    chains: Chains | None = (
        None  # the independent chains of draws behind the mean; None for an exact table
    )
    # A fingerprint of each random stream, so that `+` can refuse one twice.
    draws: frozenset[str] = frozenset()
    cell_errors: FloatArray | None = (
        None  # (d, d[, k]) where the sampler knows them better than the chains tell
    )

    @property
    def adjusted(self) -> bool:
        """Whether a model fitted to the draws helped to read them: then the table is not linear in
        the game."""
        return self.cell_errors is not None

    @classmethod
    def known(cls, mean: FloatArray, evaluations: int = 0, stopped: str = "exact") -> Self:
        """A table without sampling error, from a closed form or from enumeration."""
        return cls(mean, np.full(mean.shape, np.inf), evaluations, stopped)

    @classmethod
    def sampled(
        cls,
        chains: Chains,
        exact: FloatArray,
        evaluations: int,
        stopped: str = "",
        draws: frozenset[str] = frozenset(),
        cell_errors: FloatArray | None = None,
    ) -> Self:
        """The table behind `chains`; `exact` (d, d[, k]) holds the cells that are known without
        error, else NaN."""
        pool = chains.pooled()
        known = ~np.isnan(exact)
        counts = np.where(known, np.inf, with_outputs(pool.counts[0], exact))
        mean = np.where(known, exact, np.where(counts > 0, pool.mean[0], np.nan))
        errors = None if cell_errors is None else np.where(known, 0.0, cell_errors)
        return cls(mean, counts, evaluations, stopped, chains, draws, errors)

    @property
    def d(self) -> int:
        """How many players there are."""
        return len(self.mean)

    @property
    def exact(self) -> bool:
        """Whether no cell carries sampling error."""
        return bool(np.isinf(self.counts).all())

    @property
    def visited(self) -> bool:
        """Whether every cell has at least one draw."""
        return bool((self.counts > 0).all())

    @property
    def replicates(self) -> FloatArray | None:
        """(c, d, d[, k]) Δ from each chain by itself, NaN where it has no draws; None for an exact
        table."""
        if self.chains is None:
            return None
        drawn = np.where(
            with_outputs(self.chains.counts, self.chains.mean) > 0, self.chains.mean, np.nan
        )
        return np.where(np.isinf(self.counts), self.mean, drawn)

    @property
    def standard_error(self) -> FloatArray:
        """(d, d[, k]) standard error of every cell: 0 where exact, NaN with fewer than two
        draws."""
        if self.cell_errors is not None:
            return self.cell_errors
        if self.chains is None:
            return np.zeros_like(self.mean)
        pool = self.chains.pooled()
        n = with_outputs(pool.counts[0], self.mean)
        with np.errstate(invalid="ignore", divide="ignore"):
            sampled = np.where(n > 1, np.sqrt(pool.squares[0] / (n - 1) / n), np.nan)
        return np.where(np.isinf(self.counts), 0.0, sampled)

    def standard_error_of(self, w: npt.ArrayLike) -> FloatArray:
        """(d[, k]) standard error of φ_w = Σ_j w_j Δ_j, by its spread over c chains: c − 1 degrees
        of freedom.

        Cells are not independent, as one walk fills many; chains are. NaN where fewer than two
        visited all that w uses.
        """
        if (w := as_numbers_of("w", w)).shape != (self.d,):
            raise ValueError(
                f"`w` must hold one weight for each of {self.d} sizes; got shape {w.shape}."
            )
        sampled = ~np.isinf(self.counts.reshape(self.d, -1)).all(axis=1) & (w > 0)
        if self.chains is None or not sampled.any():
            return np.zeros(self.mean.shape[1:])
        full = (self.chains.counts[:, sampled] > 0).all(axis=(1, 2))
        if full.sum() < 2:
            return np.full(self.mean.shape[1:], np.nan)
        phi = np.einsum("j,cj...->c...", w[sampled], self.chains.mean[full][:, sampled])
        draws = self.chains.counts[full][:, sampled].mean(axis=(1, 2))
        share = draws / draws.sum()
        mean = np.einsum("c,c...->...", share, phi)
        # E Σ share (φ − mean)² = σ² (c − 1), share ∝ draws.
        spread = np.einsum("c,c...->...", share, (phi - mean) ** 2)
        return np.asarray(np.sqrt(spread / (len(share) - 1)))

    def __add__(self, other: Self) -> Self:
        """The pooled table of two independent sets of draws on the same game."""
        if not isinstance(other, Contributions):
            return NotImplemented
        chains = self._chains_of_both(other)
        errors = None
        stopped = (
            self.stopped if self.stopped == other.stopped else f"{self.stopped}; {other.stopped}"
        )
        exact = np.where(
            np.isinf(self.counts), self.mean, np.where(np.isinf(other.counts), other.mean, np.nan)
        )
        if self.adjusted or other.adjusted:
            n, m = (np.where(np.isnan(exact), table.counts, 1.0) for table in (self, other))
            errors = np.hypot(n * self.standard_error, m * other.standard_error) / (n + m)
        evaluations = self.evaluations + other.evaluations
        draws = self.draws | other.draws
        return self.sampled(chains, exact, evaluations, stopped, draws, errors)

    def _chains_of_both(self, other: Self) -> Chains:
        """The chains of two tables, or an error that says why they must not be pooled."""
        if self.mean.shape != other.mean.shape:
            shapes = f"{self.mean.shape} with {other.mean.shape}"
            raise ValueError(
                f"Cannot pool contributions of shape {shapes}: both must come from the same game."
            )
        if self.chains is None or other.chains is None:
            raise ValueError(
                "Cannot pool an exact table: it has no sampling error, so there is nothing to add."
            )
        if self.draws & other.draws:
            same = (
                "they hold the same random draws, and counting them twice would understate the"
                " error"
            )
            raise ValueError(
                f"Cannot pool these tables: {same}. Draw the second one with another seed."
            )
        # Of a sampler that takes Δ_1 and Δ_d exactly, these.
        known = np.isinf(self.counts) & np.isinf(other.counts)
        ends = np.stack([self.mean[known], other.mean[known]])
        if not np.allclose(
            ends[0], ends[1], rtol=1e-6, atol=1e-9 * (1 + np.abs(ends).max(initial=0))
        ):
            raise ValueError(
                "Cannot pool these tables: their exact Δ_1 and Δ_d differ, so the games differ."
            )
        pairs = zip(
            field_values(self.chains).values(), field_values(other.chains).values(), strict=True
        )
        return Chains(*map(np.concatenate, pairs))  # side by side


def summed(values: FloatArray, cells: IntArray, n_cells: int) -> FloatArray:
    """(n[, k]) values, each with the index (n,) of its cell → (n_cells[, k]) sums."""
    columns = values.reshape(len(values), prod(values.shape[1:])).T
    totals = [np.bincount(cells, column, n_cells).astype(np.float64) for column in columns]
    return np.stack(totals, axis=-1).reshape(n_cells, *values.shape[1:])


def with_outputs(cells: FloatArray, values: FloatArray) -> FloatArray:
    """`cells` with axes of length one appended until it broadcasts against `values`."""
    return cells.reshape(cells.shape + (1,) * (values.ndim - cells.ndim))
