"""How good is an attribution? Rankings of the features compared on games that did not choose them.

No weights look worse than Shapley on the judge that chose them. So the distinct background rows are
cut in halves: each fits the games, explains every row, and is judged on games of the other half,
which by default have no misfit at [d].
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
    field_values,
    name_of,
    one_of,
    require,
    stored_array,
    whole_number,
)
from weightedshap._lazy import pd
from weightedshap.config import JUDGES_STREAM, Setting
from weightedshap.curves import mean_interval, misfit
from weightedshap.evaluation import summary as told
from weightedshap.evaluation.metrics import Labels, as_labels, points
from weightedshap.evaluation.rankings import METHODS, MOST_PLAYERS, OF_MODEL, Side
from weightedshap.evaluation.summary import KINDS
from weightedshap.explainer import Explainer
from weightedshap.explanation.export import frame_library
from weightedshap.explanation.slicing import same
from weightedshap.files import archive
from weightedshap.games import JUDGES
from weightedshap.games.rows import Rows
from weightedshap.games.surrogates.data import copies_of
from weightedshap.inputs import Data, Table
from weightedshap.parallel import Result, Workers, bar
from weightedshap.utilities import masked_inclusion

FILE_VERSION = 1
COSTLY = ("exclusion", "masked_inclusion", "performance")
UNASKED = (
    10  # features: beyond, a search over coalitions takes longer than everything else together
)

Explained = Explainer | Setting
Judge = str | Callable[[Any], Any]
Judges = Judge | Sequence[Judge] | Mapping[str, Judge]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Methods × metrics with 95 % intervals over the rows.

    Attributes
    ----------
    methods : the rankings compared, see `METHODS`
    metrics : "recovery" (Σ_k |f(x) − v(top k)|, small is good), "exclusion" (Σ_k |f(x) − v(all but
        top k)|, large is good), "masked_inclusion" (Σ_k |f(x) − f(top k, means elsewhere)|, small
        is good); where the labels y are known, "inclusion_mse" or "inclusion_auc", the mean over k
        = 1..d of the error or AUC of v(top k)
    judges : the kinds of games that judged, see `evaluate`; and "own", the judge that chose the
        weights
    points : for each judge and metric (n, methods, d + 1), by row and k = 0..d; several outputs are
        averaged
    notes : sentences the reader should know · feature_names : the players that were ranked

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
        """(n, methods) what every row scores: the sum over k = 1..d, or the mean for the inclusion
        metrics."""
        points = self._points(judge, metric)[..., 1:]
        return np.asarray(
            points.mean(axis=-1) if metric.endswith(("_mse", "_auc")) else points.sum(axis=-1)
        )

    def curves(self, judge: str, metric: str = "recovery") -> dict[str, FloatArray]:
        """(n, d + 1) of each method. The mean over the rows is the curve that the paper draws."""
        return dict(zip(self.methods, self._points(judge, metric).swapaxes(0, 1), strict=True))

    def mean(self, judge: str) -> FloatArray:
        """(methods, metrics)."""
        return np.stack([self.areas(judge, metric).mean(axis=0) for metric in self.metrics], axis=1)

    def margin(self, judge: str) -> FloatArray:
        """(methods, metrics) half the width of the 95 % interval over the rows."""
        return np.stack(
            [mean_interval(self.areas(judge, metric))[1] for metric in self.metrics], axis=1
        )

    difference = told.difference
    summary = told.summary

    def to_frame(self, to: str | None = None) -> Data:
        """A line for each judge, method and metric: mean and ends of the 95 % interval; `to` as of
        an Explanation."""
        lines = [
            (judge, method, metric, mean, mean - margin, mean + margin)
            for judge in self.judges
            for method, *scores in zip(
                self.methods, self.mean(judge), self.margin(judge), strict=True
            )
            for metric, mean, margin in zip(self.metrics, *scores, strict=True)
        ]
        frame = pd.DataFrame(lines, columns=["judge", "method", "metric", "mean", "low", "high"])
        return (
            frame
            if frame_library(to) == "pandas"
            else require("polars", "polars").from_pandas(frame)
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to one file, without pickle, for ``weightedshap report --evaluation``."""
        archive.write(path, "evaluation", FILE_VERSION, field_values(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The evaluation that `save` wrote."""
        content = archive.read(path, "evaluation", FILE_VERSION)
        with archive.damage(path):
            found = cls(**content)
            points = [
                found.points[judge][metric] for judge in found.judges for metric in found.metrics
            ]
            (shape,) = {array.shape for array in points}
            _ = [
                stored_array("points", array, (*shape[:1], len(found.methods), *shape[2:3]))
                for array in points
            ]
            named = found.methods, found.metrics, found.judges, found.notes
            if not all(
                isinstance(names, tuple) and all(isinstance(name, str) for name in names)
                for names in named
            ):
                raise archive.unfitting(path, ["methods", "metrics", "judges", "notes"])
        return found

    def __repr__(self) -> str:
        notes = (f"note: {note}" for note in self.notes)
        return "\n".join([told.verdict(self), "", self.summary(), told.LEGEND, *notes])

    def _points(self, judge: str, metric: str) -> FloatArray:
        return self.points[one_of("judge", judge, self.judges)][
            one_of("metric", metric, self.metrics)
        ]

    def misfit(self, judge: str) -> float:
        """The share of the area that is the judge's own error: what it misses when all features are
        known."""
        reference = self.methods.index("Shapley") if "Shapley" in self.methods else 0
        return misfit(self._points(judge, "recovery")[:, reference])


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

    1. Cut the distinct background rows in halves; fit the explainer's games and judge on each.
    2. On each half rank the features of every row by every method.
    3. Judge each ranking on games that are fitted to the other half, and average both ways.

    Parameters
    ----------
    explainer : an `Explainer`, or a `Setting` whose games need not be fitted. A dict of them, of
        one model and background, compares their WeightedSHAP rankings under its names; all other
        methods are those of the first
    X : rows to explain; y : their true answers, for the inclusion metrics
    against : "independent", or "own" to judge on the explainer's own judge only, without fitting
        anew
    judges : one kind or a list of them. "anchored" is right when all features are known, "network"
        the same by a network; "surrogate" is the plain tree surrogate, misfit included;
        "independent" what the explainer itself is judged by. Or a function row → game that knows
        the truth; several by name in a dict
    methods : some of `METHODS`; by default all that apply (TreeSHAP for tree ensembles, "greedy"
        and "optimum" up to 10 features; the optimum can be asked for up to 15). These two and
        "refined" look at the judge that chose
    metrics : some of "exclusion", "masked_inclusion" and "performance", which adds error or AUC to
        these two; the first two by default. Recovery, and inclusion where `y` is given, are always
        there
    walks : random orders in which the MCI looks for the largest contribution, above 10 features
    """
    one_of("judge", against, ("independent", "own"))
    compared = dict(explainer) if isinstance(explainer, Mapping) else {"WeightedSHAP": explainer}
    settings = {name: one.but(progress=False) for name, one in _settings(compared).items()}
    setting = next(iter(settings.values()))
    rows = setting.background.align(X)
    chosen = _methods(methods, setting.background.d)
    if not isinstance(metrics, (list, tuple, type(None))):
        raise TypeError(f"`metrics` must be a list of names; got {metrics!r}.")
    costly = (
        COSTLY[:2]
        if metrics is None
        else tuple(one_of("metric", metric, COSTLY) for metric in metrics)
    )
    rngs = [np.random.default_rng([setting.choices.random_state, stream]) for stream in (1, 2)]
    orders = np.tile(np.arange(setting.background.d), (whole_number("walks", walks, 1), 1))
    drawn = rngs[1].permuted(orders, axis=1)  # (m, d) at random
    named = {} if against == "own" else _named(judges)
    cut = [setting.background] if against == "own" else halves(setting.background, rngs[0])
    progress = _settings(compared)[next(iter(compared))].method.progress
    with bar(
        len(cut) * (len(settings) + len(chosen) + len(named) + 2), "evaluating", progress, "step"
    ) as shown:

        def step(result: Result) -> Result:
            shown.update()
            return result

        if against == "own":
            own = {
                name: one.fit() if isinstance(one, Setting) else one.fits
                for name, one in compared.items()
            }
            fitted = {name: [step((settings[name], fits))] for name, fits in own.items()}
        else:
            read = {
                name: () if isinstance(one, Setting) else one.games
                for name, one in compared.items()
            }
            fitted = {
                name: [step(one.refit(half, read[name])) for half in cut]
                for name, one in settings.items()
            }
        sides = {
            name: Side.each(fits, rows, drawn, setting.background) for name, fits in fitted.items()
        }
        first = sides[next(iter(sides))]
        labels = (
            None
            if y is None
            else as_labels(y, len(rows), len(first[0].judge.outputs), setting.model)
        )
        shared, notes = _of_model(first[0], chosen)
        kept = [method for method in chosen if method in shared or method not in OF_MODEL]
        ranks = {
            one: [step(shared[one] if one in shared else METHODS[one](side)) for side in first]
            for one in kept
        }
        if isinstance(explainer, Mapping):  # by their names, in the place of the first one's
            others = {
                name: [METHODS["WeightedSHAP"](side) for side in of] for name, of in sides.items()
            }
            ranks = others | {
                one: of for one, of in ranks.items() if one not in ("WeightedSHAP", *others)
            }
        # (n, M, d, k) each.
        ranked = [np.stack(half, axis=1) for half in zip(*ranks.values(), strict=True)]
        masked = [step(_masked(*pair, labels, costly)) for pair in zip(first, ranked, strict=True)]
        judging = {
            name: [_judge(judge, other) for other in first[::-1]] for name, judge in named.items()
        }
        judging |= {} if len(compared) > 1 else {"own": [side.judge for side in first]}
        scored = {}
        for judge, games in judging.items():
            of_sides = zip(games, ranked, masked, strict=True)
            both = [
                step(_scores(game, order, labels, costly, setting.method) | more)
                for game, order, more in of_sides
            ]
            scored[judge] = {
                metric: np.mean([side[metric] for side in both], axis=0) for metric in both[0]
            }
        shown.update(shown.total - shown.n)
    common = [
        metric
        for metric in next(iter(scored.values()))
        if all(metric in of for of in scored.values())
    ]
    return Evaluation(
        tuple(ranks), tuple(common), tuple(judging), scored, notes, setting.background.player_names
    )


def _scores(
    judge: Rows, orders: IntArray, labels: Labels | None, costly: Sequence[str], workers: Workers
) -> dict[str, FloatArray]:
    """What rankings (n, M, d, k) score on one judge, by metric."""
    found = points(judge, orders, "recovery", labels, workers)
    if "exclusion" in costly:
        truth = labels if "performance" in costly else None
        found |= points(judge, orders, "exclusion", truth, workers)
    return found


def _settings(compared: Mapping[str, Explained]) -> dict[str, Setting]:
    """What each explainer is made of; they must share a background, which is cut in halves for all
    of them."""
    if not compared:
        raise ValueError("There is no explainer to evaluate. Pass one, or a dict of several.")
    for one in compared.values():
        if not isinstance(one, (Explainer, Setting)):
            raise TypeError(
                f"`explainer` must be an Explainer, or a dict of several; got {type(one).__name__}."
            )
    settings = {
        name: one if isinstance(one, Setting) else one.setting for name, one in compared.items()
    }
    first = next(iter(settings.values()))
    for name, other in settings.items():
        tables = first.background, other.background
        if tables[0].player_names != tables[1].player_names or not same(
            tables[0].data, tables[1].data
        ):
            said = f"The explainer {name!r} has another background than the first."
            raise ValueError(
                f"{said} Make all of them with the same one, so that they learn from the same"
                " halves."
            )
    return settings


def _named(judges: Judges) -> dict[str, Judge]:
    """Judges by name."""
    if isinstance(judges, Mapping):
        return dict(judges)
    return {
        name_of(judge): judge
        for judge in ([judges] if isinstance(judges, str) or callable(judges) else judges)
    }


def _judge(judge: Judge, other: Side) -> Rows:
    """The rows under a judge that is fitted to the background of the other side."""
    if isinstance(judge, str) and KINDS[one_of("judge", judge, KINDS)] in (
        None,
        other.judge.fitted.info["game"],
    ):
        return other.judge  # of that very kind, and fitted to the half that chose nothing
    recipe = KINDS[judge] if isinstance(judge, str) else judge
    found = Rows.of(other.setting.fit_one(recipe, JUDGES, JUDGES_STREAM), other.judge.rows)
    if found.f_x.shape != other.judge.f_x.shape:
        counts = f"{found.f_x.shape[1]} outputs, but {other.judge.f_x.shape[1]} are explained"
        raise ValueError(f"The judge {name_of(judge)!r} has {counts}.")
    return found


def _masked(
    side: Side, orders: IntArray, labels: Labels | None, costly: Sequence[str]
) -> dict[str, FloatArray]:
    """Masked inclusion, on the model with the side's means in the place of hidden features; none
    without a model."""
    if side.setting.model is None or "masked_inclusion" not in costly:
        return {}
    judge = side.setting.scorer(masked_inclusion, side.explained)
    truth = labels if "performance" in costly else None
    return points(judge, orders, "masked_inclusion", truth, side.setting.method)


def _of_model(side: Side, methods: Sequence[str]) -> tuple[dict[str, IntArray], tuple[str, ...]]:
    """Rankings (n, d, k) by the model's own trees on the whole background, and what the reader
    should know of them."""
    wanted = [method for method in methods if method in OF_MODEL]
    fewer = "TreeSHAP interventional" in wanted and len(side.treeshap_rows) < len(side.whole)
    note = (
        f"TreeSHAP interventional looks at {len(side.treeshap_rows):,} background rows drawn at"
        " random."
    )
    try:
        return {method: METHODS[method](side) for method in wanted}, (note,) if fewer else ()
    except (TypeError, ValueError) as error:
        return {}, (f"TreeSHAP is left out, as trees of the model cannot be read: {error}",)


def _methods(methods: Sequence[str] | None, d: int) -> tuple[str, ...]:
    """The methods asked for, or all that apply to d features."""
    if methods is None:
        return tuple(
            method for method in METHODS if method not in ("greedy", "optimum") or d <= UNASKED
        )
    if not isinstance(methods, (list, tuple)) or not methods:
        raise ValueError(
            f"`methods` must be a list of names such as {list(METHODS)[:4]}; got {methods!r}."
        )
    if "optimum" in methods and d > MOST_PLAYERS:
        raise ValueError(
            f"The true optimum can be found for at most {MOST_PLAYERS} features; there are {d}."
        )
    return tuple(dict.fromkeys(one_of("method", method, METHODS) for method in methods))


def halves(table: Table, rng: np.random.Generator) -> tuple[Table, Table]:
    """Two tables with half of the distinct rows each; copies of one row stay together."""
    codes = np.stack([pd.factorize(table.column(c))[0] for c in range(len(table.names))], axis=1)
    copy_of = copies_of(codes)
    distinct = int(copy_of.max()) + 1
    if distinct < 4:
        few = f"The background has {distinct} distinct rows, too few to cut in halves."
        raise ValueError(f'{few} Pass more rows, or against="own".')
    first = np.isin(copy_of, rng.permutation(distinct)[: distinct // 2])
    return table.some(np.flatnonzero(first)), table.some(np.flatnonzero(~first))
