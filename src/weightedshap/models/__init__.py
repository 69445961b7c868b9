"""People's models in: anything → a function from rows to numbers of shape (n,) or (n, k)."""

from weightedshap.models.calls import feeding, trained_columns
from weightedshap.models.model import Model, Outputs, as_model

__all__ = ["Model", "Outputs", "as_model", "feeding", "trained_columns"]
