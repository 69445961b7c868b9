"""Arrow batches in, Arrow batches out: one row for each row, in a schema that is known beforehand.

`Stream` is what runs under the command line and every engine. Whatever the batches, a row gets the
same numbers: its draws come from its key, a shared weight is chosen on the background before the
first row, and no row sees another.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from weightedshap._checks import FloatArray, one_of, require, unknown_sentence
from weightedshap._format import quoted
from weightedshap.config import Fits, Setting
from weightedshap.explanation import Explanation
from weightedshap.games.base import ExactFitted
from weightedshap.games.rows import Rows
from weightedshap.inputs import Data, Table, is_frame
from weightedshap.inputs.containers import ARRAYS, Array, check_exact, sizes_of_integers
from weightedshap.inputs.groups import repeated
from weightedshap.jobs.text_columns import BOOLEANS, INTEGERS, NUMBERS, TEXT, is_text, read_as
from weightedshap.selection import SHARED

pa = require("pyarrow", "stream")  # this module is imported when rows are streamed
pc = require("pyarrow.compute", "stream")

Batch = Any  # a RecordBatch of Arrow
Schema = Any  # its schema
# The position of the first row, the rows, their explanation.
Explained = tuple[int, Batch, Explanation]
# What to do with a row that cannot be explained: (position, reason, the row).
Bad = Callable[[int, str, Batch], None]

SCALARS = ("prediction", "base_value", "weight", "score", "shapley_score")
# What may be included → its column.
VECTORS = {
    "shapley": "shapley",
    "errors": "error",
    "contributions": "delta",
}
LAYOUTS = ("columns", "lists")
PIECE = 2**16  # cells explained at once: memory stays flat however large a batch is
SAMPLE = 500  # rows of the background that choose a shared weight
NOT_OF_ONE_ROW = (MemoryError, OSError, ImportError)
NO_BATCHES = "`batches` must be a Table of Arrow, or RecordBatches one after the other"
AS_BATCHES = (
    "Of a pandas frame pass `pyarrow.Table.from_pandas(frame)`, of a polars frame"
    " `frame.to_arrow()`."
)


class RowError(ValueError):
    """A row that cannot be explained; its position in the stream and the reason are `args`."""

    def __str__(self) -> str:
        return f"Row {self.args[0]} (counted from 0): {self.args[1]}"


class CallError(ValueError):
    """What goes wrong for rows of the background, too: an error of the call and not of the rows."""


class ModelExit(ValueError):
    """The model ended the program; `args` are the position of a row that makes it, or None, and the
    code."""

    def __str__(self) -> str:
        row, code = self.args
        at = "" if row is None else f"Row {row} (counted from 0): "
        return f"{at}the model ended the program (exit with {code!r}) instead of returning numbers."


class Explaining(Protocol):
    """What a stream asks of an explainer."""

    setting: Setting
    fits: Fits

    def __call__(self, X: Data, row_ids: Any = None) -> Explanation: ...
    def but(self, **choices: Any) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is read from a batch and told of its rows.

    columns : the columns that hold the features, in the background's order; by default those of its
        names
    key : columns that are passed through; the draws of a sampled game come from them
    include : "shapley", "errors" (standard errors of φ), "contributions" (Δ, size by size), in this
        order
    layout : "columns", one for each feature, or "lists", one of fixed size
    unseen : "error", or "pass" for categories that the background never saw
    shared : the positions of the weights that all rows share, one for each output; chosen if need
        be
    """

    columns: tuple[str, ...] | None = None
    key: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    layout: str = "columns"
    unseen: str = "error"
    shared: tuple[int, ...] | None = None

    @classmethod
    def of(
        cls,
        columns: Sequence[str] | None,
        key: str | Sequence[str] | None,
        include: Sequence[str],
        **rest: Any,
    ) -> Self:
        """From what people pass."""
        asked = {one_of("thing to include", name, VECTORS) for name in _names("include", include)}
        one_of("layout", rest.get("layout", "columns"), LAYOUTS)
        one_of("way with unseen categories", rest.get("unseen", "error"), ("error", "pass"))
        chosen = None if columns is None else _differing("columns", columns)
        keys = () if key is None else _differing("key", key)
        return cls(
            columns=chosen,
            key=keys,
            include=tuple(name for name in VECTORS if name in asked),
            **rest,
        )


