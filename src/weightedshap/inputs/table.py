"""The background: rows with names, players and weights, and how other rows are aligned with it.

`as_table` builds a `Table` from the user's background, and every game is fitted to one. Rows to be
explained are aligned with it, so that games and models always see the same columns in one order.
What depends on the type of the rows is left to `containers`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from weightedshap._checks import (
    LARGEST,
    BoolArray,
    FloatArray,
    IntArray,
    Positions,
    check_array,
    fill_masked,
    optional_attrs,
)
from weightedshap._format import plural
from weightedshap._lazy import pd
from weightedshap.inputs.containers import (
    ARRAYS,
    IN_ORDER,
    Column,
    Container,
    Data,
    as_numeric,
    as_rows,
    container_of,
    is_frame,
    take_rows,
)
from weightedshap.inputs.groups import (
    Groups,
    check_unique,
    comma_list,
    group_by_column,
    split_into_players,
)


@dataclass(frozen=True)
class Table:
    """The background data: n rows with weights, and c columns that are grouped into d players.

    Saved explainers store these fields by name.
    """

    data: Data
    # The names of the c columns.
    names: tuple[str, ...]
    # For each of the d players, the positions of its columns.
    players: tuple[IntArray, ...]
    # The names of the d players.
    player_names: tuple[str, ...]
    # (n,) non-negative, summing to one.
    weights: FloatArray
    # Sentences about the players that the reader of a result should know.
    notes: tuple[str, ...] = ()
    # For an array: the names of its columns in training, if the model has stored them.
    trained: tuple[str, ...] = ()

    @classmethod
    def from_state(cls, content: Mapping[str, Any]) -> Self:
        """Build a table from its fields as read from a file, and check that they fit together.

        Raise a ValueError that says which fields do not fit.
        """
        table = cls(**content)
        n, c = table.data.shape
        names_fields = (table.names, table.player_names, table.notes, table.trained)
        are_texts = all(
            isinstance(names, tuple) and all(isinstance(name, str) for name in names)
            for names in names_fields
        )
        own_names = table.container.names(table.data)
        if not are_texts or len(set(table.names)) != c or own_names not in (None, table.names):
            raise ValueError("names of the background's columns are not those of its rows.")

        columns = np.concatenate(table.players)
        is_partition = columns.dtype.kind == "i" and sorted(columns.tolist()) == list(range(c))
        if not is_partition or len(table.player_names) != table.d:
            raise ValueError("players of the background are not made of its columns.")
        if (
            n == 0
            or (check_array("weights", table.weights, (n,)) < 0).any()
            or abs(table.weights.sum() - 1) > 1e-9
        ):
            raise ValueError("weights of the background are negative, or do not sum to one.")
        # Reads every column, so that one of a wrong type is refused here.
        _ = table._categories
        return table

    def __len__(self) -> int:
        return len(self.data)

    def __str__(self) -> str:
        return f"{plural(len(self), 'background row')} × {plural(self.d, 'feature')}"

    @property
    def d(self) -> int:
        """The number of players d."""
        return len(self.players)

    @property
    def container(self) -> Container[Data]:
        """The `Container` for rows of the background's type."""
        return container_of(self.data)

    @cached_property
    def player_of_column(self) -> IntArray:
        """The index (c,) of the player that each column belongs to."""
        owner = np.empty(len(self.names), dtype=np.intp)
        for player, columns in enumerate(self.players):
            owner[columns] = player
        return owner

    def take(self, rows: slice | IntArray) -> Data:
        """Return the given rows of the background, in the same container."""
        return take_rows(self.data, rows)

    def subset(self, rows: IntArray) -> Self:
        """Return a background table of the given rows only, with weights rescaled to sum to one."""
        weights = self.weights[rows]
        if weights.sum() <= 0:
            raise ValueError(
                "The rows taken from the background have no weight. Pass more rows with positive"
                " weight."
            )
        return replace(self, data=self.take(rows), weights=weights / weights.sum())

    def align(self, X: Data, who: str = "X") -> Data:
        """Return rows with the columns of the background, in the same order and the same container.

        Named columns are matched by name if the background has names too, or the model has the same
        names; others by position. No number is rounded: a column gets the wider of its own dtype
        and the background's. Rows of another type (a list or an array for a frame, a dictionary,
        another library's frame) may have lost the dtypes of their columns on the way: their columns
        get the background's integers and booleans if the values fit. `who` names the rows in an
        error.
        """
        if self._is_aligned(X):
            return X.copy()
        rows = self._order_columns(X, who)
        if len(rows) == 0:
            raise ValueError(f"`{who}` has no rows. Pass at least one row to explain.")

        container = container_of(rows)
        if container is self.container:
            return container.match_dtypes(rows, self.data, who, is_frame(X))
        if isinstance(rows, np.ndarray):
            rows = as_numeric(rows, who)
        positions = range(len(self.names))
        columns = [container.column(rows, c, who) for c in positions]
        dtypes = [container.dtype(rows, c) for c in positions]
        return self.container.convert_columns(columns, dtypes, self.data, who)

    def _order_columns(self, X: Data, who: str) -> Data:
        """Return the rows of X with their columns in the background's order.

        They are not converted to the background's container yet; an array of text may become a
        pandas frame.

        `who` names the rows in an error.
        """
        rows = as_rows(X)
        in_frame = self.container is not ARRAYS
        if in_frame and isinstance(rows, np.ndarray) and rows.dtype.kind in "OUS":
            # An array of text, or of text and numbers: each column may have a type of its own.
            rows = pd.DataFrame(rows).infer_objects()
            if rows.shape[1] == len(self.names):
                rows.columns = self.names
        container = container_of(rows)
        names = container.names(rows)
        wanted = self.names if in_frame else self.trained
        if names and (in_frame or sorted(names) == sorted(wanted)):
            if names == wanted:
                return rows
            return container.select(rows, _positions(names, wanted, who))
        if rows.shape[1] != len(self.names):
            raise ValueError(
                f"`{who}` has {rows.shape[1]} columns but the background has {len(self.names)}."
                f" {IN_ORDER}"
            )
        return rows

    def _is_aligned(self, X: Data) -> bool:
        """Return whether X is a pandas frame with exactly the background's columns and dtypes.

        Such a frame needs no change. This is tested first because rows often come one by one, and
        checking every column takes longer than explaining the row. The answer is False if a column
        has integers, which may be too large, or objects, which may be anything.
        """
        return (
            isinstance(X, pd.DataFrame)
            and isinstance(self.data, pd.DataFrame)
            and len(X) > 0
            and self._checked_dtypes is not None
            and X.columns.equals(self.data.columns)
            and list(X.dtypes) == self._checked_dtypes
        )

    @cached_property
    def _checked_dtypes(self) -> list[Any] | None:
        """The dtypes of a pandas background; None if every value of some column must be checked.

        That is so in columns of integers or objects.
        """
        types = pd.api.types
        dtypes = list(self.data.dtypes)
        if any(types.is_object_dtype(one) or types.is_integer_dtype(one) for one in dtypes):
            return None
        return dtypes

    def mix(
        self, rows: Data, which: Positions, known: BoolArray, hidden: Data, whose: Positions
    ) -> Data:
        """Return mixed rows: cells of ``rows[which]`` in known columns, else of ``hidden[whose]``.

        `known` (…, c), `which` and `whose` broadcast against each other; the result has m rows.
        No cell is rounded: where dtypes differ, the mixed rows have a dtype that can represent
        the numbers of both.
        """
        return self.container.mix(rows, which, known, hidden, whose)

    def typical_row(self) -> Data:
        """Return one row of weighted means (numbers) and most frequent values (other columns)."""
        cells = [
            _typical_cell(self.column(c), self.weights, self.container.is_boolean(self.data, c))
            for c in range(len(self.names))
        ]
        return self.container.from_columns(cells, self.data, "background")

    def unseen_category_notes(self, rows: Data) -> tuple[str, ...]:
        """Return a sentence for each column with categories that are not in the background."""
        notes = []
        for c, seen in self._categories.items():
            unseen = sorted(_category_names(self.container.column(rows, c, "X")) - seen)
            if unseen:
                notes.append(
                    f"Column {self.names[c]!r} holds categories that the background never saw:"
                    f" {comma_list(unseen)}."
                )
        return tuple(notes)

    def column(self, c: int) -> Column:
        """Return column c as floats, or objects if categorical; missing values are NaN or None."""
        return self.container.column(self.data, c, "background")

    @cached_property
    def _categories(self) -> dict[int, set[str]]:
        """The categories, as text, of each column that is not numeric, by column position."""
        columns = enumerate(map(self.column, range(len(self.names))))
        return {c: _category_names(column) for c, column in columns if column.dtype == object}


