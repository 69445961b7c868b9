"""The games on the rows of a call: what is told of them, who judges their contributions, and what
is chosen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from weightedshap._checks import Array, FloatArray, IntArray
from weightedshap.config import Fits, Method, Setting
from weightedshap.estimators.exact import Estimate, errors_of
from weightedshap.games.base import Block
from weightedshap.games.rows import Rows, parts_of
from weightedshap.inputs import Data
from weightedshap.selection import (
    SHARED,
    Candidates,
    Selection,
    candidates,
    paired,
    select,
    shared_index,
)
from weightedshap.utilities import Utility
from weightedshap.weights import REFERENCES, WeightFamily

KEEP_BYTES = 2**30  # the Δ that is kept unasked
WHOLE = ("contributions", "replicates")  # fields that are there for all rows or not at all
# Fields (n, G, …, k) of every game, one of which wins the row.
BY_GAME = (
    *WHOLE,
    "base_values",
    "empty",
    "full",
)
# Fields (n,).
WITHOUT_OUTPUTS: Mapping[str, Callable[[Array], Any]] = {
    "stopped": tuple,
    "n_evaluations": np.asarray,
}

Found = tuple[FloatArray, FloatArray | None]
"""What is known of a game at n rows: φ (n, M, d, k), and chains (n, c, d, d, k) where it was
sampled."""


@dataclass(frozen=True)
class Weighing:
    """Algorithm 1 on the rows of a call; an Explanation holds on to it, to be weighed anew."""

    method: Method
    names: tuple[str, ...]  # of the games that compete, or of the only one
    explained: tuple[Rows, ...]  # these games on all rows, whose Δ is weighted
    judge: Rows  # the game on all rows that curves are drawn on and weights are scored by
    # Fits the game that a utility may ask for; None where there is no model.
    setting: Setting | None
    kept: Mapping[str, FloatArray] | None = (
        None  # (n, G, …, k) what is known of several games, see `BY_GAME`
    )

    @classmethod
    def of(cls, setting: Setting, fits: Fits, rows: Data) -> Self:
        """The games of an explainer on aligned rows."""
        explained = tuple(Rows.of(game, rows, by_block=True) for game in fits.games)
        judge = explained[0].under(fits.judge)
        if judge.f_x.shape != explained[0].f_x.shape:
            counts = f"{judge.f_x.shape[1]} outputs, but {explained[0].f_x.shape[1]} are explained"
            raise ValueError(f"The judge has {counts}. Give a judge with one output for each.")
        return cls(setting.method, fits.names, explained, judge, setting)

    def ask(self, part: slice) -> None:
        """f(x) of some rows, where it was left to their block."""
        for rows in (*self.explained, self.judge):
            rows.ask(part, self.explained[0])

    def know(self, part: slice, facts: Mapping[str, Array | None]) -> None:
        """Take f(x) over from what is told of some rows: another process may have asked."""
        self.explained[0].f_x[part], self.judge.f_x[part] = (
            facts["predictions"],
            facts["judge_predictions"],
        )

    @cached_property
    def family(self) -> WeightFamily:
        """What is chosen from: weights, or pairs of a game and a weight."""
        return (
            self.method.family if len(self.names) == 1 else self.method.family.of_games(self.names)
        )

    def choose(
        self, scorer: Rows, part: slice, block: Block | None, found: Sequence[Found]
    ) -> Candidates | Selection:
        """T of every weight, and w*, from what is known of every game; candidates where rows share
        a weight."""
        family = self.method.family
        pairs = self.family
        judge = self.judge
        judging = judge.view(part, block if judge is self.explained[0] else None)
        scoring = judging if scorer is judge else scorer.view(part)
        errors = [errors_of(chains, phi, family.with_references) for phi, chains in found]
        known = [
            np.zeros_like(phi) if e is None else e
            for e, (phi, _) in zip(errors, found, strict=True)
        ]
        unsure = None if all(e is None for e in errors) else paired(known, len(family))
        phi = paired([phi for phi, _ in found], len(family))
        scored = candidates(judging, scoring, phi, unsure, pairs, self.method.utility)
        return scored if self.method.select in SHARED else select(scored, pairs)

    @property
    def keeps_delta(self) -> bool:
        """Whether Δ of all rows is kept: if asked for, or small enough to keep unasked."""
        # Of each game, and of the one that wins the row.
        tables = len(self.names) + (len(self.names) > 1)
        size = 8 * self.method.family.d**2 * self.judge.f_x.size * tables
        return size <= KEEP_BYTES if self.method.keep == "auto" else bool(self.method.keep)

    def facts(self, part: slice, found: Sequence[Estimate], keep: bool) -> dict[str, Array | None]:
        """What is told of some rows whatever weight is chosen; of every game (n, G, …, k) where
        games differ."""
        f_x = self.explained[0].f_x[part]
        ends = np.stack([one.ends for one in found], axis=1)  # (n, G, 2, k)
        expected = np.stack([np.atleast_1d(rows.fitted.mean_prediction) for rows in self.explained])
        # That of one game is large, and not copied below.
        deltas = [np.asarray(one.delta) for one in found if keep]
        reasons = zip(*(one.stopped for one in found), strict=True)  # of each row, by game
        several = (
            [" · ".join(map("{}: {}".format, self.names, whys)) for whys in reasons]
            if len(found) > 1
            else None
        )
        return {
            "predictions": f_x,
            "judge_predictions": self.judge.f_x[part],
            "base_values": ends[:, :, 0],
            "empty": ends[:, :, 0] - expected,
            "full": ends[:, :, 1] - f_x[:, None],
            "contributions": (deltas[0][:, None] if len(deltas) == 1 else np.stack(deltas, axis=1))
            if keep
            else None,
            "replicates": self._chains(found) if keep else None,
            "n_evaluations": np.sum([one.evaluations for one in found], axis=0),
            "stopped": np.array(several or found[0].stopped, dtype=object),
        }

    def _chains(self, found: Sequence[Estimate]) -> FloatArray | None:
        """(n, G, c, d, d, k) the chains held for later: of all games or of none; an exact Δ stands
        in each of them."""
        drawn = [one.replicates for one in found if one.replicates is not None]
        alike = len({chains.shape for chains in drawn}) == 1
        if not alike or sum(chains.nbytes for chains in drawn) * len(self.judge) > KEEP_BYTES:
            return None
        each = [
            np.asarray(one.delta)[:, None] if one.replicates is None else one.replicates
            for one in found
        ]
        return np.stack([np.broadcast_to(chains, drawn[0].shape) for chains in each], axis=1)

    def scorer(self, utility: Utility) -> Rows:
        """The rows under the game that `utility` looks at: the judge, unless it asks for
        another."""
        if utility.game is None:
            return self.judge
        if self.setting is None:
            needs = "which needs a model and a background: use weightedshap.Explainer"
            raise ValueError(
                f"The utility {utility.name!r} looks at the {utility.game} game, {needs}."
            )
        return self.setting.scorer(utility, self.explained[0])

    def weigh(
        self,
        delta: FloatArray,
        chains: FloatArray | None,
        family: WeightFamily | None,
        utility: Utility,
        how: str,
    ) -> dict[str, Any]:
        """The fields of an Explanation that depend on the weights, for a Δ that is known
        already."""
        weights = self.method.family if family is None else family
        other = replace(
            self,
            method=replace(self.method, family=weights, utility=utility, select=how, shared=None),
        )
        (n, d) = delta.shape[:2]
        scorer = self.scorer(utility)
        result = Assembled(other)
        only = (
            {}
            if chains is None
            else {"replicates": chains.reshape(n, 1, chains.shape[1], d, d, -1)}
        )
        known = self.kept or {"contributions": delta.reshape(n, 1, d, d, -1), **only}
        for part in parts_of(self.explained, self.judge, weights.d, not utility.one_row):
            deltas = np.moveaxis(known["contributions"][part], 1, 0)
            drawn = (
                np.moveaxis(known["replicates"][part], 1, 0)
                if "replicates" in known
                else [None] * len(deltas)
            )
            phi = map(weights.with_references.weigh, deltas)
            result.add(part, other.choose(scorer, part, None, list(zip(phi, drawn, strict=True))))
        if self.kept:
            result.put(slice(None), self.kept)
        return result.fields() | {"family": other.family, "_weigher": other}

    def take(self, rows: IntArray, outputs: IntArray | int | None) -> Self:
        """The same for some of the rows and outputs, as `Rows.take` has it."""
        explained = tuple(game.take(rows, outputs) for game in self.explained)
        judge = explained[0] if self.judge is self.explained[0] else self.judge.take(rows, outputs)
        places = slice(None) if outputs is None else np.atleast_1d(outputs)
        kept = (
            None
            if self.kept is None
            else {name: array[rows][..., places] for name, array in self.kept.items()}
        )
        return replace(self, explained=explained, judge=judge, kept=kept)

    @classmethod
    def joined(cls, parts: Sequence[Self | None]) -> Self | None:
        """All rows of these; None if they are not one explainer's work."""
        first = parts[0]
        known = [part for part in parts if part is not None]
        if first is None or len(known) < len(parts) or not all(map(first._is_like, known)):
            return None
        explained = tuple(
            Rows.joined(rows) for rows in zip(*(part.explained for part in known), strict=True)
        )
        judge = (
            explained[0]
            if first.judge is first.explained[0]
            else Rows.joined([part.judge for part in known])
        )
        tables = [part.kept or {} for part in known]
        together = set(tables[0]).intersection(*tables)
        kept = {
            name: np.concatenate([table[name] for table in tables]) for name in together
        } or None
        return replace(first, explained=explained, judge=judge, kept=kept)

    def _is_like(self, other: Self) -> bool:
        """Whether another is one of the same games, judge and outputs."""
        pairs = zip((*self.explained, self.judge), (*other.explained, other.judge), strict=False)
        return self.names == other.names and all(one.is_like(two) for one, two in pairs)

    def about(self) -> dict[str, Any]:
        """The fields of an Explanation that tell of games and choices."""
        first = self.explained[0]
        infos = [_told(rows) for rows in self.explained]
        info = infos[0]
        if len(infos) > 1:  # their scale, and each by its name
            shared = {"space": "value"} | {
                key: info[key] for key in ("space", "scale") if key in info
            }
            info = {
                "game": ", ".join(self.names),
                **shared,
                "games": dict(zip(self.names, infos, strict=True)),
            }
        outputs = first.fitted.output_names or tuple(f"output {o}" for o in first.outputs)
        chosen = {
            "family": self.family,
            "utility": self.method.utility.name,
            "select": self.method.select,
        }
        return {
            **chosen,
            "output_names": outputs,
            "game_info": info,
            "judge_info": _told(self.judge),
        }


