"""
Correlated features: which game did I get?
==========================================

Two columns carry nearly the same information, and the model uses only one of them. Does the other
deserve credit? Yes and no are both right, as answers to different questions, and the game is the
question.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor

import weightedshap as ws

rng = np.random.default_rng(7)
celsius = rng.normal(15, 8, 2000)
X = pd.DataFrame(
    {
        "°C": celsius,
        "°F": celsius * 1.8 + 32 + rng.normal(0, 1, 2000),
        "wind": rng.gamma(3, 2, 2000),
    }
)
y = X["°C"] - X["wind"] + rng.normal(0, 0.5, 2000)
model = LGBMRegressor(n_estimators=100, num_leaves=15, n_jobs=1, verbose=-1)
model = model.fit(X.assign(**{"°F": 0.0})[:1500], y[:1500])  # it never learns about °F

# %%
# * ``tree_path`` and ``tree_interventional`` ask what the **model** does with a column. An unused
#   column gets nothing.
# * ``tree_surrogate`` asks what a column **says** about the prediction. °F says nearly all that °C
#   does, so they share the credit.

games = ["tree_path", "tree_interventional", "tree_surrogate"]
found = {game: ws.Explainer(model, X[:1500], game=game)(X[1500:1600]) for game in games}

figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for place, (game, explanation) in enumerate(found.items()):
    ax.bar(
        np.arange(3) + 0.27 * (place - 1),
        np.abs(explanation.shapley).mean(axis=0),
        0.25,
        label=game,
    )
ax.set(xticks=range(3), xticklabels=X.columns, ylabel="mean |Shapley value|")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)

# %%
# An explanation names its game when printed, in every figure, and in `game_info`.

for explanation in found.values():
    print(explanation.game_info["game"], "·", explanation.game_info["space"])
