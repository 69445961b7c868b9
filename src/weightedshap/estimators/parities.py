"""Sparse models of a game made of parities, fitted to its odd and to its even part apart; their Δ is known.

A game is the sum of an even part, (v(S) + v(Sᶜ))/2, and an odd one, (v(S) − v(Sᶜ))/2. Draws that come with their
complements tell both, and a parity χ_T(S) = ∏_{l ∈ T} (1 if l ∈ S else −1) belongs to the odd part if T has an odd
number of players, else to the even one. So each part is a regression of its own, with as many terms as suit it.
Symmetric weights, as Shapley's, see the odd part alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.linalg
from threadpoolctl import threadpool_limits

from weightedshap.checks import BoolArray, FloatArray, IntArray
from weightedshap.estimators.strata import Fit, Sample

Single = npt.NDArray[np.float32]

SHARES = (32, 16, 8, 4)  # draws for each term, from round to round
TRUSTS = (0.1, 1.0)  # how much a term is favoured for the strength of its players
PENALTIES = (1e-8, 1e-2)  # of the ridge, as shares of the draws
MOST_TERMS = 800
MOST_ROWS, MOST_PLAYERS = 4_000, 100  # among which terms are searched for
STRONGEST = 30  # terms that are extended by two players


@dataclass(frozen=True)
class Parities:
    """Ridge regressions of v on parities of the mask, one for each group of folds.

    To the single players, whose effects may change with the size of the coalition, parities of more are added in
    rounds: those that explain most of what is left, among all that extend a player (in the even part, nobody) or
    one of the strongest terms by two players. How many are taken, and how much the strength of their players counts, is
    decided for every group of folds by the errors of the other groups' models on draws that they have not seen.
    """

    rounds: int = len(SHARES)

    def __call__(self, sample: Sample, y: FloatArray) -> Fit:
        draws, trusts = Draws.of(sample, y), TRUSTS if self.rounds else TRUSTS[:1]
        with threadpool_limits(1, "blas"):  # many small systems: threads would wait for each other
            found = [[c for trust in trusts for c in self._path(draws, g, trust)] for g in range(1, len(draws.groups))]
            even, odd = ([_best(found, g, part) for g in range(len(found))] for part in (0, 1))
            at_even, at_odd = (np.stack([model(draws.signs) for model in models]) for models in (even, odd))
        delta = np.stack([one.delta() + other.delta() for one, other in zip(even, odd, strict=True)])
        return Fit(delta, np.hstack([at_even + at_odd, at_even - at_odd]))

    def _path(self, draws: Draws, g: int, trust: float) -> Iterator[tuple[tuple[Model, float], ...]]:
        """Models with more and more terms, fitted to all groups but g, and their errors there: even, odd."""
        d = draws.signs.shape[1]
        seen, strength = draws.others(g), np.ones(d)
        some = seen[np.linspace(0, len(seen) - 1, min(len(seen), MOST_ROWS)).astype(np.intp)]
        models = [Model(odd, np.zeros((0, d), np.bool_), np.zeros(0)) for odd in (0, 1)]
        for share in (None, *SHARES[: self.rounds]):
            if share is None:
                terms = [model.terms for model in models]
            else:
                most = min(len(seen) // share, MOST_TERMS)
                terms = [draws.extended(model, some, strength**trust, most) for model in models]
            for candidates in zip(*(draws.ridges(odd, terms[odd], g, strength) for odd in (0, 1)), strict=True):
                yield candidates
                models = [model for model, _ in candidates]
            total = models[0].energy() + models[1].energy()
            strength = np.sqrt(total / (total.max() or 1.0)) + 1e-3


def _best(found: list[list[tuple[tuple[Model, float], ...]]], g: int, part: int) -> Model:
    """The model of group g at the place where those of the other groups err least."""
    errors = np.array([[candidate[part][1] for candidate in path] for path in found])
    return found[g][int((errors.sum(axis=0) - errors[g]).argmin())][part][0]


@dataclass(frozen=True)
class Draws:
    """The draws without their complements, and both parts of their values."""

    signs: FloatArray  # (m, d) 1 for members, −1 for others
    parts: FloatArray  # (2, m) even and odd
    weights: FloatArray  # (m,)
    groups: list[IntArray]  # rows of the sizes known in full, then of every group of folds

    @classmethod
    def of(cls, sample: Sample, y: FloatArray) -> Self:
        m = len(y) // 2
        parts = np.stack([y[:m] + y[m:], y[:m] - y[m:]]) / 2
        return cls(
            np.where(sample.coalitions[:m], 1.0, -1.0), parts, sample.weights[:m], [r[r < m] for r in sample.groups]
        )

    def others(self, g: int) -> IntArray:
        """Rows of all groups but g."""
        return np.concatenate([rows for h, rows in enumerate(self.groups) if h != g])

    def ridges(self, odd: int, terms: BoolArray, g: int, strength: FloatArray) -> Iterator[tuple[Model, float]]:
        """Models fitted to all groups but g, with more and more penalty, and their errors there.

        Terms of weak players are shrunk more; the constant, which is in the even part, is not.
        """
        root = np.sqrt(self.weights)
        X, y = columns(self.signs, odd, terms) * root[:, None], self.parts[odd] * root
        seen, own = self.others(g), self.groups[g]
        Z = X[seen]
        system, cross = Z.T @ Z, Z.T @ y[seen]
        relative = np.ones(len(system))
        relative[len(system) - len(terms) :] /= np.sqrt(np.where(terms, strength, 1.0).prod(axis=1))
        relative[: 1 - odd] = 1e-6
        for penalty in PENALTIES:
            shrunk = system + np.diag(penalty * len(Z) * relative)
            beta = scipy.linalg.solve(shrunk, cross, assume_a="pos", check_finite=False)
            yield Model(odd, terms, beta), float(np.sum((y[own] - X[own] @ beta) ** 2))

    def extended(self, model: Model, rows: IntArray, favour: FloatArray, most: int) -> BoolArray:
        """(≤ most, d) the model's terms, and new ones that explain most of what it leaves of these rows."""
        d, X, wanted = self.signs.shape[1], self.signs[rows], most - len(model.terms)
        if wanted <= 0:
            return model.terms
        left = self.weights[rows] * (self.parts[model.odd, rows] - model(X))
        strongest = np.argsort(-np.abs(model.of_terms), kind="stable")[:STRONGEST]
        start = np.eye(d, dtype=np.bool_) if model.odd else np.zeros((1, d), np.bool_)
        Z, left = X.astype(np.float32), left.astype(np.float32)
        found = [_extensions(Z, left, seed, favour, wanted) for seed in np.vstack([start, model.terms[strongest]])]
        gains, terms = map(np.concatenate, zip(*found, strict=True))
        terms = terms[np.argsort(-gains, kind="stable")]
        terms = np.vstack([model.terms, terms[terms.sum(axis=1) > 1]])
        _, first = np.unique(np.packbits(terms, axis=1), axis=0, return_index=True)
        return np.asarray(terms[np.sort(first)[:most]])