@dataclass(frozen=True)
class Stream:
    """An explainer made ready for rows that come in batches."""

    explainer: Explaining
    asked: Asked

    @classmethod
    def of(cls, explainer: Explaining, asked: Asked) -> Self:
        """Check what is asked for, and choose the weight that rows share, if they do."""
        if not asked.key and is_sampled(explainer):
            said = (
                "The game is sampled, and each row's draws come from its key, so that batches do"
                " not matter."
            )
            raise ValueError(f"{said} Pass `key=`, the name of a column that identifies the rows.")
        own = explainer.but(keep_contributions="contributions" in asked.include, progress=False)
        if own.setting.method.select in SHARED:
            shared = asked.shared or shared_weight(own)
            asked = replace(asked, shared=shared)
            own.setting = replace(own.setting, method=replace(own.setting.method, shared=shared))
        return cls(own, asked)

    @property
    def background(self) -> Table:
        return self.explainer.setting.background

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of a batch that hold the features."""
        table = self.background
        names = self.asked.columns or table.trained or table.names
        if len(names) != len(table.names):
            raise ValueError(
                f"`columns` names {len(names)} columns but the background has {len(table.names)}."
            )
        return names

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """What is put behind the names of columns: nothing, or the name of each output."""
        first = Rows.of(self.explainer.fits.games[0], self.background.take(slice(0, 1)))
        names = first.fitted.output_names or tuple(f"output {o}" for o in first.outputs)
        return tuple(f"_{name}" for name in names) if first.axis else ("",)

    def schema(self, incoming: Schema) -> Schema:
        """The schema of what comes out, for batches of the schema `incoming`."""
        for wanted in (*self.columns, *self.asked.key):
            times = incoming.names.count(wanted)
            if times == 0:
                raise ValueError(unknown_sentence("column", wanted, incoming.names))
            if times > 1:
                raise ValueError(
                    f"The rows have {times} columns called {wanted!r}. Give each a name of its own."
                )
        number = pa.float64()
        features = self.background.player_names
        d = self.background.d
        fields = [incoming.field(name) for name in self.asked.key]
        for output in self.outputs:
            fields += [
                pa.field(name + output, pa.string() if name == "weight" else number)
                for name in SCALARS
            ]
            for name in ("phi", *map(VECTORS.get, self.asked.include)):
                if name != "delta" and self.asked.layout == "columns":
                    fields += [
                        pa.field(f"{name}_{feature}{output}", number) for feature in features
                    ]
                else:
                    fields.append(
                        pa.field(
                            f"{name}{output}", pa.list_(number, d * d if name == "delta" else d)
                        )
                    )
        names = [field.name for field in fields]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(
                f"Two columns would be called {twice[0]!r}. Rename the key, or pass layout='lists'."
            )
        return pa.schema(fields)

    def __call__(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Explain batch by batch; a row that cannot be explained is a `RowError`."""
        if isinstance(batches, pa.Table):
            batches = batches.to_batches()
        if isinstance(batches, pa.RecordBatch):
            batches = [batches]
        if is_frame(batches) or not isinstance(batches, Iterable):
            raise TypeError(f"{NO_BATCHES}; got a {type(batches).__name__}. {AS_BATCHES}")
        return self._each(batches)

    def _each(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        start = 0
        for batch in batches:
            if not isinstance(batch, pa.RecordBatch):
                raise TypeError(
                    f"{NO_BATCHES}; among them is a {type(batch).__name__}. {AS_BATCHES}"
                )
            schema = self.schema(batch.schema)
            for _, piece, found in self.explained(batch, start):
                yield self.told(piece, found, schema)
            start += batch.num_rows

    def explained(
        self, batch: Batch, start: int = 0, bad: Bad | None = None
    ) -> Iterator[Explained]:
        """(position, rows, explanation) of one piece after the other; rows that fail are left out
        and go to `bad`."""
        size = max(1, PIECE // self.background.d)
        for offset in range(0, batch.num_rows, size):
            yield from self._tried(batch.slice(offset, size), start + offset, bad)

    def _tried(self, piece: Batch, start: int, bad: Bad | None) -> Iterator[Explained]:
        """The rows of a piece that can be explained: where one fails, both halves are tried."""
        try:
            found = self.explain(piece)
        except SystemExit as error:
            # An ordinary error from here on: for this one, engines end their workers.
            raise ModelExit(self._exiting(piece, start), error.code) from error
        except NOT_OF_ONE_ROW:
            raise
        except Exception as error:
            if half := piece.num_rows // 2:
                yield from self._tried(piece.slice(0, half), start, bad)
                yield from self._tried(piece.slice(half), start + half, bad)
            elif self._fails_anyway is not None:
                raise CallError(self._fails_anyway) from error
            elif bad is None:
                raise RowError(start, str(error)) from error
            else:
                bad(start, str(error), piece)
        else:
            yield start, piece, found

    def _exiting(self, piece: Batch, start: int) -> int | None:
        """Return the position of a row for which the model ends the program; None if it is no
        single one."""
        while piece.num_rows > 1:
            half = piece.num_rows // 2
            if self._exits(piece.slice(0, half)):
                piece = piece.slice(0, half)
            elif self._exits(piece.slice(half)):
                piece = piece.slice(half)
                start += half
            else:
                return None
        return start

    def _exits(self, piece: Batch) -> bool:
        """Return whether the model ends the program for these rows."""
        try:
            self.explain(piece)
        except SystemExit:
            return True
        except Exception:
            return False
        return False

    @cached_property
    def _fails_anyway(self) -> str | None:
        """What goes wrong for a row of the background, which is a good one; None if nothing
        does."""
        try:
            self.explainer(self.background.take(slice(0, 1)), [0])
        except NOT_OF_ONE_ROW:
            raise
        except Exception as error:
            return str(error)
        return None

    def explain(self, piece: Batch) -> Explanation:
        """The explanation of some rows."""
        return self.explainer(self.rows(piece), self.ids(piece) if self.asked.key else None)

    def rows(self, piece: Batch) -> Data:
        """The features of some rows, as the background has them; text is read as what the
        background holds."""
        taken = [
            _read(piece.column(name), held, name)
            for name, held in zip(self.columns, self._held, strict=True)
        ]
        frame = pa.table(taken, names=list(self.columns)).to_pandas()
        frame.columns = list(self.background.names)
        rows = self.background.align(frame)
        for name, known in self._known.items() if self.asked.unseen == "error" else ():
            if lost := [
                value for value in piece.column(name).unique().to_pylist() if value not in known
            ]:
                said = (
                    f"Column {name!r} holds a category that the background never saw:"
                    f" {quoted(lost[0])}."
                )
                raise ValueError(
                    f"{said} Pass unseen='pass' (--unseen pass) to hand it to the model."
                )
        return rows

    def ids(self, piece: Batch) -> list[int | str]:
        """What each row draws from: a whole number or text as it is, anything else, and several
        keys, as text."""
        columns = [piece.column(name).to_pylist() for name in self.asked.key]
        for name, column in zip(self.asked.key, columns, strict=True):
            if None in column:
                raise ValueError(f"The key {name!r} is missing.")
        if len(columns) == 1:
            return [value if isinstance(value, (int, str)) else str(value) for value in columns[0]]
        return ["\x1f".join(map(str, values)) for values in zip(*columns, strict=True)]

    def told(self, piece: Batch, found: Explanation, schema: Schema) -> Batch:
        """What comes out for some rows."""
        columns = [piece.column(name) for name in self.asked.key]
        for o in range(len(self.outputs)):
            for name, values in self._arrays(found[..., o] if found.has_outputs else found).items():
                if values.ndim == 1:
                    columns.append(pa.array(values))
                elif name == "delta" or self.asked.layout == "lists":
                    columns.append(
                        pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
                    )
                else:
                    columns += [pa.array(np.ascontiguousarray(column)) for column in values.T]
        cast = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
        return pa.record_batch(cast, schema=schema)

    def _arrays(self, one: Explanation) -> dict[str, Array]:
        """The columns of one output, (n,) or (n, d)."""
        n, d = one.values.shape
        index = [one.family.labels.index(label) for label in one.weight_labels.tolist()]
        scores = one.scores[np.arange(n), index]
        told = [
            one.predictions,
            one.base_values,
            one.weight_labels,
            scores,
            self._shapley_score(one),
        ]
        arrays = dict(zip(SCALARS, told, strict=True)) | {"phi": one.values}
        errors = np.zeros((n, d)) if one.standard_errors is None else one.standard_errors
        more: dict[str, Any] = {
            "shapley": one.shapley,
            "errors": errors,
            "contributions": one.contributions,
        }
        return arrays | {VECTORS[name]: more[name].reshape(n, -1) for name in self.asked.include}

    def _shapley_score(self, one: Explanation) -> FloatArray:
        """(n,) T of the Shapley value; NaN where it is not in the family and T is no function of
        the curve."""
        uniform = one.family.reference_positions[0]
        utility = self.explainer.setting.method.utility
        if uniform < len(one.family):
            return one.scores[:, uniform]
        if utility.of_recovery is None:
            return np.full(len(one), np.nan)
        return utility.of_recovery(one.reference_curves["shapley"][:, None, :, None])[:, 0, 0]

    @cached_property
    def _held(self) -> tuple[str, ...]:
        """What each column of the background holds: `NUMBERS`, `INTEGERS`, `BOOLEANS` or `TEXT`."""
        return tuple(_held_in(self.background, c) for c in range(len(self.background.names)))

    @cached_property
    def _known(self) -> dict[str, set[object]]:
        """The categories in columns of text; those with a list of their own are checked when rows
        are aligned."""
        table = self.background
        types = () if table.kind is ARRAYS else table.data.dtypes
        listed = [str(dtype).startswith(("category", "Enum")) for dtype in types]
        text = [c for c, held in enumerate(self._held) if held == TEXT and not listed[c]]
        return {
            self.columns[c]: {None, *(str(v) for v in table.column(c) if v is not None)}
            for c in text
        }


def _held_in(table: Table, c: int) -> str:
    """What a column of the background holds; where all is missing, numbers."""
    if table.kind.is_boolean(table.data, c):
        return BOOLEANS
    column = table.column(c)
    if column.dtype == object and not all(
        isinstance(value, (int, float)) for value in column if value is not None
    ):
        return TEXT
    dtype = table.data.dtype if table.kind is ARRAYS else list(table.data.dtypes)[c]
    return INTEGERS if str(dtype).lower().startswith(("int", "uint")) else NUMBERS


def is_sampled(explainer: Explaining) -> bool:
    """Whether rows may need draws: a game does not know its Δ, and is not enumerated."""
    method = explainer.setting.method
    games = explainer.fits.games
    exact = method.estimator.takes_own and all(isinstance(game, ExactFitted) for game in games)
    return not exact and explainer.setting.choices.estimator != "exact"


def shared_weight(explainer: Explaining) -> tuple[int, ...]:
    """The positions of the weights, one for each output, that rows share: chosen on rows of the
    background."""
    table = explainer.setting.background
    some = np.unique(np.linspace(0, len(table) - 1, min(len(table), SAMPLE)).astype(np.intp))
    found = explainer(table.take(some))
    return tuple(
        found.family.labels.index(label) for label in np.atleast_1d(found.weight_labels[0]).tolist()
    )


def _read(column: Any, held: str, name: str) -> Any:
    """A column as Arrow has it; text, as of a CSV file, as what the background holds."""
    if held != TEXT and is_text(column.type):
        column = read_as(column, held, name)

    # Integers with holes become floats in pandas.
    if pa.types.is_integer(column.type) and column.null_count:
        bounds = pc.min_max(column).as_py()
        check_exact(sizes_of_integers(bounds.values()), f"Column {name!r}")
    return column


def _names(what: str, names: Any) -> tuple[str, ...]:
    """One name or several."""
    listed = (names,) if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
    if wrong := [name for name in listed if not isinstance(name, str)]:
        raise TypeError(f"`{what}` must be a name, or a list of names; got {wrong[0]!r}.")
    return listed


def _differing(what: str, names: Any) -> tuple[str, ...]:
    """One name or several that differ."""
    listed = _names(what, names)
    if twice := repeated(listed):
        raise ValueError(f"`{what}` names {twice[0]!r} more than once.")
    return listed
