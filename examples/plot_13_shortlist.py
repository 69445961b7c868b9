"""
The few features that suffice
=============================

"Tell me why in three words." A shortlist names the first few features that bring you close to the
model's prediction, and says what is left. It is a ranking, refined by a search on the judge, not an
attribution.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import weightedshap as ws

data = load_breast_cancer(as_frame=True)
model = RandomForestClassifier(60, min_samples_leaf=3, random_state=0).fit(
    data.data[:400], data.target[:400]
)
explanation = ws.Explainer(model, data.data[:400])(data.data[400:430])

# %%
for row in (0, 7, 11):
    print(explanation.shortlist(row), end="\n\n")

# %%
# There are thirty features, but how many of them suffice for each row?

counts = [len(explanation.shortlist(row).features) for row in range(len(explanation))]
figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
ax.bar(*np.unique(counts, return_counts=True), color="#0072B2")
ax.set(xlabel="features that suffice", ylabel="rows")
ax.spines[["top", "right"]].set_visible(False)
