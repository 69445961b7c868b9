"""How many evaluations the samplers need, errors beside shapiq's estimators, and coverage of the
intervals.

usage: python benchmarks/samplers.py [needed] [peers] [coverage] [--quick] [--seeds 5]
(all by default)

needed    evaluations that `stratified` needs for the error that plain permutation sampling
(independent orders, Δ_1 and
          Δ_d exact) reaches with 1,400 orders, as a share of the evaluations of these orders
peers     errors at equal budgets beside shapiq, 20, 100 and 300 evaluations for each feature
(`--times`), kept in
          results/peers/samplers.json, so that a second run goes on where the first one stopped.
          Peers run where shapiq 1.8 or later is installed (Python 3.13); without it ours are
          measured, and theirs shown as kept
coverage  share of 95 % t-intervals that hold the truth, for cells of Δ with at least 30 draws and
          for φ_w

Errors are root mean squares over seeds and all cells of Δ, over seeds, features and the paper's 13
weights for φ. The share is read off errors at 1/30, 1/10, 1/5 and 1/3 by lines in log–log scale.
Rows of the fraud network need torch and the paper's data in WEIGHTEDSHAP_DATA. Two processes share
the games; a line tells when one is done. Seconds are CPU time.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import weightedshap as ws
from trees import table
from weightedshap.estimators import exact, permutation, stratified
from weightedshap.games import FunctionGame
from weightedshap.weights import banzhaf, beta, paper

ORDERS = 1_400
REFERENCE = 200
SHARES = (10, 5, 3)
KEPT = Path(__file__).resolve().parents[1] / "results" / "peers" / "samplers.json"
FRESH = 100  # the first seed beside peers: others than those the settings were chosen with


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
    """v(S) = Σ_{T ⊆ S} m_T; a term of order t adds m_T C(j−1, t−1)/C(d−1, t−1) to Δ_j of its
    members."""
    delta = np.zeros((d, d))
    for members, m in terms.items():
        t = len(members)
        delta[:, list(members)] += m * np.array(
            [[comb(j, t - 1) / comb(d - 1, t - 1)] for j in range(d)]
        )

    def values(coalitions: Any) -> Any:
        columns = np.asfortranarray(coalitions)
        return sum(m * np.logical_and.reduce([columns[:, i] for i in T]) for T, m in terms.items())

    return Task(name, FunctionGame(values, d), delta)


def random_terms(
    d: int, counts: tuple[int, ...], scales: tuple[float, ...]
) -> dict[tuple[int, ...], float]:
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
    """`game` with all its values looked up in a table, so that the benchmark does not wait for the
    model."""
    from weightedshap.estimators.exact import all_values
    from weightedshap.games.user import check_game

    table = all_values(check_game(game))
    return FunctionGame(lambda coalitions: table[coalitions @ (1 << np.arange(game.d))], game.d)


def forest(d: int = 40) -> Task:
    """The marginal game of a random forest, 20 background rows; values and reference read off its
    leaves."""
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
    """Σ of tanh of sums over blocks of ten; Δ of a block, with the others as dummies, is a
    hypergeometric mixture."""
    slopes = np.random.default_rng(4).normal(size=(d // size, size))
    delta = np.zeros((d, d))
    for b, slope in enumerate(slopes):
        own = exact(
            FunctionGame(lambda coalitions, slope=slope: np.tanh(coalitions @ slope), size)
        ).mean
        for j, k in product(range(d), range(size)):
            share = comb(size - 1, k) * comb(d - size, j - k) / comb(d - 1, j) if j >= k else 0.0
            delta[j, b * size : (b + 1) * size] += share * own[k]

    def values(coalitions: Any) -> Any:
        parts = coalitions.reshape(len(coalitions), -1, size)
        return np.tanh(np.einsum("mbi,bi->mb", parts, slopes)).sum(axis=1)

    return Task("blocks of tanh", FunctionGame(values, d), delta)


def fraud(quick: bool) -> Iterator[Task]:
    """Rows of the paper's fraud network (d = 90); the reference is 100 times the walks, and its
    error is printed."""
    from weightedshap_paper.datasets import prepare
    from weightedshap_paper.models import boosting

    data = prepare("fraud", np.random.default_rng(0))
    X = np.unique(data.X_train, axis=0)
    fitted = ws.games.NeuralSurrogate().fit(boosting(data, seed=0).predict, X, 0)
    for row in range(1 if quick else 3):
        game = fitted.at(data.X_test[row : row + 1])
        reference = permutation(
            game, evaluations=(10 if quick else REFERENCE) * cost(game.d), rng=1_000
        )
        error = np.sqrt(np.mean(reference.standard_error**2))
        yield Task(f"fraud network, row {row} (± {error:.1e})", hidden(game), reference.mean)


def third_order() -> Task:
    return moebius("third order", 30, random_terms(30, (30, 30, 60), (0.3, 0.3, 1.0)))


def random_moebius() -> Task:
    return moebius(
        "random Möbius", 90, random_terms(90, (90, 150, 100, 50, 30), (1, 0.7, 0.5, 0.5, 0.5))
    )


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
    found = [
        task.errors(estimate(task.game, evaluations=budget, rng=seed).mean) for seed in range(seeds)
    ]
    return np.sqrt(np.mean(np.square(found), axis=0))


def needed(task: Task, seeds: int) -> list[list[str]]:
    """A line of the first table; ratios of errors to those of the walks are measured until both are
    below one."""

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
    shown = [
        " / ".join(f"{r:.2f}" for r in ratios[part]) if part in ratios else ""
        for part in (30, *SHARES)
    ]
    shares = [share_needed({part: r[which] for part, r in ratios.items()}) for which in (0, 1)]
    return [
        [task.name, task.d, f"{cost(task.d):,}", f"{goal[0]:.2e} / {goal[1]:.2e}", *shown, *shares]
    ]


def share_needed(ratios: dict[int, float]) -> str:
    """The share of evaluations at which the ratio of errors is one, by lines through the points
    measured."""
    parts = sorted(ratios, reverse=True)
    logs = np.maximum.accumulate(np.log([ratios[part] for part in parts])[::-1])[::-1]
    if logs[0] <= 0:
        return f"< 1/{parts[0]}"
    if logs[-1] > 0:
        return f"> 1/{parts[-1]}"
    return f"1/{np.exp(np.interp(0, logs[::-1], np.log(parts)[::-1])):.1f}"


NEEDED = [
    "game",
    "d",
    "1,400 orders",
    "error Δ / φ",
    "at 1/30",
    "at 1/10",
    "at 1/5",
    "at 1/3",
    "Δ needs",
    "φ needs",
]


def boosted(d: int) -> Task:
    """The marginal game of LightGBM, 20 background rows; values and reference read off its
    leaves."""
    import lightgbm

    X, y = rows(d)
    model = lightgbm.LGBMRegressor(
        n_estimators=200, num_leaves=31, verbose=-1, n_jobs=1, random_state=0
    ).fit(X, y)
    game = ws.games.TreeModel(removal="interventional").fit(model, X[:20], 0).at(X[1000:1001])
    return Task("LightGBM, marginal", hidden(game), game.contributions().mean)


def enumerated(name: str, d: int, values: Callable[[Any], Any]) -> Task:
    table = exact_values(FunctionGame(values, d))
    return Task(name, table, exact(table).mean)


def exponential(d: int = 18) -> Task:
    slopes = np.random.default_rng(0).normal(size=d)
    return enumerated("exponential", d, lambda coalitions: np.exp(coalitions @ slopes / 2))


def one_sided(d: int = 20) -> Task:
    """Interactions among small coalitions alone."""
    slopes = np.random.default_rng(1).normal(size=d)
    return enumerated(
        "one-sided", d, lambda c: np.where(c.sum(axis=1) < d // 2, np.sin(3 * (c @ slopes)), 0.0)
    )


def maximum(d: int = 18) -> Task:
    """The largest of the members' worths and the logarithm of a sum of others."""
    worth, more = np.random.default_rng(11).gamma(2.0, size=(2, d))
    return enumerated("maximum", d, lambda c: (c * worth).max(axis=1) + np.log1p(c @ more))


