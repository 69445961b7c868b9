"""Coalitions drawn size by size, and Δ from the means of their values.

Δ is a difference of two means over coalitions of one size,

    Δ_j(x_i) = mean{v(S): i ∈ S, |S| = j} − mean{v(S): i ∉ S, |S| = j − 1},

so every evaluation informs all d features. A model g of v whose Δ is known takes most of the
variance away: Δ(v) = Δ(g) + Δ(v − g), and only the remainder v − g is sampled. The draws are
divided into folds; for each fold, v − g uses a model g fitted to the other folds, so g and the
draws are independent and there is no bias.

`stratified` is built from these functions; the models g are those of `sparse_fourier`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb
from typing import NamedTuple, Self

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap.contributions import Chains, Contributions, broadcast_cells

# The numbers below were chosen on the games of `TABLE` in benchmarks/samplers.py. Each comment says
# what half and double do to the error of Δ, root mean square over cells and six seeds, with 100
# evaluations for each player. Games are a network's (16 players), one of third order (30) and a
# one-sided one (20); of blocks of tanh (60), two or three seeds. Differences below a tenth may be
# chance.

# Three folds are needed, to fit, to stop the fit, and to read off. With fewer there is no estimate;
# twice as many would rule out the smallest budgets.
FEWEST_FOLDS = 3
# More folds leave more draws to each model, and fewer of each size to a fold; the time grows with
# their number. At half the error is 5 % smaller to 15 % larger, in half the time with few draws; at
# double 4 to 35 % larger.
MOST_FOLDS = 10
# Where draws come to this share of a size's coalitions, all are taken instead: a size without
# error, paid for by the others. At half the error is 82 % larger in third order, and the same in
# the other games; at double it is the same, but that of φ 29 % larger in the one-sided game.
WORTH_ALL = 0.6
# The pilot is one draw in so many: a larger one knows the spread better, and leaves less to be
# shared out by it. At half of this number the error is 7 % smaller to 21 % larger, at double 7 %
# smaller to 34 % larger.
PILOT = 4
# From more than FEW_ROWS coalitions on, only this many models are fitted, whatever the number of
# folds: a model sees fewer draws, and the time falls. At half (3) the error is 15 to 76 % larger in
# half the time, at double 6 to 34 % smaller in 2.2 times the time.
FEW_GROUPS = 5
# See FEW_GROUPS. At half the error is 0 to 6 % larger, in half the time, where there are 1,250 to
# 2,500 coalitions; at double 34 % smaller, in 2.2 times the time, where there are 2,500 to 5,000.
FEW_ROWS = 2_500
# Draws come without complements where the variance is below this share of that with complements. At
# half the error of the one-sided game is 29 % larger, others stay the same; at double that of third
# order is 54 % smaller and of the network 8 %, in 1.4 to 1.7 times the time, and two games of trees
# lose 1 and 9 %.
ONE_SIDED = 0.75
# Draws of the average feature that enter the error of every feature. Estimates do not depend on it,
# and standard errors do with few draws: in third order with 400 evaluations, 2.5 % of the cells are
# beyond 1.96 errors at half, 1.9 % as it is, and 1.4 % at double.
BORROWED = 3
# The spread by size is at least this share of the mean variance, in case a size looks quiet by
# chance. At half the error is 4 to 7 % smaller, at double 3 % smaller to 25 % larger.
FLOOR = 0.05
# The spread is smoothed over this share of d, or one size at the least: more steadies it, and blurs
# what is one-sided. At half the error is 0 to 8 % smaller, at double 8 % smaller to 29 % larger.
WINDOW = 0.05


@dataclass(frozen=True)
class SamplingPlan:
    """How many coalitions of each size are to be evaluated."""

    # (d + 1,) coalitions drawn of each size. With complements, these are drawn of sizes up to d/2,
    # and each brings its complement.
    draws: IntArray
    # (d + 1,) whether all coalitions of a size are evaluated
    is_whole: BoolArray
    # Whether draws come with their complements.
    has_complements: bool = True

    @classmethod
    def build(cls, d: int, budget: int) -> Self:
        """Distribute `budget` evaluations over the coalition sizes, as many to s as to d − s.

        Sizes 0, 1, d − 1 and d are always enumerated. The variance of Δ is Σ_s σ_s² d (1/s +
        1/(d−s)) / n_s, so the others get shares n_s ∝ √(1/s + 1/(d−s)); a size whose share comes
        near the number of its coalitions is enumerated as well, which leaves no error.
        """
        # Counts are of pairs of a coalition and its complement, so sizes up to d/2 are enough.
        # In the middle, two coalitions of one size make a pair.
        sizes = np.arange(d // 2 + 1)
        per_pair = 1 + (2 * sizes == d)
        n_pairs = np.array([min(comb(d, s), 2**62) for s in sizes.tolist()]) / per_pair
        size_weights = size_errors(d)[sizes] / per_pair

        is_whole = sizes <= 1
        while not is_whole.all():
            left = budget // 2 - n_pairs[is_whole].sum()
            share = left * np.where(is_whole, 0, size_weights) / size_weights[~is_whole].sum()
            covered = np.where(is_whole, 0, share / n_pairs)
            s = int(covered.argmax())
            n_other_sizes = (~is_whole).sum() - 1
            if covered[s] < WORTH_ALL or n_pairs[s] > left - FEWEST_FOLDS * n_other_sizes:
                break
            is_whole[s] = True

        draws = np.zeros(d + 1, dtype=np.intp)
        if not is_whole.all():
            counts = np.maximum(np.floor(share[~is_whole]).astype(np.intp), FEWEST_FOLDS)
            while counts.sum() > int(left):
                counts[counts.argmax()] -= 1
            draws[sizes[~is_whole]] = counts
        mirrored = is_whole[: (d + 1) // 2][::-1]
        return cls(draws, np.concatenate([is_whole, mirrored]))

    @property
    def d(self) -> int:
        """The number of players d."""
        return len(self.draws) - 1

    @property
    def n_folds(self) -> int:
        """The number of folds: the fewest draws of any drawn size, but at most ten."""
        positive = self.draws[self.draws > 0]
        return int(min(MOST_FOLDS, positive.min())) if len(positive) else 0

    def pilot_plan(self) -> Self:
        """Return the plan of the first quarter of the draws, or of all if a quarter is too few.

        A quarter is enough if it has ten draws of every size that is drawn at all.
        """
        quarter = self.draws[self.draws > 0] // PILOT
        if len(quarter) == 0 or quarter.min() < MOST_FOLDS:
            return self
        return replace(self, draws=self.draws // PILOT)

    def remaining(self, pilot: Self, spread: FloatArray) -> Self:
        """Return the plan for the draws after the pilot: more draws for sizes with a larger spread.

        `pilot` is the plan already drawn, and `spread` (d + 1,) is σ. In total, n_s ∝ σ_s (1/s +
        1/(d−s)). The best for Δ as a whole would be the root of the last factor. Without the root,
        the small and large sizes, to which most families of weights give much weight, get more
        draws, with hardly a loss for Δ. With complements, s and d − s get as many draws; if that
        would waste many of them, because the spread is on one side, draws come without complements.
        """
        s = np.arange(self.d + 1)
        cost = size_errors(self.d) ** 2
        is_drawn = ~self.is_whole
        mirrored_spread = np.sqrt((spread**2 + spread[::-1] ** 2) / 2)

        def variance(n: FloatArray) -> float:
            """Return the variance of Δ, up to a factor, if size s gets draws ∝ ``n[s]``."""
            return float(np.sum((cost * spread**2 / n)[is_drawn]) * np.sum(n[is_drawn]))

        one_by_one = cost * spread
        in_pairs = cost * mirrored_spread
        has_complements = variance(one_by_one) >= ONE_SIDED * variance(in_pairs)
        if has_complements:
            total = self.draws.sum()
            per_pair = 1 + (2 * s == self.d)
            wanted = in_pairs * is_drawn * (2 * s <= self.d) / per_pair
            done = pilot.draws
        else:
            total = 2 * self.draws.sum()
            wanted = one_by_one * is_drawn
            done = pilot.draws + pilot.draws[::-1]
        counts = np.maximum(total * wanted / wanted.sum() - done, 0) * (wanted > 0)
        counts *= (total - done.sum()) / counts.sum()
        draws = np.floor(counts).astype(np.intp)
        return replace(self, draws=draws, has_complements=has_complements)

    def whole_size_coalitions(self) -> BoolArray:
        """Return all coalitions (m, d) of the sizes that are enumerated.

        The second half are the complements of the first half.
        """
        small = [s for s in np.flatnonzero(self.is_whole).tolist() if 2 * s <= self.d]
        # In the middle, those with player 0 are the complements of those without.
        member_sets = [
            members
            for s in small
            for members in combinations(range(self.d), s)
            if 2 * s < self.d or 0 in members
        ]
        coalitions = np.zeros((len(member_sets), self.d), dtype=np.bool_)
        for coalition, members in zip(coalitions, member_sets, strict=True):
            coalition[list(members)] = True
        return np.concatenate([coalitions, ~coalitions])

    def coalitions(self, rng: np.random.Generator, n_folds: int) -> Iterator[BoolArray]:
        """Draw coalitions uniformly within each size; yield an array (m, d) for each fold in turn.

        If the plan has complements, these are the second half of each array; they free symmetric
        weights from the error of all interactions of even order.
        """
        s = np.arange(self.d + 1)
        for fold in range(n_folds):
            # Draws that do not divide evenly go to different folds than those of the next size.
            sizes = np.repeat(s, (self.draws + (fold + s) % n_folds) // n_folds)
            rank = rng.random((len(sizes), self.d)).argsort(axis=1).argsort(axis=1)
            drawn = rank < sizes[:, None]
            yield np.concatenate([drawn, ~drawn]) if self.has_complements else drawn


def size_errors(d: int) -> FloatArray:
    """Return (d + 1,) factors √(1/s + 1/(d−s)) by which the error of Δ depends on the size s."""
    s = np.arange(d + 1)
    return np.asarray(np.sqrt(1 / np.maximum(s, 1) + 1 / np.maximum(d - s, 1)))


def minimum_budget(d: int) -> int:
    """Return the fewest evaluations with which every Δ_j(x_i) and its error can be estimated."""
    return int(min(2**d, 2 * d + 2 + 2 * FEWEST_FOLDS * max(d // 2 - 1, 0)))


class GameCall(NamedTuple):
    """One call of the game: the evaluated coalitions, their values, and their fold."""

    fold: int  # −1 for the coalitions of enumerated sizes
    coalitions: BoolArray  # (m, d)
    values: FloatArray  # (m[, k])


@dataclass(frozen=True)
class StratifiedSample:
    """Coalitions, drawn size by size or enumerated, and the fold that each belongs to."""

    coalitions: BoolArray  # (n, d)
    fold: IntArray  # (n,), −1 for the coalitions of enumerated sizes
    is_whole: BoolArray  # (d + 1,) whether a size is enumerated
    complement: IntArray | None = None  # (n,) the rows of the complements, if all have one

    @classmethod
    def from_calls(
        cls, calls: Sequence[GameCall], is_whole: BoolArray, has_complements: bool
    ) -> tuple[Self, FloatArray]:
        """Return the coalitions of all calls of the game as one sample, with their values (n[, k]).

        `is_whole` (d + 1,) is true for enumerated sizes. With complements, the second half of each
        call are the complements of the first half.
        """
        folds, coalitions, values = zip(*calls, strict=True)
        lengths = [len(of_call) for of_call in coalitions]
        complement = None
        if has_complements:
            rows_by_call = np.split(np.arange(sum(lengths)), np.cumsum(lengths)[:-1])
            complement = np.concatenate([np.roll(rows, len(rows) // 2) for rows in rows_by_call])
        fold = np.repeat(folds, lengths)
        sample = cls(np.concatenate(coalitions), fold, is_whole, complement)
        return sample, np.concatenate(values)

    def take(self, rows: BoolArray | IntArray) -> Self:
        """Return a sample of the given rows only, without the indices of complements."""
        return replace(
            self, coalitions=self.coalitions[rows], fold=self.fold[rows], complement=None
        )

    @property
    def d(self) -> int:
        """The number of players d."""
        return int(self.coalitions.shape[1])

    @property
    def n_folds(self) -> int:
        """The number of folds; 0 if all coalitions are of enumerated sizes."""
        return int(self.fold.max()) + 1

    @cached_property
    def drawn_rows(self) -> IntArray:
        """The indices (m,) of the rows that belong to a fold, not to an enumerated size."""
        return np.flatnonzero(self.fold >= 0)

    @cached_property
    def sizes(self) -> IntArray:
        """The sizes (n,) of the coalitions."""
        return np.asarray(self.coalitions.sum(axis=1))

    @cached_property
    def weights(self) -> FloatArray:
        """The weights (n,), with mean 1, that the coalitions have when a model is fitted.

        A weight is the share of a draw of size s in the variance of Δ, c_s/n_s² ∝ 1/σ_s².
        """
        n = np.bincount(self.sizes[self.drawn_rows], minlength=self.d + 1)
        # Sizes without draws get the weight of the nearest one that has some.
        present = np.flatnonzero(n)
        nearest = present[np.abs(np.arange(self.d + 1)[:, None] - present).argmin(axis=1)]
        weights = ((size_errors(self.d)[nearest] / n[nearest]) ** 2)[self.sizes]
        return np.asarray(weights / weights.mean())

    @cached_property
    def groups(self) -> list[IntArray]:
        """Arrays of row indices: one for the enumerated sizes, then one for each group of folds."""
        group = np.where(self.fold >= 0, self.group_of_fold(self.fold), -1)
        return [np.flatnonzero(group == g) for g in range(-1, int(group.max()) + 1)]

    def group_of_fold(self, fold: IntArray) -> IntArray:
        """Return the index of the group that each of the given folds belongs to.

        The model for a fold is fitted without the draws of its group. Each fold is a group of its
        own; if there are many rows, the folds form five groups.
        """
        return fold if len(self.coalitions) <= FEW_ROWS else fold % FEW_GROUPS


@dataclass(frozen=True)
class CrossFit:
    """Models of a game, one for each group of folds, fitted without the group's draws."""

    sample: StratifiedSample
    y: FloatArray  # (n,) the values of one output
    delta: FloatArray  # (groups, d, d) exact Δ of each model
    predictions: FloatArray  # (groups, n) values of each model for all coalitions

    @cached_property
    def remainder(self) -> FloatArray:
        """The residuals (m,) of the draws, each from the model fitted without that draw's group."""
        rows = self.sample.drawn_rows
        group = self.sample.group_of_fold(self.sample.fold[rows])
        return np.asarray(self.y[rows] - self.predictions[group, rows])

    def delta_by_fold(self) -> FloatArray:
        """Return Δ estimated from each fold, (c, d, d): Δ of its model plus Δ of the residuals.

        With the model g, this is Δ(g) + Δ(v − g). The residuals v − g come from the draws of the
        fold and from the enumerated sizes.
        """
        sample = self.sample
        deltas = []
        for fold, group in enumerate(sample.group_of_fold(np.arange(sample.n_folds))):
            rows = (sample.fold == fold) | (sample.fold < 0)
            remainder = (self.y - self.predictions[group])[rows]
            deltas.append(self.delta[group] + delta_from_means(sample.take(rows), remainder))
        return np.stack(deltas)

    def inflation(self) -> float:
        """Return by which factor, 1 to √1.5, the differences between folds understate the error.

        The model for a fold c is fitted to fold c', and the other way round, so the remainders of
        the two folds are correlated. Of the squared remainders of unseen draws, out = a + u, the
        part u counts twice in the variance of the mean. To first order in the number of terms per
        draw, u = (out − in)/2, where in are the squared remainders of draws to which the model was
        fitted.
        """
        sample = self.sample
        rows = sample.drawn_rows
        squares = (self.y - self.predictions)[:, rows] ** 2 * sample.weights[rows]  # (groups, m)
        own_group = sample.group_of_fold(sample.fold[rows])
        unseen = float(squares[own_group, np.arange(len(rows))].sum())
        seen = (float(squares.sum()) - unseen) / max(len(squares) - 1, 1)
        if unseen > 0:
            return float(np.sqrt(1.5 - 0.5 * min(seen / unseen, 1.0)))
        return 1.0

    def standard_errors(self) -> FloatArray:
        """Return the standard errors (d, d) of Δ.

        Var Δ_j(i) = Var⁺_j(i)/n_j + Var⁻_{j−1}(i)/n_{j−1}, where + and − are the draws with and
        without i; enumerated sizes have no error. The C folds count equally, whatever their numbers
        of draws n_cs, so 1/n_s is Σ_c 1/(n_cs C²). The variance of each feature is shrunk towards
        that of the average feature, as if by a few extra draws, so that a feature that no draw
        contains does not get an error of zero.
        """
        sample = self.sample
        remainder = self.remainder
        drawn = sample.take(sample.drawn_rows)
        d = sample.d
        s = np.arange(d + 1)
        sums_inside, sums_outside, n = _sums_by_size(drawn, remainder)
        squares_inside, squares_outside, _ = _sums_by_size(drawn, remainder**2)
        n_by_fold = np.stack(
            [
                np.bincount(drawn.sizes[drawn.fold == fold], minlength=d + 1)
                for fold in range(drawn.n_folds)
            ]
        )
        is_whole = sample.is_whole[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            per_draw = (1 / n_by_fold).mean(axis=0) / drawn.n_folds * n / (n - 1)
            average_square = (squares_inside + squares_outside)[:, :1] / n[:, None]

            def variance_of_mean(
                sums: FloatArray, squares: FloatArray, share: FloatArray
            ) -> FloatArray:
                """Return the variances (d + 1, d) of means over the fraction `share` of draws."""
                mean = sums / n[:, None]
                borrowed = BORROWED * share[:, None] * average_square
                mean_square = (squares + borrowed) / (n + BORROWED)[:, None]
                variance = (mean_square - mean**2) * (per_draw / share**2)[:, None]
                return np.where(is_whole, 0.0, variance)

            inside = variance_of_mean(sums_inside, squares_inside, np.maximum(s, 1) / d)
            outside = variance_of_mean(sums_outside, squares_outside, np.maximum(d - s, 1) / d)
            variance = inside[1:] + outside[:-1]

            # The two sizes in the middle are each other's complements.
            if d % 2 and sample.complement is not None:
                j = (d + 1) // 2
                by_row = np.zeros(len(self.y))
                by_row[sample.drawn_rows] = remainder
                product = (by_row * by_row[sample.complement])[sample.drawn_rows]
                product_inside = _sums_by_size(drawn, product)[0]
                covariance = (
                    product_inside[j] / n[j] - sums_inside[j] * sums_outside[j - 1] / n[j] ** 2
                )
                shared = 2 * covariance * per_draw[j] * (d / j) ** 2
                variance[j - 1] -= np.where(sample.is_whole[j], 0.0, shared)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


# Fits models of one output, given coalitions and their values (n,).
CrossFitter = Callable[[StratifiedSample, FloatArray], CrossFit]


def estimate_contributions(
    sample: StratifiedSample,
    values: FloatArray,
    fit_models: CrossFitter,
    evaluations: int,
    reason: str,
    draws: frozenset[str],
) -> Contributions:
    """Return Δ of a sampled game, and its errors, with fitted models as control variates.

    With the models g, Δ(v) = Δ(g) + Δ(v − g). `reason` says why sampling stopped; it is stored with
    `evaluations` and `draws`, the fingerprint of the random stream.
    """
    if sample.n_folds == 0:
        reason = f"exact: all {2**sample.d:,} coalitions evaluated"
        return Contributions.from_exact(delta_from_means(sample, values), evaluations, reason)
    fits = [fit_models(sample, y) for y in values.reshape(len(values), -1).T]
    by_fold = np.stack([fit.delta_by_fold() for fit in fits], axis=-1)  # (c, d, d, k)

    # The folds are spread until their differences show the error of their mean.
    inflation = np.array([fit.inflation() for fit in fits])
    by_fold = by_fold.mean(axis=0) + inflation * (by_fold - by_fold.mean(axis=0))
    errors = inflation * np.stack([fit.standard_errors() for fit in fits], axis=-1)

    from_whole_sizes = sample.fold < 0
    exact = delta_from_means(sample.take(from_whole_sizes), values[from_whole_sizes])
    mean = by_fold.reshape(sample.n_folds, *exact.shape)
    counts = np.stack([_informative_draws(sample) / sample.n_folds] * sample.n_folds)
    return Contributions.from_chains(
        Chains(counts, mean, np.zeros_like(mean)),
        exact,
        evaluations,
        reason,
        draws,
        errors.reshape(exact.shape),
    )


def spread_by_size(
    sample: StratifiedSample, values: FloatArray, fit_models: CrossFitter
) -> FloatArray:
    """Return the standard deviation (d + 1,) of the models' residuals, by coalition size.

    It is smoothed over sizes and has a lower bound. All outputs of the values (n[, k]) count
    equally.
    """
    s = np.arange(sample.d + 1)
    distance = s[:, None] - sample.sizes[sample.drawn_rows]  # (d + 1, m)
    kernel = np.exp(-0.5 * (distance / max(1.0, WINDOW * sample.d)) ** 2)
    kernel /= kernel.sum(axis=1, keepdims=True)
    # Not quite 0, so that shares can be computed if all residuals are 0.
    total = np.full(sample.d + 1, 1e-300)
    for y in values.reshape(len(values), -1).T:
        variance = kernel @ fit_models(sample, y).remainder ** 2
        total += (variance + FLOOR * variance.mean()) / max(variance.mean(), 1e-300)
    return np.asarray(np.sqrt(total))


def delta_from_means(sample: StratifiedSample, values: FloatArray) -> FloatArray:
    """Return Δ (d, d[, k]) as differences between mean values with and without each player.

    Δ_j(x_i) = mean{v(S): i ∈ S, |S| = j} − mean{v(S): i ∉ S, |S| = j − 1}; it is NaN where a size
    is missing. Sums are divided by the expected number of coalitions with
    (without) i, n_s s/d, not by their actual number: so the mean has no bias, however few the
    draws, and for an enumerated size the two are the same.
    """
    inside, outside, n = _sums_by_size(sample, values)
    d = sample.d
    s = np.arange(d + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        per_inside = broadcast_cells(d / (s * n), inside)
        per_outside = broadcast_cells(d / ((d - s) * n), inside)
        return np.asarray(inside[1:] * per_inside[1:] - outside[:-1] * per_outside[:-1])


def _sums_by_size(
    sample: StratifiedSample, values: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return, by size, the sums of v(S) with and without each player, and the number of sets.

    Their shapes are (d + 1, d[, k]), (d + 1, d[, k]) and (d + 1,).
    """
    n = np.bincount(sample.sizes, minlength=sample.d + 1)
    rows_by_size = np.split(np.argsort(sample.sizes, kind="stable"), n.cumsum()[:-1])
    total = np.stack([values[rows].sum(axis=0) for rows in rows_by_size])
    # Only one size at a time is turned into numbers, as there may be many coalitions.
    inside = np.stack(
        [
            np.einsum("ni,n...->i...", sample.coalitions[rows].astype(np.float64), values[rows])
            for rows in rows_by_size
        ]
    )
    return inside, total[:, None] - inside, n.astype(np.float64)


def _informative_draws(sample: StratifiedSample) -> FloatArray:
    """Return the effective number of draws (d, d) from which each Δ_j(x_i) is estimated.

    It is half the harmonic mean of the draws with i at size j and those without i at size j − 1. It
    is divided equally among the folds, so that φ under uniform weights adds up to v([d]) − v(∅)
    exactly.
    """
    d = sample.d
    s = np.arange(d + 1)
    n = np.bincount(sample.sizes[sample.drawn_rows], minlength=d + 1)
    with np.errstate(divide="ignore"):
        per_inside = np.where(sample.is_whole, 0, d / (np.maximum(s, 1) * n))
        per_outside = np.where(sample.is_whole, 0, d / (np.maximum(d - s, 1) * n))
    both = per_inside[1:] + per_outside[:-1]
    return np.repeat(1 / np.where(both > 0, both, 1)[:, None], d, axis=1)
