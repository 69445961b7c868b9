"""``explanation.plot``: every figure as a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes

from weightedshap.checks import FloatArray
from weightedshap.explanation import Explanation
from weightedshap.plots import one_row, overall

__all__ = ["PlotAccessor"]


class PlotAccessor:
    """The figures of one explanation: ``explanation.plot.recovery()`` is ``recovery(explanation)``."""

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    def recovery(
        self, output: int | str = 0, ax: Axes | None = None, curves: Mapping[str, FloatArray] | None = None
    ) -> Axes:
        """See `weightedshap.plots.recovery`."""
        return overall.recovery(self.explanation, output, ax, curves)

    def weights(self, output: int | str = 0, ax: Axes | None = None) -> Axes:
        """See `weightedshap.plots.weights`."""
        return overall.weights(self.explanation, output, ax)

    def weight_vectors(self, output: int | str = 0, max_display: int = 10, ax: Axes | None = None) -> Axes:
        """See `weightedshap.plots.weight_vectors`."""
        return overall.weight_vectors(self.explanation, output, max_display, ax)

    def bar(self, row: int | None = None, output: int | str = 0, max_display: int = 10, ax: Axes | None = None) -> Axes:
        """See `weightedshap.plots.bar`."""
        return overall.bar(self.explanation, row, output, max_display, ax)

    def beeswarm(self, output: int | str = 0, max_display: int = 10, ax: Axes | None = None) -> Axes:
        """See `weightedshap.plots.beeswarm`."""
        return overall.beeswarm(self.explanation, output, max_display, ax)

    def stability(self, output: int | str = 0, ax: Axes | None = None) -> Axes:
        """See `weightedshap.plots.stability`."""
        return overall.stability(self.explanation, output, ax)

    def waterfall(self, row: int, output: int | str = 0, max_display: int = 10, ax: Axes | None = None) -> Axes:
        """See `weightedshap.plots.waterfall`."""
        return one_row.waterfall(self.explanation, row, output, max_display, ax)

    def sizes(self, row: int, output: int | str = 0, max_display: int = 6, ax: Axes | None = None) -> Axes:
        """See `weightedshap.plots.sizes`."""
        return one_row.sizes(self.explanation, row, output, max_display, ax)

    def image(
        self,
        row: int,
        picture: Any,
        segments: Any,
        output: int | str = 0,
        values: str = "WeightedSHAP",
        top: float | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """See `weightedshap.plots.image`."""
        return one_row.image(self.explanation, row, picture, segments, output, values, top, ax)