def _extensions(
    signs: Single, left: Single, seed: BoolArray, favour: FloatArray, most: int
) -> tuple[FloatArray, BoolArray]:
    """What terms gain that differ from the `seed` by two players (later ones, if it has but one), and these terms."""
    players = np.sort(np.argsort(-favour, kind="stable")[:MOST_PLAYERS])
    if seed.sum() == 1:
        players = players[players > seed.argmax()]
    liking = np.where(seed, 1 / favour, favour)[players]
    j, k = np.triu_indices(len(players), 1)
    Z, product = signs[:, players], left * signs[:, seed].prod(axis=1)
    gains = np.abs((Z * product[:, None]).T @ Z)[j, k] * (liking[j] * liking[k] * favour[seed].prod())
    top = np.argpartition(-gains, most)[:most] if most < len(gains) else np.arange(len(gains))
    terms = np.repeat(seed[None], len(top), axis=0)
    for added in (j, k):
        terms[np.arange(len(top)), players[added[top]]] ^= True
    return gains[top], terms


def parities(signs: FloatArray, terms: BoolArray) -> FloatArray:
    """(n, K) χ_T(S) for signs (n, d) of coalitions and terms (K, d)."""
    hidden = (signs < 0).astype(np.float32) @ terms.T.astype(np.float32)
    return np.asarray(1.0 - 2.0 * (hidden.astype(np.int32) & 1))


