"""A game that is a mean of simpler ones: every random order is walked through one of them."""

from typing import Any

import numpy as np

from weightedshap.checks import IntArray, as_generator, positive_integer
from weightedshap.contributions import Chains, Contributions
from weightedshap.estimators.exact import exact
from weightedshap.estimators.noise import fingerprint
from weightedshap.estimators.permutation import permutation
from weightedshap.games.wrappers import checked

LEAST_WALKS = 100  # as good as a thousand for the choice of a weight
FEWEST_SQUARES, MOST_CHAINS = 2, 10  # two tell an error, ten tell it well enough


def walks(game: Any, *, evaluations: int | None = None, rng: np.random.Generator | int | None = None) -> Contributions:
    """Estimate every Δ_j(x_i) of a mean of games v = Σ_b weight_b v_b by walks through single v_b.

    The marginal game is such a mean, with one v_b(S) = f(x_S, b_{[d]∖S}) for each background row b. A value of v costs
    as many calls of the model as there are rows, a value of v_b costs one, and E Δ(v_b) = Δ(v).

    1. Draw Latin squares of orders, order_r[t] = π[(z_t + r) mod d] for r < d with random π and z: in the d orders of a
       square every feature stands at every place once.
    2. Draw a part b for every order, by weight and evenly over the range of v_b(∅), so that those of a square are a
       fair sample of all.
    3. Walk: the step that adds x_i to j − 1 features is one draw of Δ_j(x_i). Both ends of a walk are known, so it
       costs d − 1 calls of the model.

    A step has no bias, and that of a feature which the model does not use is exactly zero. The spread of the squares
    tells the standard errors. Squares share out the parts among them, which makes their mean better than their spread
    tells: the error of a feature that decides the prediction by itself is up to half as large.

    Measured at d = 20 on networks, kernels and linear models: cells have 0.8 of the variance that as many random orders
    with their reverses have where the two share b, and the Shapley value 0.2 to 0.6 of it.

    A game that offers no parts is walked by `permutation`, with the same budget.

    Parameters
    ----------
    evaluations : a hard budget of calls of the model; by default 100 walks or more, as many as fill whole squares, and
        two squares at least
    """
    game, rng = checked(game), as_generator(rng)
    parts, d = game.parts, game.d
    if parts is None:
        return permutation(game, evaluations=evaluations, rng=rng)
    squares, draws = _squares(d, evaluations), fingerprint(rng)
    if d == 1:  # both ends are all there is
        return exact(game)
    orders = np.concatenate([latin_square(d, rng) for _ in range(squares)])
    steps = np.diff(parts.along(orders, spread(parts.draw(len(orders), rng), squares, rng)), axis=1)
    n = min(squares, MOST_CHAINS)
    chain = np.repeat(np.arange(squares) % n, d)
    cells = (chain[:, None] * d + np.arange(d)) * d + orders
    found = Chains.of(cells.ravel(), steps.reshape(-1, *steps.shape[2:]), n, d)
    nothing, calls = np.full(steps.shape[1:2] * 2 + steps.shape[2:], np.nan), len(orders) * (d - 1) + 1
    what = f"walks: {len(orders):,} orders, each through one of {parts.n:,} games whose mean is explained"
    return Contributions.sampled(found, nothing, calls, what, draws)


def latin_square(d: int, rng: np.random.Generator) -> IntArray:
    """(d, d) orders in which every player stands at every place once."""
    return np.asarray(rng.permutation(d)[(rng.permutation(d) + np.arange(d)[:, None]) % d])


def spread(drawn: IntArray, squares: int, rng: np.random.Generator) -> IntArray:
    """Parts (n,), like ones side by side, dealt out so that each square gets one of every `squares` neighbours."""
    dealt = rng.permuted(drawn.reshape(-1, squares), axis=1)  # (d, squares)
    return np.asarray(rng.permuted(dealt, axis=0).T.ravel())


def _squares(d: int, evaluations: int | None) -> int:
    """How many squares are walked."""
    if evaluations is None:
        return max(FEWEST_SQUARES, -(-LEAST_WALKS // d))
    budget, square = positive_integer("evaluations", evaluations) - 1, d * (d - 1)
    if budget < square:
        need = f"at d = {d} walks need at least {square + 1:,} to visit every feature at every size once"
        raise ValueError(f"A budget of {budget + 1:,} calls of the model is too small: {need}.")
    return budget // max(square, 1)
