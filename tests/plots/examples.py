"""Explanations that the tests of figures and of the report draw."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pandas as pd

import weightedshap as ws


def make_explanation(
    n: int = 6, d: int = 5, outputs: int = 0, estimator: str = "exact", model=None
) -> ws.Explanation:
    rng = np.random.default_rng(3)
    background = rng.normal(size=(8, d))
    X = rng.normal(size=(n, d))
    slopes = rng.normal(size=(d, max(outputs, 1)))

    def smooth(rows):
        values = np.tanh(rows @ slopes) + rows[:, :1] * rows[:, -1:]
        return values if outputs else values[:, 0]

    return ws.Explainer(model or smooth, background, game="marginal", estimator=estimator)(X)


def with_unknown_errors(explanation, rows=slice(None)):
    errors = explanation.standard_errors.copy()
    errors[rows, 0] = np.nan
    return dataclasses.replace(explanation, standard_errors=errors)


def with_many_features(explanation, d=3_000):
    """The same rows with d features, most of them without influence; Δ, which would be large, is
    not kept."""
    n = len(explanation)
    family = ws.weights.paper(d)
    values = np.zeros((n, d))
    values[:, ::600] = explanation.values
    return dataclasses.replace(
        explanation,
        values=values,
        shapley=values / 2,
        feature_names=tuple(f"feature {i}" for i in range(d)),
        data=None,
        contributions=None,
        family=family,
        weights=np.tile(family.vectors[0], (n, 1)),
        weight_labels=np.array([family.labels[0]] * n),
        orders=ws.curves.order_of(values),
        curves=np.linspace(1, 0, d + 1) * np.ones((n, 1)),
        reference_curves={name: np.ones((n, d + 1)) for name in explanation.reference_curves},
    )


@cache
def two_games() -> ws.Explanation:
    """Two games compete, under a judge that misses the prediction."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    judge = ws.games.TreeSurrogate(trees=20)
    games = ["baseline", "marginal"]
    return ws.Explainer(
        lambda rows: rows[:, 0] * rows[:, 1] + np.sin(rows[:, 2]), X, game=games, judge=judge
    )(X[:20])


@cache
def classifier() -> ws.Explanation:
    """Log-odds that are judged by a probability."""
    from lightgbm import LGBMClassifier

    X = np.random.default_rng(0).normal(size=(200, 4))
    model = LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1).fit(
        X, X[:, 0] + X[:, 1] * X[:, 2] > 0
    )
    return ws.Explainer(model, X)(X[:8])


def with_factor(explanation, factor):
    """The same attribution, of a prediction to which it adds up when it is multiplied."""
    return dataclasses.replace(
        explanation,
        predictions=explanation.base_values + factor * explanation.values.sum(axis=1),
        judge_predictions=explanation.base_values + factor * explanation.values.sum(axis=1),
    )


def with_table(**columns) -> ws.Explanation:
    """An explanation whose features are these columns, φ* random but for what a test sets."""
    n = len(next(iter(columns.values())))
    some = make_explanation()[np.resize(np.arange(6), n)]
    d = len(columns)
    family = ws.weights.paper(d)
    phi = np.random.default_rng(1).normal(size=(n, d))
    return dataclasses.replace(
        some[:, list(range(d))],
        data=pd.DataFrame(columns),
        values=phi,
        shapley=phi / 2,
        feature_names=tuple(columns),
        orders=ws.curves.order_of(phi),
        family=family,
        contributions=None,
    )
