"""Scores of rankings: predictions along them, compared with f(x) and with the labels.

`evaluate` scores the rankings of all methods by `score_rankings`, on every judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray, as_2d, fill_masked
from weightedshap.curves import along_each_output
from weightedshap.games.base import BaseGame
from weightedshap.inputs import Model
from weightedshap.inputs.rows import Rows
from weightedshap.method import judge_slices
from weightedshap.parallel import Workers, each_block

PERFORMANCE = {"recovery": "inclusion", "exclusion": "exclusion", "masked_inclusion": "masked"}
"""For each metric, the prefix of the metric on labels (error or AUC) that is computed with it."""

# Scores that agree to this many digits of the largest score count as equal.
TIE_DIGITS = 12


def score_rankings(
    judge: BaseGame,
    rows: Rows,
    orders: IntArray,
    metric: str,
    labels: Labels | None,
    workers: Workers,
) -> dict[str, FloatArray]:
    """Score M rankings (n, M, d, k) on a judge, with the first j = 0..d features known or hidden.

    Return scores (n, M, d + 1) by metric. The metric "exclusion" is |f(x) − v| with the first j
    features hidden; any other metric is the same with the first j known. If there are `labels`, the
    error or AUC of v on them is added. Outputs are averaged.
    """
    # Hiding the first j features means following the reversed order, read from its end.
    step = -1 if metric == "exclusion" else 1
    _, _, d, k = orders.shape
    f_x = rows.ask(judge)

    def work(part: slice) -> FloatArray:
        return along_each_output(rows[part].bind(judge), orders[part][:, :, ::step])

    parts = judge_slices(judge, len(rows), d, k)
    blocks = each_block(work, parts, workers, "judging")
    values = np.concatenate(list(blocks))[:, :, ::step]  # (n, M, d + 1, k)

    scores = {metric: np.abs(f_x[:, None, None, :] - values)}
    # A squared error is meaningful only on the scale of the labels, the AUC on every scale.
    if labels is not None and (labels.kind == "auc" or judge.space == "value"):
        scores[f"{PERFORMANCE[metric]}_{labels.kind}"] = labels.points(values)
    return {name: score.mean(axis=-1) for name, score in scores.items()}


@dataclass(frozen=True)
class Labels:
    """The labels y of the rows to predict: numbers for the MSE, or class membership for the AUC."""

    kind: str  # "mse" or "auc"
    targets: FloatArray  # (n, k) numbers; for the AUC 1 if the row belongs to the class, else 0

    def points(self, predictions: FloatArray) -> FloatArray:
        """Return the term of each row in the MSE or AUC of `predictions`, as (n, M, d + 1, k).

        The mean of the terms over the n rows is the metric. There are M rankings, 0..d known
        features and k outputs.
        """
        if self.kind == "mse":
            return np.asarray((predictions - self.targets[:, None, None, :]) ** 2)
        columns = [
            auc_points(predictions[..., o], self.targets[:, o] > 0)
            for o in range(predictions.shape[-1])
        ]
        return np.stack(columns, axis=-1)


def auc_points(scores: FloatArray, positive: BoolArray) -> FloatArray:
    """Return an array of the same shape as `scores` (n, …), whose mean over the rows is the AUC.

    `positive` (n,) marks the rows of the class. For a row, V is the share of the rows of the other
    class that it is ranked correctly against, p the share of rows in its own class. The mean of V
    is the AUC within each class, so AUC + (V − AUC)/p has the AUC as its mean; its variance over
    the n rows gives that of the AUC by DeLong et al. (1988). Scores that differ only by rounding
    are ties.
    """
    # Slow to import, and few users need it.
    from scipy.stats import rankdata

    n = len(positive)
    n_positive = int(positive.sum())
    rounded = np.round(scores / (np.abs(scores).max() or 1.0), TIE_DIGITS)
    rank_of_all = rankdata(rounded, axis=0)
    rank_in_class = np.empty_like(rank_of_all)
    for of_class in (positive, ~positive):
        rank_in_class[of_class] = rankdata(rounded[of_class], axis=0)
    # The number of rows of the other class that rank below; a tie counts half.
    below = rank_of_all - rank_in_class

    is_positive = positive.reshape(-1, *(1,) * (scores.ndim - 1))
    V = np.where(is_positive, below / (n - n_positive), 1 - below / n_positive)
    auc = V[positive].mean(axis=0)
    return np.asarray(auc + (V - auc) * np.where(is_positive, n / n_positive, n / (n - n_positive)))


def as_labels(y: Any, n: int, k: int, model: Model | None) -> Labels:
    """Check the labels y of n rows; convert them to k numbers, or to membership in k classes."""
    values = np.asarray(fill_masked(y))
    if values.ndim == 0 or len(values) != n:
        raise ValueError(
            f"`y` must hold one label for each of the {n} rows; got {np.size(values)}."
        )
    if model is None or model.space == "value":
        targets = as_2d(np.asarray(values, dtype=np.float64))
        if targets.shape[1] != k or not np.isfinite(targets).all():
            raise ValueError(
                f"`y` must hold {k} finite numbers for each row, one for each output explained."
            )
        return Labels("mse", targets)
    if values.ndim != 1:
        raise ValueError(f"`y` must hold one class for each row; got shape {values.shape}.")
    targets = np.stack([_is_class(values, model, o) for o in range(k)], axis=1)
    if (targets.all(axis=0) | ~targets.any(axis=0)).any():
        raise ValueError(
            "`y` must hold rows of every class explained and of others: the AUC compares them."
        )
    return Labels("auc", targets.astype(np.float64))


def _is_class(y: Any, model: Model, o: int) -> BoolArray:
    """Return whether the label y of each row (n,) is the class that belongs to output o.

    Labels are compared by name, or by position if the classes have no names.
    """
    name = model.output_names[o]
    classes = np.unique(y)
    has_name = np.array([str(label) == name for label in y])
    if has_name.any():
        return has_name
    if len(classes) == 2 and model.n_raw <= 2:
        return np.asarray(y == classes[model.output_positions[o] if model.n_raw == 2 else 1])
    if np.issubdtype(y.dtype, np.integer):
        return np.asarray(y == model.output_positions[o])
    raise ValueError(
        f"`y` holds classes {list(classes[:5])!r} that do not match the output {name!r}. Pass the"
        " labels that the model was trained on."
    )
