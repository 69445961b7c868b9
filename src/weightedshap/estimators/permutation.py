"""Algorithm 2: evaluate a game along random orders of the features until a stopping rule is met.

Builds on the rules of `weightedshap.estimators.stopping`. `auto` picks `permutation` for games that
are cheap to evaluate; `walks` falls back on it.
"""

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
    check_positive_integer,
    look_up,
    stream_fingerprint,
)
from weightedshap.contributions import Chains, Contributions
from weightedshap.estimators import stopping
from weightedshap.estimators.exact import enumerate_game
from weightedshap.estimators.noise import (
    REPEATS,
    add_noise_variance,
    noise_variance,
)
from weightedshap.estimators.stopping import Progress, Rule, as_rule, attach_partial_result
from weightedshap.games.user import CheckedGame, check_game

# Bytes of the coalitions in one call of the game.
BATCH_BYTES = 2**25
# Draws of Δ that are collected before they are averaged.
MOST_STEPS = 2**20

# Flat indices of cells (n,), and the draws (n[, k]) in these cells.
Draws = tuple[IntArray, FloatArray]


def permutation(
    game: Any,
    *,
    stop: Any = None,
    evaluations: int | None = None,
    rng: Seed = None,
    chains: int = 10,
    orders: str = "cyclic",
) -> Contributions:
    """Estimate every Δ_j(x_i) from random orders of the features (Algorithm 2).

    1. Evaluate ∅, [d], every single feature and every complement: Δ_1 and Δ_d are exact.
    2. For each independent chain draw random orders of all features.
    3. Add the features in these orders; the step that adds x_i to j − 1 features is one draw of
       Δ_j(x_i).
    4. Check the stopping rule; go on with 2 until it returns a reason to stop.

    Parameters
    ----------
    stop : a rule of `weightedshap.estimators.stopping`; by default the standard error of φ at 1 %
        of its range, or max(20,000, 20·d²) evaluations
    evaluations : a hard budget, joined to `stop` (or alone if `stop` is None)
    chains : number of independent chains of draws, compared by Gelman–Rubin and for the standard
        errors
    orders : "cyclic" uses all d cyclic shifts of each drawn order, so that every Δ_j(x_i) gets as
        many draws; "independent" uses each drawn order once; "per_feature" draws a fresh order of
        the others for every feature, at twice the evaluations

    Notes
    -----
    Algorithm 2 as printed is `estimators.algorithm_2`: "per_feature" orders and Gelman–Rubin on
    every Δ_j(x_i). The authors' program is `estimators.authors`: one order for all features, and
    Gelman–Rubin on each feature's draws pooled over sizes. If the game raises an error, the
    contributions sampled before are attached to it as ``error.contributions``.

    Six more evaluations, if the budget allows them, show whether the game gives the same values
    again. If not, the spread of the chains includes its noise; only Δ_1 and Δ_d, which are
    evaluated once, get wider errors.
    """
    game = check_game(game)
    rng = as_generator(rng)
    fingerprint = stream_fingerprint(rng)
    d = game.d
    sampler = look_up("kind of orders", orders, ORDERS)(d)
    rule = _build_rule(stop, evaluations, d, sampler)
    if d <= 3:
        # There are no sizes other than 0, 1, d − 1 and d.
        return enumerate_game(game)
    started = time.monotonic()
    before = game.evaluations

    # Step 1.
    endpoints = EndpointValues.from_game(game)
    first_delta = endpoints.single - endpoints.empty
    last_delta = endpoints.full - endpoints.without
    exact = np.stack([first_delta, last_delta])  # (2, d[, k])

    n_chains = rule.chains or check_positive_integer("chains", chains)
    state = Chains.empty(n_chains, d, endpoints.out)
    draws: list[Draws] = []

    def progress() -> Progress:
        """Return the progress of sampling, including all draws so far, for the stopping rule."""
        return Progress(
            chains=_extend(state, draws),
            ends=exact,
            evaluations=game.evaluations - before,
            seconds=time.monotonic() - started,
        )

    def table(reason: str) -> Contributions:
        """Return the contributions from all draws so far, with the reason for stopping."""
        return replace(progress().contributions, stopped=reason, draws=fingerprint)

    # Step 4 checks the rule.
    while not (reason := rule.reason(progress(), sampler.cost)):
        with attach_partial_result(table):
            spent = game.evaluations - before
            for chain in _plan_calls(game, rule, sampler, n_chains, spent):
                # Step 2.
                walked, added = sampler.draw(len(chain), d, rng)
                # Step 3.
                steps = sampler.walk(game, endpoints, walked)

                # The flat index of [chain, j − 1, i] for each step.
                chain_of_order = np.repeat(chain, sampler.n_orders)[:, None]
                cells = (chain_of_order * d + np.arange(d)) * d + added
                draws.append((cells.ravel(), steps.reshape(-1, *endpoints.out)))
        state = _extend(state, draws)
        draws = []

    with attach_partial_result(table):
        has_room = rule.remaining(game.evaluations - before) >= 2 * REPEATS
        variance = _noise_of_middle(game, endpoints) if has_room else None
        contributions = table(reason)
        if variance is None:
            return contributions
        return add_noise_variance(_with_sampled_endpoints(contributions), variance)


