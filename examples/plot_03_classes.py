"""
Ten classes: why this digit and not another?
============================================

A model with several outputs is explained for each of them: every array has an axis k at the end,
never a list of arrays. Names or positions select an output, in slices and in figures.
"""

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMClassifier
from sklearn.datasets import load_digits

import weightedshap as ws

images, digits = load_digits(return_X_y=True)
blocks = (
    images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
)  # 8 × 8 pixels as 4 × 4 blocks
model = LGBMClassifier(n_estimators=25, num_leaves=7, n_jobs=1, verbose=-1).fit(
    blocks[:1400], digits[:1400]
)

explanation = ws.Explainer(model, blocks[:600])(blocks[1400:1440])
print(explanation.values.shape, explanation.output_names)

# %%
# Which blocks matter over all rows and classes? The bars are stacked, one colour per class.

explanation.plot.bar(max_display=8)

# %%
# Now the image about which the model is least certain, and two outputs: what speaks for the digit
# that it predicts, and what for the runner-up? Orange raises the score of the class, blue lowers
# it.

two = np.sort(explanation.judge_predictions, axis=1)[
    :, -2:
]  # the largest two probabilities of each image
row = int(np.argmin(two[:, 1] - two[:, 0]))
first, second = np.argsort(-explanation.judge_predictions[row])[:2]
segments = np.kron(
    np.arange(16).reshape(4, 4), np.ones((2, 2), dtype=int)
)  # the block of each pixel
figure, axes = plt.subplots(1, 2, figsize=(8, 4.2))
for ax, output in zip(axes, (first, second), strict=True):
    explanation.plot.image(
        row, images[1400 + row].reshape(8, 8), segments, output=int(output), ax=ax
    )

# %%
# A slice selects rows, features and outputs in all arrays at once.

explanation[row, :, str(first)].shapley.round(2)