def as_table(
    data: Data,
    weights: npt.ArrayLike | None = None,
    groups: Groups | None = None,
    order: Sequence[str] | None = None,
) -> Table:
    """Build the background `Table` from the user's data.

    `weights` (n,) are equal by default. `groups` makes one player of several columns, as
    ``{"address": ["city", "zip"]}``. `order` has the column names in the order in which the model
    was trained: columns of a frame are put into this order, and columns of an array are assumed to
    be in it.
    """
    if isinstance(data, Table):
        return data
    rows = as_rows(data)
    # The centres of shap.kmeans come with weights.
    if weights is None and type(data).__module__.startswith("shap."):
        weights = optional_attrs(data, "weights").get("weights")
    n, width = rows.shape
    if n == 0 or width == 0:
        raise ValueError(
            f"The background needs at least one row and one column; got {n} rows and {width}"
            " columns."
        )
    if isinstance(rows, np.ndarray):
        rows = as_numeric(rows, "background")

    container = container_of(rows)
    own_names = container.names(rows)
    names = own_names or tuple(f"x{c}" for c in range(width))
    check_unique(names)
    group = group_by_column(names, groups)
    single_columns = [name for name in names if name not in group]
    notes: tuple[str, ...] = ()
    if groups and single_columns:
        notes = (f"Columns in no group are players of their own: {comma_list(single_columns)}.",)
    if order is not None and tuple(order) != names and sorted(order) == sorted(names):
        rows = container.select(rows, [names.index(name) for name in order])
        names = tuple(order)
    players, player_names = split_into_players(group.get(name, name) for name in names)
    trained = tuple(order or ()) if own_names is None else ()

    row_weights = _row_weights(weights, n)
    table = Table(rows, names, players, player_names, row_weights, notes, trained)
    # Reads every column, so that one of a wrong type is refused here.
    _ = table._categories
    for c in set(range(width)) - set(table._categories):
        column = table.column(c)
        if (np.abs(column[np.isfinite(column)]) > LARGEST).any():
            raise ValueError(
                f"Column {names[c]!r} of the background holds numbers beyond {LARGEST:.0e}, whose"
                " squares overflow. Use a larger unit."
            )
    return table