def deep() -> Task:
    return moebius(
        "orders one to six", 40, random_terms(40, (40, 20, 20, 10, 10, 10), (1, 1, 1, 1, 1, 1))
    )


TABLE: dict[str, Callable[[], Task]] = {  # on which the settings were chosen, with other seeds
    "LightGBM, d = 30": lambda: boosted(30),
    "network, d = 16": lambda: network(16),
    "third order, d = 30": third_order,
    "forest, d = 30": lambda: forest(30),
    "blocks of tanh, d = 60": blocks,
    "random Möbius, d = 90": random_moebius,
}
UNSEEN: dict[str, Callable[[], Task]] = {
    "LightGBM, d = 90": lambda: boosted(90),
    "maximum, d = 18": maximum,
    "orders one to six, d = 40": deep,
}
SIDED: dict[str, Callable[[], Task]] = {
    "exponential, d = 18": exponential,
    "one-sided, d = 20": one_sided,
}
SETS = {"the six games": TABLE, "games not used for the settings": UNSEEN, "one-sided games": SIDED}

WEIGHTS: dict[str, Callable[[int], Any]] = {
    "Shapley": lambda d: np.full(d, 1 / d),
    "Banzhaf": lambda d: banzhaf(d).vectors[0],
    "Beta(16, 1)": lambda d: beta(d, 16, 1).vectors[0],
    "Beta(1, 4)": lambda d: beta(d, 1, 4).vectors[0],
}
OURS = {"stratified": stratified, "permutation": permutation}


