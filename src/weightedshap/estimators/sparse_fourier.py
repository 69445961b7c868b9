"""Sparse Walsh–Fourier models of a game: sums of parities, whose Δ has a closed form.

They are fitted separately to the odd and to the even part of a game. A game is the sum of an even
part, (v(S) + v(Sᶜ))/2, and an odd one, (v(S) − v(Sᶜ))/2. With z = 2|S|/d − 1 and parities
χ_T(S) = ∏_{l ∈ T} (1 if l ∈ S else −1), a term χ_T z^t belongs to the odd part if |T| + t is odd,
else to the even one. Draws that come with their complements give both parts, and each has a
regression of its own, with as many terms as suit it. Symmetric weights, as Shapley's, depend on the
odd part alone. Draws without complements have one regression on all terms.

`stratified` takes these models as control variates.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap._lazy import linalg, optimize
from weightedshap.estimators.strata import CrossFit, StratifiedSample

Float32Array = npt.NDArray[np.float32]

# The numbers below were chosen on the games of `TABLE` in benchmarks/samplers.py. Each comment says
# what half and double do to the error of Δ by `stratified`, root mean square over cells and six
# seeds, with 100 evaluations for each player. Games are a network's (16 players) and one of third
# order (30); of blocks of tanh (60) and random interactions (90), two or three seeds. Differences
# below a tenth may be chance.

# Draws for each term, from round to round: fewer allow for more terms, which take time and may fit
# noise. At half the error is 45 % smaller in third order, 6 % smaller for the network and 8 %
# larger for blocks, in 1.5 to 2.1 times the time; at double 0 to 65 % larger, in 0.7 to 0.8 times.
SHARES = (32, 16, 8, 4)
# How much a term is favoured for the strength of its players. The first alone gives the same error
# up to 5 %, in 0.54 to 0.62 times the time; the second alone gives 1.1, 1.5 and 3.6 times the
# error. With both at half the error is within 5 %, at double it is 2 % smaller to 37 % larger.
TRUSTS = (0.1, 1.0)
# Penalties of the ridge, as shares of the draws. The first alone gives 0.9, 1 and 1.5 times the
# error, the second alone 1.1 to 1.2 times. With both at half the error is 8 % smaller to 15 %
# larger, at double 3 % smaller to 5 % larger.
PENALTIES = (1e-8, 1e-2)
# The most terms of a model: the time of a fit grows with their square. It matters from about 6,400
# draws on; with 300 evaluations for each player the error at half is 31 and 83 % larger in half the
# time, at double 15 and 5 % smaller in 1.3 to 2 times the time.
MOST_TERMS = 800
# New terms are searched for in this many rows at most: more rows distinguish more terms. With 300
# evaluations for each player the error at half is 37 and 47 % larger in 0.9 times the time, at
# double 28 % smaller with 90 players and the same with 30, for 5 to 9 % more time.
MOST_ROWS = 4_000
# New terms are searched for among this many players at most, the strongest: the time of a search
# grows with their square. At half the error is the same for 60 players in blocks and 79 % larger
# for 90, in 0.8 to 0.9 times the time; at double there is no difference, as no game had so many
# players.
MOST_PLAYERS = 100
# In fewer rows nothing is searched for, as they hardly distinguish terms, and the search takes ten
# times as long as the rest. Of budgets that lie between, the error at half is 19 and 32 % smaller
# in 7 to 11 times the time, at double 22 and 104 % larger in 0.08 times.
FEWEST_ROWS = 100
# Terms that are extended by two players: more are looked through, and more are found by chance. At
# half the error is 3 and 23 % smaller and for blocks 1 % larger, in 0.9 times the time; at double 0
# to 23 % larger, in 1.1 to 1.2 times.
STRONGEST = 30
# This many times the terms wanted are looked through, as some are found from several others. It
# makes no difference: at half the error is 0 to 2 % larger, at double the same.
COPIES = 10


@dataclass(frozen=True)
class SparseFourier:
    """A method that fits sparse Walsh–Fourier models of a game v by ridge regression.

    Each group of folds gets its own model, a sum of terms (see `FourierTerms`). The first terms are
    of single players, whose effects may change with the size of the coalition. Parities of several
    players are added in rounds: those that explain most of the residuals, among all that extend the
    empty set, a player or one of the strongest terms by two players. For every group of folds the
    models of all rounds are averaged; the weights of the average are those with which the models of
    the other groups best predict the draws that they were not fitted to.
    """

    rounds: int = len(SHARES)

    def __call__(self, sample: StratifiedSample, y: FloatArray) -> CrossFit:
        """Fit one model of the values y (n,) for each group of folds, without the group's draws."""
        signs = np.where(sample.coalitions, 1.0, -1.0)
        # The systems are many and small: threads would wait for each other.
        with threadpool_limits(1, "blas"):
            by_part = [part.models(self.rounds) for part in _split_parity(sample, signs, y)]
            models = [mix_models(parts, [1.0] * len(parts)) for parts in zip(*by_part, strict=True)]
            delta = np.stack([model.delta() for model in models])
            predictions = np.stack([model(signs) for model in models])
            return CrossFit(sample, y, delta, predictions)


