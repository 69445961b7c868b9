"""Rankings of the features to compare: by weighted contributions, MCI, TreeSHAP, at random, greedy, the optimum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from weightedshap.checks import FloatArray, IntArray
from weightedshap.coalitions import all_coalitions
from weightedshap.curves import along, order_of
from weightedshap.estimators.exact import differences
from weightedshap.games import TreeModel
from weightedshap.games.wrappers import output_of, row_of
from weightedshap.parallel import row_generator
from weightedshap.rows import Rows
from weightedshap.selection import careful_weight, shared_weight

__all__ = ["METHODS", "greedy", "mci", "model_orders", "optimum", "ranked", "sampled_values"]

MOST_PLAYERS = 15
ENUMERATED = 10
TREESHAP_ROWS = 1_000
METHODS = (
    "WeightedSHAP",
    "WeightedSHAP shared",
    "WeightedSHAP one-SE",
    "WeightedSHAP wide",
    "Shapley",
    "first",
    "last",
    "MCI",
    "MCI global",
    "TreeSHAP path",
    "TreeSHAP interventional",
    "random",
    "greedy",
    "optimum",
)
"""All methods: rankings by weights of Δ, by other importances, at random, and two that look at the score itself."""


def ranked(call: Rows, methods: Sequence[str], walks: IntArray) -> dict[str, IntArray]:
    """(n, d, k) the ranking of every method under the game of `call`; those of `model_orders` are not among them.

    Parameters
    ----------
    walks : (m, d) orders in which the MCI looks for the largest contribution
    """
    found = _weighted_orders(call, methods)
    if {"MCI", "MCI global"} & set(methods):
        found |= _mci_orders(call, walks)
    for method, search in (("greedy", greedy), ("optimum", optimum)):
        if method in methods:
            found[method] = _searched_orders(call, search, method)
    drawn = [row_generator(call.explainer.random_state, r).permutation(call.d) for r in range(len(call.rows))]
    found["random"] = np.repeat(np.stack(drawn)[..., None], len(call.outputs), axis=-1)
    return {method: orders for method, orders in found.items() if method in methods}


def model_orders(call: Rows, methods: Sequence[str]) -> tuple[dict[str, IntArray], tuple[str, ...]]:
    """Rankings (n, d, k) by the Shapley values of the model's own trees, and what the reader should know of them."""
    orders: dict[str, IntArray] = {}
    background, notes = call.explainer.background, []
    if "TreeSHAP interventional" in methods and len(background) > TREESHAP_ROWS:
        rng = np.random.default_rng([call.explainer.random_state, 3])
        background = background.some(rng.permutation(len(background))[:TREESHAP_ROWS])
        notes.append(f"TreeSHAP interventional looks at {TREESHAP_ROWS:,} background rows drawn at random.")
    for method in ("TreeSHAP path", "TreeSHAP interventional"):
        if method not in methods:
            continue
        try:
            fitted = TreeModel(method.partition(" ")[2]).fit(call.explainer.model, background)
        except (TypeError, ValueError) as error:
            return {}, (f"TreeSHAP is left out, as trees of the model cannot be read: {error}",)
        own = replace(call, fitted=fitted)
        work = partial(_semivalue, own, np.full((1, call.d), 1 / call.d))
        orders[method] = _orders(np.concatenate(own.each(work, method)))
    return orders, tuple(notes)


def _semivalue(call: Rows, weights: FloatArray, part: slice) -> FloatArray:
    return np.asarray(call.game(part, True).semivalues(weights)[:, 0])


def _orders(phi: FloatArray) -> IntArray:
    """(n, d[, k]) attributions → (n, d, k) rankings."""
    return np.moveaxis(order_of(np.moveaxis(by_output(phi, 2), 1, -1)), -1, 1)


def by_output(array: FloatArray, axes: int) -> FloatArray:
    """`array` with its axis of outputs, after the first `axes` ones, whether it has one or not."""
    return array if array.ndim > axes else array[..., None]


def _weighted_orders(call: Rows, methods: Sequence[str]) -> dict[str, IntArray]:
    """Rankings by weighted contributions, from one explanation."""
    explanation = call.explainer.but(select="per_row", keep_contributions=True)(call.rows)
    family, delta = explanation.family, by_output(explanation.contributions, 3)
    scores = by_output(explanation.scores, 2)
    found = {
        "WeightedSHAP": explanation.values,
        "Shapley": explanation.shapley,
        "first": delta[:, 0],
        "last": delta[:, -1],
    }
    for method, choose in (("WeightedSHAP shared", shared_weight), ("WeightedSHAP one-SE", careful_weight)):
        weights = np.stack([family.vectors[choose(scores[..., o], family)] for o in range(scores.shape[-1])])
        found[method] = np.einsum("kj,njdk->ndk", weights, delta)
    if "WeightedSHAP wide" in methods:
        found["WeightedSHAP wide"] = explanation.reweight("wide", call.explainer.utility).values
    return {method: _orders(phi) for method, phi in found.items()}


def _mci_orders(call: Rows, walks: IntArray) -> dict[str, IntArray]:
    """Rankings (n, d, k) by the MCI of every row, and by that of all rows together."""
    blocks = call.each(partial(_mci_block, call, walks), "MCI")
    loss = sum(block[1] for block in blocks)  # (k, …) Σ over the rows of (f(x) − v(S))²
    importance = np.stack([mci(-output, walks) for output in loss], axis=-1)  # (d, k)
    everywhere = np.tile(_orders(importance[None]), (len(call.rows), 1, 1))
    return {"MCI": np.concatenate([block[0] for block in blocks]), "MCI global": everywhere}


