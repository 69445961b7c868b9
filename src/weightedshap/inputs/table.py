"""The table: rows, players, weights."""

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
    offered,
    stored_array,
    unmasked,
)
from weightedshap._format import plural
from weightedshap._lazy import pd
from weightedshap.inputs.containers import (
    ARRAYS,
    IN_ORDER,
    Column,
    Data,
    Kind,
    as_rows,
    is_frame,
    kind_of,
    numeric,
    part_of,
)
from weightedshap.inputs.groups import Groups, group_of, listed, players_of, repeated


@dataclass(frozen=True)
class Table:
    """Rows that the model can be called on, and the players made of their columns."""

    data: Data  # n rows, c columns
    names: tuple[str, ...]  # of the c columns
    players: tuple[IntArray, ...]  # for each of the d players, the positions of its columns
    player_names: tuple[str, ...]  # their d names
    weights: FloatArray  # (n,) non-negative, summing to one
    notes: tuple[
        str, ...
    ] = ()  # sentences about the players that the reader of a result should know
    trained: tuple[
        str, ...
    ] = ()  # names of an array's columns in the model's training, where it knows them

    @classmethod
    def restored(cls, content: Mapping[str, Any]) -> Self:
        """The table that a file holds, field by field; a ValueError where they do not fit
        together."""
        table = cls(**content)
        n, c = table.data.shape
        named = (table.names, table.player_names, table.notes, table.trained)
        own = table.kind.names(table.data)
        text = all(
            isinstance(names, tuple) and all(isinstance(name, str) for name in names)
            for names in named
        )
        if not text or len(set(table.names)) != c or own not in (None, table.names):
            raise ValueError("names of the background's columns are not those of its rows.")
        columns = np.concatenate(table.players)
        partition = columns.dtype.kind == "i" and sorted(columns.tolist()) == list(range(c))
        if not partition or len(table.player_names) != table.d:
            raise ValueError("players of the background are not made of its columns.")
        if (
            n == 0
            or (stored_array("weights", table.weights, (n,)) < 0).any()
            or abs(table.weights.sum() - 1) > 1e-9
        ):
            raise ValueError("weights of the background are negative, or do not sum to one.")
        _ = table._categories
        return table

    def __len__(self) -> int:
        return len(self.data)

    def __str__(self) -> str:
        return f"{plural(len(self), 'background row')} × {plural(self.d, 'feature')}"

    @property
    def d(self) -> int:
        """How many players there are."""
        return len(self.players)

    @property
    def kind(self) -> Kind[Data]:
        """What rows of this type can do."""
        return kind_of(self.data)

    @property
    def player_of_column(self) -> IntArray:
        """(c,) the player that each column belongs to."""
        owner = np.empty(len(self.names), dtype=np.intp)
        for player, columns in enumerate(self.players):
            owner[columns] = player
        return owner

    def known_columns(self, coalitions: BoolArray) -> BoolArray:
        """(m, c): which columns each coalition (m, d) of players knows."""
        return coalitions[:, self.player_of_column]

    def take(self, rows: slice | IntArray) -> Data:
        """Some rows, in the table's own type."""
        return part_of(self.data, rows)

    def some(self, rows: IntArray) -> Self:
        """The table of some of its rows."""
        weights = self.weights[rows]
        if weights.sum() <= 0:
            raise ValueError(
                "The rows taken from the background have no weight. Pass more rows with positive"
                " weight."
            )
        return replace(self, data=self.take(rows), weights=weights / weights.sum())

    def align(self, X: Data, who: str = "X") -> Data:
        """Return `X` with this table's columns in this table's order and type.

        Named columns are matched by name if the background has names too, or the model has the
        same; others by position. No number is rounded: a column is in the wider of its own dtype
        and the background's. Rows that come in another form (a list or an array for a frame, a
        dictionary, another library's frame) may have lost the dtypes of their columns on the way:
        these take the background's integers and booleans where those hold them.
        """
        in_frame = self.kind is not ARRAYS
        rows = as_rows(X)
        if in_frame and isinstance(rows, np.ndarray) and rows.dtype.kind in "OUS":
            rows = pd.DataFrame(rows).infer_objects()
            rows.columns = self.names if rows.shape[1] == len(self.names) else rows.columns
        kind = kind_of(rows)
        names = kind.names(rows)
        wanted = self.names if in_frame else self.trained
        if names and (in_frame or sorted(names) == sorted(wanted)):
            rows = rows if names == wanted else kind.select(rows, _positions(names, wanted, who))
        elif rows.shape[1] != len(self.names):
            widths = f"{rows.shape[1]} columns but the background has {len(self.names)}"
            raise ValueError(f"`{who}` has {widths}. {IN_ORDER}")
        if len(rows) == 0:
            raise ValueError(f"`{who}` has no rows. Pass at least one row to explain.")
        if kind is self.kind:
            return kind.like(rows, self.data, who, is_frame(X))
        if isinstance(rows, np.ndarray):
            rows = numeric(rows, who)
        positions = range(len(self.names))
        columns = [kind.column(rows, c, who) for c in positions]
        dtypes = [kind.dtype(rows, c) for c in positions]
        return self.kind.convert(columns, dtypes, self.data, who)

    def mix_each(
        self, rows: Data, which: Positions, known: BoolArray, hidden: Data, whose: Positions
    ) -> Data:
        """Return ``rows[which]`` where columns (…, c) are known, else ``hidden[whose]``; all
        broadcast.

        Cells stay exactly what they are: where dtypes differ, the mixture is in one that holds
        both.
        """
        return self.kind.mix(rows, which, known, hidden, whose)

    def typical(self) -> Data:
        """One row of weighted means (numbers) and most frequent values (all else)."""
        is_boolean = [self.kind.is_boolean(self.data, c) for c in range(len(self.names))]
        cells = [
            _typical(self.column(c), self.weights, counted) for c, counted in enumerate(is_boolean)
        ]
        return self.kind.build(cells, self.data, "background")

    def unseen(self, rows: Data) -> tuple[str, ...]:
        """A sentence for each column whose categories in `rows` the background never saw."""
        return tuple(
            f"Column {self.names[c]!r} holds categories that the background never saw:"
            f" {listed(found)}."
            for c, seen in self._categories.items()
            if (found := sorted(_texts(self.kind.column(rows, c, "X")) - seen))
        )

    def column(self, c: int) -> Column:
        """Column c in the plain form: floats with NaN, or objects with None."""
        return self.kind.column(self.data, c, "background")

    @cached_property
    def _categories(self) -> dict[int, set[str]]:
        columns = enumerate(map(self.column, range(len(self.names))))
        return {c: _texts(column) for c, column in columns if column.dtype == object}