def shapiq_methods() -> dict[tuple[str, str], Callable[..., Any]]:
    """(method, weights) → an estimator; none where shapiq is missing or older than 1.8. It has no
    Beta weights."""
    try:
        import shapiq.approximator as A
    except ImportError:
        return {}
    if tuple(map(int, version("shapiq").split(".")[:2])) < (1, 8):
        return {}
    paired = {"pairing_trick": True}
    return {
        ("OddSHAP", "Shapley"): A.OddSHAP,
        ("LeverageSHAP", "Shapley"): A.LeverageSHAP,
        ("KernelSHAP, paired", "Shapley"): lambda d, **options: A.KernelSHAP(
            d, **paired, **options
        ),
        ("RegressionMSR", "Shapley"): lambda d, **options: A.RegressionMSR(d, "SV", **options),
        ("RegressionMSR", "Banzhaf"): lambda d, **options: A.RegressionMSR(d, "BV", **options),
        ("ProxySHAP", "Banzhaf"): lambda d, **options: A.ProxySHAP(
            d, max_order=1, index="BV", **options
        ),
        ("SHAPIQ", "Banzhaf"): lambda d, **options: A.SHAPIQ(d, max_order=1, index="BV", **options),
    }


def peers(times: list[int], seeds: list[int], only: str) -> None:
    """Measure what is not kept yet, and show the ratios of errors."""
    kept = (
        json.loads(KEPT.read_text(encoding="utf-8"))
        if KEPT.exists()
        else {"versions": {}, "errors": {}, "seconds": {}}
    )
    methods = shapiq_methods()
    for per_feature, (name, make) in product(
        times, [pair for games in SETS.values() for pair in games.items()]
    ):
        if only in name and _missing(kept, name, per_feature, methods, seeds):
            task = make()
            for seed in seeds:
                _measure(kept, task, name, per_feature, methods, seed)
                kept["versions"] = _versions() if methods else kept["versions"] or _versions()
                KEPT.parent.mkdir(exist_ok=True)
                KEPT.write_text(
                    json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n",
                    encoding="utf-8",
                )
            print(f"{name}, {per_feature} d done", file=sys.stderr, flush=True)
    _show(kept, seeds)


def _key(name: str, per_feature: int, method: str, weights: str) -> str:
    return f"{name} | {per_feature} d | {weights} | {method}"


