"""From the scale on which trees add up to the one on which their model predicts: tried on rows,
never guessed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from weightedshap._checks import FloatArray
from weightedshap._lazy import special

CLOSE = 1e-5  # relative: libraries add up trees in single precision

LINKS: Mapping[str, tuple[str | None, Callable[[FloatArray], FloatArray]]] = {
    "identity": (None, lambda raw: raw),
    "sigmoid": ("log-odds", lambda raw: special.expit(raw)),
    "exp": ("logarithm of the prediction", np.exp),
    "square": ("square root of the prediction", lambda raw: np.sign(raw) * raw**2),
}
"""Links of one output: what raw numbers are called, and how they become a prediction."""


def _one_vs_rest(raw: FloatArray) -> FloatArray:
    """Return the probability of each class by itself over the sum of all, where that is not
    zero."""
    alone = special.expit(raw)
    total = alone.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(alone, total, out=alone, where=total != 0))


SHARED: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "softmax": lambda raw: special.softmax(raw, axis=-1),
    "one_vs_rest": _one_vs_rest,
}
"""Links of all classes (…, K), which share out one among them."""


@dataclass(frozen=True)
class Link:
    """g: raw numbers (…, K) → predictions (…, k)."""

    name: str  # of `LINKS` or `SHARED`
    picked: tuple[int, ...] = ()  # classes looked at, of those that a shared link shares out among

    @property
    def shared(self) -> bool:
        """Whether every class is needed."""
        return self.name in SHARED

    def __call__(self, raw: FloatArray) -> FloatArray:
        if self.shared:
            return np.asarray(SHARED[self.name](raw)[..., list(self.picked)])
        with np.errstate(over="ignore"):
            return np.asarray(LINKS[self.name][1](raw))


def link_between(raw: FloatArray, f: FloatArray) -> Link | None:
    """The link of one output that turns raw numbers (n, k) into predictions f (n, k)."""
    return next((link for link in map(Link, LINKS) if agree(link(raw), f)), None)


def link_among(raw: FloatArray, f: FloatArray, picked: tuple[int, ...]) -> Link | None:
    """Return the link of all classes that turns raw numbers (n, K) into f (n, k) of those
    picked."""
    return next((link for name in SHARED if agree((link := Link(name, picked))(raw), f)), None)


def name_of_raw(link: str) -> dict[str, str]:
    """What raw numbers under a link are called, for ``info``; nothing where they have no name."""
    return {"scale": scale} if (scale := LINKS.get(link, (None,))[0]) else {}


def agree(one: FloatArray, other: FloatArray) -> bool:
    """Whether two tables of predictions are the same but for rounding."""
    return one.shape == other.shape and bool(
        np.abs(one - other).max() <= CLOSE * (1 + np.abs(other).max())
    )


def follows(raw: FloatArray, f: FloatArray) -> bool:
    """Whether each prediction (n, k) rises with its raw number, by whatever link."""
    if raw.shape != f.shape:
        return False
    rising = np.take_along_axis(f, np.argsort(raw, axis=0, kind="stable"), axis=0)
    return bool((np.diff(rising, axis=0) >= -CLOSE * (1 + np.abs(f).max())).all())
