"""Figures of an Explanation, drawn on `ax` or a new figure, in the colours of Okabe and Ito, which
all tell apart."""

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


def _method(
    draw: Callable[Concatenate[Explanation, P], Axes],
) -> Callable[Concatenate[PlotAccessor, P], Axes]:
    @wraps(draw)
    def method(self: PlotAccessor, /, *args: P.args, **kwargs: P.kwargs) -> Axes:
        return draw(self.explanation, *args, **kwargs)

    return method


class PlotAccessor:
    """The figures of one explanation: ``explanation.plot.recovery()`` is
    ``recovery(explanation)``."""

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    recovery = _method(overall.recovery)
    weights = _method(overall.weights)
    weight_vectors = _method(overall.weight_vectors)
    stability = _method(overall.stability)
    bar = _method(bars.bar)
    cohorts = _method(bars.cohorts)
    compare = _method(bars.compare)
    beeswarm = _method(many_rows.beeswarm)
    scatter = _method(many_rows.scatter)
    heatmap = _method(many_rows.heatmap)
    decision = _method(many_rows.decision)
    waterfall = _method(one_row.waterfall)
    sizes = _method(one_row.sizes)
    image = _method(one_row.image)
