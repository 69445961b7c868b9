"""Permutation sampling for a game that is a mean of simpler games, as the marginal game is.

Along every random order only one of the simpler games is evaluated. Other games are sampled by
`permutation`; `auto` picks `walks` for marginal games.
"""

from typing import Any

import numpy as np

from weightedshap._checks import (
    FloatArray,
    IntArray,
    Seed,
    as_generator,
    check_positive_integer,
    stream_fingerprint,
)
from weightedshap.contributions import Chains, Contributions
from weightedshap.estimators.exact import exact
from weightedshap.estimators.permutation import permutation
from weightedshap.games.user import check_game

# For the choice of a weight, these are as good as a thousand.
FEWEST_ORDERS = 100
FEWEST_SQUARES = 2
# Two independent chains of draws give a standard error, ten a good one.
MOST_CHAINS = 10
# Ridge penalty of the regression on control variates in standard units: as much as one step.
RIDGE = 1.0


def walks(game: Any, *, evaluations: int | None = None, rng: Seed = None) -> Contributions:
    """Estimate Δ of a weighted mean of games from random orders, each for one of these games.

    The marginal game is such a mean v = Σ_b weight_b v_b, with one v_b(S) = f(x_S, b_{[d]∖S}) for
    each background row b. A value of v costs as many calls of the model as there are rows, a value
    of v_b costs one, and E Δ(v_b) = Δ(v).

    1. Draw Latin squares of orders, order_r[t] = π[(z_t + r) mod d] for r < d with random π and z:
       in the d orders of a square every feature is at every position once.
    2. Draw a game v_b for every order, by weight and evenly over the range of v_b(∅), so that each
       square has a balanced sample.
    3. Add the features one by one: the step of v_b that adds x_i to j − 1 features is one draw of
       Δ_j(x_i). An order costs d − 1 calls.
    4. Subtract what b predicts of the steps: they are regressed on the position of x_i and on the
       values of its columns in b, whose mean over all b is known. The regression for one square is
       fitted to the steps of the other squares (`subtract_regression`).

    There is no bias, and the step of a feature that the model does not use is exactly zero. The
    standard errors come from the differences between squares.

    At d = 20, for neural networks, the variance of the Shapley value is a fifth to a third of that
    from as many random orders, half of them reversed; for a single Δ_j(x_i) it is 0.4 to 0.5 of
    it. A game that is not a mean of games is sampled by `permutation`, with the same budget.

    Parameters
    ----------
    evaluations : a hard budget of calls of the model; by default enough for 100 orders, rounded up
        to Latin squares, at least two
    """
    game = check_game(game)
    rng = as_generator(rng)
    parts = game.parts
    d = game.d
    if parts is None:
        return permutation(game, evaluations=evaluations, rng=rng)
    n_squares = n_latin_squares(d, evaluations)
    fingerprint = stream_fingerprint(rng)
    if d == 1:
        # ∅ and [d] are the only coalitions.
        return exact(game)

    orders = np.concatenate([latin_square(d, rng) for _ in range(n_squares)])  # (m, d)
    part = balance_rows(parts.draw(len(orders), rng), n_squares, rng)  # (m,)
    steps = np.diff(parts.along(orders, part), axis=1)  # (m, d[, k])
    if n_squares > 1:
        control_variates = parts.control_variates()  # (n, d, q)
        steps = subtract_regression(steps, orders, control_variates[part])

    # The flat index of [chain, j − 1, i] for each step.
    n_chains = min(n_squares, MOST_CHAINS)
    chain = np.repeat(np.arange(n_squares) % n_chains, d)  # (m,)
    cells = (chain[:, None] * d + np.arange(d)) * d + orders
    draws = steps.reshape(-1, *steps.shape[2:])
    return Contributions.from_chains(
        Chains.from_draws(cells.ravel(), draws, n_chains, d),
        exact=np.full((d, d, *steps.shape[2:]), np.nan),
        evaluations=len(orders) * (d - 1) + 1,
        stopped=(
            f"walks: {len(orders):,} orders, each through one of {parts.n:,} games whose mean is"
            " explained"
        ),
        draws=fingerprint,
    )


def latin_square(d: int, rng: np.random.Generator) -> IntArray:
    """Return d random orders (d, d) in which every player is at every position once."""
    players = rng.permutation(d)
    first_row = rng.permutation(d)
    return np.asarray(players[(first_row + np.arange(d)[:, None]) % d])


def balance_rows(drawn: IntArray, n_squares: int, rng: np.random.Generator) -> IntArray:
    """Distribute drawn games evenly over Latin squares; return the games in order of squares.

    `drawn` (n,) are the indices of games, similar ones next to each other: each square gets one of
    every `n_squares` neighbours.
    """
    dealt = rng.permuted(drawn.reshape(-1, n_squares), axis=1)  # (d, n_squares)
    return np.asarray(rng.permuted(dealt, axis=0).T.ravel())


def subtract_regression(
    steps: FloatArray, orders: IntArray, control_variates: FloatArray
) -> FloatArray:
    """Subtract from `steps` along orders what a regression on control variates (m, d, q) predicts.

    A step (m, d[, k]) is the change of the game when a player is added, and the result is step −
    β·control variates. β is fitted for every player by least squares to the steps of the *other*
    Latin squares, on the position, the control variates, and position × the first of them. Control
    variates have mean 0 over all games, so the result has no bias.
    """
    m, d = orders.shape
    place = np.argsort(orders, axis=1)  # (m, d) position of each player
    by_player = np.take_along_axis(steps.reshape(m, d, -1), place[..., None], axis=1)  # (m, d, k)

    # Regressors: 1, the position on [−1, 1], the control variates, and position × the first.
    u = (2 * place / (d - 1) - 1)[..., None]
    regressors = [np.ones_like(u), u, control_variates, u * control_variates[..., :1]]
    X = np.concatenate(regressors, axis=-1)
    X = X.reshape(-1, d, d, X.shape[-1])  # (squares, d orders, d players, p)
    y = by_player.reshape(-1, d, d, by_player.shape[-1])  # (squares, d orders, d players, k)

    # The steps of each square are taken out of the sums over all squares.
    gram = np.einsum("swip,swiq->sipq", X, X)
    cross = np.einsum("swip,swik->sipk", X, y)
    ridge = np.diag([0.0, 0.0] + [RIDGE] * (X.shape[-1] - 2))
    beta = np.linalg.solve(gram.sum(axis=0) - gram + ridge, cross.sum(axis=0) - cross)

    # The first two regressors, whose means are not 0, are not subtracted.
    residual = y - np.einsum("swip,sipk->swik", X[..., 2:], beta[:, :, 2:])
    along_orders = np.take_along_axis(residual.reshape(by_player.shape), orders[..., None], axis=1)
    return along_orders.reshape(steps.shape)


def n_latin_squares(d: int, evaluations: int | None) -> int:
    """Return how many Latin squares of d orders fit into the budget `evaluations`.

    Without a budget they have at least 100 orders. A budget too small for one square is an error.
    """
    if evaluations is None:
        return max(FEWEST_SQUARES, -(-FEWEST_ORDERS // d))
    budget = check_positive_integer("evaluations", evaluations)
    # One call is for f(x), at which every order ends.
    cost = d * (d - 1)
    if budget - 1 < cost:
        raise ValueError(
            f"A budget of {budget:,} calls of the model is too small: at d = {d} walks need at"
            f" least {cost + 1:,} to visit every feature at every size once."
        )
    return (budget - 1) // max(cost, 1)
