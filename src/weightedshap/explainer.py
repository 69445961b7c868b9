"""model, background ─▶ game ─▶ Δ contributions ─▶ φ = W·Δ ─▶ T utility, on the judge ─▶ w*, φ*: the
whole method."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from weightedshap._checks import Array, name_of, offered
from weightedshap._format import plural
from weightedshap.config import Choices, Fits, Setting
from weightedshap.estimators import authors
from weightedshap.estimators.exact import Estimate, estimated, read_off
from weightedshap.explanation import Explanation
from weightedshap.files import explainer_folder as files
from weightedshap.games import NeuralSurrogate
from weightedshap.games.base import Block, ExactFitted, Fitted
from weightedshap.games.rows import Rows, parts_of
from weightedshap.games.user import GivenFitted, checked
from weightedshap.inputs import Data, Groups, Outputs, Table
from weightedshap.parallel import each_block, row_generator
from weightedshap.selection import Candidates, Selection
from weightedshap.weighing import Assembled, Weighing
from weightedshap.weights import WeightFamily

__all__ = ["Explainer", "explain"]

NOT_KEPT = "Δ was not kept because it exceeds 1 GiB; pass keep_contributions=True to have it."


class Explainer:
    """WeightedSHAP attributions of a model's predictions.

    The constructor checks every choice and fits the games; calling the explainer only explains. Two
    games have two jobs: the contributions of `game` are weighted, and `judge` says which weighting
    recovers the prediction best.

    Parameters
    ----------
    model : anything with ``predict_proba`` or ``predict``, a torch module, an ONNX session, or a
        function of rows
    background : rows that the model may see, as an array, a pandas or a polars DataFrame
    game : whose contributions are weighted: a name of `GAMES`, a recipe, a fitted game, or a
        function row → Game; of a list the pairs of a game and a weight compete. "auto" is the
        path-dependent game of the model's own trees where they can be read, and ``["marginal",
        "distilled_trees"]`` for other models
    judge : the game that weights are scored on: a name of `JUDGES`, a recipe and so on, or "game"
        for the explained one, as in the paper. "auto" is "anchored" for ``game="auto"`` and for a
        list, and "game" where a game is named
    estimator : a name of `ESTIMATORS`, or a function (game, *, rng) → Contributions
    family : a name of `FAMILIES`, a `WeightFamily`, or a function d → WeightFamily
    utility : a name of `UTILITIES`, or a function (game, f_x) → (phi[m, d] → score[m])
    select : "per_row"; "shared" for one w for all rows of a call; "one_standard_error" for the
        shared w nearest to uniform whose mean utility is within one standard error of the best
        (Shapley, unless beaten beyond noise)
    evaluations : budget for each row of a sampled game: coalitions, or calls of the model for the
        marginal game
    predict : overrides how the model is called
    groups : players made of several columns, ``{"address": ["city", "zip"]}``
    outputs : which outputs of a model with several, by position or name; a list keeps the axis k
    link : "logit" explains probabilities as log-odds, with p kept within 1e-12 of 0 and 1
    background_weights : (n,) weights of the background rows
    keep_contributions : whether Δ stays in the result; "auto" up to 1 GiB
    random_state : seed; each row draws from its own child of it
    n_jobs : workers; changes nothing but time
    progress : "auto" shows a bar for long work in a terminal; True, False

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> explainer = Explainer(lambda X: X[:, 0] + X[:, 1] * X[:, 2], X, game="marginal")
    >>> explainer(X[:5]).values.shape
    (5, 3)
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
        chosen = {
            name: value for name, value in locals().items() if name in Choices.__dataclass_fields__
        }
        self.setting = Setting.of(model, background, Choices(**chosen), groups, background_weights)
        self.fits = self.setting.fit().ready()

    @classmethod
    def paper(cls, model: Any, background: Data, **choices: Any) -> Self:
        """The paper's way: its network, by torch, explains and judges, Algorithm 2 as the authors
        run it, 13 weights.

        As it is printed, which draws a hundred times as much, it is
        ``estimator=weightedshap.estimators.algorithm_2``.
        """
        own = {
            "game": NeuralSurrogate.paper(),
            "judge": "game",
            "estimator": authors,
            "family": "paper",
        }
        return cls(model, background, **{**own, **choices})

    @classmethod
    def _made(cls, setting: Setting, fits: Fits) -> Self:
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

    def __repr__(self) -> str:
        games = " and ".join(f"{game.info['game']} ({game.scale})" for game in self.games)
        judge = (
            "itself"
            if self.judge is self.game
            else f"{self.judge.info['game']} ({self.judge.scale})"
        )
        model = "a game" if self.setting.model is None else name_of(self.setting.model.original)
        chosen = f"{plural(len(self.family), 'weight')}, utility {self.setting.method.utility.name}"
        return (
            f"Explainer of {model}, {self.background}\n  explains {games}, judged by {judge};"
            f" {chosen}"
        )

    def __call__(self, X: Data, row_ids: Any = None) -> Explanation:
        """Explain every row of `X`.

        A row of a sampled game draws from its position, or from its id, an integer or text: with
        `row_ids` a table explained in parts gives the same numbers as in one call.
        """
        rows = self.background.align(X)
        notes = self.background.notes + self.fits.notes + self.background.unseen(rows)
        call = Call(Weighing.of(self.setting, self.fits, rows), _ids(row_ids, len(rows)))
        return call.explanation(rows, self.background.player_names, notes)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write choices, background and learned games to a folder, without pickle; see `load`."""
        files.save(self.setting, self.fits, folder)

    @classmethod
    def load(
        cls, folder: str | os.PathLike[str], model: Any, *, refit: bool = False, **choices: Any
    ) -> Self:
        """The explainer that `save` wrote, for the same model: its explanations are the same to the
        bit.

        Nothing in the folder can run code. `choices` replace saved ones; functions cannot be saved,
        pass them again. A model that predicts other numbers for the background is refused; `refit`
        fits the games again, to this model.
        """
        return cls._made(*files.load(folder, model, choices, refit))

    def stream(
        self,
        batches: Iterable[Any],
        columns: Sequence[str] | None = None,
        key: str | Sequence[str] | None = None,
        *,
        include: Sequence[str] = (),
        layout: str = "columns",
        unseen: str = "error",
    ) -> Iterator[Any]:
        """Arrow RecordBatches in, RecordBatches out: key, prediction, base value, φ*, weight and
        scores of every row.

        `columns` hold the features, in the background's order; `key` is passed through, and the
        draws of a sampled game come from it, so that batches do not matter. `include` adds
        "shapley", "errors" and "contributions"; ``layout="lists"`` gives lists of fixed size. A
        category that the background never saw is an error, or passes.
        """
        from weightedshap.jobs.stream import Asked, Stream

        return Stream.of(self, Asked.of(columns, key, include, layout=layout, unseen=unseen))(
            batches
        )

    def stream_schema(
        self,
        schema: Any,
        columns: Sequence[str] | None = None,
        key: str | Sequence[str] | None = None,
        *,
        include: Sequence[str] = (),
        layout: str = "columns",
    ) -> Any:
        """The schema of what `stream` yields for batches of the Arrow schema `schema`."""
        from weightedshap.jobs.stream import Asked, Stream

        return Stream(self, Asked.of(columns, key, include, layout=layout)).schema(schema)

    def but(self, **choices: Any) -> Self:
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
    """Explain one bound game: anything with `d` that maps coalitions (m, d) to values (m[, k]);
    f(x) is that of all."""
    bound = checked(game)
    chosen = {
        "family": family,
        "utility": utility,
        "estimator": estimator,
        "evaluations": evaluations,
    }
    method = Choices(**chosen, random_state=random_state, progress=False).method(bound.d)
    explained = Rows.of(GivenFitted(lambda row: bound), np.full((1, bound.d), np.nan))
    names = bound.player_names or tuple(f"x{i}" for i in range(bound.d))
    weighing = Weighing(method, ("game",), (explained,), explained, None)
    return Call(weighing, (0,)).explanation(None, tuple(names))


@dataclass(frozen=True)
class Call:
    """Estimate → weigh → score → choose, block by block; `ids` are what each row of the call draws
    from."""

    weighing: Weighing
    ids: Sequence[int | str]

    @property
    def explained(self) -> tuple[Rows, ...]:
        """The games whose Δ is weighted, on all rows."""
        return self.weighing.explained

    def explanation(
        self, data: Data, names: tuple[str, ...], notes: tuple[str, ...] = ()
    ) -> Explanation:
        """All blocks, put together."""
        weighing = self.weighing
        method = self.weighing.method
        keep = self.weighing.keeps_delta
        work = partial(self._block, weighing.scorer(method.utility), keep)
        result = Assembled(weighing)
        together = method.estimator.takes_own and not method.utility.one_row
        parts = parts_of(weighing.explained, weighing.judge, method.family.d, together)
        for part, (facts, chosen) in zip(
            parts, each_block(work, parts, method, "explaining"), strict=True
        ):
            weighing.know(part, facts)
            result.put(part, facts)
            result.add(part, chosen)
        fields = {**result.fields(), **weighing.about(), "data": data, "feature_names": names}
        notes += () if keep or method.keep is False else (NOT_KEPT,)
        weigher = replace(weighing, kept=result.by_game()) if len(weighing.names) > 1 else weighing
        return Explanation(**fields, _notes=notes, _weigher=weigher)

    def _block(
        self, scorer: Rows, keep: bool, part: slice
    ) -> tuple[dict[str, Array | None], Candidates | Selection]:
        """Algorithm 2 for every game, then Algorithm 1, on some rows; and what is told of them
        whatever is chosen."""
        self.weighing.ask(part)
        blocks, found = zip(
            *(self._estimate(game, part, keep) for game in self.explained), strict=True
        )
        chosen = self.weighing.choose(
            scorer, part, blocks[0], [(one.phi, one.replicates) for one in found]
        )
        return self.weighing.facts(part, found, keep), chosen

    def _estimate(self, explained: Rows, part: slice, keep: bool) -> tuple[Block, Estimate]:
        """Δ of some rows: read off if the game knows it and the estimator takes it, else
        estimated."""
        method = self.weighing.method
        fitted = explained.fitted
        d = self.weighing.method.family.d
        if method.estimator.takes_own and isinstance(fitted, ExactFitted):
            exact = fitted.block(explained.some(part))
            return exact, read_off(exact, method.family, keep)
        block = explained.block(part)
        if block.d != d:
            found = f"The game at row {part.start} has {block.d} players but the background has {d}"
            raise ValueError(
                f"{found}. Pass a background with one column, or one group of columns, for each"
                " player."
            )
        drawn = method.estimator(
            block.alone(), rng=row_generator(method.seed, self.ids[part.start])
        )
        return block, estimated(block, drawn, method.family)


def _ids(row_ids: Any, n: int) -> Sequence[int | str]:
    """What each row draws from: its id, or its position."""
    if row_ids is None:
        return range(n)
    # No array is made of a list: it would give every text the room of the longest.
    listing = offered(row_ids, "tolist", "to_list")
    held = next(iter(listing.values()))() if listing else row_ids
    is_list = isinstance(held, Sequence) and not isinstance(held, (str, bytes))
    ids = (
        [name.item() if isinstance(name, np.generic) else name for name in held] if is_list else []
    )
    if len(ids) != n or not all(isinstance(name, (int, str)) for name in ids):
        raise ValueError(
            f"`row_ids` must hold one integer or text for each of the {n} rows; got {row_ids!r}."
        )
    return tuple(ids)
