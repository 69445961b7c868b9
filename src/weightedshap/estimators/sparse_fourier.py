"""Sparse models of a game made of parities, fitted to its odd and to its even part apart; their Δ
is known.

A game is the sum of an even part, (v(S) + v(Sᶜ))/2, and an odd one, (v(S) − v(Sᶜ))/2. With z =
2|S|/d − 1 and parities χ_T(S) = ∏_{l ∈ T} (1 if l ∈ S else −1), a term χ_T z^t belongs to the odd
part if |T| + t is odd, else to the even one. Draws that come with their complements tell both
parts, and each is a regression of its own, with as many terms as suit it. Symmetric weights, as
Shapley's, see the odd part alone. Draws without complements are one regression on all terms.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap._lazy import linalg, optimize
from weightedshap.estimators.strata import Fit, Sample

Single = npt.NDArray[np.float32]

SHARES = (32, 16, 8, 4)  # draws for each term, from round to round
TRUSTS = (0.1, 1.0)  # how much a term is favoured for the strength of its players
PENALTIES = (1e-8, 1e-2)  # of the ridge, as shares of the draws
MOST_TERMS = 800
MOST_ROWS = 4_000
MOST_PLAYERS = 100  # among which terms are searched for
FEWEST_ROWS = 100  # fewer do not tell terms apart
STRONGEST = 30  # terms that are extended by two players
COPIES = 10  # of the terms wanted are looked through, as some are found from several others


@dataclass(frozen=True)
class Parities:
    """Ridge regressions of v on terms χ_T z^t, for each group of folds.

    To the single players, whose effects may change with the size of the coalition, parities of more
    are added in rounds: those that explain most of what is left, among all that extend nobody, a
    player or one of the strongest terms by two players. The models of all rounds are mixed for
    every group of folds by the weights with which the models of the other groups predict best what
    they have not seen.
    """

    rounds: int = len(SHARES)

    def __call__(self, sample: Sample, y: FloatArray) -> Fit:
        signs = np.where(sample.coalitions, 1.0, -1.0)
        with threadpool_limits(1, "blas"):  # many small systems: threads would wait for each other
            parts = [part.models(self.rounds) for part in _parts(sample, signs, y)]
            models = [mixed(one, [1.0] * len(one)) for one in zip(*parts, strict=True)]
            deltas, values = zip(*((model.delta(), model(signs)) for model in models), strict=True)
            return Fit(sample, y, np.stack(deltas), np.stack(values))


@dataclass(frozen=True)
class Terms:
    """χ_T z^t for K sets T and powers t."""

    sets: BoolArray  # (K, d)
    powers: IntArray  # (K,)

    def __len__(self) -> int:
        return len(self.sets)

    def __call__(self, signs: FloatArray) -> FloatArray:
        """(n, K) at coalitions given by signs (n, d)."""
        absent = (signs < 0).astype(np.float32) @ self.sets.T.astype(np.float32)
        columns = 1.0 - 2.0 * (absent.astype(np.int32) & 1)
        z = signs.mean(axis=1, keepdims=True)
        for t in np.unique(self.powers[self.powers > 0]).tolist():
            columns[:, self.powers == t] *= z**t
        return np.asarray(columns)


@dataclass(frozen=True)
class Model:
    """A game as a sum of terms and of a function of the size."""

    terms: Terms
    beta: FloatArray  # (K,)
    sizes: FloatArray  # (d + 1,)

    def __call__(self, signs: FloatArray) -> FloatArray:
        return np.asarray(self.terms(signs) @ self.beta + self.sizes[(signs > 0).sum(axis=1)])

    def delta(self) -> FloatArray:
        """(d, d) exact Δ.

        A step of i changes the sign of χ_T if i ∈ T, else not. With m_k the mean of a parity of k
        players over the coalitions of j − 1 of d − 1 players, Δ_j(x_i) of χ_T z^t is m_{|T|−1}
        (z_j^t + z_{j−1}^t) if i ∈ T, else m_{|T|} (z_j^t − z_{j−1}^t).
        """
        d = len(self.sizes) - 1
        orders = self.terms.sets.sum(axis=1)
        z = 2 * np.arange(d + 1) / d - 1
        delta = np.repeat(np.diff(self.sizes)[:, None], d, axis=1)
        for order, t in sorted(set(zip(orders.tolist(), self.terms.powers.tolist(), strict=True))):
            beta = np.where((orders == order) & (self.terms.powers == t), self.beta, 0.0)
            member = beta @ self.terms.sets
            inside = _mean_parity(d - 1, order - 1) * (z[1:] ** t + z[:-1] ** t)
            outside = _mean_parity(d - 1, order) * np.diff(z**t)
            delta += inside[:, None] * member + outside[:, None] * (beta.sum() - member)
        return np.asarray(delta)


def mixed(models: Sequence[Model], weights: Sequence[float]) -> Model:
    """Σ weight · model, every term once."""
    sets = np.vstack([model.terms.sets for model in models])
    powers = np.concatenate([model.terms.powers for model in models])
    beta = np.concatenate(
        [weight * model.beta for weight, model in zip(weights, models, strict=True)]
    )
    first, where = _unique(sets, powers)
    sizes = sum(weight * model.sizes for weight, model in zip(weights, models, strict=True))
    total = np.bincount(where, beta, len(first)).astype(np.float64)
    return Model(Terms(sets[first], powers[first]), total, np.asarray(sizes))


def _unique(sets: BoolArray, powers: IntArray) -> tuple[IntArray, IntArray]:
    """Where each term comes first, and which of these every term is."""
    codes = np.column_stack([np.packbits(sets, axis=1), powers.astype(np.uint8)])
    _, first, where = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    return first, where.reshape(-1)


def _mean_parity(n: int, order: int) -> FloatArray:
    """(n + 1,) the mean of a parity of so many of n players over all coalitions of sizes 0..n."""
    each = range(order + 1)
    signed = [
        sum((-1) ** (order - k) * comb(s, k) * comb(n - s, order - k) for k in each)
        for s in range(n + 1)
    ]
    return np.array([count / max(comb(n, order), 1) for count in signed])


@dataclass(frozen=True)
class Part:
    """Draws of one part of a game."""

    odd: int | None  # 1 for the odd part, 0 for the even one, None for both in one
    signs: FloatArray  # (m, d) 1 for members, −1 for others
    y: FloatArray  # (m,)
    weights: FloatArray  # (m,)
    groups: Sequence[IntArray]  # rows of the sizes known in full, then of every group of folds

    def models(self, rounds: int) -> list[Model]:
        """For every group a mixture of the models of its paths, an even one of the few that need no
        search."""
        searched = rounds > 0 and len(self.y) >= FEWEST_ROWS
        groups = self.groups[1:]
        trusts, shares = (TRUSTS, SHARES[:rounds]) if searched else (TRUSTS[:1], ())
        paths = [
            [model for trust in trusts for model in self._path(g, trust, shares)]
            for g in range(len(groups))
        ]
        if not searched:
            return [mixed(path, [1 / len(path)] * len(path)) for path in paths]
        unseen = [
            np.stack([m(self.signs[rows]) for m in path])
            for path, rows in zip(paths, groups, strict=True)
        ]
        return [mixed(path, self._weights(unseen, g)) for g, path in enumerate(paths)]

    def _weights(self, unseen: Sequence[FloatArray], g: int) -> list[float]:
        """Weights of the models of group g, from what those of the other groups (models, rows)
        predict in their own.

        They add up to one, and all but the first, of single players with hardly a penalty, are
        non-negative. So the level of the values, of which the others have seen a group's own, has
        no say in them.
        """
        others = [h for h in range(len(unseen)) if h != g]
        rows = np.concatenate([self.groups[1 + h] for h in others])
        root = np.sqrt(self.weights[rows])
        first, *more = np.hstack([unseen[h] for h in others])
        weights = optimize.nnls(((more - first) * root).T, (self.y[rows] - first) * root)[0]
        return [1 - float(weights.sum()), *map(float, weights)]

    def _path(self, g: int, trust: float, shares: Sequence[int]) -> Iterator[Model]:
        """Models with more and more terms, fitted to all groups but g."""
        seen = np.concatenate([rows for h, rows in enumerate(self.groups) if h != g + 1])
        some = seen[np.linspace(0, len(seen) - 1, min(len(seen), MOST_ROWS)).astype(np.intp)]
        d = self.signs.shape[1]
        powers = [t for t in (0, 1, 2) if self.odd in (None, 1 - t % 2)]
        terms = Terms(np.tile(np.eye(d, dtype=np.bool_), (len(powers), 1)), np.repeat(powers, d))
        singles = len(terms)
        yield from (models := self._ridges(terms, seen, np.ones(d)))
        for share in shares:
            model = models[-1]
            total = (
                model.beta**2 / (1 + 2 * model.terms.powers)
            ) @ model.terms.sets  # variance, by player
            strength = np.sqrt(total / (total.max() or 1.0)) + 1e-3
            most = singles + min(len(seen) // share, MOST_TERMS)
            if most > len(model.terms):
                terms = self._extended(model, singles, some, strength**trust, most)
            yield from (models := self._ridges(terms, seen, strength))

    def _ridges(self, terms: Terms, seen: IntArray, strength: FloatArray) -> list[Model]:
        """Models fitted to the rows `seen`, with more and more penalty.

        Interactions of weak players are shrunk more; the constant, which is in the even part, is
        not.
        """
        signs = self.signs[seen]
        root = np.sqrt(self.weights[seen])
        sizes = self._functions_of_size()
        X = np.hstack([sizes[(signs > 0).sum(axis=1)], terms(signs)]) * root[:, None]
        system = X.T @ X
        cross = X.T @ (self.y[seen] * root)
        n = sizes.shape[1]
        together = terms.sets & (terms.sets.sum(axis=1) > 1)[:, None]
        relative = np.concatenate(
            [np.ones(n), 1 / np.sqrt(np.where(together, strength, 1.0).prod(axis=1))]
        )
        relative[: self.odd != 1] = 1e-6
        shrunk = (system + np.diag(penalty * len(X) * relative) for penalty in PENALTIES)
        betas = (
            linalg.solve(matrix, cross, assume_a="pos", check_finite=False) for matrix in shrunk
        )
        return [Model(terms, beta[n:], sizes @ beta[:n]) for beta in betas]

    def _functions_of_size(self) -> FloatArray:
        """(d + 1, columns) a constant, if the part has one, and one for every size or two
        complementary ones."""
        d = self.signs.shape[1]
        unit = np.eye(d + 1)
        mirror = np.eye(d + 1)[::-1]
        if self.odd:
            return np.asarray((unit - mirror)[:, : (d + 1) // 2])
        levels = unit if self.odd is None else np.maximum(unit, mirror)[:, : d // 2 + 1]
        return np.hstack([np.ones((d + 1, 1)), levels])

    def _extended(
        self, model: Model, singles: int, rows: IntArray, favour: FloatArray, most: int
    ) -> Terms:
        """The model's terms and new ones, `most` in all, that explain most of what it leaves of
        these rows."""
        signs = self.signs[rows].astype(np.float32)
        d = self.signs.shape[1]
        wanted = most - len(model.terms)
        left = (self.weights[rows] * (self.y[rows] - model(self.signs[rows]))).astype(np.float32)
        strongest = singles + np.argsort(-np.abs(model.beta[singles:]), kind="stable")[:STRONGEST]
        nobody = np.zeros((int(self.odd != 1), d), np.bool_)
        seeds = np.vstack(
            [
                nobody,
                np.eye(d, dtype=np.bool_)[: 0 if self.odd == 0 else d],
                model.terms.sets[strongest],
            ]
        )
        found = [_extensions(signs, left, seed, favour, wanted) for seed in seeds]
        gains, sets = map(np.concatenate, zip(*found, strict=True))
        sets = sets[np.argsort(-gains, kind="stable")[: COPIES * wanted]]
        sets = np.vstack([model.terms.sets, sets[sets.sum(axis=1) > 1]])
        powers = np.concatenate(
            [model.terms.powers, np.zeros(len(sets) - len(model.terms), np.intp)]
        )
        kept = np.sort(_unique(sets, powers)[0])[:most]
        return Terms(sets[kept], powers[kept])


def _parts(sample: Sample, signs: FloatArray, y: FloatArray) -> Iterator[Part]:
    """The even and the odd part of draws with complements, else both in one."""
    if sample.partner is None:
        yield Part(None, signs, y, sample.weights, sample.groups)
        return
    first = np.flatnonzero(sample.partner > np.arange(len(y)))
    groups = [np.searchsorted(first, rows[sample.partner[rows] > rows]) for rows in sample.groups]
    for odd, other in ((0, y[sample.partner]), (1, -y[sample.partner])):
        yield Part(odd, signs[first], (y + other)[first] / 2, sample.weights[first], groups)


def _extensions(
    signs: Single, left: Single, seed: BoolArray, favour: FloatArray, most: int
) -> tuple[FloatArray, BoolArray]:
    """What sets gain that differ from the `seed` by two players (later ones, if it has but one),
    and these sets."""
    players = np.sort(np.argsort(-favour, kind="stable")[:MOST_PLAYERS])
    if seed.sum() == 1:
        players = players[players > seed.argmax()]
    liking = np.where(seed, 1 / favour, favour)[players]
    j, k = np.triu_indices(len(players), 1)
    Z = signs[:, players]
    product = left * signs[:, seed].prod(axis=1)
    gains = np.abs((Z * product[:, None]).T @ Z)[j, k] * (
        liking[j] * liking[k] * favour[seed].prod()
    )
    top = np.argpartition(-gains, most)[:most] if most < len(gains) else np.arange(len(gains))
    sets = np.repeat(seed[None], len(top), axis=0)
    for added in (j, k):
        sets[np.arange(len(top)), players[added[top]]] ^= True
    return gains[top], sets
