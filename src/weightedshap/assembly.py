"""The blocks of a call, put together into the fields of an Explanation."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weightedshap.checks import Array, FloatArray, IntArray
from weightedshap.selection import Candidates, Selection, select, shared_index
from weightedshap.weights import REFERENCES, WeightFamily

WHOLE = ("contributions", "replicates")  # fields that are there for all rows or not at all
BY_GAME = (*WHOLE, "base_values", "empty", "full")  # fields (n, G, …, k) of every game, one of which wins the row
PLAIN: Mapping[str, Callable[[Array], Any]] = {"stopped": tuple, "n_evaluations": np.asarray}
"""How fields (n,) are told, which have no outputs."""


class Assembled:
    """Blocks of rows put together as they come; only candidates for a weight that all rows share are held."""

    def __init__(
        self, n: int, family: WeightFamily, games: Sequence[str], how: str, known: Sequence[int] | None = None
    ) -> None:
        self.n, self.family, self.games, self.how, self.known = n, family, games, how, known
        self.arrays: dict[str, Any] = {}
        self.lacking: set[str] = set()  # names of arrays that some rows do not have
        self.waiting: list[tuple[slice, Candidates]] = []

    def add(self, part: slice, found: Candidates | Selection) -> None:
        """What was found for some rows."""
        if isinstance(found, Candidates):
            self.waiting.append((part, found))
        else:
            self.put(part, vars(found))

    def put(self, part: slice, arrays: Mapping[str, Array | None]) -> None:
        """Arrays (n, …, k) of some rows; zero where a row has none: rows that know their own Δ have no errors."""
        for name, array in arrays.items():
            if array is None:
                self.lacking.add(name)
                continue
            if name not in self.arrays:
                self.arrays[name] = np.zeros((self.n, *array.shape[1:]), dtype=array.dtype)
            self.arrays[name][part] = array

    def by_game(self) -> dict[str, FloatArray]:
        """What was found for each game, (n, G, …, k)."""
        return {name: self.arrays[name] for name in BY_GAME if name in self.arrays and name not in self.lacking}

    def fields(self, axis: bool) -> dict[str, Any]:
        """The fields of an Explanation; here the axis k is dropped, unless it is seen."""
        if self.waiting:  # for the weight that all rows share
            scores = np.concatenate([one.scores for _, one in self.waiting])
            shared = self.known or shared_index(scores, self.family, self.how)
            for part, one in self.waiting:
                self.put(part, vars(select(one, self.family, np.tile(shared, (len(one.scores), 1)))))
        game = self.arrays["index"] // (len(self.family) // len(self.games))  # (n, k) which one won
        plain = {name: make(self.arrays[name]) for name, make in PLAIN.items() if name in self.arrays}
        rest = {name: array for name, array in self.arrays.items() if name not in (*BY_GAME, *plain)}
        won = {name: _of_winner(array, game) for name, array in self.by_game().items()}
        found = {name: array if axis else array[..., 0] for name, array in (rest | won | {"game": game}).items()}
        references = found.pop("references")
        found["reference_curves"] = {name: references[:, place] for place, name in enumerate(REFERENCES)}
        found["weight_labels"] = np.asarray(self.family.labels)[found.pop("index")]
        found["game_labels"] = np.asarray(self.games)[found.pop("game")]
        if "empty" in found:
            found["endpoint_gaps"] = {end: found.pop(end) for end in ("empty", "full")}
        none = dict.fromkeys(("standard_errors", "shapley_errors", *self.lacking.intersection(WHOLE)))
        return {**none, **found, **plain}


def _of_winner(array: FloatArray, game: IntArray) -> FloatArray:
    """(n, G, …, k) → (n, …, k) of the game (n, k) that won each row; without a copy where there is one game."""
    if array.shape[1] == 1:
        return array[:, 0]
    place = game.reshape(len(game), *(1,) * (array.ndim - 2), -1)
    return np.take_along_axis(array, place, axis=1)[:, 0]