@dataclass(frozen=True)
class FourierTerms:
    """The terms of a model: parities of sets of players, times powers of the scaled size.

    Term χ_T z^t is the parity χ_T of the set T times a power of z = 2|S|/d − 1.
    """

    sets: BoolArray  # (K, d)
    powers: IntArray  # (K,)

    def __len__(self) -> int:
        return len(self.sets)

    def __call__(self, signs: FloatArray) -> FloatArray:
        """Return the value of each term at coalitions given by signs (n, d), 1 or −1."""
        n_absent = (signs < 0).astype(np.float32) @ self.sets.T.astype(np.float32)
        columns = 1.0 - 2.0 * (n_absent.astype(np.int32) & 1)
        z = signs.mean(axis=1, keepdims=True)
        for t in np.unique(self.powers[self.powers > 0]).tolist():
            columns[:, self.powers == t] *= z**t
        return np.asarray(columns)


@dataclass(frozen=True)
class FourierModel:
    """A model of a game: a sum of `FourierTerms` plus a function of the coalition size."""

    terms: FourierTerms
    beta: FloatArray  # (K,)
    size_values: FloatArray  # (d + 1,)

    def __call__(self, signs: FloatArray) -> FloatArray:
        """Return the values (n,) of the model at coalitions given by signs (n, d), 1 or −1."""
        sizes = (signs > 0).sum(axis=1)
        return np.asarray(self.terms(signs) @ self.beta + self.size_values[sizes])

    def delta(self) -> FloatArray:
        """Return the exact Δ of the model, (d, d).

        A step of i changes the sign of χ_T if i ∈ T, else not. With m_k the mean of a parity of k
        players over the coalitions of j − 1 of d − 1 players, Δ_j(x_i) of χ_T z^t is m_{|T|−1}
        (z_j^t + z_{j−1}^t) if i ∈ T, else m_{|T|} (z_j^t − z_{j−1}^t).
        """
        d = len(self.size_values) - 1
        orders = self.terms.sets.sum(axis=1)
        powers = self.terms.powers
        z = 2 * np.arange(d + 1) / d - 1
        delta = np.repeat(np.diff(self.size_values)[:, None], d, axis=1)
        for order, t in sorted(set(zip(orders.tolist(), powers.tolist(), strict=True))):
            beta = np.where((orders == order) & (powers == t), self.beta, 0.0)
            member = beta @ self.terms.sets  # (d,)
            inside = _mean_parity(d - 1, order - 1) * (z[1:] ** t + z[:-1] ** t)
            outside = _mean_parity(d - 1, order) * np.diff(z**t)
            delta += inside[:, None] * member + outside[:, None] * (beta.sum() - member)
        return np.asarray(delta)


def mix_models(models: Sequence[FourierModel], weights: Sequence[float]) -> FourierModel:
    """Return the weighted sum of models as one model, with equal terms merged into one."""
    weighted = list(zip(weights, models, strict=True))
    sets = np.vstack([model.terms.sets for model in models])
    powers = np.concatenate([model.terms.powers for model in models])
    beta = np.concatenate([weight * model.beta for weight, model in weighted])
    size_values = sum(weight * model.size_values for weight, model in weighted)

    first, inverse = _unique_terms(sets, powers)
    total = np.bincount(inverse, beta, len(first)).astype(np.float64)
    return FourierModel(FourierTerms(sets[first], powers[first]), total, np.asarray(size_values))


def _unique_terms(sets: BoolArray, powers: IntArray) -> tuple[IntArray, IntArray]:
    """Find the distinct terms; return first indices and inverse indices, as `numpy.unique` does."""
    codes = np.column_stack([np.packbits(sets, axis=1), powers.astype(np.uint8)])
    _, first, inverse = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)


def _mean_parity(n: int, order: int) -> FloatArray:
    """Return, for each size 0..n, the mean of a parity over all coalitions of that size, (n + 1,).

    The parity is that of `order` of the n players: 1, or −1 if an odd number of them are absent.
    """
    signed_counts = []
    for s in range(n + 1):
        # k of the parity's players are in the coalition, the others are absent.
        terms = [
            (-1) ** (order - k) * comb(s, k) * comb(n - s, order - k) for k in range(order + 1)
        ]
        signed_counts.append(sum(terms))
    return np.array([count / max(comb(n, order), 1) for count in signed_counts])


