"""Twelve settings whose true game is known, v(S) = E[f(X) | X_S = x_S], and the paper's twelve
tables, whose is not.

    python benchmarks/truths.py [number …] [--rows 10] [--orders 20]

tells what the truth along random orders costs at each setting, in CPU seconds for 100 rows, and how
far two independent estimates of it are apart. `make` and `make_real` give the same `Case`, so that
rankings can be judged on both.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from zlib import crc32

import lightgbm as lgb
import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from conditionals import FREEDOM, Distribution, Trees, TrueGame, Truth, Value, mean
from trees import table
from weightedshap._checks import BoolArray, FloatArray, IntArray, check_choice
from weightedshap.trees.readers import read_model
from weightedshap_paper.datasets import CLASSIFICATION, REGRESSION, Prepared, prepare
from weightedshap_paper.models import boosting, linear
from weightedshap_paper.tabular import choose_test_rows

N = 4_000
ROWS = 100  # background rows, rows to explain
PAIRS = 2**10
PAIRS_OF_NONE = 2**16  # of antithetic draws, for a coalition and for ∅, which all rows share
BLOCK = 5  # features that are close in "blocks"
KINDS = "boosting", "linear", "network"  # models of the tables


@dataclass(frozen=True)
class Setting:
    """d features of a distribution and a kind of model. Recipes are chosen on one half, and
    reported on the other.

    "mixture" has three Gaussians. Copulas are those of a t distribution, with normal or lognormal
    margins. A correlation is that of any two latents; "blocks" of five have 0.8 inside and 0.1
    across.
    """

    name: str
    distribution: str
    d: int
    correlation: float | str
    model: str
    half: str  # "pick" or "report"


def _setting(distribution: str, d: int, correlation: float | str, model: str, half: str) -> Setting:
    return Setting(
        f"{model}, {distribution} {correlation}, d = {d}", distribution, d, correlation, model, half
    )


SETTINGS: tuple[Setting, ...] = (
    _setting("gaussian", 20, 0.25, "boosting", "pick"),
    _setting("gaussian", 20, "blocks", "boosting", "report"),
    _setting("gaussian", 20, 0.6, "boosting", "pick"),
    _setting("normal copula", 40, "blocks", "boosting", "report"),
    _setting("lognormal copula", 30, 0.25, "boosted classifier", "pick"),
    _setting("mixture", 15, 0.9, "boosted classifier", "report"),
    _setting("gaussian", 10, 0.9, "network", "report"),
    _setting("mixture", 20, "blocks", "network", "pick"),
    _setting("normal copula", 25, 0.9, "network", "pick"),
    _setting("lognormal copula", 15, 0.6, "network", "report"),
    _setting("mixture", 12, 0.6, "linear", "pick"),
    _setting("mixture", 30, 0.25, "logistic", "report"),
)
REAL: tuple[str, ...] = REGRESSION + CLASSIFICATION
PICK = "airfoil", "whitewine", "fraud", "phoneme", "wind", "cpu"


def real_half(name: str) -> str:
    """The half of a table, "pick" or "report": two regressions and four classifications in each."""
    check_choice("dataset", name, REAL)
    return "pick" if name in PICK else "report"


@dataclass(frozen=True)
class Case:
    """A model to explain, and the true game at a row (d,), or None where nobody knows it.

    `predict_name` is the method that predicts; of "predict_proba" the column of class 1 is meant.
    """

    model: Any
    background: FloatArray  # (n, d)
    rows: FloatArray  # (100, d)
    predict_name: str
    truth: Callable[[FloatArray], TrueGame | None]

    def predict(self, rows: FloatArray) -> FloatArray:
        """(n,) f of rows (n, d)."""
        return predictions(self.model, self.predict_name, rows)


def predictions(model: Any, name: str, rows: FloatArray) -> FloatArray:
    """(n,) what the method `name` predicts; of probabilities those of class 1."""
    predicted = np.asarray(getattr(model, name)(rows), dtype=np.float64)
    return predicted[:, 1] if name == "predict_proba" else predicted


def method_of(model: Any) -> str:
    """The method that predicts values, or probabilities where there are classes."""
    return "predict_proba" if hasattr(model, "predict_proba") else "predict"


def make(setting: Setting, seed: int) -> Case:
    """The case of a setting: data, model and truth drawn by the seed."""
    rng = np.random.default_rng([seed, crc32(setting.name.encode())])
    distribution = distribution_of(setting, rng)
    X = distribution.rows(N + ROWS, rng)
    y = target(X, setting, rng)
    model = MODELS[setting.model](setting, seed).fit(X[:N], y[:N])
    truth = truth_of(model, distribution, X[:N], rng)
    return Case(model, X[:N], X[N:], method_of(model), truth)


def distribution_of(setting: Setting, rng: np.random.Generator) -> Distribution:
    """The distribution of the features; the Gaussians of a mixture differ in place, width and sign
    of correlations."""
    d = setting.d
    R = correlations(setting)
    if setting.distribution == "mixture":
        signs = np.where(np.arange(d) % 2, -1.0, 1.0)
        covariances = np.stack([R, R / 2, R * np.outer(signs, signs)])
        return Distribution(
            np.array([0.5, 0.3, 0.2]), 0.8 * rng.standard_normal((3, d)), covariances
        )
    alone = np.ones(1), np.zeros((1, d)), R[None]
    margins, _, copula = setting.distribution.partition(" ")
    return Distribution(*alone, FREEDOM, margins) if copula else Distribution(*alone)


def correlations(setting: Setting) -> FloatArray:
    """(d, d)."""
    if setting.correlation == "blocks":
        block = np.arange(setting.d) // BLOCK
        R = np.where(block[:, None] == block, 0.8, 0.1)
    else:
        R = np.full((setting.d, setting.d), float(setting.correlation))
    np.fill_diagonal(R, 1.0)
    return R


def target(X: FloatArray, setting: Setting, rng: np.random.Generator) -> FloatArray:
    """(n,) a product, a kink and five slopes, or ten slopes for linear models, and noise; classes
    cut at the median."""
    if setting.model in ("linear", "logistic"):
        slopes = np.linspace(1, 0.3, 10) * np.where(np.arange(10) % 3 == 2, -1, 1)
        signal = X[:, :10] @ slopes
    else:
        used = [0, 5, 10, 15, 1, 6, 2, 11] if setting.correlation == "blocks" else list(range(8))
        a, b, c, *others = X[:, used].T
        signal = 1.5 * a * b + 2 * np.abs(c) + 0.7 * np.sum(others, axis=0)
    y = signal + rng.standard_normal(len(X))
    return (
        (y > np.median(y)).astype(float)
        if setting.model in ("boosted classifier", "logistic")
        else y / y.std()
    )


def _boosted(kind: Any, setting: Setting, seed: int) -> Any:
    """150 trees, as many again for many features."""
    fixed = {
        "n_jobs": 1,
        "deterministic": True,
        "force_row_wise": True,
        "verbose": -1,
        "random_state": seed,
    }
    return kind(
        n_estimators=150 if setting.d <= 20 else 300, num_leaves=15, learning_rate=0.05, **fixed
    )


def _network(kind: Any, seed: int) -> Any:
    return kind(
        hidden_layer_sizes=(64,), learning_rate_init=3e-3, early_stopping=True, random_state=seed
    )


MODELS: dict[str, Callable[[Setting, int], Any]] = {
    "boosting": partial(_boosted, lgb.LGBMRegressor),
    "boosted classifier": partial(_boosted, lgb.LGBMClassifier),
    "network": lambda _, seed: _network(MLPRegressor, seed),
    "linear": lambda *_: LinearRegression(),
    "logistic": lambda *_: LogisticRegression(),
}


def truth_of(
    model: Any, distribution: Distribution, background: FloatArray, rng: np.random.Generator
) -> Truth:
    """The true games of a model; a linear one of plain features needs no draws."""
    value = value_of(model, distribution, background)
    d = distribution.d
    exact = isinstance(model, LinearRegression) and distribution.margins == "plain"
    noise = distribution.no_noise() if exact else distribution.noise(PAIRS_OF_NONE, rng)
    of_none = mean(distribution, value, np.zeros(d), np.zeros(d, dtype=bool), noise)
    predict = partial(predictions, model, method_of(model))
    return Truth(
        distribution, value, predict, of_none, int(rng.integers(2**31)), 0 if exact else PAIRS
    )


def value_of(model: Any, distribution: Distribution, background: FloatArray) -> Value:
    """How the model predicts draws of latents: trees by bits of words, others by their own
    method."""
    name = method_of(model)
    if isinstance(model, lgb.LGBMModel):
        ensemble = read_model(model, background).ensembles[0]
        return Trees.of(ensemble, distribution.latents, name == "predict_proba")

    def value(z: FloatArray, known: BoolArray, draws: FloatArray) -> FloatArray:
        return predictions(model, name, distribution.features(draws.T))

    return value


def make_real(name: str, model_kind: str, seed: int) -> Case:
    """The case of one of the paper's tables, prepared as the paper does: 100 test rows, and no
    truth."""
    check_choice("dataset", name, REAL)
    check_choice("model", model_kind, KINDS)
    rng = np.random.default_rng([seed, crc32(name.encode())])
    data = prepare(name, rng)
    background = np.unique(data.X_train, axis=0)
    background = background[np.sort(rng.permutation(len(background))[:N])]
    model = fitted(data, model_kind, seed)
    return Case(
        model,
        background,
        data.X_test[choose_test_rows(data, ROWS)],
        method_of(model),
        lambda row: None,
    )


def fitted(data: Prepared, kind: str, seed: int) -> Any:
    """Boosted trees and linear models as in the paper's experiments, or a small network."""
    if kind == "boosting":
        return boosting(data, seed=seed)
    if kind == "linear":
        return linear(data)
    network = _network(MLPRegressor if data.task == "regression" else MLPClassifier, seed)
    return make_pipeline(StandardScaler(), network).fit(data.X_train, data.y_train)