def _missing(kept: Any, name: str, per_feature: int, methods: Any, seeds: list[int]) -> bool:
    wanted = [("stratified", weights) for weights in WEIGHTS] + list(methods)
    keys = [_key(name, per_feature, method, weights) for method, weights in wanted]
    return any(str(seed) not in kept["errors"].get(key, {}) for key in keys for seed in seeds)


def _measure(kept: Any, task: Task, name: str, per_feature: int, methods: Any, seed: int) -> None:
    """Errors of one seed: root mean squares over features, and CPU seconds."""
    budget = per_feature * task.d

    def keep(method: str, weights: str, phi: Any, seconds: float) -> None:
        error = float(np.sqrt(np.mean((phi - WEIGHTS[weights](task.d) @ task.delta) ** 2)))
        key = _key(name, per_feature, method, weights)
        kept["errors"].setdefault(key, {})[str(seed)] = float(f"{error:.5g}")
        kept["seconds"].setdefault(key, {})[str(seed)] = round(seconds, 2)

    for method, estimate in OURS.items():
        # It visits every cell at least once.
        affordable = method != "permutation" or per_feature >= task.d
        if affordable and str(seed) not in kept["errors"].get(
            _key(name, per_feature, method, "Beta(1, 4)"), {}
        ):
            started = time.process_time()
            delta = estimate(task.game, evaluations=budget, rng=seed).mean
            seconds = time.process_time() - started
            for weights, vector in WEIGHTS.items():
                keep(method, weights, vector(task.d) @ delta, seconds)
    for (method, weights), make in methods.items():
        if str(seed) not in kept["errors"].get(_key(name, per_feature, method, weights), {}):
            started = time.process_time()
            values = make(task.d, random_state=seed).approximate(
                budget, lambda c: task.game(np.atleast_2d(c).astype(bool))
            )
            keep(method, weights, values.get_n_order_values(1), time.process_time() - started)


def _show(kept: Any, seeds: list[int]) -> None:
    """Ratios of the errors of `stratified` to those of others, game by game, and their geometric
    means."""
    print(
        "Versions:",
        ", ".join(f"{name} {number}" for name, number in sorted(kept["versions"].items())),
    )

    def error(name: str, per_feature: int, method: str, weights: str) -> float:
        found = kept["errors"].get(_key(name, per_feature, method, weights), {})
        squares = [found[str(seed)] ** 2 for seed in seeds if str(seed) in found]
        return float(np.sqrt(np.mean(squares))) if len(squares) == len(seeds) else np.nan

    parts = {tuple(key.split(" | ")[1:]) for key in kept["errors"]}
    for times, weights in sorted(
        {(times, weights) for times, weights, _ in parts}, key=lambda p: (p[1], int(p[0][:-2]))
    ):
        per_feature = int(times[:-2])
        others = sorted(
            {method for t, w, method in parts if (t, w) == (times, weights)} - {"stratified"}
        )
        lines = []
        for title, games in SETS.items():
            ratios = [
                [
                    error(name, per_feature, "stratified", weights)
                    / error(name, per_feature, other, weights)
                    for other in others
                ]
                for name in games
            ]
            lines += [
                [name, *(_cell(r) for r in line)] for name, line in zip(games, ratios, strict=True)
            ]
            means = [
                np.exp(np.mean(np.log(r))) if r.size else np.nan
                for r in (c[~np.isnan(c)] for c in np.array(ratios).T)
            ]
            lines.append([f"**{title}, geometric mean**", *(_cell(m) for m in means)])
        print(f"\n{weights}, {per_feature} d evaluations: error of `stratified` over that of")
        table(["game", *others], lines)