@dataclass(frozen=True)
class EndpointValues:
    """The values of all coalitions of sizes 0, 1, d − 1 and d, which are evaluated only once.

    They take 2d + 2 evaluations.
    """

    empty: FloatArray  # ([k]) value of ∅
    full: FloatArray  # ([k]) value of [d]
    single: FloatArray  # (d[, k]) values of {i}
    without: FloatArray  # (d[, k]) values of [d] without i

    @classmethod
    def from_game(cls, game: CheckedGame) -> Self:
        """Evaluate the game on all coalitions of sizes 0, 1, d − 1 and d."""
        d = game.d
        eye = np.eye(d, dtype=np.bool_)
        values = game(np.concatenate([coalitions.empty_and_full(d), eye, ~eye]))
        return cls(
            empty=values[0], full=values[1], single=values[2 : d + 2], without=values[d + 2 :]
        )

    @property
    def out(self) -> tuple[int, ...]:
        """The shape of one value of the game: () for a number, (k,) for k outputs."""
        return self.empty.shape

    def along(self, orders: IntArray) -> FloatArray:
        """Return values (m, d + 1[, k]) along orders, with only the sizes 0, 1, d − 1, d filled in.

        The values of sizes 0, 1, d − 1 and d are set; those of sizes 2 … d − 2 are not.
        """
        m, d = orders.shape
        values = np.empty((m, d + 1, *self.out))
        values[:, 0] = self.empty
        values[:, 1] = self.single[orders[:, 0]]
        values[:, d - 1] = self.without[orders[:, -1]]
        values[:, d] = self.full
        return values


@dataclass(frozen=True)
class OrderSampler:
    """A way to draw orders of d players and to compute marginal contributions along them.

    All orders of one draw belong to the same independent chain.
    """

    # Orders of one draw.
    n_orders: int
    # Evaluations of one draw.
    cost: int
    # (n draws, d, rng) → orders (m, d), and the players that their steps add, (m, d) or (m, 1).
    draw: Callable[[int, int, np.random.Generator], tuple[IntArray, IntArray]]
    # (game, endpoints, orders (m, d)) → the steps (m, d[, k]) along the orders.
    walk: Callable[[CheckedGame, EndpointValues, IntArray], FloatArray]
    # Most draws in one call of the game: if the call raises an error, all of them are lost.
    draws_per_call: int = MOST_STEPS


