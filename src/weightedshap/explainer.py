"""The whole method on one page.

model, background ─▶ game ─▶ Δ contributions ─▶ φ = W·Δ ─▶ T utility ─▶ w*, φ*
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from weightedshap.checks import FloatArray
from weightedshap.choices import Choices, Method, Setting
from weightedshap.estimators.exact import Estimate, estimated, read_off
from weightedshap.explanation import Cut, Explanation
from weightedshap.files import explainers as files
from weightedshap.games.protocols import Block, ExactFitted, Fitted
from weightedshap.games.rows import Rows
from weightedshap.games.wrappers import GivenFitted, checked
from weightedshap.inputs import Data, Groups, Outputs, Table, join_of
from weightedshap.parallel import each_block, row_generator
from weightedshap.selection import SHARED, Candidates, Selection, candidates, select, shared_index
from weightedshap.utilities import Utility
from weightedshap.weights import REFERENCES, WeightFamily

__all__ = ["Explainer", "explain"]

KEEP_BYTES = 2**30  # the Δ that is kept unasked
NOTHING = np.empty(0)  # in the place of what a block is done with, so that it is let go
WHOLE = ("contributions", "replicates")  # fields that are there for all rows or not at all


class Explainer:
    """WeightedSHAP attributions of a model's predictions.

    The constructor checks every choice and fits the game; calling the explainer only explains.

    Parameters
    ----------
    model : anything with ``predict_proba`` or ``predict``, a torch module, an ONNX session, or a function of rows
    background : rows that the model may see, as an array, a pandas or a polars DataFrame
    game : a name of `GAMES`, a recipe, a fitted game, or a function row → Game
    estimator : a name of `ESTIMATORS`, or a function (game, *, rng) → Contributions
    family : a name of `FAMILIES`, a `WeightFamily`, or a function d → WeightFamily
    utility : a name of `UTILITIES`, or a function (game, f_x) → (phi[m, d] → score[m])
    select : "per_row"; "shared" for one w for all rows of a call; "one_standard_error" for the shared w nearest to
        uniform whose mean utility is within one standard error of the best (Shapley, unless beaten beyond noise)
    evaluations : budget for each row of a sampled game: coalitions, or calls of the model for the marginal game
    predict : overrides how the model is called
    groups : players made of several columns, ``{"address": ["city", "zip"]}``
    outputs : which outputs of a model with several, by position or name; a list keeps the axis k
    link : "logit" explains probabilities as log-odds, with p kept within 1e-12 of 0 and 1
    background_weights : (n,) weights of the background rows
    keep_contributions : whether Δ stays in the result; "auto" up to 1 GiB
    random_state : seed; each row draws from its own child of it
    n_jobs : workers; changes nothing but time
    progress : "auto" shows a bar for long work in a terminal; True, False
    """

    def __init__(
        self,
        model: Any,
        background: Data,
        *,
        game: Any = Choices.game,
        estimator: Any = Choices.estimator,
        family: Any = Choices.family,
        utility: Any = Choices.utility,
        select: str = Choices.select,
        evaluations: int | None = None,
        predict: Callable[[Any], Any] | None = None,
        groups: Groups | None = None,
        outputs: Outputs = None,
        link: str = Choices.link,
        background_weights: Any = None,
        keep_contributions: bool | str = Choices.keep_contributions,
        random_state: int = Choices.random_state,
        n_jobs: int | None = Choices.n_jobs,
        progress: bool | str = Choices.progress,
    ) -> None:
        chosen = {name: value for name, value in locals().items() if name in Choices.__dataclass_fields__}
        self.setting = Setting.of(model, background, Choices(**chosen), groups, background_weights)
        self.game = self.setting.fit().ready()

    @classmethod
    def _made(cls, setting: Setting, game: Fitted) -> Explainer:
        """An explainer whose game is fitted already."""
        explainer = cls.__new__(cls)
        explainer.setting, explainer.game = setting, game.ready()
        return explainer

    @property
    def choices(self) -> Choices:
        """What was chosen."""
        return self.setting.choices

    @property
    def background(self) -> Table:
        """The background rows and the players made of their columns."""
        return self.setting.background

    @property
    def family(self) -> WeightFamily:
        """The weights to choose from."""
        return self.setting.method.family

    def __call__(self, X: Data, row_ids: Any = None) -> Explanation:
        """Explain every row of `X`.

        Parameters
        ----------
        row_ids : one integer or text for each row. A row of a sampled game draws from its id, or from its position
            where there are none: with ids a table explained in parts gives the same numbers as in one call.
        """
        rows = self.background.align(X)
        notes = self.background.notes + self.background.unseen(rows)
        explained = Rows.of(self.game, rows)
        call = Call(self.setting.method, explained, self.setting, _ids(row_ids, len(rows)))
        return call.explanation(rows, self.background.player_names, notes)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write choices, background and learned game to a folder, without pickle; see `load`."""
        files.save(self.setting, self.game, folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], model: Any, **choices: Any) -> Explainer:
        """The explainer that `save` wrote, for the same model: its explanations are the same to the bit.

        Nothing in the folder can run code. `choices` of the constructor replace saved ones; an estimator, utility,
        game or `predict` that was given as a function cannot be saved and has to be passed again.
        """
        return cls._made(*files.load(folder, model, choices))

    def but(self, **choices: Any) -> Explainer:
        """The same explainer with other choices; the fitted game is shared."""
        return self._made(self.setting.but(**choices), self.game)


