"""Coalitions drawn size by size, and Δ from the means of their values: what `stratified` and `proxy` share.

Δ is a difference of two means over coalitions of one size,

    Δ_j(x_i) = mean{v(S): i ∈ S, |S| = j} − mean{v(S): i ∉ S, |S| = j − 1},

so every evaluation informs all d features. A model g of v whose Δ is known takes most of the variance away:
Δ(v) = Δ(g) + Δ(v − g), and only the remainder v − g is sampled. The draws are cut into folds; the remainder of
a fold is taken from a g fitted to the other folds, so g and the draws are independent and there is no bias.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, IntArray
from weightedshap.contributions import Chains, Contributions, with_outputs
from weightedshap.estimators.noise import REPEATS, fingerprint, keep_partial, noise, with_noise
from weightedshap.estimators.plan import FEWEST_FOLDS, Plan, least_budget, need
from weightedshap.games.wrappers import CheckedGame

MOST_GROUPS = 5
BORROWED = 3
FLOOR = 0.05
WINDOW = 0.05


@dataclass(frozen=True)
class Sample:
    """Coalitions and the folds they belong to.

    Attributes
    ----------
    coalitions : (n, d)
    fold : (n,) −1 for the coalitions of a size taken whole
    whole : (d + 1,) the sizes taken whole
    """

    coalitions: BoolArray
    fold: IntArray
    whole: BoolArray

    def take(self, rows: BoolArray | IntArray) -> Sample:
        """Some of the coalitions."""
        return replace(self, coalitions=self.coalitions[rows], fold=self.fold[rows])

    @property
    def d(self) -> int:
        """How many players there are."""
        return int(self.coalitions.shape[1])

    @property
    def folds(self) -> int:
        """How many folds there are."""
        return int(self.fold.max()) + 1

    @cached_property
    def drawn(self) -> IntArray:
        """(m,) where the coalitions of the folds are."""
        return np.flatnonzero(self.fold >= 0)

    @cached_property
    def sizes(self) -> IntArray:
        """(n,) sizes of the coalitions."""
        return np.asarray(self.coalitions.sum(axis=1))

    @cached_property
    def weights(self) -> FloatArray:
        """(n,) weights for fitting: the share of a draw of size s in the variance of Δ, c_s/n_s² ∝ 1/σ_s², mean 1."""
        n = np.bincount(self.sizes[self.drawn], minlength=self.d + 1)
        present = np.flatnonzero(n)
        nearest = present[np.abs(np.arange(self.d + 1)[:, None] - present).argmin(axis=1)]
        weights = ((need(self.d)[nearest] / n[nearest]) ** 2)[self.sizes]
        return np.asarray(weights / weights.mean())

    @property
    def group_of_fold(self) -> IntArray:
        """(c,) the folds are joined into at most five groups, each of which gets one model."""
        return np.arange(self.folds) % min(self.folds, MOST_GROUPS)

    @cached_property
    def groups(self) -> list[IntArray]:
        """Rows of the sizes known in full, then of every group of folds."""
        group = np.where(self.fold >= 0, self.group_of_fold[self.fold], -1)
        return [np.flatnonzero(group == g) for g in range(-1, int(group.max()) + 1)]


@dataclass(frozen=True)
class Fit:
    """A model of v for every fold, fitted without it.

    Attributes
    ----------
    delta : (c, d, d) exact Δ of the model of each fold
    predicted : (c, n) its values of all coalitions
    """

    delta: FloatArray
    predicted: FloatArray

    def remainder(self, sample: Sample, y: FloatArray) -> FloatArray:
        """(m,) what it leaves of the values y (n,) in the folds."""
        return np.asarray(y[sample.drawn] - self.predicted[sample.fold[sample.drawn], sample.drawn])


Crossfit = Callable[[Sample, FloatArray], Fit]
"""Models of one output: coalitions and their values (n,) → Fit."""


def estimate(
    game: CheckedGame, budget: int, rng: np.random.Generator, *, rough: Crossfit, crossfit: Crossfit, who: str
) -> Contributions:
    """Evaluate coalitions within `budget` and read Δ off their means, with the help of a fitted model.

    1. Evaluate the sizes that are taken whole, and a pilot of the others, each coalition with its complement.
    2. The spread of what a `rough` model leaves of the pilot tells how many more to draw of every size.
    3. Draw them, and correct the means of all draws by `crossfit`.

    If the game raises, the error carries what the finished folds tell as ``error.contributions``.
    """
    draws, before = fingerprint(rng), game.evaluations
    plan = Plan.of(game.d, budget - _reserve(game.d, budget))
    pilot, folds = plan.pilot(), plan.folds
    whole = plan.whole_sizes()
    calls = [(-1, whole, game(whole))]

    def table(reason: str) -> Contributions:
        return _table(*_gathered(calls, plan.whole), crossfit, game.evaluations - before, reason, draws)

    def evaluate(drawn: Iterator[BoolArray]) -> None:
        for fold, coalitions in enumerate(drawn):
            with keep_partial(table if len(calls) > FEWEST_FOLDS else None):
                calls.append((fold, coalitions, game(coalitions)))

    evaluate(pilot.drawn(rng, folds, paired=True))
    if pilot is not plan:
        spread = _spread_by_size(*_gathered(calls, plan.whole), rough)
        evaluate(plan.rest(pilot, spread).drawn(rng, folds, paired=False))
    sample, values = _gathered(calls, plan.whole)
    room = budget - (game.evaluations - before)
    variance = noise(game, sample.coalitions, values) if room >= REPEATS else None
    return with_noise(table(f"{who}: budget of {budget:,} evaluations used"), variance)


def _reserve(d: int, budget: int) -> int:
    """Evaluations kept for the search for noise: none where the budget is tight, or just covers everything."""
    return 0 if budget < 2 * least_budget(d) or 2**d <= budget < 2**d + REPEATS else REPEATS


def _gathered(calls: Sequence[tuple[int, BoolArray, FloatArray]], whole: BoolArray) -> tuple[Sample, FloatArray]:
    """The coalitions and values (n[, k]) of all calls of the game, each with its fold."""
    folds, coalitions, values = zip(*calls, strict=True)
    fold = np.repeat(folds, [len(called) for called in coalitions])
    return Sample(np.concatenate(coalitions), fold, whole), np.concatenate(values)


def _table(
    sample: Sample, values: FloatArray, crossfit: Crossfit, evaluations: int, reason: str, draws: frozenset[str]
) -> Contributions:
    if sample.folds == 0:
        reason = f"exact: all {2**sample.d:,} coalitions evaluated"
        return Contributions.known(_means(sample, values), evaluations, reason)
    fits = [(y, crossfit(sample, y)) for y in _outputs(values)]
    mean = np.stack([_fold_deltas(sample, y, fit) for y, fit in fits], axis=-1)
    errors = np.stack([_errors(sample, y, fit) for y, fit in fits], axis=-1)
    exact = _means(sample.take(sample.fold < 0), values[sample.fold < 0])
    mean, errors = mean.reshape(sample.folds, *exact.shape), errors.reshape(exact.shape)
    counts = np.stack([_informing(sample) / sample.folds] * sample.folds)
    chains = Chains(counts, mean, np.zeros_like(mean))
    return Contributions.sampled(chains, exact, evaluations, reason, draws, errors)


def _outputs(values: FloatArray) -> FloatArray:
    """(n[, k]) values → (k, n), output by output."""
    return values.reshape(len(values), -1).T


def _spread_by_size(sample: Sample, values: FloatArray, crossfit: Crossfit) -> FloatArray:
    """(d + 1,) standard deviation of the remainder, smoothed over sizes, with a floor; outputs count alike."""
    s = np.arange(sample.d + 1)
    near = np.exp(-0.5 * ((s[:, None] - sample.sizes[sample.drawn]) / max(1.0, WINDOW * sample.d)) ** 2)
    near /= near.sum(axis=1, keepdims=True)
    total = np.full(sample.d + 1, 1e-300)
    for y in _outputs(values):
        variance = near @ crossfit(sample, y).remainder(sample, y) ** 2
        total += (variance + FLOOR * variance.mean()) / max(variance.mean(), 1e-300)
    return np.asarray(np.sqrt(total))


def _fold_deltas(sample: Sample, y: FloatArray, fit: Fit) -> FloatArray:
    """(c, d, d) Δ(g) + Δ(v − g), the remainder taken from each fold and from the sizes known in full."""
    seen = [(sample.fold == c) | (sample.fold < 0) for c in range(sample.folds)]
    return fit.delta + np.stack([_means(sample.take(rows), (y - g)[rows]) for rows, g in zip(seen, fit.predicted)])


def _means(sample: Sample, values: FloatArray) -> FloatArray:
    """(d, d[, k]) mean{v(S): i ∈ S, |S| = j} − mean{v(S): i ∉ S, |S| = j − 1}, NaN where a size is missing.

    Sums are divided by the expected number of coalitions with (without) i, n_s s/d, not by the number found:
    so the mean has no bias, however few the draws, and for a whole size the two are the same.
    """
    inside, outside, n = _sums(sample, values)
    d, s = sample.d, np.arange(sample.d + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        plus, minus = (with_outputs(d / (k * n), inside) for k in (s, d - s))
        return np.asarray(inside[1:] * plus[1:] - outside[:-1] * minus[:-1])


def _sums(sample: Sample, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(d + 1, d[, k]) Σ v(S) over i ∈ S and over i ∉ S by size, and (d + 1,) the number of coalitions."""
    order = np.argsort(sample.sizes, kind="stable")
    n = np.bincount(sample.sizes, minlength=sample.d + 1)
    total = np.zeros((sample.d + 1, *values.shape[1:]))
    inside = np.zeros((sample.d + 1, sample.d, *values.shape[1:]))
    for s, rows in enumerate(np.split(order, n.cumsum()[:-1])):
        total[s] = values[rows].sum(axis=0)
        inside[s] = np.einsum("ni,n...->i...", sample.coalitions[rows].astype(np.float64), values[rows])
    return inside, total[:, None] - inside, n.astype(np.float64)


