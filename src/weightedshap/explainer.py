"""`Explainer`, which fits games to a model and explains rows, and `explain`, for a single game.

This is the public entry point of the package: it turns the user's options into a `Problem` by
`weightedshap.config`, and the arrays of `weightedshap.method` into an `Explanation`.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from weightedshap._checks import FloatArray, name_of, optional_attrs
from weightedshap._format import plural
from weightedshap.config import Config, Setup
from weightedshap.estimators import as_estimator, authors
from weightedshap.explanation import Explanation
from weightedshap.files import explainer_folder
from weightedshap.games import NeuralSurrogate
from weightedshap.games.base import BaseGame
from weightedshap.games.user import UserGame, check_game
from weightedshap.inputs import Data, Groups, Outputs, Table, as_table
from weightedshap.inputs.rows import Rows
from weightedshap.method import Problem, Source, drop_output_axis, explain_rows
from weightedshap.utilities import Utility, as_utility
from weightedshap.weights import WeightFamily, as_family

__all__ = ["Explainer", "explain"]

NOT_KEPT = "Δ was not kept because it exceeds 1 GiB; pass keep_contributions=True to have it."


class Explainer:
    """WeightedSHAP attributions of a model's predictions.

    The constructor checks every option and fits the games; calling the explainer explains rows. Two
    games have two jobs: the contributions of `game` are weighted, and `judge` decides which
    weighting recovers the prediction best.

    Parameters
    ----------
    model : anything with ``predict_proba`` or ``predict``, a torch module, an ONNX session, or a
        function of rows
    background : rows to compare with, such as the training data: an array, or a DataFrame of pandas
        or polars
    game : the game whose contributions are weighted: a name of `GAMES`, a recipe, a fitted game, or
        a function row → Game; in a list of them, the pairs of a game and a weight compete. "auto"
        is the path-dependent game of the model's own trees if they can be read, and
        ``["marginal", "distilled_trees"]`` for other models
    judge : the game that weights are scored on: a name of `JUDGES`, a recipe, a fitted game, a
        function row → Game, or "game" for the explained game itself, as in the paper. "auto" is
        "anchored" for ``game="auto"`` and for a list of games, and "game" for a single named game
    estimator : a name of `ESTIMATORS`, or a function (game, *, rng) → Contributions
    family : a name of `FAMILIES`, a `WeightFamily`, or a function d → WeightFamily
    utility : a name of `UTILITIES`, or a function (game, f_x) → (phi[m, d] → score[m])
    select : "per_row"; "shared" for one w for all rows of a call; "one_standard_error" for the
        shared w nearest to uniform whose mean utility is within one standard error of the best
        (Shapley, unless beaten beyond noise)
    evaluations : budget for each row of a sampled game: coalitions, or calls of the model for the
        marginal game
    predict : a function of rows that is called instead of the model's own method
    groups : players made of several columns, ``{"address": ["city", "zip"]}``
    outputs : the outputs to explain of a model with several, by position or name; a list keeps the
        axis k
    link : "logit" explains probabilities as log-odds, with p clipped to 1e-12 … 1 − 1e-12
    background_weights : (n,) weights of the background rows
    keep_contributions : whether the result stores Δ; "auto" stores up to 1 GiB
    random_state : seed; each row has its own random stream, derived from the seed
    n_jobs : number of parallel workers; the results are the same for any number
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
        game: Any = Config.game,
        judge: Any = Config.judge,
        estimator: Any = Config.estimator,
        family: Any = Config.family,
        utility: Any = Config.utility,
        select: str = Config.select,
        evaluations: int | None = None,
        predict: Callable[[Any], Any] | None = None,
        groups: Groups | None = None,
        outputs: Outputs = None,
        link: str = Config.link,
        background_weights: Any = None,
        keep_contributions: bool | str = Config.keep_contributions,
        random_state: int = Config.random_state,
        n_jobs: int | None = Config.n_jobs,
        progress: bool | str = Config.progress,
    ) -> None:
        config = Config(
            game=game,
            judge=judge,
            estimator=estimator,
            family=family,
            utility=utility,
            select=select,
            evaluations=evaluations,
            predict=predict,
            outputs=outputs,
            link=link,
            keep_contributions=keep_contributions,
            random_state=random_state,
            n_jobs=n_jobs,
            progress=progress,
        )
        self.setup = Setup.build(model, background, config, groups, background_weights)
        self.problem = self.setup.fit()

    @classmethod
    def paper(cls, model: Any, background: Data, **choices: Any) -> Self:
        """Build an explainer that follows the paper: its game, sampler and 13 weights.

        The paper's network, trained with torch, is both the game and the judge. Δ is estimated by
        Algorithm 2 with the settings of the authors' program; with those printed in the paper,
        ``estimator=weightedshap.estimators.algorithm_2``, it draws a hundred times as much.
        `choices` are options that replace these.
        """
        own = {
            "game": NeuralSurrogate.paper(),
            "judge": "game",
            "estimator": authors,
            "family": "paper",
        }
        return cls(model, background, **{**own, **choices})

    @classmethod
    def _from_fitted(cls, setup: Setup, problem: Problem) -> Self:
        """Build an explainer from games that are fitted already."""
        explainer = cls.__new__(cls)
        explainer.setup = setup
        explainer.problem = problem
        return explainer

    @property
    def game(self) -> BaseGame:
        """The fitted game whose contributions are weighted; the first one if several compete."""
        return self.problem.games[0]

    @property
    def games(self) -> tuple[BaseGame, ...]:
        """The fitted games whose contributions are weighted; if there are several, they compete."""
        return self.problem.games

    @property
    def judge(self) -> BaseGame:
        """The fitted game that weights are scored on."""
        return self.problem.judge

    @property
    def config(self) -> Config:
        """The options of the explainer."""
        return self.setup.config

    @property
    def background(self) -> Table:
        """The background rows, with their columns grouped into players."""
        return self.setup.background

    @property
    def family(self) -> WeightFamily:
        """The family of weight vectors to choose from."""
        return self.problem.family

    def __repr__(self) -> str:
        games = " and ".join(f"{game.info['game']} ({game.scale})" for game in self.games)
        judge = "itself"
        if self.judge is not self.game:
            judge = f"{self.judge.info['game']} ({self.judge.scale})"
        model = "a game" if self.setup.model is None else name_of(self.setup.model.original)
        choices = f"{plural(len(self.family), 'weight')}, utility {self.problem.utility.name}"
        return (
            f"Explainer of {model}, {self.background}\n"
            f"  explains {games}, judged by {judge}; {choices}"
        )

    def __call__(self, X: Data, row_ids: Any = None) -> Explanation:
        """Explain every row of `X`.

        The random draws of a sampled game are seeded by the position of a row, or by its id in
        `row_ids`, an integer or text: with ids, a table that is explained in parts gives the same
        numbers as in one call.
        """
        return explain_table(self.problem, self.background, X, row_ids, self.setup.fit_scorer)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write options, background and learned games to a folder, without pickle; see `load`."""
        explainer_folder.save(self.setup, self.problem, folder)

    @classmethod
    def load(
        cls, folder: str | os.PathLike[str], model: Any, *, refit: bool = False, **choices: Any
    ) -> Self:
        """Load an explainer that `save` wrote, for the same model.

        Its explanations are the same, bit for bit. Nothing in the folder can run code. `choices`
        replace saved options; functions cannot be saved, so pass them again. A model with other
        predictions for the background raises an error; with ``refit=True`` the games are fitted to
        it instead.
        """
        return cls._from_fitted(*explainer_folder.load(folder, model, choices, refit))

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
        """Explain Arrow RecordBatches, and yield the results of every row as RecordBatches.

        The results are key, prediction, base value, φ*, weight and scores; `include` adds
        "shapley", "errors" and "contributions", and ``layout="lists"`` gives lists of fixed size.
        `columns` names the columns of the features, in the background's order. `key` names one or
        several columns that are passed through; they also seed the draws of a sampled game, so that
        results do not depend on the split into batches. A category that is not in the background
        raises an error; with ``unseen="pass"`` it is accepted.
        """
        from weightedshap.jobs.stream import Stream, StreamOptions

        options = StreamOptions.build(columns, key, include, layout=layout, unseen=unseen)
        return Stream.build(self, options)(batches)

    def stream_schema(
        self,
        schema: Any,
        columns: Sequence[str] | None = None,
        key: str | Sequence[str] | None = None,
        *,
        include: Sequence[str] = (),
        layout: str = "columns",
    ) -> Any:
        """Return the Arrow schema of the batches that `stream` yields for input with `schema`."""
        from weightedshap.jobs.stream import Stream, StreamOptions

        options = StreamOptions.build(columns, key, include, layout=layout)
        return Stream(self, options).schema(schema)

    def but(self, **choices: Any) -> Self:
        """Return a copy with some options changed; both explainers share the fitted games."""
        setup = self.setup.with_options(**choices)
        problem = setup.problem(self.problem.games, self.problem.judge, self.problem.notes)
        return self._from_fitted(setup, problem)


def explain(
    game: Any,
    *,
    family: Any = Config.family,
    utility: Any = Config.utility,
    estimator: Any = Config.estimator,
    evaluations: int | None = None,
    random_state: int = Config.random_state,
) -> Explanation:
    """Explain a single game, given as a function of coalitions (m, d) → values (m[, k]).

    The game has an attribute `d`, its number of players; f(x) is its value for all players.
    """
    bound = check_game(game)
    config = Config(
        family=family,
        utility=utility,
        estimator=estimator,
        evaluations=evaluations,
        random_state=random_state,
        progress=False,
    )
    own = UserGame(lambda row: bound)
    T = as_utility(config.utility)
    problem = Problem(
        games=(own,),
        judge=own,
        scorer=_judge_without_model(T, own),
        estimator=as_estimator(config.estimator, config.evaluations),
        family=as_family(config.family, bound.d),
        utility=T,
        select=config.select,
        keep_delta=config.keep_contributions,
        seed=config.random_state,
        workers=config.workers,
    )
    # The game belongs to one row, which is not known here: a row of NaN takes its place.
    row = np.full((1, bound.d), np.nan)
    table = as_table(row)
    if bound.player_names:
        table = replace(table, player_names=tuple(bound.player_names))
    explanation = explain_table(problem, table, row, None, _judge_without_model)
    return replace(explanation, data=None)


def explain_table(
    problem: Problem,
    background: Table,
    X: Data,
    row_ids: Any,
    fit_scorer: Callable[[Utility, BaseGame], BaseGame],
) -> Explanation:
    """Explain every row of `X` with the fitted games of a problem; return an Explanation.

    `row_ids` seed the rows, by default their positions do. `fit_scorer` returns the game that
    another utility is computed on; reweighting uses it.
    """
    data = background.align(X)
    ids = range(len(data)) if row_ids is None else _row_ids(row_ids, len(data))
    notes = background.notes + problem.notes + background.unseen_category_notes(data)

    rows = Rows(data)
    arrays = explain_rows(problem, rows, ids)
    by_game = arrays.pop("by_game")
    predictions = arrays["predictions"]
    judge_predictions = arrays["judge_predictions"]
    k = predictions.shape[1]
    first = problem.games[0]

    if arrays["contributions"] is None and problem.keep_delta is not False:
        notes = (*notes, NOT_KEPT)
    # Games that were bound for the call are dropped. Workers in other processes called the model
    # there, so its predictions are taken from the arrays.
    predictions_by_game: list[tuple[object, FloatArray]] = [
        (first, predictions),
        (problem.judge, judge_predictions),
    ]
    competing = {name: array for name, array in by_game.items() if array is not None}
    source = Source(
        problem=problem,
        rows=Rows(data, predictions_by_game),
        outputs=tuple(range(k)),
        by_game=competing if len(problem.games) > 1 else None,
        fit_scorer=fit_scorer,
    )
    has_axis = problem.has_output_axis
    if has_axis is None:
        has_axis = first.has_output_axis(rows if problem.up_front_games else rows[:1])
    if not has_axis:
        arrays = drop_output_axis(arrays)
    return Explanation(
        **arrays,
        **problem.info,
        output_names=problem.output_names or tuple(f"output {o}" for o in range(k)),
        data=data,
        feature_names=background.player_names,
        _notes=notes,
        _source=source,
    )


def _judge_without_model(utility: Utility, judge: BaseGame) -> BaseGame:
    """Return the judge; raise an error if the utility would have to fit a game to a model."""
    if utility.game is not None:
        raise ValueError(
            f"The utility {utility.name!r} looks at the {utility.game} game, which needs a model"
            " and a background: use weightedshap.Explainer."
        )
    return judge


def _row_ids(row_ids: Any, n: int) -> Sequence[int | str]:
    """Check that there is an id, an integer or text, for each of n rows; return the ids."""
    # A list is not turned into an array, in which every text would be as long as the longest.
    listing = optional_attrs(row_ids, "tolist", "to_list")
    values = next(iter(listing.values()))() if listing else row_ids
    ids = []
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes)):
        ids = [name.item() if isinstance(name, np.generic) else name for name in values]
    if len(ids) != n or not all(isinstance(name, (int, str)) for name in ids):
        raise ValueError(
            f"`row_ids` must hold one integer or text for each of the {n} rows; got {row_ids!r}."
        )
    return tuple(ids)
