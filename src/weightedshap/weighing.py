"""Weights on contributions that are known: who judges them, and what is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from weightedshap.assembly import Assembled
from weightedshap.checks import FloatArray, IntArray
from weightedshap.choices import Fits, Method, Setting
from weightedshap.estimators.exact import errors_of
from weightedshap.explanation import Cut
from weightedshap.games.protocols import Block
from weightedshap.games.rows import Rows, parts_of
from weightedshap.inputs import Data
from weightedshap.parallel import each_block
from weightedshap.refinement import refined
from weightedshap.selection import SHARED, Candidates, Selection, candidates, paired, select
from weightedshap.utilities import Utility
from weightedshap.weights import WeightFamily

Found = tuple[FloatArray, FloatArray | None]
"""What is known of a game at n rows: φ (n, M, d, k), and chains (n, c, d, d, k) where it was sampled."""


@dataclass(frozen=True)
class Weighing:
    """Algorithm 1 on the rows of a call; an Explanation holds on to it, to be weighed anew."""

    method: Method
    names: tuple[str, ...]  # of the games that compete, or of the only one
    explained: tuple[Rows, ...]  # these games on all rows, whose Δ is weighted
    judge: Rows  # the game on all rows that curves are drawn on and weights are scored by
    setting: Setting | None  # fits the game that a utility may ask for; None where there is no model
    kept: Mapping[str, FloatArray] | None = None  # (n, G, …, k) what is known of several games, see `BY_GAME`

    @classmethod
    def of(cls, setting: Setting, fits: Fits, rows: Data) -> Weighing:
        """The games of an explainer on aligned rows."""
        explained = tuple(Rows.of(game, rows) for game in fits.games)
        judge = explained[0] if fits.judge is fits.games[0] else Rows.of(fits.judge, rows)
        if judge.f_x.shape != explained[0].f_x.shape:
            counts = f"{judge.f_x.shape[1]} outputs, but {explained[0].f_x.shape[1]} are explained"
            raise ValueError(f"The judge has {counts}. Give a judge with one output for each.")
        return cls(setting.method, fits.names, explained, judge, setting)

    @cached_property
    def family(self) -> WeightFamily:
        """What is chosen from: weights, or pairs of a game and a weight."""
        return self.method.family if len(self.names) == 1 else self.method.family.of_games(self.names)

    def choose(self, scorer: Rows, part: slice, block: Block | None, found: Sequence[Found]) -> Candidates | Selection:
        """T of every weight, and w*, from what is known of every game; candidates where rows share a weight."""
        family, judge = self.method.family, self.judge
        judging = judge.view(part, block if judge is self.explained[0] else None)
        scoring = judging if scorer is judge else scorer.view(part)
        errors = [errors_of(chains, phi, family.with_references) for phi, chains in found]
        known = [np.zeros_like(phi) if e is None else e for e, (phi, _) in zip(errors, found, strict=True)]
        unsure = None if all(e is None for e in errors) else paired(known, len(family))
        phi = paired([phi for phi, _ in found], len(family))
        scored = candidates(judging, scoring, phi, unsure, self.family, self.method.utility)
        return scored if self.method.select in SHARED else select(scored, self.family)

    def scorer(self, utility: Utility) -> Rows:
        """The rows under the game that `utility` looks at: the judge, unless it asks for another."""
        if utility.game is None:
            return self.judge
        if self.setting is None:
            needs = "which needs a model and a background: use weightedshap.Explainer"
            raise ValueError(f"The utility {utility.name!r} looks at the {utility.game} game, {needs}.")
        return self.setting.scorer(utility, self.explained[0])

    def weigh(
        self, delta: FloatArray, chains: FloatArray | None, family: WeightFamily | None, utility: Utility, how: str
    ) -> dict[str, Any]:
        """The fields of an Explanation that depend on the weights, for a Δ that is known already."""
        weights = self.method.family if family is None else family
        other = replace(self, method=replace(self.method, family=weights, utility=utility, select=how))
        scorer, result = self.scorer(utility), Assembled(len(self.judge), other.family, len(self.names), how)
        known = self.kept or _by_game(contributions=delta, replicates=chains)
        for part in parts_of(self.explained, self.judge, weights.d, not utility.one_row):
            some = {name: array[part] for name, array in known.items()}
            phi = [weights.with_references.weigh(delta) for delta in np.moveaxis(some.pop("contributions"), 1, 0)]
            drawn = some.pop("replicates", None)
            of_games = [None] * len(phi) if drawn is None else np.moveaxis(drawn, 1, 0)
            result.add(part, other.choose(scorer, part, None, list(zip(phi, of_games, strict=True))))
        if self.kept:
            result.put(slice(None), self.kept)
        return result.fields(self.names, self.explained[0].axis) | {"family": other.family, "_weigher": other}

    def refine(self, orders: IntArray) -> IntArray:
        """(n, d[, k]) orders → the same shape, better ones by a search on the judge; see `refinement.refined`."""
        start = orders.reshape(*orders.shape[:2], -1)

        def work(part: slice) -> IntArray:
            view = self.judge.view(part)
            return refined(view, start[part], self.judge.spread(view))

        parts = self.judge.parts(start.shape[1])
        found = np.concatenate(list(each_block(work, parts, self.method, "refining")))
        return found.reshape(orders.shape)

    def judged(self, orders: IntArray) -> tuple[FloatArray, FloatArray]:
        """What the judge predicts along orders (n, d, k), (n, d + 1, k), and the spread (n, k) of its f(x)."""
        view = self.judge.view(slice(0, len(orders)))
        return view.along(orders[:, None])[:, 0], self.judge.spread(view)

    def take(self, keep: Cut) -> Weighing:
        """The same for some of the rows and outputs."""
        explained = tuple(rows.take(keep.rows, keep.outputs) for rows in self.explained)
        judge = explained[0] if self.judge is self.explained[0] else self.judge.take(keep.rows, keep.outputs)
        outputs = slice(None) if keep.outputs is None else np.atleast_1d(keep.outputs)
        kept = None if self.kept is None else {name: a[keep.rows][..., outputs] for name, a in self.kept.items()}
        return replace(self, explained=explained, judge=judge, kept=kept)

    def join(self, others: Sequence[object]) -> Weighing | None:
        """The same for more rows; None if they are not one explainer's work."""
        parts = [self, *(other for other in others if isinstance(other, Weighing))]
        if len(parts) <= len(others) or not all(part._is_like(self) for part in parts):
            return None
        explained = tuple(Rows.joined(rows) for rows in zip(*(part.explained for part in parts), strict=True))
        judge = explained[0] if self.judge is self.explained[0] else Rows.joined([part.judge for part in parts])
        tables = [part.kept for part in parts if part.kept]
        together = set(tables[0]).intersection(*tables) if len(tables) == len(parts) else set()
        kept = {name: np.concatenate([table[name] for table in tables]) for name in together} or None
        return replace(self, explained=explained, judge=judge, kept=kept)

    def _is_like(self, other: Weighing) -> bool:
        """Whether another is one of the same games, judge and outputs."""
        pairs = zip((*self.explained, self.judge), (*other.explained, other.judge), strict=False)
        return self.names == other.names and all(one.is_like(two) for one, two in pairs)


def _by_game(**arrays: FloatArray | None) -> dict[str, FloatArray]:
    """Fields of an Explanation, (n, …[, k]) by name, as the tables (n, 1, …, k) of its only game."""
    axes = {"contributions": 3, "replicates": 4}
    return {name: a.reshape(len(a), 1, *a.shape[1 : axes[name]], -1) for name, a in arrays.items() if a is not None}
