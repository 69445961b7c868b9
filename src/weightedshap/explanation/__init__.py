"""The result of an explainer: its fields, slices of it, and its form in other libraries."""

from weightedshap.explanation.result import Explanation, field_names
from weightedshap.explanation.slicing import Cut
from weightedshap.explanation.summary import reasons_of

__all__ = ["Cut", "Explanation", "field_names", "reasons_of"]
