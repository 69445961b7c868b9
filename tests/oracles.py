"""Games whose Δ is known in closed form, Δ by its definition, and small tools to look at games
with.

Δ is indexed as everywhere: ``delta[j - 1, i]`` = Δ_j(x_i).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from math import comb

import numpy as np

from weightedshap.games import FunctionGame


@dataclass(frozen=True)
class TableGame:
    """A game given by its values (2^d[, k]); player i is bit i of a coalition's number."""

    values: np.ndarray

    @property
    def d(self):
        return len(self.values).bit_length() - 1

    def __call__(self, coalitions):
        return self.values[coalitions @ (1 << np.arange(self.d))]

    def relabelled(self, order):
        """The same game when player ``order[i]`` is called i."""
        return FunctionGame(lambda coalitions: self(coalitions[:, np.argsort(order)]), self.d)


@dataclass
class CountingGame:
    """A game that remembers every coalition it was asked for."""

    game: object
    asked: list = field(default_factory=list)

    @property
    def d(self):
        return self.game.d

    def __call__(self, coalitions):
        self.asked.extend(map(tuple, coalitions.tolist()))
        return self.game(coalitions)


@dataclass(frozen=True)
class Oracle:
    """A game and its Δ (d, d)."""

    game: object
    delta: np.ndarray


def random_game(d, seed=0, outputs=(), levels=None):
    """Values drawn for every coalition: normal, or one of a few whole numbers so that ties are
    common."""
    rng = np.random.default_rng(seed)
    shape = (2**d, *outputs)
    return TableGame(
        rng.normal(size=shape) if levels is None else rng.integers(levels, size=shape).astype(float)
    )


def with_null_player(game, player, step=0.0):
    """`game` with one more player at position `player`, who adds `step` to every coalition."""

    def values(coalitions):
        others = game(np.delete(coalitions, player, axis=1))
        return others + step * coalitions[:, player].reshape(-1, *[1] * (others.ndim - 1))

    return FunctionGame(values, game.d + 1)


def combined(a, one, b, other):
    """The game a·one + b·other."""
    return FunctionGame(lambda coalitions: a * one(coalitions) + b * other(coalitions), one.d)


def value(game, members):
    """v of one coalition, given by its members."""
    coalition = np.zeros((1, game.d), dtype=bool)
    coalition[0, list(members)] = True
    return game(coalition)[0]


def delta_by_definition(game):
    """Equation 2 word for word: the mean of v(S ∪ {i}) − v(S) over all S of size j − 1 without
    i."""
    return np.array([[_mean_step(game, j, i) for i in range(game.d)] for j in range(1, game.d + 1)])


def _mean_step(game, j, i):
    others = [player for player in range(game.d) if player != i]
    return np.mean(
        [value(game, (*S, i)) - value(game, S) for S in combinations(others, j - 1)], axis=0
    )


def additive(worth):
    """v(S) = Σ_{i∈S} worth_i. Every Δ_j(i) is worth_i."""
    worth = np.asarray(worth, dtype=float)
    d = len(worth)
    return Oracle(FunctionGame(lambda coalitions: coalitions @ worth, d), np.tile(worth, (d, 1)))


def moebius(d, terms):
    """v(S) = Σ_{T⊆S} m_T for terms {T: m_T}.

    A term of order t and value m contributes m·C(j−1, t−1)/C(d−1, t−1) to Δ_j of each of its
    members.
    """

    def values(coalitions):
        return sum(m * coalitions[:, list(T)].all(axis=1) for T, m in terms.items())

    delta = np.zeros((d, d))
    for T, m in terms.items():
        for j in range(1, d + 1):
            delta[j - 1, list(T)] += m * comb(j - 1, len(T) - 1) / comb(d - 1, len(T) - 1)
    return Oracle(FunctionGame(values, d), delta)


def unanimity(d, members):
    """v(S) = 1 if all `members` are in S."""
    return moebius(d, {tuple(members): 1.0})


def voting(d, quota):
    """v(S) = 1 if |S| ≥ quota: only the voter who comes as number `quota` decides."""
    delta = np.zeros((d, d))
    delta[quota - 1] = 1.0
    return Oracle(
        FunctionGame(lambda coalitions: (coalitions.sum(axis=1) >= quota).astype(float), d), delta
    )


def gloves(left, right):
    """v(S) = pairs that S can form of left gloves (the first players) and right ones.

    A left glove adds one if S holds more right gloves than left ones; the count of right gloves in
    a random S is hypergeometric.
    """

    def values(coalitions):
        return np.minimum(
            coalitions[:, :left].sum(axis=1), coalitions[:, left:].sum(axis=1)
        ).astype(float)

    d = left + right
    sides = [_glove_delta(left, right)] * left + [_glove_delta(right, left)] * right
    return Oracle(FunctionGame(values, d), np.array(sides).T)


def _glove_delta(own, other):
    d = own + other
    ways = [
        sum(comb(own - 1, size - b) * comb(other, b) for b in range(size + 1) if b > size - b)
        for size in range(d)
    ]
    return [way / comb(d - 1, size) for size, way in enumerate(ways)]


ORACLES = {
    "additive": additive([2.0, -1.0, 0.5, 0.0, 3.0]),
    "unanimity": unanimity(6, (1, 3, 4)),
    "voting": voting(7, 4),
    "dictator": unanimity(4, (2,)),
    "gloves": gloves(2, 4),
    "moebius": moebius(
        6, {(0,): 1.0, (1, 2): -2.0, (0, 3, 4): 0.5, (1, 2, 3, 4): 4.0, (0, 1, 2, 3, 4, 5): -1.0}
    ),
    "one player": additive([-2.5]),
    "two players": moebius(2, {(0,): 1.0, (0, 1): 3.0}),
}


def linear_model(weights):
    """f(rows) = rows · weights, on arrays."""
    weights = np.asarray(weights, dtype=float)
    return lambda rows: np.asarray(rows, dtype=float) @ weights


def product_model(rows):
    """x₀·x₁ + |x₂| − x₃: four columns, a product, a kink."""
    rows = np.asarray(rows, dtype=float)
    return rows[:, 0] * rows[:, 1] + np.abs(rows[:, 2]) - rows[:, 3]


def three_outputs(rows):
    """(n, 3): three different functions of four columns."""
    rows = np.asarray(rows, dtype=float)
    return np.stack(
        [product_model(rows), rows[:, 0] - rows[:, 1] ** 2, rows[:, 2] * rows[:, 3]], axis=1
    )


def normal_rows(n, d=4, seed=0):
    """(n, d) standard normal numbers."""
    return np.random.default_rng(seed).normal(size=(n, d))