def cyclic_shifts(
    n_shifts: int, n: int, d: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw n random orders of d players, and return the first `n_shifts` cyclic shifts of each.

    The shifts (n · n_shifts, d) begin with the order itself. The second array returned contains the
    player that each step adds; this is the next of the order, so it equals the first array.
    """
    drawn = rng.permuted(np.tile(np.arange(d), (n, 1)), axis=1)
    positions = (np.arange(d) + np.arange(n_shifts)[:, None]) % d  # (n_shifts, d)
    orders = drawn[:, positions].reshape(-1, d)
    return orders, orders


def orders_per_feature(n: int, d: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw for every player n random orders of the other players, with the player put in front.

    Returns the orders (n · d, d), and the players in front (n · d, 1), whose Δ they sample.
    """
    players = np.tile(np.arange(d), n)[:, None]
    others = np.arange(d - 1) + (np.arange(d - 1) >= np.arange(d)[:, None])  # (d, d − 1)
    shuffled = rng.permuted(np.tile(others, (n, 1)), axis=1)
    return np.concatenate([players, shuffled], axis=1), players


def walk(game: CheckedGame, endpoints: EndpointValues, orders: IntArray) -> FloatArray:
    """Return the marginal contributions v(S ∪ {i}) − v(S) along orders (m, d), as (m, d[, k]).

    Entry t is for adding ``orders[:, t]`` to the t players before it. If the game has its own
    ``along``, this is used; either way the d − 3 coalitions of an order that are not in `endpoints`
    are counted as evaluations.
    """
    if game.along is None:
        return np.diff(_values_along(game, endpoints, orders), axis=1)
    m, d = orders.shape
    values = endpoints.along(orders)
    answer = np.reshape(game.along(orders), (m * (d + 1), *endpoints.out))
    own_values = as_outputs(answer, m * (d + 1), "The game").reshape(values.shape)
    values[:, 2 : d - 1] = own_values[:, 2 : d - 1]
    game.evaluations += m * (d - 3)
    return np.diff(values, axis=1)


def walk_per_feature(game: CheckedGame, endpoints: EndpointValues, orders: IntArray) -> FloatArray:
    """Return d marginal contributions of the first player of each order, (m, d[, k]).

    Entry t is for adding this player to the t players after it.
    """
    m, d = orders.shape
    # Each order twice: with the first player moved to the end, and as it is.
    positions = (np.arange(d) + [[1], [0]]) % d  # (2, d)
    last_and_first = orders[:, positions].reshape(-1, d)
    values = _values_along(game, endpoints, last_and_first)
    values = values.reshape(m, 2, d + 1, *endpoints.out)
    return np.asarray(values[:, 1, 1:] - values[:, 0, :-1])


def _values_along(game: CheckedGame, endpoints: EndpointValues, orders: IntArray) -> FloatArray:
    """Return the values (m, d + 1[, k]) along orders; evaluate only the sizes 2 … d − 2."""
    m, d = orders.shape
    values = endpoints.along(orders)
    for batch in coalitions.slices_of(m, max(1, BATCH_BYTES // (d * d))):
        inner = coalitions.prefixes(orders[batch])[:, 2 : d - 1]
        inner_values = game(inner.reshape(-1, d))
        values[batch, 2 : d - 1] = inner_values.reshape(-1, d - 3, *endpoints.out)
    return values


ORDERS: Mapping[str, Callable[[int], OrderSampler]] = {
    "cyclic": lambda d: OrderSampler(d, d * (d - 3), partial(cyclic_shifts, d), walk),
    "independent": lambda d: OrderSampler(1, d - 3, partial(cyclic_shifts, 1), walk),
    "per_feature": lambda d: OrderSampler(
        d, 2 * d * (d - 3), orders_per_feature, walk_per_feature, draws_per_call=1
    ),
}


def _extend(state: Chains, draws: Sequence[Draws]) -> Chains:
    """Add `draws` to the independent chains `state`; return the extended chains."""
    if not draws:
        return state
    cells, steps = (np.concatenate(arrays) for arrays in zip(*draws, strict=True))
    n_chains, d = state.mean.shape[:2]
    return state + Chains.from_draws(cells, steps, n_chains, d)


def _noise_of_middle(game: CheckedGame, endpoints: EndpointValues) -> FloatArray | None:
    """Evaluate three coalitions of middle size twice; return the noise variance ([k]) or None."""
    players = np.arange(game.d)
    middle = np.stack([players % 2 == 0, players % 2 == 1, players < game.d // 2])
    # The values at both ends are used for the spread of the values only.
    ends = [endpoints.empty, endpoints.full]
    return noise_variance(game, middle, np.concatenate([ends, game(middle)]))


def _with_sampled_endpoints(table: Contributions) -> Contributions:
    """Return the contributions with Δ_1 and Δ_d as one draw in every chain, instead of exact."""
    if table.chains is None:
        return table
    counts = table.chains.counts.copy()
    counts[:, [0, -1]] = 1.0
    return replace(table, chains=replace(table.chains, counts=counts))


def _build_rule(stop: Any, evaluations: int | None, d: int, sampler: OrderSampler) -> Rule:
    """Combine the options `stop` and `evaluations` into a rule; check that its budget suffices."""
    if evaluations is not None:
        budget = stopping.evaluations(evaluations)
        rule = budget if stop is None else as_rule(stop) | budget
    elif stop is None:
        most = max(20_000, 20 * d * d)
        rule = stopping.standard_error(0.01) | stopping.evaluations(most)
    else:
        rule = as_rule(stop)

    # A single order misses most cells, so a budget for one is not required.
    one_visit = sampler.cost if sampler.n_orders > 1 else 0
    least = 2**d if d <= 3 else 2 * d + 2 + one_visit
    if rule.remaining(0) < least:
        raise ValueError(
            f"A budget of {rule.budget:,} evaluations is too small: at d = {d} permutation"
            f" sampling needs at least {least:,} to visit every feature at every size once."
        )
    return rule


def _plan_calls(
    game: CheckedGame, rule: Rule, sampler: OrderSampler, n_chains: int, spent: int
) -> list[IntArray]:
    """Plan the next calls of the game: return, for each call, the chain index of every draw.

    The independent chains take turns until the budget is used up; `spent` evaluations of it are
    used already.
    """
    orders_per_round = n_chains * sampler.n_orders
    most_rounds = max(1, MOST_STEPS // (orders_per_round * game.d))
    # The rule is checked at multiples of `every` orders; for 0 the budget alone decides.
    rounds_per_look = rule.every // gcd(rule.every, orders_per_round) or most_rounds
    n_rounds = min(most_rounds, rounds_per_look)
    n_affordable = rule.remaining(spent) // sampler.cost
    n_draws = int(min(n_rounds * n_chains, n_affordable))
    chains = np.arange(n_draws) % n_chains

    # A game with its own `along` is called once for all of them.
    draws_at_once = n_chains if game.along is None else len(chains)
    size = min(sampler.draws_per_call, draws_at_once)
    return [chains[call] for call in coalitions.slices_of(len(chains), size)]