def _told(rows: Rows) -> dict[str, Any]:
    """What a game says of itself."""
    info = dict(rows.fitted.info)
    scale = rows.fitted.scale
    return {**info, "scale": scale} if scale == "log-odds" else info


@dataclass(frozen=True)
class Assembled:
    """Blocks of rows put together as they come; only candidates for a weight that all rows share
    are held."""

    call: Weighing
    arrays: dict[str, Any] = field(default_factory=dict)
    lacking: set[str] = field(default_factory=set)  # names of arrays that some rows do not have
    waiting: list[tuple[slice, Candidates]] = field(default_factory=list)

    def add(self, part: slice, found: Candidates | Selection) -> None:
        """What was found for some rows."""
        if isinstance(found, Candidates):
            self.waiting.append((part, found))
        else:
            self.put(part, vars(found))

    def put(self, part: slice, arrays: Mapping[str, Array | None]) -> None:
        """Arrays (n, …, k) of some rows; zero where a row has none: rows that know their own Δ have
        no errors."""
        for name, array in arrays.items():
            if array is None:
                self.lacking.add(name)
                continue
            if name not in self.arrays:
                self.arrays[name] = np.zeros(
                    (len(self.call.judge), *array.shape[1:]), dtype=array.dtype
                )
            self.arrays[name][part] = array

    def by_game(self) -> dict[str, FloatArray]:
        """What was found for each game, (n, G, …, k)."""
        return {
            name: self.arrays[name]
            for name in BY_GAME
            if name in self.arrays and name not in self.lacking
        }

    def fields(self) -> dict[str, Any]:
        """The fields of an Explanation; here the axis k is dropped, unless it is seen."""
        family = self.call.family
        method = self.call.method
        names = self.call.names
        axis = self.call.explained[0].axis
        if self.waiting:  # for the weight that all rows share
            scores = np.concatenate([one.scores for _, one in self.waiting])
            shared = method.shared or shared_index(scores, family, method.select)
            for part, one in self.waiting:
                self.put(part, vars(select(one, family, np.tile(shared, (len(one.scores), 1)))))
        game = self.arrays["index"] // len(method.family)  # (n, k) which one won
        plain = {
            name: told(self.arrays[name])
            for name, told in WITHOUT_OUTPUTS.items()
            if name in self.arrays
        }
        rest = {
            name: array for name, array in self.arrays.items() if name not in (*BY_GAME, *plain)
        }
        won = {name: _of_winner(array, game) for name, array in self.by_game().items()}
        found = {
            name: array if axis else array[..., 0]
            for name, array in (rest | won | {"game": game}).items()
        }
        references = found.pop("references")
        found["reference_curves"] = {
            name: references[:, place] for place, name in enumerate(REFERENCES)
        }
        found["weight_labels"] = np.asarray(family.labels)[found.pop("index")]
        found["game_labels"] = np.asarray(names)[found.pop("game")]
        if "empty" in found:
            found["endpoint_gaps"] = {end: found.pop(end) for end in ("empty", "full")}
        none = dict.fromkeys(
            ("standard_errors", "shapley_errors", *self.lacking.intersection(WHOLE))
        )
        return {**none, **found, **plain}


def _of_winner(array: FloatArray, game: IntArray) -> FloatArray:
    """(n, G, …, k) → (n, …, k) of the game (n, k) that won each row; without a copy where there is
    one game."""
    if array.shape[1] == 1:
        return array[:, 0]
    place = game.reshape(len(game), *(1,) * (array.ndim - 2), -1)
    return np.take_along_axis(array, place, axis=1)[:, 0]
