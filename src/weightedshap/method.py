"""The method for some rows: estimate Δ, weight it to φ, score φ on the judge, and choose w*.

`explain_block` is the paper on one page; `explain_rows` runs it block by block, `reweight` repeats
its second half for a known Δ. `weightedshap.explainer` and `Explanation.reweight` call these
functions; they build on the games, estimators, weights, curves, utilities and the selection.

The first axis of every array is rows, the last one outputs: n rows, d players, k outputs, m weights
(M including the references, which are always reported), G games, c independent sampling chains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from weightedshap._checks import Array, FloatArray, IntArray
from weightedshap.curves import rank_features, recovery_curves
from weightedshap.estimators import Estimator
from weightedshap.estimators.estimate import (
    Estimate,
    from_contributions,
    read_exact,
    standard_errors,
)
from weightedshap.games.base import BaseGame, GameBatch
from weightedshap.inputs.rows import Rows
from weightedshap.parallel import Workers, each_block, row_generator
from weightedshap.selection import SHARED_RULES, Candidates, Selection, select, shared_index
from weightedshap.utilities import Utility, checked_scores
from weightedshap.weights import REFERENCES, WeightFamily

# With keep_delta="auto" the result stores Δ up to this size.
KEEP_BYTES = 2**30
# Memory per row of a large block: Δ and the lists of leaves of 256 rows nearly fit the cache. Timed
# for 1,024 rows of 30 and 100 columns, it hardly matters: at half 0 to 4 % slower, at double within
# 1 %.
CACHE_BYTES_PER_ROW = 2**16

RowId = int | str


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that an explanation depends on besides the row: fitted games, weights, options.

    When rows are explained, nothing is looked up by name and nothing is fitted: the constructor of
    `Explainer` has resolved every option.
    """

    # The games whose Δ is weighted; if there are several, the pairs (game, weight) compete.
    games: tuple[BaseGame, ...]
    judge: BaseGame  # the game that curves are drawn on; `games[0]` if it judges itself
    scorer: BaseGame  # the game that T is computed on: the judge, unless T names another
    estimator: Estimator  # exact, or Algorithm 2
    family: WeightFamily  # W: labels and vectors (m, d)
    utility: Utility  # T
    select: str  # "per_row", or a rule of `SHARED_RULES`
    keep_delta: bool | str  # True, False, or "auto": up to 1 GiB
    seed: int
    workers: Workers  # n_jobs and progress
    notes: tuple[str, ...] = ()  # what a reader of the results should know about the games
    # The position of a weight chosen beforehand for all rows, one for each output.
    shared_index: tuple[int, ...] | None = None

    # Derived from the fields above by `__post_init__`.
    all_games: tuple[BaseGame, ...] = field(init=False)  # the games and the judge, each once
    names: tuple[str, ...] = field(init=False)  # of the games, see `number_repeated`
    # What Algorithm 1 chooses from: W, or all pairs "game · weight" if several games compete.
    choices: WeightFamily = field(init=False)
    n_weights: int = field(init=False)  # m, in W
    is_exact: bool = field(init=False)  # whether every game computes its exact Δ
    # Games whose model predicts all rows in one call, and not block by block.
    up_front_games: tuple[BaseGame, ...] = field(init=False)
    bytes_per_row: int = field(init=False)  # approximate memory of the games at one row
    rows_per_block: int = field(init=False)  # the size of the largest block that any game accepts
    # The number of outputs k, and whether results have an axis of outputs; None if only the values
    # of a user's game can tell.
    n_outputs: int | None = field(init=False)
    output_names: tuple[str, ...] = field(init=False)  # of the first game; () if unknown
    has_output_axis: bool | None = field(init=False)
    mean_predictions: FloatArray = field(init=False)  # (G, k)
    # The fields of an Explanation that do not depend on rows.
    info: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        judge_competes = any(game is self.judge for game in self.games)
        all_games = self.games if judge_competes else (*self.games, self.judge)
        infos = []
        means = []
        up_front_games = []
        for place, game in enumerate(all_games):
            game.warm_up()
            info = dict(game.info)
            if game.scale == "log-odds":
                # Results name the scale only if it is not the model's own.
                info["scale"] = game.scale
            infos.append(info)
            if not game.asks_by_block:
                up_front_games.append(game)
            if game is self.judge:
                judge_info = info
            if place < len(self.games):
                means.append(np.atleast_1d(game.mean_prediction))
        self.scorer.warm_up()

        game_infos = infos[: len(self.games)]
        names = number_repeated([str(info.get("game", "given")) for info in game_infos])
        choices = self.family if len(names) == 1 else self.family.pairs_with(names)
        first = self.games[0]
        derived = {
            "all_games": all_games,
            "names": names,
            "choices": choices,
            "n_weights": len(self.family.labels),
            "is_exact": all(game.is_exact for game in self.games),
            "up_front_games": tuple(up_front_games),
            "bytes_per_row": sum(game.bytes_per_row for game in all_games),
            "rows_per_block": max(game.rows_per_block for game in all_games),
            "n_outputs": len(self.judge.output_names) or None,
            "output_names": first.output_names,
            "has_output_axis": first.output_axis,
            "mean_predictions": np.stack(means),
            "info": {
                "family": choices,
                "utility": self.utility.name,
                "select": self.select,
                "game_info": join_infos(names, game_infos),
                "judge_info": judge_info,
            },
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def keeps_delta(self, n: int, k: int) -> bool:
        """Return whether a result for n rows and k outputs stores Δ, according to `keep_delta`."""
        if self.keep_delta != "auto":
            return bool(self.keep_delta)
        # If games compete, the result stores Δ of every game and, once more, of the winner.
        tables = len(self.games) + (len(self.games) > 1)
        return 8 * self.family.d**2 * n * k * tables <= KEEP_BYTES


def number_repeated(names: Sequence[str]) -> tuple[str, ...]:
    """Make names unique by adding the list position to each repeated name, as in "marginal 2"."""
    return tuple(
        name if name not in names[:i] else f"{name} {i + 1}" for i, name in enumerate(names)
    )


def join_infos(names: Sequence[str], infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Combine the info dicts of competing games into one; return a single dict unchanged."""
    first = infos[0]
    if len(infos) == 1:
        return first
    common = {str(name): first[name] for name in ("space", "scale") if name in first}
    return {
        "game": ", ".join(names),
        "space": "value",
        **common,
        "games": dict(zip(names, infos, strict=True)),
    }


@dataclass(frozen=True)
class BlockResult:
    """The results of `explain_block` for the n rows of a block."""

    predictions: FloatArray  # (n, k) f(x) on the scale of the games
    judge_predictions: FloatArray  # (n, k) f(x) on the scale of the judge
    endpoints: FloatArray  # (n, G, 2, k) v(∅) and v([d]) of each game
    evaluations: IntArray  # (n,)
    stopped: tuple[str, ...]  # (n,) why no more coalitions were evaluated
    delta: FloatArray | None  # (n, G, d, d, k)
    chains: FloatArray | None  # (n, G, c, d, d, k)
    # Candidates where all rows share one weight, which is chosen after the last block.
    selection: Selection | Candidates


def explain_block(problem: Problem, rows: Rows, ids: Sequence[RowId], keep: bool) -> BlockResult:
    """Explain the rows of one block: estimate φ_w for all weights, score them, and choose w*.

    `ids` seed the random draws of each row; if Δ is sampled, the block is a single row. `keep` is
    whether the result stores Δ.
    """
    # The games at these rows. A judge that is anchored to an explained game uses the same batch.
    games = [rows.bind(game) for game in problem.games]
    judge = rows.bind(problem.judge)
    scorer = rows.bind(problem.scorer)
    f_x = rows.ask(problem.games[0])  # (n, k)
    judge_f_x = rows.ask(problem.judge)
    if judge_f_x.shape != f_x.shape:
        raise output_count_error(f_x, judge_f_x)

    # Δ and φ_w = Σ_j w_j Δ_j for every weight: exact if the game computes Δ, else by Algorithm 2.
    estimates = [estimate(problem, game, ids, keep) for game in games]
    phi = by_pair([one.phi for one in estimates], problem.n_weights)  # (n, M, d, k)
    errors = errors_by_pair(estimates, problem.n_weights)  # (n, M, d, k), or None

    # Rank the features by |φ_w|, draw the curve of each ranking on the judge, and score: T(φ_w).
    candidates = score_weights(problem, judge, judge_f_x, scorer, phi, errors)

    # Algorithm 1: w* = argmax_w T(φ_w), here for each row, or later for all rows together.
    is_shared = problem.select in SHARED_RULES
    selection = candidates if is_shared else select(candidates, problem.choices)

    return BlockResult(
        predictions=f_x,
        judge_predictions=judge_f_x,
        endpoints=np.stack([one.endpoints for one in estimates], axis=1),
        evaluations=np.sum([one.evaluations for one in estimates], axis=0),
        stopped=stop_reasons(problem.names, estimates),
        delta=stack_games([one.delta for one in estimates]) if keep else None,
        chains=stack_chains(estimates) if keep else None,
        selection=selection,
    )


def estimate(problem: Problem, game: GameBatch, ids: Sequence[RowId], keep: bool) -> Estimate:
    """Estimate Δ of one game at the rows of a block, and φ_w for every weight w.

    Random draws are seeded by `ids`; an exact Δ needs none. `keep` is whether Δ is stored.
    """
    family = problem.family
    if game.is_exact and problem.estimator.uses_exact:
        return read_exact(game, family, keep)
    rng = row_generator(problem.seed, ids[0])
    row_game = game.row_game()
    if row_game.d != family.d:
        raise ValueError(
            f"The game at row {ids[0]} has {row_game.d} players but the background has {family.d}."
            " Pass a background with one column, or one group of columns, for each player."
        )
    return from_contributions(problem.estimator(row_game, rng=rng), game, family)


def score_weights(
    problem: Problem,
    judge: GameBatch,
    f_x: FloatArray,
    scorer: GameBatch,
    phi: FloatArray,
    errors: FloatArray | None,
) -> Candidates:
    """Compute the utility T of every weight from the attributions `phi`, with the judge's games.

    `phi` is (n, M, d, k) for M weights. `errors` are the standard errors of `phi`, `f_x` (n, k) the
    predictions on the judge's scale. Curves are drawn on `judge`; T is computed on `scorer`.

    φ_w is NaN if w uses a cell of Δ that was never sampled. Such a weight gets a ranking in which
    NaN counts as 0, but its curve and its score are NaN, so it cannot be chosen.
    """
    utility = problem.utility
    # The references follow the first m weights; they are reported, but cannot be chosen.
    m = len(problem.choices.labels)
    unknown = np.isnan(phi).any(axis=2, keepdims=True)  # (n, M, 1, k)
    some_unknown = bool(unknown.any())
    orders = rank_features(np.nan_to_num(phi) if some_unknown else phi, axis=2)  # (n, M, d, k)
    curves = recovery_curves(judge, orders, f_x)  # (n, M, d + 1, k)
    if some_unknown:
        curves = np.where(unknown, np.nan, curves)
    # −AUP needs only the curves, which are computed above.
    if utility.of_recovery is not None:
        scores = utility.of_recovery(curves[:, :m])
    else:
        scores = checked_scores(utility, scorer, phi[:, :m])
    return Candidates(phi, orders, curves, scores, errors)


def explain_rows(problem: Problem, rows: Rows, ids: Sequence[RowId]) -> dict[str, Any]:
    """Explain all rows, block by block; return the fields of an Explanation, see `assemble`."""
    for game in problem.up_front_games:
        rows.ask(game)
    n = len(ids)
    k = problem.n_outputs or rows[:1].ask(problem.judge).shape[1]
    keep = problem.keeps_delta(n, k)

    def work(part: slice) -> BlockResult:
        block = rows if part == slice(0, n) else rows[part]
        return explain_block(problem, block, ids[part], keep)

    reads_exact = problem.is_exact and problem.estimator.uses_exact
    parts = block_slices(problem, n, k, together=reads_exact and not problem.utility.one_row)
    blocks = each_block(work, parts, problem.workers, "explaining")
    return assemble(problem, n, parts, blocks)


def reweight(
    problem: Problem,
    rows: Rows,
    outputs: Sequence[int],
    by_game: Mapping[str, FloatArray],
) -> dict[str, Any]:
    """Choose the weights again for contributions Δ that are already known, without sampling.

    After the estimate of Δ, the steps are those of `explain_block`.

    `by_game` contains Δ as "contributions" (n, G, d, d, k) and, if Δ was sampled, Δ of each chain
    as "replicates" (n, G, c, d, d, k); `outputs` are the positions of the k outputs among those of
    the games. Returns the fields of an Explanation that depend on the weights.
    """
    weights = problem.family.with_references
    delta = by_game["contributions"]
    n, G, _, _, k = delta.shape

    def work(part: slice) -> Candidates | Selection:
        block = rows[part]
        judge = block.bind(problem.judge).select(outputs)
        scorer = block.bind(problem.scorer).select(outputs)
        phi_of_games = [weights.weigh(delta[part, game]) for game in range(G)]
        errors = None
        if "replicates" in by_game:
            chains = by_game["replicates"][part]
            errors_of_games = [
                standard_errors(chains[:, game], phi_of_games[game], weights) for game in range(G)
            ]
            errors = by_pair(errors_of_games, problem.n_weights)
        phi = by_pair(phi_of_games, problem.n_weights)
        candidates = score_weights(problem, judge, judge.predictions, scorer, phi, errors)
        is_shared = problem.select in SHARED_RULES
        return candidates if is_shared else select(candidates, problem.choices)

    collector = Collector(n)
    together = problem.is_exact and not problem.utility.one_row
    for part in block_slices(problem, n, k, together):
        collector.put_selection(part, work(part))
    collector.choose_shared(problem)

    fields = collector.selection(problem)
    if G > 1:
        fields |= select_winners(by_game, collector.arrays["index"] // problem.n_weights)
    return fields


def block_slices(problem: Problem, n: int, k: int, together: bool) -> list[slice]:
    """Return slices that split n rows into large blocks, or into single rows unless `together`.

    `together` is whether the games evaluate many rows faster in one block.
    """
    delta_bytes = 8 * k * problem.family.d**2 * len(problem.games)
    bytes_per_row = max(delta_bytes, problem.bytes_per_row)
    return split_into_blocks(n, bytes_per_row, problem.rows_per_block if together else 1)


def judge_slices(judge: BaseGame, n: int, d: int, k: int) -> list[slice]:
    """Return slices that split n rows into blocks, for a judge that evaluates whole blocks."""
    return split_into_blocks(n, max(8 * k * d**2, judge.bytes_per_row), judge.rows_per_block)


def split_into_blocks(n: int, bytes_per_row: int, max_rows: int) -> list[slice]:
    """Return slices that split n rows into blocks of at most `max_rows` that fit the CPU cache."""
    in_cache = max(1, CACHE_BYTES_PER_ROW * max_rows // bytes_per_row)
    quarter = -(-n // 4)
    # Four blocks keep four workers busy.
    size = min(in_cache, max_rows, max(256, quarter))
    if n > size:
        # An even number of equal blocks: two workers finish together.
        pairs = -(-n // (2 * size))
        size = -(-n // (2 * pairs))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def output_count_error(f_x: FloatArray, judge_f_x: FloatArray) -> ValueError:
    """Return the error to raise if the judge and the games differ in their number of outputs."""
    return ValueError(
        f"The judge has {judge_f_x.shape[1]} outputs, but {f_x.shape[1]} are explained. Give a"
        " judge with one output for each."
    )


def by_pair(by_game: Sequence[FloatArray], m: int) -> FloatArray:
    """Concatenate arrays of several games along the weight axis: one entry for each (game, weight).

    Arrays (n, M, …) of G games become (n, G·m + M − m, …). All pairs (game, weight) come first,
    then the references of the first game.
    """
    if len(by_game) == 1:
        return by_game[0]
    return np.concatenate([*(one[:, :m] for one in by_game), by_game[0][:, m:]], axis=1)


def errors_by_pair(estimates: Sequence[Estimate], m: int) -> FloatArray | None:
    """Concatenate the standard errors of φ of several games; None if all games are exact.

    The errors of an exact game are 0.
    """
    if all(one.errors is None for one in estimates):
        return None
    errors = [np.zeros_like(one.phi) if one.errors is None else one.errors for one in estimates]
    return by_pair(errors, m)


def stop_reasons(names: Sequence[str], estimates: Sequence[Estimate]) -> tuple[str, ...]:
    """Return why sampling stopped, for each row; the reasons of several games are joined."""
    if len(estimates) == 1:
        return estimates[0].stopped
    rows = zip(*(one.stopped for one in estimates), strict=True)
    return tuple(
        " · ".join(f"{name}: {reason}" for name, reason in zip(names, reasons, strict=True))
        for reasons in rows
    )


def stack_games(tables: Sequence[FloatArray | None]) -> FloatArray:
    """Stack arrays (n, …) of G games as (n, G, …), without copying if there is only one game."""
    if len(tables) == 1:
        return np.asarray(tables[0])[:, None]
    return np.stack([np.asarray(table) for table in tables], axis=1)


def stack_chains(estimates: Sequence[Estimate]) -> FloatArray | None:
    """Stack the estimates of Δ from each sampling chain of each game.

    The result is (n, G, c, d, d, k), for G games and c chains. An exact Δ is repeated for every
    chain. The result is None if nothing was sampled, or if games have different numbers of chains.
    """
    shapes = {one.chains.shape for one in estimates if one.chains is not None}
    if len(shapes) != 1:
        return None
    (shape,) = shapes
    tables = []
    for one in estimates:
        table = np.asarray(one.delta)[:, None] if one.chains is None else one.chains
        tables.append(np.broadcast_to(table, shape))
    return np.stack(tables, axis=1)


@dataclass(frozen=True)
class Collector:
    """Collects the results of blocks of rows, one by one, in arrays for all n rows.

    So the result is in memory only once, where a list of all blocks would need the memory of Δ two
    to three times. Rows without an array stay 0, such as the errors of a row whose Δ is exact. Δ
    and its chains are reported for all rows or for none.
    """

    n: int
    arrays: dict[str, Array] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)  # names of arrays that some rows lack
    # Blocks of rows, with their candidates, whose shared weight is still to be chosen.
    waiting: list[tuple[slice, Candidates]] = field(default_factory=list)

    def put(self, part: slice, arrays: Mapping[str, Array | None]) -> None:
        """Store the arrays of one block, given by name, at the rows `part`; None means no array."""
        for name, array in arrays.items():
            if array is None:
                self.missing.add(name)
                continue
            if name not in self.arrays:
                self.arrays[name] = np.zeros((self.n, *array.shape[1:]), array.dtype)
            self.arrays[name][part] = array

    def put_selection(self, part: slice, selection: Candidates | Selection) -> None:
        """Store a block's selection at the rows `part`, or keep candidates for a shared weight."""
        if isinstance(selection, Selection):
            self.put(part, vars(selection))
        else:
            self.waiting.append((part, selection))

    def choose_shared(self, problem: Problem) -> None:
        """Choose one weight for all rows that wait for a shared one; store their selections."""
        if not self.waiting:
            return
        scores = np.concatenate([candidates.scores for _, candidates in self.waiting])
        shared = problem.shared_index or shared_index(scores, problem.choices, problem.select)
        for part, candidates in self.waiting:
            index = np.tile(shared, (len(candidates.scores), 1))
            self.put(part, vars(select(candidates, problem.choices, index)))
        self.waiting.clear()

    def complete_array(self, name: str) -> Array | None:
        """Return the array `name` of all rows, or None if some rows lack it."""
        return None if name in self.missing else self.arrays.get(name)

    def selection(self, problem: Problem) -> dict[str, Any]:
        """Return the fields of an Explanation that depend on the chosen weights."""
        index = self.arrays["index"]  # (n, k) among the choices
        game = index // problem.n_weights  # (n, k) the game that won
        references = self.arrays["references"]
        names = ("weights", "scores", "values", "orders", "curves")
        errors = ("standard_errors", "shapley_errors")
        return {
            **{name: self.arrays[name] for name in names},
            **{name: self.arrays.get(name) for name in errors},
            "shapley": self.arrays["shapley"],
            "weight_labels": np.asarray(problem.choices.labels)[index],
            "game_labels": np.asarray(problem.names)[game],
            "reference_curves": {name: references[:, r] for r, name in enumerate(REFERENCES)},
        }


def assemble(
    problem: Problem, n: int, parts: Sequence[slice], blocks: Iterable[BlockResult]
) -> dict[str, Any]:
    """Combine the results of all blocks into the fields of an Explanation, with an axis of outputs.

    `parts` are the rows of each block. The item "by_game" contains the arrays (n, G, …, k) of every
    game; all others are for the game that won the row.
    """
    collector = Collector(n)
    stopped: list[str] = []
    for part, block in zip(parts, blocks, strict=True):
        chains = block.chains
        if chains is not None and chains.nbytes * n > KEEP_BYTES * len(chains):
            chains = None
        collector.put(
            part,
            {
                "predictions": block.predictions,
                "judge_predictions": block.judge_predictions,
                "endpoints": block.endpoints,
                "n_evaluations": block.evaluations,
                "delta": block.delta,
                "chains": chains,
            },
        )
        collector.put_selection(part, block.selection)
        stopped += block.stopped
    collector.choose_shared(problem)

    arrays = collector.arrays
    predictions = arrays["predictions"]
    endpoints = arrays["endpoints"]
    means = problem.mean_predictions
    by_game: dict[str, FloatArray | None] = {
        "contributions": collector.complete_array("delta"),
        "replicates": collector.complete_array("chains"),
        "base_values": endpoints[:, :, 0],
        "empty": endpoints[:, :, 0] - means,
        "full": endpoints[:, :, 1] - predictions[:, None],
    }
    return {
        "predictions": predictions,
        "judge_predictions": arrays["judge_predictions"],
        "n_evaluations": arrays["n_evaluations"],
        "stopped": tuple(stopped),
        **collector.selection(problem),
        **select_winners(by_game, arrays["index"] // problem.n_weights),
        "by_game": by_game,
    }


def select_winners(by_game: Mapping[str, FloatArray | None], game: IntArray) -> dict[str, Any]:
    """Return the fields of an Explanation for the winning game of each row and output.

    `by_game` contains arrays (n, G, …, k) by name, `game` (n, k) is the position of the winner.
    """
    fields: dict[str, Any] = {
        name: None if array is None else _select_winner(array, game)
        for name, array in by_game.items()
    }
    fields["endpoint_gaps"] = {end: fields.pop(end) for end in ("empty", "full")}
    return fields


def _select_winner(by_game: FloatArray, game: IntArray) -> FloatArray:
    """Return the entries of `array` for the winning game of each row and output.

    `array` is (n, G, …, k) for G games, and `game` (n, k) are the positions of the winners. The
    array of a single game is not copied.
    """
    if by_game.shape[1] == 1:
        return by_game[:, 0]
    place = game.reshape(len(game), *(1,) * (by_game.ndim - 2), -1)
    return np.take_along_axis(by_game, place, axis=1)[:, 0]


def drop_output_axis(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the last axis, of length one, from the fields of an Explanation of a single output."""

    def only_output(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, Mapping):
            return {name: only_output(array) for name, array in value.items()}
        return value[..., 0]

    without_axis = ("n_evaluations", "stopped")
    return {
        name: value if name in without_axis else only_output(value)
        for name, value in fields.items()
    }


@dataclass(frozen=True, eq=False)
class Source:
    """What an Explanation keeps for reweighting and local search: its problem and its rows."""

    problem: Problem
    rows: Rows  # with the predictions of the first game and of the judge
    outputs: tuple[int, ...]  # positions of the outputs among those of the games
    # Arrays (n, G, …, k) of every game, as `assemble` returns them; None for a single game.
    by_game: Mapping[str, FloatArray] | None
    # Returns the game that a utility is computed on, fitted to the same model and background.
    fit_scorer: Callable[[Utility, BaseGame], BaseGame]

    def take(self, rows: IntArray, outputs: IntArray | int | None) -> Source:
        """Return the source for some rows and outputs, by position; None keeps all outputs."""
        positions = range(len(self.outputs)) if outputs is None else np.atleast_1d(outputs)
        places = list(positions)
        by_game = self.by_game
        if by_game is not None:
            by_game = {name: array[rows][..., places] for name, array in by_game.items()}
        return replace(
            self,
            rows=self.rows[rows],
            outputs=tuple(self.outputs[o] for o in places),
            by_game=by_game,
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Source | None]) -> Source | None:
        """Concatenate the sources of several explanations; None if their explainers differ."""
        sources = [part for part in parts if part is not None]
        if len(sources) < len(parts) or not all(sources[0]._is_like(part) for part in sources):
            return None
        tables = [part.by_game or {} for part in sources]
        names = set(tables[0]).intersection(*tables)
        by_game = {name: np.concatenate([table[name] for table in tables]) for name in names}
        rows = Rows.concatenate([part.rows for part in sources])
        return replace(sources[0], rows=rows, by_game=by_game or None)

    def _is_like(self, other: Source) -> bool:
        """Return whether another source has the same games, judge and outputs."""
        own = (*self.problem.games, self.problem.judge)
        others = (*other.problem.games, other.problem.judge)
        same_games = len(own) == len(others) and all(
            one is two for one, two in zip(own, others, strict=True)
        )
        return same_games and self.outputs == other.outputs
