"""Random calls of every public name with arguments of the wrong type, shape or size: an answer, or
an error of ours."""

import io
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.tree import DecisionTreeRegressor

import weightedshap as ws
from tests.attacks.verdicts import describe_error, is_ours
from tests.time_limit import time_limit
from weightedshap import curves, estimators, games, plots, utilities, weights

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3))
TREES = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0] * X[:, 1])
D = 4
PATIENCE = 2.0  # seconds for one call


def model(rows):
    """Whatever it is given it calls numbers; nothing but the first columns is looked at."""
    return np.nan_to_num(np.asarray(rows, dtype=float))[:, :2].sum(axis=1)


def worth(coalitions):
    return np.asarray(coalitions, dtype=float) @ np.arange(1.0, D + 1)


GAME = games.FunctionGame(worth, D)
FITTED = games.Baseline().fit(model, X, 0)
EXPLAINER = ws.Explainer(model, X, game="baseline", progress=False)
PATH = ws.Explainer(TREES, X, game="tree_path", progress=False)
SEVERAL = ws.Explainer(lambda rows: np.asarray(rows)[:, :2], X, game="baseline", progress=False)
EXPLANATION = EXPLAINER(X[:4])
TWO = SEVERAL(X[:4])
SAMPLED = ws.explain(GAME, estimator="permutation", evaluations=200)
FAMILY = weights.paper(D)
DELTA = estimators.exact(GAME)
POOLED = estimators.permutation(GAME, evaluations=200)


def hostile():
    """Values that belong nowhere, made anew each time: iterators would be used up."""
    return [
        None,
        True,
        False,
        0,
        -1,
        1,
        2,
        7,
        10**5,
        -(10**12),
        2**63,
        0.5,
        1.0,
        -0.0,
        float("nan"),
        float("inf"),
        1e308,
        3 + 4j,
        "",
        "x",
        "1",
        "auto",
        "ауто",
        "paper ",
        "a\x00b",
        b"x",
        [],
        {},
        (),
        set(),
        [[]],
        [None],
        ["a", 1],
        [1, "x"],
        [[1], [1, 2]],
        [[1, 2, 3]],
        {"a": 1},
        {"a": [1]},
        {1: 2},
        {"a": []},
        object(),
        lambda *a, **k: None,
        lambda *a, **k: 1 / 0,
        iter([]),
        (i for i in ()),
        range(3),
        range(0),
        slice(None),
        ...,
        io.StringIO("x"),
        Path("no/such/place"),
        Ellipsis,
        NotImplemented,
        np.random.default_rng(0),
        np.random.RandomState(0),
        np.array(1.0),
        np.array([]),
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        np.zeros((2, 3)),
        np.zeros((2, 4)),
        np.zeros((2, 2, 2)),
        np.ones(3),
        np.ones(4),
        np.ones(D, dtype=int),
        np.full((2, 3), np.nan),
        np.full((2, 3), np.inf),
        np.eye(3),
        np.eye(4),
        np.eye(4, dtype=bool),
        np.array(["a", "b", "c"]),
        np.array([["a", "b", "c"]]),
        np.array([[1, "b", None]], dtype=object),
        np.array([[True, False, True]]),
        np.array([1 + 2j, 1, 1]),
        np.zeros(3, dtype="datetime64[D]"),
        np.array([[2**60, 1, 2]]),
        np.ma.masked_array([[1.0, 2.0, 3.0]], mask=[[0, 1, 0]]),
        np.float32(2),
        np.int8(-3),
        np.uint8(200),
        np.str_("x"),
        np.bool_(True),
        np.zeros(3, dtype=[("a", "f8")]),
        np.matrix([[1.0, 2.0, 3.0]]),
        pd.DataFrame(),
        pd.DataFrame(X[:2], columns=list("abc")),
        pd.DataFrame({"a": ["x"], "b": [1], "c": [None]}),
        pd.Series([1.0, 2.0, 3.0]),
        pd.Series(["a"]),
        pd.Index([1, 2, 3]),
        pd.NA,
        pd.NaT,
        pd.Timestamp("2020-01-01"),
        pd.DataFrame(X[:2], columns=["a", "a", "b"]),
        pl.DataFrame({"a": [1.0], "b": [2.0], "c": [3.0]}),
        pl.DataFrame(),
        pl.Series([1, 2, 3]),
        model,
        GAME,
        FITTED,
        TREES,
        EXPLAINER,
        EXPLANATION,
        FAMILY,
        DELTA,
        games.Marginal(),
        games.Marginal,
        ValueError("x"),
        np,
    ]


class StillWorking(BaseException):
    """Not an Exception, so that nobody takes it for an answer."""


def recipe(make, **given):
    """Fit with hostile settings."""
    return lambda **changed: make(**{**given, **changed}).fit(model, X, 0)


