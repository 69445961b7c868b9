"""
Why is this flat so expensive?
==============================

The shortest tour of the library: a table of flats, a boosted model of their prices, and the
question of which features made one prediction what it is.
"""

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor

import weightedshap as ws

rng = np.random.default_rng(0)
n = 1500
area = rng.gamma(9, 9, n)
flats = pd.DataFrame(
    {
        "area": area.round(),
        "rooms": np.clip(area / 26 + rng.normal(0, 0.6, n), 1, 7).round(),
        "floor": rng.integers(0, 8, n),
        "age": rng.integers(0, 120, n),
        "km to the centre": rng.gamma(2, 3, n).round(1),
        "noise in dB": rng.normal(55, 8, n).round(),
        "lift": rng.random(n) < 0.4,
    }
)
centre = np.exp(-flats["km to the centre"] / 6)
price = (
    2.2 * flats["area"] * (1 + 2 * centre)
    + 18 * flats["lift"] * flats["floor"]
    - 0.5 * flats["age"]
)
price = (
    price - 1.5 * np.clip(flats["noise in dB"] - 50, 0, None) + rng.normal(0, 20, n)
)  # in thousands

model = LGBMRegressor(n_estimators=150, num_leaves=15, n_jobs=1, verbose=-1).fit(
    flats[:1200], price[:1200]
)

# %%
# Pass the model and background rows to the explainer, then call it with the rows to explain. The
# model's trees are read directly, so the contributions are exact.

explainer = ws.Explainer(model, flats[:1200])
explanation = explainer(flats[1200:1300])
explanation

# %%
# **Overall**: each dot is a flat. A large area raises the price, distance lowers it; the colour
# shows the feature's value.

explanation.plot.beeswarm()

# %%
# **One flat**: the most expensive of the hundred.

dearest = int(np.argmax(explanation.predictions))
explanation.plot.waterfall(dearest)

# %%
# Which of these features do you need to know to come within a tenth of a standard deviation of the
# model's prediction?

print(explanation.shortlist(dearest))
