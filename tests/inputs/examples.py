"""A frame, models fitted on it, and how the tests of inputs explain them."""

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import weightedshap as ws
from tests.inputs.tables import housing_frame, housing_score

SMALL = ws.games.TreeSurrogate(masks=4, trees=10, n_jobs=1)
NETWORK = ws.games.NeuralSurrogate(units=8, epochs=10)
COLUMNS = ["size", "rooms", "city", "kind", "new"]
LABELS = np.array(["no", "yes"])


def explain(model, background, X, game="marginal", **choices):
    return ws.Explainer(model, background, game=game, progress=False, **choices)(X)


def pipeline(last):
    """Holes filled and text one-hot, by column; works on frames of pandas and polars."""
    text = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer((numbers, ["size", "rooms", "new"]), (text, ["city", "kind"]))
    return make_pipeline(columns, last)


def five_columns(n=80):
    return housing_frame(n)[COLUMNS]


def target(rows):
    return housing_score(housing_frame(len(rows)))


def labels(rows):
    return LABELS[(target(rows) > np.median(target(rows))).astype(int)]
