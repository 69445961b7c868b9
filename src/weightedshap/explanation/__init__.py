"""The result of an explainer: its fields, slices of it, and its form in other libraries."""

from weightedshap.explanation.result import Explanation, field_names, name_of

__all__ = ["Explanation", "field_names", "name_of"]