def targets(folder):
    """By name: a call, and arguments under which it works."""
    explaining = {
        "model": model,
        "background": X,
        "game": "baseline",
        "judge": "auto",
        "estimator": "auto",
        "family": "paper",
        "utility": "aup",
        "select": "per_row",
        "evaluations": None,
        "predict": None,
        "groups": None,
        "outputs": None,
        "link": "identity",
        "background_weights": None,
        "keep_contributions": "auto",
        "random_state": 0,
        "n_jobs": 1,
        "progress": False,
    }
    trees = {
        "masks": 2,
        "trees": 2,
        "leaves": 3,
        "max_rows": 200,
        "rate": 0.1,
        "bins": 7,
        "patience": 2,
        "held_out": 0.2,
        "n_jobs": 1,
        "fits": 1,
        "base": None,
    }
    EXPLAINER.save(folder / "kept")
    EXPLANATION.save(folder / "kept.npz")
    return {
        "Explainer": (ws.Explainer, explaining),
        "Explainer of trees": (ws.Explainer, {**explaining, "model": TREES, "game": "tree_path"}),
        "explainer()": (EXPLAINER, {"X": X[:2], "row_ids": None}),
        "path explainer()": (PATH, {"X": X[:2], "row_ids": None}),
        "explainer.but": (
            EXPLAINER.but,
            {
                k: explaining[k]
                for k in (
                    "estimator",
                    "family",
                    "utility",
                    "select",
                    "evaluations",
                    "keep_contributions",
                    "n_jobs",
                    "progress",
                )
            },
        ),
        "Explainer.load": (
            ws.Explainer.load,
            {
                "folder": folder / "kept",
                "model": model,
                "refit": False,
                "select": "per_row",
                "n_jobs": 1,
                "outputs": None,
                "link": "identity",
                "evaluations": None,
                "family": "paper",
            },
        ),
        "explainer.save": (EXPLAINER.save, {"folder": folder / "other"}),
        "explain": (
            ws.explain,
            {
                "game": GAME,
                "family": "paper",
                "utility": "aup",
                "estimator": "auto",
                "evaluations": None,
                "random_state": 0,
            },
        ),
        "evaluate": (
            ws.evaluate,
            {
                "explainer": EXPLAINER,
                "X": X[:6],
                "y": X[:6, 0],
                "against": "own",
                "judges": "anchored",
                "methods": ["Shapley", "WeightedSHAP"],
                "metrics": None,
                "walks": 3,
            },
        ),
        "slice": (lambda key: EXPLANATION[key], {"key": 0}),
        "slice of two": (
            lambda rows, features, outputs: TWO[rows, features, outputs],
            {"rows": 0, "features": 0, "outputs": 0},
        ),
        "concatenate": (ws.Explanation.concatenate, {"parts": [EXPLANATION, EXPLANATION]}),
        "reweight": (
            EXPLANATION.reweight,
            {"family": "wide", "utility": "aup", "select": "per_row"},
        ),
        "to_frame": (TWO.to_frame, {"kind": "tidy", "to": None}),
        "instability": (SAMPLED.instability, {"k": 3}),
        "to_shap": (EXPLANATION.to_shap, {"normalize": None}),
        "to_shapiq": (TWO.to_shapiq, {"row": 0, "output": 0}),
        "equals": (EXPLANATION.equals, {"other": EXPLANATION}),
        "save": (EXPLANATION.save, {"path": folder / "x.npz"}),
        "load": (ws.Explanation.load, {"path": folder / "kept.npz"}),
        "WeightFamily": (ws.WeightFamily, {"labels": ("a",), "vectors": np.full((1, 4), 0.25)}),
        "join": (FAMILY.__or__, {"other": weights.sizes(D)}),
        "beta": (weights.beta, {"d": 4, "alpha": 2.0, "beta": 3.0}),
        "beta_grid": (weights.beta_grid, {"d": 4, "values": (1, 2)}),
        "banzhaf": (weights.banzhaf, {"d": 4, "p": 0.3}),
        **{
            name: (getattr(weights, name), {"d": 4})
            for name in ("paper", "sizes", "shapley", "first", "last", "wide")
        },
        "exact": (estimators.exact, {"game": GAME, "rng": 0}),
        "permutation": (
            estimators.permutation,
            {
                "game": GAME,
                "stop": None,
                "evaluations": 200,
                "rng": 0,
                "chains": 4,
                "orders": "cyclic",
            },
        ),
        "stratified": (
            estimators.stratified,
            {"game": GAME, "evaluations": 60, "rng": 0, "order": 2},
        ),
        "auto": (estimators.auto, {"game": GAME, "evaluations": 60, "rng": 0}),
        "stop at evaluations": (estimators.stopping.evaluations, {"n": 3}),
        "stop at seconds": (estimators.stopping.seconds, {"s": 0.1}),
        "stop at error": (estimators.stopping.standard_error, {"tolerance": 0.1}),
        "gelman_rubin": (estimators.stopping.gelman_rubin, {"threshold": 1.1, "chains": 3}),
        "along": (curves.along, {"game": GAME, "orders": np.array([[0, 1, 2, 3]])}),
        "recovery_error": (
            curves.recovery_error,
            {"game": GAME, "orders": np.array([[0, 1, 2, 3]]), "f_x": 10.0},
        ),
        "exclusion_error": (
            curves.exclusion_error,
            {"game": GAME, "orders": np.array([[0, 1, 2, 3]]), "f_x": 10.0},
        ),
        "order_of": (curves.order_of, {"phi": np.ones((2, 4)), "axis": -1}),
        "area": (curves.area, {"curve": np.ones((2, 5)), "axis": -1}),
        "aup": (
            lambda game, f_x, phi: utilities.aup(game, f_x)(phi),
            {"game": GAME, "f_x": 10.0, "phi": np.ones((2, 4))},
        ),
        "standard_error_of": (DELTA.standard_error_of, {"w": np.full(4, 0.25)}),
        "Contributions + other": (
            POOLED.__add__,
            {"other": estimators.permutation(GAME, evaluations=200, rng=1)},
        ),
        "FunctionGame": (
            lambda function, d: ws.explain(games.FunctionGame(function, d)),
            {"function": worth, "d": 4},
        ),
        "game at coalitions": (FITTED.at(X[0]), {"coalitions": np.eye(3, dtype=bool)}),
        "game at": (FITTED.at, {"row": X[0]}),
        "path at coalitions": (PATH.game.at(X[0]), {"coalitions": np.eye(3, dtype=bool)}),
        "path along": (PATH.game.at(X[0]).along, {"orders": np.array([[0, 1, 2]])}),
        "Baseline": (
            lambda background: games.Baseline().fit(model, background, 0),
            {"background": X},
        ),
        "Marginal": (recipe(games.Marginal), {"rows": 4}),
        "Gaussian": (
            lambda background: games.Gaussian().fit(model, background, 0),
            {"background": X},
        ),
        "TreeModel": (
            lambda removal, background: games.TreeModel(removal).fit(TREES, background, 0),
            {"removal": "path", "background": X},
        ),
        "TreeSurrogate": (recipe(games.TreeSurrogate), trees),
        "DistilledTrees": (
            recipe(games.DistilledTrees),
            {
                "rows": 50,
                "trees": 2,
                "leaves": 3,
                "rate": 0.1,
                "bins": 7,
                "least": 2,
                "patience": 2,
                "held_out": 0.2,
                "n_jobs": 1,
            },
        ),
        "NeuralSurrogate": (
            recipe(games.NeuralSurrogate, epochs=1),
            {
                "units": 4,
                "batch": 8,
                "rate": 0.01,
                "masks": 1,
                "held_out": 0.2,
                "loss": "auto",
                "schedule": "cycle",
                "standardise": True,
            },
        ),
        **{
            f"plot.{name}": (getattr(EXPLANATION.plot, name), {})
            for name in ("beeswarm", "bar", "recovery", "weights")
        },
        "plot.waterfall": (EXPLANATION.plot.waterfall, {"row": 0}),
        "plot.sizes": (EXPLANATION.plot.sizes, {"row": 0}),
        "plots.bar": (plots.bar, {"explanation": EXPLANATION}),
    }


