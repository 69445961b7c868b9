"""Explain the rows of one call, block by block, and put the blocks together.

Most games are aimed at one row at a time. A fitted game that has ``block(rows)`` gives Δ and curves of
many rows in one compiled call, and its blocks are larger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from weightedshap.blocks import Chosen, Joined, choose
from weightedshap.checks import FloatArray
from weightedshap.contributions import Contributions
from weightedshap.explanation import Explanation, name_of
from weightedshap.explanation.slicing import Cut
from weightedshap.games.wrappers import checked, output_of, row_of
from weightedshap.inputs import join_of, part_of
from weightedshap.parallel import map_blocks, row_generator
from weightedshap.selection import Candidates, View, candidates
from weightedshap.utilities import Utility
from weightedshap.weights import WeightFamily

__all__ = ["Rows", "explain_rows"]

KEEP_BYTES = 2**30
BLOCK_BYTES = 2**24
BLOCK_ROWS = 256


@dataclass(frozen=True)
class Rows:
    """The rows of one call, with their fitted game and their predictions."""

    explainer: Any
    fitted: Any
    rows: Any
    f_x: FloatArray  # (n[, k]) of all outputs of the game
    kept: int | tuple[int, ...] | None = None  # the outputs looked at; a single one has no axis, None is all

    @property
    def outputs(self) -> tuple[int, ...]:
        """Positions of the outputs looked at, among those of the game."""
        if self.kept is None:
            return tuple(range(self.f_x.shape[1] if self.f_x.ndim == 2 else 1))
        return (self.kept,) if isinstance(self.kept, int) else self.kept

    @property
    def axis(self) -> bool:
        """Whether results have the axis k."""
        return self.f_x.ndim == 2 and not isinstance(self.kept, int)

    def take(self, keep: Cut) -> Rows:
        """Some of the rows and outputs."""
        taken = replace(self, rows=part_of(self.rows, keep.rows), f_x=self.f_x[keep.rows])
        if keep.outputs is None:
            return taken
        found = tuple(self.outputs[o] for o in np.atleast_1d(keep.outputs))
        return replace(taken, kept=found[0] if isinstance(keep.outputs, int) else found)

    @property
    def d(self) -> int:
        return int(self.explainer.family.d)

    def judged_by(self, utility: Utility) -> Rows:
        """The same rows under the game that `utility` looks at."""
        fitted = self.explainer.judging(utility)
        return self if fitted is self.fitted else replace(self, fitted=fitted, f_x=fitted.predict(self.rows))

    def in_blocks(self, utility: Utility, judge: Rows) -> bool:
        """Whether games, estimator and utility all take many rows at once."""
        games = hasattr(self.fitted, "block") and hasattr(judge.fitted, "block")
        return bool(games and self.explainer.in_blocks and getattr(utility, "blocks", False))

    def parts(self, in_blocks: bool) -> list[slice]:
        """The rows of each block."""
        cell = max(8 * len(self.outputs) * self.d**2, getattr(self.fitted, "row_bytes", 0))
        size = min(max(1, BLOCK_BYTES // cell), BLOCK_ROWS) if in_blocks else 1
        return [slice(start, min(start + size, len(self.rows))) for start in range(0, len(self.rows), size)]

    def game(self, part: slice, in_blocks: bool) -> Any:
        """The game of a block of rows, or of one row."""
        if in_blocks:
            return self.fitted.block(self.rows[part])
        game = checked(self.fitted.at(row_of(self.rows, part.start)))
        if game.d != self.d:
            raise ValueError(
                f"The game at row {part.start} has {game.d} players but the background has {self.d}. Pass a background "
                "with one column, or one group of columns, for each player."
            )
        return game

    def view(self, part: slice, output: int) -> Any:
        """One output of the game of a block of rows, or of a single row where the game knows no blocks."""
        game = self.game(part, hasattr(self.fitted, "block"))
        return output_of(game, output) if self.f_x.ndim == 2 else game

    def each(self, work: Callable[[slice], Any], description: str) -> list[Any]:
        """``work(part)`` for every block of rows, with the explainer's workers and progress bar."""
        parts = self.parts(hasattr(self.fitted, "block"))
        sizes = [part.stop - part.start for part in parts]
        return list(map_blocks(work, parts, sizes, self.explainer.n_jobs, self.explainer.progress, description))


