"""W: families of weight vectors over coalition sizes (the w of Equation 5), joined with ``|``.

To add a family, write a function ``d → WeightFamily`` and add one line to `FAMILIES`.
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
    as_numbers_of,
    look_up,
    number_above,
    positive_integer,
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
]
__all__ += ["shapley", "sizes", "wide"]

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
"""(α, β) of the paper's Beta weights. The paper says 13 weights and prints 12; Beta(32, 1) is the
13th."""


@dataclass(frozen=True, eq=False)
class WeightFamily:
    """m labels and vectors (m, d), non-negative rows that sum to one. Two families are compared
    with `equals`.

    >>> (shapley(3) | WeightFamily("mine", [0.5, 0.25, 0.25])).labels
    ('Shapley', 'mine')
    """

    labels: tuple[str, ...]
    vectors: FloatArray

    def __post_init__(self) -> None:
        vectors = np.array(as_numbers_of("vectors", self.vectors), ndmin=2)
        if not isinstance(self.labels, (str, list, tuple)):
            raise TypeError(f"`labels` must be a list of names; got {self.labels!r}.")
        labels = (self.labels,) if isinstance(self.labels, str) else tuple(map(str, self.labels))
        if (
            vectors.ndim != 2
            or vectors.shape[1] < 1
            or len(labels) != len(vectors)
            or not len(labels)
        ):
            got = f"{len(labels)} labels and shape {vectors.shape}"
            raise ValueError(
                f"A family needs one label for each row of `vectors` (m, d); got {got}."
            )
        fit = (np.isfinite(vectors) & (vectors >= 0)).all(axis=1)
        if not fit.all():
            raise ValueError(
                f"Weights must be finite and not negative; {labels[fit.argmin()]!r} is not."
            )
        totals = vectors.sum(axis=1)
        worst = np.abs(totals - 1).argmax()
        if np.abs(totals[worst] - 1) > 1e-9:
            said = f"Weights must sum to one; {labels[worst]!r} sums to {totals[worst]:.6g}."
            raise ValueError(f"{said} Divide it by its sum.")
        vectors.setflags(write=False)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "vectors", vectors)

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def d(self) -> int:
        """Number of coalition sizes, equal to the number of players."""
        return int(self.vectors.shape[1])

    def equals(self, other: object) -> bool:
        """Whether labels and vectors are the same, to the bit."""
        mine = self.vectors
        return (
            isinstance(other, WeightFamily)
            and self.labels == other.labels
            and equal_arrays(mine, other.vectors)
        )

    def __or__(self, other: "WeightFamily") -> "WeightFamily":
        """Both families; of equal vectors the first label stays."""
        if not isinstance(other, WeightFamily):
            return NotImplemented
        if other.d != self.d:
            raise ValueError(
                f"Cannot join weights for d = {self.d} with weights for d = {other.d}."
            )
        labels = self.labels + other.labels
        vectors = np.concatenate([self.vectors, other.vectors])
        kept = [
            m
            for m in range(len(labels))
            if m < len(self) or not _equal(vectors[m], vectors[:m]).any()
        ]
        return WeightFamily(tuple(labels[m] for m in kept), vectors[kept])

    @cached_property
    def with_references(self) -> "WeightFamily":
        """The family, and the Shapley, first and last weights where it lacks them."""
        return self | shapley(self.d) | first(self.d) | last(self.d)

    @cached_property
    def with_sizes(self) -> FloatArray:
        """(M + d, d) the vectors of `with_references`, and all weight on each size: what φ and Δ
        are read off under."""
        return np.concatenate([self.with_references.vectors, np.eye(self.d)])

    @cached_property
    def reference_positions(self) -> tuple[int, int, int]:
        """Where the Shapley, first and last weights stand in `with_references`."""
        vectors = self.with_references.vectors
        uniform, alone, left_out = (
            _equal(make(self.d).vectors[0], vectors).argmax() for make in REFERENCES.values()
        )
        return int(uniform), int(alone), int(left_out)

    @cached_property
    def nearness(self) -> IntArray:
        """(m,) rank of each weight by its L2 distance from uniform, of equals the lower index
        first."""
        distance = np.sqrt(((self.vectors - 1 / self.d) ** 2).sum(axis=1)).round(12)
        return np.argsort(np.argsort(distance, kind="stable"))

    def ready(self) -> Self:
        """The same family, after what every row asks of it is known."""
        _ = self.reference_positions, self.nearness
        return self

    def of_games(self, names: Sequence[str]) -> "WeightFamily":
        """The pairs of every game with every weight, labelled ``game · weight``, game by game."""
        labels = tuple(f"{name} · {label}" for name in names for label in self.labels)
        return WeightFamily(labels, np.tile(self.vectors, (len(names), 1))).ready()

    def index(self, vector: FloatArray) -> int | None:
        """Where `vector` stands in the family, or None."""
        found = np.flatnonzero(_equal(vector, self.vectors))
        return int(found[0]) if len(found) else None

    def phi(self, delta: FloatArray) -> FloatArray:
        """φ_w(x_i) = Σ_j w_j Δ_j(x_i) for every w (Equation 5): (…, d, d) → (…, m, d); NaN where w
        uses a NaN."""
        if not np.isnan(delta).any():
            return np.asarray(self.vectors @ delta)
        used = np.asarray(self.vectors @ np.nan_to_num(delta))
        touched = (self.vectors > 0).astype(float) @ np.isnan(delta)
        return np.where(touched > 0, np.nan, used)

    def weigh(self, delta: FloatArray) -> FloatArray:
        """`phi` with outputs at the end: (…, d, d, k) → (…, m, d, k)."""
        return np.moveaxis(self.phi(np.moveaxis(delta, -1, 0)), 0, -1)


def _equal(vector: FloatArray, vectors: FloatArray) -> BoolArray:
    """(m,) which of `vectors` (m, d) are `vector`, up to rounding."""
    return np.asarray(np.abs(vectors - vector).max(axis=1) < 1e-12)


def beta(d: int, alpha: float, beta: float) -> WeightFamily:
    """w_j = C(d−1, j−1) · B(j+β−1, d−j+α) / B(α, β), the paper's Beta weight.

    Beta(16, 1) favours small coalitions, Beta(1, 16) large ones, Beta(1, 1) is uniform and gives
    the Shapley value. By the ratios ``w_{j+1}/w_j = (d−j)/j · (j+β−1)/(d−j+α−1)`` in log space, so
    nothing overflows at any d.

    Examples
    --------
    >>> beta(3, 1, 1).vectors.round(3)
    array([[0.333, 0.333, 0.333]])
    """
    d = positive_integer("d", d)
    alpha = number_above("alpha", alpha, 0)
    beta = number_above("beta", beta, 0)
    j = np.arange(1, d, dtype=np.float64)
    steps = np.log((d - j) / j) + np.log((j + beta - 1) / (d - j + alpha - 1))
    return WeightFamily((f"Beta({alpha:g},{beta:g})",), _from_log(np.cumsum([0.0, *steps])))


def _from_log(log_weights: FloatArray) -> FloatArray:
    """exp of log weights, scaled to sum to one."""
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def beta_grid(d: int, values: Sequence[float] = (1, 2, 4, 8, 16, 32)) -> WeightFamily:
    """Beta(α, β) for all pairs of `values`, from small coalitions to large ones."""
    if not np.size(given := as_numbers_of("values", values)) or (given <= 0).any():
        raise ValueError(f"`values` must be positive numbers; got {values!r}.")
    pairs = sorted(
        product(given.ravel(), repeat=2), key=lambda pair: (pair[1] / pair[0], sum(pair))
    )
    return reduce(or_, (beta(d, *pair) for pair in pairs))


def banzhaf(d: int, p: float = 0.5) -> WeightFamily:
    """w_j = C(d−1, j−1) p^{j−1} (1−p)^{d−j}: others are known with probability p; 1/2 gives the
    Banzhaf value."""
    d = positive_integer("d", d)
    if isinstance(p, bool) or not isinstance(p, (int, float, np.floating)) or not 0 <= p <= 1:
        raise ValueError(f"Banzhaf weights need a probability 0 ≤ p ≤ 1; got {p!r}.")
    j = np.arange(1, d + 1, dtype=np.float64)
    binomial = np.cumsum([0.0, *np.log((d - j[:-1]) / j[:-1])])  # its logarithm
    weights = _from_log(binomial + special.xlogy(j - 1, p) + special.xlog1py(d - j, -p))
    return WeightFamily((f"Banzhaf({p:g})",), weights)


def sizes(d: int) -> WeightFamily:
    """The d unit vectors: each Δ_j by itself."""
    d = positive_integer("d", d)
    return WeightFamily(tuple(f"size {j}" for j in range(1, d + 1)), np.eye(d))


def first(d: int) -> WeightFamily:
    """All weight on Δ_1: the feature alone."""
    return WeightFamily(("first",), np.eye(1, positive_integer("d", d)))


def last(d: int) -> WeightFamily:
    """All weight on Δ_d: the feature left out of all."""
    return WeightFamily(("last",), np.eye(1, positive_integer("d", d), d - 1))


def shapley(d: int) -> WeightFamily:
    """Equal weight on every size: the Shapley value (Equation 3)."""
    return WeightFamily(("Shapley",), np.full((1, positive_integer("d", d)), 1.0 / d))


def paper(d: int) -> WeightFamily:
    """The paper's 13 weights: first, Beta(32,1) … Beta(1,1) … Beta(1,32), last. For d = 1 they are
    one vector."""
    return first(d) | reduce(or_, (beta(d, *pair) for pair in PAPER_PAIRS)) | last(d)


def wide(d: int) -> WeightFamily:
    """The paper's 13, a grid of two-sided Beta weights, and weighted Banzhaf for p = 0.1 … 0.9."""
    return (
        paper(d)
        | beta_grid(d)
        | reduce(or_, (banzhaf(d, p) for p in np.linspace(0.1, 0.9, 9).round(1)))
    )


REFERENCES: Mapping[str, Callable[[int], WeightFamily]] = {
    "shapley": shapley,
    "first": first,
    "last": last,
}
"""The weights whose curves are always told beside the chosen ones."""

FAMILIES: Mapping[str, Callable[[int], WeightFamily]] = {
    make.__name__: make for make in (paper, wide, sizes, shapley, banzhaf, first, last)
}
"""Families by name, as `weightedshap.Explainer` takes them."""


def as_family(family: Any, d: int) -> WeightFamily:
    """A family for d players from a name, a `WeightFamily`, or a function d → WeightFamily."""
    if isinstance(family, str):
        family = look_up("weight family", family, FAMILIES)
    made = family if isinstance(family, WeightFamily) else family(d) if callable(family) else None
    if not isinstance(made, WeightFamily):
        got = type(family if made is None else made).__name__
        raise TypeError(
            f"`family` must be a name, a WeightFamily, or a function d → WeightFamily; got {got}."
        )
    if made.d != d:
        raise ValueError(
            f"The weight family is made for d = {made.d} players but the game has {d}."
        )
    return made