def explain(
    game: Any,
    *,
    family: Any = Choices.family,
    utility: Any = Choices.utility,
    estimator: Any = Choices.estimator,
    evaluations: int | None = None,
    random_state: int = Choices.random_state,
) -> Explanation:
    """Explain one bound game: anything with `d` that maps coalitions (m, d) to values (m[, k]).

    f(x) is the game of all players. The result has one row.
    """
    bound = checked(game)
    chosen = {"family": family, "utility": utility, "estimator": estimator, "evaluations": evaluations}
    method = Choices(**chosen, random_state=random_state, progress=False).method(bound.d)
    explained = Rows.of(GivenFitted(lambda row: bound), np.full((1, bound.d), np.nan))
    names = bound.player_names or tuple(f"x{i}" for i in range(bound.d))
    return Call(method, explained, None, (0,)).explanation(None, tuple(names))


@dataclass(frozen=True)
class Call:
    """The method on the rows of one call: estimate → weigh → score → choose, block by block.

    Attributes
    ----------
    explained : the game whose Δ is weighted, on all rows
    setting : fits the game that a utility may ask for; None where there is no model
    ids : what each row draws from
    """

    method: Method
    explained: Rows
    setting: Setting | None
    ids: Sequence[int | str]

    def explanation(self, data: Data, names: tuple[str, ...], notes: tuple[str, ...] = ()) -> Explanation:
        """All blocks, put together."""
        method, explained, keep = self.method, self.explained, self._keeps()
        work = partial(self._block, self._judge(method.utility), keep)
        result = Assembled(len(self.ids), method.family, method.select)
        parts = explained.parts(method.family.d, method.estimator.takes_own and not method.utility.one_row)
        evaluations: list[int] = []
        stopped: list[str] = []
        for part, (estimate, found) in zip(parts, each_block(work, parts, method, "explaining"), strict=True):
            result.put(part, self._facts(part, estimate, keep))
            result.add(part, found)
            evaluations += estimate.evaluations
            stopped += estimate.stopped
        fields = result.fields(explained.axis)
        return Explanation(
            endpoint_gaps={end: fields.pop(end) for end in ("empty", "full")},
            **{"contributions": None, **fields},
            data=data,
            feature_names=names,
            output_names=explained.fitted.output_names or tuple(f"output {o}" for o in explained.outputs),
            family=method.family,
            n_evaluations=np.array(evaluations),
            stopped=tuple(stopped),
            game_info=dict(explained.fitted.info),
            utility=method.utility.name,
            select=method.select,
            notes=notes + _notes(method.keep, keep),
            _weigher=self,
        )

    def _facts(self, part: slice, estimate: Estimate, keep: bool) -> dict[str, FloatArray | None]:
        """What is told of some rows whatever weight is chosen."""
        empty, full = estimate.ends[:, 0], estimate.ends[:, 1]
        f_x, expected = self.explained.f_x[part], np.atleast_1d(self.explained.fitted.mean_prediction)
        return {
            "base_values": empty,
            "predictions": f_x,
            "empty": empty - expected,
            "full": full - f_x,
            "contributions": estimate.delta if keep else None,
            "replicates": estimate.replicates,
        }

    def _block(self, judge: Rows, keep: bool, part: slice) -> tuple[Estimate, Candidates | Selection]:
        """Algorithm 2, then Algorithm 1, on some rows."""
        block, estimate = self._estimate(part, keep)
        chosen = self._choose(judge, part, block, estimate.phi, estimate.replicates)
        chains = estimate.replicates
        too_large = chains is not None and not (keep and chains.nbytes * len(self.explained) <= KEEP_BYTES)
        return replace(estimate, phi=NOTHING, replicates=None if too_large else chains), chosen

    def _estimate(self, part: slice, keep: bool) -> tuple[Block, Estimate]:
        """Δ of some rows: read off if the game knows it and the estimator takes it, else estimated."""
        method, fitted = self.method, self.explained.fitted
        if method.estimator.takes_own and isinstance(fitted, ExactFitted):
            exact = fitted.block(self.explained.some(part))
            return exact, read_off(exact, method.family, keep)
        block = self._games(part)
        found = method.estimator(block.alone(), rng=row_generator(method.seed, self.ids[part.start]))
        return block, estimated(block, found, method.family)

    def _choose(
        self, judge: Rows, part: slice, block: Block, phi: FloatArray, replicates: FloatArray | None
    ) -> Candidates | Selection:
        """T of every weight on the game that judges, and w*; a weight that rows share has to wait for all of them."""
        explained, family = self.explained.view(part, block), self.method.family
        judging = explained if judge is self.explained else judge.view(part)
        scored = candidates(explained, judging, phi, replicates, family, self.method.utility)
        return scored if self.method.select in SHARED else select(scored, family)

    def _games(self, part: slice) -> Block:
        """The games of some rows, with as many players as the family has sizes."""
        block, d = self.explained.block(part), self.method.family.d
        if block.d != d:
            found = f"The game at row {part.start} has {block.d} players but the background has {d}"
            raise ValueError(f"{found}. Pass a background with one column, or one group of columns, for each player.")
        return block

    def _judge(self, utility: Utility) -> Rows:
        """The rows under the game that `utility` looks at."""
        if utility.game is None:
            return self.explained
        if self.setting is None:
            needs = "which needs a model and a background: use weightedshap.Explainer"
            raise ValueError(f"The utility {utility.name!r} looks at the {utility.game} game, {needs}.")
        return self.setting.judge(utility, self.explained)

    def _keeps(self) -> bool:
        """Whether Δ of all rows is kept: if asked for, or small enough to keep unasked."""
        bytes_ = 8 * self.method.family.d**2 * self.explained.f_x.size
        return bytes_ <= KEEP_BYTES if self.method.keep == "auto" else bool(self.method.keep)

    def weigh(
        self, delta: FloatArray, chains: FloatArray | None, family: WeightFamily, utility: Utility, how: str
    ) -> dict[str, Any]:
        """The fields of an Explanation that depend on the weights, for a Δ that is known already."""
        other = replace(self, method=replace(self.method, family=family, utility=utility, select=how))
        judge, result = self._judge(utility), Assembled(len(self.explained), family, how)
        delta = delta.reshape(*delta.shape[:3], -1)
        chains = None if chains is None else chains.reshape(*chains.shape[:4], -1)
        for part in self.explained.parts(family.d, not utility.one_row):
            phi, replicates = family.with_references.weigh(delta[part]), None if chains is None else chains[part]
            result.add(part, other._choose(judge, part, other._games(part), phi, replicates))
        return result.fields(self.explained.axis)

    def take(self, keep: Cut) -> Call:
        """The same for some of the rows and outputs."""
        ids = tuple(self.ids[r] for r in keep.rows)
        return replace(self, explained=self.explained.take(keep.rows, keep.outputs), ids=ids)

    def join(self, others: Sequence[object]) -> Call | None:
        """The same for more rows; None if they are not one explainer's work."""
        calls = [self, *(other for other in others if isinstance(other, Call))]
        alike = all(call.explained.is_like(self.explained) for call in calls)
        if len(calls) <= len(others) or not alike:
            return None
        rows = join_of([call.explained.rows for call in calls])
        f_x = np.concatenate([call.explained.f_x for call in calls])
        ids = tuple(name for call in calls for name in call.ids)
        return replace(self, explained=replace(self.explained, rows=rows, f_x=f_x), ids=ids)