def _positions(names: tuple[str, ...], wanted: tuple[str, ...], who: str) -> list[int]:
    """Return the position of each of the `wanted` columns among `names`.

    Raise an error that lists the missing columns, or those that the background does not have.
    `who` names the rows in an error.
    """
    check_unique(names)
    position = {name: c for c, name in enumerate(names)}
    missing = [name for name in wanted if name not in position]
    if missing:
        raise ValueError(
            f"`{who}` lacks {len(missing)} of the background's columns: {comma_list(missing)}."
            " Pass the columns used in training."
        )
    extra = [name for name in position if name not in wanted]
    if extra:
        raise ValueError(
            f"`{who}` has {len(extra)} columns the background does not have: {comma_list(extra)}."
            " Drop them first."
        )
    return [position[name] for name in wanted]


def _category_names(column: Column) -> set[str]:
    """Return the distinct categories of a column as text, without missing values."""
    return {str(value) for value in column if value is not None}


def _typical_cell(values: Column, weights: FloatArray, is_boolean: bool) -> Column:
    """Return the typical value (1,) of a column: the weighted mean, or the most frequent category.

    Booleans count as categories, and frequencies are weighted. Ties go to the first value in
    alphabetical order. If all values are missing, so is the result.
    """
    is_present = ~np.asarray(pd.isna(values))
    present = values[is_present]
    weights = weights[is_present]
    cell = None
    if is_boolean or values.dtype == object:
        weight_of: dict[object, float] = {}
        for value, weight in zip(present.tolist(), weights.tolist(), strict=True):
            weight_of[value] = weight_of.get(value, 0.0) + weight
        cell = min(weight_of, key=lambda value: (-weight_of[value], str(value)), default=None)
    elif weights.sum() > 0:
        cell = present @ weights / weights.sum()
    # In an array of numbers, numpy stores None as NaN.
    return np.full_like(values[:1], cell)


def _row_weights(weights: npt.ArrayLike | None, n: int) -> FloatArray:
    """Check the option `background_weights`; return it as n weights that sum to one."""
    try:
        array = np.ones(n) if weights is None else np.asarray(fill_masked(weights), np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`background_weights` must be numbers, one for each row ({error})."
        ) from error
    if array.shape != (n,):
        raise ValueError(
            f"`background_weights` must hold one weight for each of {n} rows; got shape"
            f" {array.shape}."
        )
    if not (np.isfinite(array).all() and (array >= 0).all() and array.sum() > 0):
        raise ValueError("`background_weights` must be finite, not negative, and not all zero.")
    return np.asarray(array / array.sum())
