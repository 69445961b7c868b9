"""The user's data and model: any container of rows as a `Table`, any model as a `Model`.

`containers` (with `pandas` and `polars`) has the functions for rows of each type, `table` adds
names, players and weights to background rows, and `groups` makes one player of several columns.
`predict` finds out how to call a model of any library, `model` wraps it, and `rows` has the
rows to explain. Only numpy and the private helpers of the package are needed here; games and
everything after them build on it.
"""

from weightedshap.inputs.containers import (
    Column,
    Container,
    Data,
    UserModel,
    concat_rows,
    container_of,
    is_frame,
    plain_column,
    take_rows,
)
from weightedshap.inputs.groups import Groups
from weightedshap.inputs.model import Model, Outputs, as_model, trained_columns
from weightedshap.inputs.predict import input_converter
from weightedshap.inputs.table import Table, as_table

__all__ = [
    "Column",
    "Container",
    "Data",
    "Groups",
    "Model",
    "Outputs",
    "Table",
    "UserModel",
    "as_model",
    "as_table",
    "concat_rows",
    "container_of",
    "input_converter",
    "is_frame",
    "plain_column",
    "take_rows",
    "trained_columns",
]
