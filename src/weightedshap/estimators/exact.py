"""Δ without sampling: the game's own closed form if it has one, else all 2^d coalitions. Of one
game, or of a block."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from weightedshap._checks import FloatArray, Seed
from weightedshap.coalitions import all_coalitions, batches
from weightedshap.contributions import OWN, Contributions, summed, with_outputs
from weightedshap.games.base import Block, ExactBlock
from weightedshap.games.user import CheckedGame, checked
from weightedshap.weights import WeightFamily

MOST_PLAYERS = 20  # a million coalitions
BATCH = 2**15  # coalitions evaluated at once


def exact(game: Any, *, rng: Seed = None) -> Contributions:
    """The game's own Δ if it knows it, else Δ by enumeration of all 2^d coalitions (d ≤ 20).

    `rng` is accepted so that all estimators are called alike; nothing is drawn.
    """
    game = checked(game)
    return enumerate_game(game) if game.contributions is None else game.contributions()


def enumerate_game(game: Any) -> Contributions:
    """Δ_j(x_i) of Equation 2 with every coalition evaluated once.

    1. Evaluate v on all 2^d coalitions, in batches.
    2. For each feature i take v(S ∪ {i}) − v(S) for all S without i.
    3. Average these differences by the size of S.
    """
    game = checked(game)
    d = game.d
    if d > MOST_PLAYERS:
        instead = (
            "Use a sampler (estimator='permutation'), or a game that knows its own contributions."
        )
        raise ValueError(
            f"Enumeration of 2^{d} coalitions is out of reach (at most d = {MOST_PLAYERS})."
            f" {instead}"
        )
    values = all_values(game)
    sizes = np.bitwise_count(np.arange(2 ** (d - 1), dtype=np.uint32)).astype(np.intp)
    sums = np.stack([summed(differences(values, i), sizes, d) for i in range(d)], axis=1)
    mean = sums / with_outputs(np.bincount(sizes).astype(np.float64), sums)
    return Contributions.known(mean, 2**d, f"exact: all {2**d:,} coalitions evaluated")


def all_values(game: CheckedGame) -> FloatArray:
    """(2^d[, k]) values of all coalitions, in the numbering of `all_coalitions`."""
    numbers = batches(2**game.d, BATCH)
    return np.concatenate(
        [game(all_coalitions(game.d, batch.start, batch.stop)) for batch in numbers]
    )


def differences(values: FloatArray, i: int) -> FloatArray:
    """(2^{d−1}[, k]) v(S ∪ {i}) − v(S) for all S without i, in the order of S with bit i taken
    out."""
    halves = values.reshape(-1, 2, 2**i, *values.shape[1:])
    return np.asarray(halves[:, 1] - halves[:, 0]).reshape(-1, *values.shape[1:])


@dataclass(frozen=True)
class Estimate:
    """What is known of n rows after Algorithm 2."""

    phi: FloatArray  # (n, M, d, k) under the weights of `family.with_references`
    delta: FloatArray | None  # (n, d, d, k); None where it is not kept
    ends: FloatArray  # (n, 2, k) game(∅) and game([d])
    evaluations: tuple[int, ...]  # of each row
    stopped: tuple[str, ...]  # why no more was spent on each row
    replicates: FloatArray | None = (
        None  # (n, c, d, d, k) Δ by chain; None where nothing was sampled
    )


def read_off(block: ExactBlock, family: WeightFamily, keep: bool) -> Estimate:
    """φ of many rows from the game's own Δ, and Δ itself only if it is kept."""
    m = len(family.with_references)
    vectors = family.with_sizes if keep else family.with_references.vectors
    read = block.semivalues(vectors)
    return Estimate(
        read[:, :m], read[:, m:] if keep else None, block.ends(), (0,) * block.n, (OWN,) * block.n
    )


def estimated(block: Block, found: Contributions, family: WeightFamily) -> Estimate:
    """φ of the only row of a block, from what an estimator `found`."""
    d = block.d
    chains = found.replicates
    if not found.visited:  # uniform weights use every cell
        sizes = np.unique(np.argwhere(found.counts == 0)[:, 0]) + 1
        where = f"for some features at sizes {sizes.tolist()}, so the Shapley value is unknown"
        enough = f"{d * (d - 3) + 2 * d + 2:,} visit every feature at every size once"
        raise ValueError(f"No coalition was drawn {where}. Raise `evaluations`: {enough}.")
    delta = found.mean.reshape(1, d, d, -1)
    replicates = None if chains is None else chains.reshape(1, *chains.shape[:3], -1)
    phi = family.with_references.weigh(delta)
    return Estimate(phi, delta, block.ends(), (found.evaluations,), (found.stopped,), replicates)


def errors_of(
    replicates: FloatArray | None, phi: FloatArray, full: WeightFamily
) -> FloatArray | None:
    """(n, M, d, k) standard errors of φ (n, M, d, k) under the weights `full`, None without chains
    (n, c, d, d, k).

    They are the spread over the chains, which count alike, that visited all cells a weight uses;
    NaN with fewer than 2.
    """
    if replicates is None:
        return None
    deviation = np.moveaxis(full.weigh(replicates), 1, 0) - phi  # (c, n, M, d, k)
    usable = ~np.isnan(deviation).any(axis=-2, keepdims=True)
    n = usable.sum(axis=0)  # (n, M, 1, k)
    centre = deviation.sum(axis=0, where=usable) / np.maximum(n, 1)
    variance = ((deviation - centre) ** 2).sum(axis=0, where=usable) / np.maximum(n * (n - 1), 1)
    return np.where(n > 1, np.sqrt(variance), np.nan)
