"""Every figure under its name, and what stands on drawn Axes."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def image_of(explanation, ax=None, **choices):
    """A picture with one row of pixels, one for each feature, and a pixel of none."""
    d = explanation.values.shape[1]
    return explanation.plot.image(
        0, np.arange(d + 1.0)[None], np.arange(-1, d)[None], ax=ax, **choices
    )


SEGMENTS = np.array([[0, 0, 1], [2, 3, 4], [-1, 3, 4]])  # of an image; −1 is no feature

FIGURES = {
    "recovery": lambda explanation, ax=None: explanation.plot.recovery(ax=ax),
    "weights": lambda explanation, ax=None: explanation.plot.weights(ax=ax),
    "weight vectors": lambda explanation, ax=None: explanation.plot.weight_vectors(ax=ax),
    "bar": lambda explanation, ax=None: explanation.plot.bar(ax=ax),
    "bar of a row": lambda explanation, ax=None: explanation.plot.bar(row=0, ax=ax),
    "beeswarm": lambda explanation, ax=None: explanation.plot.beeswarm(ax=ax),
    "stability": lambda explanation, ax=None: explanation.plot.stability(
        others=[explanation], ax=ax
    ),
    "scatter": lambda explanation, ax=None: explanation.plot.scatter(ax=ax),
    "heatmap": lambda explanation, ax=None: explanation.plot.heatmap(ax=ax),
    "cohorts": lambda explanation, ax=None: explanation.plot.cohorts(
        np.arange(len(explanation)) % 2, ax=ax
    ),
    "decision": lambda explanation, ax=None: explanation.plot.decision(ax=ax),
    "compare": lambda explanation, ax=None: explanation.plot.compare(explanation.shapley, ax=ax),
    "waterfall": lambda explanation, ax=None: explanation.plot.waterfall(0, ax=ax),
    "sizes": lambda explanation, ax=None: explanation.plot.sizes(0, ax=ax),
    "image": image_of,
}


def new_axes():
    return Figure().subplots()


def render(ax):
    """The Axes after the figure was drawn to pixels, so that everything has its place."""
    FigureCanvasAgg(ax.figure).draw()
    return ax


def tick_names(ax) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def legend_names(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def error_widths(ax) -> list[float]:
    container = next(c for c in ax.containers if isinstance(c, mpl.container.ErrorbarContainer))
    return [
        np.diff(segment[:, 0])[0]
        for segment in container.lines[2][0].get_segments()
        if len(segment)
    ]


def labels_of(ax) -> str:
    below = [child.get_xlabel() + child.get_ylabel() for child in ax.child_axes]
    return " ".join([ax.get_xlabel(), ax.get_ylabel(), *below]).replace("\n", " ")
