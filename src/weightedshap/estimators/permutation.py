"""Algorithm 2: walk through random orders of the features until the stopping rule is content."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, IntArray, as_generator, as_outputs, one_of, positive_integer
from weightedshap.coalitions import prefixes
from weightedshap.contributions import Chains, Contributions
from weightedshap.estimators.exact import enumerate_game
from weightedshap.estimators.stopping import Progress, Rule, as_rule, standard_error
from weightedshap.estimators.stopping import evaluations as evaluation_budget
from weightedshap.estimators.strata import REPEATS, fingerprint, keep_partial, noise, with_noise
from weightedshap.games.wrappers import CheckedGame, checked

__all__ = ["permutation", "walk", "Ends"]

BATCH_BYTES = 2**25
MOST_STEPS = 2**20  # draws of Δ that are held before they are added up


def permutation(
    game: Any,
    *,
    stop: Any = None,
    evaluations: int | None = None,
    rng: np.random.Generator | int | None = None,
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
    stop : a rule of `weightedshap.estimators.stopping`; by default the standard error of φ at 1 % of
        its range, or max(20,000, 20·d²) evaluations
    evaluations : a hard budget, joined to `stop` (or alone if `stop` is None)
    chains : independent chains, compared by Gelman–Rubin and for the standard errors
    orders : "cyclic" walks all d cyclic shifts of each drawn order, so that every cell gets the same
        number of draws; "independent" walks each drawn order once; "per_feature" draws a fresh order of
        the others for every feature, which doubles the evaluations of a draw.

    Notes
    -----
    Algorithm 2 as printed is `estimators.algorithm_2`: "per_feature" orders and Gelman–Rubin on every
    Δ_j(x_i). The authors' program is `estimators.authors`: one order for all features, and Gelman–Rubin on each
    feature's draws pooled over sizes. If the game raises, the error carries what was sampled before as
    ``error.contributions``.

    Where the budget has room for six more evaluations, they tell whether the game repeats itself. The spread of the
    chains holds the noise of a game that does not; only Δ_1 and Δ_d, which are evaluated once, get wider errors.
    """
    game, rng = checked(game), as_generator(rng)
    one_of("kind of orders", orders, ("cyclic", "independent", "per_feature"))
    rule = _rule(stop, evaluations, game.d)
    if game.d <= 3:  # sizes 0, 1, d−1 and d are all there is
        _refuse_small_budget(rule, game.d, 2**game.d)
        return enumerate_game(game)
    draws = frozenset([fingerprint(rng)])
    started, before = time.monotonic(), game.evaluations
    cost = _cost(orders, game.d)
    _refuse_small_budget(rule, game.d, 2 * game.d + 2 + (0 if orders == "independent" else cost))
    ends = Ends.of(game)
    state = Chains.empty(rule.chains or positive_integer("chains", chains), game.d, ends.out)
    n = len(state.mean)

    def table(reason: str) -> Contributions:
        first, last = ends.contributions
        return Contributions.sampled(state, first, last, game.evaluations - before, reason, draws)

    while True:
        progress = Progress(state, ends.contributions, game.evaluations - before, time.monotonic() - started)
        reason = rule(progress) or _no_room(rule, progress.evaluations, cost)
        drawn = [(np.zeros(0, dtype=np.intp), np.zeros((0, *ends.out)))]
        try:
            if reason:
                return _finished(game, ends, rule, reason, progress.evaluations, table)
            for chain in _calls(game, orders, n, _chains_to_walk(rule, n, game.d, orders, progress.evaluations, cost)):
                drawn += [_draw(game, ends, chain, orders, rng)]
        except Exception as error:
            state = state + _collected(drawn, n, game.d)
            keep_partial(error, table(f"the game raised {type(error).__name__}: {error}"))
            raise
        state = state + _collected(drawn, n, game.d)


