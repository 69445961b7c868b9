"""Standard errors for noisy games, whose values differ when a coalition is evaluated again.

The samplers `permutation` and `stratified` test for noise at their end.
"""

import warnings

import numpy as np

from weightedshap._checks import BoolArray, FloatArray
from weightedshap.contributions import Chains, Contributions, broadcast_cells
from weightedshap.games.user import CheckedGame

# Coalitions that are evaluated a second time.
REPEATS = 3


def noise_variance(
    game: CheckedGame, coalitions: BoolArray, values: FloatArray
) -> FloatArray | None:
    """Return the variance ([k]) of repeated values of a coalition; None if the game is not noisy.

    The last few of `coalitions` (m, d), whose values (m[, k]) are known, are evaluated a second
    time. Differences in the last digits, as of networks in single precision, are not noise.
    """
    gap = game(coalitions[-REPEATS:]) - values[-REPEATS:]
    rounding = 1e-4 * np.ptp(values, axis=0) + 1e-6 * np.abs(values).max(axis=0)
    if (np.abs(gap) <= rounding).all():
        return None
    return np.asarray((gap**2).mean(axis=0) / 2)


def add_noise_variance(table: Contributions, variance: FloatArray) -> Contributions:
    """Add the noise of the game to the standard errors of `table`; warn how large the noise is.

    The spread of a sampled Δ_j(x_i) includes the noise. An exact one, a difference of two means
    over all coalitions of a size, has at most twice the variance of one value; its chains of draws
    are spread accordingly, so that the error of every φ_w is widened too.
    """
    warnings.warn(
        "The game returned different values for the same coalition (standard deviation about "
        f"{float(np.sqrt(variance.max())):.3g}). Standard errors are widened to allow for it.",
        stacklevel=3,  # the line that called the estimator
    )
    is_exact = np.isinf(table.counts)
    error = np.sqrt(2 * variance)
    chains = table.chains
    if chains is None:
        # An exact table has no chains of draws: two equal ones are spread below.
        cells = (2, table.d, table.d)
        chains = Chains(np.ones(cells), np.stack([table.mean] * 2), np.zeros(1))

    # Offsets of the chains with mean 0 and standard error 1.
    n = len(chains.mean)
    steps = np.arange(n) - (n - 1) / 2
    offsets = steps * np.sqrt(n) / steps.std(ddof=1)
    spread_mean = table.mean + broadcast_cells(offsets, chains.mean) * error

    mean = np.where(is_exact, spread_mean, chains.mean)
    chains = Chains(chains.counts, mean, np.zeros_like(mean))
    return Contributions.from_chains(
        chains,
        exact=np.full_like(table.mean, np.nan),
        evaluations=table.evaluations,
        stopped=f"{table.stopped}; the game is noisy",
        draws=table.draws,
        cell_errors=np.where(is_exact, error, table.standard_error),
    )
