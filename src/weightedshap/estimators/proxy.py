"""Boosted trees fitted to evaluations of a costly game, read out exactly; the remainder is sampled."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from weightedshap.checks import FloatArray, IntArray, as_generator
from weightedshap.contributions import Contributions
from weightedshap.estimators.parities import Parities
from weightedshap.estimators.strata import Fit, Sample, budget_of, estimate
from weightedshap.games.wrappers import checked

BINS = {"max_bin": 3, "verbosity": -1}  # a mask has two values
LEARNING = {"objective": "regression", "min_data_in_leaf": 5, "lambda_l2": 1.0, **BINS}
REPEATABLE = {"num_threads": 1, "deterministic": True, "force_col_wise": True, "seed": 0}


def proxy(
    game: Any,
    *,
    evaluations: int | None = None,
    rng: np.random.Generator | int | None = None,
    trees: int = 400,
    leaves: int = 15,
    rate: float = 0.1,
) -> Contributions:
    """Estimate every Δ_j(x_i) with boosted trees in the place of the game, and correct what they miss.

    1. Draw coalitions as `stratified` does, in folds.
    2. For every group of folds fit a polynomial of order 1 and then LightGBM, on 0/1 masks, to the others.
    3. Both know their Δ exactly: the trees by their leaves 1[A ⊆ S, B ∩ S = ∅].
    4. Add Δ of the remainder by the means of the fold; average the folds.

    Trees find a few strong interactions of any order among many features. Bias and errors are those of `stratified`.

    Parameters
    ----------
    evaluations : a hard budget; by default max(2,000, 100 d)
    trees, leaves, rate : of LightGBM; fewer trees where the error on a part of the others stops falling
    """
    game, rng = checked(game), as_generator(rng)
    budget, boosted = budget_of(evaluations, game.d, "the proxy"), BoostedTrees(trees, leaves, rate)
    return estimate(game, budget, rng, rough=Parities(rounds=0), crossfit=boosted, who="proxy")


@dataclass(frozen=True)
class BoostedTrees:
    """LightGBM on what polynomials of order 1 leave, one ensemble for each group of folds."""

    trees: int
    leaves: int
    rate: float

    def __call__(self, sample: Sample, y: FloatArray) -> Fit:
        start = Parities(rounds=0)(sample, y)
        whole, *groups = sample.groups
        found = []
        for g, predicted in enumerate(start.predicted):
            others = [rows for h, rows in enumerate(groups) if h != g]
            held = others.pop(g % len(others))
            found.append(self._boost(sample, y - predicted, np.concatenate([whole, *others]), held))
        delta, values = map(np.stack, zip(*found, strict=True))
        return Fit(start.delta + delta, start.predicted + values)

    def _boost(self, sample: Sample, y: FloatArray, seen: IntArray, held: IntArray) -> tuple[FloatArray, FloatArray]:
        """Δ of an ensemble fitted to the rows `seen` and stopped by the rows `held`, and its values everywhere."""
        import lightgbm

        from weightedshap.games.tree_blocks import mask_game
        from weightedshap.trees.readers import lightgbm_ensembles

        masks = sample.coalitions.astype(np.float32)
        scale = float(np.sqrt(np.mean(y[seen] ** 2))) or 1.0
        train = lightgbm.Dataset(masks[seen], y[seen] / scale, params=BINS)
        valid = train.create_valid(masks[held], y[held] / scale)
        settings = LEARNING | REPEATABLE | {"num_leaves": self.leaves, "learning_rate": self.rate}
        patience = lightgbm.early_stopping(20, verbose=False)
        booster = lightgbm.train(settings, train, self.trees, valid_sets=[valid], callbacks=[patience])
        game = mask_game(lightgbm_ensembles(booster.dump_model(), scale), sample.d)
        return game.contributions().mean, game(sample.coalitions)