@dataclass(frozen=True)
class Estimate:
    """Δ of a block of n rows, the attributions of every weight, and what it cost."""

    phi: FloatArray | None  # (n, M, d[, k]) under the weights of `family.with_references`
    delta: FloatArray | None  # (n, d, d[, k])
    ends: FloatArray  # (n, 2[, k]) game(∅) and game([d])
    evaluations: list[int]
    stopped: list[str]
    replicates: FloatArray | None = None  # (n, c, d, d[, k]) Δ by chain, where sampled


@dataclass(frozen=True)
class Block:
    """What stays of a block of rows."""

    estimate: Estimate
    chosen: Chosen | Sequence[Candidates]


def explain_rows(call: Rows, data: Any, names: tuple[str, ...], notes: tuple[str, ...] = ()) -> Explanation:
    """Estimate Δ of every row, weigh it, and put the blocks together."""
    explainer, utility = call.explainer, call.explainer.utility
    judge = call.judged_by(utility)
    delta = _table(explainer.keep_contributions, call)
    parts = call.parts(call.in_blocks(utility, judge))
    sizes = [part.stop - part.start for part in parts]
    work = partial(_explain_block, call, judge, delta is not None)
    estimates, joined = [], Joined(len(call.rows), explainer.family, explainer.select)
    for part, block in zip(parts, map_blocks(work, parts, sizes, explainer.n_jobs, explainer.progress), strict=True):
        if delta is not None:
            delta[part] = block.estimate.delta
        estimates.append(replace(block.estimate, delta=None, phi=None))
        joined.add(part, block.chosen)
    ends = np.concatenate([estimate.ends for estimate in estimates])
    return Explanation(
        **joined.fields(call.axis),
        base_values=ends[:, 0],
        predictions=call.f_x,
        data=data,
        feature_names=names,
        output_names=tuple(getattr(call.fitted, "output_names", (f"output {o}" for o in call.outputs))),
        contributions=delta,
        family=explainer.family,
        n_evaluations=np.concatenate([estimate.evaluations for estimate in estimates]),
        stopped=tuple(reason for estimate in estimates for reason in estimate.stopped),
        game_info=dict(getattr(call.fitted, "info", {"game": "given"})),
        endpoint_gaps=_endpoint_gaps(call, ends),
        utility=name_of(utility),
        select=explainer.select,
        notes=notes + _notes(explainer.keep_contributions, delta is not None),
        replicates=_joined_replicates(estimates),
        _weigh=Weigher(call),
    )


def _explain_block(call: Rows, judge: Rows, keep: bool, part: slice) -> Block:
    """Algorithm 2, then Algorithm 1."""
    explainer = call.explainer
    in_blocks = call.in_blocks(explainer.utility, judge)
    game = call.game(part, in_blocks)
    estimate = _read_block(game, explainer.family, keep) if in_blocks else _estimate_row(call, game, part.start)
    scored = _score(call, judge, part, game, estimate, explainer.family, explainer.utility)
    chosen = choose(scored, explainer.family, explainer.select)
    chains = estimate.replicates
    if chains is not None and not (keep and chains.nbytes * len(call.rows) <= KEEP_BYTES):
        estimate = replace(estimate, replicates=None)
    return Block(estimate, chosen)


def _estimate_row(call: Rows, game: Any, row: int) -> Estimate:
    """Δ of one row by the estimator."""
    found: Contributions = call.explainer.estimator(game, rng=row_generator(call.explainer.random_state, row))
    ends = game(np.array([[False] * game.d, [True] * game.d]))
    _refuse_unvisited(found)
    delta = found.mean[None]
    replicates = None if found.replicates is None else found.replicates[None]
    phi = attributions(delta, call.explainer.family)
    return Estimate(phi, delta, ends[None], [found.evaluations], [found.stopped], replicates)


def _refuse_unvisited(found: Contributions) -> None:
    """Uniform weights use every cell, so each must have been visited."""
    if found.visited:
        return
    d = len(found.mean)
    sizes = np.unique(np.argwhere(found.counts == 0)[:, 0]) + 1
    raise ValueError(
        f"No coalition was drawn for some features at sizes {sizes.tolist()}, so the Shapley value is unknown. Raise "
        f"`evaluations`: {d * (d - 3) + 2 * d + 2:,} visit every feature at every size once."
    )


