"""Random tree models of every library: what is explained is what the model predicts, on the scale
that is named."""

import catboost
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost
from scipy.special import expit
from sklearn import ensemble, tree

import weightedshap as ws
from tests.attacks.verdicts import describe_error, is_ours
from weightedshap.trees.links import LINKS

SCALES = {None: "identity"} | {scale: link for link, (scale, _) in LINKS.items() if scale}


def pick(rng, **choices):
    return {name: values[rng.integers(len(values))] for name, values in choices.items()}


def of_lightgbm(rng):
    chosen = pick(
        rng,
        n_estimators=[1, 8],
        num_leaves=[2, 15],
        boosting_type=["gbdt", "dart", "rf"],
        zero_as_missing=[False, True],
        use_missing=[True, False],
        extra_trees=[False, True],
    )
    if chosen["boosting_type"] == "rf":
        chosen |= {"subsample": 0.6, "subsample_freq": 1}
    chosen |= {"verbose": -1, "n_jobs": 1, "min_child_samples": 5}
    objective = rng.choice(
        [
            "regression",
            "poisson",
            "gamma",
            "tweedie",
            "huber",
            "quantile",
            "sqrt",
            "binary",
            "multiclass",
            "multiclassova",
            "cross_entropy",
        ]
    )
    if objective in ("binary", "multiclass", "multiclassova"):
        return lightgbm.LGBMClassifier(
            objective=str(objective), **chosen
        ), "two" if objective == "binary" else "three"
    more = {"reg_sqrt": True} if objective == "sqrt" else {"objective": str(objective)}
    return lightgbm.LGBMRegressor(
        **more, **chosen
    ), "share" if objective == "cross_entropy" else "positive"


def of_xgboost(rng):
    chosen = pick(
        rng,
        n_estimators=[1, 8],
        max_depth=[1, 4],
        booster=["gbtree", "dart"],
        missing=[np.nan, -1.0, 0.0],
        tree_method=["hist", "exact"],
        base_score=[None, 0.4],
    )
    if chosen["booster"] == "dart":
        chosen |= {"rate_drop": 0.5, "verbosity": 0}
    objective = str(
        rng.choice(
            [
                "reg:squarederror",
                "count:poisson",
                "reg:gamma",
                "reg:tweedie",
                "reg:logistic",
                "binary",
                "multi",
            ]
        )
    )
    if objective in ("binary", "multi"):
        return xgboost.XGBClassifier(
            n_jobs=1, **chosen
        ), "two" if objective == "binary" else "three"
    target = "share" if objective == "reg:logistic" else "positive"
    return xgboost.XGBRegressor(objective=objective, n_jobs=1, **chosen), target


def of_catboost(rng):
    chosen = pick(
        rng,
        n_estimators=[1, 8],
        depth=[1, 4],
        grow_policy=["SymmetricTree", "Depthwise"],
        nan_mode=["Min", "Max"],
    )
    chosen |= {"verbose": 0, "thread_count": 1, "allow_writing_files": False}
    loss = str(rng.choice(["RMSE", "Poisson", "MAE", "Logloss", "MultiClass"]))
    if loss in ("Logloss", "MultiClass"):
        return catboost.CatBoostClassifier(
            loss_function=loss, **chosen
        ), "two" if loss == "Logloss" else "three"
    return catboost.CatBoostRegressor(loss_function=loss, **chosen), "positive"


def of_sklearn(rng):
    makes = [
        (tree.DecisionTreeRegressor, {}, "positive"),
        (tree.DecisionTreeClassifier, {}, "three"),
        (ensemble.RandomForestRegressor, {"n_estimators": 4}, "positive"),
        (ensemble.ExtraTreesClassifier, {"n_estimators": 4}, "two"),
        (ensemble.HistGradientBoostingRegressor, {"max_iter": 5}, "positive"),
        (ensemble.HistGradientBoostingClassifier, {"max_iter": 5}, "three"),
        (ensemble.GradientBoostingRegressor, {"n_estimators": 5, "loss": "huber"}, "positive"),
        (ensemble.GradientBoostingClassifier, {"n_estimators": 5}, "two"),
        (ensemble.GradientBoostingClassifier, {"n_estimators": 5, "loss": "exponential"}, "two"),
    ]
    make, choices, target = makes[rng.integers(len(makes))]
    return make(max_depth=int(rng.integers(1, 5)), **choices), target


