"""
Comparing rankings honestly
===========================

A weight that was chosen by a score looks good by that score. What counts is the verdict of a judge
that had no part in the choice: `evaluate` splits the background into halves, lets one half explain
and the other half judge, and vice versa.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import weightedshap as ws

X, y = load_diabetes(return_X_y=True, as_frame=True)
model = GradientBoostingRegressor(random_state=0).fit(X[:350], y[:350])
explainer = ws.Explainer(model, X[:350])

evaluation = ws.evaluate(explainer, X[350:], y[350:])
print(evaluation)

# %%
# The first number is the honest one. As a bar chart of the mean over the rows:

table = evaluation.to_frame()
judge = evaluation.judges[0]
table = table[(table["judge"] == judge) & (table["metric"] == "recovery")].set_index("method")
table = table.loc[
    [
        "random",
        "last",
        "first",
        "MCI",
        "TreeSHAP interventional",
        "Shapley",
        "WeightedSHAP",
        "greedy",
    ]
]

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
place = np.arange(len(table))
ours = ["#0072B2" if name == "WeightedSHAP" else "0.75" for name in table.index]
ax.barh(place, table["mean"], color=ours)
ax.set(
    yticks=place,
    yticklabels=table.index,
    xlabel=f"recovery error, judged by {judge} games of other rows",
)
ax.spines[["top", "right"]].set_visible(False)

# %%
# And in one sentence, paired over the rows:

print(evaluation.difference())
