"""Figures of an Explanation, drawn on `ax` or on a new figure.

`overall` has the figures of the method, `bars` and `many_rows` those of features over many rows,
and `one_row` those of a single row. `PlotAccessor` offers all of them as methods of an Explanation.
The colours are those of Okabe and Ito, which colour-blind readers can tell apart, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from matplotlib.axes import Axes

from weightedshap.explanation import Explanation
from weightedshap.plots import bars, many_rows, one_row, overall
from weightedshap.plots.bars import bar, cohorts, compare
from weightedshap.plots.data import chosen_shares
from weightedshap.plots.many_rows import beeswarm, decision, heatmap, scatter
from weightedshap.plots.one_row import image, sizes, waterfall
from weightedshap.plots.overall import recovery, stability, weight_vectors, weights

__all__ = ["PlotAccessor", "chosen_shares", "image", "sizes", "waterfall"]
__all__ += ["bar", "beeswarm", "cohorts", "compare", "decision", "heatmap", "scatter"]
__all__ += ["recovery", "stability", "weight_vectors", "weights"]

P = ParamSpec("P")


def _as_method(
    draw: Callable[Concatenate[Explanation, P], Axes],
) -> Callable[Concatenate[PlotAccessor, P], Axes]:
    """Wrap a plotting function as a method of `PlotAccessor`."""

    @wraps(draw)
    def method(self: PlotAccessor, /, *args: P.args, **kwargs: P.kwargs) -> Axes:
        return draw(self.explanation, *args, **kwargs)

    return method


class PlotAccessor:
    """The figures of one explanation, as methods.

    ``explanation.plot.recovery()`` draws the same as ``recovery(explanation)``.
    """

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    recovery = _as_method(overall.recovery)
    weights = _as_method(overall.weights)
    weight_vectors = _as_method(overall.weight_vectors)
    stability = _as_method(overall.stability)
    bar = _as_method(bars.bar)
    cohorts = _as_method(bars.cohorts)
    compare = _as_method(bars.compare)
    beeswarm = _as_method(many_rows.beeswarm)
    scatter = _as_method(many_rows.scatter)
    heatmap = _as_method(many_rows.heatmap)
    decision = _as_method(many_rows.decision)
    waterfall = _as_method(one_row.waterfall)
    sizes = _as_method(one_row.sizes)
    image = _as_method(one_row.image)
