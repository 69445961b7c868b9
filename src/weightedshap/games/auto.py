"""Whichever surrogate predicts held-out rows better, with a head start for the one that needs no sampling."""

from copy import deepcopy
from dataclasses import dataclass, field, replace
from importlib.util import find_spec

import numpy as np

from weightedshap.checks import Seed
from weightedshap.games.neural_surrogate import FittedNeuralSurrogate, NeuralSurrogate
from weightedshap.games.surrogate import Split, held_out_masks
from weightedshap.games.tree_surrogate import LearnedTrees, TreeSurrogate
from weightedshap.games.wrappers import wrapped
from weightedshap.inputs import Data

FittedSurrogate = LearnedTrees | FittedNeuralSurrogate


@dataclass(frozen=True)
class Auto:
    """The tree surrogate, or the network where its held-out error is lower by at least a share `gain`.

    Both learn from the same rows and are judged on the same coalitions of the same held-out rows. Contributions of the
    trees are exact while those of the network are sampled, so the network has to be clearly better. Where it needs
    torch and there is none, the trees are taken. ``info["auto"]`` says which was taken and by how much the other lost.
    """

    gain: float = 0.1
    tree: TreeSurrogate = field(default_factory=TreeSurrogate)
    network: NeuralSurrogate = field(default_factory=NeuralSurrogate)

    def fit(self, model: object, background: Data, rng: Seed = None) -> FittedSurrogate:
        """Fit both and keep one."""
        model, table, rng = wrapped(model, background, rng)
        learning = np.random.default_rng(int(rng.integers(2**63)))
        split = Split.of(model, table, self.tree.held_out, learning)
        tree = self.tree.fit_split(model, table, split, deepcopy(learning))  # as it would learn by itself
        if self.network.engine == "torch" and find_spec("torch") is None:
            return _with(tree, auto='tree_surrogate; no network without torch (pip install "weightedshap[neural]")')
        network = replace(self.network, held_out=self.tree.held_out).fit_split(model, table, split, learning)
        held = held_out_masks(split.test, table.d, rng)
        rows, f_x = table.take(held.row), split.f[held.row]
        own, other = (float(((game.masked(rows, held.coalition) - f_x) ** 2).mean()) for game in (tree, network))
        gain, facts = 1 - other / own if own > 0 else 0.0, {"tree_error": own, "network_error": other}
        verdict = f"the network's held-out error is {abs(gain):.1%} {'lower' if gain >= 0 else 'higher'}"
        if gain >= self.gain:
            return _with(network, auto=f"neural_surrogate; {verdict}", **facts)
        return _with(tree, auto=f"tree_surrogate; {verdict}, and must be {self.gain:.0%} lower", **facts)


def _with(fitted: FittedSurrogate, **facts: object) -> FittedSurrogate:
    return replace(fitted, quality={**fitted.quality, **facts})
