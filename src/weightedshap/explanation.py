"""The result: values, weights, Δ, scores, errors, and why sampling stopped.

n rows, d players, k outputs. The axis k is there if and only if several outputs are explained, or
`outputs=` was a list; it is always the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from weightedshap.checks import FloatArray, IntArray, one_of
from weightedshap.selection import REFERENCES, Candidates, best_weight
from weightedshap.utilities import Utility, as_utility
from weightedshap.weights import WeightFamily, as_family

__all__ = ["Explanation"]

Chosen = dict[str, Any]
Weigh = Callable[[FloatArray, FloatArray | None, WeightFamily, Utility, str], dict[str, Any]]


@dataclass(frozen=True)
class Explanation:
    """WeightedSHAP attributions of n rows.

    Attributes
    ----------
    values : (n, d[, k]) φ*, the attribution under the chosen weights
    base_values : (n[, k]) the game of no players
    predictions : (n[, k]) f(x), on the scale of the game
    data, feature_names, output_names : the rows explained; names of the players and outputs
    contributions : (n, d, d[, k]) ``[row, j − 1, i]`` = Δ_j(x_i); None if not kept (see `notes`)
    shapley : (n, d[, k]) the attribution under uniform weights
    weights : (n, d[, k]) chosen w* · weight_labels : (n[, k]) its label
    scores : (n, m[, k]) T of every weight · family : labels and vectors of the m weights
    orders : (n, d[, k]) ranking by |φ*| · curves : (n, d + 1[, k]) |f(x) − v(top k)|, k = 0..d
    reference_curves : the same for "shapley", "first" and "last"
    standard_errors : (n, d[, k]) of `values`; None where nothing was sampled, NaN where unknown
    n_evaluations : (n,) coalitions evaluated for Δ (curves come on top) · stopped : why no more, for each row
    game_info : what game was played and how well it fits
    endpoint_gaps : {"empty": game(∅) − E f, "full": game([d]) − f(x)}, each (n[, k]); NaN where unknown
    notes : sentences the reader should know
    replicates : (n, c, d, d[, k]) Δ from c independent chains, for the errors of other weights
    """

    values: FloatArray
    base_values: FloatArray
    predictions: FloatArray
    data: Any
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    contributions: FloatArray | None
    shapley: FloatArray
    weights: FloatArray
    weight_labels: Any
    scores: FloatArray
    family: WeightFamily
    orders: IntArray
    curves: FloatArray
    reference_curves: Mapping[str, FloatArray]
    standard_errors: FloatArray | None
    n_evaluations: IntArray
    stopped: tuple[str, ...]
    game_info: Mapping[str, Any]
    endpoint_gaps: Mapping[str, FloatArray]
    utility: str = "aup"
    select: str = "per_row"
    notes: tuple[str, ...] = ()
    replicates: FloatArray | None = field(default=None, repr=False)
    _weigh: Weigh | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def has_outputs(self) -> bool:
        """Whether the axis k is there."""
        return self.values.ndim == 3

    @property
    def efficiency_gap(self) -> FloatArray:
        """(n[, k]) f(x) − game(∅) − Σ_i φ*_i: what a weighted attribution leaves unexplained."""
        return np.asarray(self.predictions - self.base_values - self.values.sum(axis=1))

    def importance(self) -> pd.Series[float] | pd.DataFrame:
        """Mean |φ*| of each feature over the rows, largest first (a column for each output)."""
        mean = np.abs(self.values).mean(axis=0)
        if not self.has_outputs:
            return pd.Series(mean, index=list(self.feature_names), name="importance").sort_values(
                ascending=False, kind="stable"
            )
        frame = pd.DataFrame(mean, index=list(self.feature_names), columns=list(self.output_names))
        return frame.loc[frame.mean(axis=1).sort_values(ascending=False, kind="stable").index]

    def to_frame(self) -> pd.DataFrame:
        """One row for each explained row, feature and output: value, shapley, rank, weight label."""
        n, d = self.values.shape[:2]
        k = self.values.shape[2] if self.has_outputs else 1
        rank = np.empty((n, d, k), dtype=np.intp)
        np.put_along_axis(rank, self.orders.reshape(n, d, k), np.arange(1, d + 1)[None, :, None], axis=1)
        row, feature, output = (a.ravel() for a in np.indices((n, d, k)))
        columns: dict[str, Any] = {"row": row, "feature": np.asarray(self.feature_names)[feature]}
        if self.has_outputs:
            columns["output"] = np.asarray(self.output_names)[output]
        columns |= {"value": self.values.ravel(), "shapley": self.shapley.ravel(), "rank": rank.ravel()}
        if self.standard_errors is not None:
            columns["standard_error"] = self.standard_errors.ravel()
        columns["weight"] = self.weight_labels.reshape(n, k)[row, output]
        return pd.DataFrame(columns)

    def reweight(self, family: Any = None, utility: Any = "aup", select: str = "per_row") -> Explanation:
        """Another family or utility on the same Δ: a matrix product and some curves, no new sampling."""
        if self.contributions is None:
            raise ValueError("Δ was not kept, so it cannot be weighed anew. Explain with keep_contributions=True.")
        if self._weigh is None:
            raise ValueError("This explanation has no game to score weights with; explain the rows again.")
        family = self.family if family is None else as_family(family, self.values.shape[1])
        one_of("selection", select, ("per_row", "shared"))
        chosen = self._weigh(self.contributions, self.replicates, family, as_utility(utility), select)
        if self.standard_errors is not None and self.replicates is None:
            chosen["standard_errors"] = np.full_like(self.values, np.nan)
        return replace(self, **chosen, family=family, utility=name_of(utility), select=select)

    @property
    def plot(self) -> Any:
        """Figures of this explanation: ``explanation.plot.recovery()`` and others of `weightedshap.plots`."""
        from weightedshap.plots import PlotAccessor

        return PlotAccessor(self)

    def __repr__(self) -> str:
        n, d = self.values.shape[:2]
        outputs = f" × {self.values.shape[2]} outputs" if self.has_outputs else ""
        area, shap = self.curves[:, 1:].sum(1).mean(), self.reference_curves["shapley"][:, 1:].sum(1).mean()
        lines = [
            f"Explanation of {n} rows × {d} features{outputs}",
            f"  game: {self.game_info.get('game', 'given')} · {_unique(self.stopped)}",
            f"  area under the recovery-error curve: {area:.4g} (Shapley {shap:.4g})",
            *(f"  note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)


def choose(scored: Sequence[Candidates], family: WeightFamily, select: str) -> Chosen | Sequence[Candidates]:
    """Settle one block of rows, given the candidates of each output.

    With one weight per row the choice is made here and the other candidates are let go, so memory does
    not grow with them. A shared weight has to wait for all rows: the candidates are passed on.
    """
    if select == "shared":
        return scored
    return _picked(scored, [best_weight(output.scores, family) for output in scored], family)


class Joined:
    """Blocks of rows that `choose` settled, put together as they come: no block is held any longer than that."""

    def __init__(self, n: int, family: WeightFamily) -> None:
        self.n, self.family = n, family
        self.arrays: dict[str, Any] = {}
        self.waiting: list[tuple[slice, Sequence[Candidates]]] = []

    def add(self, part: slice, block: Chosen | Sequence[Candidates]) -> None:
        """The rows `part` of all n."""
        if isinstance(block, dict):
            for name, array in block.items():
                self._room(name, array)[part] = array
        else:
            self.waiting.append((part, block))

    def fields(self, axis: bool) -> dict[str, Any]:
        """The fields of an Explanation that depend on the chosen weight."""
        if self.waiting:
            parts, blocks = zip(*self.waiting, strict=True)
            for part, block in zip(parts, _shared(blocks, self.family), strict=True):
                self.add(part, block)
        joined = self.arrays if axis else {name: array[..., 0] for name, array in self.arrays.items()}
        joined["reference_curves"] = {name: joined.pop(name + " curve") for name in REFERENCES}
        joined["weight_labels"] = np.asarray(self.family.labels)[joined.pop("index")]
        joined.setdefault("standard_errors", None)
        return joined

    def _room(self, name: str, like: FloatArray) -> FloatArray:
        """The array of all rows; zero where nothing is added: rows that know their own Δ have no errors."""
        if name not in self.arrays:
            self.arrays[name] = np.zeros((self.n, *like.shape[1:]), dtype=like.dtype)
        return np.asarray(self.arrays[name])


def _shared(blocks: Sequence[Sequence[Candidates]], family: WeightFamily) -> list[Chosen]:
    """One weight for all rows of an output: the highest mean score."""
    outputs = range(len(blocks[0]))
    scores = [np.concatenate([block[o].scores for block in blocks]).mean(axis=0) for o in outputs]
    best = [best_weight(score, family) for score in scores]
    return [_picked(block, [np.full(len(block[o]), best[o]) for o in outputs], family) for block in blocks]


def _picked(scored: Sequence[Candidates], index: Sequence[IntArray], family: WeightFamily) -> Chosen:
    """What the chosen weights give, outputs stacked on a last axis."""
    outputs = [_pick(output, i, family) for output, i in zip(scored, index, strict=True)]
    return {name: np.stack([output[name] for output in outputs], axis=-1) for name in outputs[0]}


def _pick(block: Candidates, index: IntArray, family: WeightFamily) -> Chosen:
    rows = np.arange(len(block))
    references = zip(REFERENCES, block.reference, strict=True)
    return {
        "values": block.phi[rows, index],
        "orders": block.orders[rows, index],
        "curves": block.recovery[rows, index],
        "shapley": block.phi[:, block.reference[0]],
        "weights": family.vectors[index],
        "scores": block.scores,
        "index": index,
        **({} if block.errors is None else {"standard_errors": block.errors[rows, index]}),
        **{name + " curve": block.recovery[:, position] for name, position in references},
    }


def name_of(part: Any) -> str:
    """The name of a part given by name or as an object."""
    return part if isinstance(part, str) else str(getattr(part, "__name__", type(part).__name__))


def field_names() -> tuple[str, ...]:
    """The public fields of an Explanation."""
    return tuple(f.name for f in fields(Explanation) if not f.name.startswith("_"))


def _unique(stopped: tuple[str, ...]) -> str:
    reasons = list(dict.fromkeys(stopped))
    return reasons[0] if len(reasons) == 1 else f"{reasons[0]} (and {len(reasons) - 1} other reasons)"
