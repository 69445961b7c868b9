"""Explain the rows of one call, block by block, and put the blocks together.

Most games are aimed at one row at a time. A fitted game that has ``block(rows)`` gives Δ and curves of
many rows in one compiled call, and its blocks are larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from weightedshap.checks import FloatArray
from weightedshap.contributions import Contributions
from weightedshap.explanation import Chosen, Explanation, choose, join, name_of
from weightedshap.games.base import checked, output_of, row_of
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
    f_x: FloatArray  # (n[, k])

    @property
    def outputs(self) -> range:
        return range(self.f_x.shape[1] if self.f_x.ndim == 2 else 1)

    @property
    def d(self) -> int:
        return int(self.explainer.family.d)

    def judged_by(self, utility: Utility) -> Rows:
        """The same rows under the game that `utility` looks at."""
        fitted = self.explainer.judging(utility)
        return self if fitted is self.fitted else Rows(self.explainer, fitted, self.rows, fitted.predict(self.rows))

    def in_blocks(self, utility: Utility, judge: Rows) -> bool:
        """Whether games, estimator and utility all take many rows at once."""
        games = hasattr(self.fitted, "block") and hasattr(judge.fitted, "block")
        return bool(games and self.explainer.in_blocks and getattr(utility, "blocks", False))

    def parts(self, in_blocks: bool) -> list[slice]:
        """The rows of each block."""
        cell = 8 * len(self.outputs) * self.d**2
        size = min(max(1, BLOCK_BYTES // cell), BLOCK_ROWS) if in_blocks else 1
        return [slice(start, min(start + size, len(self.rows))) for start in range(0, len(self.rows), size)]

    def game(self, part: slice, in_blocks: bool) -> Any:
        """The game of a block of rows, or of one row."""
        if in_blocks:
            return self.fitted.block(self.rows[part])
        return checked(self.fitted.at(row_of(self.rows, part.start)))


@dataclass(frozen=True)
class Estimate:
    """Δ of a block of n rows and what it cost."""

    delta: FloatArray | None  # (n, d, d[, k])
    ends: FloatArray  # (n, 2[, k]) game(∅) and game([d])
    evaluations: list[int]
    stopped: list[str]
    replicates: FloatArray | None = None  # (n, c, d, d[, k]) chain means, where sampled

    def kept(self, keep: bool, n: int) -> Estimate:
        """Without Δ if it is not to be kept, and without chains that would exceed the limit for n rows."""
        small = keep and self.replicates is not None and self.replicates.nbytes * n <= KEEP_BYTES
        return replace(self, delta=self.delta if keep else None, replicates=self.replicates if small else None)


@dataclass(frozen=True)
class Block:
    """What stays of a block of rows."""

    estimate: Estimate
    chosen: Chosen | Sequence[Candidates]


def explain_rows(call: Rows, data: Any, names: tuple[str, ...]) -> Explanation:
    """Estimate Δ of every row, weigh it, and put the blocks together."""
    explainer, utility, axis = call.explainer, call.explainer.utility, call.f_x.ndim == 2
    judge = call.judged_by(utility)
    keep = _keeps(explainer.keep_contributions, call)
    parts = call.parts(call.in_blocks(utility, judge))
    sizes = [part.stop - part.start for part in parts]
    work = partial(_explain_block, call, judge, keep)
    blocks = map_blocks(work, parts, sizes, explainer.n_jobs, explainer.progress)
    estimates = [block.estimate for block in blocks]
    ends = np.concatenate([estimate.ends for estimate in estimates])
    return Explanation(
        **join([block.chosen for block in blocks], explainer.family, axis),
        base_values=ends[:, 0],
        predictions=call.f_x,
        data=data,
        feature_names=names,
        output_names=tuple(getattr(call.fitted, "output_names", (f"output {o}" for o in call.outputs))),
        contributions=_joined(estimates, "delta"),
        family=explainer.family,
        n_evaluations=np.concatenate([estimate.evaluations for estimate in estimates]),
        stopped=tuple(reason for estimate in estimates for reason in estimate.stopped),
        game_info=dict(getattr(call.fitted, "info", {"game": "given"})),
        endpoint_gaps=_endpoint_gaps(call, ends),
        utility=name_of(utility),
        select=explainer.select,
        notes=_notes(explainer.keep_contributions, keep),
        replicates=_joined(estimates, "replicates"),
        _weigh=partial(_reweigh, call),
    )


def _explain_block(call: Rows, judge: Rows, keep: bool, part: slice) -> Block:
    """Algorithm 2, then Algorithm 1."""
    explainer = call.explainer
    in_blocks = call.in_blocks(explainer.utility, judge)
    game = call.game(part, in_blocks)
    estimate = _read_block(game) if in_blocks else _estimate_row(call, game, part.start)
    scored = _score(call, judge, part, game, estimate, explainer.family, explainer.utility)
    chosen = choose(scored, explainer.family, explainer.select)
    return Block(estimate.kept(keep, len(call.rows)), chosen)


def _estimate_row(call: Rows, game: Any, row: int) -> Estimate:
    found: Contributions = call.explainer.estimator(game, rng=row_generator(call.explainer.random_state, row))
    ends = game(np.array([[False] * game.d, [True] * game.d]))
    replicates = None
    if found.chains is not None:
        replicates = found.chains.mean.copy()
        replicates[:, [0, -1]] = found.mean[[0, -1]]
        replicates = replicates[None]
    return Estimate(found.mean[None], ends[None], [found.evaluations], [found.stopped], replicates)


def _read_block(game: Any) -> Estimate:
    reason = "exact: the game's own contributions"
    return Estimate(game.delta(), game.ends(), [0] * game.rows, [reason] * game.rows)


def _score(
    call: Rows, judge: Rows, part: slice, game: Any, known: Estimate, family: WeightFamily, utility: Utility
) -> list[Candidates]:
    """Candidates of every output, on one-output views of the games."""
    assert known.delta is not None
    judging = game if judge is call else judge.game(part, call.in_blocks(utility, judge))
    if call.f_x.ndim == 1:
        view = View(game, call.f_x[part], judging, judge.f_x[part])
        return [candidates(view, known.delta, known.replicates, family, utility)]
    scored = []
    for o in call.outputs:
        view = View(output_of(game, o), call.f_x[part, o], output_of(judging, o), judge.f_x[part, o])
        chains = None if known.replicates is None else known.replicates[..., o]
        scored.append(candidates(view, known.delta[..., o], chains, family, utility))
    return scored


def _reweigh(
    call: Rows, delta: FloatArray, chains: FloatArray | None, family: WeightFamily, utility: Utility, select: str
) -> dict[str, Any]:
    """Weigh a Δ that is known already, for `Explanation.reweight`."""
    judge = call.judged_by(utility)
    in_blocks = call.in_blocks(utility, judge)
    blocks = []
    for part in call.parts(in_blocks):
        known = Estimate(delta[part], delta[:0], [], [], None if chains is None else chains[part])
        scored = _score(call, judge, part, call.game(part, in_blocks), known, family, utility)
        blocks.append(choose(scored, family, select))
    return join(blocks, family, call.f_x.ndim == 2)


def _joined(estimates: Sequence[Estimate], name: str) -> FloatArray | None:
    arrays = [getattr(estimate, name) for estimate in estimates]
    return None if any(array is None for array in arrays) else np.concatenate(arrays)


def _keeps(keep: bool | str, call: Rows) -> bool:
    return bool(keep) if keep != "auto" else 8 * call.d**2 * call.f_x.size <= KEEP_BYTES


def _notes(asked: bool | str, kept: bool) -> tuple[str, ...]:
    if kept or asked is False:
        return ()
    return ("Δ was not kept because it exceeds 1 GiB; pass keep_contributions=True to have it.",)


def _endpoint_gaps(call: Rows, ends: FloatArray) -> dict[str, FloatArray]:
    expected = getattr(call.fitted, "mean_prediction", np.nan)
    return {"empty": ends[:, 0] - expected, "full": ends[:, 1] - call.f_x}