def columns(signs: FloatArray, odd: int, terms: BoolArray) -> FloatArray:
    """(n, columns) of one part, at coalitions of at most half of the players.

    With z = mean of the signs: of the odd part the signs and signs · z², of the even one 1 and signs · z; then an
    indicator of every size, and the parities of the terms.
    """
    d, z = signs.shape[1], signs.mean(axis=1, keepdims=True)
    sizes = np.rint((z + 1) * d / 2) == np.arange((d + 1) // 2 if odd else d // 2 + 1)
    single = [signs, signs * z**2] if odd else [np.ones_like(z), signs * z]
    return np.hstack([*single, sizes, parities(signs, terms)])


@dataclass(frozen=True)
class Model:
    """A part of a game as a sum of columns."""

    odd: int  # 1 for the odd part, 0 for the even one
    terms: BoolArray  # (K, d)
    beta: FloatArray  # (columns,)

    def __call__(self, signs: FloatArray) -> FloatArray:
        return np.asarray(columns(signs, self.odd, self.terms) @ self.beta)

    @property
    def of_terms(self) -> FloatArray:
        return self.beta[len(self.beta) - len(self.terms) :]

    @property
    def slopes(self) -> dict[int, FloatArray]:
        """Coefficients (d,) of signs · z^t, by t."""
        d = self.terms.shape[1]
        return {0: self.beta[:d], 2: self.beta[d : 2 * d]} if self.odd else {1: self.beta[1 : d + 1]}

    def energy(self) -> FloatArray:
        """(d,) how much of the part's variance each player has to do with."""
        single = sum(slope**2 / (1 + 2 * t) for t, slope in self.slopes.items())
        return np.asarray(single + self.of_terms**2 @ self.terms)

    def delta(self) -> FloatArray:
        """(d, d) exact Δ.

        A step of i changes the sign of the parities that i is in, and of no others: Δ_j(x_i) of χ_T is twice the
        mean of χ_{T∖i} over coalitions of j − 1 others.
        """
        d = self.terms.shape[1]
        s = np.arange(d + 1)
        z, at, side = 2 * s / d - 1, np.zeros(d + 1), -1 if self.odd else 1
        sizes = self.beta[len(self.slopes) * d + 1 - self.odd : len(self.beta) - len(self.terms)]
        at[: len(sizes)] = sizes
        at[d - np.arange(len(sizes))] = side * sizes
        delta = np.repeat(np.diff(at)[:, None], d, axis=1)
        for t, slope in self.slopes.items():
            own = z[1:] ** t + z[:-1] ** t
            another = (2 * s[:-1] / (d - 1) - 1) * np.diff(z**t)
            delta += own[:, None] * slope + another[:, None] * (slope.sum() - slope)
        orders = self.terms.sum(axis=1)
        for order in np.unique(orders):
            one = orders == order
            delta += 2 * _mean_parity(d - 1, int(order) - 1)[:, None] * (self.of_terms[one] @ self.terms[one])
        return np.asarray(delta)


def _mean_parity(n: int, order: int) -> FloatArray:
    """(n + 1,) the mean of a parity of so many of n players over all coalitions of sizes 0..n."""
    signed = [
        sum((-1) ** (order - k) * comb(s, k) * comb(n - s, order - k) for k in range(order + 1)) for s in range(n + 1)
    ]
    return np.array([count / comb(n, order) for count in signed])