def attack(calls, seed):
    """(name, changed arguments, outcome, what is wrong): one random call."""
    rng = np.random.default_rng([5, seed])
    name = list(calls)[rng.integers(len(calls))]
    call, good = calls[name]
    values = hostile()
    changed = {}
    for key in rng.permutation(list(good))[: rng.integers(1, 3)]:
        place = int(rng.integers(len(values)))
        changed[str(key)] = values[place]
    if rng.random() < 0.03:
        changed["no_such_thing"] = 1
    about = f"{name}({', '.join(f'{k}={str(v)[:60]!r}' for k, v in changed.items())})"
    try:
        with warnings.catch_warnings(), time_limit(PATIENCE, StillWorking):
            warnings.simplefilter("ignore")
            found = call(**{**good, **changed})
    except StillWorking:
        return "still working", None  # on a million of something that was asked for
    except Exception as error:
        innocent = (
            is_ours(error)
            or "no_such_thing" in str(error)
            or isinstance(error, (ZeroDivisionError, MemoryError))
        )
        return "refused", None if innocent else f"{about}: {describe_error(error)}"
    if isinstance(found, ws.Explanation) and not np.isfinite(found.values).all():
        return "answered", f"{about}: an explanation that is not finite"
    return "answered", None


@pytest.mark.filterwarnings("ignore")  # of the peers and of what they import
@pytest.mark.parametrize("n", [400, pytest.param(10_000, marks=pytest.mark.attack)])
def test_hostile_calls_are_answered_or_refused(tmp_path, monkeypatch, tally, n):
    monkeypatch.chdir(tmp_path)
    calls = targets(tmp_path)
    counted = tally("hostile calls")
    for name, (call, good) in calls.items():
        try:
            call(**good)
        except Exception as error:
            pytest.fail(f"{name} does not work as it should: {describe_error(error)}")
    for seed in range(n):
        counted.count(*attack(calls, seed))
        plt.close("all")
