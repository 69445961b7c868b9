"""People's data in and out: numpy arrays and pandas frames as one kind of table.

A table knows its columns, the players (groups of columns that are known or hidden together), and the
weight of each row. Hidden columns are replaced column by column with values of the same column, never
by arithmetic, so the model always sees the types it was trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from weightedshap.checks import BoolArray, FloatArray, IntArray, unknown_sentence

__all__ = ["Table", "as_table"]

Groups = Mapping[str, Sequence[Any]] | Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Table:
    """Rows that the model can be called on, and the players made of their columns.

    Attributes
    ----------
    data : ndarray (n, c) or DataFrame with c columns
    names : the c column names
    players : for each of the d players, the positions of its columns
    player_names : their d names
    weights : (n,) non-negative, summing to one
    """

    data: Any
    names: tuple[str, ...]
    players: tuple[IntArray, ...]
    player_names: tuple[str, ...]
    weights: FloatArray

    def __len__(self) -> int:
        return len(self.data)

    @property
    def d(self) -> int:
        """How many players there are."""
        return len(self.players)

    @property
    def is_frame(self) -> bool:
        """Whether rows are handed on as a DataFrame."""
        return isinstance(self.data, pd.DataFrame)

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

    def take(self, rows: slice | IntArray) -> Any:
        """Some rows, in the table's own type."""
        return self.data.iloc[rows] if self.is_frame else self.data[rows]

    def align(self, X: Any, who: str = "X") -> Any:
        """`X` with this table's columns in this table's order, in this table's type.

        A single row (a 1-D array, a Series or a dict) becomes a table of one row. Named columns are
        matched by name; unnamed ones by position.
        """
        frame = isinstance(X, (pd.DataFrame, pd.Series, Mapping))
        data = _named(_as_rows(X), self.names, who) if frame and self._is_named else _as_rows(X)
        if data.shape[1] != len(self.names):
            raise ValueError(
                f"`{who}` has {data.shape[1]} columns but the background has {len(self.names)}. "
                "Pass the columns used in training, in the same order."
            )
        if len(data) == 0:
            raise ValueError(f"`{who}` has no rows. Pass at least one row to explain.")
        return self._in_own_type(data, who)

    def mix(self, row: Any, known: BoolArray, hidden: Any) -> Any:
        """Rows that take known columns from `row` and the others from each row of `hidden`.

        Parameters
        ----------
        row : one row in the table's type
        known : (m, c) bool
        hidden : B rows in the table's type

        Returns
        -------
        m·B rows in the table's type; all B rows of the first coalition come first.
        """
        if not self.is_frame:
            mixed = np.where(known[:, None, :], row, hidden)
            return mixed.reshape(-1, known.shape[1])
        source = np.arange(1, len(hidden) + 1)  # row 0 of the pool is the explained one
        pool = pd.concat([row, hidden])
        mixed = {
            position: pool.iloc[:, position].take(np.where(known[:, [position]], 0, source).ravel()).array
            for position in range(known.shape[1])
        }
        frame = pd.DataFrame(mixed, copy=False)
        frame.columns = self.data.columns
        return frame

    def typical(self) -> Any:
        """One row of weighted means (numbers) and most frequent values (all else)."""
        if not self.is_frame:
            return _weighted_mean(self.data, self.weights)[None, :]
        cells = [_typical_value(self.data.iloc[:, c], self.weights) for c in range(len(self.names))]
        frame = pd.DataFrame({c: [cell] for c, cell in enumerate(cells)})
        for c, column in enumerate(self.data.columns):
            if not pd.api.types.is_numeric_dtype(self.data[column].dtype):
                frame[c] = frame[c].astype(self.data[column].dtype)
        frame.columns = self.data.columns
        return frame

    @property
    def _is_named(self) -> bool:
        return self.is_frame

    def _in_own_type(self, data: Any, who: str) -> Any:
        if not self.is_frame:
            return _numeric(data, who)
        if not isinstance(data, pd.DataFrame):
            data = pd.DataFrame(data, columns=self.data.columns)
        return _same_categories(data, self.data, who)


def as_table(data: Any, weights: Any = None, groups: Groups | None = None) -> Table:
    """Wrap `data` (2-D array or DataFrame) as the background table.

    Parameters
    ----------
    weights : (n,) row weights, non-negative; None for equal ones
    groups : players made of several columns, as ``{"address": ["city", "zip"]}`` or a list of lists.
        A column in no group is a player of its own.
    """
    if isinstance(data, Table):
        return data
    rows = _as_rows(data)
    if len(rows) == 0 or rows.shape[1] == 0:
        raise ValueError(
            f"The background needs at least one row and one column; got {rows.shape[0]} rows and "
            f"{rows.shape[1]} columns."
        )
    names = _column_names(rows)
    rows = rows if isinstance(rows, pd.DataFrame) else _numeric(rows, "background")
    players, player_names = _players(names, groups)
    return Table(rows, names, players, player_names, _row_weights(weights, len(rows)))