@dataclass(frozen=True)
class Ends:
    """Values of the coalitions of size 0, 1, d − 1 and d: 2d + 2 evaluations that every walk shares.

    Attributes
    ----------
    empty, full : ([k]) values of ∅ and [d]
    single, without : (d[, k]) values of {i} and of [d] without i
    """

    empty: FloatArray
    full: FloatArray
    single: FloatArray
    without: FloatArray

    @classmethod
    def of(cls, game: CheckedGame) -> Ends:
        """Evaluate them, in one call."""
        d = game.d
        eye = np.eye(d, dtype=np.bool_)
        values = game(np.concatenate([np.zeros((1, d), bool), np.ones((1, d), bool), eye, ~eye]))
        return cls(values[0], values[1], values[2 : d + 2], values[d + 2 :])

    @property
    def out(self) -> tuple[int, ...]:
        """() or (k,)."""
        return self.empty.shape

    @property
    def contributions(self) -> FloatArray:
        """(2, d[, k]) the exact Δ_1 and Δ_d."""
        return np.stack([self.single - self.empty, self.full - self.without])


def walk(game: CheckedGame, ends: Ends, orders: IntArray) -> FloatArray:
    """(m, d) orders → (m, d[, k]): step t adds ``orders[:, t]`` to the t players before it.

    A game with its own ``along`` walks itself. Either way the d − 3 coalitions of a walk that the ends do not hold
    are counted.
    """
    m, d = orders.shape
    values = np.empty((m, d + 1, *ends.out))
    if game.along is not None:
        values[:] = as_outputs(
            np.reshape(game.along(orders), (m * (d + 1), *ends.out)), m * (d + 1), "The game"
        ).reshape(values.shape)
        game.evaluations += m * (d - 3)
    else:
        per_batch = max(1, BATCH_BYTES // (d * d))
        for start in range(0, m, per_batch):
            part = slice(start, min(start + per_batch, m))
            middle = middle_prefixes(orders[part])
            values[part, 2 : d - 1] = game(middle).reshape(part.stop - start, d - 3, *ends.out)
    values[:, 0], values[:, 1] = ends.empty, ends.single[orders[:, 0]]
    values[:, d - 1], values[:, d] = ends.without[orders[:, -1]], ends.full
    return np.diff(values, axis=1)


def middle_prefixes(orders: IntArray) -> BoolArray:
    """(m·(d − 3), d) the first 2 … d − 2 players of each order."""
    d = orders.shape[1]
    return prefixes(orders)[:, 2 : d - 1].reshape(-1, d)


def walk_apart(game: CheckedGame, ends: Ends, players: IntArray, others: IntArray) -> FloatArray:
    """(m,) players and (m, d − 1) orders of the others → (m, d[, k]): step t adds the player to the first t others."""
    m, d = len(players), game.d
    rows = np.arange(m)
    known = prefixes(np.concatenate([others, players[:, None]], axis=1))  # (m, d + 1, d)
    joined = known[:, 1 : d - 2].copy()  # 1 … d − 3 others, and the player
    joined[rows, :, players] = True
    middle = np.concatenate([known[:, 2 : d - 1], joined], axis=1)
    values = game(middle.reshape(-1, d)).reshape(m, 2 * (d - 3), *ends.out)
    before, after = np.empty((m, d, *ends.out)), np.empty((m, d, *ends.out))
    before[:, 0], before[:, 1], before[:, d - 1] = ends.empty, ends.single[others[:, 0]], ends.without[players]
    before[:, 2 : d - 1] = values[:, : d - 3]
    after[:, 0], after[:, d - 2], after[:, d - 1] = ends.single[players], ends.without[others[:, -1]], ends.full
    after[:, 1 : d - 2] = values[:, d - 3 :]
    return after - before


def _walks(kind: str, d: int) -> int:
    """Orders of one draw in one chain."""
    return 1 if kind == "independent" else d


def _cost(kind: str, d: int) -> int:
    """Evaluations of one draw in one chain."""
    return _walks(kind, d) * (2 if kind == "per_feature" else 1) * (d - 3)


def _draw(
    game: CheckedGame, ends: Ends, chain: IntArray, kind: str, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """One more draw in each of the given chains: the flat indices (n,) of its cells, and the draws (n[, k])."""
    d = game.d
    if kind == "per_feature":
        others = np.stack([np.delete(np.arange(d), i) for i in range(d)])  # (d, d − 1)
        players = np.tile(np.arange(d), len(chain))
        steps = walk_apart(game, ends, players, rng.permuted(np.tile(others, (len(chain), 1)), axis=1))
        added = np.repeat(players[:, None], d, axis=1)
    else:
        base = rng.permuted(np.tile(np.arange(d), (len(chain), 1)), axis=1)
        shifts = (np.arange(d)[None, :] + np.arange(_walks(kind, d))[:, None]) % d  # (walks, d)
        added = base[:, shifts].reshape(-1, d)  # (a·walks, d)
        steps = walk(game, ends, added)
    cells = (np.repeat(chain, _walks(kind, d))[:, None] * d + np.arange(d)) * d + added
    return cells.ravel(), steps.reshape(-1, *ends.out)


def _collected(drawn: list[tuple[IntArray, FloatArray]], n: int, d: int) -> Chains:
    cells, values = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    return Chains.of(cells, values, n, d)


def _finished(
    game: CheckedGame, ends: Ends, rule: Rule, reason: str, spent: int, table: Callable[[str], Contributions]
) -> Contributions:
    """The table, after a look for noise where the budget has room: three coalitions of middle size, each twice."""
    if not _has_room(rule, spent, 2 * REPEATS):
        return table(reason)
    players = np.arange(game.d)
    known = np.stack([players < 0, players >= 0, players % 2 == 0, players % 2 == 1, players < game.d // 2])
    variance = noise(game, [(known, np.concatenate([[ends.empty, ends.full], game(known[2:])]))])
    found = table(reason)
    if variance is None or found.chains is None:
        return found
    counts = found.chains.counts.copy()
    counts[:, [0, -1]] = 1.0  # the ends are no longer exact: every chain has one draw of them
    noisy = with_noise(replace(found, chains=replace(found.chains, counts=counts)), variance)
    return replace(noisy, mean=np.where(noisy.counts > 0, noisy.mean, np.nan))


def _rule(stop: Any, evaluations: int | None, d: int) -> Rule:
    if evaluations is not None:
        budget = evaluation_budget(evaluations)
        return budget if stop is None else as_rule(stop) | budget
    return standard_error(0.01) | evaluation_budget(max(20_000, 20 * d * d)) if stop is None else as_rule(stop)


def _refuse_small_budget(rule: Rule, d: int, least: int) -> None:
    if rule.budget is not None and rule.budget < least:
        raise ValueError(
            f"A budget of {rule.budget:,} evaluations is too small: at d = {d} permutation sampling needs at "
            f"least {least:,} to visit every feature at every size once."
        )


def _chains_to_walk(rule: Rule, n: int, d: int, kind: str, spent: int, cost: int) -> IntArray:
    """The chains that draw before the rule is asked again, each in its turn, as far as the budget goes."""
    together = n * _walks(kind, d)  # orders of one draw in every chain
    most = max(1, MOST_STEPS // (together * d))
    rounds = min(most, rule.every // gcd(rule.every, together)) if rule.every else most
    draws = rounds * n if rule.budget is None else min(rounds * n, (rule.budget - spent) // cost)
    return np.arange(draws) % n


def _calls(game: CheckedGame, kind: str, n: int, chains: IntArray) -> list[IntArray]:
    """`chains` in parts that are walked by one call: a game that raises loses one call's draws."""
    whole = n if game.along is None else len(chains)
    per_call = 1 if kind == "per_feature" else whole
    return [chains[start : start + per_call] for start in range(0, len(chains), per_call)]


def _has_room(rule: Rule, spent: int, cost: int) -> bool:
    return rule.budget is None or rule.budget - spent >= cost


def _no_room(rule: Rule, spent: int, cost: int) -> str | None:
    if _has_room(rule, spent, cost):
        return None
    return f"budget of {rule.budget:,} evaluations used ({spent:,}; one more draw costs {cost:,})"
