"""`Explanation`, the result of an explainer: its fields, slices, files and exports.

`result` defines the class; the other modules contain its methods.
`weightedshap.explainer` builds it; plots, reports, evaluations and long runs read it.
"""

from weightedshap.explanation.result import Explanation, field_names
from weightedshap.explanation.slicing import Selector

__all__ = ["Explanation", "Selector", "field_names"]