def _informing(sample: Sample) -> FloatArray:
    """(d, d) draws behind a cell: half the harmonic mean of those with i at size j and without i at j − 1.

    The folds share them equally, so that uniform weights add up to game([d]) − game(∅) exactly.
    """
    d, s = sample.d, np.arange(sample.d + 1)
    n = np.bincount(sample.sizes[sample.drawn], minlength=d + 1)
    with np.errstate(divide="ignore"):
        inside, outside = (np.where(sample.whole, 0, d / (k * n)) for k in (np.maximum(s, 1), np.maximum(d - s, 1)))
    both = inside[1:] + outside[:-1]
    return np.repeat(1 / np.where(both > 0, both, 1)[:, None], d, axis=1)


def _errors(sample: Sample, y: FloatArray, fit: Fit) -> FloatArray:
    """(d, d) standard errors: Var Δ_j(i) = Var⁺_j(i)/n_j + Var⁻_{j−1}(i)/n_{j−1}, none for whole sizes.

    Folds count alike, whatever their draws n_cs, so 1/n_s is Σ_c 1/(n_cs C²). Each feature borrows a few draws from the
    average feature: with few draws it may happen to be in none of them, which is no certainty.
    """
    part, remainder = sample.take(sample.drawn), fit.remainder(sample, y)
    first, squares = _sums(part, remainder), _sums(part, remainder**2)
    d, s, n = sample.d, np.arange(sample.d + 1), first[2]
    by_fold = np.stack([np.bincount(part.sizes[part.fold == c], minlength=d + 1) for c in range(part.folds)])
    variances = []
    with np.errstate(divide="ignore", invalid="ignore"):
        per_draw = (1 / by_fold).mean(axis=0) / part.folds * n / (n - 1)
        average = (squares[0] + squares[1])[:, :1] / n[:, None]
        for side, share in enumerate((np.maximum(s, 1) / d, np.maximum(d - s, 1) / d)):
            mean = first[side] / n[:, None]
            square = (squares[side] + BORROWED * share[:, None] * average) / (n + BORROWED)[:, None]
            variance = (square - mean**2) * (per_draw / share**2)[:, None]
            variances.append(np.where(sample.whole[:, None], 0.0, variance))
    return np.asarray(np.sqrt(np.maximum(variances[0][1:] + variances[1][:-1], 0.0)))
