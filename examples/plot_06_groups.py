"""
Groups of columns: a day has parts, not 24 features
===================================================

Two dozen columns that describe one thing are better explained together: a group is known or hidden
as a whole. Summing the attributions of single columns afterwards gives a different number, because
columns that repeat each other share their credit.
"""

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor

import weightedshap as ws

rng = np.random.default_rng(4)
n, hours = 700, np.arange(24)
level = rng.normal(14, 5, (n, 1))
temperature = (
    level + 6 * np.sin((hours - 9) / 24 * 2 * np.pi) + rng.normal(0, 1, (n, 24)).cumsum(axis=1) / 2
)
days = pd.DataFrame(temperature.round(1), columns=[f"{hour} h" for hour in hours])
days["weekend"] = rng.random(n) < 2 / 7
days["price of gas"] = rng.gamma(20, 0.1, n).round(2)
heating = np.clip(18 - temperature[:, 5:9], 0, None).mean(axis=1) * (1.3 - 0.3 * days["weekend"])
cooling = np.clip(temperature[:, 12:18] - 22, 0, None).mean(axis=1)
load = 30 + 4 * heating + 6 * cooling - 3 * days["price of gas"] + rng.normal(0, 1, n)

model = ExtraTreesRegressor(100, min_samples_leaf=3, max_features=0.5, random_state=0).fit(
    days[:600], load[:600]
)

# %%
# Four parts of the day instead of 24 columns. Columns in no group remain players of their own.

parts = {
    "night": [f"{hour} h" for hour in (22, 23, 0, 1, 2, 3, 4)],
    "morning": [f"{hour} h" for hour in range(5, 12)],
    "afternoon": [f"{hour} h" for hour in range(12, 18)],
    "evening": [f"{hour} h" for hour in range(18, 22)],
}
grouped = ws.Explainer(model, days[:600], groups=parts)(days[600:640])
grouped.plot.bar()

# %%
# Compare this with the sum over single columns.

single = ws.Explainer(model, days[:600])(days[600:640])
summed = {
    name: np.abs(single[:, columns].values.sum(axis=1)).mean() for name, columns in parts.items()
}
pd.DataFrame({"as a group": grouped.importance()[list(parts)], "summed": summed}).round(2)
