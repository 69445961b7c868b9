"""How many coalitions of each size are evaluated, and which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, IntArray, positive_integer

FEWEST_FOLDS, MOST_FOLDS = 3, 10
WORTH_ALL = 0.6
PILOT = 4


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
        needed = need(d)
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

    def pilot(self) -> Plan:
        """The first quarter of the draws, if it has ten of every size; else all of them."""
        few = self.counts[~self.whole] // PILOT
        return self if len(few) == 0 or few.min() < MOST_FOLDS else self.drawing(self.counts // PILOT)

    def drawing(self, counts: IntArray) -> Plan:
        """A plan with other numbers of draws."""
        return replace(self, counts=np.where(self.whole, self.counts, counts))

    def rest(self, pilot: Plan, spread: FloatArray) -> Plan:
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
        """How many players there are."""
        return int(len(self.counts) - 1)

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
            if not paired:
                yield _random(counts, rng)
                continue
            pairs = np.where(2 * s < d - 1, np.minimum(counts, counts[::-1]), 0)
            pairs[s == d / 2] = counts[s == d / 2] // 2
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
    least = least_budget(d)
    if budget < least:
        raise ValueError(
            f"A budget of {budget:,} evaluations is too small: at d = {d} {who} needs at least {least:,}, all "
            "coalitions of sizes 0, 1, d − 1 and d and three of every other size."
        )
    return budget


def least_budget(d: int) -> int:
    """The fewest evaluations with which every Δ_j(x_i) and its error can be estimated."""
    return int(min(2**d, 2 * d + 2 + FEWEST_FOLDS * max(d - 3, 0)))
