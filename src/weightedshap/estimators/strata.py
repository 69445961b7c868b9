"""Coalitions drawn size by size, and Δ from the means of their values: what `stratified` and `proxy` share.

Δ is a difference of two means over coalitions of one size,

    Δ_j(x_i) = mean{v(S): i ∈ S, |S| = j} − mean{v(S): i ∉ S, |S| = j − 1},

so every evaluation informs all d features. A model g of v whose Δ is known takes most of the variance away:
Δ(v) = Δ(g) + Δ(v − g), and only the remainder v − g is sampled. The draws are cut into folds; the remainder of
a fold is taken from a g fitted to the other folds, so g and the draws are independent and there is no bias.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, IntArray
from weightedshap.contributions import Chains, Contributions
from weightedshap.estimators.plan import FEWEST_FOLDS, Plan, least_budget, need
from weightedshap.games.wrappers import CheckedGame

__all__ = ["Fit", "Sample", "estimate"]

MOST_GROUPS = 5
REPEATS = 3
BORROWED = 3
FLOOR = 0.05
WINDOW = 0.05


@dataclass(frozen=True)
class Sample:
    """Evaluated coalitions and the folds they belong to.

    Attributes
    ----------
    coalitions : (n, d) · values : (n[, k])
    fold : (n,) −1 for the coalitions of a size taken whole
    whole : (d + 1,) the sizes taken whole
    """

    coalitions: BoolArray
    values: FloatArray
    fold: IntArray
    whole: BoolArray

    @classmethod
    def of(cls, parts: Sequence[tuple[int, BoolArray, FloatArray]], whole: BoolArray) -> Sample:
        """From fold, coalitions and values of every call of the game."""
        fold = np.repeat([fold for fold, _, _ in parts], [len(values) for _, _, values in parts])
        coalitions, values = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
        return cls(coalitions, values, fold, whole)

    @property
    def d(self) -> int:
        """How many players there are."""
        return int(self.coalitions.shape[1])

    @property
    def folds(self) -> int:
        """How many folds there are."""
        return int(self.fold.max()) + 1

    @property
    def sizes(self) -> IntArray:
        """(n,) sizes of the coalitions."""
        return np.asarray(self.coalitions.sum(axis=1))

    @property
    def counts_by_fold(self) -> FloatArray:
        """(c, d + 1) draws of every size in every fold."""
        return np.stack([np.bincount(self.sizes[self.fold == c], minlength=self.d + 1) for c in range(self.folds)])

    @property
    def weights(self) -> FloatArray:
        """(n,) weights for fitting: the share of a draw of size s in the variance of Δ, c_s/n_s² ∝ 1/σ_s², mean 1."""
        drawn = self.sizes[self.fold >= 0]
        n = np.bincount(drawn, minlength=self.d + 1)
        present = np.flatnonzero(n)
        nearest = present[np.abs(np.arange(self.d + 1)[:, None] - present).argmin(axis=1)]
        weights = ((need(self.d)[nearest] / n[nearest]) ** 2)[self.sizes]
        return np.asarray(weights / weights.mean())

    @property
    def group_of_fold(self) -> IntArray:
        """(c,) the folds are joined into at most five groups, each of which gets one model."""
        return np.arange(self.folds) % min(self.folds, MOST_GROUPS)

    @property
    def groups(self) -> list[IntArray]:
        """Rows of the sizes known in full, then of every group of folds."""
        drawn = self.fold >= 0
        group = np.where(drawn, self.group_of_fold[self.fold], -1)
        return [np.flatnonzero(group == g) for g in range(-1, int(group.max()) + 1)]

    @property
    def known_delta(self) -> FloatArray:
        """(d, d[, k]) the Δ_j that whole sizes give without error, Δ_1 and Δ_d among them; NaN elsewhere."""
        known = self.whole[1:] & self.whole[:-1]
        rows = self.fold < 0
        part = replace(self, coalitions=self.coalitions[rows], fold=self.fold[rows])
        delta = _means(part, self.values[rows])
        delta[~known] = np.nan
        return delta

    def output(self, index: int) -> Sample:
        """One output of several."""
        return replace(self, values=self.values[:, index])


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


Crossfit = Callable[[Sample], Fit]


def estimate(
    game: CheckedGame, budget: int, rng: np.random.Generator, *, rough: Crossfit, crossfit: Crossfit, who: str
) -> Contributions:
    """Evaluate coalitions within `budget` and read Δ off their means, with the help of a fitted model.

    1. Evaluate the sizes that are taken whole, and a pilot of the others, each coalition with its complement.
    2. The spread of what a `rough` model leaves of the pilot tells how many more to draw of every size.
    3. Draw them, and correct the means of all draws by `crossfit`.

    If the game raises, the error carries what the finished folds tell as ``error.contributions``.
    """
    draws = frozenset([fingerprint(rng)])
    before = game.evaluations
    plan = Plan.of(game.d, budget - _reserve(game.d, budget))
    pilot, folds = plan.pilot(), plan.folds
    coalitions = plan.known()
    parts = [(-1, coalitions, game(coalitions))]

    def table(reason: str) -> Contributions:
        return _table(Sample.of(parts, plan.whole), crossfit, game.evaluations - before, reason, draws)

    def evaluate(coalitions: Iterator[BoolArray]) -> None:
        for fold, part in enumerate(coalitions):
            try:
                parts.append((fold, part, game(part)))
            except Exception as error:
                if len(parts) > FEWEST_FOLDS:
                    keep_partial(error, table(f"the game raised {type(error).__name__}: {error}"))
                raise

    evaluate(pilot.drawn(rng, folds, paired=True))
    if pilot is not plan:
        spread = _spread_by_size(Sample.of(parts, plan.whole), rough)
        evaluate(plan.rest(pilot, spread).drawn(rng, folds, paired=False))
    room = budget - (game.evaluations - before)
    variance = noise(game, [part[1:] for part in parts]) if room >= REPEATS else None
    return with_noise(table(f"{who}: budget of {budget:,} evaluations used"), variance)


def keep_partial(error: Exception, contributions: Contributions) -> None:
    """Hand what was sampled before a game raised to whoever catches the error."""
    error.contributions = contributions  # type: ignore[attr-defined]
    error.add_note("What was sampled before the game raised is kept as `error.contributions`.")


def _reserve(d: int, budget: int) -> int:
    """Evaluations kept for the search for noise: none where the budget is tight, or just covers everything."""
    return 0 if budget < 2 * least_budget(d) or 2**d <= budget < 2**d + REPEATS else REPEATS


def noise(game: CheckedGame, parts: Sequence[tuple[BoolArray, FloatArray]]) -> FloatArray | None:
    """([k]) variance of the values that the game gives for one coalition, None if they repeat themselves.

    A few coalitions are evaluated a second time. Networks in single precision may differ in the last digits from
    batch to batch: that is not noise.
    """
    coalitions, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    gap = game(coalitions[-REPEATS:]) - values[-REPEATS:]
    rounding = 1e-4 * np.ptp(values, axis=0) + 1e-6 * np.abs(values).max(axis=0)
    return None if (np.abs(gap) <= rounding).all() else np.asarray((gap**2).mean(axis=0) / 2)


def with_noise(table: Contributions, variance: FloatArray | None) -> Contributions:
    """`table` with errors widened by the noise of the game, and a warning that tells its size.

    The sampled cells show the noise in their spread already. Those read off whole sizes do not: each is a
    difference of two means, and its variance is at most twice that of one value. The chains of these cells
    are spread accordingly, so that the error of every φ_w is widened too.
    """
    if variance is None:
        return table
    warnings.warn(
        "The game returned different values for the same coalition (standard deviation about "
        f"{float(np.sqrt(variance.max())):.3g}). Standard errors are widened to allow for it.",
        stacklevel=4,
    )
    known, error = np.isinf(table.counts), np.sqrt(2 * variance)
    chains = table.chains or Chains(np.ones((2, table.d, table.d)), np.stack([table.mean] * 2), np.zeros(1))
    spread = _spread(len(chains.mean)).reshape(-1, *[1] * table.mean.ndim)
    mean = np.where(known, table.mean + spread * error, chains.mean)
    return Contributions.adjusted_table(
        Chains(chains.counts, mean, np.zeros_like(mean)),
        np.full_like(table.mean, np.nan),
        np.where(known, error, table.standard_error),
        table.evaluations,
        f"{table.stopped}; the game is noisy",
        table.draws,
    )


def _spread(n: int) -> FloatArray:
    """n numbers with mean 0 whose mean has standard error 1."""
    steps = np.arange(n) - (n - 1) / 2
    return np.asarray(steps * np.sqrt(n) / steps.std(ddof=1))


def _table(sample: Sample, crossfit: Crossfit, evaluations: int, reason: str, draws: frozenset[str]) -> Contributions:
    if sample.folds == 0:
        reason = f"exact: all {2**sample.d:,} coalitions evaluated"
        return Contributions.known(_means(sample, sample.values), evaluations, reason)
    if sample.values.ndim == 1:
        chains, errors = _cells(sample, crossfit(sample))
    else:
        outputs = [_cells(one, crossfit(one)) for one in map(sample.output, range(sample.values.shape[1]))]
        mean = np.stack([chains.mean for chains, _ in outputs], axis=-1)
        chains = Chains(outputs[0][0].counts, mean, np.zeros_like(mean))
        errors = np.stack([error for _, error in outputs], axis=-1)
    return Contributions.adjusted_table(chains, sample.known_delta, errors, evaluations, reason, draws)


def _spread_by_size(sample: Sample, crossfit: Crossfit) -> FloatArray:
    """(d + 1,) standard deviation of the remainder, smoothed over sizes, with a floor; outputs count alike."""
    outputs = [sample] if sample.values.ndim == 1 else [*map(sample.output, range(sample.values.shape[1]))]
    drawn = np.flatnonzero(sample.fold >= 0)
    s = np.arange(sample.d + 1)
    near = np.exp(-0.5 * ((s[:, None] - sample.sizes[drawn]) / max(1.0, WINDOW * sample.d)) ** 2)
    near /= near.sum(axis=1, keepdims=True)
    total = np.full(sample.d + 1, 1e-300)
    for one in outputs:
        variance = near @ (one.values[drawn] - crossfit(one).predicted[one.fold[drawn], drawn]) ** 2
        total += (variance + FLOOR * variance.mean()) / max(variance.mean(), 1e-300)
    return np.asarray(np.sqrt(total))


def _cells(sample: Sample, fit: Fit) -> tuple[Chains, FloatArray]:
    """Δ of every fold, and the standard error of every cell of their mean."""
    mean = np.stack([_fold_delta(sample, fit, c) for c in range(sample.folds)])
    counts = np.stack([_informing(sample) / sample.folds] * sample.folds)
    return Chains(counts, mean, np.zeros_like(mean)), _errors(sample, fit)


def _fold_delta(sample: Sample, fit: Fit, c: int) -> FloatArray:
    """Δ(g) + Δ(v − g), the remainder taken from fold c and from the sizes known in full."""
    seen = (sample.fold == c) | (sample.fold < 0)
    part = replace(sample, coalitions=sample.coalitions[seen], fold=sample.fold[seen])
    return np.asarray(fit.delta[c] + _means(part, (sample.values - fit.predicted[c])[seen]))


def _means(sample: Sample, values: FloatArray) -> FloatArray:
    """(d, d[, k]) mean{v(S): i ∈ S, |S| = j} − mean{v(S): i ∉ S, |S| = j − 1}, NaN where a size is missing.

    Sums are divided by the expected number of coalitions with (without) i, n_s s/d, not by the number found:
    so the mean has no bias, however few the draws, and for a whole size the two are the same.
    """
    inside, outside, n = _sums(sample, values)
    d, s = sample.d, np.arange(sample.d + 1)
    shape = (-1, *[1] * (inside.ndim - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        plus = inside[1:] * (d / (s * n))[1:].reshape(shape)
        minus = outside[:-1] * (d / ((d - s) * n))[:-1].reshape(shape)
        return np.asarray(plus - minus)


def _sums(sample: Sample, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(d + 1, d[, k]) Σ v(S) over i ∈ S and over i ∉ S by size, and (d + 1,) the number of coalitions."""
    order = np.argsort(sample.sizes, kind="stable")
    sizes = sample.sizes[order]
    present, starts = np.unique(sizes, return_index=True)
    x = sample.coalitions[order]
    weights = values[order]
    total = np.zeros((sample.d + 1, *values.shape[1:]))
    inside = np.zeros((sample.d + 1, sample.d, *values.shape[1:]))
    for s, start, stop in zip(present, starts, [*starts[1:], len(sizes)], strict=True):
        total[s] = weights[start:stop].sum(axis=0)
        inside[s] = np.einsum("ni,n...->i...", x[start:stop].astype(np.float64), weights[start:stop])
    return inside, total[:, None] - inside, np.bincount(sizes, minlength=sample.d + 1).astype(np.float64)


