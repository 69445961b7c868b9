"""Explain Arrow batches: one result row for each input row, in a schema known in advance.

`Explainer.stream`, the command line (`weightedshap.jobs.run`) and the engines of clusters
(`weightedshap.jobs.engines`) use a `Stream`. A row gets the same numbers however the rows are split
into batches: its random draws are seeded by its key, a weight that all rows share is chosen on the
background before the first row, and no row affects another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from weightedshap._checks import FloatArray, check_choice, require, unknown_name_message
from weightedshap._format import quote
from weightedshap.explainer import Explainer
from weightedshap.explanation import Explanation
from weightedshap.inputs import Data, Table, is_frame
from weightedshap.inputs.containers import ARRAYS, Array, check_exact, integer_magnitudes
from weightedshap.inputs.groups import duplicates
from weightedshap.inputs.rows import Rows
from weightedshap.jobs.text_columns import BOOLEANS, INTEGERS, NUMBERS, TEXT, is_text, parse_as
from weightedshap.selection import SHARED_RULES

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa = require("pyarrow", "stream")
    pc = require("pyarrow.compute", "stream")

SCALARS = ("prediction", "base_value", "weight", "score", "shapley_score")
# The values that can be included → the names of their columns.
VECTORS = {
    "shapley": "shapley",
    "errors": "error",
    "contributions": "delta",
}
LAYOUTS = ("columns", "lists")
MAX_CELLS = 2**16  # explained at once, so that memory does not grow with the batch
MAX_SHARED_ROWS = 500  # of the background, on which a shared weight is chosen
# Errors for which no row is to blame.
SYSTEM_ERRORS = (MemoryError, OSError, ImportError)
NO_BATCHES = "`batches` must be a Table of Arrow, or RecordBatches one after the other"
CONVERT_ADVICE = (
    "Of a pandas frame pass `pyarrow.Table.from_pandas(frame)`, of a polars frame"
    " `frame.to_arrow()`."
)

# Called with the position of a row that cannot be explained, the reason, and the row.
OnBadRow = Callable[[int, str, "pa.RecordBatch"], None]


class RowError(ValueError):
    """Raised when a row cannot be explained; `args` are its position and the reason."""

    def __str__(self) -> str:
        return f"Row {self.args[0]} (counted from 0): {self.args[1]}"


class CallError(ValueError):
    """Raised when even a background row cannot be explained: no incoming row is at fault."""


class ModelExitError(ValueError):
    """Raised when the model ends the program; `args` are the row at fault and the exit code.

    The row is given by its position, or None if only several rows together cause the exit. This is
    an ordinary error, because engines end their workers for a SystemExit.
    """

    def __str__(self) -> str:
        row, code = self.args
        place = "" if row is None else f"Row {row} (counted from 0): "
        return (
            f"{place}the model ended the program (exit with {code!r}) instead of returning numbers."
        )


class ExplainedRows(NamedTuple):
    """Consecutive rows of a stream, with their explanation."""

    start: int  # the position of the first row in the stream
    rows: pa.RecordBatch
    explanation: Explanation


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """The options of a `Stream`: which columns it reads, and which ones it returns."""

    # The feature columns, in the background's order; None if they have the background's names.
    columns: tuple[str, ...] | None = None
    # The columns that identify a row: they are returned, and seed the draws of a sampled game.
    key: tuple[str, ...] = ()
    include: tuple[str, ...] = ()  # names of `VECTORS`, in that order
    layout: str = "columns"  # one column for each feature; "lists" for one column of lists
    unseen: str = "error"  # or "pass": what to do with categories not in the background
    # The positions of the weights that all rows share, by output; None where not yet chosen.
    shared_index: tuple[int, ...] | None = None

    @classmethod
    def build(
        cls,
        columns: Sequence[str] | None = None,
        key: str | Sequence[str] | None = None,
        include: str | Sequence[str] = (),
        *,
        layout: str = "columns",
        unseen: str = "error",
    ) -> Self:
        """Build the options from the arguments of `Explainer.stream`, after checking them."""
        included = {
            check_choice("thing to include", name, VECTORS)
            for name in _as_names("include", include)
        }
        check_choice("layout", layout, LAYOUTS)
        check_choice("way with unseen categories", unseen, ("error", "pass"))
        return cls(
            columns=None if columns is None else _as_distinct_names("columns", columns),
            key=() if key is None else _as_distinct_names("key", key),
            include=tuple(name for name in VECTORS if name in included),
            layout=layout,
            unseen=unseen,
        )


@dataclass(frozen=True)
class Stream:
    """An explainer for rows that arrive in Arrow batches."""

    explainer: Explainer
    options: StreamOptions

    @classmethod
    def build(cls, explainer: Explainer, options: StreamOptions) -> Self:
        """Build a stream; if all rows share a weight, choose it on the background.

        Raise an error if a game is sampled and no key is given to seed the draws of each row.
        """
        if not options.key and is_sampled(explainer):
            raise ValueError(
                "The game is sampled, and each row's draws come from its key, so that batches do"
                " not matter. Pass `key=`, the name of a column that identifies the rows."
            )
        keeps_delta = "contributions" in options.include
        explainer = explainer.but(keep_contributions=keeps_delta, progress=False)
        if explainer.problem.select in SHARED_RULES:
            shared_index = options.shared_index or choose_shared_index(explainer)
            options = replace(options, shared_index=shared_index)
            problem = replace(explainer.problem, shared_index=shared_index)
            explainer = Explainer._from_fitted(explainer.setup, problem)
        return cls(explainer, options)

    @property
    def background(self) -> Table:
        """The background data of the explainer."""
        return self.explainer.background

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the feature columns in a batch, in the order of the background."""
        table = self.background
        names = self.options.columns or table.trained or table.names
        if len(names) != len(table.names):
            raise ValueError(
                f"`columns` names {len(names)} columns but the background has {len(table.names)}."
            )
        return names

    @cached_property
    def output_suffixes(self) -> tuple[str, ...]:
        """The suffix of the column names for each output; ("",) if there is no output axis."""
        game = self.explainer.game
        row = Rows(self.background.take(slice(0, 1)))
        if not game.has_output_axis(row):
            return ("",)
        names = game.output_names or [f"output {o}" for o in range(row.ask(game).shape[1])]
        return tuple(f"_{name}" for name in names)

    def schema(self, incoming: pa.Schema) -> pa.Schema:
        """Return the Arrow schema of the results, for batches of the schema `incoming`."""
        for name in (*self.columns, *self.options.key):
            times = incoming.names.count(name)
            if times == 0:
                raise ValueError(unknown_name_message("column", name, incoming.names))
            if times > 1:
                raise ValueError(
                    f"The rows have {times} columns called {name!r}. Give each a name of its own."
                )

        fields = [incoming.field(name) for name in self.options.key]
        for suffix in self.output_suffixes:
            fields += self._fields_of_output(suffix)

        names = [field.name for field in fields]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(
                f"Two columns would be called {twice[0]!r}. Rename the key, or pass layout='lists'."
            )
        return pa.schema(fields)

    def _fields_of_output(self, suffix: str) -> list[pa.Field]:
        """Return the schema fields for the results of one output, named with its suffix."""
        number = pa.float64()
        d = self.background.d
        fields = [
            pa.field(f"{name}{suffix}", pa.string() if name == "weight" else number)
            for name in SCALARS
        ]
        for name in ("phi", *(VECTORS[included] for included in self.options.include)):
            if name == "delta":
                fields.append(pa.field(f"{name}{suffix}", pa.list_(number, d * d)))
            elif self.options.layout == "lists":
                fields.append(pa.field(f"{name}{suffix}", pa.list_(number, d)))
            else:
                fields += [
                    pa.field(f"{name}_{feature}{suffix}", number)
                    for feature in self.background.player_names
                ]
        return fields

    def __call__(self, batches: pa.Table | Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Explain Arrow batches; raise a `RowError` for a row that cannot be explained."""
        if isinstance(batches, pa.Table):
            batches = batches.to_batches()
        if isinstance(batches, pa.RecordBatch):
            batches = [batches]
        if is_frame(batches) or not isinstance(batches, Iterable):
            raise TypeError(f"{NO_BATCHES}; got a {type(batches).__name__}. {CONVERT_ADVICE}")
        return self._explain_batches(batches)

    def _explain_batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Explain batches one after another; yield the results as Arrow batches."""
        start = 0
        for batch in batches:
            if not isinstance(batch, pa.RecordBatch):
                raise TypeError(
                    f"{NO_BATCHES}; among them is a {type(batch).__name__}. {CONVERT_ADVICE}"
                )
            schema = self.schema(batch.schema)
            for _, rows, explanation in self.explain_batch(batch, start):
                yield self.to_batch(rows, explanation, schema)
            start += batch.num_rows

    def explain_batch(
        self, batch: pa.RecordBatch, start: int = 0, on_bad_row: OnBadRow | None = None
    ) -> Iterator[ExplainedRows]:
        """Explain a batch; yield the explained rows a few at a time, with their explanation.

        `start` is the position in the stream of the first row of the batch. Rows that cannot be
        explained are left out and passed to `on_bad_row`; if that is None, the first one is a
        `RowError`.
        """
        size = max(1, MAX_CELLS // self.background.d)
        for offset in range(0, batch.num_rows, size):
            yield from self._bisect_failures(batch.slice(offset, size), start + offset, on_bad_row)

    def _bisect_failures(
        self, rows: pa.RecordBatch, start: int, on_bad_row: OnBadRow | None
    ) -> Iterator[ExplainedRows]:
        """Yield the explained rows; on an error, try each half, to leave out only bad rows."""
        try:
            explanation = self.explain(rows)
        except SystemExit as error:
            raise ModelExitError(self._find_exit(rows, start), error.code) from error
        except SYSTEM_ERRORS:
            raise
        except Exception as error:
            half = rows.num_rows // 2
            if half:
                yield from self._bisect_failures(rows.slice(0, half), start, on_bad_row)
                yield from self._bisect_failures(rows.slice(half), start + half, on_bad_row)
            elif self._background_error is not None:
                raise CallError(self._background_error) from error
            elif on_bad_row is None:
                raise RowError(start, str(error)) from error
            else:
                on_bad_row(start, str(error), rows)
        else:
            yield ExplainedRows(start, rows, explanation)

    def _find_exit(self, rows: pa.RecordBatch, start: int) -> int | None:
        """Return the position of a row that makes the model exit; None if no single row does."""
        while rows.num_rows > 1:
            half = rows.num_rows // 2
            if self._exits(rows.slice(0, half)):
                rows = rows.slice(0, half)
            elif self._exits(rows.slice(half)):
                rows = rows.slice(half)
                start += half
            else:
                return None
        return start

    def _exits(self, rows: pa.RecordBatch) -> bool:
        """Return whether the model ends the program when these rows are explained."""
        try:
            self.explain(rows)
        except SystemExit:
            return True
        except Exception:
            return False
        return False

    @cached_property
    def _background_error(self) -> str | None:
        """The message of the error that explaining a background row raises; None if it succeeds.

        If there is an error, the fault is not in the incoming rows.
        """
        try:
            self.explainer(self.background.take(slice(0, 1)), [0])
        except SYSTEM_ERRORS:
            raise
        except Exception as error:
            return str(error)
        return None

    def explain(self, rows: pa.RecordBatch) -> Explanation:
        """Return the explanation of the rows of an Arrow batch."""
        row_ids = self.row_ids(rows) if self.options.key else None
        return self.explainer(self.read_features(rows), row_ids)

    def read_features(self, rows: pa.RecordBatch) -> Data:
        """Return the features of `rows`, converted to the column types of the background.

        Text, for example from a CSV file, is converted to numbers or booleans if the
        background column contains such values.
        """
        columns = [
            _read_column(rows.column(name), content, name)
            for name, content in zip(self.columns, self._column_types, strict=True)
        ]
        frame = pa.table(columns, names=list(self.columns)).to_pandas()
        frame.columns = list(self.background.names)
        aligned = self.background.align(frame)
        if self.options.unseen == "error":
            self._check_categories(rows)
        return aligned

    def _check_categories(self, rows: pa.RecordBatch) -> None:
        """Raise an error if a row has a category that the background does not contain."""
        for name, categories in self._known_categories.items():
            values = rows.column(name).unique().to_pylist()
            unseen = [value for value in values if value not in categories]
            if unseen:
                raise ValueError(
                    f"Column {name!r} holds a category that the background never saw:"
                    f" {quote(unseen[0])}. Pass unseen='pass' (--unseen pass) to hand it to the"
                    " model."
                )

    def row_ids(self, rows: pa.RecordBatch) -> list[int | str]:
        """Return for each row the id that seeds its random draws: its key, as an integer or text.

        A key of another type, and several keys, are turned into text.
        """
        columns = [rows.column(name).to_pylist() for name in self.options.key]
        for name, column in zip(self.options.key, columns, strict=True):
            if None in column:
                raise ValueError(f"The key {name!r} is missing.")
        if len(columns) == 1:
            return [value if isinstance(value, (int, str)) else str(value) for value in columns[0]]
        return ["\x1f".join(map(str, values)) for values in zip(*columns, strict=True)]

    def to_batch(
        self, rows: pa.RecordBatch, explanation: Explanation, schema: pa.Schema
    ) -> pa.RecordBatch:
        """Return the keys of `rows` and their explanation as one Arrow batch of the schema."""
        columns = [rows.column(name) for name in self.options.key]
        for o in range(len(self.output_suffixes)):
            one = explanation[..., o] if explanation.has_outputs else explanation
            for name, values in self._arrays_of_output(one).items():
                columns += self._to_arrow(name, values)
        cast = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
        return pa.record_batch(cast, schema=schema)

    def _to_arrow(self, name: str, values: Array) -> list[pa.Array]:
        """Convert values (n,) to one Arrow column, or (n, c) to c columns or one column of lists.

        `name` is what the values are, such as "phi" or "delta"; "delta" is always a column of
        lists.
        """
        if values.ndim == 1:
            return [pa.array(values)]
        if name == "delta" or self.options.layout == "lists":
            flat = pa.array(values.ravel())
            return [pa.FixedSizeListArray.from_arrays(flat, values.shape[1])]
        return [pa.array(np.ascontiguousarray(column)) for column in values.T]

    def _arrays_of_output(self, one: Explanation) -> dict[str, Array]:
        """Return the result columns by name for `one`, an explanation of a single output.

        They are in the order of the schema. The columns are (n,), (n, d) or (n, d·d).
        """
        n, d = one.values.shape
        chosen = [one.family.labels.index(label) for label in one.weight_labels.tolist()]
        arrays: dict[str, Array] = {
            "prediction": one.predictions,
            "base_value": one.base_values,
            "weight": one.weight_labels,
            "score": one.scores[np.arange(n), chosen],
            "shapley_score": self._shapley_score(one),
            "phi": one.values,
        }
        errors = np.zeros((n, d)) if one.standard_errors is None else one.standard_errors
        optional = {
            "shapley": one.shapley,
            "errors": errors,
            "contributions": one.contributions,
        }
        for name in self.options.include:
            arrays[VECTORS[name]] = np.asarray(optional[name]).reshape(n, -1)
        return arrays

    def _shapley_score(self, one: Explanation) -> FloatArray:
        """Return the score (utility T) of the Shapley value for each row (n,).

        NaN if the family lacks the Shapley weight and T cannot be computed from the recovery curve
        alone.
        """
        uniform = one.family.reference_positions[0]
        utility = self.explainer.problem.utility
        if uniform < len(one.family):
            return one.scores[:, uniform]
        if utility.of_recovery is None:
            return np.full(len(one), np.nan)
        return utility.of_recovery(one.reference_curves["shapley"][:, None, :, None])[:, 0, 0]

    @cached_property
    def _column_types(self) -> tuple[str, ...]:
        """The type of each background column: `NUMBERS`, `INTEGERS`, `BOOLEANS` or `TEXT`."""
        return tuple(_column_type(self.background, c) for c in range(len(self.background.names)))

    @cached_property
    def _known_categories(self) -> dict[str, set[object]]:
        """The categories of each text column of the background, by the column's name in a batch.

        Columns whose dtype lists its categories are left out: they are checked when rows are
        aligned.
        """
        table = self.background
        dtypes = () if table.container is ARRAYS else table.data.dtypes
        has_list = [str(dtype).startswith(("category", "Enum")) for dtype in dtypes]
        text = [
            c for c, content in enumerate(self._column_types) if content == TEXT and not has_list[c]
        ]
        return {
            self.columns[c]: {None, *(str(value) for value in table.column(c) if value is not None)}
            for c in text
        }


def _column_type(table: Table, c: int) -> str:
    """Return the type of column c of the background; without any values it is `NUMBERS`."""
    if table.container.is_boolean(table.data, c):
        return BOOLEANS
    column = table.column(c)
    cells = (value for value in column if value is not None)
    if column.dtype == object and not all(isinstance(value, (int, float)) for value in cells):
        return TEXT
    dtype = table.data.dtype if table.container is ARRAYS else list(table.data.dtypes)[c]
    return INTEGERS if str(dtype).lower().startswith(("int", "uint")) else NUMBERS


def is_sampled(explainer: Explainer) -> bool:
    """Return whether the explanation of a row may need random draws.

    Draws are needed unless the game returns exact Δ or the coalitions are enumerated.
    """
    problem = explainer.problem
    reads_exact = problem.is_exact and problem.estimator.uses_exact
    return not reads_exact and explainer.config.estimator != "exact"


def choose_shared_index(explainer: Explainer) -> tuple[int, ...]:
    """Choose on the background the weight that all rows share; return its index for each output."""
    table = explainer.background
    n = min(len(table), MAX_SHARED_ROWS)
    places = np.unique(np.linspace(0, len(table) - 1, n).astype(np.intp))
    explanation = explainer(table.take(places))
    labels = np.atleast_1d(explanation.weight_labels[0]).tolist()
    return tuple(explanation.family.labels.index(label) for label in labels)


def _read_column(column: pa.Array, content: str, name: str) -> pa.Array:
    """Convert text in a column of a batch to the background's type `content`; return the column.

    `name` is the name of the column, for errors.
    """
    if content != TEXT and is_text(column.type):
        column = parse_as(column, content, name)

    # pandas turns integers with missing values into floats.
    if pa.types.is_integer(column.type) and column.null_count:
        bounds = pc.min_max(column).as_py()
        check_exact(integer_magnitudes(bounds.values()), f"Column {name!r}")
    return column


def _as_names(argument: str, names: Any) -> tuple[str, ...]:
    """Convert one name or several to a tuple; `argument` is the argument's name for errors."""
    is_single = isinstance(names, str) or not isinstance(names, Iterable)
    listed = (names,) if is_single else tuple(names)
    wrong = [name for name in listed if not isinstance(name, str)]
    if wrong:
        raise TypeError(f"`{argument}` must be a name, or a list of names; got {wrong[0]!r}.")
    return listed


def _as_distinct_names(argument: str, names: Any) -> tuple[str, ...]:
    """Convert one name or several to a tuple; raise an error if a name occurs twice."""
    listed = _as_names(argument, names)
    twice = duplicates(listed)
    if twice:
        raise ValueError(f"`{argument}` names {twice[0]!r} more than once.")
    return listed
