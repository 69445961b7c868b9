"""When to stop sampling: rules that look at the progress and answer with a reason, or with None.

Rules are joined with ``|`` (stop when either is content) and ``&`` (when both are):

    stop = standard_error(0.01) | evaluations(100_000)

A rule of your own is a function ``Progress → str | None``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import gcd, inf
from typing import Any

import numpy as np

from weightedshap._checks import FloatArray, number_above, positive_integer
from weightedshap.contributions import Chains, Contributions, with_outputs
from weightedshap.weights import WeightFamily

__all__ = [
    "Progress",
    "Rule",
    "evaluations",
    "gelman_rubin",
    "rhat",
    "seconds",
    "standard_error",
    "visited",
]


@dataclass(frozen=True)
class Progress:
    """What a stopping rule may look at."""

    chains: Chains  # the independent chains of draws
    ends: FloatArray  # (2, d[, k]) the exact Δ_1 and Δ_d
    evaluations: int  # coalitions evaluated so far
    seconds: float  # time spent so far

    @cached_property
    def contributions(self) -> Contributions:
        """Δ as it stands."""
        exact = np.full(self.chains.mean.shape[1:], np.nan)
        exact[[0, -1]] = self.ends
        return Contributions.sampled(self.chains, exact, self.evaluations)


@dataclass(frozen=True)
class Rule:
    """A stopping rule that can be joined with others.

    Attributes
    ----------
    decide : Progress → reason in words, or None to go on
    budget : evaluations that must not be exceeded, or None
    chains : how many chains the rule wants to see, or None
    every : the rule is asked when the number of orders walked is a multiple of this; 0 where the
        budget alone decides

    Examples
    --------
    >>> (standard_error(0.01) | evaluations(5_000)).budget
    5000
    """

    decide: Callable[[Progress], str | None]
    budget: int | None = None
    chains: int | None = None
    every: int = 1

    def __call__(self, progress: Progress) -> str | None:
        return self.decide(progress)

    def reason(self, progress: Progress, cost: int) -> str | None:
        """Why to stop: what the rule says, or that the budget has no room for one more draw."""
        if (reason := self(progress)) or self.left(progress.evaluations) >= cost:
            return reason
        return (
            f"budget of {self.budget:,} evaluations used ({progress.evaluations:,}; one more draw"
            f" costs {cost:,})"
        )

    def left(self, spent: int) -> float:
        """Evaluations that the budget still allows."""
        return inf if self.budget is None else self.budget - spent

    def __or__(self, other: Any) -> Rule:
        other = as_rule(other)
        return self._joined(other, lambda progress: self(progress) or other(progress), min)

    def __and__(self, other: Any) -> Rule:
        other = as_rule(other)
        return self._joined(other, lambda progress: _both(self(progress), other(progress)), max)

    __ror__ = __or__
    __rand__ = __and__

    def _joined(
        self, other: Rule, decide: Callable[[Progress], str | None], pick: Callable[..., float]
    ) -> Rule:
        budget = pick(self.left(0), other.left(0))
        chains = max(self.chains or 0, other.chains or 0)
        return Rule(
            decide,
            None if budget == inf else int(budget),
            chains or None,
            gcd(self.every, other.every),
        )


def as_rule(rule: Any) -> Rule:
    """A rule from a rule or from a function Progress → reason or None."""
    if isinstance(rule, Rule):
        return rule
    if callable(rule):
        return Rule(rule)
    raise TypeError(
        f"`stop` must be a stopping rule or a function of the progress; got {type(rule).__name__}."
    )


def visited(every: int = 1) -> Rule:
    """Stop when every cell Δ_j(i) has a draw, so that no weight is given up; join it to another
    rule by ``&``."""

    def decide(progress: Progress) -> str | None:
        counts = progress.chains.counts.sum(axis=0)[1:-1]  # Δ_1 and Δ_d are exact
        return "every cell visited" if (counts > 0).all() else None

    return Rule(decide, every=positive_integer("every", every))


def gelman_rubin(
    threshold: float = 1.005, chains: int = 10, pooled: bool = False, every: int = 1
) -> Rule:
    """Stop when the largest R̂ over all cells Δ_j(i) is below `threshold`: the rule of the paper.

    R̂ − 1 of independent draws falls with their number, whatever the error: `standard_error` tells
    how good they are.

    Parameters
    ----------
    pooled : look at each feature's draws of all sizes together, as the authors' program does
    every : look only when the number of orders walked so far is a multiple of this (the authors:
        100)
    """
    threshold = number_above("threshold", threshold, 1)
    if positive_integer("chains", chains) < 2:
        raise ValueError("Gelman–Rubin compares chains: it needs at least two.")
    every = positive_integer("every", every)

    def decide(progress: Progress) -> str | None:
        if round(progress.chains.counts[:, :, 0].sum()) % every:
            return None
        inner = rhat(progress.chains.pooled(axis=1)) if pooled else rhat(progress.chains)[1:-1]
        largest = float(inner.max()) if inner.size else 1.0
        if not largest < threshold:
            return None
        seen = (
            f"{inner.size} {'features' if pooled else 'cells'} in {len(progress.chains.mean)}"
            " chains"
        )
        return f"largest R-hat {largest:.5f} < {threshold} over {seen}"

    return Rule(decide, chains=chains, every=every)


def rhat(chains: Chains) -> FloatArray:
    """(d, d[, k]) Gelman–Rubin statistic of every cell, √((n−1)/n + (B/n)/s²).

    s² is the mean variance within a chain and B/n the variance of the chain means (Vats & Knudson
    2021, Equation 4). A cell that is constant in all chains has R̂ = 1; a cell with fewer than two
    draws in some chain has R̂ = ∞.
    """
    n = with_outputs(chains.counts, chains.mean)
    least = n.min(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        within = (chains.squares / (n - 1)).mean(axis=0)
        between = chains.mean.var(axis=0, ddof=1)
        ratio = np.where(between > 0, between / within, 0.0)
        statistic = np.sqrt((least - 1) / least + ratio)
    constant = (within == 0) & (between == 0)
    return np.where(least < 2, np.inf, np.where(constant, 1.0, statistic))


def standard_error(tolerance: float = 0.01, weights: WeightFamily | None = None) -> Rule:
    """Stop when the largest standard error of φ is at most `tolerance` times the range of φ.

    φ is taken under uniform weights, or under every vector of `weights`. A constant φ without error
    counts as reached.
    """
    tolerance = number_above("tolerance", tolerance, 0)

    def decide(progress: Progress) -> str | None:
        delta = progress.contributions
        vectors = np.full((1, delta.d), 1 / delta.d) if weights is None else weights.vectors
        largest = max(_error_over_range(delta, w) for w in vectors)
        if not largest <= tolerance:
            return None
        return f"largest standard error is {largest:.4f} of the range of φ, at most {tolerance}"

    return Rule(decide)


def _error_over_range(delta: Contributions, w: FloatArray) -> float:
    phi = np.einsum("j,ji...->i...", w, delta.mean)
    error = delta.standard_error_of(w)
    if np.isnan(phi).any() or np.isnan(error).any():
        return np.inf
    largest = error.max(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.where(largest == 0, 0.0, largest / np.ptp(phi, axis=0)).max())


def evaluations(n: int) -> Rule:
    """Stop before more than `n` coalitions have been evaluated: a hard budget."""
    n = positive_integer("evaluations", n)
    used = f"budget of {n:,} evaluations used"
    return Rule(lambda progress: used if progress.evaluations >= n else None, budget=n, every=0)


def seconds(s: float) -> Rule:
    """Stop at the first look after `s` seconds of sampling."""
    s = number_above("seconds", s, 0)
    return Rule(lambda progress: f"{s:g} seconds passed" if progress.seconds >= s else None)


def _both(one: str | None, other: str | None) -> str | None:
    return f"{one} and {other}" if one and other else None
