"""Coalitions drawn size by size, and Δ from the means of their values: what `stratified` and
`proxy` share.

Δ is a difference of two means over coalitions of one size,

    Δ_j(x_i) = mean{v(S): i ∈ S, |S| = j} − mean{v(S): i ∉ S, |S| = j − 1},

so every evaluation informs all d features. A model g of v whose Δ is known takes most of the
variance away: Δ(v) = Δ(g) + Δ(v − g), and only the remainder v − g is sampled. The draws are cut
into folds; the remainder of a fold is taken from a g fitted to the other folds, so g and the draws
are independent and there is no bias.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Self

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap.contributions import Chains, Contributions, with_outputs

FEWEST_FOLDS = 3
MOST_FOLDS = 10  # three: to fit, to stop the fit, and to read; ten tell an error well enough
WORTH_ALL = 0.6  # of a size's coalitions: rather than so many draws, all are taken
PILOT = 4  # one draw in four
FEW_GROUPS = 5
FEW_ROWS = 2_500  # so many models are fitted to more rows than that, whatever the number of folds
ONE_SIDED = 0.75  # of the variance with complements: below, the draws that are left come without
BORROWED = 3  # draws of the average feature behind the error of every feature
FLOOR = 0.05
WINDOW = 0.05  # of the mean variance, and of d: for the spread by size


@dataclass(frozen=True)
class Plan:
    """How many coalitions of each size are evaluated."""

    # (d + 1,) coalitions drawn of each size; if paired, of at most d/2, and each brings its
    # complement
    draws: IntArray
    whole: BoolArray  # (d + 1,) the sizes of which all coalitions are taken
    paired: bool = True

    @classmethod
    def of(cls, d: int, budget: int) -> Self:
        """Share `budget` out over the sizes, s and d − s alike.

        Sizes 0, 1, d − 1 and d are always taken whole. The variance of Δ is Σ_s σ_s² d (1/s +
        1/(d−s)) / n_s, so the others get shares n_s ∝ √(1/s + 1/(d−s)); a size whose share comes
        near the number of its coalitions is taken whole as well, which leaves no error.
        """
        sizes = np.arange(d // 2 + 1)
        halved = 1 + (2 * sizes == d)  # in the middle, two coalitions make a pair
        # Pairs, as all below.
        every = np.array([min(comb(d, s), 2**62) for s in sizes.tolist()]) / halved
        needed = need(d)[sizes] / halved
        whole = sizes <= 1
        while not whole.all():
            left = budget // 2 - every[whole].sum()
            share = left * np.where(whole, 0, needed) / needed[~whole].sum()
            covered = np.where(whole, 0, share / every)
            s = int(covered.argmax())
            if covered[s] < WORTH_ALL or every[s] > left - FEWEST_FOLDS * ((~whole).sum() - 1):
                break
            whole[s] = True
        draws = np.zeros(d + 1, dtype=np.intp)
        if not whole.all():
            counts = np.maximum(np.floor(share[~whole]).astype(np.intp), FEWEST_FOLDS)
            while counts.sum() > int(left):
                counts[counts.argmax()] -= 1
            draws[sizes[~whole]] = counts
        return cls(draws, np.concatenate([whole, whole[: (d + 1) // 2][::-1]]))

    def pilot(self) -> Self:
        """The first quarter of the draws, if it has ten of every size; else all of them."""
        few = self.draws[self.draws > 0] // PILOT
        return (
            self
            if len(few) == 0 or few.min() < MOST_FOLDS
            else replace(self, draws=self.draws // PILOT)
        )

    def rest(self, pilot: Self, spread: FloatArray) -> Self:
        """What is to be drawn after the pilot, so that in all n_s ∝ σ_s (1/s + 1/(d−s)).

        The best for Δ as a whole would be the root of the last factor. Without it the small and
        large sizes, on which the weights of most families dwell, get more, at hardly a loss for Δ.
        With complements s and d − s get as many; where that would waste a good part of them,
        because the spread is on one side, they are left out.
        """
        s = np.arange(self.d + 1)
        cost = need(self.d) ** 2
        drawn = ~self.whole
        both = np.sqrt((spread**2 + spread[::-1] ** 2) / 2)
        alone, paired = (
            np.sum((cost * spread**2 / n)[drawn]) * np.sum(n[drawn])
            for n in (cost * spread, cost * both)
        )
        if alone < ONE_SIDED * paired:
            total = 2 * self.draws.sum()
            wanted = cost * spread * drawn
            done = pilot.draws + pilot.draws[::-1]
        else:
            total = self.draws.sum()
            wanted = cost * both * drawn * (2 * s <= self.d) / (1 + (2 * s == self.d))
            done = pilot.draws
        counts = np.maximum(total * wanted / wanted.sum() - done, 0) * (wanted > 0)
        counts *= (total - done.sum()) / counts.sum()
        return replace(
            self, draws=np.floor(counts).astype(np.intp), paired=bool(alone >= ONE_SIDED * paired)
        )

    @property
    def d(self) -> int:
        return len(self.draws) - 1

    @property
    def folds(self) -> int:
        """As many as every size can fill, at most ten; 0 if nothing is drawn."""
        drawn = self.draws[self.draws > 0]
        return int(min(MOST_FOLDS, drawn.min())) if len(drawn) else 0

    def whole_sizes(self) -> BoolArray:
        """(m, d) all coalitions of the sizes that are taken whole, complements in the second
        half."""
        small = [s for s in np.flatnonzero(self.whole).tolist() if 2 * s <= self.d]
        sets = [
            members
            for s in small
            for members in combinations(range(self.d), s)
            if 2 * s < self.d or 0 in members
        ]
        coalitions = np.zeros((len(sets), self.d), dtype=np.bool_)
        for row, members in zip(coalitions, sets, strict=True):
            row[list(members)] = True
        return np.concatenate([coalitions, ~coalitions])

    def drawn(self, rng: np.random.Generator, folds: int) -> Iterator[BoolArray]:
        """The coalitions of one fold after the other, drawn uniformly within each size, complements
        in the second half.

        Complements free symmetric weights from the error of all interactions of even order.
        """
        for fold in range(folds):
            sizes = np.repeat(
                s := np.arange(self.d + 1), (self.draws + (fold + s) % folds) // folds
            )
            rank = rng.random((len(sizes), self.d)).argsort(axis=1).argsort(axis=1)
            first = rank < sizes[:, None]
            yield np.concatenate([first, ~first]) if self.paired else first


def need(d: int) -> FloatArray:
    """(d + 1,) √(1/s + 1/(d−s)): how the error of Δ depends on the size of the coalitions."""
    s = np.arange(d + 1)
    return np.asarray(np.sqrt(1 / np.maximum(s, 1) + 1 / np.maximum(d - s, 1)))


def least_budget(d: int) -> int:
    """The fewest evaluations with which every Δ_j(x_i) and its error can be estimated."""
    return int(min(2**d, 2 * d + 2 + 2 * FEWEST_FOLDS * max(d // 2 - 1, 0)))


Called = tuple[int, BoolArray, FloatArray]
"""A call of the game: its fold, coalitions (m, d), and their values (m[, k])."""


@dataclass(frozen=True)
class Sample:
    """Coalitions and the folds they belong to."""

    coalitions: BoolArray  # (n, d)
    fold: IntArray  # (n,), −1 for the coalitions of a size taken whole
    whole: BoolArray  # (d + 1,) the sizes taken whole
    partner: IntArray | None = None  # (n,) the rows of the complements, if all have one

    @classmethod
    def of(cls, calls: Sequence[Called], whole: BoolArray, paired: bool) -> tuple[Self, FloatArray]:
        """The coalitions of all calls of the game, if paired with their complements; and their
        values (n[, k])."""
        folds, coalitions, values = zip(*calls, strict=True)
        n = [len(called) for called in coalitions]
        partner = [
            np.roll(rows, len(rows) // 2) for rows in np.split(np.arange(sum(n)), np.cumsum(n)[:-1])
        ]
        partners = np.concatenate(partner) if paired else None
        return cls(
            np.concatenate(coalitions), np.repeat(folds, n), whole, partners
        ), np.concatenate(values)

    def take(self, rows: BoolArray | IntArray) -> Self:
        return replace(self, coalitions=self.coalitions[rows], fold=self.fold[rows], partner=None)

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
        """(n,) weights for fitting: the share of a draw of size s in the variance of Δ, c_s/n_s² ∝
        1/σ_s², mean 1."""
        n = np.bincount(self.sizes[self.drawn], minlength=self.d + 1)
        present = np.flatnonzero(n)
        nearest = present[np.abs(np.arange(self.d + 1)[:, None] - present).argmin(axis=1)]
        weights = ((need(self.d)[nearest] / n[nearest]) ** 2)[self.sizes]
        return np.asarray(weights / weights.mean())

    @cached_property
    def groups(self) -> list[IntArray]:
        """Rows of the sizes known in full, then of every group of folds."""
        group = np.where(self.fold >= 0, self.group_of(self.fold), -1)
        return [np.flatnonzero(group == g) for g in range(-1, int(group.max()) + 1)]

    def group_of(self, fold: IntArray) -> IntArray:
        """The group that is left out of the model of a fold: the fold itself, but five groups of
        folds in many rows."""
        return fold if len(self.coalitions) <= FEW_ROWS else fold % FEW_GROUPS


@dataclass(frozen=True)
class Fit:
    """A model of v for every group of folds, fitted without it."""

    sample: Sample
    y: FloatArray  # (n,) the values of one output
    delta: FloatArray  # (groups, d, d) exact Δ of each model
    predicted: FloatArray  # (groups, n) its values of all coalitions

    @cached_property
    def remainder(self) -> FloatArray:
        """(m,) what the models leave of the values in the folds."""
        sample = self.sample
        rows = self.sample.drawn
        return np.asarray(self.y[rows] - self.predicted[sample.group_of(sample.fold[rows]), rows])

    def deltas(self) -> FloatArray:
        """(c, d, d) Δ(g) + Δ(v − g), the remainder taken from each fold and from the sizes known in
        full."""
        sample = self.sample
        deltas = []
        for c, g in enumerate(sample.group_of(np.arange(sample.folds))):
            seen = (sample.fold == c) | (sample.fold < 0)
            deltas.append(
                self.delta[g] + _means(sample.take(seen), (self.y - self.predicted[g])[seen])
            )
        return np.stack(deltas)

    def stretch(self) -> float:
        """By how much the folds are further from the truth than their spread tells, 1 to √1.5.

        What a model owes to chance in its fold c' shows in the remainders of c, and the other way
        round: the two are correlated. Of the squared remainders of unseen draws, out = a + u, the
        part u counts twice in the variance of the mean. It is (out − in)/2 with those of draws that
        the model has seen, to first order in terms for each draw.
        """
        sample = self.sample
        squares = (self.y - self.predicted)[:, sample.drawn] ** 2 * sample.weights[sample.drawn]
        unseen = float(
            squares[sample.group_of(sample.fold[sample.drawn]), np.arange(len(sample.drawn))].sum()
        )
        seen = (float(squares.sum()) - unseen) / max(len(squares) - 1, 1)
        return float(np.sqrt(1.5 - 0.5 * min(seen / unseen, 1.0))) if unseen > 0 else 1.0

    def errors(self) -> FloatArray:
        """(d, d) standard errors: Var Δ_j(i) = Var⁺_j(i)/n_j + Var⁻_{j−1}(i)/n_{j−1}, none for
        whole sizes.

        Folds count alike, whatever their draws n_cs, so 1/n_s is Σ_c 1/(n_cs C²). Each feature
        borrows a few draws from the average feature: with few draws it may happen to be in none of
        them, which is no certainty.
        """
        sample = self.sample
        remainder = self.remainder
        part = sample.take(sample.drawn)
        first = _sums(part, remainder)
        squares = _sums(part, remainder**2)
        d = sample.d
        s = np.arange(sample.d + 1)
        n = first[2]
        by_fold = np.stack(
            [np.bincount(part.sizes[part.fold == c], minlength=d + 1) for c in range(part.folds)]
        )
        variances = []
        with np.errstate(divide="ignore", invalid="ignore"):
            per_draw = (1 / by_fold).mean(axis=0) / part.folds * n / (n - 1)
            average = (squares[0] + squares[1])[:, :1] / n[:, None]
            for side, share in enumerate((np.maximum(s, 1) / d, np.maximum(d - s, 1) / d)):
                mean = first[side] / n[:, None]
                square = (squares[side] + BORROWED * share[:, None] * average) / (n + BORROWED)[
                    :, None
                ]
                variance = (square - mean**2) * (per_draw / share**2)[:, None]
                variances.append(np.where(sample.whole[:, None], 0.0, variance))
            variance = variances[0][1:] + variances[1][:-1]
            # The two sizes in the middle are each other's complements.
            if d % 2 and sample.partner is not None:
                j = (d + 1) // 2
                whole = np.zeros(len(self.y))
                whole[sample.drawn] = remainder
                together = _sums(part, (whole * whole[sample.partner])[sample.drawn])[0]
                covariance = together[j] / n[j] - first[0][j] * first[1][j - 1] / n[j] ** 2
                variance[j - 1] -= np.where(
                    sample.whole[j], 0.0, 2 * covariance * per_draw[j] * (d / j) ** 2
                )
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


Crossfit = Callable[[Sample, FloatArray], Fit]
"""Models of one output: coalitions and their values (n,) → Fit."""


def table_of(
    sample: Sample,
    values: FloatArray,
    crossfit: Crossfit,
    evaluations: int,
    reason: str,
    draws: frozenset[str],
) -> Contributions:
    """Δ(g) + Δ(v − g), and its errors."""
    if sample.folds == 0:
        reason = f"exact: all {2**sample.d:,} coalitions evaluated"
        return Contributions.known(_means(sample, values), evaluations, reason)
    fits = [crossfit(sample, y) for y in values.reshape(len(values), -1).T]
    mean = np.stack([fit.deltas() for fit in fits], axis=-1)
    stretch = np.array([fit.stretch() for fit in fits])
    mean = mean.mean(axis=0) + stretch * (mean - mean.mean(axis=0))
    errors = stretch * np.stack([fit.errors() for fit in fits], axis=-1)
    exact = _means(sample.take(sample.fold < 0), values[sample.fold < 0])
    mean = mean.reshape(sample.folds, *exact.shape)
    errors = errors.reshape(exact.shape)
    counts = np.stack([_informing(sample) / sample.folds] * sample.folds)
    return Contributions.sampled(
        Chains(counts, mean, np.zeros_like(mean)), exact, evaluations, reason, draws, errors
    )


def spread_by_size(sample: Sample, values: FloatArray, crossfit: Crossfit) -> FloatArray:
    """(d + 1,) standard deviation of the remainder, smoothed over sizes, with a floor; outputs
    count alike."""
    s = np.arange(sample.d + 1)
    near = np.exp(
        -0.5 * ((s[:, None] - sample.sizes[sample.drawn]) / max(1.0, WINDOW * sample.d)) ** 2
    )
    near /= near.sum(axis=1, keepdims=True)
    total = np.full(sample.d + 1, 1e-300)
    for y in values.reshape(len(values), -1).T:
        variance = near @ crossfit(sample, y).remainder ** 2
        total += (variance + FLOOR * variance.mean()) / max(variance.mean(), 1e-300)
    return np.asarray(np.sqrt(total))


def _means(sample: Sample, values: FloatArray) -> FloatArray:
    """(d, d[, k]) mean{v(S): i ∈ S, |S| = j} − mean{v(S): i ∉ S, |S| = j − 1}, NaN where a size is
    missing.

    Sums are divided by the expected number of coalitions with (without) i, n_s s/d, not by the
    number found: so the mean has no bias, however few the draws, and for a whole size the two are
    the same.
    """
    inside, outside, n = _sums(sample, values)
    d = sample.d
    s = np.arange(sample.d + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        plus, minus = (with_outputs(d / (k * n), inside) for k in (s, d - s))
        return np.asarray(inside[1:] * plus[1:] - outside[:-1] * minus[:-1])


def _sums(sample: Sample, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(d + 1, d[, k]) Σ v(S) over i ∈ S and over i ∉ S by size, and (d + 1,) the number of
    coalitions."""
    n = np.bincount(sample.sizes, minlength=sample.d + 1)
    by_size = np.split(np.argsort(sample.sizes, kind="stable"), n.cumsum()[:-1])
    total = np.stack([values[rows].sum(axis=0) for rows in by_size])
    masks = (sample.coalitions[rows].astype(np.float64) for rows in by_size)
    inside = np.stack(
        [np.einsum("ni,n...->i...", mask, values[rows]) for mask, rows in zip(masks, by_size)]
    )
    return inside, total[:, None] - inside, n.astype(np.float64)


def _informing(sample: Sample) -> FloatArray:
    """(d, d) draws behind a cell: half the harmonic mean of those with i at size j and without i at
    j − 1.

    The folds share them equally, so that uniform weights add up to game([d]) − game(∅) exactly.
    """
    d = sample.d
    s = np.arange(sample.d + 1)
    n = np.bincount(sample.sizes[sample.drawn], minlength=d + 1)
    with np.errstate(divide="ignore"):
        inside, outside = (
            np.where(sample.whole, 0, d / (k * n)) for k in (np.maximum(s, 1), np.maximum(d - s, 1))
        )
    both = inside[1:] + outside[:-1]
    return np.repeat(1 / np.where(both > 0, both, 1)[:, None], d, axis=1)