@dataclass(frozen=True)
class ParityPart:
    """The draws to which models of the even or odd part of a game, or of all of it, are fitted."""

    odd: int | None  # 1 for the odd part, 0 for the even one, None for both
    signs: FloatArray  # (m, d) 1 for members, −1 for others
    y: FloatArray  # (m,)
    weights: FloatArray  # (m,)
    groups: Sequence[IntArray]  # rows of the enumerated sizes, then of each group of folds

    def models(self, rounds: int) -> list[FourierModel]:
        """Return, for each group of folds, a weighted sum of models fitted without that group.

        In each of the `rounds`, terms of several players are added. With no rounds or few draws,
        there are only models of single players, which get equal weights.
        """
        has_search = rounds > 0 and len(self.y) >= FEWEST_ROWS
        trusts = TRUSTS if has_search else TRUSTS[:1]
        shares = SHARES[:rounds] if has_search else ()
        groups = self.groups[1:]
        paths = [
            [model for trust in trusts for model in self._regularisation_path(group, trust, shares)]
            for group in range(len(groups))
        ]
        if not has_search:
            return [mix_models(path, [1 / len(path)] * len(path)) for path in paths]
        unseen = [
            np.stack([model(self.signs[rows]) for model in path])
            for path, rows in zip(paths, groups, strict=True)
        ]
        return [
            mix_models(path, self._mixture_weights(unseen, group))
            for group, path in enumerate(paths)
        ]

    def _mixture_weights(self, unseen: Sequence[FloatArray], group: int) -> list[float]:
        """Return the weights of a group's models, fitted to the draws of the other groups.

        `unseen` contains for each group the predictions (models, rows) of its models for the rows
        of the group, to which they were not fitted. The weights add up to one; all but the first,
        that of the model of single players with hardly a penalty, are non-negative. Since they add
        up to one, they do not depend on the level of the values, which the models of the other
        groups know from this group, too.
        """
        others = [other for other in range(len(unseen)) if other != group]
        rows = np.concatenate([self.groups[1 + other] for other in others])
        root = np.sqrt(self.weights[rows])
        first, *more = np.hstack([unseen[other] for other in others])
        weights = optimize.nnls(((more - first) * root).T, (self.y[rows] - first) * root)[0]
        return [1 - float(weights.sum()), *map(float, weights)]

    def _regularisation_path(
        self, group: int, trust: float, shares: Sequence[int]
    ) -> Iterator[FourierModel]:
        """Yield models with more and more terms, fitted to all groups of folds but one.

        `trust` is the power of a player's strength in the search for terms, and `shares` has for
        each round the number of draws for each term.
        """
        seen = np.concatenate([rows for h, rows in enumerate(self.groups) if h != group + 1])
        n_searched = min(len(seen), MOST_ROWS)
        searched = seen[np.linspace(0, len(seen) - 1, n_searched).astype(np.intp)]

        d = self.signs.shape[1]
        # The parity of a single player times z^t is odd if t is even.
        powers = [t for t in (0, 1, 2) if self.odd in (None, 1 - t % 2)]
        single_players = np.tile(np.eye(d, dtype=np.bool_), (len(powers), 1))
        terms = FourierTerms(single_players, np.repeat(powers, d))
        n_singles = len(terms)
        models = self._ridge_grid(terms, seen, np.ones(d))
        yield from models
        for share in shares:
            # The variance that the last model gives to each player.
            model = models[-1]
            variance = model.beta**2 / (1 + 2 * model.terms.powers)
            by_player = variance @ model.terms.sets
            strength = np.sqrt(by_player / (by_player.max() or 1.0)) + 1e-3

            most = n_singles + min(len(seen) // share, MOST_TERMS)
            if most > len(model.terms):
                terms = self._grow_terms(model, n_singles, searched, strength**trust, most)
            models = self._ridge_grid(terms, seen, strength)
            yield from models

    def _ridge_grid(
        self, terms: FourierTerms, seen: IntArray, strength: FloatArray
    ) -> list[FourierModel]:
        """Return ridge regressions on the terms, fitted to the rows `seen`, one for each penalty.

        Interactions of players with a small `strength` (d,) are shrunk more; the constant, which is
        in the even part, is not shrunk.
        """
        signs = self.signs[seen]
        root = np.sqrt(self.weights[seen])
        size_columns = self._size_columns()
        n = size_columns.shape[1]
        X = np.hstack([size_columns[(signs > 0).sum(axis=1)], terms(signs)]) * root[:, None]
        gram = X.T @ X
        cross = X.T @ (self.y[seen] * root)

        is_interaction = terms.sets.sum(axis=1) > 1
        strength_of_terms = np.where(terms.sets & is_interaction[:, None], strength, 1.0)
        shrinkage = 1 / np.sqrt(strength_of_terms.prod(axis=1))
        relative = np.concatenate([np.ones(n), shrinkage])
        relative[: self.odd != 1] = 1e-6

        models = []
        for penalty in PENALTIES:
            matrix = gram + np.diag(penalty * len(X) * relative)
            beta = linalg.solve(matrix, cross, assume_a="pos", check_finite=False)
            models.append(FourierModel(terms, beta[n:], size_columns @ beta[:n]))
        return models

    def _size_columns(self) -> FloatArray:
        """Return a basis (d + 1, columns) of the functions of the coalition size.

        It has a constant, except for the odd part, and a column for every size or for two
        complementary sizes.
        """
        d = self.signs.shape[1]
        unit = np.eye(d + 1)
        mirror = np.eye(d + 1)[::-1]
        if self.odd:
            return np.asarray((unit - mirror)[:, : (d + 1) // 2])
        levels = unit if self.odd is None else np.maximum(unit, mirror)[:, : d // 2 + 1]
        return np.hstack([np.ones((d + 1, 1)), levels])

    def _grow_terms(
        self, model: FourierModel, n_singles: int, rows: IntArray, favour: FloatArray, most: int
    ) -> FourierTerms:
        """Return the terms of the model and the best new terms, no more than `most` in all.

        The best are those that explain most of the model's residuals in these rows, with players
        weighted by `favour` (d,). The first `n_singles` terms of the model are of single players.
        """
        signs = self.signs[rows].astype(np.float32)
        d = self.signs.shape[1]
        n_wanted = most - len(model.terms)
        left = (self.weights[rows] * (self.y[rows] - model(self.signs[rows]))).astype(np.float32)

        # Sets that two players are added to: nobody, single players, and the strongest terms. The
        # odd part has no pairs, and the even part no sets of three.
        n_empty = int(self.odd != 1)
        n_players = 0 if self.odd == 0 else d
        by_size = np.argsort(-np.abs(model.beta[n_singles:]), kind="stable")
        strongest = n_singles + by_size[:STRONGEST]
        seeds = np.vstack(
            [
                np.zeros((n_empty, d), np.bool_),
                np.eye(d, dtype=np.bool_)[:n_players],
                model.terms.sets[strongest],
            ]
        )
        found = [_candidate_terms(signs, left, seed, favour, n_wanted) for seed in seeds]
        gains, sets = map(np.concatenate, zip(*found, strict=True))
        sets = sets[np.argsort(-gains, kind="stable")[: COPIES * n_wanted]]

        # The model's own terms come first, so that they are kept.
        sets = np.vstack([model.terms.sets, sets[sets.sum(axis=1) > 1]])
        n_new = len(sets) - len(model.terms)
        powers = np.concatenate([model.terms.powers, np.zeros(n_new, np.intp)])
        first = np.sort(_unique_terms(sets, powers)[0])[:most]
        return FourierTerms(sets[first], powers[first])


def _split_parity(
    sample: StratifiedSample, signs: FloatArray, y: FloatArray
) -> Iterator[ParityPart]:
    """Yield an even and an odd part if draws have complements, else one part with all draws."""
    complement = sample.complement
    if complement is None:
        yield ParityPart(None, signs, y, sample.weights, sample.groups)
        return
    # One row of each pair.
    first = np.flatnonzero(complement > np.arange(len(y)))
    groups = [np.searchsorted(first, rows[complement[rows] > rows]) for rows in sample.groups]
    for odd, other in ((0, y[complement]), (1, -y[complement])):
        yield ParityPart(odd, signs[first], (y + other)[first] / 2, sample.weights[first], groups)


def _candidate_terms(
    signs: Float32Array, left: Float32Array, seed: BoolArray, favour: FloatArray, most: int
) -> tuple[FloatArray, BoolArray]:
    """Find the sets that differ from `seed` (d,) by two players and explain most of the residuals.

    Returns the gains of at most `most` sets, how much they explain of the residuals `left` (m,),
    and the sets (·, d). A single player is extended by later players only, since otherwise each set
    of three would be found three times.
    """
    players = np.sort(np.argsort(-favour, kind="stable")[:MOST_PLAYERS])
    if seed.sum() == 1:
        players = players[players > seed.argmax()]

    # Gains are correlations of the residuals with parities. A player of the seed is taken out.
    factor = np.where(seed, 1 / favour, favour)[players]
    j, k = np.triu_indices(len(players), 1)
    Z = signs[:, players]
    product = left * signs[:, seed].prod(axis=1)
    correlation = np.abs((Z * product[:, None]).T @ Z)[j, k]
    gains = correlation * (factor[j] * factor[k] * favour[seed].prod())

    top = np.arange(len(gains))
    if most < len(gains):
        top = np.argpartition(-gains, most)[:most]
    sets = np.repeat(seed[None], len(top), axis=0)
    for added in (j, k):
        sets[np.arange(len(top)), players[added[top]]] ^= True
    return gains[top], sets
