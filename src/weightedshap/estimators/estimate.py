"""Estimates of φ and Δ for a block of rows, from a sampler or from the formula of a game."""

from dataclasses import dataclass

import numpy as np

from weightedshap._checks import FloatArray, IntArray
from weightedshap.contributions import EXACT_BY_GAME, Contributions
from weightedshap.games.base import GameBatch
from weightedshap.weights import WeightFamily


@dataclass(frozen=True)
class Estimate:
    """Estimates of Δ and, for every weight vector, of φ, for n rows of one game."""

    phi: FloatArray  # (n, M, d, k) under `family.with_references`
    delta: FloatArray | None  # (n, d, d, k); None where it is not kept
    endpoints: FloatArray  # (n, 2, k) v(∅) and v([d])
    evaluations: IntArray  # (n,) coalitions evaluated
    stopped: tuple[str, ...]  # (n,) the reason why no more were evaluated
    errors: FloatArray | None = None  # (n, M, d, k) standard errors of φ; None where exact
    chains: FloatArray | None = None  # (n, c, d, d, k) Δ of independent chains; None if exact


def read_exact(batch: GameBatch, family: WeightFamily, keep: bool) -> Estimate:
    """Return the exact φ of games that have a formula for Δ; include Δ only if `keep` is set."""
    references = family.with_references.vectors
    M = len(references)
    vectors = family.with_unit_vectors if keep else references
    endpoints = batch.endpoints()
    phi = batch.semivalues(vectors)  # with the unit vectors behind, these give Δ itself
    n = len(phi)
    return Estimate(
        phi=phi[:, :M],
        delta=phi[:, M:] if keep else None,
        endpoints=endpoints,
        evaluations=np.zeros(n, dtype=np.intp),
        stopped=(EXACT_BY_GAME,) * n,
    )


def from_contributions(
    contributions: Contributions, batch: GameBatch, family: WeightFamily
) -> Estimate:
    """Return the estimate for one row, given the contributions Δ that an estimator returned.

    `batch` contains the game of this row only.
    """
    d = batch.d
    if not contributions.visited:  # uniform weights use every cell
        sizes = np.unique(np.argwhere(contributions.counts == 0)[:, 0]) + 1
        fewest = d * (d - 3) + 2 * d + 2
        raise ValueError(
            f"No coalition was drawn for some features at sizes {sizes.tolist()}, so the Shapley"
            f" value is unknown. Raise `evaluations`: {fewest:,} visit every feature at every size"
            " once."
        )
    weights = family.with_references
    delta = contributions.mean.reshape(1, d, d, -1)
    chains = contributions.replicates
    phi = weights.weigh(delta)
    errors = None
    if chains is not None:
        chains = chains.reshape(1, *chains.shape[:3], -1)
        errors = standard_errors(chains, phi, weights)
    return Estimate(
        phi=phi,
        delta=delta,
        endpoints=batch.endpoints(),
        evaluations=np.array([contributions.evaluations]),
        stopped=(contributions.stopped,),
        errors=errors,
        chains=chains,
    )


def standard_errors(chains: FloatArray, phi: FloatArray, weights: WeightFamily) -> FloatArray:
    """Return the standard errors (n, M, d, k) of φ for M weights, from its spread over chains.

    They are s/√c for c chains with standard deviation s. `chains` contains Δ from each of the c
    independent chains of draws, (n, c, d, d, k). For each weight only the chains with draws of
    every Δ_j(x_i) that the weight uses count; NaN with fewer than two of them.
    """
    phi_by_chain = np.moveaxis(weights.weigh(chains), 1, 0)  # (c, n, M, d, k)
    deviation = phi_by_chain - phi
    complete = ~np.isnan(deviation).any(axis=-2, keepdims=True)  # (c, n, M, 1, k)
    n_chains = complete.sum(axis=0)

    # Subtract the mean over the complete chains: φ itself pools the draws of all of them.
    centre = deviation.sum(axis=0, where=complete) / np.maximum(n_chains, 1)
    squares = ((deviation - centre) ** 2).sum(axis=0, where=complete)
    variance = squares / np.maximum(n_chains * (n_chains - 1), 1)
    return np.where(n_chains > 1, np.sqrt(variance), np.nan)
