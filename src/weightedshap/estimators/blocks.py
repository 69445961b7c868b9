"""Δ of a block of rows, and φ under every weight: read off where the game knows it, else estimated row by row."""

from dataclasses import dataclass

import numpy as np

from weightedshap.checks import FloatArray
from weightedshap.contributions import OWN, Contributions
from weightedshap.games.protocols import Block, ExactBlock
from weightedshap.weights import WeightFamily


@dataclass(frozen=True)
class Estimate:
    """What is known of n rows after Algorithm 2."""

    phi: FloatArray  # (n, M, d, k) under the weights of `family.with_references`
    delta: FloatArray | None  # (n, d, d, k); None where it is not kept
    ends: FloatArray  # (n, 2, k) game(∅) and game([d])
    evaluations: tuple[int, ...]  # of each row
    stopped: tuple[str, ...]  # why no more was spent on each row
    replicates: FloatArray | None = None  # (n, c, d, d, k) Δ by chain; None where nothing was sampled


def read_off(block: ExactBlock, family: WeightFamily, keep: bool) -> Estimate:
    """φ of many rows from the game's own Δ, and Δ itself only if it is kept."""
    vectors = family.with_references.vectors
    read = block.semivalues(np.concatenate([vectors, np.eye(block.d)]) if keep else vectors)
    delta = read[:, len(vectors) :] if keep else None
    return Estimate(read[:, : len(vectors)], delta, block.ends(), (0,) * block.n, (OWN,) * block.n)


def estimated(block: Block, found: Contributions, family: WeightFamily) -> Estimate:
    """φ of the only row of a block, from what an estimator `found`."""
    d, chains = block.d, found.replicates
    if not found.visited:  # uniform weights use every cell
        sizes = np.unique(np.argwhere(found.counts == 0)[:, 0]) + 1
        where = f"for some features at sizes {sizes.tolist()}, so the Shapley value is unknown"
        enough = f"{d * (d - 3) + 2 * d + 2:,} visit every feature at every size once"
        raise ValueError(f"No coalition was drawn {where}. Raise `evaluations`: {enough}.")
    delta = found.mean.reshape(1, d, d, -1)
    replicates = None if chains is None else chains.reshape(1, *chains.shape[:3], -1)
    phi = family.with_references.weigh(delta)
    return Estimate(phi, delta, block.ends(), (found.evaluations,), (found.stopped,), replicates)