def _mci_block(call: Rows, walks: IntArray, part: slice) -> tuple[IntArray, FloatArray]:
    """The local rankings (n, d, k) of a block of rows, and the squared errors (k, …) of every coalition."""
    local, losses = [], []
    for o, f_x in enumerate(by_output(call.f_x[part], 1).T):
        view = call.view(part, o)
        values = sampled_values(view, walks)
        values = values if hasattr(view, "rows") else values[None]  # (n, …)
        local.append(np.maximum(mci(values, walks), mci(-values, walks)))
        losses.append(((f_x.reshape(-1, *(1,) * (values.ndim - 1)) - values) ** 2).sum(axis=0))
    return _orders(np.stack(local, axis=-1)), np.stack(losses)


def _searched_orders(call: Rows, search: Callable[[Any, float], IntArray], description: str) -> IntArray:
    """(n, d, k) what `search` finds in the game of each row and output."""
    return np.concatenate(call.each(partial(_search_block, call, search), description))


def _search_block(call: Rows, search: Callable[[Any, float], IntArray], part: slice) -> IntArray:
    found = []
    for row in range(part.start, part.stop):
        game, f_x = call.fitted.at(row_of(call.rows, row)), np.atleast_1d(call.f_x[row])
        views = [output_of(game, o) for o in range(len(f_x))] if call.axis else [game]
        found.append(np.stack([search(view, f) for view, f in zip(views, f_x, strict=True)], axis=-1))
    return np.stack(found)


def greedy(game: Any, f_x: float) -> IntArray:
    """(d,) the order that adds, step by step, the feature which brings v nearest to f(x).

    A reference, not a bound: a first step that looks worse may open a better way. It costs d(d + 1)/2 evaluations.
    Of equals the lower index comes first.
    """
    d = game.d
    known, order = np.zeros(d, dtype=np.bool_), np.empty(d, dtype=np.intp)
    for step in range(d):
        left = np.flatnonzero(~known)
        coalitions = np.tile(known, (len(left), 1))
        coalitions[np.arange(len(left)), left] = True
        order[step] = left[np.abs(f_x - np.asarray(game(coalitions)).reshape(-1)).argmin()]
        known[order[step]] = True
    return order


def optimum(game: Any, f_x: float) -> IntArray:
    """(d,) the order with the smallest possible AUP (Equation 4), for d ≤ 15.

    The shortest path from ∅ to [d] over all subsets, where reaching S costs |f(x) − v(S)|:
    best(S) = |f(x) − v(S)| + min_{i ∈ S} best(S ∖ i).
    """
    d = game.d
    if d > MOST_PLAYERS:
        raise ValueError(f"The true optimum looks at all 2^d subsets, for at most {MOST_PLAYERS} players; got {d}.")
    subsets = all_coalitions(d)
    cost = np.abs(f_x - np.asarray(game(subsets)).reshape(-1))  # (2^d,)
    bits, sizes = 1 << np.arange(d), subsets.sum(axis=1)
    best, last = np.zeros(2**d), np.zeros(2**d, dtype=np.intp)
    for size in range(1, d + 1):
        S = np.flatnonzero(sizes == size)
        before = np.where(subsets[S], best[S[:, None] & ~bits], np.inf)  # (|S|, d) without each member
        last[S] = before.argmin(axis=1)
        best[S] = cost[S] + before.min(axis=1)
    order, S = np.empty(d, dtype=np.intp), 2**d - 1
    for place in reversed(range(d)):
        order[place] = last[S]
        S &= ~bits[order[place]]
    return order


def mci(values: FloatArray, walks: IntArray) -> FloatArray:
    """(…, d) marginal contribution feature importance (Catav et al. 2021): max_S v(S ∪ i) − v(S) of each feature i.

    Their v says how well S predicts. Given `sampled_values` of one row's game this is the local form, where the
    largest |v(S ∪ i) − v(S)| counts; given minus the mean squared error of many rows, the global one.

    Parameters
    ----------
    values : what `sampled_values` gave for `walks`, or something computed from it
    """
    d = walks.shape[1]
    if d > ENUMERATED:
        return np.asarray(_gains_of_walks(values, walks).max(axis=-2))
    by_subset = np.moveaxis(values, -1, 0)  # (2^d, …)
    return np.stack([differences(by_subset, i).max(axis=0) for i in range(d)], axis=-1)


def sampled_values(game: Any, walks: IntArray) -> FloatArray:
    """([n,] m, d + 1) values of one output of a game, or of a block of n rows, along the orders `walks` (m, d).

    Up to d = 10 all coalitions are evaluated instead: ([n,] 2^d), in the order of `all_coalitions`.
    """
    if game.d <= ENUMERATED:
        return np.asarray(game(all_coalitions(game.d)))
    rows = getattr(game, "rows", None)
    return along(game, walks if rows is None else np.tile(walks, (rows, 1, 1)))


def _gains_of_walks(values: FloatArray, walks: IntArray) -> FloatArray:
    """(…, m, d + 1) → (…, m, d), each feature in its own column."""
    place = np.broadcast_to(np.argsort(walks, axis=-1), (*values.shape[:-1], walks.shape[-1]))
    return np.take_along_axis(np.diff(values, axis=-1), place, axis=-1)
