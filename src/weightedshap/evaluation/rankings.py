"""Rankings of the features to compare: by weighted contributions, MCI, TreeSHAP, at random, greedy,
the optimum."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from weightedshap._checks import FloatArray, IntArray
from weightedshap.coalitions import all_coalitions
from weightedshap.config import Fits, Setting
from weightedshap.curves import order_of
from weightedshap.estimators.exact import differences
from weightedshap.explainer import Call
from weightedshap.explanation import Explanation
from weightedshap.games import TreeModel
from weightedshap.games.base import Block, Game
from weightedshap.games.rows import Rows
from weightedshap.games.surrogates.correction import AnchoredBlock, FittedAnchored
from weightedshap.games.tree_model import FittedInterventional, FittedPath, FittedTrees
from weightedshap.games.user import RowGame
from weightedshap.inputs import Data, Table
from weightedshap.parallel import each_block, row_generator
from weightedshap.selection import shared_index
from weightedshap.weighing import Weighing

MOST_PLAYERS = 15  # the optimum looks at 2^d subsets
ENUMERATED = 10  # up to here the MCI looks at all coalitions
TREESHAP_ROWS = 1_000  # of the background: its Shapley values hardly change beyond
# Of these rows times leaves: what patterns of rows may take, see `weightedshap.trees`.
TREESHAP_CELLS = 2**25


@dataclass(frozen=True)
class Judged(Rows):
    """Rows under a judge that corrects the model's own paths, which are the same to both halves:
    `kept` is shared."""

    kept: dict[Any, FloatArray]

    def block(self, part: slice) -> Block:
        from weightedshap.games.tree_batch import WalkedBlock

        block = super().block(part)
        assert isinstance(block, AnchoredBlock)
        base, correction = block.parts
        walked = WalkedBlock(base.outputs, base.d, base.n, self.kept, (part.start, part.stop))
        return replace(block, parts=(walked, correction))

    def take(self, rows: IntArray, outputs: IntArray | int | None) -> Self:
        return replace(super().take(rows, outputs), kept={})


@dataclass(frozen=True)
class Side:
    """The games and the judge of one half on the rows to compare: what rankings are made of."""

    setting: Setting  # the model, the background of the half, and the explainer's choices
    call: Call  # a weight for each row, Δ kept
    explained: Rows  # the rows under the game whose Δ is weighted, the first of several
    judge: Rows  # the rows under the game that chose the weights
    walks: IntArray  # (m, d) orders in which the MCI looks for the largest contribution
    whole: Table  # the background that the halves are of

    @classmethod
    def each(
        cls, fitted: Sequence[tuple[Setting, Fits]], rows: Data, walks: IntArray, whole: Table
    ) -> list[Self]:
        """The sides of the whole background, which share what they find on walks through the
        model's trees."""
        sides: list[Self] = []
        kept: dict[Any, FloatArray] = {}
        for setting, fits in fitted:
            method = replace(setting.method, select="per_row", keep=True)
            weighing = Weighing.of(replace(setting, method=method), fits, rows)
            if isinstance(fits.judge, FittedAnchored) and isinstance(fits.judge.base, FittedPath):
                weighing = replace(weighing, judge=Judged(**vars(weighing.judge), kept=kept))
            call = Call(weighing, range(len(rows)))
            sides.append(cls(setting, call, call.explained[0], weighing.judge, walks, whole))
        return sides

    @cached_property
    def treeshap_rows(self) -> Table:
        """Background rows that interventional TreeSHAP looks at, drawn: fewer where a large forest
        is explained."""
        leaves = (
            self.explained.fitted.info["leaves"]
            if isinstance(self.explained.fitted, FittedPath)
            else 1
        )
        most = min(TREESHAP_ROWS, max(20, TREESHAP_CELLS // leaves))
        rng = np.random.default_rng([self.setting.choices.random_state, 3])
        return (
            self.whole
            if len(self.whole) <= most
            else self.whole.some(rng.permutation(len(self.whole))[:most])
        )

    @cached_property
    def explanation(self) -> Explanation:
        """Every row explained, a weight for each."""
        return self.call.explanation(None, self.setting.background.player_names)

    @cached_property
    def delta(self) -> FloatArray:
        """(n, G, d, d, k) Δ of the games that are explained."""
        weigher = self.explanation._weigher
        if isinstance(weigher, Weighing) and weigher.kept:
            return weigher.kept["contributions"]
        n = len(self.explained)
        d = self.whole.d
        return np.asarray(self.explanation.contributions).reshape(n, 1, d, d, -1)

    @cached_property
    def mci(self) -> tuple[IntArray, IntArray]:
        """(n, d, k) rankings by the MCI of every row, and by that of all rows together, on the
        judge."""
        parts = self.judge.parts(self.whole.d)
        blocks = list(each_block(self._mci_block, parts, self.setting.method, "MCI"))
        # (k, …) Σ over the rows of (f(x) − v(S))².
        loss = np.sum([block[1] for block in blocks], axis=0)
        importance = np.stack([mci(-output, self.walks) for output in loss], axis=-1)  # (d, k)
        everywhere = np.tile(order_of(importance, axis=0), (len(self.explained), 1, 1))
        return np.concatenate([block[0] for block in blocks]), everywhere

    def _mci_block(self, part: slice) -> tuple[IntArray, FloatArray]:
        """The local rankings (n, d, k) of some rows, and the squared errors (k, …) of every
        coalition."""
        local = []
        losses = []
        for block, f_x in self.judge.view(part).each():
            values = sampled_values(block, self.walks)  # (n, …)
            local.append(np.maximum(mci(values, self.walks), mci(-values, self.walks)))
            losses.append(((f_x.reshape(-1, *(1,) * (values.ndim - 1)) - values) ** 2).sum(axis=0))
        return order_of(np.stack(local, axis=-1), axis=1), np.stack(losses)


Ranking = Callable[[Side], IntArray]
"""A way to rank the features of every row, (n, d, k)."""


def _by(values: Callable[[Side], FloatArray]) -> Ranking:
    """By |values|, (n, d) or (n, d, k)."""
    return lambda side: order_of(
        values(side).reshape(len(side.explained), side.whole.d, -1), axis=1
    )


def _shared(side: Side, how: str) -> FloatArray:
    """(n, d, k) under one weight for all rows, chosen by the scores that are known."""
    one = side.explanation
    delta = side.delta
    n, G, *_, k = delta.shape
    # (k,) of pairs, game by game.
    index = shared_index(one.scores.reshape(n, -1, k), one.family, how)
    game = index * G // len(one.family)
    return np.stack(
        [one.family.vectors[index[o]] @ delta[:, game[o], ..., o] for o in range(k)], axis=-1
    )


def _tree_shap(side: Side, removal: str) -> FloatArray:
    """(n, d, k) Shapley values of the model's own trees."""
    own = side.explained.fitted
    table = side.treeshap_rows
    fitted: FittedTrees
    if not isinstance(own, FittedPath):
        fitted = TreeModel(removal).fit(side.setting.model, table)
    elif removal == "interventional":
        fitted = FittedInterventional(own.model, table, own.read, own.link)
    else:
        return side.explanation.shapley
    rows = replace(side.explained, fitted=fitted)
    # Those of large forests into parts for workers.
    cut = side.explained if isinstance(own, FittedPath) else rows
    parts = cut.parts(side.whole.d)
    method = side.setting.method
    blocks = each_block(
        lambda part: fitted.shapley(rows.some(part)), parts, method, f"TreeSHAP {removal}"
    )
    return np.concatenate(list(blocks))


def _drawn(side: Side) -> IntArray:
    """(n, d, k) at random, the same for all outputs."""
    n, k = side.explained.f_x.shape
    drawn = [
        row_generator(side.setting.choices.random_state, r).permutation(side.whole.d)
        for r in range(n)
    ]
    return np.repeat(np.stack(drawn)[..., None], k, axis=-1)


def _searched(side: Side, search: Callable[[Game, float], IntArray]) -> IntArray:
    """(n, d, k) what `search` finds on the judge, at each row and output."""
    rows = side.judge
    parts = [slice(r, r + 1) for r in range(len(side.judge))]

    def work(part: slice) -> IntArray:
        views = rows.view(part).each()
        return np.stack(
            [search(RowGame(block, axis=False), float(f_x[0])) for block, f_x in views], axis=-1
        )

    return np.stack(list(each_block(work, parts, side.setting.method, search.__name__)))


def greedy(game: Game, f_x: float) -> IntArray:
    """(d,) the order that adds the feature which brings v nearest to f(x), step by step; a
    reference, not a bound."""
    d = game.d
    known = np.zeros(d, dtype=np.bool_)
    order = np.empty(d, dtype=np.intp)
    for step in range(d):
        left = np.flatnonzero(~known)
        coalitions = known | np.eye(d, dtype=np.bool_)[left]
        order[step] = left[np.abs(f_x - np.asarray(game(coalitions)).reshape(-1)).argmin()]
        known[order[step]] = True
    return order


def optimum(game: Game, f_x: float) -> IntArray:
    """(d,) the order with the smallest AUP (Equation 4): best(S) = |f(x) − v(S)| + min_{i ∈ S}
    best(S ∖ i), d ≤ 15."""
    d = game.d
    if d > MOST_PLAYERS:
        raise ValueError(
            f"The true optimum looks at all 2^d subsets, for at most {MOST_PLAYERS} players; got"
            f" {d}."
        )
    subsets = all_coalitions(d)
    cost = np.abs(f_x - np.asarray(game(subsets)).reshape(-1))  # (2^d,)
    bits = 1 << np.arange(d)
    sizes = subsets.sum(axis=1)
    best = np.zeros(2**d)
    last = np.zeros(2**d, dtype=np.intp)
    for size in range(1, d + 1):
        S = np.flatnonzero(sizes == size)
        # (|S|, d) without each member.
        before = np.where(subsets[S], best[S[:, None] & ~bits], np.inf)
        last[S] = before.argmin(axis=1)
        best[S] = cost[S] + before.min(axis=1)
    order = np.empty(d, dtype=np.intp)
    S = 2**d - 1
    for place in reversed(range(d)):
        order[place] = last[S]
        S &= ~bits[order[place]]
    return order


def mci(values: FloatArray, walks: IntArray) -> FloatArray:
    """(…, d) max_S v(S ∪ i) − v(S), the MCI (Catav et al. 2021); global where v is minus the mean
    squared error."""
    d = walks.shape[1]
    if d > ENUMERATED:
        # (…, m, d) of each feature.
        place = np.broadcast_to(np.argsort(walks, axis=-1), (*values.shape[:-1], d))
        return np.asarray(np.take_along_axis(np.diff(values, axis=-1), place, axis=-1).max(axis=-2))
    by_subset = np.moveaxis(values, -1, 0)  # (2^d, …)
    return np.stack([differences(by_subset, i).max(axis=0) for i in range(d)], axis=-1)


def sampled_values(block: Block, walks: IntArray) -> FloatArray:
    """(n, m, d + 1) one output along `walks` (m, d); up to d = 10 all coalitions instead, (n,
    2^d)."""
    if block.d <= ENUMERATED:
        return block.values(all_coalitions(block.d))[..., 0]
    return block.along(np.tile(walks, (block.n, 1, 1)))[..., 0]


METHODS: Mapping[str, Ranking] = {
    "WeightedSHAP": _by(lambda side: side.explanation.values),
    "WeightedSHAP shared": _by(partial(_shared, how="shared")),
    "WeightedSHAP one-SE": _by(partial(_shared, how="one_standard_error")),
    "WeightedSHAP wide": _by(
        lambda side: side.explanation.reweight("wide", side.setting.method.utility).values
    ),
    "refined": (
        lambda side: side.explanation.refined_orders().reshape(
            len(side.explained), side.whole.d, -1
        )
    ),
    "Shapley": _by(lambda side: side.explanation.shapley),
    "first": _by(lambda side: side.delta[:, 0, 0]),
    "last": _by(lambda side: side.delta[:, 0, -1]),
    "MCI": lambda side: side.mci[0],
    "MCI global": lambda side: side.mci[1],
    "TreeSHAP path": _by(partial(_tree_shap, removal="path")),
    "TreeSHAP interventional": _by(partial(_tree_shap, removal="interventional")),
    "random": _drawn,
    "greedy": partial(_searched, search=greedy),
    "optimum": partial(_searched, search=optimum),
}
"""All methods: rankings by weights of Δ, by other importances, at random, and two that look at the
score itself."""

OF_MODEL = ("TreeSHAP path", "TreeSHAP interventional")
"""Those for which only the model and the whole background matter."""
