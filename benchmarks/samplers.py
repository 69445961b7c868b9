"""How many evaluations each sampler needs, and Shapley values beside shapiq's estimators.

    python benchmarks/samplers.py [--quick] [--shapley | --fraud]

First table: evaluations that `stratified` and `proxy` need for the error that plain permutation sampling (Δ_1 and
Δ_d exact) reaches with 1,400 orders, as a share of the evaluations of these orders. The error is the root mean
square over cells for Δ, over features and the paper's 13 weights for φ; the needed budget is read off errors at
four budgets by a line in log–log scale. Second table (`--shapley`): error of the Shapley value at equal budgets.
Seeds are fixed; times are CPU seconds of one thread for a run at a tenth of the evaluations, the game included.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import comb
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import weightedshap as ws
from weightedshap.estimators import exact, permutation, proxy, stratified
from weightedshap.games import FunctionGame
from weightedshap.weights import paper

ORDERS = 1_400
SHARES = (1 / 30, 1 / 10, 1 / 5, 1 / 3)


@dataclass
class Task:
    """A game as a plain function of coalitions, with its exact Δ."""

    name: str
    game: Any
    delta: Any

    @property
    def d(self) -> int:
        return int(self.game.d)

    def errors(self, delta: Any) -> Any:
        """Root mean squared errors of Δ and of φ under the 13 weights."""
        gap = delta - self.delta
        return np.sqrt([np.mean(gap**2), np.mean((paper(self.d).vectors @ gap) ** 2)])


def hidden(game: Any) -> Any:
    """`game` without its closed form."""
    return FunctionGame(lambda coalitions: game(coalitions), game.d)


def moebius(name: str, d: int, terms: dict[tuple[int, ...], float]) -> Task:
    """v(S) = Σ_{T ⊆ S} m_T; a term of order t adds m_T C(j−1, t−1)/C(d−1, t−1) to Δ_j of its members."""
    delta = np.zeros((d, d))
    for members, m in terms.items():
        t = len(members)
        delta[:, list(members)] += m * np.array([[comb(j, t - 1) / comb(d - 1, t - 1)] for j in range(d)])

    def values(coalitions: Any) -> Any:
        columns = np.asfortranarray(coalitions)
        return sum(m * np.logical_and.reduce([columns[:, i] for i in T]) for T, m in terms.items())

    return Task(name, FunctionGame(values, d), delta)


def random_terms(d: int, counts: tuple[int, ...], scales: tuple[float, ...]) -> dict[tuple[int, ...], float]:
    rng = np.random.default_rng(0)
    return {
        tuple(sorted(rng.choice(d, order, replace=False).tolist())): scale * rng.normal()
        for order, (n, scale) in enumerate(zip(counts, scales, strict=True), start=1)
        for _ in range(n)
    }


def rows(d: int, n: int = 2_000) -> tuple[Any, Any]:
    """Normal rows, rounded to float32 as trees see them, and a target with products and a kink."""
    X = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32).astype(float)
    products = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + np.maximum(X[:, 4], 0) * X[:, 5]
    return X, products + X[:, :12] @ np.linspace(1, 0.2, 12)


def network(d: int = 14) -> Task:
    """The marginal game of a scikit-learn network, 20 background rows; reference by enumeration."""
    from sklearn.neural_network import MLPRegressor

    X, y = rows(d)
    model = MLPRegressor(hidden_layer_sizes=(64, 64), max_iter=80, random_state=0).fit(X, y)
    game = ws.games.Marginal().fit(model.predict, X[:20], 0).at(X[1000:1001])
    values = exact_values(game)
    return Task("network, marginal", values, exact(values).mean)


def exact_values(game: Any) -> FunctionGame:
    """`game` with all its values looked up in a table, so that the benchmark does not wait for the model."""
    from weightedshap.estimators.exact import all_values
    from weightedshap.games.base import checked

    table = all_values(checked(game))
    return FunctionGame(lambda coalitions: table[coalitions @ (1 << np.arange(game.d))], game.d)


def forest(d: int = 40) -> Task:
    """The marginal game of a random forest, 20 background rows; values and reference read off its leaves."""
    from sklearn.ensemble import RandomForestRegressor

    X, y = rows(d)
    model = RandomForestRegressor(50, max_depth=10, max_features=0.4, random_state=0).fit(X, y)
    game = ws.games.TreeModel(removal="interventional").fit(model, X[:20], 0).at(X[1000:1001])
    return Task("random forest, marginal", hidden(game), game.contributions().mean)


def sigmoid(d: int = 20) -> Task:
    """A logistic model of the mask: smooth, saturating, all orders."""
    slopes = 0.8 * np.random.default_rng(3).normal(size=d)
    game = FunctionGame(lambda coalitions: 1 / (1 + np.exp(0.5 - coalitions @ slopes)), d)
    return Task("logistic", game, exact(game).mean)


def blocks(d: int = 60, size: int = 10) -> Task:
    """Σ of tanh of sums over blocks of ten; Δ of a block, with the others as dummies, is a hypergeometric mixture."""
    slopes = np.random.default_rng(4).normal(size=(d // size, size))
    delta = np.zeros((d, d))
    for b, slope in enumerate(slopes):
        own = exact(FunctionGame(lambda coalitions, slope=slope: np.tanh(coalitions @ slope), size)).mean
        for j, k in product(range(d), range(size)):
            share = comb(size - 1, k) * comb(d - size, j - k) / comb(d - 1, j) if j >= k else 0.0
            delta[j, b * size : (b + 1) * size] += share * own[k]

    def values(coalitions: Any) -> Any:
        parts = coalitions.reshape(len(coalitions), -1, size)
        return np.tanh(np.einsum("mbi,bi->mb", parts, slopes)).sum(axis=1)

    return Task("blocks of tanh", FunctionGame(values, d), delta)


def fraud(quick: bool) -> Iterator[Task]:
    """Rows of the paper's fraud network (d = 90); the reference is 200 times the walks, and its error is printed.

    Needs torch, and the paper's data in WEIGHTEDSHAP_DATA.
    """
    from weightedshap.paper.datasets import prepare
    from weightedshap.paper.models import boosting

    data = prepare("fraud", np.random.default_rng(0))
    X = np.unique(data.X_train, axis=0)
    recipe = ws.games.NeuralSurrogate()
    fitted = recipe.fit(boosting(data, seed=0).predict, X, 0)
    for row in range(1 if quick else 3):
        game = hidden(fitted.at(data.X_test[row : row + 1]))
        budget = (10 if quick else 200) * ORDERS * (game.d - 3)
        reference = permutation(game, evaluations=budget, rng=1_000)
        error = np.sqrt(np.mean(reference.standard_error**2))
        yield Task(f"fraud network, row {row} (reference ± {error:.1e})", game, reference.mean)


def tasks(quick: bool) -> Iterator[Task]:
    yield network(12 if quick else 14)
    yield sigmoid(14 if quick else 20)
    yield moebius("third order", 30, random_terms(30, (30, 30, 60), (0.3, 0.3, 1.0)))
    yield forest(20 if quick else 40)
    if not quick:
        yield blocks()
        yield moebius("random Möbius", 90, random_terms(90, (90, 150, 100, 50, 30), (1, 0.7, 0.5, 0.5, 0.5)))


def mean_errors(task: Task, estimate: Callable[..., Any], budget: int, repeats: int) -> Any:
    found = [task.errors(estimate(task.game, evaluations=budget, rng=seed).mean) for seed in range(repeats)]
    return np.sqrt(np.mean(np.square(found), axis=0))


def needed(shares: Any, errors: Any, goal: float) -> str:
    """The share of evaluations at which the error is `goal`, by a line through the two nearest points."""
    if errors[0] <= goal:
        return f"< {shares[0]:.3f}"
    if errors[-1] > goal:
        return f"> {shares[-1]:.2f}"
    logs = np.interp(-np.log(goal), -np.log(errors), np.log(shares))
    return f"{np.exp(logs):.3f}"


def compare(task: Task, repeats: int) -> list[str]:
    """Lines of the first table: one for each sampler."""
    cost = ORDERS * (task.d - 3) + 2 * task.d + 2
    goal = mean_errors(task, lambda game, **kw: permutation(game, orders="independent", **kw), cost, repeats)
    lines = []
    for estimate in (stratified, proxy):
        shares = [share for share in SHARES if cost * share >= 8 * task.d and cost * share < 2**task.d]
        shares = shares or [2**task.d / cost]
        errors = np.array([mean_errors(task, estimate, int(np.ceil(cost * share)), repeats) for share in shares])
        errors = np.maximum.accumulate(errors[::-1], axis=0)[::-1]
        started = time.process_time()
        estimate(task.game, evaluations=max(8 * task.d, cost // 10), rng=0)
        seconds = time.process_time() - started
        delta, phi = (needed(shares, errors[:, which], goal[which]) for which in (0, 1))
        lines.append(
            f"| {task.name} | {task.d} | {cost:,} | {goal[0]:.3g} / {goal[1]:.3g} "
            f"| {estimate.__name__} | {delta} | {phi} | {seconds:.1f} |"
        )
    return lines


def shapiq_methods(d: int, seed: int) -> dict[str, Any]:
    import shapiq.approximator as A

    return {
        "KernelSHAP": lambda: A.KernelSHAP(d, random_state=seed),
        "KernelSHAP, paired": lambda: A.KernelSHAP(d, pairing_trick=True, random_state=seed),
        "unbiased KernelSHAP": lambda: A.UnbiasedKernelSHAP(d, random_state=seed),
        "permutation (shapiq)": lambda: A.PermutationSamplingSV(d, random_state=seed),
        "SVARM": lambda: A.SVARM(d, random_state=seed),
        "stratified SVARM": lambda: A.SVARMIQ(d, max_order=1, index="SV", random_state=seed),
        "ProxySPEX": lambda: A.ProxySPEX(n=d, max_order=1, index="SV", random_state=seed),
        "stratified sampling": lambda: A.StratifiedSamplingSV(d, random_state=seed),
    }


def shapley_errors(task: Task, budget: int, repeats: int) -> dict[str, float]:
    """Root mean squared error of the Shapley value over features and seeds, by method."""
    truth, found = task.delta.mean(axis=0), {}
    for seed in range(repeats):
        estimates: dict[str, Any] = {
            e.__name__: e(task.game, evaluations=budget, rng=seed).mean.mean(axis=0) for e in (stratified, proxy)
        }
        for name, make in shapiq_methods(task.d, seed).items():
            try:
                values = make().approximate(budget, lambda coalitions: task.game(np.atleast_2d(coalitions)))
                estimates[name] = values.get_n_order_values(1)
            except Exception:
                estimates[name] = np.full(task.d, np.nan)
        for name, value in estimates.items():
            found.setdefault(name, []).append(np.mean((value - truth) ** 2))
    return {name: float(np.sqrt(np.mean(errors))) for name, errors in found.items()}


def shapley_table(quick: bool, repeats: int) -> None:
    names = ["stratified", "proxy", *shapiq_methods(4, 0)]
    print(f"| game | d | budget | {' | '.join(names)} |")
    print("|---|---|---|" + "---|" * len(names))
    for task in tasks(quick):
        for times in (20, 100) if quick else (20, 100, 300):
            budget = min(times * task.d, 20_000)
            errors = shapley_errors(task, budget, repeats)
            best = np.nanmin(list(errors.values()))
            cells = [f"**{errors[n]:.2e}**" if errors[n] == best else f"{errors[n]:.2e}" for n in names]
            print(f"| {task.name} | {task.d} | {budget:,} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller games, fewer repetitions")
    parser.add_argument("--shapley", action="store_true", help="the table beside shapiq instead of the first one")
    parser.add_argument("--fraud", action="store_true", help="rows of the fraud network instead of the six games")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if arguments.shapley:
            shapley_table(arguments.quick, 2 if arguments.quick else 3)
            return
        print(
            f"| game | d | evaluations of {ORDERS:,} orders | error Δ / φ | sampler | share for Δ | share for φ | s |"
        )
        print("|---|---|---|---|---|---|---|---|")
        for task in fraud(arguments.quick) if arguments.fraud else tasks(arguments.quick):
            for line in compare(task, 1 if arguments.quick else 2):
                print(line, flush=True)


if __name__ == "__main__":
    main()
