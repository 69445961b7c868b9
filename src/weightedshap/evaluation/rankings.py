"""Rankings to compare: by weighted contributions, MCI, TreeSHAP, at random, and by searches.

`METHODS` lists them by name. Each is a function of a `HalfBackground` that ranks the features of
all its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from weightedshap._checks import FloatArray, IntArray
from weightedshap.coalitions import all_coalitions
from weightedshap.curves import rank_features
from weightedshap.evaluation.halves import HalfBackground
from weightedshap.games import TreeModel
from weightedshap.games.base import BaseGame, Game, RowGame
from weightedshap.games.tree_model import InterventionalTreeGame, PathTreeGame
from weightedshap.inputs import Table
from weightedshap.method import judge_slices
from weightedshap.parallel import each_block, row_generator
from weightedshap.selection import shared_index

# The largest d for `optimum`, which evaluates 2^d subsets.
MOST_PLAYERS = 15
# Background rows for interventional TreeSHAP: with more rows its values hardly change.
TREESHAP_ROWS = 1_000
# Limit of background rows times leaves, which bounds the memory of interventional TreeSHAP.
TREESHAP_CELLS = 2**25

Ranking = Callable[[HalfBackground], IntArray]
"""The signature of a method: it returns the ranked features (n, d, k) of all rows."""


def _rank_by(values: Callable[[HalfBackground], FloatArray]) -> Ranking:
    """Build a ranking method that sorts features by |φ|, where `values` computes φ (n, d[, k])."""

    def rank(half: HalfBackground) -> IntArray:
        return rank_features(values(half).reshape(len(half.rows), half.d, -1), axis=1)

    return rank


def _values_of_wide_family(half: HalfBackground) -> FloatArray:
    """Return the attributions φ* (n, d[, k]), with weights chosen from the family "wide"."""
    return half.explanation.reweight("wide", half.problem.utility).values


def _values_of_shared_weight(half: HalfBackground, rule: str) -> FloatArray:
    """Return the attributions φ_w (n, d, k) for one weight w that all rows share.

    `rule` chooses the weight from the scores of all rows.
    """
    explanation = half.explanation
    family = explanation.family
    n, _, _, _, k = half.delta.shape
    index = shared_index(explanation.scores.reshape(n, -1, k), family, rule)  # (k,)

    # If games compete, the family is made of pairs (game, weight), sorted by game.
    game = index // len(half.problem.family)
    phi = [family.vectors[index[o]] @ half.delta[:, game[o], ..., o] for o in range(k)]
    return np.stack(phi, axis=-1)


def _refined_orders(half: HalfBackground) -> IntArray:
    """Return the WeightedSHAP rankings (n, d, k), improved by a local search on the judge."""
    return half.explanation.refined_orders().reshape(len(half.rows), half.d, -1)


def _tree_shap(half: HalfBackground, removal: str) -> FloatArray:
    """Return the Shapley values (n, d, k) that TreeSHAP computes from the model's trees.

    `removal` is "path" or "interventional": how the trees treat hidden features.
    """
    game = half.game
    if isinstance(game, PathTreeGame) and removal == "path":
        return half.explanation.shapley

    tree_game: BaseGame
    table = treeshap_background(half)
    # The path-dependent game has already read the trees.
    if isinstance(game, PathTreeGame):
        tree_game = InterventionalTreeGame(game.model, table, game.reading, game.link)
    else:
        tree_game = TreeModel(removal).fit(half.setup.model, table)

    # All blocks use the same array, as a game caches its work by the identity of weight vectors.
    uniform = np.full((1, half.d), 1 / half.d)

    def work(part: slice) -> FloatArray:
        batch = half.rows[part].bind(tree_game)
        return np.asarray(batch.semivalues(uniform)[:, 0])

    parts = judge_slices(tree_game, len(half.rows), half.d, half.n_outputs)
    blocks = each_block(work, parts, half.workers, f"TreeSHAP {removal}")
    return np.concatenate(list(blocks))


def treeshap_background(half: HalfBackground) -> Table:
    """Return the background rows for interventional TreeSHAP; a random sample if there are many."""
    n_leaves = half.game.info["leaves"] if isinstance(half.game, PathTreeGame) else 1
    most = min(TREESHAP_ROWS, max(20, TREESHAP_CELLS // n_leaves))
    if len(half.whole) <= most:
        return half.whole
    rng = np.random.default_rng([half.problem.seed, 3])
    return half.whole.subset(rng.permutation(len(half.whole))[:most])


def _random_order(half: HalfBackground) -> IntArray:
    """Draw a random order of the features for each row, the same for all outputs: (n, d, k)."""
    seed = half.problem.seed
    orders = [row_generator(seed, r).permutation(half.d) for r in range(len(half.rows))]
    return np.repeat(np.stack(orders)[..., None], half.n_outputs, axis=-1)


def _search_each_row(half: HalfBackground, search: Callable[[Game, float], IntArray]) -> IntArray:
    """Run `search` on the judge at each row and output; return the orders (n, d, k) it finds."""
    rows = half.rows
    # Predict all rows in one call; the blocks of single rows keep these predictions.
    rows.ask(half.judge)

    def work(part: slice) -> IntArray:
        batch = rows[part].bind(half.judge)
        orders = []
        for o in range(half.n_outputs):
            game = RowGame(batch.output(o), axis=False)
            orders.append(search(game, float(batch.predictions[0, o])))
        return np.stack(orders, axis=-1)

    parts = [slice(r, r + 1) for r in range(len(rows))]
    return np.stack(list(each_block(work, parts, half.workers, search.__name__)))


def greedy(game: Game, f_x: float) -> IntArray:
    """Find an order (d,) greedily: add the feature that brings the game's value nearest to f(x).

    The order is a reference, not a bound: another order may have a smaller AUP.
    """
    d = game.d
    known = np.zeros(d, dtype=np.bool_)
    order = np.empty(d, dtype=np.intp)
    for step in range(d):
        hidden = np.flatnonzero(~known)
        coalitions = known | np.eye(d, dtype=np.bool_)[hidden]
        errors = np.abs(f_x - np.asarray(game(coalitions)).reshape(-1))
        order[step] = hidden[errors.argmin()]
        known[order[step]] = True
    return order


def optimum(game: Game, f_x: float) -> IntArray:
    """Find the order (d,) with the smallest area under the recovery curve (AUP), for d ≤ 15.

    AUP is defined in Equation 4. The smallest sum for the features of S is best(S) = |f(x) − v(S)|
    + min_{i ∈ S} best(S ∖ i).
    """
    d = game.d
    if d > MOST_PLAYERS:
        raise ValueError(
            f"The true optimum looks at all 2^d subsets, for at most {MOST_PLAYERS} players; got"
            f" {d}."
        )
    subsets = all_coalitions(d)  # row S contains the players whose bits are set in S
    error = np.abs(f_x - np.asarray(game(subsets)).reshape(-1))  # (2^d,)
    bits = 1 << np.arange(d)
    sizes = subsets.sum(axis=1)
    best = np.zeros(2**d)
    last_player = np.zeros(2**d, dtype=np.intp)
    for size in range(1, d + 1):
        S = np.flatnonzero(sizes == size)
        without = np.where(subsets[S], best[S[:, None] & ~bits], np.inf)  # (|S|, d)
        last_player[S] = without.argmin(axis=1)
        best[S] = error[S] + without.min(axis=1)

    # Go back from all players: find the last one, then the last one of those that remain.
    order = np.empty(d, dtype=np.intp)
    remaining = 2**d - 1
    for place in reversed(range(d)):
        order[place] = last_player[remaining]
        remaining &= ~bits[order[place]]
    return order


METHODS: Mapping[str, Ranking] = {
    "WeightedSHAP": _rank_by(lambda half: half.explanation.values),
    "WeightedSHAP shared": _rank_by(partial(_values_of_shared_weight, rule="shared")),
    "WeightedSHAP one-SE": _rank_by(partial(_values_of_shared_weight, rule="one_standard_error")),
    "WeightedSHAP wide": _rank_by(_values_of_wide_family),
    "refined": _refined_orders,
    "Shapley": _rank_by(lambda half: half.explanation.shapley),
    "first": _rank_by(lambda half: half.delta[:, 0, 0]),
    "last": _rank_by(lambda half: half.delta[:, 0, -1]),
    "MCI": lambda half: half.mci[0],
    "MCI global": lambda half: half.mci[1],
    "TreeSHAP path": _rank_by(partial(_tree_shap, removal="path")),
    "TreeSHAP interventional": _rank_by(partial(_tree_shap, removal="interventional")),
    "random": _random_order,
    "greedy": partial(_search_each_row, search=greedy),
    "optimum": partial(_search_each_row, search=optimum),
}
"""All methods by name: rankings by weighted Δ, by other importances, at random, and by searches for
the best score itself."""

MODEL_METHODS = ("TreeSHAP path", "TreeSHAP interventional")
"""Methods that depend only on the model and the full background; both halves share their ranks."""
