"""What rankings score: predictions of a game along them, against f(x) and against the true
answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray, unmasked, with_axis
from weightedshap.games.rows import Rows
from weightedshap.inputs import Model
from weightedshap.parallel import Workers, each_block

PERFORMANCE = {"recovery": "inclusion", "exclusion": "exclusion", "masked_inclusion": "masked"}
TIE_DIGITS = 12  # of the largest score, to which two scores must agree to count as equal


def points(
    judge: Rows, orders: IntArray, metric: str, labels: Labels | None, workers: Workers
) -> dict[str, FloatArray]:
    """(n, M, d + 1) what every row scores at j = 0..d by rankings (n, M, d, k) on the judge;
    outputs are averaged.

    `metric` is what |f(x) − v| is called; error or AUC of labels come on top. "exclusion" hides the
    first j features.
    """
    step = -1 if metric == "exclusion" else 1
    parts = judge.parts(orders.shape[2])
    blocks = each_block(
        lambda part: judge.view(part).along(orders[part][:, :, ::step]), parts, workers, "judging"
    )
    walked = np.concatenate(list(blocks))[:, :, ::step]
    found = {metric: np.abs(judge.f_x[:, None, None, :] - walked)}
    # Errors on their scale only.
    if labels is not None and (labels.kind == "auc" or judge.fitted.space == "value"):
        found[f"{PERFORMANCE[metric]}_{labels.kind}"] = labels.points(walked)
    return {name: array.mean(axis=-1) for name, array in found.items()}


@dataclass(frozen=True)
class Labels:
    """The true answers, for the inclusion metrics."""

    kind: str  # "mse" or "auc"
    targets: FloatArray  # (n, k) numbers, or for the AUC whether the row is of the class

    def points(self, predictions: FloatArray) -> FloatArray:
        """(n, M, d + 1, k) predictions → the same shape, whose mean over the rows is the metric."""
        if self.kind == "mse":
            return np.asarray((predictions - self.targets[:, None, None, :]) ** 2)
        columns = [
            auc_points(predictions[..., o], self.targets[:, o] > 0)
            for o in range(predictions.shape[-1])
        ]
        return np.stack(columns, axis=-1)


def auc_points(scores: FloatArray, positive: BoolArray) -> FloatArray:
    """(n, …) scores → (n, …) numbers whose mean over the rows is the AUC, and whose spread is its
    error.

    V is the share of rows of the other class that a row is ranked rightly against, p the share of
    its class. The mean of V is the AUC within each class, so AUC + (V − AUC)/p has the AUC as its
    mean, and its variance over n rows is that of DeLong et al. (1988). Scores that differ by
    rounding only are ties.
    """
    from scipy.stats import rankdata  # slow to import, and most users never come here

    n = len(positive)
    n_positive = int(positive.sum())
    rounded = np.round(scores / (np.abs(scores).max() or 1.0), TIE_DIGITS)
    everywhere = rankdata(rounded, axis=0)
    within = np.empty_like(everywhere)
    for of_class in (positive, ~positive):
        within[of_class] = rankdata(rounded[of_class], axis=0)
    below = everywhere - within  # rows of the other class ranked below, ties counted half
    shaped = positive.reshape(-1, *(1,) * (scores.ndim - 1))
    placement = np.where(shaped, below / (n - n_positive), 1 - below / n_positive)
    auc = placement[positive].mean(axis=0)
    return np.asarray(
        auc + (placement - auc) * np.where(shaped, n / n_positive, n / (n - n_positive))
    )


def as_labels(y: Any, n: int, k: int, model: Model | None) -> Labels:
    """The labels of n rows as k numbers, or as membership of the k classes explained."""
    values = np.asarray(unmasked(y))
    if values.ndim == 0 or len(values) != n:
        raise ValueError(
            f"`y` must hold one answer for each of the {n} rows; got {np.size(values)}."
        )
    if model is None or model.space == "value":
        targets = with_axis(np.asarray(values, dtype=np.float64))
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
    """(n,) whether each row is of the class behind output o: by name, or by position where classes
    have no names."""
    name = model.output_names[o]
    classes = np.unique(y)
    named = np.array([str(label) == name for label in y])
    if named.any():
        return named
    if len(classes) == 2 and model.n_raw <= 2:
        return np.asarray(y == classes[model.chosen[o] if model.n_raw == 2 else 1])
    if np.issubdtype(y.dtype, np.integer):
        return np.asarray(y == model.chosen[o])
    found = f"`y` holds classes {list(classes[:5])!r} that do not match the output {name!r}."
    raise ValueError(f"{found} Pass the labels that the model was trained on.")
