"""Trees at the end of a scikit-learn pipeline, read as splits on the columns of the user's rows.

`origins` finds the input columns that each transformed column comes from. `wrappers.read_through`
and the tree games call these functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from weightedshap._checks import LARGEST, FloatArray, IntArray
from weightedshap.coalitions import slices_of
from weightedshap.inputs import Data, UserModel, container_of, input_converter
from weightedshap.inputs.groups import comma_list, grouping_code
from weightedshap.inputs.predict import resolve_predict
from weightedshap.trees.origins import Origin, check_width, compose_origins, source_columns
from weightedshap.trees.readers import TreeModelReading, UnreadableModelError

# Stands for the player of a column that is constant.
CONSTANT = -1
# The most cells of a table that checks the origins of columns.
CELLS = 2**22

# Rows → transformed rows.
Step = Callable[[Data], Data]
# (model, rows that it predicts) → its trees.
Read = Callable[[UserModel, Data], TreeModelReading]


class MixedColumnsError(UnreadableModelError):
    """Raised when a pipeline computes one column from the columns of several players."""


def read_pipeline(model: Any, rows: Data, left_out: float, read: Read) -> TreeModelReading:
    """Read the trees of the last step of a pipeline as trees on the pipeline's input rows.

    `read` is the function that reads the last step, and `left_out` the value that this step assumes
    in cells that a sparse matrix does not store.
    """
    front = model[:-1]
    last = model[-1]
    if not front.steps:
        return read(last, rows)

    step = partial(_transform, input_converter(front.transform, model), left_out)
    transformed = step(rows)
    inner = read(last, transformed)
    if not same_prediction(model, rows, last, transformed):
        raise UnreadableModelError(
            "The last step predicts otherwise by itself than in its pipeline.",
            "Explain it by itself.",
        )

    width = transformed.shape[1]
    made = source_columns(front, rows.shape[1])
    check_width(model, len(made), width)
    return replace(
        inner,
        raw=partial(_call_transformed, step, inner.raw),
        encoder=partial(_encode_transformed, step, inner.encode),
        origins=tuple(compose_origins(inner.origins or singles(width), made)),
    )


def same_prediction(one: UserModel, rows: Data, other: UserModel, other_rows: Data) -> bool:
    """Return whether `one` predicts for `rows` the same as `other` for `other_rows`."""
    own = np.asarray(resolve_predict(one, None)[0](rows))
    others = np.asarray(resolve_predict(other, None)[0](other_rows))
    return own.shape == others.shape and np.allclose(own, others, rtol=1e-5)


def singles(n: int) -> list[Origin]:
    """Return the origins of n columns that no step has changed: each comes from itself alone."""
    return [frozenset([c]) for c in range(n)]


def _transform(call: Callable[[Data], Any], left_out: float, rows: Data) -> Data:
    """Transform rows by `call`, the first steps of a pipeline; return a dense result.

    Cells that a sparse matrix does not store get the value `left_out`.
    """
    # Some steps write to their input.
    made = call(deepcopy(rows))
    if not issparse(made):
        return made
    cells = made.tocoo()
    dense = np.full(cells.shape, left_out)
    dense[cells.row, cells.col] = cells.data
    return dense


def _call_transformed(step: Step, call: Callable[[Data], Any], rows: Data) -> Any:
    """Transform rows by `step`, and return the result of `call` for them."""
    return call(step(rows))


def _encode_transformed(step: Step, encode: Callable[[Data], FloatArray], rows: Data) -> FloatArray:
    """Transform rows by `step`, and encode the result as the numbers that splits compare."""
    X = encode(step(rows))
    if (np.abs(X) > LARGEST).any():
        raise ValueError(
            f"The pipeline turns a value into an infinite one, or one beyond {LARGEST:.0e}."
            " Replace it, or make it missing."
        )
    return X


def players_of_columns(
    read: TreeModelReading, rows: Data, owner: IntArray, names: Sequence[str]
) -> IntArray:
    """Return the player of each column that the trees split on.

    `owner` (c,) and `names` are the players and names of the columns of `rows`. A column that is
    computed from the columns of one player belongs to that player, so the games are exact. Raise a
    `MixedColumnsError` for a column that is computed from the columns of several players.
    """
    if read.origins is None:
        return owner

    split_columns = np.unique(np.concatenate([ensemble.column for ensemble in read.ensembles]))
    players = np.full(len(read.origins), CONSTANT, dtype=np.intp)
    for column in split_columns.tolist():
        players[column] = _player(read.origins[column], owner, names)
    _check_players(read, rows, owner, split_columns, players[split_columns])

    # The player of a constant column, or of a column without splits, makes no difference.
    return np.maximum(players, 0)


def _player(of: Origin, owner: IntArray, names: Sequence[str]) -> int:
    """Return the player whose columns `of` make up a transformed column; `CONSTANT` if none do."""
    players = {int(owner[c]) for c in of}
    if len(players) > 1:
        inputs = comma_list([names[c] for c in sorted(of)])
        raise MixedColumnsError(
            f"The pipeline makes one column out of {inputs}, so its trees cannot be read by column."
            f" Explain these as one player, exactly, by {grouping_code(of, owner, names)}.",
            advice="",
        )
    return players.pop() if players else CONSTANT


def _check_players(
    read: TreeModelReading, rows: Data, owner: IntArray, split_columns: IntArray, players: IntArray
) -> None:
    """Raise an error if a split column depends on a player other than the one it belongs to.

    `players` are the players of `split_columns`; values are exchanged between `rows` to test them.
    """
    n = len(rows)
    d = int(owner.max()) + 1
    before = read.encode(rows)[:, split_columns]
    constant = players == CONSTANT
    rounding = 1e-9 * np.abs(np.nan_to_num(before)).max(axis=0)
    close = partial(np.isclose, rtol=0, atol=rounding, equal_nan=True)
    wrong = constant & ~np.all(close(before, before[:1]), axis=0)  # (split columns)

    # Each of m tables exchanges, between rows, the values of the players that have 0, or 1, in one
    # binary digit of their number. So for any two players, some table exchanges the values of the
    # first and not those of the second.
    bits = np.arange(d) >> np.arange(max(1, (d - 1).bit_length()))[:, None] & 1
    stays = np.concatenate([bits, 1 - bits]) == 1  # (m, d)
    order = np.random.default_rng(0).permutation(n)
    for some in slices_of(len(stays), max(1, CELLS // (n * len(read.origins or ())))):
        kept = stays[some]
        here = np.tile(np.arange(n), len(kept))
        there = np.tile(order, len(kept))
        exchanged = container_of(rows).mix(
            rows, here, np.repeat(kept[:, owner], n, axis=0), rows, there
        )
        X = read.encode(exchanged)[:, split_columns].reshape(len(kept), n, len(split_columns))
        differs = ~np.all(close(X, before), axis=1)  # (some of m, split columns)
        wrong |= np.any(differs & (constant | kept[:, players]), axis=0)

    if wrong.any():
        raise UnreadableModelError(
            "A column that the pipeline makes changes with other columns than those that its step "
            "names, so splits on it cannot be credited to one."
        )
