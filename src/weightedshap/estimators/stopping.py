"""Rules for when to stop sampling: they check the progress and return a reason to stop, or None.

Rules are joined with ``|`` (stop when either rule says so) and ``&`` (when both do):

    stop = standard_error(0.01) | evaluations(100_000)

A rule of your own is a function ``Progress → str | None``. `permutation` checks the rules. An error
that the game raises stops sampling, too: the contributions drawn before are attached to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import gcd, inf
from typing import Any

import numpy as np

from weightedshap._checks import FloatArray, check_above, check_positive_integer
from weightedshap.contributions import Chains, Contributions, broadcast_cells
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
    """The progress of sampling, which stopping rules check: draws, evaluations and time."""

    chains: Chains  # the independent chains of draws
    ends: FloatArray  # (2, d[, k]) the exact Δ_1 and Δ_d
    evaluations: int  # coalitions evaluated so far
    seconds: float  # time spent so far

    @cached_property
    def contributions(self) -> Contributions:
        """The contributions Δ estimated from all draws so far."""
        # The draws are for the sizes between, Δ_2 … Δ_{d−1}.
        exact = np.full(self.chains.mean.shape[1:], np.nan)
        exact[[0, -1]] = self.ends
        return Contributions.from_chains(self.chains, exact, self.evaluations)


@dataclass(frozen=True)
class Rule:
    """A stopping rule that can be combined with other rules by ``|`` (or) and ``&`` (and).

    Attributes
    ----------
    check : Progress → reason in words, or None to go on
    budget : evaluations that must not be exceeded, or None
    chains : number of independent chains of draws that the rule needs, or None
    every : the rule is checked when the number of orders drawn is a multiple of this; 0 if the
        budget alone decides

    Examples
    --------
    >>> (standard_error(0.01) | evaluations(5_000)).budget
    5000
    """

    check: Callable[[Progress], str | None]
    budget: int | None = None
    chains: int | None = None
    every: int = 1

    def __call__(self, progress: Progress) -> str | None:
        """Return the reason to stop, or None to continue."""
        return self.check(progress)

    def reason(self, progress: Progress, cost: int) -> str | None:
        """Return the reason to stop, which may be that the budget is too small; None to continue.

        The budget is used up if it is too small for one more draw, which takes `cost` evaluations.
        """
        reason = self(progress)
        if reason or self.remaining(progress.evaluations) >= cost:
            return reason
        return (
            f"budget of {self.budget:,} evaluations used ({progress.evaluations:,}; one more draw"
            f" costs {cost:,})"
        )

    def remaining(self, spent: int) -> float:
        """Return the budget that is left after `spent` evaluations; infinity without a budget."""
        return inf if self.budget is None else self.budget - spent

    def __or__(self, other: Any) -> Rule:
        """Return a rule that stops when `self` or `other` stops, within the smaller budget."""
        other = as_rule(other)
        return self._join(other, lambda progress: self(progress) or other(progress), min)

    def __and__(self, other: Any) -> Rule:
        """Return a rule that stops when `self` and `other` both stop, within the larger budget."""
        other = as_rule(other)
        return self._join(other, lambda progress: _combine(self(progress), other(progress)), max)

    __ror__ = __or__
    __rand__ = __and__

    def _join(
        self, other: Rule, check: Callable[[Progress], str | None], pick: Callable[..., float]
    ) -> Rule:
        """Join two rules into one that calls `check`; `pick` (min or max) selects the budget."""
        budget = pick(self.remaining(0), other.remaining(0))
        chains = max(self.chains or 0, other.chains or 0)
        return Rule(
            check=check,
            budget=None if budget == inf else int(budget),
            chains=chains or None,
            every=gcd(self.every, other.every),
        )


def as_rule(rule: Any) -> Rule:
    """Turn a function of `Progress` that returns a reason or None into a Rule; keep a Rule."""
    if isinstance(rule, Rule):
        return rule
    if callable(rule):
        return Rule(rule)
    raise TypeError(
        f"`stop` must be a stopping rule or a function of the progress; got {type(rule).__name__}."
    )


def visited(every: int = 1) -> Rule:
    """Return a rule that stops when every Δ_j(x_i) has at least one draw.

    Join it to another rule by ``&``, so that φ is known under every weight. The rule is checked
    every `every` orders.
    """

    def check(progress: Progress) -> str | None:
        counts = progress.chains.counts.sum(axis=0)[1:-1]  # Δ_1 and Δ_d are exact
        return "every cell visited" if (counts > 0).all() else None

    return Rule(check, every=check_positive_integer("every", every))


def gelman_rubin(
    threshold: float = 1.005, chains: int = 10, pooled: bool = False, every: int = 1
) -> Rule:
    """Return a rule that stops when the largest R̂ of all Δ_j(x_i) is below `threshold`.

    This is the rule of the paper. R̂ − 1 of independent draws falls with their number, whatever the
    error: the rule `standard_error` measures how good the estimates are.

    Parameters
    ----------
    pooled : compute R̂ from the draws of each feature at all sizes together, as in the authors'
        program
    every : check only when the number of orders drawn so far is a multiple of this (the authors:
        100)
    """
    threshold = check_above("threshold", threshold, 1)
    if check_positive_integer("chains", chains) < 2:
        raise ValueError("Gelman–Rubin compares chains: it needs at least two.")
    every = check_positive_integer("every", every)

    def check(progress: Progress) -> str | None:
        if round(progress.chains.counts[:, :, 0].sum()) % every:
            return None
        # By cell, the first and the last size are left out: Δ_1 and Δ_d are exact.
        draws = progress.chains
        statistics = rhat(draws.pooled(axis=1)) if pooled else rhat(draws)[1:-1]
        largest = float(statistics.max()) if statistics.size else 1.0
        # Not `>=`: NaN must go on as well.
        if not largest < threshold:
            return None
        kind = "features" if pooled else "cells"
        return (
            f"largest R-hat {largest:.5f} < {threshold} over {statistics.size} {kind} in"
            f" {len(draws.mean)} chains"
        )

    return Rule(check, chains=chains, every=every)


def rhat(chains: Chains) -> FloatArray:
    """Return the Gelman–Rubin statistic R̂ of every Δ_j(x_i), (d, d[, k]).

    R̂ = √((n−1)/n + (B/n)/s²), where n is the smallest number of draws in a chain, s² the mean
    variance within a chain, and B/n the variance of the chain means (Vats & Knudson 2021, Equation
    4). If all draws are equal, R̂ = 1; with fewer than two draws in some chain, R̂ = ∞.
    """
    n = broadcast_cells(chains.counts, chains.mean)
    least = n.min(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        within = (chains.squares / (n - 1)).mean(axis=0)
        between = chains.mean.var(axis=0, ddof=1)
        ratio = np.where(between > 0, between / within, 0.0)
        statistic = np.sqrt((least - 1) / least + ratio)
    constant = (within == 0) & (between == 0)
    return np.where(least < 2, np.inf, np.where(constant, 1.0, statistic))


def standard_error(tolerance: float = 0.01, weights: WeightFamily | None = None) -> Rule:
    """Return a rule that stops when all standard errors are ≤ `tolerance` times the range of φ.

    φ is computed under uniform weights, or under every vector of `weights`. A constant φ without
    error meets the rule.
    """
    tolerance = check_above("tolerance", tolerance, 0)

    def check(progress: Progress) -> str | None:
        delta = progress.contributions
        vectors = np.full((1, delta.d), 1 / delta.d) if weights is None else weights.vectors
        largest = max(_error_over_range(delta, w) for w in vectors)
        if not largest <= tolerance:
            return None
        return f"largest standard error is {largest:.4f} of the range of φ, at most {tolerance}"

    return Rule(check)


def _error_over_range(delta: Contributions, w: FloatArray) -> float:
    """Return the largest standard error of φ_w divided by the range of φ_w, or infinity."""
    phi = np.einsum("j,ji...->i...", w, delta.mean)
    error = delta.standard_error_of(w)
    if np.isnan(phi).any() or np.isnan(error).any():
        return np.inf
    largest = error.max(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.where(largest == 0, 0.0, largest / np.ptp(phi, axis=0)).max())


def evaluations(n: int) -> Rule:
    """Return a rule that stops before more than `n` coalitions are evaluated: a hard budget."""
    n = check_positive_integer("evaluations", n)

    def check(progress: Progress) -> str | None:
        return f"budget of {n:,} evaluations used" if progress.evaluations >= n else None

    return Rule(check, budget=n, every=0)


def seconds(s: float) -> Rule:
    """Return a rule that stops at the first check after `s` seconds of sampling."""
    s = check_above("seconds", s, 0)

    def check(progress: Progress) -> str | None:
        return f"{s:g} seconds passed" if progress.seconds >= s else None

    return Rule(check)


def _combine(one: str | None, other: str | None) -> str | None:
    """Join two reasons for stopping into one text; return None if one of them is missing."""
    return f"{one} and {other}" if one and other else None


@contextmanager
def attach_partial_result(table: Callable[[str], Contributions] | None) -> Iterator[None]:
    """Attach the contributions sampled so far to an error that the game raises.

    `table` returns them, given the reason why sampling stopped; None if there is nothing to keep.
    They are attached as ``error.contributions``.
    """
    try:
        yield
    except Exception as error:
        if table is not None:
            reason = f"the game raised {type(error).__name__}: {error}"
            error.contributions = table(reason)  # type: ignore[attr-defined]
            error.add_note(
                "What was sampled before the game raised is kept as `error.contributions`."
            )
        raise
