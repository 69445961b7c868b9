"""Train boosted trees for learned games with LightGBM, store them, and read them as arrays.

`boost` trains, and `BoostedGame` is the base class of the games made of such trees, in
`tree_surrogate`, `imputation` and `distilled`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from weightedshap._checks import FloatArray, IntArray, check_array
from weightedshap.games.base import BaseGame
from weightedshap.games.surrogates.data import Encoding
from weightedshap.inputs import Model, Table

if TYPE_CHECKING:
    from lightgbm import Booster

    from weightedshap.games.surrogates.distilled import DistilledTrees
    from weightedshap.games.surrogates.tree_surrogate import TreeSurrogate
    from weightedshap.trees.ensembles import Ensemble

LEARNING = {
    "objective": "regression",
    "metric": "l2",
    "deterministic": True,
    "force_row_wise": True,
    "verbose": -1,
}
BINNING = {"bin_construct_sample_cnt": 50_000, "enable_bundle": False}
# LightGBM takes leaves below 1e-35 for zero, and labels above 3e38 for infinite.
LEAST = 1e-30
# With fewer cells in the table, threads cost more time than they save.
SMALL = 2_000_000


class TrainingExamples(NamedTuple):
    """N training examples: input columns, targets and weights."""

    X: FloatArray  # (N, c)
    target: FloatArray  # (N, k)
    weight: FloatArray  # (N,)


def boost(
    recipe: TreeSurrogate | DistilledTrees,
    train: TrainingExamples,
    test: TrainingExamples,
    offset: FloatArray,
    rng: np.random.Generator,
    **parameters: int | bool,
) -> tuple[Booster, ...]:
    """Train boosted trees for each output with LightGBM, until the error on `test` stops falling.

    `offset` (k,) is subtracted from the targets, because LightGBM stores labels in single
    precision. `parameters` are passed to LightGBM in addition to those of the recipe.
    """
    import lightgbm

    if recipe.leaves < 2 or recipe.bins < 2:
        raise ValueError(
            f"Trees need at least 2 leaves and 2 bins; got {recipe.leaves} and {recipe.bins}."
        )
    targets = np.ascontiguousarray((train.target - offset).T)  # (k, N)
    test_targets = np.ascontiguousarray((test.target - offset).T)
    common = {
        **LEARNING,
        **BINNING,
        "learning_rate": recipe.rate,
        "num_leaves": recipe.leaves,
        "max_bin": recipe.bins,
        "num_threads": recipe.n_jobs or (1 if train.X.size < SMALL else 0),
        **parameters,
    }
    seeds = [int(rng.integers(2**31)) for _ in targets]
    if len(seeds) > 1:
        # All outputs use the same bins.
        common["data_random_seed"] = seeds[0]
    by_output = [{**common, "seed": seed} for seed in seeds]

    data = lightgbm.Dataset(train.X, targets[0], weight=train.weight, params=by_output[0])
    validation = lightgbm.Dataset(test.X, test_targets[0], weight=test.weight, reference=data)
    boosters = []
    for target, test_target, own in zip(targets, test_targets, by_output, strict=True):
        _check_range(target)
        data.set_label(target)
        validation.set_label(test_target)
        stop = lightgbm.early_stopping(recipe.patience, verbose=False)
        booster = lightgbm.train(own, data, recipe.trees, valid_sets=[validation], callbacks=[stop])
        boosters.append(booster)
    return tuple(boosters)


def _check_range(target: FloatArray) -> None:
    """Raise an error if targets are too large or too small for single precision."""
    largest = float(np.abs(target).max())
    if largest and not LEAST < largest < 1 / LEAST:
        raise ValueError(
            f"Predictions that differ by {largest:.0e} are too small or too large for boosted"
            " trees. Pass `predict=` a function that returns them in another unit."
        )


@dataclass(frozen=True, repr=False)
class BoostedGame(BaseGame):
    """A game learned by boosted trees; a subclass defines what happens at hidden features."""

    recipe: ClassVar[str]  # the name of the recipe whose `from_state` rebuilds the game

    model: Model
    background: Table
    encoding: Encoding
    boosters: tuple[Booster, ...]  # one for each output of each fit
    offset: FloatArray  # (k,) a constant that is added to the mean of the fits
    quality: Mapping[str, Any] = field(default_factory=dict)  # errors of the fit, for `info`

    @property
    def player_of_input(self) -> IntArray:
        """The player that each input column of the trees belongs to, as an array."""
        return self.background.player_of_column

    @cached_property
    def info(self) -> Mapping[str, Any]:
        return {
            **super().info,
            "game": self.label,
            "trees": sum(len(e.roots) for e in self.ensembles),
            "leaves": sum(len(e.value) for e in self.ensembles),
            **self.quality,
        }

    @cached_property
    def ensembles(self) -> tuple[Ensemble, ...]:
        """One tree ensemble (flat arrays) for each output, averaged over repeated fits."""
        from weightedshap.trees.readers import lightgbm_mean

        k = len(self.offset)
        ensembles = []
        for o in range(k):
            fits = [booster.dump_model() for booster in self.boosters[o::k]]
            mean = lightgbm_mean(fits).with_players(self.player_of_input)
            ensembles.append(replace(mean, offset=float(self.offset[o])))
        return tuple(ensembles)

    def state(self) -> dict[str, Any]:
        return {
            "recipe": self.recipe,
            "boosters": [booster.model_to_string() for booster in self.boosters],
            "offset": self.offset,
            "encoding": self.encoding.state(),
            "quality": dict(self.quality),
        }

    @classmethod
    def from_state(
        cls,
        content: Mapping[str, Any],
        model: Model,
        background: Table,
        extra_columns: int = 0,
        **fields: Any,
    ) -> Self:
        """Rebuild the game from the dict `content` that `state` returned.

        The trees have `extra_columns` more input columns than the table. `fields` are the further
        fields of a subclass.
        """
        import lightgbm

        from weightedshap.trees.lightgbm_text import check_own_text

        offset = content.get("offset", np.zeros(len(content["boosters"])))
        k = len(model.output_positions)
        if len(offset) != k:
            raise ValueError(
                f"The saved game has {len(offset)} outputs but the model has {k} to explain. Pass"
                " the model, and the outputs, that it was fitted to."
            )
        n_columns = len(background.names) + extra_columns
        texts = [check_own_text(text, n_columns) for text in content["boosters"]]
        if not texts or len(texts) % len(check_array("offset", offset, (k,))):
            raise ValueError(f"it holds {len(texts)} ensembles for {k} outputs.")
        boosters = tuple(lightgbm.Booster(model_str=text) for text in texts)
        encoding = Encoding.from_state(content["encoding"], background.names)
        quality = dict(content["quality"])
        return cls(model, background, encoding, boosters, offset, quality, **fields)
