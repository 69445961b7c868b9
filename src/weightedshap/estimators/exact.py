"""Δ without sampling: by the formula of the game if it has one, else by enumeration.

Builds on `weightedshap.coalitions`; `auto` and the samplers use it for small games.
"""

from typing import Any

import numpy as np

from weightedshap._checks import FloatArray, Seed
from weightedshap.coalitions import all_coalitions, slices_of
from weightedshap.contributions import Contributions, broadcast_cells, sum_by_cell
from weightedshap.games.user import CheckedGame, check_game

# 2^20 coalitions are a million.
MOST_PLAYERS = 20
# Coalitions evaluated at once.
BATCH = 2**15


def exact(game: Any, *, rng: Seed = None) -> Contributions:
    """Return Δ by the formula of the game, else by enumeration of all 2^d coalitions (d ≤ 20).

    `rng` is not used, as nothing is drawn; every estimator has this argument.
    """
    checked_game = check_game(game)
    if checked_game.contributions is None:
        return enumerate_game(checked_game)
    return checked_game.contributions()


def enumerate_game(game: Any) -> Contributions:
    """Return Δ_j(x_i) of Equation 2 by evaluating every coalition once.

    1. Evaluate v on all 2^d coalitions, in batches.
    2. For each feature i take v(S ∪ {i}) − v(S) for all S without i.
    3. Average these differences by the size of S.
    """
    game = check_game(game)
    d = game.d
    if d > MOST_PLAYERS:
        raise ValueError(
            f"Enumeration of 2^{d} coalitions is out of reach (at most d = {MOST_PLAYERS})."
            " Use a sampler (estimator='permutation'), or a game that knows its own contributions."
        )
    values = all_values(game)
    sizes = np.bitwise_count(np.arange(2 ** (d - 1), dtype=np.uint32)).astype(np.intp)
    sums = np.stack([sum_by_cell(differences(values, i), sizes, d) for i in range(d)], axis=1)
    n_coalitions = np.bincount(sizes).astype(np.float64)  # (d,) by size, of the other players
    mean = sums / broadcast_cells(n_coalitions, sums)
    return Contributions.from_exact(mean, 2**d, f"exact: all {2**d:,} coalitions evaluated")


def all_values(game: CheckedGame) -> FloatArray:
    """Return the values (2^d[, k]) of all coalitions, in the order of `all_coalitions`."""
    values = [
        game(all_coalitions(game.d, numbers.start, numbers.stop))
        for numbers in slices_of(2**game.d, BATCH)
    ]
    return np.concatenate(values)


def differences(values: FloatArray, i: int) -> FloatArray:
    """Return v(S ∪ {i}) − v(S) for all coalitions S without player i, (2^{d−1}[, k]).

    `values` (2^d[, k]) are those of all coalitions. The differences are ordered by the number of S
    without bit i.
    """
    halves = values.reshape(-1, 2, 2**i, *values.shape[1:])
    return np.asarray(halves[:, 1] - halves[:, 0]).reshape(-1, *values.shape[1:])