def _informing(sample: Sample) -> FloatArray:
    """(d, d) draws behind a cell: half the harmonic mean of those with i at size j and without i at j − 1.

    The folds share them equally, so that uniform weights add up to game([d]) − game(∅) exactly.
    """
    d, s = sample.d, np.arange(sample.d + 1)
    n = np.bincount(sample.sizes[sample.fold >= 0], minlength=d + 1)
    with np.errstate(divide="ignore"):
        inside, outside = (np.where(sample.whole, 0, d / (k * n)) for k in (np.maximum(s, 1), np.maximum(d - s, 1)))
    both = inside[1:] + outside[:-1]
    return np.repeat(1 / np.where(both > 0, both, 1)[:, None], d, axis=1)


def _errors(sample: Sample, fit: Fit) -> FloatArray:
    """(d, d) standard errors: Var Δ_j(i) = Var⁺_j(i)/n_j + Var⁻_{j−1}(i)/n_{j−1}, none for whole sizes.

    Folds count alike, whatever their draws n_cs, so 1/n_s is Σ_c 1/(n_cs C²). Each feature borrows a few draws from the
    average feature: with few draws it may happen to be in none of them, which is no certainty.
    """
    drawn = np.flatnonzero(sample.fold >= 0)
    part = replace(sample, coalitions=sample.coalitions[drawn], fold=sample.fold[drawn])
    remainder = sample.values[drawn] - fit.predicted[part.fold, drawn]
    first, squares = _sums(part, remainder), _sums(part, remainder**2)
    d, s, n = sample.d, np.arange(sample.d + 1), first[2]
    variances = []
    with np.errstate(divide="ignore", invalid="ignore"):
        per_draw = (1 / part.counts_by_fold).mean(axis=0) / part.folds * n / (n - 1)
        average = (squares[0] + squares[1])[:, :1] / n[:, None]
        for side, share in enumerate((np.maximum(s, 1) / d, np.maximum(d - s, 1) / d)):
            mean = first[side] / n[:, None]
            square = (squares[side] + BORROWED * share[:, None] * average) / (n + BORROWED)[:, None]
            variance = (square - mean**2) * (per_draw / share**2)[:, None]
            variances.append(np.where(sample.whole[:, None], 0.0, variance))
    return np.asarray(np.sqrt(np.maximum(variances[0][1:] + variances[1][:-1], 0.0)))


def fingerprint(rng: np.random.Generator) -> str:
    """A name for the stream of draws that `rng` is about to give."""
    return hashlib.blake2b(repr(rng.bit_generator.state).encode(), digest_size=12).hexdigest()