def _as_rows(data: Any) -> Any:
    """A 2-D array or a DataFrame."""
    if isinstance(data, Table):
        return data.data
    if isinstance(data, pd.DataFrame):
        return data
    if isinstance(data, pd.Series):
        return data.to_frame().T.infer_objects()
    if isinstance(data, Mapping):
        return pd.DataFrame([dict(data)])
    array = np.asarray(data)
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2:
        raise ValueError(f"A table must have two axes, rows and columns; got shape {array.shape}.")
    return array


def _numeric(data: Any, who: str) -> FloatArray:
    """Rows as C-contiguous float64."""
    try:
        return np.ascontiguousarray(np.asarray(data), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`{who}` holds values that are not numbers ({error}). Pass a pandas DataFrame, so that each "
            "column keeps its own type."
        ) from error


def _column_names(rows: Any) -> tuple[str, ...]:
    if not isinstance(rows, pd.DataFrame):
        return tuple(f"x{c}" for c in range(rows.shape[1]))
    names = tuple(str(name) for name in rows.columns)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"Column names must differ; {', '.join(map(repr, twice))} stands more than once.")
    return names


def _named(frame: pd.DataFrame, names: tuple[str, ...], who: str) -> pd.DataFrame:
    """`frame` with its columns put into the order of `names`."""
    position = {name: c for c, name in enumerate(_column_names(frame))}
    missing = [name for name in names if name not in position]
    extra = [name for name in position if name not in names]
    if missing:
        raise ValueError(
            f"`{who}` lacks {len(missing)} of the background's columns: {_listed(missing)}. "
            "Pass the columns used in training."
        )
    if extra:
        raise ValueError(
            f"`{who}` has {len(extra)} columns the background does not have: {_listed(extra)}. Drop them first."
        )
    return frame.iloc[:, [position[name] for name in names]]


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _same_categories(frame: pd.DataFrame, like: pd.DataFrame, who: str) -> pd.DataFrame:
    """Category columns of `frame` with the categories of `like`; an unseen one is an error."""
    aligned = frame.copy(deep=False)
    for column, reference in zip(frame.columns, like.columns, strict=True):
        dtype = like[reference].dtype
        if not isinstance(dtype, pd.CategoricalDtype) or frame[column].dtype == dtype:
            continue
        values = frame[column]
        unseen = values[values.notna() & ~values.isin(dtype.categories)]
        if len(unseen):
            raise ValueError(
                f"`{who}` has a category in column {str(column)!r} that the background never saw: "
                f"{unseen.iloc[0]!r}. Known: {_listed([str(c) for c in dtype.categories])}."
            )
        aligned[column] = values.astype(dtype)
    return aligned.set_axis(like.columns, axis=1)


def _weighted_mean(data: FloatArray, weights: FloatArray) -> FloatArray:
    """Column means over the values that are not missing; NaN for a column without any."""
    present = ~np.isnan(data)
    share = weights[:, None] * present
    total = share.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(present, data, 0.0).T @ weights / np.where(total > 0, total, np.nan))


def _typical_value(column: pd.Series[Any], weights: FloatArray) -> Any:
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return _weighted_mean(values[:, None], weights)[0]
    votes = pd.Series(weights).groupby(column.to_numpy(), sort=True).sum()
    return votes.idxmax() if len(votes) else None


def _row_weights(weights: Any, n: int) -> FloatArray:
    if weights is None:
        return np.full(n, 1.0 / n)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n,):
        raise ValueError(f"`background_weights` must hold one weight for each of {n} rows; got shape {array.shape}.")
    if not (np.isfinite(array).all() and (array >= 0).all() and array.sum() > 0):
        raise ValueError("`background_weights` must be finite, not negative, and not all zero.")
    return np.asarray(array / array.sum())


def _players(names: tuple[str, ...], groups: Groups | None) -> tuple[tuple[IntArray, ...], tuple[str, ...]]:
    """The players: the given groups first met in column order, and each other column by itself."""
    owner: dict[int, str] = {}
    for label, members in _labelled(groups):
        if len(members) == 0:
            raise ValueError(f"The group {label!r} has no columns. Name at least one, or leave it out.")
        for member in members:
            column = _position(member, names)
            if column in owner:
                raise ValueError(f"Column {names[column]!r} is in two groups, {owner[column]!r} and {label!r}.")
            owner[column] = label
    taken = [name for column, name in enumerate(names) if column not in owner and name in owner.values()]
    if taken:
        raise ValueError(f"The group {taken[0]!r} is named like a column outside it. Give the group another name.")
    columns: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        columns.setdefault(owner.get(column, name), []).append(column)
    return tuple(np.array(c, dtype=np.intp) for c in columns.values()), tuple(columns)


def _labelled(groups: Groups | None) -> list[tuple[str, Sequence[Any]]]:
    if groups is None:
        return []
    if isinstance(groups, Mapping):
        return [(str(label), members) for label, members in groups.items()]
    return [(" + ".join(map(str, members)), members) for members in groups]


def _position(member: Any, names: tuple[str, ...]) -> int:
    if isinstance(member, (int, np.integer)) and str(member) not in names and 0 <= member < len(names):
        return int(member)
    if str(member) not in names:
        raise ValueError(unknown_sentence("column in `groups`", member, names))
    return names.index(str(member))
