"""Trees behind the preprocessing of a scikit-learn pipeline, read as splits on the columns that
people pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from weightedshap._checks import LARGEST, FloatArray, IntArray
from weightedshap.coalitions import batches
from weightedshap.inputs import Data, UserModel, feeding, kind_of
from weightedshap.inputs.groups import code_of_one_player, listed
from weightedshap.inputs.predict import how_to_call
from weightedshap.trees.origins import Origin, check_width, composed, origins
from weightedshap.trees.readers import ReadModel, UnreadableModel

CONSTANT = -1  # in place of a player
CELLS = 2**22  # of a table that is made to check what columns come from

Step = Callable[[Data], Data]  # rows → transformed rows
Read = Callable[[UserModel, Data], ReadModel]  # (model, rows that it is called on) → its trees


class MixedColumns(UnreadableModel):
    """A pipeline that makes one column of several which are players of their own."""


def read_pipeline(model: Any, rows: Data, left_out: float, read: Read) -> ReadModel:
    """Read the trees of the last step of a pipeline, for rows as they are before the first one.

    `left_out` is what the last step takes for cells that sparse matrices leave out, and `read`
    reads the last step.
    """
    front = model[:-1]
    last = model[-1]
    if not front.steps:
        return read(last, rows)

    step = partial(_transformed, feeding(front.transform, model), left_out)
    transformed = step(rows)
    inner = read(last, transformed)
    if not same_prediction(model, rows, last, transformed):
        raise UnreadableModel(
            "The last step predicts otherwise by itself than in its pipeline.",
            "Explain it by itself.",
        )

    width = transformed.shape[1]
    made = origins(front, rows.shape[1])
    check_width(model, len(made), width)
    return replace(
        inner,
        raw=partial(_after, step, inner.raw),
        encoder=partial(_encoded, step, inner.encode),
        origins=tuple(composed(inner.origins or singles(width), made)),
    )


def same_prediction(one: UserModel, rows: Data, other: UserModel, other_rows: Data) -> bool:
    """Return whether two models predict the same, each for rows of its own."""
    own = np.asarray(how_to_call(one, None)[0](rows))
    others = np.asarray(how_to_call(other, None)[0](other_rows))
    return own.shape == others.shape and np.allclose(own, others, rtol=1e-5)


def singles(n: int) -> list[Origin]:
    """Return the origins of n columns that are those of the rows."""
    return [frozenset([c]) for c in range(n)]


def _transformed(call: Callable[[Data], Any], left_out: float, rows: Data) -> Data:
    """Rows as the last step of a pipeline gets them, never sparse: cells that are left out have a
    value."""
    made = call(deepcopy(rows))  # some steps write to what they get
    if not issparse(made):
        return made
    cells = made.tocoo()
    dense = np.full(cells.shape, left_out)
    dense[cells.row, cells.col] = cells.data
    return dense


def _after(step: Step, call: Callable[[Data], Any], rows: Data) -> Any:
    """Return what `call` gives for transformed rows."""
    return call(step(rows))


def _encoded(step: Step, encode: Callable[[Data], FloatArray], rows: Data) -> FloatArray:
    """Return transformed rows as the numbers that splits compare."""
    X = encode(step(rows))
    if (np.abs(X) > LARGEST).any():
        said = f"The pipeline turns a value into an infinite one, or one beyond {LARGEST:.0e}"
        raise ValueError(f"{said}. Replace it, or make it missing.")
    return X


def players_of_columns(
    read: ReadModel, rows: Data, owner: IntArray, names: Sequence[str]
) -> IntArray:
    """Return the player of each column that the trees split on.

    `owner` (c,) and `names` are the players and names of the columns of `rows`. A split on a column
    that is made of one player's columns asks about that player, so the games are exact; a column
    made of several players' is refused.
    """
    if read.origins is None:
        return owner

    asked = np.unique(np.concatenate([ensemble.column for ensemble in read.ensembles]))
    players = np.full(len(read.origins), CONSTANT, dtype=np.intp)
    for column in asked.tolist():
        players[column] = _player(read.origins[column], owner, names)
    _check_players(read, rows, owner, asked, players[asked])

    # it makes no difference which player a constant belongs to, or a column on which no tree splits
    return np.maximum(players, 0)


def _player(of: Origin, owner: IntArray, names: Sequence[str]) -> int:
    """Return the player that a transformed column belongs to, or `CONSTANT`."""
    players = {int(owner[c]) for c in of}
    if len(players) > 1:
        inputs = listed([names[c] for c in sorted(of)])
        raise MixedColumns(
            f"The pipeline makes one column out of {inputs}, so its trees cannot be read by column."
            f" Explain these as one player, exactly, by {code_of_one_player(of, owner, names)}.",
            advice="",
        )
    return players.pop() if players else CONSTANT


def _check_players(
    read: ReadModel, rows: Data, owner: IntArray, asked: IntArray, players: IntArray
) -> None:
    """Raise an error where a column of `asked` changes with other players than its own one."""
    n = len(rows)
    d = int(owner.max()) + 1
    before = read.encode(rows)[:, asked]
    constant = players == CONSTANT
    rounding = 1e-9 * np.abs(np.nan_to_num(before)).max(axis=0)
    close = partial(np.isclose, rtol=0, atol=rounding, equal_nan=True)
    wrong = constant & ~np.all(close(before, before[:1]), axis=0)  # (columns asked)

    # Rows exchange the values of the players with 0, or with 1, at one place of their number in
    # binary: of any two players there is a table (of m) in which the one's values are exchanged and
    # the other's are not.
    bits = np.arange(d) >> np.arange(max(1, (d - 1).bit_length()))[:, None] & 1
    stays = np.concatenate([bits, 1 - bits]) == 1  # (m, d)
    order = np.random.default_rng(0).permutation(n)
    for some in batches(len(stays), max(1, CELLS // (n * len(read.origins or ())))):
        kept = stays[some]
        here = np.tile(np.arange(n), len(kept))
        there = np.tile(order, len(kept))
        exchanged = kind_of(rows).mix(rows, here, np.repeat(kept[:, owner], n, axis=0), rows, there)
        X = read.encode(exchanged)[:, asked].reshape(len(kept), n, len(asked))
        differs = ~np.all(close(X, before), axis=1)  # (some of m, columns asked)
        wrong |= np.any(differs & (constant | kept[:, players]), axis=0)

    if wrong.any():
        raise UnreadableModel(
            "A column that the pipeline makes changes with other columns than those that its step "
            "names, so splits on it cannot be credited to one."
        )
