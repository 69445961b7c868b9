"""A frame with an index, a model of it, and how it is explained."""

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor
from sklearn.linear_model import LinearRegression

import weightedshap as ws

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    RNG.normal(size=(300, 4)), columns=list("abcd"), index=[f"row {r}" for r in range(300)]
)
TARGET = FRAME["a"] * FRAME["b"] + FRAME["c"]
MODEL = LGBMRegressor(n_estimators=15, n_jobs=1, verbose=-1).fit(FRAME, TARGET)
ARRAY = FRAME.to_numpy()
ON_ARRAY = LinearRegression().fit(ARRAY, TARGET)


def explain_rows(model, background, rows=FRAME[:3], **choices):
    return ws.Explainer(model, background, progress=False, **{"game": "marginal", **choices})(rows)
