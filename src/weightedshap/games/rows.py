"""A fitted game on the rows of one call: f(x), and the blocks that the rows are worked through
in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from weightedshap._checks import FloatArray, IntArray
from weightedshap.games.base import Block, ExactFitted, Fitted
from weightedshap.inputs import Data, join_of, part_of

# Of each row that a game takes at once: of 256, Δ and lists stay in the cache, or near it.
ROW_BYTES = 2**16


@dataclass(frozen=True)
class View:
    """The games of a block of rows and their f(x), output by output."""

    block: Block  # with all outputs
    f_x: FloatArray  # (n, k) of the outputs looked at
    outputs: tuple[int, ...]  # their k positions among those of the block

    def each(self) -> Iterator[tuple[Block, FloatArray]]:
        """The one-output block and f(x) (n,) of every output."""
        for place, output in enumerate(self.outputs):
            yield self.block.output(output), self.f_x[:, place]

    def along(self, orders: IntArray) -> FloatArray:
        """(n, m, d, k) orders → (n, m, d + 1, k), each output along its own."""
        walks = [
            block.along(np.ascontiguousarray(orders[..., o]))[..., 0]
            for o, (block, _) in enumerate(self.each())
        ]
        # Outputs stay apart in memory.
        return np.moveaxis(np.stack(walks) if len(walks) > 1 else walks[0][None], 0, -1)


@dataclass(frozen=True)
class Rows:
    """A fitted game on n rows."""

    fitted: Fitted
    rows: Data  # aligned with the background, in its type
    f_x: FloatArray  # (n, k) of the outputs looked at
    outputs: tuple[int, ...]  # their k positions among those of the game
    axis: bool  # whether people see the axis k

    @classmethod
    def of(cls, fitted: Fitted, rows: Data, by_block: bool = False) -> Self:
        """All outputs of a game on aligned rows; f(x) may be left to `ask`, block by block, and is
        NaN until then."""
        f_x, axis = (by_block and fitted.unasked(len(rows))) or fitted.outputs(rows)
        return cls(fitted, rows, f_x, tuple(range(f_x.shape[1])), axis)

    def under(self, judge: Fitted) -> Self:
        """The same rows under a judge, whose f(x) may follow from what is known."""
        if judge is self.fitted:
            return self
        link = judge.link_from(self.fitted)
        return (
            self.of(judge, self.rows, True)
            if link is None
            else replace(self, fitted=judge, f_x=link(self.f_x))
        )

    def ask(self, part: slice, other: Self) -> None:
        """Fill in f(x) of some rows where it was left for later, perhaps from that of another
        game."""
        if np.isnan(self.f_x[part]).any():
            link = None if other is self else self.fitted.link_from(other.fitted)
            self.f_x[part] = (
                self.fitted.outputs(self.some(part))[0] if link is None else link(other.f_x[part])
            )

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: IntArray, outputs: IntArray | int | None) -> Self:
        """Some of the rows and outputs; a single output (an int) is shown without the axis k, None
        keeps all."""
        taken = replace(self, rows=part_of(self.rows, rows), f_x=self.f_x[rows])
        if outputs is None:
            return taken
        chosen = np.atleast_1d(outputs)
        found = tuple(self.outputs[o] for o in chosen)
        return replace(
            taken, f_x=taken.f_x[:, chosen], outputs=found, axis=not isinstance(outputs, int)
        )

    def parts(self, d: int) -> list[slice]:
        """The rows of each block that is judged: many where the game walks them at once."""
        return _cut(
            len(self), max(8 * len(self.outputs) * d**2, self.fitted.row_bytes), self.fitted.at_once
        )

    def spread(self, view: View) -> FloatArray:
        """(n, k) the standard deviation of f(x) over the background; where it is unknown, |f(x) −
        v(∅)| of each row."""
        told = np.atleast_1d(self.fitted.spread)
        known = told[list(self.outputs)] if len(told) > 1 else told
        if not np.isnan(known).any():
            return np.broadcast_to(known, view.f_x.shape)
        return np.abs(view.f_x - view.block.ends()[:, 0][:, list(self.outputs)])

    def some(self, part: slice) -> Data:
        return part_of(self.rows, part)

    def block(self, part: slice) -> Block:
        return self.fitted.block(self.some(part))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The rows of all parts, which are alike."""
        f_x = np.concatenate([part.f_x for part in parts])
        return replace(parts[0], rows=join_of([part.rows for part in parts]), f_x=f_x)

    def is_like(self, other: Self) -> bool:
        """Whether other rows belong to the same game and outputs."""
        return (self.fitted is other.fitted, self.outputs, self.axis) == (
            True,
            other.outputs,
            other.axis,
        )

    def view(self, part: slice, block: Block | None = None) -> View:
        """The games of some rows with their f(x); `block` where they are there already."""
        return View(self.block(part) if block is None else block, self.f_x[part], self.outputs)


def parts_of(explained: Sequence[Rows], judge: Rows, d: int, together: bool = True) -> list[slice]:
    """The rows of each block of a call: many where all games know their Δ, unless they are not to
    be read together."""
    games = [*explained, *([] if judge is explained[0] else [judge])]
    cell = max(
        8 * judge.f_x.shape[1] * d**2 * len(explained), sum(rows.fitted.row_bytes for rows in games)
    )
    many = together and all(isinstance(rows.fitted, ExactFitted) for rows in explained)
    return _cut(len(judge), cell, max(rows.fitted.at_once for rows in games) if many else 1)


def _cut(n: int, cell: int, at_once: int) -> list[slice]:
    """n rows in blocks: of as many as are taken at once and bounded memory holds, at `cell` bytes
    each.

    Where that is not one block, there are an even number of them, and four if each has enough rows:
    for workers.
    """
    size = min(max(1, ROW_BYTES * at_once // cell), at_once, max(256, -(-n // 4)))
    size = -(-n // (2 * -(-n // (2 * size)))) if n > size else size
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
