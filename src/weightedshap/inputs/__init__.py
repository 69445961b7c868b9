"""People's tables and models in: arrays and frames as one kind of table, any model as a function of
rows."""

from weightedshap.inputs.containers import (
    Column,
    Data,
    Kind,
    UserModel,
    column_of,
    is_frame,
    join_of,
    kind_of,
    part_of,
)
from weightedshap.inputs.groups import Groups
from weightedshap.inputs.model import Model, Outputs, as_model, trained_columns
from weightedshap.inputs.predict import feeding
from weightedshap.inputs.table import Table, as_table

__all__ = [
    "Column",
    "Data",
    "Groups",
    "Kind",
    "Model",
    "Outputs",
    "Table",
    "UserModel",
    "as_model",
    "as_table",
]
__all__ += ["column_of", "feeding", "is_frame", "join_of", "kind_of", "part_of", "trained_columns"]
