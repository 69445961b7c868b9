"""How good is an attribution? Rankings of the features compared on a game that did not choose them.

The chosen weights can never look worse than Shapley on the game that chose them. So the distinct background rows are
cut in halves: each half fits a game, explains every row, and is judged on the game of the other half.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from weightedshap.checks import FloatArray, IntArray, field_values, one_of, positive_integer
from weightedshap.choices import Setting
from weightedshap.curves import mean_interval
from weightedshap.evaluation.metrics import Labels, as_labels, points
from weightedshap.evaluation.rankings import METHODS, MOST_PLAYERS, TREESHAP_ROWS, Side
from weightedshap.explainer import Explainer
from weightedshap.files import archive
from weightedshap.games.rows import Rows
from weightedshap.games.surrogate import copies_of
from weightedshap.inputs import Data, Table
from weightedshap.utilities import masked_inclusion

FILE_VERSION = 1
LARGER_IS_BETTER = ("inclusion_auc", "masked_auc", "exclusion", "exclusion_mse")
COSTLY = ("exclusion", "masked_inclusion", "performance")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Methods × metrics with 95 % intervals over the rows.

    Attributes
    ----------
    methods : the rankings compared, see `METHODS`
    metrics : "recovery" (Σ_k |f(x) − v(top k)|, small is good), "exclusion" (Σ_k |f(x) − v(all but top k)|, large is
        good), "masked_inclusion" (Σ_k |f(x) − f(top k, means elsewhere)|, small is good); where the labels y are
        known, "inclusion_mse" or "inclusion_auc", the mean over k = 1..d of the error or AUC of v(top k)
    judges : "independent" (the game of the other half of the background) and "own"
    points : for each judge and metric (n, methods, d + 1), by row and k = 0..d; several outputs are averaged
    notes : sentences the reader should know
    """

    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    judges: tuple[str, ...]
    points: Mapping[str, Mapping[str, FloatArray]]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.points[self.judges[0]][self.metrics[0]])

    def areas(self, judge: str, metric: str = "recovery") -> FloatArray:
        """(n, methods) what every row scores: the sum over k = 1..d, or the mean for the inclusion metrics."""
        points = self._points(judge, metric)[..., 1:]
        return np.asarray(points.mean(axis=-1) if metric.endswith(("_mse", "_auc")) else points.sum(axis=-1))

    def curves(self, judge: str, metric: str = "recovery") -> dict[str, FloatArray]:
        """(n, d + 1) of each method. The mean over the rows is the curve that the paper draws."""
        return dict(zip(self.methods, self._points(judge, metric).swapaxes(0, 1), strict=True))

    def mean(self, judge: str) -> FloatArray:
        """(methods, metrics)."""
        return np.stack([self.areas(judge, metric).mean(axis=0) for metric in self.metrics], axis=1)

    def margin(self, judge: str) -> FloatArray:
        """(methods, metrics) half the width of the 95 % interval over the rows."""
        return np.stack([mean_interval(self.areas(judge, metric))[1] for metric in self.metrics], axis=1)

    def difference(
        self, method: str = "WeightedSHAP", other: str = "Shapley", judge: str | None = None, metric: str = "recovery"
    ) -> tuple[float, float]:
        """Mean difference of two methods over the rows, and half the width of its 95 % interval (paired)."""
        areas = self.areas(judge or self.judges[0], metric)
        one, two = (self.methods.index(one_of("method", name, self.methods)) for name in (method, other))
        mean, margin = mean_interval(areas[:, one] - areas[:, two])
        return float(mean), float(margin)

    def to_frame(self) -> pd.DataFrame:
        """One line for each judge, method and metric: mean, and the low and high end of the 95 % interval."""
        lines = [
            (judge, method, metric, mean, mean - margin, mean + margin)
            for judge in self.judges
            for method, *scores in zip(self.methods, self.mean(judge), self.margin(judge), strict=True)
            for metric, mean, margin in zip(self.metrics, *scores, strict=True)
        ]
        return pd.DataFrame(lines, columns=["judge", "method", "metric", "mean", "low", "high"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to one file, without pickle, for ``weightedshap report --evaluation``."""
        archive.write(path, "evaluation", FILE_VERSION, field_values(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The evaluation that `save` wrote."""
        content = archive.read(path, "evaluation", FILE_VERSION)
        with archive.damage(path):
            found = cls(**content)
            shapes = {found.points[judge][metric].shape for judge in found.judges for metric in found.metrics}
            ((_, methods, _),) = shapes
        if methods != len(found.methods):
            raise archive.unfitting(path, ["methods", "points"])
        return found

    def __repr__(self) -> str:
        parts = [self._table(judge) for judge in self.judges]
        return "\n\n".join([*parts, *(f"note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """For notebooks: the means, methods by metrics."""
        wide = self.to_frame().pivot(index="method", columns=["judge", "metric"], values="mean")
        return str(wide.reindex(list(self.methods)).to_html(float_format="{:.4g}".format))

    def _points(self, judge: str, metric: str) -> FloatArray:
        return self.points[one_of("judge", judge, self.judges)][one_of("metric", metric, self.metrics)]

    def _table(self, judge: str) -> str:
        """One judge's table, in columns of equal width."""
        titles = [f"{metric} {'↑' if metric in LARGER_IS_BETTER else '↓'}" for metric in self.metrics]
        columns = [_cells(*pair) for pair in zip(self.mean(judge).T, self.margin(judge).T, strict=True)]
        if "Shapley" in self.methods:
            titles.insert(1, "− Shapley")
            mean, margin = np.transpose([self.difference(method, judge=judge) for method in self.methods])
            columns.insert(1, _cells(mean, margin, "+"))
        widths = [max(len(title), *map(len, column)) + 3 for title, column in zip(titles, columns, strict=True)]
        left = max(map(len, self.methods))
        where = "the game of the other half of the background" if judge == "independent" else "the game that chose"
        lines = [("", *titles), *zip(self.methods, *columns, strict=True)]
        table = [f"{name:<{left}}" + "".join(map(str.rjust, cells, widths)) for name, *cells in lines]
        return "\n".join([f"{len(self)} rows, judged on {where} (mean ± half of the 95 % interval)", *table])


def _cells(mean: FloatArray, margin: FloatArray, sign: str = "") -> list[str]:
    """A column of numbers with as many decimals as the intervals bear."""
    scale = np.nanmedian(margin) if np.isfinite(margin).any() else np.abs(mean).max() / 100
    decimals = int(np.clip(1 - np.floor(np.log10(scale)), 0, 9)) if scale > 0 else 3
    return [f"{m:{sign}.{decimals}f} ± {e:.{decimals}f}" for m, e in zip(mean, margin, strict=True)]


def evaluate(
    explainer: Explainer | Setting,
    X: Data,
    y: Any = None,
    against: str = "independent",
    *,
    methods: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    walks: int = 100,
) -> Evaluation:
    """Compare WeightedSHAP with Shapley and other rankings on the rows `X`.

    1. Cut the distinct background rows in halves; fit the explainer's game on each (`against="independent"`).
    2. On each half rank the features of every row by every method.
    3. Judge each ranking on the game that made it ("own") and on the other one ("independent"), and average both ways.

    Parameters
    ----------
    explainer : an `Explainer`, or a `Setting` whose game need not be fitted; its family, utility and seed are used
    X : rows to explain; y : their true answers, for the inclusion metrics
    against : "independent", or "own" to judge on the explainer's own game only, without fitting anew
    methods : some of `METHODS`; by default all that apply ("optimum" up to 15 features, TreeSHAP for tree ensembles)
    metrics : some of "exclusion", "masked_inclusion" and "performance", which adds error or AUC to these two; the
        first two by default. Recovery, and inclusion where `y` is given, are always there
    walks : random orders in which the MCI looks for the largest contribution, above 10 features

    Notes
    -----
    "WeightedSHAP" chooses a weight for each row, "shared" one for all rows, and "one-SE" the weight nearest to
    uniform within one standard error of the best shared one: it keeps Shapley unless another weight is better
    beyond noise. "greedy" and "optimum" look at the recovery error of the game that explains, so they are references
    rather than competitors. TreeSHAP is the Shapley value of the model's own trees on the whole background.
    """
    one_of("judge", against, ("independent", "own"))
    setting = explainer if isinstance(explainer, Setting) else explainer.setting
    rows = setting.background.align(X)
    chosen = _methods(methods, setting.background.d)
    costly = COSTLY[:2] if metrics is None else tuple(one_of("metric", metric, COSTLY) for metric in metrics)
    if against == "own":
        fitted = [(setting, setting.fit() if isinstance(explainer, Setting) else explainer.game)]
    else:
        fitted = [setting.refit(half) for half in halves(setting.background, _rng(setting, 1))]
    orders = np.tile(np.arange(setting.background.d), (positive_integer("walks", walks), 1))
    drawn = _rng(setting, 2).permuted(orders, axis=1)
    sides = [Side(one, Rows.of(game, rows), drawn) for one, game in fitted]
    labels = None if y is None else as_labels(y, len(rows), len(sides[0].explained.outputs), setting.model)
    shared, notes = _of_model(replace(sides[0], setting=setting), chosen)
    kept = tuple(method for method in chosen if method in shared or not METHODS[method].of_model)
    ranked = [_ranked(side, kept, shared) for side in sides]  # (n, M, d, k) each
    performance = labels if "performance" in costly else None
    pairs = zip(sides, ranked, strict=True)
    masked = [_masked(*pair, performance) if "masked_inclusion" in costly else {} for pair in pairs]
    judges = {"own": sides} if against == "own" else {"independent": sides[::-1], "own": sides}
    scored = {}
    for judge, judging in judges.items():
        both = []
        for side, order, more in zip(judging, ranked, masked, strict=True):
            found = points(side.explained, order, "recovery", labels, setting.method)
            if "exclusion" in costly:
                found |= points(side.explained, order, "exclusion", performance, setting.method, backwards=True)
            both.append(found | more)
        scored[judge] = {metric: np.mean([side[metric] for side in both], axis=0) for metric in both[0]}
    return Evaluation(kept, tuple(scored["own"]), tuple(judges), scored, notes)


def _masked(side: Side, orders: IntArray, labels: Labels | None) -> dict[str, FloatArray]:
    """Masked inclusion, on the model with the side's means in the place of hidden features; none without a model."""
    if side.setting.model is None:
        return {}
    judge = side.setting.judge(masked_inclusion, side.explained)
    return points(judge, orders, "masked_inclusion", labels, side.setting.method)


def _rng(setting: Setting, stream: int) -> np.random.Generator:
    return np.random.default_rng([setting.choices.random_state, stream])


def _of_model(side: Side, methods: Sequence[str]) -> tuple[dict[str, IntArray], tuple[str, ...]]:
    """Rankings (n, d, k) by the model's own trees, and what the reader should know of them."""
    setting, notes = side.setting, []
    wanted = [method for method in methods if METHODS[method].of_model]
    if "TreeSHAP interventional" in wanted and len(setting.background) > TREESHAP_ROWS:
        some = _rng(setting, 3).permutation(len(setting.background))[:TREESHAP_ROWS]
        side = replace(side, setting=replace(setting, background=setting.background.some(some)))
        notes.append(f"TreeSHAP interventional looks at {TREESHAP_ROWS:,} background rows drawn at random.")
    try:
        return {method: METHODS[method].rank(side) for method in wanted}, tuple(notes)
    except (TypeError, ValueError) as error:
        return {}, (f"TreeSHAP is left out, as trees of the model cannot be read: {error}",)


def _ranked(side: Side, methods: Sequence[str], shared: Mapping[str, IntArray]) -> IntArray:
    """(n, M, d, k) the ranking of every method; those that both sides share are there already."""
    return np.stack([shared[one] if one in shared else METHODS[one].rank(side) for one in methods], axis=1)


def _methods(methods: Sequence[str] | None, d: int) -> tuple[str, ...]:
    """The methods asked for, or all that apply to d features."""
    if methods is None:
        return tuple(method for method in METHODS if method != "optimum" or d <= MOST_PLAYERS)
    if isinstance(methods, str) or not methods:
        raise ValueError(f"`methods` must be a list of names such as {list(METHODS)[:4]}; got {methods!r}.")
    if "optimum" in methods and d > MOST_PLAYERS:
        raise ValueError(f"The true optimum can be found for at most {MOST_PLAYERS} features; there are {d}.")
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
