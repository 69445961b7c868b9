"""How many evaluations the samplers need, Shapley values beside shapiq's estimators, and coverage of the intervals.

usage: python benchmarks/samplers.py [needed] [shapley] [coverage] [proxy] [--quick] [--seeds 5]      (all by default)

needed    evaluations that `stratified` needs for the error that plain permutation sampling (independent orders, Δ_1 and
          Δ_d exact) reaches with 1,400 orders, as a share of the evaluations of these orders
shapley   error of the Shapley value at equal budgets, beside shapiq
coverage  share of 95 % t-intervals that hold the truth, for cells of Δ with at least 30 draws and for φ_w
proxy     error and seconds of `proxy` over those of `stratified`

Errors are root mean squares over seeds and all cells of Δ, over seeds, features and the paper's 13 weights for φ. The
share is read off errors at 1/30, 1/10, 1/5 and 1/3 by lines in log–log scale. Rows of the fraud network need torch and
the paper's data in WEIGHTEDSHAP_DATA. Two processes share the games; a line tells when one is done. Seconds are
CPU time.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from math import comb
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import weightedshap as ws
from trees import table
from weightedshap.estimators import exact, permutation, proxy, stratified
from weightedshap.games import FunctionGame
from weightedshap.weights import paper

ORDERS, REFERENCE = 1_400, 200
SHARES = (10, 5, 3)
LEVEL = 1.05
SVARM_UP_TO = 5_000


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
    from weightedshap.games.wrappers import checked

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
    """Rows of the paper's fraud network (d = 90); the reference is 100 times the walks, and its error is printed."""
    from weightedshap_paper.datasets import prepare
    from weightedshap_paper.models import boosting

    data = prepare("fraud", np.random.default_rng(0))
    X = np.unique(data.X_train, axis=0)
    fitted = ws.games.NeuralSurrogate().fit(boosting(data, seed=0).predict, X, 0)
    for row in range(1 if quick else 3):
        game = fitted.at(data.X_test[row : row + 1])
        reference = permutation(game, evaluations=(10 if quick else REFERENCE) * cost(game.d), rng=1_000)
        error = np.sqrt(np.mean(reference.standard_error**2))
        yield Task(f"fraud network, row {row} (± {error:.1e})", hidden(game), reference.mean)


def third_order() -> Task:
    return moebius("third order", 30, random_terms(30, (30, 30, 60), (0.3, 0.3, 1.0)))


def random_moebius() -> Task:
    return moebius("random Möbius", 90, random_terms(90, (90, 150, 100, 50, 30), (1, 0.7, 0.5, 0.5, 0.5)))


GAMES: dict[str, Callable[[bool], Iterator[Task]]] = {
    "fraud": fraud,
    "random Möbius": lambda quick: iter([random_moebius()]),
    "blocks": lambda quick: iter([blocks()]),
    "forest": lambda quick: iter([forest(20 if quick else 40)]),
    "third order": lambda quick: iter([third_order()]),
    "logistic": lambda quick: iter([sigmoid(14 if quick else 20)]),
    "network": lambda quick: iter([network(12 if quick else 14)]),
}


def cost(d: int) -> int:
    """Evaluations of 1,400 orders."""
    return ORDERS * (d - 3) + 2 * d + 2


def mean_errors(task: Task, estimate: Callable[..., Any], budget: int, seeds: int) -> Any:
    found = [task.errors(estimate(task.game, evaluations=budget, rng=seed).mean) for seed in range(seeds)]
    return np.sqrt(np.mean(np.square(found), axis=0))


