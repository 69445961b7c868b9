"""What rankings score: predictions of a game along them, against f(x) and against the true answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, IntArray
from weightedshap.curves import along
from weightedshap.evaluation.rankings import by_output
from weightedshap.rows import Rows
from weightedshap.utilities import masked_inclusion

__all__ = ["Labels", "auc_points", "as_labels", "masked_points", "points"]

TIE_DIGITS = 12
"""Digits, of the largest score, to which two scores must agree to count as equal."""


def points(call: Rows, orders: IntArray, labels: Labels | None, metrics: Sequence[str]) -> dict[str, FloatArray]:
    """(n, M, d + 1) each metric of every row, ranking and k = 0..d under the game of `call`; outputs are averaged.

    Parameters
    ----------
    orders : (n, M, d, k) M rankings of every row and output
    metrics : "exclusion" is left out unless it is among them, and so is its "performance" against the labels
    """
    f_x = by_output(call.f_x, 1)[:, None, None, :]
    kept = predictions(call, orders)
    found = {"recovery": np.abs(f_x - kept)}
    if labels is not None:
        found[f"inclusion_{labels.kind}"] = labels.points(kept)
    if "exclusion" in metrics:
        left = predictions(call, orders[:, :, ::-1])[:, :, ::-1]
        found["exclusion"] = np.abs(f_x - left)
        if labels is not None and "performance" in metrics:
            found[f"exclusion_{labels.kind}"] = labels.points(left)
    return {metric: array.mean(axis=-1) for metric, array in found.items()}


def masked_points(call: Rows, orders: IntArray, labels: Labels | None, metrics: Sequence[str]) -> dict[str, FloatArray]:
    """Masked inclusion, on the model with means in the place of hidden features; nothing without a model."""
    if call.explainer.model is None or "masked_inclusion" not in metrics:
        return {}
    judge = call.judged_by(masked_inclusion)
    kept = predictions(judge, orders)
    found = {"masked_inclusion": np.abs(by_output(judge.f_x, 1)[:, None, None, :] - kept)}
    if labels is not None and "performance" in metrics:
        found[f"masked_{labels.kind}"] = labels.points(kept)
    return {metric: array.mean(axis=-1) for metric, array in found.items()}


def predictions(call: Rows, orders: IntArray) -> FloatArray:
    """(n, M, d, k) rankings → (n, M, d + 1, k) what the game predicts along them."""
    return np.concatenate(call.each(partial(_predict_block, call, orders), "judging"))


def _predict_block(call: Rows, orders: IntArray, part: slice) -> FloatArray:
    columns = []
    for o in range(orders.shape[-1]):
        game, wanted = call.view(part, o), np.ascontiguousarray(orders[part][..., o])
        columns.append(along(game, wanted) if hasattr(game, "rows") else along(game, wanted[0])[None])
    return np.stack(columns, axis=-1)


@dataclass(frozen=True)
class Labels:
    """The true answers, for the inclusion metrics.

    Attributes
    ----------
    kind : "mse" or "auc"
    targets : (n, k) numbers, or for the AUC whether the row is of the class
    """

    kind: str
    targets: FloatArray

    def points(self, predictions: FloatArray) -> FloatArray:
        """(n, M, d + 1, k) predictions → the same shape, whose mean over the rows is the metric."""
        if self.kind == "mse":
            return np.asarray((predictions - self.targets[:, None, None, :]) ** 2)
        columns = [auc_points(predictions[..., o], self.targets[:, o] > 0) for o in range(predictions.shape[-1])]
        return np.stack(columns, axis=-1)


def auc_points(scores: FloatArray, positive: BoolArray) -> FloatArray:
    """(n, …) scores → (n, …) numbers whose mean over the rows is the AUC, and whose spread is its error.

    A row's placement V is the share of rows of the other class that it is ranked rightly against. The mean of V is the
    AUC within each class, so with p the share of the row's class, AUC + (V − AUC)/p has the AUC as its mean, and its
    variance over n rows is that of DeLong et al. (1988). Scores that differ by rounding only, as sums of the same
    leaves in another order do, are ties.
    """
    from scipy.stats import rankdata  # slow to import, and most users never come here

    n, n_positive = len(positive), int(positive.sum())
    rounded = np.round(scores / (np.abs(scores).max() or 1.0), TIE_DIGITS)
    everywhere = rankdata(rounded, axis=0)
    within = np.empty_like(everywhere)
    for of_class in (positive, ~positive):
        within[of_class] = rankdata(rounded[of_class], axis=0)
    below = everywhere - within  # rows of the other class ranked below, ties counted half
    shaped = positive.reshape(-1, *(1,) * (scores.ndim - 1))
    placement = np.where(shaped, below / (n - n_positive), 1 - below / n_positive)
    auc = placement[positive].mean(axis=0)
    return np.asarray(auc + (placement - auc) * np.where(shaped, n / n_positive, n / (n - n_positive)))


def as_labels(y: Any, call: Rows) -> Labels:
    """The labels as numbers, or as membership of the classes explained."""
    values = np.asarray(y)
    n, k, model = len(call.rows), len(call.outputs), call.explainer.model
    if len(values) != n:
        raise ValueError(f"`y` must hold one answer for each of the {n} rows; got {len(values)}.")
    space = getattr(model, "space", "value")
    if space == "value":
        targets = by_output(np.asarray(values, dtype=np.float64), 1)
        if targets.shape[1] != k or not np.isfinite(targets).all():
            raise ValueError(f"`y` must hold {k} finite numbers for each row, one for each output explained.")
        return Labels("mse", targets)
    if values.ndim != 1:
        raise ValueError(f"`y` must hold one class for each row; got shape {values.shape}.")
    targets = np.stack([_is_class(values, model, o) for o in range(k)], axis=1)
    if (targets.all(axis=0) | ~targets.any(axis=0)).any():
        raise ValueError("`y` must hold rows of every class explained and of others: the AUC compares them.")
    return Labels("auc", targets.astype(np.float64))


def _is_class(y: Any, model: Any, o: int) -> Any:
    """(n,) whether each row is of the class behind output o: by name, or by position where classes have no names."""
    name, classes = model.output_names[o], np.unique(y)
    named = np.array([str(label) == name for label in y])
    if named.any():
        return named
    if len(classes) == 2 and model.n_raw <= 2:
        return y == classes[model.chosen[o] if model.n_raw == 2 else 1]
    if np.issubdtype(y.dtype, np.integer):
        return y == model.chosen[o]
    raise ValueError(
        f"`y` holds classes {list(classes[:5])!r} that do not match the output {name!r}. Pass the labels that the "
        "model was trained on."
    )