def measured(setting: Setting, rows: int, orders: int) -> list[str]:
    """A line of the table: the truth of some rows along random orders, twice, with independent
    noise."""
    case = make(setting, 0)
    rng = np.random.default_rng(0)
    drawn = np.stack([rng.permutation(setting.d) for _ in range(orders)])
    again = replace(case.truth, seed=case.truth.seed + 1)
    case.truth(case.rows[-1]).along(drawn[:1])  # compiles
    started = time.process_time()
    games = [case.truth(row) for row in case.rows[:rows]]
    first = np.stack([areas(game, drawn) for game in games])  # (rows, orders)
    seconds = time.process_time() - started
    gap = (first - np.stack([areas(again(row), drawn) for row in case.rows[:rows]])) / np.sqrt(2)
    error, of_differences = (np.sqrt(np.mean(g**2)) for g in (gap, (gap[:, 1:] - gap[:, :-1])))
    coalitions = np.mean([len(game.kept) for game in games])
    cost = [
        f"{coalitions:.0f}",
        f"{1e3 * seconds / rows / coalitions:.2f}",
        f"{ROWS / rows * seconds:.0f}",
    ]
    errors = [error, of_differences, np.sqrt(np.mean(gap.mean(axis=0) ** 2) * rows / ROWS)]
    return [setting.name, setting.half, *cost, f"{first.mean():.3f}", *(f"{e:.4f}" for e in errors)]


def areas(game: TrueGame, orders: IntArray) -> FloatArray:
    """(m,) Σ_{j=1..d} |f(x) − v(first j)| of each order."""
    values = game.along(orders)
    return np.abs(values[:, -1:] - values[:, 1:]).sum(axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "numbers", nargs="*", type=int, default=range(len(SETTINGS)), help="which settings, from 0"
    )
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--orders", type=int, default=20)
    given = parser.parse_args()
    header = ["setting", "half", "coalitions", "ms each", "s for 100 rows", "area"]
    errors = ["its error", "of a difference", "of the mean of 100"]
    table(
        [*header, *errors],
        [measured(SETTINGS[at], given.rows, given.orders) for at in given.numbers],
    )


if __name__ == "__main__":
    main()