def needed(task: Task, seeds: int) -> list[list[str]]:
    """A line of the first table; ratios of errors to those of the walks are measured until both are below one."""

    def walks(game: Any, **options: Any) -> Any:
        return permutation(game, orders="independent", **options)

    goal = mean_errors(task, walks, cost(task.d), seeds)
    ratios: dict[int, Any] = {}
    for part in SHARES:
        ratios[part] = mean_errors(task, stratified, -(-cost(task.d) // part), seeds) / goal
        if (ratios[part] <= 1).all():
            break
    if (ratios[SHARES[0]] <= 1).any() and cost(task.d) // 30 > 8 * task.d:
        ratios[30] = mean_errors(task, stratified, -(-cost(task.d) // 30), seeds) / goal
    shown = [" / ".join(f"{r:.2f}" for r in ratios[part]) if part in ratios else "" for part in (30, *SHARES)]
    shares = [share_needed({part: r[which] for part, r in ratios.items()}) for which in (0, 1)]
    return [[task.name, task.d, f"{cost(task.d):,}", f"{goal[0]:.2e} / {goal[1]:.2e}", *shown, *shares]]


def share_needed(ratios: dict[int, float]) -> str:
    """The share of evaluations at which the ratio of errors is one, by lines through the points measured."""
    parts = sorted(ratios, reverse=True)
    logs = np.maximum.accumulate(np.log([ratios[part] for part in parts])[::-1])[::-1]
    if logs[0] <= 0:
        return f"< 1/{parts[0]}"
    if logs[-1] > 0:
        return f"> 1/{parts[-1]}"
    return f"1/{np.exp(np.interp(0, logs[::-1], np.log(parts)[::-1])):.1f}"


NEEDED = ["game", "d", "1,400 orders", "error Δ / φ", "at 1/30", "at 1/10", "at 1/5", "at 1/3", "Δ needs", "φ needs"]


def shapiq_methods(d: int, budget: int, seed: int) -> dict[str, Any]:
    """Of 1.4.1. Its SVARM is the stratified one; its 2-additive regression equals paired KernelSHAP to five digits."""
    import shapiq.approximator as A

    methods = {
        "KernelSHAP": A.KernelSHAP(d, random_state=seed),
        "KernelSHAP, paired": A.KernelSHAP(d, pairing_trick=True, random_state=seed),
        "permutation": A.PermutationSamplingSV(d, random_state=seed),
    }
    return methods | ({"SVARM": A.SVARM(d, random_state=seed)} if budget <= SVARM_UP_TO else {})


def shapley(task: Task, seeds: int) -> list[list[str]]:
    """Lines of the second table, one for each budget."""
    lines, truth = [], task.delta.mean(axis=0)
    budgets = sorted(
        {min(times * task.d, 20_000) for times in ((20, 100, 300, 1_000) if task.d <= 20 else (20, 100, 300))}
    )
    for budget in [b for b in budgets if b < 2**task.d]:
        found: dict[str, list[float]] = {}
        for seed in range(seeds):
            estimates = {"stratified": stratified(task.game, evaluations=budget, rng=seed).mean.mean(axis=0)}
            for name, method in shapiq_methods(task.d, budget, seed).items():
                values = method.approximate(budget, lambda coalitions: task.game(np.atleast_2d(coalitions)))
                estimates[name] = values.get_n_order_values(1)
            for name, value in estimates.items():
                found.setdefault(name, []).append(float(np.mean((value - truth) ** 2)))
        errors = {name: float(np.sqrt(np.mean(squares))) for name, squares in found.items()}
        ours = errors["stratified"] / min(error for name, error in errors.items() if name != "stratified")
        cells = [f"{errors[name]:.2e}" if name in errors else "" for name in SHAPLEY[3:-2]]
        lines.append([task.name, task.d, f"{budget:,}", *cells, f"{ours:.2f}", "yes" if ours <= LEVEL else "no"])
    return lines


SHAPLEY = [
    "game",
    "d",
    "budget",
    "stratified",
    "KernelSHAP",
    "KernelSHAP, paired",
    "permutation",
]
SHAPLEY += ["SVARM", "ours / best", "level"]


def against_proxy(task: Task, seeds: int) -> list[list[str]]:
    """Lines of the last table: error of Δ and φ, and CPU seconds, of `proxy` over `stratified`."""
    lines = []
    for budget in (20 * task.d, 100 * task.d, 300 * task.d):
        errors, seconds = [], []
        for estimate in (stratified, proxy):
            started = time.process_time()
            errors.append(mean_errors(task, estimate, budget, seeds))
            seconds.append((time.process_time() - started) / seeds)
        ratio = [f"{r:.2f}" for r in errors[1] / errors[0]]
        lines.append([task.name, task.d, f"{budget:,}", *ratio, f"{seconds[0]:.2f}", f"{seconds[1]:.2f}"])
    return lines


PROXY = ["game", "d", "budget", "error Δ", "error φ", "s stratified", "s proxy"]


def coverage(kind: str, d: int, budget: int, repetitions: int) -> list[list[str]]:
    """A line of the third table; every second repetition is of another game."""
    from scipy.stats import t

    games = [saturating(d, kind, seed) for seed in range(2)]
    truths = [exact(game).mean for game in games]
    w, cells, phi, enough = paper(d).vectors[1:-1], [], [], []
    for seed in range(repetitions):
        found = stratified(games[seed % 2], evaluations=budget, rng=seed)
        gap = found.mean - truths[seed % 2]
        some = np.isfinite(found.counts) & (found.counts >= 30)
        reach = t.ppf(0.975, np.where(some, found.counts, 30) - 1) * found.standard_error
        cells.append((np.abs(gap) <= reach)[some])
        enough.append(some.mean())
        errors = np.stack([found.standard_error_of(one) for one in w])
        phi.append((np.abs(w @ gap) <= t.ppf(0.975, len(found.chains.mean) - 1) * errors).mean(axis=1))
    by_weight = np.mean(phi, axis=0)
    shown = [
        f"{100 * share:.1f} %"
        for share in (np.concatenate(cells).mean(), by_weight.mean(), by_weight.min(), by_weight.max())
    ]
    return [[kind, d, f"{budget:,}", f"{budget / 2**d:.3f}", repetitions, f"{np.mean(enough):.2f}", *shown]]


COVERAGE = ["game", "d", "budget", "of 2^d", "runs", "cells ≥ 30", "cover Δ", "cover φ", "least w", "most w"]
COVERED = [("logistic", 12, 1_200), ("exponential", 14, 1_600), ("logistic", 16, 1_800), ("exponential", 18, 2_000)]


def saturating(d: int, kind: str, seed: int) -> FunctionGame:
    """A logistic game, or a skew one with interactions of every order."""
    slopes = np.random.default_rng(seed).normal(size=d)
    if kind == "logistic":
        return FunctionGame(lambda coalitions: 1 / (1 + np.exp(0.5 - coalitions @ slopes)), d)
    return FunctionGame(lambda coalitions: np.exp(coalitions @ slopes / 2) + coalitions[:, :3].all(axis=1), d)


def job(part: str, which: Any, quick: bool, seeds: int) -> list[list[str]]:
    """All lines of one game for one table, on one thread."""
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if part == "coverage":
            return coverage(*which, 50 if quick else 500)
        lines = {"needed": needed, "shapley": shapley, "proxy": against_proxy}[part]
        tasks = GAMES[which](quick)
        if part != "needed" and which == "fraud":
            tasks = iter([next(tasks)])
        return [line for task in tasks for line in lines(task, seeds)]


PARTS = {
    "needed": (NEEDED, list(GAMES)),
    "shapley": (SHAPLEY, [name for name in GAMES if name != "random Möbius"]),
    "coverage": (COVERAGE, COVERED),
    "proxy": (PROXY, ["third order", "logistic"]),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="tables to make; all of them by default")
    parser.add_argument("--quick", action="store_true", help="smaller games, two seeds, no fraud rows")
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    seeds, started = 2 if arguments.quick else arguments.seeds, time.monotonic()
    with ProcessPoolExecutor(2) as pool:
        for part in arguments.parts or PARTS:
            header, games = PARTS[part]
            kept = [game for game in games if not (arguments.quick and game in ("fraud", "random Möbius", "blocks"))]
            repeats = 2 if part == "proxy" else seeds
            waiting = {pool.submit(job, part, game, arguments.quick, repeats): game for game in kept}
            for future in as_completed(waiting):
                note = f"{part}: {waiting[future]} done after {time.monotonic() - started:.0f} s"
                print(note, file=sys.stderr, flush=True)
            table(header, [line for future in waiting for line in future.result()])


if __name__ == "__main__":
    main()