def _cell(ratio: float) -> str:
    return "" if np.isnan(ratio) else f"{ratio:.2f}"


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("shapiq", "numpy", "scipy", "scikit-learn", "lightgbm"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def coverage(kind: str, d: int, budget: int, repetitions: int) -> list[list[str]]:
    """A line of the third table; every second repetition is of another game."""
    from scipy.stats import t

    games = [saturating(d, kind, seed) for seed in range(2)]
    truths = [exact(game).mean for game in games]
    w = paper(d).vectors[1:-1]
    cells = []
    phi = []
    enough = []
    for seed in range(repetitions):
        found = stratified(games[seed % 2], evaluations=budget, rng=seed)
        gap = found.mean - truths[seed % 2]
        some = np.isfinite(found.counts) & (found.counts >= 30)
        reach = t.ppf(0.975, np.where(some, found.counts, 30) - 1) * found.standard_error
        cells.append((np.abs(gap) <= reach)[some])
        enough.append(some.mean())
        errors = np.stack([found.standard_error_of(one) for one in w])
        phi.append(
            (np.abs(w @ gap) <= t.ppf(0.975, len(found.chains.mean) - 1) * errors).mean(axis=1)
        )
    by_weight = np.mean(phi, axis=0)
    shown = [
        f"{100 * share:.1f} %"
        for share in (
            np.concatenate(cells).mean(),
            by_weight.mean(),
            by_weight.min(),
            by_weight.max(),
        )
    ]
    return [
        [
            kind,
            d,
            f"{budget:,}",
            f"{budget / 2**d:.3f}",
            repetitions,
            f"{np.mean(enough):.2f}",
            *shown,
        ]
    ]


COVERAGE = [
    "game",
    "d",
    "budget",
    "of 2^d",
    "runs",
    "cells ≥ 30",
    "cover Δ",
    "cover φ",
    "least w",
    "most w",
]
COVERED = [
    ("logistic", 12, 1_200),
    ("exponential", 14, 1_600),
    ("logistic", 16, 1_800),
    ("exponential", 18, 2_000),
]


def saturating(d: int, kind: str, seed: int) -> FunctionGame:
    """A logistic game, or a skew one with interactions of every order."""
    slopes = np.random.default_rng(seed).normal(size=d)
    if kind == "logistic":
        return FunctionGame(lambda coalitions: 1 / (1 + np.exp(0.5 - coalitions @ slopes)), d)
    return FunctionGame(
        lambda coalitions: np.exp(coalitions @ slopes / 2) + coalitions[:, :3].all(axis=1), d
    )


def job(part: str, which: Any, quick: bool, seeds: int) -> list[list[str]]:
    """All lines of one game for one table, on one thread."""
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if part == "coverage":
            return coverage(*which, 50 if quick else 500)
        return [line for task in GAMES[which](quick) for line in needed(task, seeds)]


PARTS = {
    "needed": (NEEDED, list(GAMES)),
    "coverage": (COVERAGE, COVERED),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts",
        nargs="*",
        choices=[[], "peers", *PARTS],
        help="tables to make; all of them by default",
    )
    parser.add_argument(
        "--quick", action="store_true", help="smaller games, two seeds, no fraud rows"
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--times",
        type=int,
        nargs="+",
        default=[20, 100, 300],
        help="beside peers, evaluations by feature",
    )
    parser.add_argument("--only", default="", help="beside peers, games whose names hold this")
    arguments = parser.parse_args()
    seeds = 2 if arguments.quick else arguments.seeds
    started = time.monotonic()
    if "peers" in arguments.parts or not arguments.parts:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peers(
                [20] if arguments.quick else arguments.times,
                list(range(FRESH, FRESH + seeds)),
                arguments.only,
            )
    with ProcessPoolExecutor(2) as pool:
        for part in [part for part in arguments.parts or PARTS if part != "peers"]:
            header, games = PARTS[part]
            kept = [
                game
                for game in games
                if not (arguments.quick and game in ("fraud", "random Möbius", "blocks"))
            ]
            waiting = {pool.submit(job, part, game, arguments.quick, seeds): game for game in kept}
            for future in as_completed(waiting):
                note = f"{part}: {waiting[future]} done after {time.monotonic() - started:.0f} s"
                print(note, file=sys.stderr, flush=True)
            table(header, [line for future in waiting for line in future.result()])


if __name__ == "__main__":
    main()