def as_table(
    data: Data,
    weights: npt.ArrayLike | None = None,
    groups: Groups | None = None,
    order: Sequence[str] | None = None,
) -> Table:
    """Wrap `data` as the background table; `groups` are as ``{"address": ["city", "zip"]}``,
    `order` is of training."""
    if isinstance(data, Table):
        return data
    rows = as_rows(data)
    # Of the centres of shap.kmeans.
    if weights is None and type(data).__module__.startswith("shap."):
        weights = offered(data, "weights").get("weights")
    n, width = rows.shape
    if n == 0 or width == 0:
        raise ValueError(
            f"The background needs at least one row and one column; got {n} rows and {width}"
            " columns."
        )
    if isinstance(rows, np.ndarray):
        rows = numeric(rows, "background")
    kind = kind_of(rows)
    given = kind.names(rows)
    names = given or tuple(f"x{c}" for c in range(width))
    _refuse_repeated(names)
    group = group_of(names, groups)
    alone = [name for name in names if name not in group]
    notes = (
        (f"Columns in no group are players of their own: {listed(alone)}.",)
        if groups and alone
        else ()
    )
    if order is not None and tuple(order) != names and sorted(order) == sorted(names):
        rows = kind.select(rows, [names.index(name) for name in order])
        names = tuple(order)
    players = players_of(group.get(name, name) for name in names)
    trained = tuple(order or ()) if given is None else ()
    table = Table(rows, names, *players, _row_weights(weights, n), notes, trained)
    _ = table._categories  # reads every column, so that one of the wrong type is refused here
    for c in set(range(width)) - set(table._categories):
        if (np.abs((column := table.column(c))[np.isfinite(column)]) > LARGEST).any():
            said = (
                f"Column {names[c]!r} of the background holds numbers beyond {LARGEST:.0e}, whose"
                " squares overflow"
            )
            raise ValueError(f"{said}. Use a larger unit.")
    return table


def _refuse_repeated(names: tuple[str, ...]) -> None:
    if twice := repeated(names):
        raise ValueError(
            f"Column names must differ; {', '.join(map(repr, twice))} stands more than once."
        )


def _positions(given: tuple[str, ...], names: tuple[str, ...], who: str) -> list[int]:
    """Where each of `names` stands in `given`."""
    _refuse_repeated(given)
    position = {name: c for c, name in enumerate(given)}
    if missing := [name for name in names if name not in position]:
        lacks = f"lacks {len(missing)} of the background's columns: {listed(missing)}"
        raise ValueError(f"`{who}` {lacks}. Pass the columns used in training.")
    if extra := [name for name in position if name not in names]:
        has = f"has {len(extra)} columns the background does not have: {listed(extra)}"
        raise ValueError(f"`{who}` {has}. Drop them first.")
    return [position[name] for name in names]


def _texts(column: Column) -> set[str]:
    return {str(value) for value in column if value is not None}


def _typical(values: Column, weights: FloatArray, counted: bool) -> Column:
    """(1,) the weighted mean, or where counted the value with the most weight, of equals the first
    in the alphabet."""
    present = ~np.asarray(pd.isna(values))
    cell = None
    given = values[present]
    weights = weights[present]
    if counted or values.dtype == object:
        votes: dict[object, float] = {}
        for value, weight in zip(given.tolist(), weights.tolist(), strict=True):
            votes[value] = votes.get(value, 0.0) + weight
        cell = min(votes, key=lambda value: (-votes[value], str(value)), default=None)
    elif weights.sum() > 0:
        cell = given @ weights / weights.sum()
    return np.full_like(values[:1], cell)  # None is NaN among numbers


def _row_weights(weights: npt.ArrayLike | None, n: int) -> FloatArray:
    try:
        array = np.ones(n) if weights is None else np.asarray(unmasked(weights), dtype=np.float64)
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
