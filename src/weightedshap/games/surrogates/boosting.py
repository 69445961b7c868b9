"""Trees of LightGBM that learned games are made of: how they are grown, kept, and read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from weightedshap._checks import FloatArray, IntArray, stored_array
from weightedshap.games.base import ExactFitted
from weightedshap.games.surrogates.data import Encoding
from weightedshap.games.user import FittedOnTable
from weightedshap.inputs import Data, Model, Table

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
LEAST = 1e-30  # LightGBM takes leaves below 1e-35 for zero, and labels above 3e38 for infinite
SMALL = 2_000_000  # cells below which threads cost more than they bring


class Examples(NamedTuple):
    """N rows to learn from."""

    X: FloatArray  # (N, c)
    target: FloatArray  # (N, k)
    share: FloatArray  # (N,) weights


def boost(
    recipe: TreeSurrogate | DistilledTrees,
    seen: Examples,
    held: Examples,
    offset: FloatArray,
    rng: np.random.Generator,
    **more: int | bool,
) -> tuple[Booster, ...]:
    """Trees for each output less its offset (k,), as labels are in single precision; held-out
    errors stop them."""
    import lightgbm

    if recipe.leaves < 2 or recipe.bins < 2:
        raise ValueError(
            f"Trees need at least 2 leaves and 2 bins; got {recipe.leaves} and {recipe.bins}."
        )
    jobs = recipe.n_jobs or (1 if seen.X.size < SMALL else 0)
    grown = {
        "learning_rate": recipe.rate,
        "num_leaves": recipe.leaves,
        "max_bin": recipe.bins,
        "num_threads": jobs,
    }
    targets, held_targets = (
        np.ascontiguousarray((part.target - offset).T) for part in (seen, held)
    )
    seeds = [{"seed": int(rng.integers(2**31))} for _ in targets]
    shared = {"data_random_seed": seeds[0]["seed"]} if len(seeds) > 1 else {}  # one set of bins
    parameters = [{**LEARNING, **BINNING, **grown, **seed, **shared, **more} for seed in seeds]
    data = lightgbm.Dataset(seen.X, targets[0], weight=seen.share, params=parameters[0])
    check = lightgbm.Dataset(held.X, held_targets[0], weight=held.share, reference=data)
    boosters = []
    for target, held_target, own in zip(targets, held_targets, parameters, strict=True):
        if (largest := float(np.abs(target).max())) and not LEAST < largest < 1 / LEAST:
            said = (
                f"Predictions that differ by {largest:.0e} are too small or too large for boosted"
                " trees."
            )
            raise ValueError(
                f"{said} Pass `predict=` a function that returns them in another unit."
            )
        data.set_label(target)
        check.set_label(held_target)
        stop = lightgbm.early_stopping(recipe.patience, verbose=False)
        boosters.append(
            lightgbm.train(own, data, recipe.trees, valid_sets=[check], callbacks=[stop])
        )
    return tuple(boosters)


@dataclass(frozen=True, repr=False)
class Boosted(FittedOnTable):
    """A game of learned trees; a subclass says what becomes of splits on hidden features."""

    encoding: Encoding
    boosters: tuple[Booster, ...]  # one for each output, of each fit
    offset: FloatArray  # (k,) what is added to the mean of the fits
    quality: Mapping[str, Any] = field(default_factory=dict)  # how well they fit

    name: ClassVar[str]
    recipe: ClassVar[str]

    @property
    @abstractmethod
    def games(self) -> Callable[[FloatArray], Any]:
        """Encoded rows (n, c) → the block of their games."""

    @property
    def owner(self) -> IntArray:
        """The player that each column of the trees belongs to."""
        return self.background.player_of_column

    @cached_property
    def info(self) -> Mapping[str, Any]:
        trees, leaves = (
            sum(map(len, parts)) for parts in zip(*((e.roots, e.value) for e in self.ensembles))
        )
        return {**super().info, "game": self.name, "trees": trees, "leaves": leaves, **self.quality}

    @cached_property
    def ensembles(self) -> tuple[Ensemble, ...]:
        """The boosters as flat arrays."""
        from weightedshap.trees.readers import lightgbm_mean

        dumped = [
            [b.dump_model() for b in self.boosters[o :: len(self.offset)]]
            for o in range(len(self.offset))
        ]
        means = (lightgbm_mean(fits).of_players(self.owner) for fits in dumped)
        return tuple(replace(e, offset=float(o)) for e, o in zip(means, self.offset, strict=True))

    def ready(self) -> Self:
        _ = self.games
        return super().ready()

    def block(self, rows: Data) -> Any:
        return self.games(self.encoding(rows))

    def stored(self) -> dict[str, Any]:
        texts = [booster.model_to_string() for booster in self.boosters]
        learned = {"boosters": texts, "offset": self.offset, "encoding": self.encoding.stored()}
        return {"recipe": self.recipe, **learned, "quality": dict(self.quality)}

    @classmethod
    def restored(
        cls,
        content: Mapping[str, Any],
        model: Model,
        background: Table,
        more: int = 0,
        **further: Any,
    ) -> Self:
        """The game that `stored` wrote; its trees see `more` columns than the table has."""
        import lightgbm

        from weightedshap.trees.lightgbm_text import check_own_text

        offset = content.get("offset", np.zeros(len(content["boosters"])))
        k = len(model.chosen)
        if len(offset) != k:
            said = f"The saved game has {len(offset)} outputs but the model has {k} to explain."
            raise ValueError(f"{said} Pass the model, and the outputs, that it was fitted to.")
        texts = [check_own_text(text, len(background.names) + more) for text in content["boosters"]]
        if not texts or len(texts) % len(stored_array("offset", offset, (k,))):
            raise ValueError(f"it holds {len(texts)} ensembles for {k} outputs.")
        boosters = tuple(lightgbm.Booster(model_str=text) for text in texts)
        encoding = Encoding.restored(content["encoding"], background.names)
        return cls(
            model, background, encoding, boosters, offset, dict(content["quality"]), **further
        )


@dataclass(frozen=True, repr=False)
class ReadOff(Boosted, ExactFitted):
    """Learned trees whose Δ is read off."""