def _read_block(game: Any, family: WeightFamily, keep: bool) -> Estimate:
    """φ of many rows from the game's own Δ, and Δ itself only if it is kept."""
    vectors = family.with_references.vectors
    read = game.semivalues(np.concatenate([vectors, np.eye(game.d)]) if keep else vectors)
    delta = read[:, len(vectors) :] if keep else None
    reason = "exact: the game's own contributions"
    return Estimate(read[:, : len(vectors)], delta, game.ends(), [0] * game.rows, [reason] * game.rows)


def attributions(delta: FloatArray, family: WeightFamily) -> FloatArray:
    """(n, d, d[, k]) → (n, M, d[, k]) under the weights of `family.with_references`."""
    full = family.with_references
    if delta.ndim == 3:
        return full.phi(delta)
    return np.moveaxis(full.phi(np.moveaxis(delta, -1, 1)), 1, -1)


def _score(
    call: Rows, judge: Rows, part: slice, game: Any, known: Estimate, family: WeightFamily, utility: Utility
) -> list[Candidates]:
    """Candidates of every output, on one-output views of the games."""
    assert known.phi is not None
    judging = game if judge is call else judge.game(part, call.in_blocks(utility, judge))
    if call.f_x.ndim == 1:
        view = View(game, call.f_x[part], judging, judge.f_x[part])
        return [candidates(view, known.phi, known.replicates, family, utility)]
    scored = []
    for place, o in enumerate(call.outputs):
        view = View(output_of(game, o), call.f_x[part, o], output_of(judging, o), judge.f_x[part, o])
        chains = None if known.replicates is None else known.replicates[..., place]
        scored.append(candidates(view, known.phi[..., place], chains, family, utility))
    return scored


@dataclass(frozen=True)
class Weigher:
    """Weighs a Δ that is known already, for `Explanation.reweight`."""

    call: Rows

    def __call__(
        self, delta: FloatArray, chains: FloatArray | None, family: WeightFamily, utility: Utility, select: str
    ) -> dict[str, Any]:
        """The fields of an Explanation that depend on the weights."""
        call = self.call
        if call.f_x.ndim == 2 and not call.axis:
            delta, chains = delta[..., None], None if chains is None else chains[..., None]
        judge = call.judged_by(utility)
        in_blocks = call.in_blocks(utility, judge)
        joined = Joined(len(call.rows), family, select)
        for part in call.parts(in_blocks):
            replicates = None if chains is None else chains[part]
            known = Estimate(attributions(delta[part], family), None, delta[:0], [], [], replicates)
            scored = _score(call, judge, part, call.game(part, in_blocks), known, family, utility)
            joined.add(part, choose(scored, family, select))
        return joined.fields(call.axis)

    def take(self, keep: Cut) -> Weigher:
        """The weigher of some of the rows and outputs."""
        return Weigher(self.call.take(keep))

    def join(self, others: Sequence[Any]) -> Weigher | None:
        """The weigher of all rows, if one explainer explained them."""
        calls = [self.call, *(other.call for other in others if isinstance(other, Weigher))]
        alike = all(call.explainer is self.call.explainer and call.kept == self.call.kept for call in calls)
        if len(calls) <= len(others) or not alike:
            return None
        rows, f_x = join_of([call.rows for call in calls]), np.concatenate([call.f_x for call in calls])
        return Weigher(replace(self.call, rows=rows, f_x=f_x))


def _table(keep: bool | str, call: Rows) -> FloatArray | None:
    """Room for Δ of all rows, (n, d, d[, k]); None if it is not to be kept, or too large to keep unasked."""
    wanted = bool(keep) if keep != "auto" else 8 * call.d**2 * call.f_x.size <= KEEP_BYTES
    return np.empty((len(call.rows), call.d, call.d, *call.f_x.shape[1:])) if wanted else None


def _joined_replicates(estimates: Sequence[Estimate]) -> FloatArray | None:
    arrays = [estimate.replicates for estimate in estimates]
    return None if any(array is None for array in arrays) else np.concatenate(arrays)  # type: ignore[arg-type]


def _notes(asked: bool | str, kept: bool) -> tuple[str, ...]:
    if kept or asked is False:
        return ()
    return ("Δ was not kept because it exceeds 1 GiB; pass keep_contributions=True to have it.",)


def _endpoint_gaps(call: Rows, ends: FloatArray) -> dict[str, FloatArray]:
    expected = getattr(call.fitted, "mean_prediction", np.nan)
    return {"empty": ends[:, 0] - expected, "full": ends[:, 1] - call.f_x}
