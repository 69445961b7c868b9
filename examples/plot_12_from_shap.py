"""
From SHAP to WeightedSHAP
=========================

The plain Shapley value is always available along with the weighted one, and on trees it equals
TreeSHAP's to the last digits. So you lose nothing by trying: the ranking changes, and your figures
stay.
"""

import matplotlib.pyplot as plt
import numpy as np
import shap
from lightgbm import LGBMRegressor
from sklearn.datasets import load_diabetes

import weightedshap as ws

X, y = load_diabetes(return_X_y=True, as_frame=True)
model = LGBMRegressor(n_estimators=60, num_leaves=8, n_jobs=1, verbose=-1).fit(X[:300], y[:300])
rows = X[300:400]

theirs = shap.TreeExplainer(model)(rows)
ours = ws.Explainer(model, X[:300])(rows)
print(f"largest difference of the Shapley values: {np.abs(theirs.values - ours.shapley).max():.1e}")

# %%
# What do the chosen weights change? Here are both attributions of the same rows, as shares of their
# own sums.

ours.plot.compare(theirs, names=("WeightedSHAP", "TreeSHAP"))

# %%
# How many features does each ranking need? This is what the weights are chosen for.

ours.plot.recovery()

# %%
# A weighted attribution does not add up to the prediction. For figures that require this, use a
# scaled copy: the ranking within a row is kept, and the sum is right. Rows that no moderate factor
# makes add up are shifted instead, and a warning counts them.

some = ours[np.abs(ours.efficiency_gap) < 0.2 * np.abs(ours.predictions - ours.base_values)]
copy = some.to_shap(normalize="scale")
print(len(copy), "rows:", np.allclose(copy.values.sum(axis=1) + copy.base_values, some.predictions))

plt.figure()
shap.plots.waterfall(copy[0], show=False)
plt.tight_layout()
