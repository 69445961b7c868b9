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
from itertools import combinations
from math import comb

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, IntArray
from weightedshap.contributions import Chains, Contributions
from weightedshap.games.base import CheckedGame

__all__ = ["Fit", "Plan", "Sample", "estimate"]

FEWEST_FOLDS, MOST_FOLDS = 3, 10
MOST_GROUPS = 5
REPEATS = 3
WORTH_ALL = 0.6


@dataclass(frozen=True)
class Plan:
    """How many coalitions of each size are evaluated.

    Attributes
    ----------
    counts : (d + 1,) coalitions of each size
    whole : (d + 1,) whether these are all coalitions of that size
    """

    counts: IntArray
    whole: BoolArray

    @classmethod
    def of(cls, d: int, budget: int) -> Plan:
        """Share `budget` out over the sizes.

        Sizes 0, 1, d − 1 and d are always taken whole. The variance of Δ is Σ_s σ_s² d (1/s + 1/(d−s)) / n_s, so
        the others get shares n_s ∝ √(1/s + 1/(d−s)); a size whose share comes near the number of its
        coalitions is taken whole as well, which leaves no error.
        """
        every = np.array([min(comb(d, s), 2**62) for s in range(d + 1)], dtype=np.float64)
        sizes = np.arange(d + 1)
        whole = (sizes <= 1) | (sizes >= d - 1)
        need = np.sqrt(1 / np.maximum(sizes, 1) + 1 / np.maximum(d - sizes, 1))
        while not whole.all():
            left = budget - every[whole].sum()
            share = left * np.where(whole, 0, need) / need[~whole].sum()
            covered = np.where(whole, 0, share / every)
            s = int(covered.argmax())
            if covered[s] < WORTH_ALL or every[s] > left - FEWEST_FOLDS * ((~whole).sum() - 1):
                break
            whole[s] = True
        counts = np.where(whole, every, 0.0)
        if not whole.all():
            counts[~whole] = _rounded(share[~whole], int(left))
        return cls(counts.astype(np.intp), whole)

    @property
    def d(self) -> int:
        """How many players there are."""
        return int(len(self.counts) - 1)

    @property
    def folds(self) -> int:
        """As many as every size can fill, at most ten; 0 if nothing is drawn."""
        drawn = self.counts[~self.whole]
        return int(min(MOST_FOLDS, drawn.min())) if len(drawn) else 0

    def known(self) -> BoolArray:
        """(m, d) all coalitions of the sizes that are taken whole."""
        sets = [members for s in np.flatnonzero(self.whole) for members in combinations(range(self.d), int(s))]
        coalitions = np.zeros((len(sets), self.d), dtype=np.bool_)
        for row, members in zip(coalitions, sets, strict=True):
            row[list(members)] = True
        return coalitions

    def drawn(self, rng: np.random.Generator) -> Iterator[BoolArray]:
        """The coalitions of one fold after the other, drawn independently and uniformly within each size."""
        sizes = np.repeat(np.arange(self.d + 1), np.where(self.whole, 0, self.counts))
        for fold in range(self.folds):
            s = sizes[fold :: self.folds]
            rank = rng.random((len(s), self.d)).argsort(axis=1).argsort(axis=1)
            yield rank < s[:, None]


def _rounded(share: FloatArray, total: int) -> IntArray:
    """Whole numbers of at least three near `share`, adding up to at most `total`."""
    counts = np.maximum(np.floor(share).astype(np.intp), FEWEST_FOLDS)
    while counts.sum() > total:
        counts[counts.argmax()] -= 1
    return counts


def refuse_small_budget(budget: int, d: int, who: str) -> None:
    """Raise an error that names the least budget, if `budget` is smaller."""
    least = least_budget(d)
    if budget < least:
        raise ValueError(
            f"A budget of {budget:,} evaluations is too small: at d = {d} {who} needs at least {least:,}, all "
            "coalitions of sizes 0, 1, d − 1 and d and three of every other size."
        )


def least_budget(d: int) -> int:
    """The fewest evaluations with which every Δ_j(x_i) and its error can be estimated."""
    return int(min(2**d, 2 * d + 2 + FEWEST_FOLDS * max(d - 3, 0)))


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
    def of(cls, parts: Sequence[tuple[BoolArray, FloatArray]], whole: BoolArray) -> Sample:
        """From the coalitions and values of the whole sizes, then of each fold."""
        fold = np.repeat(np.arange(len(parts)) - 1, [len(values) for _, values in parts])
        coalitions, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
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


def estimate(game: CheckedGame, budget: int, rng: np.random.Generator, crossfit: Crossfit, who: str) -> Contributions:
    """Evaluate coalitions within `budget` and read Δ off their means, with the help of a fitted model.

    If the game raises, the error carries what the finished folds tell as ``error.contributions``.
    """
    draws = frozenset([fingerprint(rng)])
    before = game.evaluations
    plan = Plan.of(game.d, budget - _reserve(game.d, budget))
    coalitions = plan.known()
    parts = [(coalitions, game(coalitions))]

    def table(reason: str) -> Contributions:
        return _table(Sample.of(parts, plan.whole), crossfit, game.evaluations - before, reason, draws)

    for coalitions in plan.drawn(rng):
        try:
            parts.append((coalitions, game(coalitions)))
        except Exception as error:
            if len(parts) > FEWEST_FOLDS:
                keep_partial(error, table(f"the game raised {type(error).__name__}: {error}"))
            raise
    room = budget - (game.evaluations - before)
    variance = noise(game, parts) if room >= REPEATS else None
    return with_noise(table(f"{who}: budget of {budget:,} evaluations used"), variance)


def keep_partial(error: Exception, contributions: Contributions) -> None:
    """Hand what was sampled before a game raised to whoever catches the error."""
    error.contributions = contributions  # type: ignore[attr-defined]
    error.add_note("What was sampled before the game raised is kept as `error.contributions`.")


def _reserve(d: int, budget: int) -> int:
    """Evaluations kept for the search for noise: none where the budget is tight, or just covers everything."""
    return 0 if budget < 2 * least_budget(d) or 2**d <= budget < 2**d + REPEATS else REPEATS


def noise(game: CheckedGame, parts: list[tuple[BoolArray, FloatArray]]) -> FloatArray | None:
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
    """(d, d) standard errors: Var Δ_j(i) = Var⁺_j(i)/n_j + Var⁻_{j−1}(i)/n_{j−1}, none for whole sizes."""
    drawn = np.flatnonzero(sample.fold >= 0)
    part = replace(sample, coalitions=sample.coalitions[drawn], fold=sample.fold[drawn])
    remainder = sample.values[drawn] - fit.predicted[part.fold, drawn]
    first, squares = _sums(part, remainder), _sums(part, remainder**2)
    d, s, n = sample.d, np.arange(sample.d + 1), first[2]
    variances = []
    for side, members in enumerate((np.maximum(s, 1), np.maximum(d - s, 1))):
        with np.errstate(divide="ignore", invalid="ignore"):
            mean, square = first[side] / n[:, None], squares[side] / n[:, None]
            variance = (square - mean**2) / (n - 1)[:, None] * ((d / members) ** 2)[:, None]
        variances.append(np.where(sample.whole[:, None], 0.0, variance))
    return np.asarray(np.sqrt(np.maximum(variances[0][1:] + variances[1][:-1], 0.0)))


def fingerprint(rng: np.random.Generator) -> str:
    """A name for the stream of draws that `rng` is about to give."""
    return hashlib.blake2b(repr(rng.bit_generator.state).encode(), digest_size=12).hexdigest()
