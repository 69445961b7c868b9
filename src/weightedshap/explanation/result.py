"""The result, with n rows, d players, and an axis k at the end for several outputs, or where
`outputs=` was a list."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from weightedshap._checks import FloatArray, IntArray, one_of, positive_integer
from weightedshap._lazy import pd
from weightedshap.curves import order_of
from weightedshap.explanation import export
from weightedshap.explanation import slicing as axes
from weightedshap.explanation import storage as stored
from weightedshap.explanation import summary as told
from weightedshap.explanation.local_search import refined_orders, shortlist
from weightedshap.inputs import Data, join_of
from weightedshap.selection import SELECTIONS
from weightedshap.utilities import as_utility
from weightedshap.weighing import Weighing
from weightedshap.weights import WeightFamily, as_family

if TYPE_CHECKING:
    from weightedshap.plots import PlotAccessor

__all__ = ["Explanation", "field_names"]

# And the family, in parts to be joined.
ALIKE = (
    "feature_names",
    "output_names",
    "has_outputs",
    "utility",
    "select",
)


@dataclass(frozen=True, eq=False)
class Explanation:
    """WeightedSHAP attributions of n rows, sliced as ``explanation[rows, features, outputs]``, see
    `__getitem__`.

    Attributes
    ----------
    values : (n, d[, k]) φ*, the attribution under the chosen weights
    base_values : (n[, k]) the game of no players · game_labels : (n[, k]) the game, of several the
        one that won the row
    predictions : (n[, k]) f(x), on the scale of the game · judge_predictions : (n[, k]) on the
        scale of the judge
    data, feature_names, output_names : the rows explained; names of the players and outputs
    contributions : (n, d, d[, k]) ``[row, j − 1, i]`` = Δ_j(x_i); None if not kept (see `notes`)
    shapley : (n, d[, k]) the attribution under uniform weights, of the first game · shapley_errors
        : its errors or None
    weights : (n, d[, k]) chosen w* · weight_labels : (n[, k]) its label
    scores : (n, m[, k]) T of every weight · family : labels and vectors of the m weights, or pairs
        ``game · weight``
    orders : (n, d[, k]) ranking by |φ*| · curves : (n, d + 1[, k]) |f(x) − v(top k)| on the judge,
        k = 0..d
    reference_curves : the same for "shapley", "first" and "last" of the first game
    standard_errors : (n, d[, k]) of `values`; None where nothing was sampled, NaN where unknown
    n_evaluations : (n,) coalitions evaluated for Δ (curves come on top) · stopped : why no more,
        for each row
    game_info : what game was explained · judge_info : what game judged, and what it misses by size
        and at both ends
    endpoint_gaps : {"empty": game(∅) − E f, "full": game([d]) − f(x)}, each (n[, k]); NaN where
        unknown
    replicates : (n, c, d, d[, k]) Δ from c independent chains
    notes : sentences the reader should know

    Examples
    --------
    >>> import weightedshap as ws
    >>> majority = lambda coalitions: (coalitions.sum(axis=1) >= 2).astype(float)
    >>> vote = ws.games.FunctionGame(majority, d=3)
    >>> ws.explain(vote).shapley.round(2)
    array([[0.33, 0.33, 0.33]])
    """

    values: FloatArray
    base_values: FloatArray
    predictions: FloatArray
    judge_predictions: FloatArray
    game_labels: npt.NDArray[np.str_]
    data: Data
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    contributions: FloatArray | None
    shapley: FloatArray
    shapley_errors: FloatArray | None
    weights: FloatArray
    weight_labels: npt.NDArray[np.str_]
    scores: FloatArray
    family: WeightFamily
    orders: IntArray
    curves: FloatArray
    reference_curves: Mapping[str, FloatArray]
    standard_errors: FloatArray | None
    n_evaluations: IntArray
    stopped: tuple[str, ...]
    game_info: Mapping[str, Any]
    judge_info: Mapping[str, Any]
    endpoint_gaps: Mapping[str, FloatArray]
    utility: str = "aup"
    select: str = "per_row"
    replicates: FloatArray | None = field(default=None, repr=False)
    _notes: tuple[str, ...] = ()  # what its maker knew; `notes` adds what its numbers tell
    _weigher: Weighing | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: object) -> Explanation:
        """Some rows, features and outputs, with every array cut alike.

        ``explanation[3]``, ``[2:5]``, ``[mask]``, ``[:, "age"]``, ``[:, ["age", "bmi"]]``, ``[...,
        "class"]``: rows by position, slice or mask; features and outputs also by name. Rows and
        features keep their axis even if one is left (unlike shap); a single output loses the axis
        k, a list of one keeps it.

        A selection of features is a view of the same attribution: Δ keeps its size axis, weights,
        scores and curves stay those of all features, `efficiency_gap` counts features left out as
        unexplained, `orders` ranks the kept ones among themselves, and `data` keeps all columns of
        groups. It cannot be weighed anew, as the game has other players.
        """
        outputs = self.output_names if self.has_outputs else None
        keep = axes.as_cut(key, len(self), self.feature_names, outputs)
        whole = self._weigher if keep.features is None else None
        weigher = None if whole is None else whole.take(keep.rows, keep.outputs)
        return replace(self, **axes.cut(vars(self), keep), _weigher=weigher)

    @classmethod
    def concatenate(cls, parts: Iterable[Explanation]) -> Explanation:
        """All rows of parts that agree in features, outputs, family, utility and selection; Δ if
        all kept it."""
        try:
            parts = list(parts)
        except TypeError:  # what cannot be walked is refused as none at all
            parts = []
        if not parts or not all(isinstance(part, Explanation) for part in parts):
            raise ValueError("`concatenate` needs a list of at least one Explanation.")
        for other in parts[1:]:
            _check_alike(parts[0], other)
        joined = {name: _joined_field(name, parts) for name in axes.AXES}
        joined |= {
            name: _agreed([vars(part)[name] for part in parts])
            for name in ("game_info", "judge_info")
        }
        joined["data"] = (
            None
            if all(part.data is None for part in parts)
            else join_of([part.data for part in parts])
        )
        joined["stopped"] = tuple(reason for part in parts for reason in part.stopped)
        joined["_notes"] = _joined_notes(
            parts, joined["game_info"], joined["contributions"] is not None
        )
        return replace(
            parts[0], **joined, _weigher=Weighing.joined([part._weigher for part in parts])
        )

    def equals(self, other: object) -> bool:
        """Whether every public field is the same, to the bit (NaN equals NaN)."""
        if not isinstance(other, Explanation) or not self.family.equals(other.family):
            return False
        same = all(
            axes.same(vars(self)[name], vars(other)[name])
            for name in field_names()
            if name != "family"
        )
        return same and self.notes == other.notes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything but the game to one file, without pickle; `load` gives it back to the
        bit."""
        stored.save(
            {name: vars(self)[name] for name in field_names()} | {"notes": self._notes}, path
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Explanation:
        """What `save` wrote, also in an older version; a file that is damaged, hostile or newer is
        a ValueError."""
        fields = stored.load(path, (*field_names(), "notes"))
        return cls(_notes=fields.pop("notes"), **fields)

    @property
    def has_outputs(self) -> bool:
        """Whether the axis k is there."""
        return self.values.ndim == 3

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences that the reader should know, on the rows, the games, and what would mislead."""
        return tuple(
            dict.fromkeys([*self._notes, *told.notes_of_games(self), *told.notes_of_rows(self)])
        )

    @property
    def efficiency_gap(self) -> FloatArray:
        """(n[, k]) f(x) − game(∅) − Σ_i φ*_i: what a weighted attribution leaves unexplained."""
        return np.asarray(self.predictions - self.base_values - self.values.sum(axis=1))

    def importance(self) -> pd.Series[float] | pd.DataFrame:
        """Mean |φ*| of each feature over the rows, largest first (a column for each output)."""
        columns = list(self.output_names) if self.has_outputs else ["importance"]
        mean = pd.DataFrame(np.abs(self.values).mean(axis=0), list(self.feature_names), columns)
        mean = mean.iloc[np.argsort(-mean.mean(axis=1).to_numpy(), kind="stable")]
        return mean if self.has_outputs else mean["importance"]

    def instability(self, k: int = 5) -> FloatArray:
        """(n[, outputs]) the probability that the order of the k most influential features is not
        the true one.

        2,000 attributions are drawn around the reported one, with normal errors (Student's t where
        there are chains) and a fixed seed; counted are those whose first k by |φ| differ or stand
        in another order. 0 without sampling error, NaN where errors are unknown. It tells of
        sampling only: not of the game, nor of the chosen weight.
        """
        k = min(positive_integer("k", k), self.values.shape[1])
        draws = (2_000, self.values.shape[1])
        if (errors := self.standard_errors) is None:
            return np.zeros_like(self.base_values)
        rng = np.random.default_rng(0)
        dof = 0 if self.replicates is None else max(1, self.replicates.shape[1] - 1)
        noise = rng.standard_t(dof, draws) if dof else rng.standard_normal(draws)
        rows = zip(
            *(np.moveaxis(of, 1, -1).reshape(-1, 1, draws[1]) for of in (self.values, errors)),
            strict=True,
        )
        tops = ((order_of(phi + noise * error)[:, :k], order_of(phi)[:, :k]) for phi, error in rows)
        share = np.reshape(
            [(drawn != own).any(axis=1).mean() for drawn, own in tops], self.base_values.shape
        )
        return np.where(np.isnan(errors).any(axis=1), np.nan, share)

    to_frame = export.to_frame
    to_shap = export.to_shap
    to_shapiq = export.to_shapiq

    def reweight(
        self, family: object = None, utility: object = "aup", select: str = "per_row"
    ) -> Explanation:
        """Another family or utility on the same Δ, games and judge: a matrix product and some
        curves, no sampling."""
        if self.contributions is None:
            raise ValueError(
                "Δ was not kept, so it cannot be weighed anew. Explain with"
                " keep_contributions=True."
            )
        weigher = self._judging("Weigh anew")
        T = as_utility(utility)
        weights = None if family is None else as_family(family, self.values.shape[1])
        one_of("selection", select, SELECTIONS)
        chosen = weigher.weigh(self.contributions, self.replicates, weights, T, select)
        if self.standard_errors is not None and self.replicates is None:
            chosen["standard_errors"] = np.full_like(self.values, np.nan)
        chosen["shapley_errors"] = self.shapley_errors
        return replace(self, **chosen, utility=T.name, select=select)

    refined_orders = refined_orders
    shortlist = shortlist

    def _judging(self, instead: str) -> Weighing:
        """The game that judged, or why there is none."""
        if self._weigher is None:
            said = (
                "This explanation has no game to score weights with: it was loaded from a file,"
                " joined from the work"
            )
            more = "of several explainers, or some of its features were selected."
            raise ValueError(f"{said} {more} {instead} before that, or explain the rows again.")
        return self._weigher

    @property
    def plot(self) -> PlotAccessor:
        """Figures of this explanation: ``explanation.plot.recovery()`` and others of
        `weightedshap.plots`."""
        from weightedshap.plots import PlotAccessor

        return PlotAccessor(self)

    def report(self, path: str | os.PathLike[str], evaluation: Any = None) -> None:
        """Write one HTML page to explore; `evaluation` (of `evaluate`) adds the fair comparison
        with Shapley."""
        from weightedshap.report import write

        write(self, path, evaluation)

    def __getattr__(self, name: str) -> Any:
        """Names that a shap user looks for, and what there is in their place."""
        said = f"An Explanation has no attribute {name!r}."
        raise AttributeError(
            f"{said} {export.INSTEAD[name]}" if name in export.INSTEAD else said,
            name=name,
            obj=self,
        )

    __repr__ = told.as_text
    _repr_html_ = told.as_html


def field_names() -> tuple[str, ...]:
    """The public fields of an Explanation."""
    return tuple(f.name for f in fields(Explanation) if not f.name.startswith("_"))


def _agreed(infos: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What all of them say alike; none of them holds an Ellipsis."""
    first, *others = infos
    return {
        k: v for k, v in first.items() if all(axes.same(v, info.get(k, ...)) for info in others)
    }


def _check_alike(first: Explanation, other: Explanation) -> None:
    pairs = zip(ALIKE, *map(attrgetter(*ALIKE), (first, other)), strict=True)
    differ = {name: f": {one!r} and {two!r}" for name, one, two in pairs if one != two}
    differ |= {} if first.family.equals(other.family) else {"family": ""}
    if differ:
        said = (
            f"Explanations that differ in {', '.join(differ)} cannot be"
            f" joined{next(iter(differ.values()))}."
        )
        raise ValueError(f"{said} Explain, reweight or slice them alike first.")


def _joined_field(name: str, parts: Sequence[Explanation]) -> Any:
    """One field of all parts; None where it cannot be joined."""
    values = [vars(part)[name] for part in parts]
    if isinstance(values[0], Mapping):
        return {key: np.concatenate([value[key] for value in values]) for key in values[0]}
    # What was not sampled has none.
    if name == "standard_errors" and any(value is not None for value in values):
        values = [np.zeros_like(part.values) if e is None else e for part, e in zip(parts, values)]
    if any(value is None for value in values) or len({value.shape[1:] for value in values}) > 1:
        return None
    return np.concatenate(values)


def _joined_notes(
    parts: Sequence[Explanation], agreed: Mapping[str, Any], kept: bool
) -> tuple[str, ...]:
    notes = [note for part in parts for note in part._notes]
    if differing := sorted(
        {str(key) for part in parts for key in part.game_info if key not in agreed}
    ):
        notes.append(f"The parts come from games that differ in {', '.join(differing)}.")
    if not kept and any(part.contributions is not None for part in parts):
        notes.append("Δ was not kept because some of the joined parts lack it.")
    labels = np.concatenate([part.weight_labels for part in parts])
    if (select := parts[0].select) != "per_row" and not (labels == labels[0]).all():
        notes.append(
            f'Each part chose its own shared weight; reweight(select="{select}") chooses one for'
            " all rows."
        )
    return tuple(dict.fromkeys(notes))
