"""
Superpixels of an image: what does a classifier look at?
========================================================

Single pixels carry little information, so make players of patches: here 2 × 2 pixels of
scikit-learn's small digits, classified by a neural network.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import weightedshap as ws

images, digits = load_digits(return_X_y=True)
images = images / 16
model = MLPClassifier(32, alpha=0.1, tol=1e-3, max_iter=500, random_state=0).fit(
    images[:1200], digits[:1200]
)

# %%
# Which patch does each pixel belong to? Groups by position make the patches players, and `outputs=`
# selects the class to explain: the probability of a three. It is explained on the log-odds scale,
# on which evidence adds up.

segments = np.kron(np.arange(16).reshape(4, 4), np.ones((2, 2), dtype=int))
names = [f"row {row}, column {column}" for row in range(1, 5) for column in range(1, 5)]
patches = {
    name: np.flatnonzero(segments.ravel() == patch).tolist() for patch, name in enumerate(names)
}
explainer = ws.Explainer(model, images[:300], groups=patches, outputs="3", link="logit")

threes = np.flatnonzero((digits == 3) & (np.arange(len(digits)) >= 1200))[:3]
nines = np.flatnonzero((digits == 9) & (np.arange(len(digits)) >= 1200))[:1]
rows = np.concatenate([threes, nines])
explanation = explainer(images[rows])

# %%
# Orange patches speak for a three, blue ones against it. The last image is a nine.

figure, axes = plt.subplots(1, 4, figsize=(13, 4.4), layout="constrained")
for row, ax in enumerate(axes):
    explanation.plot.image(row, images[rows[row]].reshape(8, 8), segments, ax=ax)

# %%
# The same in numbers, for the nine: the stroke that closes its loop on the left speaks against a
# three.

explanation.plot.bar(3, max_display=6)
