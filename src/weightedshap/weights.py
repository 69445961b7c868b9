"""Families of semivalue weights: vectors w over coalition sizes j = 1, …, d (Equation 5).

A weight vector turns Δ into attributions, φ_w(x_i) = Σ_j w_j Δ_j(x_i), and Algorithm 1 chooses the
best vector of a family. Families are joined with ``|``. To add one, write a function
``d → WeightFamily`` and add it to `FAMILIES`. `weightedshap.method` and the estimators use the
families; users find them as `weightedshap.weights`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from operator import or_
from typing import Any, Self

import numpy as np

from weightedshap._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    check_above,
    check_positive_integer,
    look_up,
)
from weightedshap._lazy import special
from weightedshap.inputs.containers import equal_arrays

__all__ = [
    "FAMILIES",
    "PAPER_PAIRS",
    "WeightFamily",
    "banzhaf",
    "beta",
    "beta_grid",
    "first",
    "last",
    "paper",
    "shapley",
    "sizes",
    "wide",
]

PAPER_PAIRS = (
    (32, 1),
    (16, 1),
    (8, 1),
    (4, 1),
    (2, 1),
    (1, 1),
    (1, 2),
    (1, 4),
    (1, 8),
    (1, 16),
    (1, 32),
)
"""(α, β) of the paper's Beta weights.

