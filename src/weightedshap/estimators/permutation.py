"""Algorithm 2: walk through random orders of the features until the stopping rule is content."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import gcd
from typing import Any, Self

import numpy as np

from weightedshap import coalitions
from weightedshap._checks import (
    FloatArray,
    IntArray,
    Seed,
    as_generator,
    as_outputs,
    look_up,
    positive_integer,
)
from weightedshap.contributions import Chains, Contributions
from weightedshap.estimators import stopping
from weightedshap.estimators.exact import enumerate_game
from weightedshap.estimators.noise import REPEATS, fingerprint, keep_partial, noise, with_noise
from weightedshap.estimators.stopping import Progress, Rule, as_rule
from weightedshap.games.user import CheckedGame, checked

BATCH_BYTES = 2**25  # masks in one call of the game
MOST_STEPS = 2**20  # draws of Δ that are held before they are added up


def permutation(
    game: Any,
    *,
    stop: Any = None,
    evaluations: int | None = None,
    rng: Seed = None,
    chains: int = 10,
    orders: str = "cyclic",
) -> Contributions:
    """Estimate every Δ_j(x_i) by walking through random orders of the features (Algorithm 2).

    1. Evaluate ∅, [d], every single feature and every complement: Δ_1 and Δ_d are exact.
    2. For each chain draw random orders of all features.
    3. Walk along them; the step that adds x_i to j − 1 features is one draw of Δ_j(x_i).
    4. Ask the stopping rule; go on with 2 until it gives a reason.

    Parameters
    ----------
    stop : a rule of `weightedshap.estimators.stopping`; by default the standard error of φ at 1 %
        of its range, or max(20,000, 20·d²) evaluations
    evaluations : a hard budget, joined to `stop` (or alone if `stop` is None)
    chains : independent chains, compared by Gelman–Rubin and for the standard errors
    orders : "cyclic" walks all d cyclic shifts of each drawn order, so that all cells get as many
        draws; "independent" each drawn order once; "per_feature" a fresh order of the others for
        every feature, at twice the evaluations

    Notes
    -----
    Algorithm 2 as printed is `estimators.algorithm_2`: "per_feature" orders and Gelman–Rubin on
    every Δ_j(x_i). The authors' program is `estimators.authors`: one order for all features, and
    Gelman–Rubin on each feature's draws pooled over sizes. If the game raises, the error carries
    what was sampled before as ``error.contributions``.

    Six more evaluations, where the budget has room, tell whether the game repeats itself. If not,
    the spread of the chains holds its noise; only Δ_1 and Δ_d, which are evaluated once, get wider
    errors.
    """
    game = checked(game)
    rng = as_generator(rng)
    d = game.d
    one = look_up("kind of orders", orders, ORDERS)(game.d)
    rule = _rule(stop, evaluations, d, one)
    if d <= 3:  # sizes 0, 1, d−1 and d are all there is
        return enumerate_game(game)
    draws = fingerprint(rng)
    started = time.monotonic()
    before = game.evaluations
    ends = Ends.of(game)  # step 1
    # (2, d[, k]) Δ_1 and Δ_d.
    exact = np.stack([ends.single - ends.empty, ends.full - ends.without])
    state = Chains.empty(rule.chains or positive_integer("chains", chains), d, ends.out)
    drawn: list[tuple[IntArray, FloatArray]] = []

    def progress() -> Progress:
        return Progress(
            _added(state, drawn), exact, game.evaluations - before, time.monotonic() - started
        )

    def table(reason: str) -> Contributions:
        return replace(progress().contributions, stopped=reason, draws=draws)

    while not (reason := rule.reason(progress(), one.cost)):  # step 4
        with keep_partial(table):
            for chain in _calls(game, rule, one, len(state.mean), game.evaluations - before):
                walked, added = one.draw(len(chain), d, rng)  # step 2
                steps = one.walk(game, ends, walked)  # step 3
                cells = (np.repeat(chain, one.walks)[:, None] * d + np.arange(d)) * d + added
                drawn.append((cells.ravel(), steps.reshape(-1, *ends.out)))
        state = _added(state, drawn)
        drawn = []
    with keep_partial(table):
        room = rule.left(game.evaluations - before) >= 2 * REPEATS
        return _after_noise(game, ends, partial(table, reason)) if room else table(reason)


@dataclass(frozen=True)
class Ends:
    """Values of the coalitions of size 0, 1, d − 1 and d: 2d + 2 evaluations that every walk
    shares."""

    empty: FloatArray  # ([k]) value of ∅
    full: FloatArray  # ([k]) value of [d]
    single: FloatArray  # (d[, k]) values of {i}
    without: FloatArray  # (d[, k]) values of [d] without i

    @classmethod
    def of(cls, game: CheckedGame) -> Self:
        d = game.d
        eye = np.eye(game.d, dtype=np.bool_)
        values = game(np.concatenate([coalitions.ends(d), eye, ~eye]))
        return cls(values[0], values[1], values[2 : d + 2], values[d + 2 :])

    @property
    def out(self) -> tuple[int, ...]:  # () or (k,)
        return self.empty.shape

    def along(self, orders: IntArray) -> FloatArray:
        """(m, d) orders → (m, d + 1[, k]) values along them; those of sizes 2 … d − 2 are still to
        be filled in."""
        m, d = orders.shape
        values = np.empty((m, d + 1, *self.out))
        values[:, 0] = self.empty
        values[:, 1] = self.single[orders[:, 0]]
        values[:, d - 1] = self.without[orders[:, -1]]
        values[:, d] = self.full
        return values


@dataclass(frozen=True)
class Orders:
    """What one draw in one chain consists of, at d players."""

    walks: int  # orders
    cost: int  # evaluations
    # N → orders, players that steps add.
    draw: Callable[[int, int, np.random.Generator], tuple[IntArray, IntArray]]
    walk: Callable[[CheckedGame, Ends, IntArray], FloatArray]  # the steps along orders
    # Chains that one call of the game may serve: one that raises loses the call's draws
    at_once: int = MOST_STEPS


def shifted(walks: int, n: int, d: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """n random orders with their first cyclic shifts, `walks` of each in all; each step adds the
    next player."""
    base = rng.permuted(np.tile(np.arange(d), (n, 1)), axis=1)
    orders = base[:, (np.arange(d) + np.arange(walks)[:, None]) % d].reshape(-1, d)
    return orders, orders


def each_apart(n: int, d: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """n times every player, each followed by a random order of the others; every step adds this
    player."""
    players = np.tile(np.arange(d), n)[:, None]
    others = np.arange(d - 1) + (np.arange(d - 1) >= np.arange(d)[:, None])  # (d, d − 1)
    return np.concatenate([players, rng.permuted(np.tile(others, (n, 1)), axis=1)], axis=1), players


def walk(game: CheckedGame, ends: Ends, orders: IntArray) -> FloatArray:
    """(m, d) orders → (m, d[, k]): step t adds ``orders[:, t]`` to the t players before it.

    A game with its own ``along`` walks itself; either way the d − 3 coalitions that the ends do not
    hold are counted.
    """
    if game.along is None:
        return np.diff(_values_along(game, ends, orders), axis=1)
    m, d = orders.shape
    values = ends.along(orders)
    found = as_outputs(
        np.reshape(game.along(orders), (m * (d + 1), *ends.out)), m * (d + 1), "The game"
    )
    values[:, 2 : d - 1] = found.reshape(values.shape)[:, 2 : d - 1]
    game.evaluations += m * (d - 3)
    return np.diff(values, axis=1)


def walk_apart(game: CheckedGame, ends: Ends, orders: IntArray) -> FloatArray:
    """(m, d) orders → (m, d[, k]): step t adds the first player to the t players that follow it."""
    m, d = orders.shape
    # Where the player stands.
    last_and_first = orders[:, (np.arange(d) + [[1], [0]]) % d].reshape(-1, d)
    values = _values_along(game, ends, last_and_first).reshape(m, 2, d + 1, *ends.out)
    return np.asarray(values[:, 1, 1:] - values[:, 0, :-1])


def _values_along(game: CheckedGame, ends: Ends, orders: IntArray) -> FloatArray:
    """(m, d) orders → (m, d + 1[, k]) by evaluations of the first 2 … d − 2 players of each."""
    m, d = orders.shape
    values = ends.along(orders)
    for batch in coalitions.batches(m, max(1, BATCH_BYTES // (d * d))):
        masks = coalitions.prefixes(orders[batch])[:, 2 : d - 1]
        values[batch, 2 : d - 1] = game(masks.reshape(-1, d)).reshape(-1, d - 3, *ends.out)
    return values


ORDERS: Mapping[str, Callable[[int], Orders]] = {
    "cyclic": lambda d: Orders(d, d * (d - 3), partial(shifted, d), walk),
    "independent": lambda d: Orders(1, d - 3, partial(shifted, 1), walk),
    "per_feature": lambda d: Orders(d, 2 * d * (d - 3), each_apart, walk_apart, at_once=1),
}


def _added(state: Chains, drawn: Sequence[tuple[IntArray, FloatArray]]) -> Chains:
    """`state` and what was drawn since: flat indices of cells (n,) and draws (n[, k]), call by
    call."""
    if not drawn:
        return state
    cells, steps = (np.concatenate(arrays) for arrays in zip(*drawn, strict=True))
    return state + Chains.of(cells, steps, len(state.mean), state.mean.shape[1])


def _after_noise(
    game: CheckedGame, ends: Ends, table: Callable[[], Contributions]
) -> Contributions:
    """The table after a look for noise: three coalitions of middle size, each twice."""
    players = np.arange(game.d)
    middle = np.stack([players % 2 == 0, players % 2 == 1, players < game.d // 2])
    variance = noise(game, middle, np.concatenate([[ends.empty, ends.full], game(middle)]))
    found = table()
    if variance is None or found.chains is None:
        return found
    counts = found.chains.counts.copy()
    counts[:, [0, -1]] = 1.0  # the ends are no longer exact: every chain has one draw of them
    return with_noise(replace(found, chains=replace(found.chains, counts=counts)), variance)


def _rule(stop: Any, evaluations: int | None, d: int, one: Orders) -> Rule:
    if evaluations is not None:
        budget = stopping.evaluations(evaluations)
        rule = budget if stop is None else as_rule(stop) | budget
    else:
        enough = stopping.standard_error(0.01) | stopping.evaluations(max(20_000, 20 * d * d))
        rule = enough if stop is None else as_rule(stop)
    # An order by itself misses most cells, so it is not asked for.
    visit = one.cost if one.walks > 1 else 0
    least = 2**d if d <= 3 else 2 * d + 2 + visit
    if rule.left(0) < least:
        need = (
            f"at d = {d} permutation sampling needs at least {least:,} to visit every feature at"
            " every size once"
        )
        raise ValueError(f"A budget of {rule.budget:,} evaluations is too small: {need}.")
    return rule


def _calls(game: CheckedGame, rule: Rule, one: Orders, n: int, spent: int) -> list[IntArray]:
    """The chains that draw before the rule is asked again, each in its turn, as far as the budget
    goes: by calls."""
    together = n * one.walks  # orders of one draw in every chain
    most = max(1, MOST_STEPS // (together * game.d))
    rounds = min(most, rule.every // gcd(rule.every, together) or most)
    chains = np.arange(int(min(rounds * n, rule.left(spent) // one.cost))) % n
    per_call = min(one.at_once, n if game.along is None else len(chains))
    return [chains[call] for call in coalitions.batches(len(chains), per_call)]
