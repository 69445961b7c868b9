"""Coalitions drawn size by size, and Δ from the means of their values: what `stratified` and `proxy` share.

Δ is a difference of two means over coalitions of one size,

    Δ_j(x_i) = mean{v(S): i ∈ S, |S| = j} − mean{v(S): i ∉ S, |S| = j − 1},

so every evaluation informs all d features. A model g of v whose Δ is known takes most of the variance away:
Δ(v) = Δ(g) + Δ(v − g), and only the remainder v − g is sampled. The draws are cut into folds; the remainder of
a fold is taken from a g fitted to the other folds, so g and the draws are independent and there is no bias.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Self

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, IntArray, positive_integer
from weightedshap.contributions import Chains, Contributions, with_outputs
from weightedshap.estimators.noise import REPEATS, fingerprint, keep_partial, noise, with_noise
from weightedshap.games.wrappers import CheckedGame

FEWEST_FOLDS, MOST_FOLDS = 3, 10  # three: to fit, to stop the fit, and to read; ten tell an error well enough
WORTH_ALL = 0.6  # of a size's coalitions: rather than so many draws, all are taken
PILOT = 4  # one draw in four
MOST_GROUPS = 5  # models that are fitted, whatever the number of folds
BORROWED = 3  # draws of the average feature behind the error of every feature
FLOOR, WINDOW = 0.05, 0.05  # of the mean variance, and of d: for the spread by size


@dataclass(frozen=True)
class Plan:
    """How many coalitions of each size are evaluated."""

    counts: IntArray  # (d + 1,) coalitions of each size
    whole: BoolArray  # (d + 1,) whether these are all coalitions of that size

    @classmethod
    def of(cls, d: int, budget: int) -> Self:
        """Share `budget` out over the sizes.

        Sizes 0, 1, d − 1 and d are always taken whole. The variance of Δ is Σ_s σ_s² d (1/s + 1/(d−s)) / n_s, so
        the others get shares n_s ∝ √(1/s + 1/(d−s)); a size whose share comes near the number of its
        coalitions is taken whole as well, which leaves no error.
        """
        every = np.array([min(comb(d, s), 2**62) for s in range(d + 1)], dtype=np.float64)
        sizes, needed = np.arange(d + 1), need(d)
        whole = (sizes <= 1) | (sizes >= d - 1)
        while not whole.all():
            left = budget - every[whole].sum()
            share = left * np.where(whole, 0, needed) / needed[~whole].sum()
            covered = np.where(whole, 0, share / every)
            s = int(covered.argmax())
            if covered[s] < WORTH_ALL or every[s] > left - FEWEST_FOLDS * ((~whole).sum() - 1):
                break
            whole[s] = True
        counts = np.where(whole, every, 0.0)
        if not whole.all():
            counts[~whole] = _rounded(share[~whole], int(left))
        return cls(counts.astype(np.intp), whole)

    def pilot(self) -> Self:
        """The first quarter of the draws, if it has ten of every size; else all of them."""
        few = self.counts[~self.whole] // PILOT
        return self if len(few) == 0 or few.min() < MOST_FOLDS else self.drawing(self.counts // PILOT)

    def drawing(self, counts: IntArray) -> Self:
        return replace(self, counts=np.where(self.whole, self.counts, counts))

    def rest(self, pilot: Self, spread: FloatArray) -> Self:
        """What is to be drawn after the pilot, so that in all n_s ∝ σ_s (1/s + 1/(d−s)).

        The best for Δ as a whole would be the root of the last factor. Without it the small and large sizes, on which
        the weights of most families dwell, get more, at hardly a loss for Δ.
        """
        drawn = ~self.whole
        wanted = np.where(drawn, need(self.d) ** 2 * spread, 0.0)
        total = self.counts[drawn].sum()
        counts = np.maximum(total * wanted / wanted.sum() - pilot.counts, 0) * drawn
        left = total - pilot.counts[drawn].sum()
        return self.drawing(np.floor(counts * left / counts.sum()).astype(np.intp))

    @property
    def d(self) -> int:
        return len(self.counts) - 1

    @property
    def folds(self) -> int:
        """As many as every size can fill, at most ten; 0 if nothing is drawn."""
        drawn = self.counts[~self.whole]
        return int(min(MOST_FOLDS, drawn.min())) if len(drawn) else 0

    def whole_sizes(self) -> BoolArray:
        """(m, d) all coalitions of the sizes that are taken whole."""
        sets = [members for s in np.flatnonzero(self.whole) for members in combinations(range(self.d), int(s))]
        coalitions = np.zeros((len(sets), self.d), dtype=np.bool_)
        for row, members in zip(coalitions, sets, strict=True):
            row[list(members)] = True
        return coalitions

    def drawn(self, rng: np.random.Generator, folds: int, paired: bool) -> Iterator[BoolArray]:
        """The coalitions of one fold after the other, drawn uniformly within each size.

        Draws are independent, except that with `paired` each brings its complement, which frees symmetric weights from
        the error of all interactions of even order.
        """
        d, s = self.d, np.arange(self.d + 1)
        for fold in range(folds):
            counts = np.where(self.whole, 0, (self.counts + (fold + np.minimum(s, d - s)) % folds) // folds)
            pairs = np.where(2 * s < d - 1, np.minimum(counts, counts[::-1]), 0)
            pairs[s == d / 2] = counts[s == d / 2] // 2
            pairs *= paired
            first = _random(pairs, rng)
            yield np.concatenate([first, ~first, _random(counts - pairs - pairs[::-1], rng)])


def need(d: int) -> FloatArray:
    """(d + 1,) √(1/s + 1/(d−s)): how the error of Δ depends on the size of the coalitions."""
    s = np.arange(d + 1)
    return np.asarray(np.sqrt(1 / np.maximum(s, 1) + 1 / np.maximum(d - s, 1)))


def _random(counts: IntArray, rng: np.random.Generator) -> BoolArray:
    """(Σ counts, d) so many random coalitions of each size."""
    sizes = np.repeat(np.arange(len(counts)), counts)
    rank = rng.random((len(sizes), len(counts) - 1)).argsort(axis=1).argsort(axis=1)
    return np.asarray(rank < sizes[:, None])


def _rounded(share: FloatArray, total: int) -> IntArray:
    """Whole numbers of at least three near `share`, adding up to at most `total`."""
    counts = np.maximum(np.floor(share).astype(np.intp), FEWEST_FOLDS)
    while counts.sum() > total:
        counts[counts.argmax()] -= 1
    return counts


def budget_of(evaluations: int | None, d: int, who: str) -> int:
    """`evaluations`, or max(2,000, 100 d); an error names the least budget where they are fewer."""
    budget = max(2_000, 100 * d) if evaluations is None else positive_integer("evaluations", evaluations)
    if budget < (least := least_budget(d)):
        needed = f"{least:,}, all coalitions of sizes 0, 1, d − 1 and d and three of every other size"
        raise ValueError(f"A budget of {budget:,} evaluations is too small: at d = {d} {who} needs at least {needed}.")
    return budget


def least_budget(d: int) -> int:
    """The fewest evaluations with which every Δ_j(x_i) and its error can be estimated."""
    return int(min(2**d, 2 * d + 2 + FEWEST_FOLDS * max(d - 3, 0)))


@dataclass(frozen=True)
class Sample:
    """Coalitions and the folds they belong to."""

    coalitions: BoolArray  # (n, d)
    fold: IntArray  # (n,), −1 for the coalitions of a size taken whole
    whole: BoolArray  # (d + 1,) the sizes taken whole

    def take(self, rows: BoolArray | IntArray) -> Self:
        return replace(self, coalitions=self.coalitions[rows], fold=self.fold[rows])

    @property
    def d(self) -> int:
        return int(self.coalitions.shape[1])

    @property
    def folds(self) -> int:
        return int(self.fold.max()) + 1

    @cached_property
    def drawn(self) -> IntArray:  # (m,) where the coalitions of the folds are
        return np.flatnonzero(self.fold >= 0)

    @cached_property
    def sizes(self) -> IntArray:  # (n,)
        return np.asarray(self.coalitions.sum(axis=1))

    @cached_property
    def weights(self) -> FloatArray:
        """(n,) weights for fitting: the share of a draw of size s in the variance of Δ, c_s/n_s² ∝ 1/σ_s², mean 1."""
        n = np.bincount(self.sizes[self.drawn], minlength=self.d + 1)
        present = np.flatnonzero(n)
        nearest = present[np.abs(np.arange(self.d + 1)[:, None] - present).argmin(axis=1)]
        weights = ((need(self.d)[nearest] / n[nearest]) ** 2)[self.sizes]
        return np.asarray(weights / weights.mean())

    @cached_property
    def groups(self) -> list[IntArray]:
        """Rows of the sizes known in full, then of every group of folds; fold c is in group c mod 5."""
        group = np.where(self.fold >= 0, self.fold % MOST_GROUPS, -1)
        return [np.flatnonzero(group == g) for g in range(-1, min(self.folds, MOST_GROUPS))]


@dataclass(frozen=True)
class Fit:
    """A model of v for every group of folds, fitted without it."""

    delta: FloatArray  # (groups, d, d) exact Δ of each model
    predicted: FloatArray  # (groups, n) its values of all coalitions

    def remainder(self, sample: Sample, y: FloatArray) -> FloatArray:
        """(m,) what the models leave of the values y (n,) in the folds."""
        rows = sample.drawn
        return np.asarray(y[rows] - self.predicted[sample.fold[rows] % MOST_GROUPS, rows])


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
    tight = budget < 2 * least_budget(game.d) or 2**game.d <= budget < 2**game.d + REPEATS
    plan = Plan.of(game.d, budget if tight else budget - REPEATS)  # the rest is for the search for noise
    pilot, folds, whole = plan.pilot(), plan.folds, plan.whole_sizes()
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
    room = budget - (game.evaluations - before) >= REPEATS
    variance = noise(game, sample.coalitions, values) if room else None
    return with_noise(table(f"{who}: budget of {budget:,} evaluations used"), variance)


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
    fits = [(y, crossfit(sample, y)) for y in values.reshape(len(values), -1).T]
    mean = np.stack([_fold_deltas(sample, y, fit) for y, fit in fits], axis=-1)
    errors = np.stack([_errors(sample, y, fit) for y, fit in fits], axis=-1)
    exact = _means(sample.take(sample.fold < 0), values[sample.fold < 0])
    mean, errors = mean.reshape(sample.folds, *exact.shape), errors.reshape(exact.shape)
    counts = np.stack([_informing(sample) / sample.folds] * sample.folds)
    return Contributions.sampled(Chains(counts, mean, np.zeros_like(mean)), exact, evaluations, reason, draws, errors)


def _spread_by_size(sample: Sample, values: FloatArray, crossfit: Crossfit) -> FloatArray:
    """(d + 1,) standard deviation of the remainder, smoothed over sizes, with a floor; outputs count alike."""
    s = np.arange(sample.d + 1)
    near = np.exp(-0.5 * ((s[:, None] - sample.sizes[sample.drawn]) / max(1.0, WINDOW * sample.d)) ** 2)
    near /= near.sum(axis=1, keepdims=True)
    total = np.full(sample.d + 1, 1e-300)
    for y in values.reshape(len(values), -1).T:
        variance = near @ crossfit(sample, y).remainder(sample, y) ** 2
        total += (variance + FLOOR * variance.mean()) / max(variance.mean(), 1e-300)
    return np.asarray(np.sqrt(total))


def _fold_deltas(sample: Sample, y: FloatArray, fit: Fit) -> FloatArray:
    """(c, d, d) Δ(g) + Δ(v − g), the remainder taken from each fold and from the sizes known in full."""
    deltas = []
    for c in range(sample.folds):
        seen, g = (sample.fold == c) | (sample.fold < 0), c % MOST_GROUPS
        deltas.append(fit.delta[g] + _means(sample.take(seen), (y - fit.predicted[g])[seen]))
    return np.stack(deltas)


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
    n = np.bincount(sample.sizes, minlength=sample.d + 1)
    by_size = np.split(np.argsort(sample.sizes, kind="stable"), n.cumsum()[:-1])
    total = np.stack([values[rows].sum(axis=0) for rows in by_size])
    masks = (sample.coalitions[rows].astype(np.float64) for rows in by_size)
    inside = np.stack([np.einsum("ni,n...->i...", mask, values[rows]) for mask, rows in zip(masks, by_size)])
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
