"""
A weight for each row
=====================

Why weight the sizes at all, and why differently for each row? Look at the contributions by size.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import weightedshap as ws

X, y = load_diabetes(return_X_y=True, as_frame=True)
model = GradientBoostingRegressor(random_state=0).fit(X[:300], y[:300])
explanation = ws.Explainer(model, X[:300])(X[300:400])

# %%
# **One row.** Δ_j is what a feature adds to j − 1 others. Where lines cross, the ranking depends on
# which sizes are considered, and an average over all of them is only one opinion. The grey bars are
# the weights that this row chose.

gain = explanation.reference_curves["shapley"].sum(axis=1) - explanation.curves.sum(axis=1)
row = int(np.argmax(gain))
explanation.plot.sizes(row)

# %%
# **All rows.** Some choose what features contribute alone, others what is lost when only one of
# them is hidden.

explanation.plot.weights()

# %%
# **One weight for all** is a matter of taste, and requires no new computation: the same
# contributions are weighted again. A row's own weight recovers its prediction better; a shared one
# is easier to explain.

shared = explanation.reweight(select="shared")
for name, told in {"own weight": explanation, "shared weight": shared}.items():
    print(
        f"{name:15}{told.curves[:, 1:].sum(axis=1).mean():8.1f}  "
        f" {np.unique(told.weight_labels)[:3]}"
    )
print(f"{'Shapley':15}{explanation.reference_curves['shapley'][:, 1:].sum(axis=1).mean():8.1f}")

# %%
# These areas are those of the judge that chose the weights. For the verdict of other rows, see
# :ref:`sphx_glr_auto_examples_plot_08_honest.py`.
