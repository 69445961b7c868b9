"""People's data in and out: numpy arrays, pandas and polars frames as one kind of table.

A table knows its columns, the players (groups of columns that are known or hidden together), and the
weight of each row. Hidden columns are replaced column by column with values of the same column, never
by arithmetic, so the model always sees the types it was trained on.
"""

from weightedshap.tables.groups import Groups
from weightedshap.tables.kinds import Column, column_of, copy_of, kind_of, part_of
from weightedshap.tables.table import Table, as_table

__all__ = ["Table", "Groups", "Column", "as_table", "column_of", "copy_of", "kind_of", "part_of"]
