"""Figures of an Explanation.

Each function takes the explanation and ``ax=None``, draws on `ax` or on a new figure, and returns the
Axes. Nothing is shown, and no setting of matplotlib is changed. Colours are those of Okabe and Ito, which
colour-blind readers can tell apart; lines differ in dashes too, so that a grey print stays readable.

To add a figure, write a function in `overall` (all rows) or `one_row`, a name here, and one line in `PlotAccessor`.
"""

from weightedshap.plots.accessor import PlotAccessor
from weightedshap.plots.one_row import image, sizes, waterfall
from weightedshap.plots.overall import bar, beeswarm, recovery, stability, weight_vectors, weights
from weightedshap.plots.reading import chosen_shares

__all__ = ["PlotAccessor", "chosen_shares"]
__all__ += ["bar", "beeswarm", "recovery", "stability", "weight_vectors", "weights"]
__all__ += ["image", "sizes", "waterfall"]
