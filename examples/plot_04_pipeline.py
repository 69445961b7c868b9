"""
My model is a pipeline
======================

Encoders, imputers and scalers come between your columns and the model's. You want to know about
*your* columns, so these are the players: all columns made from one input are one feature, and the
trees at the end are still read exactly.
"""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import weightedshap as ws

rng = np.random.default_rng(2)
n = 800
bikes = pd.DataFrame(
    {
        "season": rng.choice(["spring", "summer", "autumn", "winter"], n),
        "weather": rng.choice(["clear", "mist", "rain"], n, p=[0.6, 0.3, 0.1]),
        "temperature": rng.normal(15, 8, n).round(1),
        "wind": rng.gamma(3, 4, n).round(1),
        "hour": rng.integers(0, 24, n),
    }
)
bikes.loc[rng.random(n) < 0.1, "wind"] = np.nan
rush = np.isin(bikes["hour"], [7, 8, 17, 18])
hired = 60 + 5 * bikes["temperature"] + 180 * rush - 70 * (bikes["weather"] == "rain") * (1 + rush)
hired = hired + 40 * (bikes["season"] == "summer") + rng.normal(0, 25, n)

numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
columns = make_column_transformer(
    (OneHotEncoder(), ["season", "weather"]),
    (numbers, ["temperature", "wind"]),
    remainder="passthrough",
)
model = make_pipeline(columns, GradientBoostingRegressor(random_state=0)).fit(
    bikes[:600], hired[:600]
)
print(model[:-1].transform(bikes[:600]).shape[1], "columns reach the trees")

# %%
# Eleven columns inside the pipeline, five outside.

explanation = ws.Explainer(model, bikes[:600])(bikes[600:700])
explanation

# %%
explanation.plot.beeswarm()

# %%
# The hour matters because of the rush hours; colour it by the weather to see that rain costs most
# when most people ride.

explanation.plot.scatter("hour", color="weather")
