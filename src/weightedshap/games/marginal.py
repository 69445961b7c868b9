"""Games in which hidden features take values from other rows, whatever the known features are.

`Marginal` averages over the background rows, or a few of them; `Baseline` takes one fixed row.
`weightedshap.games` lists both by name. The judge of models without trees corrects a marginal
game, and the utility `masked_inclusion` evaluates rankings on the baseline game.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray, Seed, check_positive_integer
from weightedshap.coalitions import prefixes, slices_of, unique_pairs
from weightedshap.games.base import BaseGame, GameParts, RowwiseBatch
from weightedshap.games.surrogates.data import Encoding, MaskedRows
from weightedshap.games.user import as_model_and_table
from weightedshap.inputs import Data, Model, Table, take_rows
from weightedshap.inputs.rows import Rows

# Memory for the mixed rows of one call of the model. More share the overhead of a call, fewer stay
# in the cache. Timed with 20 columns: LightGBM takes as long at half and at double, within 2 %, and
# a quick function of numpy between 8 % more and 31 % less at half, and 4 to 30 % more at double.
BATCH_BYTES = 2**26


@dataclass(frozen=True)
class Marginal:
    """v(S) = Σ_b weight_b · f(x_S, b_{[d]∖S}): hidden features averaged over background rows b.

    The model predicts one mixed row for each coalition and background row, in batches of at most
    `batch_bytes`. v does not depend on this size: all predictions of one coalition are summed
    together. v(∅), the mean prediction, needs no call, and v([d]) one. v is the mean of one game
    v_b for each background row; the game of a row has these games as `parts`, from which
    `weightedshap.estimators.background_permutation` estimates Δ without computing a mean.

    Parameters
    ----------
    rows : number of background rows to average over, drawn once in `fit`, by weight and evenly in
        the order of their predictions; 1 takes the row of means (modes for categories); None takes
        all rows
    """

    batch_bytes: int = BATCH_BYTES
    rows: int | None = None

    def fit(self, model: Any, background: Data, rng: Seed = None) -> MarginalGame:
        """Build the game that averages over the background, or over rows drawn from it."""
        model, table, rng = as_model_and_table(model, background, rng)
        game = MarginalGame(model, table, table, batch_bytes=self.batch_bytes)
        if self.rows is None or check_positive_integer("rows", self.rows) >= len(table):
            return game
        drawn = [] if self.rows == 1 else game.sample_rows(self.rows, rng).tolist()
        return game.restrict_to(drawn)

    @classmethod
    def from_state(
        cls, content: Mapping[str, Any], model: Model, background: Table
    ) -> MarginalGame:
        """Rebuild the game from the dict that `MarginalGame.state` returned."""
        batch_bytes = check_positive_integer("batch_bytes", content["batch_bytes"])
        game = MarginalGame(model, background, background, batch_bytes=batch_bytes)
        drawn = content["drawn"]
        return game if drawn is None else game.restrict_to(drawn)


@dataclass(frozen=True)
class Baseline:
    """v(S) = f(x_S, b_{[d]∖S}): hidden features take the values of one fixed row b.

    Parameters
    ----------
    values : the row b; None takes the background's means (modes for categories)
    """

    values: Any = None

    def fit(self, model: Any, background: Data, rng: Seed = None) -> BaselineGame:
        """Build the game, in which hidden features take the values of the fixed row b."""
        model, table, _ = as_model_and_table(model, background, rng)
        fixed = table.typical_row() if self.values is None else table.align(self.values, "values")
        if len(fixed) != 1:
            raise ValueError(f"`values` must be one row; got {len(fixed)}.")
        return BaselineGame(model, table, replace(table, data=fixed, weights=np.ones(1)))


@dataclass(frozen=True, repr=False)
class AveragedGame(BaseGame):
    """A game whose hidden features are averaged over the weighted rows of a table."""

    model: Model
    background: Table
    averaged: Table  # the rows that are averaged over
    batch_bytes: int = BATCH_BYTES

    @cached_property
    def averaged_predictions(self) -> FloatArray:
        """The predictions for the B rows that are averaged over, (B, k)."""
        return self.model(self.averaged.data)

    @cached_property
    def empty_value(self) -> FloatArray:
        """v(∅), (k,): the mean prediction for the rows that are averaged over."""
        # Each output is summed separately, so that its last bit does not depend on other outputs.
        by_output = np.ascontiguousarray(self.averaged_predictions.T)
        return np.asarray((by_output * self.averaged.weights).sum(axis=-1))

    @cached_property
    def rows_by_prediction(self) -> IntArray:
        """The positions of the averaged rows, in ascending order of their predictions.

        Several outputs are projected onto their first principal axis.
        """
        centred = self.averaged_predictions - self.averaged_predictions.mean(axis=0)
        axis = np.linalg.eigh(centred.T @ centred)[1][:, -1]
        return np.argsort(centred @ axis, kind="stable")

    def sample_rows(self, n: int, rng: np.random.Generator) -> IntArray:
        """Draw positions of n averaged rows by weight, spread evenly over the predictions."""
        weights = self.averaged.weights[self.rows_by_prediction].cumsum()
        spaced = (np.arange(n) + rng.random()) / n * weights[-1]
        places = np.searchsorted(weights, spaced, side="right")
        return np.asarray(self.rows_by_prediction[places])

    @cached_property
    def control_variates(self) -> FloatArray:
        """Two control variates for each averaged row and player, (B, d, 2).

        They are the player's standardised value, and the centred modulus of that value. Categories
        are replaced by their ranks (see `Encoding`) and missing values by the mean; a player of
        several columns has the mean over its columns.
        """
        table = self.averaged
        weights = self.averaged.weights[:, None]
        X = Encoding.fit(table, self.averaged_predictions).to_numbers(table.data)  # (B, c)
        present = np.isfinite(X)
        share = weights * present / np.maximum((weights * present).sum(axis=0), 1e-300)
        X = np.where(present, X, 0.0)
        centred = np.where(present, X - (share * X).sum(axis=0), 0.0)
        scale = np.sqrt((share * centred**2).sum(axis=0))
        units = centred / np.where(scale > 0, scale, 1.0)

        modulus = np.abs(units) - (weights * np.abs(units)).sum(axis=0)
        both = np.stack([units, modulus], axis=-1)  # (B, c, 2)
        return np.stack([both[:, columns].mean(axis=1) for columns in table.players], axis=1)

    def batch(self, rows: Rows) -> MarginalBatch:
        return MarginalBatch(self, rows)

    def mixed_values(
        self, rows: Data, masked: MaskedRows, predict: Callable[[IntArray], FloatArray]
    ) -> FloatArray:
        """Return the values (N, k) at N masked rows, evaluated together.

        `predict` maps positions of rows (N,) to f(x) (N, k), for coalitions of all players.
        """
        values = np.empty((len(masked.row), len(self.model.output_positions)))
        size = masked.coalition.sum(axis=1)
        is_empty = size == 0
        is_full = size == masked.coalition.shape[1]
        values[is_empty] = self.empty_value
        if is_full.any():
            f_x = predict(masked.row[is_full])[:, :, None]
            # f(x) · Σ weights, and not f(x) itself, so that differences are exactly zero.
            values[is_full] = (f_x * self.averaged.weights).sum(axis=-1)
        rest = ~(is_empty | is_full)
        columns = masked.coalition[rest][:, self.background.player_of_column]
        values[rest] = self._weighted_means(rows, masked.row[rest], columns)
        return values

    def _weighted_means(self, rows: Data, row: IntArray, columns: BoolArray) -> FloatArray:
        """Return the weighted mean predictions (N, k) for N rows with some columns hidden.

        `row` (N,) are positions in `rows`; `columns` (N, c) marks the known columns.
        """
        table = self.averaged
        k = len(self.model.output_positions)
        means = np.empty((len(columns), k))
        n_averaged = len(table.weights)
        places_of_table = np.arange(n_averaged)
        table_parts = [places_of_table[part] for part in slices_of(n_averaged, self.batch_rows)]
        for part in slices_of(len(columns), max(1, self.batch_rows // n_averaged)):
            n = len(means[part])
            predictions = []
            for places in table_parts:
                mixed = table.mix(rows, row[part, None], columns[part, None], table.data, places)
                predictions.append(self.model(mixed).reshape(n, -1, k))
            by_row = np.moveaxis(np.concatenate(predictions, axis=1), 1, -1)  # (n, k, B)
            means[part] = (np.ascontiguousarray(by_row) * table.weights).sum(axis=-1)
        return means

    def warm_up(self) -> Self:
        _ = self.background.player_of_column
        _ = self.batch_rows
        _ = self.empty_value
        return self

    @cached_property
    def batch_rows(self) -> int:
        """The largest number of rows to pass to the model in one call."""
        return max(1, self.batch_bytes // (8 * len(self.background.names)))


@dataclass(frozen=True, repr=False)
class BaselineGame(AveragedGame):
    """The game in which hidden features take the values of one fixed row."""

    label = "baseline"
    # Each call of the model has a fixed cost, so many rows share one.
    rows_per_block = 256


@dataclass(frozen=True, repr=False)
class MarginalGame(AveragedGame):
    """The game that averages hidden features over the background, or over some of its rows."""

    label = "marginal"
    matches_model = True

    # Positions of the rows in the background; None for all of them, () for the typical row.
    drawn: tuple[int, ...] | None = None

    def restrict_to(self, drawn: list[int]) -> MarginalGame:
        """Return the game over the background rows at positions `drawn`, which may repeat.

        With an empty list it is the row of means (modes for categories).
        """
        table = self.background
        if drawn:
            rows, counts = np.unique(drawn, return_counts=True)
            data = table.take(rows)
            weights = counts / counts.sum()
        else:
            data = table.typical_row()
            weights = np.ones(1)
        averaged = replace(table, data=data, weights=weights)
        return replace(self, averaged=averaged, drawn=tuple(drawn))

    def state(self) -> dict[str, Any]:
        drawn = None if self.drawn is None else list(self.drawn)
        return {"recipe": "Marginal", "drawn": drawn, "batch_bytes": self.batch_bytes}

    @cached_property
    def info(self) -> Mapping[str, Any]:
        info = super().info
        return info if self.drawn is None else {**info, "rows": len(self.averaged)}

    @cached_property
    def mean_prediction(self) -> FloatArray | float:
        # Over all rows this is v(∅); computed as that, so that the two are equal bit for bit.
        if self.drawn is not None:
            return super().mean_prediction
        return self.empty_value if self.model.has_output_axis else self.empty_value[0]

    @property
    def calls_per_value(self) -> int:
        return len(self.averaged)

    def values_at(self, rows: Data, masked: MaskedRows) -> FloatArray:
        def predict(row: IntArray) -> FloatArray:
            distinct, inverse = np.unique(row, return_inverse=True)
            return self.model(take_rows(rows, distinct))[inverse]

        def values(part: slice) -> FloatArray:
            return self.mixed_values(rows, masked.take(part), predict)

        return self.model.predict_in_parts(len(masked.row), values)


@dataclass(frozen=True, eq=False)
class MarginalBatch(RowwiseBatch):
    """The games of n rows, whose hidden columns take the values of background rows."""

    game: AveragedGame

    def row_values(self, r: int, coalitions: BoolArray) -> FloatArray:
        row = np.full(len(coalitions), r)
        return self._values_at(MaskedRows(row, coalitions))

    def along(self, orders: IntArray) -> FloatArray:
        # The distinct prefixes of all rows are evaluated together, as each call has a fixed cost.
        n, m, d = orders.shape
        row = np.repeat(np.arange(n), m * (d + 1))
        coalitions = prefixes(orders.reshape(-1, d)).reshape(-1, d)
        first, inverse = unique_pairs(row, coalitions)
        masked = MaskedRows(row[first], coalitions[first])
        values = self._values_at(masked)[inverse]
        return self._stack([*values.reshape(n, m, d + 1, -1)])

    def _values_at(self, masked: MaskedRows) -> FloatArray:
        """Return the values (N, k) at N masked rows; f(x) is computed once for all rows."""
        game = self.game
        return game.mixed_values(self.rows.data, masked, lambda row: self.rows.ask(game.model)[row])

    def game_parts(self) -> GameParts | None:
        """Return one game for each background row; None if there is only one such row."""
        game = self.game
        n = len(game.averaged.weights)
        if n < 2:
            return None
        # A lambda defers the control variates: they need every column, and one estimator uses them.
        return GameParts(n, game.sample_rows, self._along_parts, lambda: game.control_variates)

    def _along_parts(self, orders: IntArray, parts: IntArray) -> FloatArray:
        """Return v (m, d + 1, k) along orders (m, d), each with one background row of `parts`.

        Order t has the background row ``parts[t]``. The values at ∅ and [d] are known, so the model
        is called d − 1 times for each order.
        """
        game = self.game
        m, d = orders.shape
        values = np.empty((m, d + 1, len(game.model.output_positions)))
        values[:, 0] = game.averaged_predictions[parts]
        values[:, d] = self.rows.ask(game.model)[0]
        orders_per_call = max(1, game.batch_rows // max(1, d - 1))
        for part in slices_of(m if d > 1 else 0, orders_per_call):
            inner = prefixes(orders[part])[:, 1:d].reshape(-1, d)
            known = inner[:, game.background.player_of_column]
            table_row = np.repeat(parts[part], d - 1)
            mixed = game.averaged.mix(self.rows.data, 0, known, game.averaged.data, table_row)
            values[part, 1:d] = game.model(mixed).reshape(-1, d - 1, values.shape[-1])
        along: FloatArray = self._stack([values])[0]
        return along
