"""Links from the raw scale, on which trees add up, to the scale of a model's predictions.

A link is found by comparing its results with the predictions on rows, not by the name of the
model. Tree games and anchored judges use it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from weightedshap._checks import FloatArray
from weightedshap._lazy import special

# A relative tolerance: libraries add up trees in single precision.
CLOSE = 1e-5

LINKS: Mapping[str, tuple[str | None, Callable[[FloatArray], FloatArray]]] = {
    "identity": (None, lambda raw: raw),
    "sigmoid": ("log-odds", lambda raw: special.expit(raw)),
    "exp": ("logarithm of the prediction", np.exp),
    "square": ("square root of the prediction", lambda raw: np.sign(raw) * raw**2),
}
"""Links of one output, by name: the name of the raw scale, and the function to predictions."""


def _one_vs_rest(raw: FloatArray) -> FloatArray:
    """Return the sigmoid of each class, divided by the sum over all classes unless that is 0."""
    alone = special.expit(raw)
    total = alone.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(alone, total, out=alone, where=total != 0))


SHARED: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "softmax": lambda raw: special.softmax(raw, axis=-1),
    "one_vs_rest": _one_vs_rest,
}
"""Links of several classes (…, K), by name: functions to probabilities that add up to 1."""


@dataclass(frozen=True)
class Link:
    """A function from K raw outputs of a model to the k explained predictions."""

    name: str  # a key of `LINKS` or `SHARED`
    picked: tuple[int, ...] = ()  # for a link in `SHARED`: the k classes that are explained

    @property
    def shared(self) -> bool:
        """Whether each prediction depends on the raw outputs of all classes."""
        return self.name in SHARED

    def __call__(self, raw: FloatArray) -> FloatArray:
        """Return the predictions (…, k) for raw outputs (…, K)."""
        if self.shared:
            return np.asarray(SHARED[self.name](raw)[..., list(self.picked)])
        with np.errstate(over="ignore"):
            return np.asarray(LINKS[self.name][1](raw))


def link_between(raw: FloatArray, f: FloatArray) -> Link | None:
    """Return the link in `LINKS` from raw outputs (n, k) to predictions f (n, k), or None."""
    return next((link for link in map(Link, LINKS) if are_close(link(raw), f)), None)


def link_among(raw: FloatArray, f: FloatArray, picked: tuple[int, ...]) -> Link | None:
    """Return the link in `SHARED` from K raw outputs (n, K) to predictions f (n, k), or None.

    `picked` are the positions of the k explained classes among all K.
    """
    return next((link for name in SHARED if are_close((link := Link(name, picked))(raw), f)), None)


def raw_scale_name(link: str) -> dict[str, str]:
    """Return ``{"scale": name}`` for the raw scale of a link, or ``{}`` if it has no name."""
    scale = LINKS.get(link, (None,))[0]
    return {"scale": scale} if scale else {}


def are_close(one: FloatArray, other: FloatArray) -> bool:
    """Return whether two arrays of predictions are equal up to rounding."""
    return one.shape == other.shape and bool(
        np.abs(one - other).max() <= CLOSE * (1 + np.abs(other).max())
    )


def is_monotone(raw: FloatArray, f: FloatArray) -> bool:
    """Return whether the predictions f (n, k) never fall, in any column, as `raw` (n, k) rises."""
    if raw.shape != f.shape:
        return False
    rising = np.take_along_axis(f, np.argsort(raw, axis=0, kind="stable"), axis=0)
    return bool((np.diff(rising, axis=0) >= -CLOSE * (1 + np.abs(f).max())).all())
