"""`Explanation`: the attributions of n rows, with methods to select, weigh and export them.

The first axis of every array is rows. The last one is the k outputs, if a model has several or
``outputs=`` was a list. Most methods are in the other modules of this folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from weightedshap import method
from weightedshap._checks import FloatArray, IntArray, check_choice, check_positive_integer
from weightedshap._lazy import pd
from weightedshap.curves import rank_features
from weightedshap.explanation import export, local_search, slicing, storage, summary
from weightedshap.explanation.concatenate import concatenate_fields
from weightedshap.inputs import Data
from weightedshap.method import Source
from weightedshap.selection import SELECTIONS
from weightedshap.utilities import as_utility
from weightedshap.weights import WeightFamily, as_family

if TYPE_CHECKING:
    from weightedshap.plots import PlotAccessor

__all__ = ["Explanation", "field_names"]

INSTABILITY_DRAWS = 2_000


@dataclass(frozen=True, eq=False)
class Explanation:
    """WeightedSHAP attributions of n rows, sliced as ``explanation[rows, features, outputs]``.

    See `__getitem__` for slices.

    Attributes
    ----------
    values : (n, d[, k]) φ*, the attribution under the chosen weights
    base_values : (n[, k]) v(∅), the game without players
    game_labels : (n[, k]) the name of the explained game; of competing games, the winner's
    predictions : (n[, k]) f(x), on the scale of the game
    judge_predictions : (n[, k]) f(x), on the scale of the judge
    data : the rows explained; None for a bound game
    feature_names, output_names : names of the players and of the outputs
    contributions : (n, d, d[, k]) ``[row, j − 1, i]`` = Δ_j(x_i); None if not kept (see `notes`)
    shapley : (n, d[, k]) the attribution under uniform weights, of the first game
    shapley_errors : (n, d[, k]) standard errors of `shapley`; None if nothing was sampled
    weights : (n, d[, k]) w*, the chosen weights
    weight_labels : (n[, k]) the label of w*
    scores : (n, m[, k]) T of every weight
    family : labels and vectors of the m weights, or pairs ``game · weight``
    orders : (n, d[, k]) ranking by |φ*|
    curves : (n, d + 1[, k]) |f(x) − v(top k)| on the judge, k = 0..d
    reference_curves : such curves for "shapley", "first" and "last", of the first game
    standard_errors : (n, d[, k]) of `values`; None if nothing was sampled, NaN where unknown
    n_evaluations : (n,) coalitions evaluated for Δ (curves come on top)
    stopped : why no more coalitions were evaluated, for each row
    game_info : description of the explained game
    judge_info : description of the judge, and its error by size and at both ends
    endpoint_gaps : {"empty": game(∅) − E f, "full": game([d]) − f(x)}, each (n[, k]); NaN where
        unknown
    replicates : (n, c, d, d[, k]) Δ from c independent sampling chains
    notes : sentences that a reader of the results should know

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
    # Notes of the explainer; `notes` adds those that depend on the numbers.
    _notes: tuple[str, ...] = ()
    # The games and rows for reweighting and the local search; None where they are not available.
    _source: Source | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: object) -> Explanation:
        """Select rows, features and outputs in every array.

        ``explanation[3]``, ``[2:5]``, ``[mask]``, ``[:, "age"]``, ``[:, ["age", "bmi"]]``, ``[...,
        "class"]``: rows by position, slice or mask; features and outputs also by name. Rows and
        features keep their axis even if one is left (unlike shap); a single output loses the axis
        k, a list of one keeps it.

        A selection of features is a view of the same attribution: Δ keeps its size axis, weights,
        scores and curves stay those of all features, `efficiency_gap` counts features left out as
        unexplained, `orders` ranks the selected ones among themselves, and `data` keeps all columns
        of groups. It cannot be reweighted, as the game has other players.
        """
        outputs = self.output_names if self.has_outputs else None
        selector = slicing.parse_key(key, len(self), self.feature_names, outputs)
        source = self._source
        if source is not None:
            all_players = selector.features is None
            source = source.take(selector.rows, selector.outputs) if all_players else None
        return replace(self, **slicing.slice_fields(vars(self), selector), _source=source)

    @classmethod
    def concatenate(cls, parts: Iterable[Explanation]) -> Explanation:
        """Join the rows of several explanations.

        The parts must agree in features, outputs, family, utility and selection. The result has Δ
        if all parts have it.
        """
        try:
            parts = list(parts)
        except TypeError:
            # An empty list gets the error message below.
            parts = []
        if not parts or not all(isinstance(part, Explanation) for part in parts):
            raise ValueError("`concatenate` needs a list of at least one Explanation.")
        return replace(parts[0], **concatenate_fields(parts))

    def equals(self, other: object) -> bool:
        """Return whether all public fields are equal, bit for bit (NaN equals NaN)."""
        if not isinstance(other, Explanation) or not self.family.equals(other.family):
            return False
        same_fields = all(
            slicing.identical(vars(self)[name], vars(other)[name])
            for name in field_names()
            if name != "family"
        )
        return same_fields and self.notes == other.notes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the explanation, except its games, to one file, without pickle; see `load`."""
        public = {name: vars(self)[name] for name in field_names()}
        storage.save({**public, "notes": self._notes}, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Explanation:
        """Load an explanation that `save` wrote; its fields are equal, bit for bit.

        A damaged or malicious file, or one of another format version, raises a ValueError.
        """
        content = storage.load(path, (*field_names(), "notes"))
        return cls(_notes=content.pop("notes"), **content)

    @property
    def has_outputs(self) -> bool:
        """Whether the arrays have an axis of outputs."""
        return self.values.ndim == 3

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader should know about the rows and the games, such as warnings."""
        notes = [*self._notes, *summary.notes_of_games(self), *summary.notes_of_rows(self)]
        return tuple(dict.fromkeys(notes))

    @property
    def efficiency_gap(self) -> FloatArray:
        """The part of f(x) that φ* does not explain, f(x) − v(∅) − Σ_i φ*_i (n[, k])."""
        return np.asarray(self.predictions - self.base_values - self.values.sum(axis=1))

    def importance(self) -> pd.Series[float] | pd.DataFrame:
        """Return the mean |φ*| of each feature, largest first, with a column for each output."""
        columns = list(self.output_names) if self.has_outputs else ["importance"]
        mean = pd.DataFrame(np.abs(self.values).mean(axis=0), list(self.feature_names), columns)
        mean = mean.iloc[np.argsort(-mean.mean(axis=1).to_numpy(), kind="stable")]
        return mean if self.has_outputs else mean["importance"]

    def instability(self, k: int = 5) -> FloatArray:
        """Return the probability (n[, outputs]) that the order of the first k features is wrong.

        2,000 attributions are drawn around the reported one, with normal errors (Student's t if
        there are several sampling chains) and a fixed seed. The result is the share of draws whose
        first k features by |φ| are not the reported ones, in the reported order: 0 without sampling
        error, NaN where errors are unknown. It covers the sampling error alone, not the errors of
        the game or of the weight.
        """
        d = self.values.shape[1]
        k = min(check_positive_integer("k", k), d)
        errors = self.standard_errors
        if errors is None:
            return np.zeros_like(self.base_values)

        rng = np.random.default_rng(0)
        shape = (INSTABILITY_DRAWS, d)
        if self.replicates is None:
            noise = rng.standard_normal(shape)
        else:
            n_chains = self.replicates.shape[1]
            noise = rng.standard_t(max(1, n_chains - 1), shape)

        phi_rows = np.moveaxis(self.values, 1, -1).reshape(-1, 1, d)
        error_rows = np.moveaxis(errors, 1, -1).reshape(-1, 1, d)
        shares = []
        for phi, error in zip(phi_rows, error_rows, strict=True):
            top = rank_features(phi)[:, :k]
            drawn_top = rank_features(phi + noise * error)[:, :k]
            shares.append((drawn_top != top).any(axis=1).mean())
        share = np.reshape(shares, self.base_values.shape)
        return np.where(np.isnan(errors).any(axis=1), np.nan, share)

    to_frame = export.to_frame
    to_shap = export.to_shap
    to_shapiq = export.to_shapiq

    def reweight(
        self, family: object = None, utility: object = "aup", select: str = "per_row"
    ) -> Explanation:
        """Choose the weights again, by another family, utility or selection, for the same Δ.

        The judge stays the same and nothing is sampled: it costs a matrix product and some curves.
        ``family=None`` keeps the family.
        """
        if self.contributions is None:
            raise ValueError(
                "Δ was not kept, so it cannot be weighed anew. Explain with"
                " keep_contributions=True."
            )
        source = self._require_source("Weigh anew")
        T = as_utility(utility)
        weights = source.problem.family
        if family is not None:
            weights = as_family(family, self.values.shape[1])
        check_choice("selection", select, SELECTIONS)
        problem = replace(
            source.problem,
            family=weights,
            utility=T,
            scorer=source.fit_scorer(T, source.problem.judge),
            select=select,
            shared_index=None,
        )

        # A scorer may be new: let its model predict all rows in one call. The predictions are kept
        # in a copy of the rows, which is dropped afterwards.
        rows = source.rows[:]
        if not problem.scorer.asks_by_block:
            rows.ask(problem.scorer)

        by_game = source.by_game
        if by_game is None:
            by_game = self._add_game_axis(self.contributions)
        chosen = method.reweight(problem, rows, source.outputs, by_game)
        if not self.has_outputs:
            chosen = method.drop_output_axis(chosen)
        if self.standard_errors is not None and self.replicates is None:
            chosen["standard_errors"] = np.full_like(self.values, np.nan)
        chosen["shapley_errors"] = self.shapley_errors
        return replace(
            self,
            **chosen,
            family=problem.choices,
            utility=T.name,
            select=select,
            _source=replace(source, problem=problem),
        )

    def _add_game_axis(self, delta: FloatArray) -> dict[str, FloatArray]:
        """Return Δ (n, 1, d, d, k), and Δ of any c sampling chains, with an axis for one game."""
        n, d = self.values.shape[:2]
        by_game = {"contributions": delta.reshape(n, 1, d, d, -1)}
        if self.replicates is not None:
            n_chains = self.replicates.shape[1]
            by_game["replicates"] = self.replicates.reshape(n, 1, n_chains, d, d, -1)
        return by_game

    refined_orders = local_search.refined_orders
    shortlist = local_search.shortlist

    def _require_source(self, action: str) -> Source:
        """Return the games and rows behind the explanation; raise an error if it has none.

        The error tells the user to do `action`, such as "Refine", before the games are lost.
        """
        if self._source is None:
            raise ValueError(
                "This explanation has no game to score weights with: it was loaded from a file,"
                " joined from the work of several explainers, or some of its features were"
                f" selected. {action} before that, or explain the rows again."
            )
        return self._source

    @property
    def plot(self) -> PlotAccessor:
        """The figures of `weightedshap.plots` as methods: ``explanation.plot.recovery()``."""
        from weightedshap.plots import PlotAccessor

        return PlotAccessor(self)

    def report(self, path: str | os.PathLike[str], evaluation: Any = None) -> None:
        """Write an interactive report of the explanation to one HTML file.

        `evaluation`, a result of `evaluate`, adds the fair comparison with Shapley.
        """
        from weightedshap.report import write

        write(self, path, evaluation)

    def __getattr__(self, name: str) -> Any:
        """Raise an AttributeError, with advice if shap's Explanation has an attribute `name`."""
        message = f"An Explanation has no attribute {name!r}."
        alternative = export.SHAP_ALTERNATIVES.get(name)
        if alternative is not None:
            message = f"{message} {alternative}"
        raise AttributeError(message, name=name, obj=self)

    __repr__ = summary.summary_text
    _repr_html_ = summary.summary_html


def field_names() -> tuple[str, ...]:
    """Return the names of the public fields of an Explanation."""
    return tuple(f.name for f in fields(Explanation) if not f.name.startswith("_"))
