"""A game that is a mean of simpler ones: every random order is walked through one of them."""

from typing import Any

import numpy as np

from weightedshap._checks import FloatArray, IntArray, Seed, as_generator, positive_integer
from weightedshap.contributions import Chains, Contributions
from weightedshap.estimators.exact import exact
from weightedshap.estimators.noise import fingerprint
from weightedshap.estimators.permutation import permutation
from weightedshap.games.user import checked

LEAST_WALKS = 100  # as good as a thousand for the choice of a weight
FEWEST_SQUARES = 2
MOST_CHAINS = 10  # two tell an error, ten tell it well enough
RIDGE = 1.0  # in steps: traits are in standard units


def walks(game: Any, *, evaluations: int | None = None, rng: Seed = None) -> Contributions:
    """Estimate every Δ_j(x_i) of a mean of games v = Σ_b weight_b v_b by walks through single v_b.

    The marginal game is such a mean, with one v_b(S) = f(x_S, b_{[d]∖S}) for each background row b.
    A value of v costs as many calls of the model as there are rows, a value of v_b costs one, and E
    Δ(v_b) = Δ(v).

    1. Draw Latin squares of orders, order_r[t] = π[(z_t + r) mod d] for r < d with random π and z:
       in the d orders of a square every feature stands at every place once.
    2. Draw a part b for every order, by weight and evenly over the range of v_b(∅): a square has a
       fair sample.
    3. Walk: the step that adds x_i to j − 1 features is one draw of Δ_j(x_i), at d − 1 calls for
       each walk.
    4. Take off what b tells of its steps: they are regressed on the place and on the values of
       x_i's columns in b, whose mean over all b is known, square by square on the steps of the
       others (`corrected`).

    There is no bias, and the step of a feature which the model does not use is exactly zero. The
    spread of the squares tells the standard errors.

    At d = 20 the Shapley value of networks has a fifth to a third of the variance of as many random
    orders, half of them reversed; cells have 0.4 to 0.5 of it. A game without parts is walked by
    `permutation`, with the same budget.

    Parameters
    ----------
    evaluations : a hard budget of calls of the model; by default as many whole squares as 100 walks
        fill, at least two
    """
    game = checked(game)
    rng = as_generator(rng)
    parts = game.parts
    d = game.d
    if parts is None:
        return permutation(game, evaluations=evaluations, rng=rng)
    squares = _squares(d, evaluations)
    draws = fingerprint(rng)
    if d == 1:  # both ends are all there is
        return exact(game)
    orders = np.concatenate([latin_square(d, rng) for _ in range(squares)])
    which = spread(parts.draw(len(orders), rng), squares, rng)
    steps = np.diff(parts.along(orders, which), axis=1)
    if squares > 1:
        steps = corrected(steps, orders, parts.traits[which])
    n = min(squares, MOST_CHAINS)
    chain = np.repeat(np.arange(squares) % n, d)
    cells = (chain[:, None] * d + np.arange(d)) * d + orders
    found = Chains.of(cells.ravel(), steps.reshape(-1, *steps.shape[2:]), n, d)
    nothing = np.full(steps.shape[1:2] * 2 + steps.shape[2:], np.nan)
    calls = len(orders) * (d - 1) + 1
    what = (
        f"walks: {len(orders):,} orders, each through one of {parts.n:,} games whose mean is"
        " explained"
    )
    return Contributions.sampled(found, nothing, calls, what, draws)


def latin_square(d: int, rng: np.random.Generator) -> IntArray:
    """(d, d) orders in which every player stands at every place once."""
    return np.asarray(rng.permutation(d)[(rng.permutation(d) + np.arange(d)[:, None]) % d])


def spread(drawn: IntArray, squares: int, rng: np.random.Generator) -> IntArray:
    """Parts (n,), like ones side by side, dealt out so that each square gets one of every `squares`
    neighbours."""
    dealt = rng.permuted(drawn.reshape(-1, squares), axis=1)  # (d, squares)
    return np.asarray(rng.permuted(dealt, axis=0).T.ravel())


def corrected(steps: FloatArray, orders: IntArray, traits: FloatArray) -> FloatArray:
    """Steps (m, d[, k]) along orders, less what the traits (m, d, q) of the parts tell of them:
    step − β·traits.

    β is found for every player by least squares over the steps of the *other* squares, on the
    place, the traits, and place × first trait. Traits have mean 0 over all parts, so that no bias
    comes of it.
    """
    m, d = orders.shape
    place = np.argsort(orders, axis=1)
    y = np.take_along_axis(steps.reshape(m, d, -1), place[..., None], axis=1)  # (m, d, k) by player
    u = (2 * place / (d - 1) - 1)[..., None]
    X = np.concatenate([np.ones_like(u), u, traits, u * traits[..., :1]], axis=-1)
    X = X.reshape(-1, d, d, X.shape[-1])
    by_square = y.reshape(-1, d, d, y.shape[-1])  # (squares, d walks, d players, k)
    gram = np.einsum("swip,swiq->sipq", X, X)
    cross = np.einsum("swip,swik->sipk", X, by_square)
    ridge = np.diag([0.0, 0.0] + [RIDGE] * (X.shape[-1] - 2))
    beta = np.linalg.solve(gram.sum(axis=0) - gram + ridge, cross.sum(axis=0) - cross)
    left = by_square - np.einsum("swip,sipk->swik", X[..., 2:], beta[:, :, 2:])
    return np.take_along_axis(left.reshape(y.shape), orders[..., None], axis=1).reshape(steps.shape)


def _squares(d: int, evaluations: int | None) -> int:
    """How many squares are walked."""
    if evaluations is None:
        return max(FEWEST_SQUARES, -(-LEAST_WALKS // d))
    budget = positive_integer("evaluations", evaluations) - 1
    square = d * (d - 1)
    if budget < square:
        need = (
            f"at d = {d} walks need at least {square + 1:,} to visit every feature at every size"
            " once"
        )
        raise ValueError(f"A budget of {budget + 1:,} calls of the model is too small: {need}.")
    return budget // max(square, 1)