class Assembled:
    """Blocks of rows put together as they come: no block is held any longer than that.

    With one weight for each row a block is settled before it comes here. A weight that rows share has to wait for all
    of them, so their candidates are held.
    """

    def __init__(self, n: int, family: WeightFamily, how: str) -> None:
        self.n, self.family, self.how = n, family, how
        self.arrays: dict[str, FloatArray] = {}
        self.rows: dict[str, int] = {}  # how many rows each array was given for
        self.waiting: list[tuple[slice, Candidates]] = []

    def add(self, part: slice, found: Candidates | Selection) -> None:
        """What was found for some rows."""
        if isinstance(found, Candidates):
            self.waiting.append((part, found))
        else:
            self.put(part, vars(found))

    def put(self, part: slice, arrays: Mapping[str, FloatArray | None]) -> None:
        """Arrays (n, …, k) of some rows; zero where a row has none: rows that know their own Δ have no errors."""
        for name, array in arrays.items():
            if array is None:
                continue
            if name not in self.arrays:
                self.arrays[name] = np.zeros((self.n, *array.shape[1:]), dtype=array.dtype)
            self.arrays[name][part] = array
            self.rows[name] = self.rows.get(name, 0) + len(array)

    def fields(self, axis: bool) -> dict[str, Any]:
        """The fields of an Explanation. Here the outputs' axis is dropped, once, unless people are to see it."""
        self._settle()
        found: dict[str, Any] = {name: array if axis else array[..., 0] for name, array in self.arrays.items()}
        references, index = found.pop("references"), found.pop("index")
        found["reference_curves"] = {name: references[:, place] for place, name in enumerate(REFERENCES)}
        found["weight_labels"] = np.asarray(self.family.labels)[index]
        found |= {name: None for name in WHOLE if self.rows.get(name, self.n) < self.n}
        return {"standard_errors": None, **found}

    def _settle(self) -> None:
        """Choose the weight that all rows share."""
        if self.waiting:
            scores = np.concatenate([found.scores for _, found in self.waiting])
            index = shared_index(scores, self.family, self.how)
            for part, found in self.waiting:
                shared = np.broadcast_to(index, (len(found.scores), len(index)))
                self.put(part, vars(select(found, self.family, shared)))


def _notes(asked: bool | str, kept: bool) -> tuple[str, ...]:
    if kept or asked is False:
        return ()
    return ("Δ was not kept because it exceeds 1 GiB; pass keep_contributions=True to have it.",)


def _ids(row_ids: Any, n: int) -> Sequence[int | str]:
    """What each row draws from: its id, or its position."""
    if row_ids is None:
        return range(n)
    ids = np.asarray(row_ids).tolist()
    if not isinstance(ids, list) or len(ids) != n or not all(isinstance(name, (int, str)) for name in ids):
        raise ValueError(f"`row_ids` must hold one integer or text for each of the {n} rows; got {row_ids!r}.")
    return tuple(ids)
