"""How good is an attribution? Rankings of the features compared on games that did not choose them.

On the judge that chose them, weights never look worse than Shapley's. So the distinct background
rows are split into halves: on each half the games are fitted and every row is explained, and the
rankings are judged on games fitted to the other half, for which by default v([d]) = f(x).
`evaluate` builds on all modules of this folder, and returns an `Evaluation`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from weightedshap._checks import (
    FloatArray,
    IntArray,
    check_array,
    check_choice,
    check_integer,
    name_of,
    require,
    shallow_asdict,
)
from weightedshap._lazy import pd
from weightedshap.config import JUDGES_STREAM, Setup
from weightedshap.curves import judge_error_share, mean_interval
from weightedshap.evaluation import summary as summaries
from weightedshap.evaluation.halves import (
    Explained,
    HalfBackground,
    fit_half,
    fit_whole,
    halves,
)
from weightedshap.evaluation.metrics import Labels, as_labels, score_rankings
from weightedshap.evaluation.rankings import (
    METHODS,
    MODEL_METHODS,
    MOST_PLAYERS,
    treeshap_background,
)
from weightedshap.evaluation.summary import KINDS
from weightedshap.explainer import Explainer
from weightedshap.explanation.export import frame_library
from weightedshap.explanation.slicing import identical
from weightedshap.files import archive
from weightedshap.games import JUDGES
from weightedshap.games.base import BaseGame
from weightedshap.inputs import Data
from weightedshap.inputs.rows import Rows
from weightedshap.parallel import Result, progress_bar
from weightedshap.utilities import masked_inclusion

FILE_VERSION = 1

COSTLY = ("exclusion", "masked_inclusion", "performance")
"""Metrics that can be requested by ``metrics=``; the first two are computed by default."""

# With more features, searches over coalitions take longer than everything else together.
MOST_SEARCHED = 10

Judge = str | Callable[[Any], Any]
Judges = Judge | Sequence[Judge] | Mapping[str, Judge]

Scores = dict[str, FloatArray]
"""The scores (n, M, d + 1) of rankings at j = 0..d, by metric."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The scores of ranking methods on several metrics, with 95 % intervals over the rows.

    Attributes
    ----------
    methods : the rankings compared, see `METHODS`
    metrics : "recovery" (Σ_k |f(x) − v(top k)|, small is good), "exclusion" (Σ_k |f(x) − v(all but
        top k)|, large is good), "masked_inclusion" (Σ_k |f(x) − f(top k, means elsewhere)|, small
        is good); where the labels y are known, "inclusion_mse" or "inclusion_auc", the mean over k
        = 1..d of the error or AUC of v(top k)
    judges : the kinds of judges, see `evaluate`; and "own", the judge that chose the weights
    points : for each judge and metric an array (n, methods, d + 1), by row, method and k = 0..d;
        several outputs are averaged
    notes : sentences that a reader should know · feature_names : the players that were ranked

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> explainer = Explainer(lambda X: X[:, 0] + X[:, 1] * X[:, 2], X, game="marginal")
    >>> evaluate(explainer, X[:5], against="own").judges
    ('own',)
    """

    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    judges: tuple[str, ...]
    points: Mapping[str, Mapping[str, FloatArray]]
    notes: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.points[self.judges[0]][self.metrics[0]])

    def areas(self, judge: str, metric: str = "recovery") -> FloatArray:
        """Return the score of each row and method (n, methods): the sum of `points` over k = 1..d.

        For the error or the AUC on labels, the score is the mean over k.
        """
        points = self._points(judge, metric)[..., 1:]
        is_mean = metric.endswith(("_mse", "_auc"))
        return np.asarray(points.mean(axis=-1) if is_mean else points.sum(axis=-1))

    def curves(self, judge: str, metric: str = "recovery") -> dict[str, FloatArray]:
        """Return a dict of each method's curves (n, d + 1): one curve over k = 0..d for each row.

        The paper draws the mean of the curves over the rows.
        """
        return dict(zip(self.methods, self._points(judge, metric).swapaxes(0, 1), strict=True))

    def mean(self, judge: str) -> FloatArray:
        """Return the mean score of each method and metric over the rows, as (methods, metrics)."""
        return np.stack([self.areas(judge, metric).mean(axis=0) for metric in self.metrics], axis=1)

    def margin(self, judge: str) -> FloatArray:
        """Return half the width of the 95 % interval of each mean score, as (methods, metrics)."""
        margins = [mean_interval(self.areas(judge, metric))[1] for metric in self.metrics]
        return np.stack(margins, axis=1)

    difference = summaries.difference
    summary = summaries.summary

    def to_frame(self, to: str | None = None) -> Data:
        """Return a DataFrame with a row for each judge, method and metric.

        The columns contain the mean and the ends of its 95 % interval. `to` names the library, as
        in `Explanation.to_frame`.
        """
        lines = []
        for judge in self.judges:
            scores = zip(self.methods, self.mean(judge), self.margin(judge), strict=True)
            for method, means, margins in scores:
                for metric, mean, margin in zip(self.metrics, means, margins, strict=True):
                    lines.append((judge, method, metric, mean, mean - margin, mean + margin))
        frame = pd.DataFrame(lines, columns=["judge", "method", "metric", "mean", "low", "high"])
        if frame_library(to) == "pandas":
            return frame
        return require("polars", "polars").from_pandas(frame)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the evaluation to one file, without pickle, for `load` and for reports."""
        archive.write(path, "evaluation", FILE_VERSION, shallow_asdict(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load an evaluation that `save` wrote."""
        content = archive.read(path, "evaluation", FILE_VERSION)
        with archive.report_damage(path):
            evaluation = cls(**content)
            evaluation._check_shapes()
            names = ("methods", "metrics", "judges", "notes")
            if not all(_is_tuple_of_text(vars(evaluation)[name]) for name in names):
                raise archive.inconsistent_fields_error(path, names)
        return evaluation

    def _check_shapes(self) -> None:
        """Raise an error if an array of `points` is missing, not finite, or of another shape."""
        arrays = [self.points[judge][metric] for judge in self.judges for metric in self.metrics]
        (shape,) = {array.shape for array in arrays}
        for array in arrays:
            check_array("points", array, (*shape[:1], len(self.methods), *shape[2:3]))

    def __repr__(self) -> str:
        notes = (f"note: {note}" for note in self.notes)
        lines = [summaries.verdict(self), "", self.summary(), summaries.LEGEND, *notes]
        return "\n".join(lines)

    def _points(self, judge: str, metric: str) -> FloatArray:
        """Return the `points` (n, methods, d + 1) of a judge and a metric; check both names."""
        check_choice("judge", judge, self.judges)
        check_choice("metric", metric, self.metrics)
        return self.points[judge][metric]

    def misfit(self, judge: str) -> float:
        """Return the share of the area under Shapley's recovery curve that is the judge's error.

        The judge's error is |f(x) − v| with all features known; it counts at every k. Without
        Shapley the curve is that of the first method.
        """
        reference = self.methods.index("Shapley") if "Shapley" in self.methods else 0
        return judge_error_share(self._points(judge, "recovery")[:, reference])


def evaluate(
    explainer: Explained | Mapping[str, Explained],
    X: Data,
    y: Any = None,
    against: str = "independent",
    *,
    judges: Judges = "anchored",
    methods: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    walks: int = 50,
) -> Evaluation:
    """Compare WeightedSHAP with Shapley and other rankings on the rows `X`.

    1. Split the distinct background rows into halves; fit the explainer's games and judge on each.
    2. On each half, rank the features of every row by every method.
    3. Judge each ranking on games that are fitted to the other half, and average over the halves.

    Parameters
    ----------
    explainer : an `Explainer`, or a `Setup` whose games need not be fitted. A dict of them, of one
        model and background, compares their WeightedSHAP rankings under its names; all other
        methods are those of the first
    X : rows to explain; y : their labels, for the inclusion metrics
    against : "independent", or "own" to use the explainer's own judge only, without fitting any
        game
    judges : one kind of judge, or a list of kinds. "anchored" gives f(x) when all features are
        known, and so does "network", by a network; "surrogate" is the plain tree surrogate, misfit
        included; "independent" is the explainer's own kind of judge. Or a function row → game that
        returns the true game; several functions by name in a dict
    methods : some of `METHODS`; by default all that apply (TreeSHAP for tree ensembles, "greedy"
        and "optimum" up to 10 features; if named here, "optimum" works up to 15). These two and
        "refined" search on the judge that chose the weights
    metrics : some of "exclusion", "masked_inclusion" and "performance", which adds error or AUC to
        these two; the first two by default. Recovery, and inclusion if `y` is given, are always
        computed
    walks : number of random orders along which the MCI is computed, with more than 10 features
    """
    check_choice("judge", against, ("independent", "own"))
    compared = dict(explainer) if isinstance(explainer, Mapping) else {"WeightedSHAP": explainer}
    setups = _setups(compared)
    if against == "own" and len(compared) > 1:
        raise ValueError(
            "Each of several explainers has a judge of its own, so that they cannot be compared on"
            ' it. Leave out against="own".'
        )
    first_name = next(iter(compared))
    setup = setups[first_name]
    table = setup.background
    rows = Rows(table.align(X))
    chosen_methods = _chosen_methods(methods, table.d)
    costly = _costly_metrics(metrics)
    seed = setup.config.random_state
    split_rng = np.random.default_rng([seed, 1])
    walks_rng = np.random.default_rng([seed, 2])
    features = np.tile(np.arange(table.d), (check_integer("walks", walks, 1), 1))
    mci_walks = walks_rng.permuted(features, axis=1)  # (m, d)
    named_judges = {} if against == "own" else _judges_by_name(judges)
    parts = (table,) if against == "own" else halves(table, split_rng)

    n_steps = len(parts) * (len(compared) + len(chosen_methods) + len(named_judges) + 2)
    with progress_bar(n_steps, "evaluating", setup.config.progress, "step") as shown:

        def step(result: Result) -> Result:
            shown.update()
            return result

        # 1. Fit the games and the judge of every explainer on each half.
        halves_of: dict[str, list[HalfBackground]] = {}
        for name, one in compared.items():
            # One bar shows the whole comparison.
            own = setups[name].with_options(progress=False)
            halves_of[name] = []
            for part in parts:
                fitted = fit_whole(one, own) if against == "own" else fit_half(one, own, part)
                half = HalfBackground.build(*step(fitted), rows, mci_walks, table)
                halves_of[name].append(half)
        both = halves_of[first_name]
        labels = None
        if y is not None:
            labels = as_labels(y, len(rows), both[0].n_outputs, setup.model)

        # 2. Rank the features by every method.
        explainers = halves_of if isinstance(explainer, Mapping) else {}
        rankings, notes = _rank(both, explainers, chosen_methods, step)
        orders = [np.stack(of_half, axis=1) for of_half in zip(*rankings.values(), strict=True)]

        # 3. Judge each ranking on games that did not choose it, and on the judge that did.
        judges_of: dict[str, list[BaseGame]] = {
            name: [_fit_judge(judge, other) for other in both[::-1]]
            for name, judge in named_judges.items()
        }
        if len(compared) == 1:
            judges_of["own"] = [half.judge for half in both]
        points = _score(both, judges_of, orders, labels, costly, step)
        shown.update(shown.total - shown.n)

    # The error of labels is missing for a judge on another scale than the labels.
    metrics_of = list(points.values())
    common = [name for name in metrics_of[0] if all(name in scores for scores in metrics_of)]
    return Evaluation(
        methods=tuple(rankings),
        metrics=tuple(common),
        judges=tuple(points),
        points=points,
        notes=notes,
        feature_names=table.player_names,
    )


def _setups(compared: Mapping[str, Explained]) -> dict[str, Setup]:
    """Return the setup of each explainer by name; check that all have the same background."""
    if not compared:
        raise ValueError("There is no explainer to evaluate. Pass one, or a dict of several.")
    setups = {}
    for name, one in compared.items():
        if not isinstance(one, (Explainer, Setup)):
            raise TypeError(
                f"`explainer` must be an Explainer, or a dict of several; got {type(one).__name__}."
            )
        setups[name] = one if isinstance(one, Setup) else one.setup
    first, *others = setups
    table = setups[first].background
    for name in others:
        other = setups[name].background
        if table.player_names != other.player_names or not identical(table.data, other.data):
            raise ValueError(
                f"The explainer {name!r} has another background than the first. Make all of them"
                " with the same one, so that they learn from the same halves."
            )
    return setups


def _chosen_methods(methods: Sequence[str] | None, d: int) -> tuple[str, ...]:
    """Check the names of methods and return them; None means all that apply to d features."""
    if methods is None:
        searches = ("greedy", "optimum")
        return tuple(name for name in METHODS if name not in searches or d <= MOST_SEARCHED)
    if not isinstance(methods, (list, tuple)) or not methods:
        raise ValueError(
            f"`methods` must be a list of names such as {list(METHODS)[:4]}; got {methods!r}."
        )
    if "optimum" in methods and d > MOST_PLAYERS:
        raise ValueError(
            f"The true optimum can be found for at most {MOST_PLAYERS} features; there are {d}."
        )
    return tuple(dict.fromkeys(check_choice("method", method, METHODS) for method in methods))


def _costly_metrics(metrics: Sequence[str] | None) -> tuple[str, ...]:
    """Check the names of costly metrics and return them; None means the first two of `COSTLY`."""
    if metrics is None:
        return COSTLY[:2]
    if not isinstance(metrics, (list, tuple)):
        raise TypeError(f"`metrics` must be a list of names; got {metrics!r}.")
    return tuple(check_choice("metric", metric, COSTLY) for metric in metrics)


def _judges_by_name(judges: Judges) -> dict[str, Judge]:
    """Return a dict of judges by name, from a dict, a list or a single judge."""
    if isinstance(judges, Mapping):
        return dict(judges)
    several = [judges] if isinstance(judges, str) or callable(judges) else judges
    return {name_of(judge): judge for judge in several}


def _rank(
    both: Sequence[HalfBackground],
    explainers: Mapping[str, Sequence[HalfBackground]],
    methods: Sequence[str],
    step: Callable[[IntArray], IntArray],
) -> tuple[dict[str, list[IntArray]], tuple[str, ...]]:
    """Rank the features by every method, on both halves of the background; also return notes.

    The rankings (n, d, k) are a dict from each method to one array for each half. Each of several
    `explainers` adds its WeightedSHAP rankings, under its own name. `step` advances the progress
    bar.
    """
    of_model, notes = _rank_by_model(both[0], methods)
    rankings = {
        name: [METHODS["WeightedSHAP"](half) for half in own] for name, own in explainers.items()
    }
    for method in methods:
        is_unreadable = method in MODEL_METHODS and method not in of_model
        is_compared = method in explainers or (bool(explainers) and method == "WeightedSHAP")
        if is_unreadable or is_compared:
            continue
        if method in of_model:
            rankings[method] = [step(of_model[method]) for _ in both]
        else:
            rankings[method] = [step(METHODS[method](half)) for half in both]
    return rankings, notes


def _rank_by_model(
    half: HalfBackground, methods: Sequence[str]
) -> tuple[dict[str, IntArray], tuple[str, ...]]:
    """Rank the features by TreeSHAP on the model's trees; return rankings (n, d, k) and notes.

    The trees are evaluated on the full background, so both halves share the rankings.
    """
    requested = [method for method in methods if method in MODEL_METHODS]
    notes: tuple[str, ...] = ()
    n_background = len(treeshap_background(half))
    if "TreeSHAP interventional" in requested and n_background < len(half.whole):
        notes = (
            f"TreeSHAP interventional looks at {n_background:,} background rows drawn at random.",
        )
    try:
        return {method: METHODS[method](half) for method in requested}, notes
    except (TypeError, ValueError) as error:
        return {}, (f"TreeSHAP is left out, as trees of the model cannot be read: {error}",)


def _fit_judge(judge: Judge, other: HalfBackground) -> BaseGame:
    """Fit a judge to the half of the background `other`, which did not choose the rankings.

    `judge` is a kind or a function, see `evaluate`.
    """
    recipe = judge
    if isinstance(judge, str):
        kind = KINDS[check_choice("judge", judge, KINDS)]
        if kind is None or kind == other.judge.info["game"]:
            # The half's own judge is of that kind.
            return other.judge
        recipe = kind
    game = other.setup.fit_game(recipe, JUDGES, JUDGES_STREAM)
    n_outputs = other.rows.ask(game).shape[1]
    if n_outputs != other.n_outputs:
        raise ValueError(
            f"The judge {name_of(judge)!r} has {n_outputs} outputs, but {other.n_outputs} are"
            " explained."
        )
    return game


def _score(
    both: Sequence[HalfBackground],
    judges_of: Mapping[str, Sequence[BaseGame]],
    orders: Sequence[IntArray],
    labels: Labels | None,
    costly: Sequence[str],
    step: Callable[[Scores], Scores],
) -> dict[str, Scores]:
    """Score the rankings from each half of the background on every judge; average over the halves.

    `orders` are the rankings (n, M, d, k) of each half. `judges_of` maps a name to the judge of
    each half. Returns arrays (n, M, d + 1) by judge and metric. `step` advances the progress bar.
    """
    masked = [
        step(_score_masked(half, of_half, labels, costly))
        for half, of_half in zip(both, orders, strict=True)
    ]
    points = {}
    for name, judges in judges_of.items():
        scores = []
        for half, judge, of_half, more in zip(both, judges, orders, masked, strict=True):
            scores.append(step(_score_on_judge(half, judge, of_half, labels, costly) | more))
        points[name] = {
            metric: np.mean([of_half[metric] for of_half in scores], axis=0) for metric in scores[0]
        }
    return points


def _score_on_judge(
    half: HalfBackground,
    judge: BaseGame,
    orders: IntArray,
    labels: Labels | None,
    costly: Sequence[str],
) -> Scores:
    """Score M rankings (n, M, d, k) of one half on a judge; return a dict of scores by metric."""
    scores = score_rankings(judge, half.rows, orders, "recovery", labels, half.workers)
    if "exclusion" in costly:
        truth = labels if "performance" in costly else None
        scores |= score_rankings(judge, half.rows, orders, "exclusion", truth, half.workers)
    return scores


def _score_masked(
    half: HalfBackground, orders: IntArray, labels: Labels | None, costly: Sequence[str]
) -> Scores:
    """Score rankings on the model itself, with hidden features replaced by background means.

    The result is empty without a model, or if `costly` does not contain "masked_inclusion".
    """
    if half.setup.model is None or "masked_inclusion" not in costly:
        return {}
    judge = half.setup.fit_scorer(masked_inclusion, half.judge)
    truth = labels if "performance" in costly else None
    return score_rankings(judge, half.rows, orders, "masked_inclusion", truth, half.workers)


def _is_tuple_of_text(names: object) -> bool:
    """Return whether a value is a tuple of strings."""
    return isinstance(names, tuple) and all(isinstance(name, str) for name in names)