MAKERS = {
    "lightgbm": of_lightgbm,
    "xgboost": of_xgboost,
    "catboost": of_catboost,
    "sklearn": of_sklearn,
}


def rows_of(rng, library):
    """(90, 3) numbers with holes, zeros and marks of missing values; as an array or a frame."""
    X = rng.normal(size=(90, 3)).round(int(rng.integers(0, 4)))
    X[rng.random(X.shape) < 0.1] = 0.0
    X[rng.random(X.shape) < 0.1] = -1.0
    if library != "sklearn" and rng.random() < 0.7:
        X[rng.random(X.shape) < 0.1] = np.nan
    if rng.random() < 0.2:
        X = X.astype(np.float32)
    kind = rng.choice(["array", "pandas", "polars"], p=[0.5, 0.35, 0.15])
    if kind == "array" or (library == "xgboost" and kind == "polars"):
        return X
    frame = pd.DataFrame(X, columns=list("abc"))
    if not np.isnan(X).any() and rng.random() < 0.5:
        frame["b"] = frame["b"].round().astype(int)
    return frame if kind == "pandas" or library == "catboost" else pl.from_pandas(frame)


def targets_of(rows):
    x = np.nan_to_num(np.asarray(rows, dtype=float))
    y = x[:, 0] * x[:, 1] + x[:, 2]
    return {
        "positive": np.exp(y / 3) + 0.01,
        "two": (y > 0).astype(int),
        "three": np.digitize(y, [-0.3, 0.3]),
        "share": expit(y),
    }


def part(rows, where):
    return rows.iloc[where] if isinstance(rows, pd.DataFrame) else rows[where]


def own_prediction(model, rows):
    """(n, k) what the user's estimator says of the classes explained."""
    if hasattr(model, "predict_proba"):
        p = np.asarray(model.predict_proba(rows))
        return p[:, [1]] if p.shape[1] == 2 else p
    return np.asarray(model.predict(rows)).reshape(len(rows), -1)


def difference(seed, library):
    """How far the explained prediction is from the model's own, both on the model's scale; None
    where it is refused."""
    rng = np.random.default_rng([7, seed])
    model, target = MAKERS[library](rng)
    rows = rows_of(rng, library)
    model.fit(rows, targets_of(rows)[target])
    background = part(rows, slice(0, int(rng.choice([1, 2, 30]))))
    game = str(rng.choice(["tree_path", "tree_interventional"]))
    explanation = ws.Explainer(model, background, game=game, progress=False)(
        part(rows, slice(40, 60))
    )
    f = own_prediction(model, part(rows, slice(40, 60)))
    raw = explanation.predictions.reshape(20, -1)
    gap = (
        np.abs(explanation.efficiency_gap.reshape(20, -1))
        if explanation.weight_labels.size == 0
        else 0.0
    )
    whole = explanation.base_values + explanation.shapley.sum(axis=1)
    gap = np.abs(whole.reshape(20, -1) - raw).max() / (1 + np.abs(raw).max())
    info = explanation.game_info
    if (
        info["space"] == "margin" and "scale" not in info
    ):  # several classes, or a link without a name
        rank = np.argsort(raw, axis=0, kind="stable") if raw.shape[1] == 1 else None
        if rank is None:
            shares = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
            return max(gap, np.abs(shares - f).max())
        return max(
            gap, float(-np.diff(np.take_along_axis(f, rank, axis=0), axis=0).min(initial=0.0))
        )
    given = LINKS[SCALES[info.get("scale")]][1](raw)
    return max(gap, np.abs(given - f).max() / (1 + np.abs(f).max()))


@pytest.mark.filterwarnings("ignore")  # of the libraries
@pytest.mark.parametrize("n", [12, pytest.param(400, marks=pytest.mark.attack)])
@pytest.mark.parametrize("library", MAKERS)
def test_the_explained_prediction_is_the_models_own(tally, library, n):
    counted = tally(f"tree models, {library}")
    for seed in range(n):
        try:
            apart = difference(seed, library)
        except Exception as error:
            counted.count(
                "refused", None if is_ours(error) else f"seed {seed}: {describe_error(error)}"
            )
        else:
            counted.count(
                "explained", None if apart < 1e-4 else f"seed {seed}: differs by {apart:.3g}"
            )