The paper speaks of 13 weights and prints 12; Beta(32, 1) is the 13th.
"""


@dataclass(frozen=True, eq=False)
class WeightFamily:
    """A set of m labelled weight vectors (m, d), non-negative, each summing to one.

    Two families are compared with `equals`, not with ``==``.

    >>> (shapley(3) | WeightFamily("mine", [0.5, 0.25, 0.25])).labels
    ('Shapley', 'mine')
    """

    labels: tuple[str, ...]
    vectors: FloatArray

    def __post_init__(self) -> None:
        vectors = np.array(as_array("vectors", self.vectors), ndmin=2)
        if not isinstance(self.labels, (str, list, tuple)):
            raise TypeError(f"`labels` must be a list of names; got {self.labels!r}.")
        labels = (self.labels,) if isinstance(self.labels, str) else tuple(map(str, self.labels))

        has_shape = vectors.ndim == 2 and vectors.shape[1] >= 1
        if not has_shape or len(labels) != len(vectors) or not len(labels):
            raise ValueError(
                "A family needs one label for each row of `vectors` (m, d); got"
                f" {len(labels)} labels and shape {vectors.shape}."
            )
        is_valid = (np.isfinite(vectors) & (vectors >= 0)).all(axis=1)
        if not is_valid.all():
            raise ValueError(
                f"Weights must be finite and not negative; {labels[is_valid.argmin()]!r} is not."
            )
        totals = vectors.sum(axis=1)
        worst = np.abs(totals - 1).argmax()
        if np.abs(totals[worst] - 1) > 1e-9:
            raise ValueError(
                f"Weights must sum to one; {labels[worst]!r} sums to {totals[worst]:.6g}."
                " Divide it by its sum."
            )

        # `vectors` is a copy, so that nobody else can write to it either.
        vectors.setflags(write=False)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "vectors", vectors)

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def d(self) -> int:
        """The number of coalition sizes, equal to the number of players."""
        return int(self.vectors.shape[1])

    def equals(self, other: object) -> bool:
        """Return whether labels and vectors are identical, bit for bit."""
        return (
            isinstance(other, WeightFamily)
            and self.labels == other.labels
            and equal_arrays(self.vectors, other.vectors)
        )

    def __or__(self, other: "WeightFamily") -> "WeightFamily":
        """Join two families, leaving out vectors of `other` that are already in this one."""
        if not isinstance(other, WeightFamily):
            return NotImplemented
        if other.d != self.d:
            raise ValueError(
                f"Cannot join weights for d = {self.d} with weights for d = {other.d}."
            )
        labels = self.labels + other.labels
        vectors = np.concatenate([self.vectors, other.vectors])
        # Equal vectors within the first family stay: only those of the second are compared.
        positions = [
            m
            for m in range(len(labels))
            if m < len(self) or not _close_to(vectors[m], vectors[:m]).any()
        ]
        return WeightFamily(tuple(labels[m] for m in positions), vectors[positions])

    @cached_property
    def with_references(self) -> "WeightFamily":
        """This family plus whichever of the Shapley, first and last weights it lacks."""
        return self | shapley(self.d) | first(self.d) | last(self.d)

    @cached_property
    def with_unit_vectors(self) -> FloatArray:
        """The vectors of `with_references`, followed by the d unit vectors, as one array.

        The array is (M + d, d). A game with semivalues in closed form computes all of them in one
        call: the first M vectors give φ, and the unit vectors give Δ.
        """
        return np.concatenate([self.with_references.vectors, np.eye(self.d)])

    @cached_property
    def reference_positions(self) -> tuple[int, int, int]:
        """The positions of the Shapley, first and last weights in `with_references`."""
        vectors = self.with_references.vectors
        of_shapley, of_first, of_last = (
            _close_to(build(self.d).vectors[0], vectors).argmax() for build in REFERENCES.values()
        )
        return int(of_shapley), int(of_first), int(of_last)

    @cached_property
    def rank_from_uniform(self) -> IntArray:
        """The rank (m,) of each vector by its distance from uniform weights, used to break ties.

        The distance is in L2; ties of the distance go to the lower index.
        """
        # Rounded, so that mirrored vectors have one distance despite floating point.
        distance = np.sqrt(((self.vectors - 1 / self.d) ** 2).sum(axis=1)).round(12)
        return np.argsort(np.argsort(distance, kind="stable"))

    def warm_up(self) -> Self:
        """Compute all cached attributes now, so that no explained row has to wait for them.

        Returns the family itself.
        """
        _ = self.reference_positions
        _ = self.rank_from_uniform
        _ = self.with_unit_vectors
        return self

    def pairs_with(self, names: Sequence[str]) -> "WeightFamily":
        """Return the family of all pairs of a game name and a weight, labelled ``game · weight``.

        All weights with the first game come first, then all weights with the second, and so on.
        """
        labels = tuple(f"{name} · {label}" for name in names for label in self.labels)
        return WeightFamily(labels, np.tile(self.vectors, (len(names), 1))).warm_up()

    def index(self, vector: FloatArray) -> int | None:
        """Return the position of `vector` in the family; None if the family does not contain it."""
        positions = np.flatnonzero(_close_to(vector, self.vectors))
        return int(positions[0]) if len(positions) else None

    def phi(self, delta: FloatArray) -> FloatArray:
        """Return φ_w(x_i) = Σ_j w_j Δ_j(x_i) for every w (Equation 5): (…, d, d) → (…, m, d).

        φ_w is NaN where w puts weight on a NaN.
        """
        if not np.isnan(delta).any():
            return np.asarray(self.vectors @ delta)
        # 0 · NaN is NaN, so NaN are left out of the sum and put back where they have weight.
        phi = np.asarray(self.vectors @ np.nan_to_num(delta))
        n_missing = (self.vectors > 0).astype(float) @ np.isnan(delta)
        return np.where(n_missing > 0, np.nan, phi)

    def weigh(self, delta: FloatArray) -> FloatArray:
        """Return φ like `phi`, for Δ with outputs on its last axis: (…, d, d, k) → (…, m, d, k)."""
        return np.moveaxis(self.phi(np.moveaxis(delta, -1, 0)), 0, -1)


def _close_to(vector: FloatArray, vectors: FloatArray) -> BoolArray:
    """Return a mask (m,) of the `vectors` (m, d) that equal `vector` up to rounding."""
    return np.asarray(np.abs(vectors - vector).max(axis=1) < 1e-12)


def beta(d: int, alpha: float, beta: float) -> WeightFamily:
    """Return the paper's Beta weight, w_j = C(d−1, j−1) · B(j+β−1, d−j+α) / B(α, β).

    Beta(16, 1) favours small coalitions and Beta(1, 16) large ones; Beta(1, 1) is uniform and gives
    the Shapley value. The weights are built from their ratios
    ``w_{j+1}/w_j = (d−j)/j · (j+β−1)/(d−j+α−1)`` in log space, so that nothing overflows at any d.

    Examples
    --------
    >>> beta(3, 1, 1).vectors.round(3)
    array([[0.333, 0.333, 0.333]])
    """
    alpha = check_above("alpha", alpha, 0)
    beta = check_above("beta", beta, 0)
    return _beta(check_positive_integer("d", d), alpha, beta)


def _beta(d: int, alpha: float, beta: float) -> WeightFamily:
    """Return the Beta weight as `beta` does, without checking the parameters."""
    j = np.arange(1, d, dtype=np.float64)
    steps = np.log((d - j) / j) + np.log((j + beta - 1) / (d - j + alpha - 1))
    log_weights = np.cumsum([0.0, *steps])
    return WeightFamily((f"Beta({alpha:g},{beta:g})",), _normalise_log(log_weights))


def _normalise_log(log_weights: FloatArray) -> FloatArray:
    """Return weights that sum to one, given their logarithms up to a constant."""
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def beta_grid(d: int, values: Sequence[float] = (1, 2, 4, 8, 16, 32)) -> WeightFamily:
    """Return Beta(α, β) weights for all pairs (α, β) of `values`.

    They are sorted from those that favour small coalitions to those that favour large ones.
    """
    d = check_positive_integer("d", d)
    parameters = as_array("values", values)
    if not np.size(parameters) or (parameters <= 0).any():
        raise ValueError(f"`values` must be positive numbers; got {values!r}.")
    pairs = sorted(
        product(parameters.ravel(), repeat=2), key=lambda pair: (pair[1] / pair[0], sum(pair))
    )
    return reduce(or_, (_beta(d, *pair) for pair in pairs))


def banzhaf(d: int, p: float = 0.5) -> WeightFamily:
    """Return the weighted Banzhaf weight, w_j = C(d−1, j−1) p^{j−1} (1−p)^{d−j}.

    Every other feature is in the coalition with probability p; 1/2 gives the Banzhaf value.
    """
    d = check_positive_integer("d", d)
    if isinstance(p, bool) or not isinstance(p, (int, float, np.floating)) or not 0 <= p <= 1:
        raise ValueError(f"Banzhaf weights need a probability 0 ≤ p ≤ 1; got {p!r}.")
    j = np.arange(1, d + 1, dtype=np.float64)
    log_binomial = np.cumsum([0.0, *np.log((d - j[:-1]) / j[:-1])])
    # These functions take 0 · log 0 as 0, so that p may be 0 or 1.
    log_weights = log_binomial + special.xlogy(j - 1, p) + special.xlog1py(d - j, -p)
    return WeightFamily((f"Banzhaf({p:g})",), _normalise_log(log_weights))


def sizes(d: int) -> WeightFamily:
    """Return the d unit vectors; the j-th counts only contributions at coalition size j."""
    d = check_positive_integer("d", d)
    return WeightFamily(tuple(f"size {j}" for j in range(1, d + 1)), np.eye(d))


def first(d: int) -> WeightFamily:
    """Return the weight with only Δ_1: the effect of adding a feature to the empty coalition."""
    return WeightFamily(("first",), np.eye(1, check_positive_integer("d", d)))


def last(d: int) -> WeightFamily:
    """Return the weight with only Δ_d: the effect of adding a feature to all the others."""
    return WeightFamily(("last",), np.eye(1, check_positive_integer("d", d), d - 1))


def shapley(d: int) -> WeightFamily:
    """Return equal weights on all coalition sizes, which give the Shapley value (Equation 3)."""
    return WeightFamily(("Shapley",), np.full((1, check_positive_integer("d", d)), 1.0 / d))


def paper(d: int) -> WeightFamily:
    """Return the paper's 13 weights: first, Beta(32,1) … Beta(1,1) … Beta(1,32), last.

    For d = 1 all 13 are the same vector, and the family has only that one.
    """
    return first(d) | reduce(or_, (_beta(d, *pair) for pair in PAPER_PAIRS)) | last(d)


def wide(d: int) -> WeightFamily:
    """Return the paper's 13 weights, a grid of Beta weights, and Banzhaf for p = 0.1, …, 0.9."""
    probabilities = np.linspace(0.1, 0.9, 9).round(1)
    return paper(d) | beta_grid(d) | reduce(or_, (banzhaf(d, p) for p in probabilities))


REFERENCES: Mapping[str, Callable[[int], WeightFamily]] = {
    "shapley": shapley,
    "first": first,
    "last": last,
}
"""Weights whose curves every explanation reports next to those of the chosen weight."""

FAMILIES: Mapping[str, Callable[[int], WeightFamily]] = {
    build.__name__: build for build in (paper, wide, sizes, shapley, banzhaf, first, last)
}
"""Families by name, as `weightedshap.Explainer` takes them."""


def as_family(family: Any, d: int) -> WeightFamily:
    """Convert a name, a family or a function of d to a `WeightFamily` for d players."""
    if isinstance(family, str):
        family = look_up("weight family", family, FAMILIES)
    built = family
    if not isinstance(family, WeightFamily) and callable(family):
        built = family(d)
    if not isinstance(built, WeightFamily):
        raise TypeError(
            "`family` must be a name, a WeightFamily, or a function d → WeightFamily; got"
            f" {type(built).__name__}."
        )
    if built.d != d:
        raise ValueError(
            f"The weight family is made for d = {built.d} players but the game has {d}."
        )
    return built.warm_up()
