"""The whole method on one page.

model, background ─▶ game ─▶ Δ contributions ─▶ φ = W·Δ ─▶ T utility, on the judge ─▶ w*, φ*
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from weightedshap.assembly import Assembled
from weightedshap.checks import FloatArray, IntArray
from weightedshap.choices import Choices, Fits, Method, Setting
from weightedshap.estimators import authors
from weightedshap.estimators.exact import Estimate, asked_of, errors_of, estimated, read_off
from weightedshap.explanation import Cut, Explanation
from weightedshap.files import explainers as files
from weightedshap.games import NeuralSurrogate
from weightedshap.games.protocols import Block, ExactFitted, Fitted
from weightedshap.games.rows import Rows, parts_of
from weightedshap.games.wrappers import GivenFitted, checked
from weightedshap.inputs import Data, Groups, Outputs, Table
from weightedshap.parallel import each_block, row_generator
from weightedshap.refinement import refined
from weightedshap.selection import SHARED, Candidates, Selection, candidates, paired, select
from weightedshap.utilities import Utility
from weightedshap.weights import WeightFamily

__all__ = ["Explainer", "explain"]

KEEP_BYTES = 2**30  # the Δ that is kept unasked
NOTHING = np.empty(0)  # in the place of what a block is done with, so that it is let go


class Explainer:
    """WeightedSHAP attributions of a model's predictions.

    The constructor checks every choice and fits the games; calling the explainer only explains. Two games have two
    jobs: the contributions of `game` are weighted, and `judge` says which weighting recovers the prediction best.

    Parameters
    ----------
    model : anything with ``predict_proba`` or ``predict``, a torch module, an ONNX session, or a function of rows
    background : rows that the model may see, as an array, a pandas or a polars DataFrame
    game : whose contributions are weighted: a name of `GAMES`, a recipe, a fitted game, or a function row → Game; of a
        list the pairs of a game and a weight compete. "auto" is the path-dependent game of the model's own trees where
        they can be read, and ``["marginal", "distilled_trees"]`` for other models
    judge : the game that weights are scored on: a name of `JUDGES`, a recipe and so on, or "game" for the explained
        one, as in the paper. "auto" is "anchored" for ``game="auto"`` and for a list, and "game" where a game is named
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
        judge: Any = Choices.judge,
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
        self.fits = self.setting.fit().ready()

    @classmethod
    def paper(cls, model: Any, background: Data, **choices: Any) -> Explainer:
        """The paper's own way: its network explains and judges, Algorithm 2 as the authors run it, their 13 weights.

        `choices` of the constructor come on top. The network is trained by torch (extra ``neural``); Algorithm 2 as it
        is printed, which draws a hundred times as much, is ``estimator=weightedshap.estimators.algorithm_2``.
        """
        own = {"game": NeuralSurrogate.paper(), "judge": "game", "estimator": authors, "family": "paper"}
        return cls(model, background, **{**own, **choices})

    @classmethod
    def _made(cls, setting: Setting, fits: Fits) -> Explainer:
        """An explainer whose games are fitted already."""
        explainer = cls.__new__(cls)
        explainer.setting, explainer.fits = setting, fits.ready()
        return explainer

    @property
    def game(self) -> Fitted:
        """The fitted game whose contributions are weighted; the first of several."""
        return self.fits.games[0]

    @property
    def games(self) -> tuple[Fitted, ...]:
        """All games that compete."""
        return self.fits.games

    @property
    def judge(self) -> Fitted:
        """The fitted game that weights are scored on."""
        return self.fits.judge

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
        call = Call.of(self.setting, self.fits, rows, _ids(row_ids, len(rows)))
        return call.explanation(rows, self.background.player_names, notes)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write choices, background and learned games to a folder, without pickle; see `load`."""
        files.save(self.setting, self.fits, folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], model: Any, **choices: Any) -> Explainer:
        """The explainer that `save` wrote, for the same model: its explanations are the same to the bit.

        Nothing in the folder can run code. `choices` of the constructor replace saved ones; an estimator, utility,
        game, judge or `predict` that was given as a function cannot be saved and has to be passed again.
        """
        return cls._made(*files.load(folder, model, choices))

    def but(self, **choices: Any) -> Explainer:
        """The same explainer with other choices; the fitted games are shared."""
        return self._made(self.setting.but(**choices), self.fits)


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
    return Call(method, ("game",), (explained,), explained, None, (0,)).explanation(None, tuple(names))


@dataclass(frozen=True)
class Call:
    """The method on the rows of one call: estimate → weigh → score → choose, block by block.

    Attributes
    ----------
    names : of the games that compete; one where only one is explained
    explained : these games on all rows, whose Δ is weighted
    judge : the game on all rows that curves are drawn on and weights are scored by
    setting : fits the game that a utility may ask for; None where there is no model
    ids : what each row draws from
    kept : arrays (n, G, …, k) of what was found for each of several games, once it is known; see `assembly.BY_GAME`
    """

    method: Method
    names: tuple[str, ...]
    explained: tuple[Rows, ...]
    judge: Rows
    setting: Setting | None
    ids: Sequence[int | str]
    kept: Mapping[str, FloatArray] | None = None

    @classmethod
    def of(cls, setting: Setting, fits: Fits, rows: Data, ids: Sequence[int | str]) -> Call:
        """The games of an explainer on aligned rows."""
        explained = tuple(Rows.of(game, rows) for game in fits.games)
        judge = explained[0] if fits.judge is fits.games[0] else Rows.of(fits.judge, rows)
        if judge.f_x.shape != explained[0].f_x.shape:
            counts = f"{judge.f_x.shape[1]} outputs, but {explained[0].f_x.shape[1]} are explained"
            raise ValueError(f"The judge has {counts}. Give a judge with one output for each.")
        return cls(setting.method, fits.names, explained, judge, setting, ids)

    @cached_property
    def family(self) -> WeightFamily:
        """What is chosen from: weights, or pairs of a game and a weight."""
        return self.method.family.of_games(self.names)

    @cached_property
    def _asked(self) -> FloatArray:
        return asked_of(self.method.family, self._keeps())

    def explanation(self, data: Data, names: tuple[str, ...], notes: tuple[str, ...] = ()) -> Explanation:
        """All blocks, put together."""
        method, first, keep = self.method, self.explained[0], self._keeps()
        work = partial(self._block, self._scorer(method.utility), keep)
        result = Assembled(len(self.ids), self.family, len(self.names), method.select)
        together = method.estimator.takes_own and not method.utility.one_row
        parts = parts_of(self.explained, self.judge, method.family.d, together)
        evaluations: list[int] = []
        stopped: list[str] = []
        for part, (estimates, found) in zip(parts, each_block(work, parts, method, "explaining"), strict=True):
            result.put(part, self._facts(part, estimates, keep))
            result.add(part, found)
            evaluations += np.sum([one.evaluations for one in estimates], axis=0).tolist()
            stopped += self._stopped(estimates)
        return Explanation(
            **{"contributions": None, **result.fields(self.names, first.axis)},
            data=data,
            feature_names=names,
            output_names=first.fitted.output_names or tuple(f"output {o}" for o in first.outputs),
            family=self.family,
            n_evaluations=np.array(evaluations),
            stopped=tuple(stopped),
            game_info=_of_games(self.names, [self._told(rows) for rows in self.explained]),
            judge_info=self._told(self.judge),
            utility=method.utility.name,
            select=method.select,
            notes=notes + _notes(method.keep, keep),
            _weigher=replace(self, kept=result.by_game() if len(self.names) > 1 else None),
        )

    def _told(self, rows: Rows) -> dict[str, Any]:
        """What a game says of itself; margins of one class against the rest are log-odds, those of several are not."""
        model, info = None if self.setting is None else self.setting.model, dict(rows.fitted.info)
        if model is None or info.get("space") != "margin":
            return info
        odds = model.link == "logit" or (model.space == "probability" and model.n_raw <= 2)
        return {**info, "scale": "log-odds"} if odds else info

    def _stopped(self, estimates: Sequence[Estimate]) -> list[str]:
        """Why no more was spent on each row, game by game where there are several."""
        if len(estimates) == 1:
            return list(estimates[0].stopped)
        by_row = zip(*(one.stopped for one in estimates), strict=True)
        return [" · ".join(f"{name}: {why}" for name, why in zip(self.names, whys, strict=True)) for whys in by_row]

    def _facts(self, part: slice, estimates: Sequence[Estimate], keep: bool) -> dict[str, FloatArray | None]:
        """What is told of some rows whatever weight is chosen; of every game (n, G, …, k) where games differ."""
        f_x, ends = self.explained[0].f_x[part], np.stack([one.ends for one in estimates], axis=1)  # (n, G, 2, k)
        expected = np.stack([np.atleast_1d(rows.fitted.mean_prediction) for rows in self.explained])
        return {
            "predictions": f_x,
            "judge_predictions": self.judge.f_x[part],
            "base_values": ends[:, :, 0],
            "empty": ends[:, :, 0] - expected,
            "full": ends[:, :, 1] - f_x[:, None],
            "contributions": _of_all([one.delta for one in estimates]) if keep else None,
            "replicates": _of_all([one.replicates for one in estimates]),
        }

    def _block(self, scorer: Rows, keep: bool, part: slice) -> tuple[list[Estimate], Candidates | Selection]:
        """Algorithm 2 for every game, then Algorithm 1, on some rows."""
        found = [self._estimate(game, part) for game in self.explained]
        chosen = self._choose(scorer, part, found[0][0], [(one.phi, one.replicates) for _, one in found])
        return [replace(one, phi=NOTHING, replicates=self._chains_kept(one, found, keep)) for _, one in found], chosen

    def _chains_kept(self, one: Estimate, found: Sequence[tuple[Block, Estimate]], keep: bool) -> FloatArray | None:
        """The chains of a game that are held for later: of all games or of none; an exact Δ stands in each of them."""
        sampled = [other.replicates for _, other in found if other.replicates is not None]
        sizes = {chains.shape for chains in sampled}
        if len(sizes) != 1 or not keep or sum(chains.nbytes for chains in sampled) * len(self.ids) > KEEP_BYTES:
            return None
        if one.replicates is not None or one.delta is None:
            return one.replicates
        return np.broadcast_to(one.delta[:, None], sizes.pop())

    def _estimate(self, explained: Rows, part: slice) -> tuple[Block, Estimate]:
        """Δ of some rows: read off if the game knows it and the estimator takes it, else estimated."""
        method, fitted = self.method, explained.fitted
        if method.estimator.takes_own and isinstance(fitted, ExactFitted):
            exact = fitted.block(explained.some(part))
            return exact, read_off(exact, self._asked, method.family)
        block = self._games(explained, part)
        found = method.estimator(block.alone(), rng=row_generator(method.seed, self.ids[part.start]))
        return block, estimated(block, found, method.family)

    def _choose(
        self, scorer: Rows, part: slice, block: Block | None, found: Sequence[tuple[FloatArray, FloatArray | None]]
    ) -> Candidates | Selection:
        """T of every weight, and w*; a weight that rows share has to wait for all of them.

        `block` holds the games of the first kind; `found` φ (n, M, d, k) and chains (n, c, d, d, k) of each kind.
        """
        family, judge = self.method.family, self.judge
        judging = judge.view(part, block if judge is self.explained[0] else None)
        scoring = judging if scorer is judge else scorer.view(part)
        errors = [errors_of(chains, phi, family.with_references) for phi, chains in found]
        known = [np.zeros_like(phi) if e is None else e for e, (phi, _) in zip(errors, found, strict=True)]
        unsure = None if all(e is None for e in errors) else paired(known, len(family))
        phi = paired([phi for phi, _ in found], len(family))
        scored = candidates(judging, scoring, phi, unsure, self.family, self.method.utility)
        return scored if self.method.select in SHARED else select(scored, self.family)

    def _games(self, explained: Rows, part: slice) -> Block:
        """The games of some rows, with as many players as the family has sizes."""
        block, d = explained.block(part), self.method.family.d
        if block.d != d:
            found = f"The game at row {part.start} has {block.d} players but the background has {d}"
            raise ValueError(f"{found}. Pass a background with one column, or one group of columns, for each player.")
        return block

    def _scorer(self, utility: Utility) -> Rows:
        """The rows under the game that `utility` looks at: the judge, unless it asks for another."""
        if utility.game is None:
            return self.judge
        if self.setting is None:
            needs = "which needs a model and a background: use weightedshap.Explainer"
            raise ValueError(f"The utility {utility.name!r} looks at the {utility.game} game, {needs}.")
        return self.setting.scorer(utility, self.explained[0])

    def _keeps(self) -> bool:
        """Whether Δ of all rows is kept: if asked for, or small enough to keep unasked."""
        tables = len(self.names) + (len(self.names) > 1)  # of each game, and of the one that wins the row
        bytes_ = 8 * self.method.family.d**2 * self.explained[0].f_x.size * tables
        return bytes_ <= KEEP_BYTES if self.method.keep == "auto" else bool(self.method.keep)

    def weigh(
        self, delta: FloatArray, chains: FloatArray | None, family: WeightFamily | None, utility: Utility, how: str
    ) -> dict[str, Any]:
        """The fields of an Explanation that depend on the weights, for a Δ that is known already."""
        weights = self.method.family if family is None else family
        other = replace(self, method=replace(self.method, family=weights, utility=utility, select=how))
        scorer, result = self._scorer(utility), Assembled(len(self.ids), other.family, len(self.names), how)
        known = self.kept or _by_game(contributions=delta, replicates=chains)
        for part in parts_of(self.explained, self.judge, weights.d, not utility.one_row):
            some = {name: array[part] for name, array in known.items()}
            phi = [weights.with_references.weigh(delta) for delta in np.moveaxis(some.pop("contributions"), 1, 0)]
            drawn = some.pop("replicates", None)
            of_games = [None] * len(phi) if drawn is None else np.moveaxis(drawn, 1, 0)
            result.add(part, other._choose(scorer, part, None, list(zip(phi, of_games, strict=True))))
        if self.kept:
            result.put(slice(None), self.kept)
        return result.fields(self.names, self.explained[0].axis) | {"family": other.family, "_weigher": other}

    def refine(self, orders: IntArray) -> IntArray:
        """(n, d[, k]) orders → the same shape, better ones by a search on the judge; see `refinement.refined`."""
        start = orders.reshape(*orders.shape[:2], -1)

        def work(part: slice) -> IntArray:
            view = self.judge.view(part)
            return refined(view, start[part], self.judge.spread(view))

        parts = self.judge.parts(start.shape[1])
        found = np.concatenate(list(each_block(work, parts, self.method, "refining")))
        return found.reshape(orders.shape)

    def judged(self, orders: IntArray) -> tuple[FloatArray, FloatArray]:
        """What the judge predicts along orders (n, d, k), (n, d + 1, k), and the spread (n, k) of its f(x)."""
        view = self.judge.view(slice(0, len(orders)))
        return view.along(orders[:, None])[:, 0], self.judge.spread(view)

    def take(self, keep: Cut) -> Call:
        """The same for some of the rows and outputs."""
        ids = tuple(self.ids[r] for r in keep.rows)
        explained = tuple(rows.take(keep.rows, keep.outputs) for rows in self.explained)
        judge = explained[0] if self.judge is self.explained[0] else self.judge.take(keep.rows, keep.outputs)
        outputs = slice(None) if keep.outputs is None else np.atleast_1d(keep.outputs)
        kept = None if self.kept is None else {name: a[keep.rows][..., outputs] for name, a in self.kept.items()}
        return replace(self, explained=explained, judge=judge, ids=ids, kept=kept)

    def join(self, others: Sequence[object]) -> Call | None:
        """The same for more rows; None if they are not one explainer's work."""
        calls = [self, *(other for other in others if isinstance(other, Call))]
        if len(calls) <= len(others) or not all(call._is_like(self) for call in calls):
            return None
        explained = tuple(Rows.joined(rows) for rows in zip(*(call.explained for call in calls), strict=True))
        judge = explained[0] if self.judge is self.explained[0] else Rows.joined([call.judge for call in calls])
        ids = tuple(name for call in calls for name in call.ids)
        tables = [call.kept for call in calls if call.kept]
        together = set(tables[0]).intersection(*tables) if len(tables) == len(calls) else set()
        kept = {name: np.concatenate([table[name] for table in tables]) for name in together} or None
        return replace(self, explained=explained, judge=judge, ids=ids, kept=kept)

    def _is_like(self, other: Call) -> bool:
        """Whether another call is one of the same games, judge and outputs."""
        pairs = zip((*self.explained, self.judge), (*other.explained, other.judge), strict=False)
        return self.names == other.names and all(one.is_like(two) for one, two in pairs)


def _of_all(of_games: Sequence[FloatArray | None]) -> FloatArray | None:
    """(n, …, k) of each of G games → (n, G, …, k); None where one of them is."""
    known = [array for array in of_games if array is not None]
    return np.stack(known, axis=1) if len(known) == len(of_games) else None


def _by_game(**arrays: FloatArray | None) -> dict[str, FloatArray]:
    """Fields of an Explanation, (n, …[, k]) by name, as the tables (n, 1, …, k) of its only game."""
    axes = {"contributions": 3, "replicates": 4}
    return {name: a.reshape(len(a), 1, *a.shape[1 : axes[name]], -1) for name, a in arrays.items() if a is not None}


def _of_games(names: Sequence[str], infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What is told of the game; of several, their scale and each by its name."""
    if len(names) == 1:
        return infos[0]
    shared = {"space": "value"} | {key: infos[0][key] for key in ("space", "scale") if key in infos[0]}
    return {"game": ", ".join(names), **shared, "games": dict(zip(names, infos, strict=True))}


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
