"""The user's model as games call it: a function of rows that returns (n, k) finite floats.

`as_model` finds out how to call the model (`predict`), which outputs are explained, and on which
scale. A `Model` calls it in bounded batches, checks everything it returns, and says in plain words
what is wrong. Games, surrogates and readers of trees call the model only through this class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Self

import numpy as np

from weightedshap._checks import FloatArray, as_2d, as_outputs, check_choice, resolve_output
from weightedshap.coalitions import slices_of
from weightedshap.inputs.containers import IN_ORDER, Data, UserModel, take_rows
from weightedshap.inputs.predict import (
    NAME_ATTRIBUTES,
    Predict,
    library_of,
    model_attributes,
    resolve_predict,
)
from weightedshap.inputs.rows import Rows
from weightedshap.inputs.table import Table
from weightedshap.parallel import progress_bar

# Number of background rows on which `as_model` tries the model.
N_TRIAL_ROWS = 2
# Number of rows between two updates of a progress bar.
PART_ROWS = 2**13
# Size of a batch of rows for the model: large enough for speed, small compared with memory.
BATCH_BYTES = 2**26
# Libraries whose errors are reported as ValueErrors, see `_predict_checked`.
LIBRARIES = ("lightgbm", "xgboost", "_catboost", "onnxruntime")
# Probabilities are clipped here, which keeps log-odds within ±28.
LEAST_PROBABILITY = 1e-12

Outputs = int | str | Sequence[int | str] | None
"""The option `outputs`: a position or name, a list of them, or None for the default."""


@dataclass(frozen=True)
class Model:
    """The user's model as a function: ``model(rows)`` returns finite predictions (n, k).

    The user's model is called in bounded batches, on copies of the rows.
    """

    predict: Predict
    original: UserModel
    # The names of the k outputs that are explained.
    output_names: tuple[str, ...]
    # The scale of the predictions: "probability", "margin" or "value".
    space: str
    # The number of outputs of the model.
    n_raw: int
    # The positions of the k explained outputs among all outputs of the model.
    output_positions: tuple[int, ...]
    # Whether results show the axis of outputs to the user.
    has_output_axis: bool
    # Whether the user passed `predict=`, which overrides the model's own methods.
    is_custom: bool = False
    # "identity", or "logit": probabilities p are explained as log-odds log(p / (1 − p)).
    link: str = "identity"
    # Whether long computations in fitting show a bar, see `weightedshap.parallel.progress_bar`.
    progress: bool | str = False
    # The dtypes of the background's columns, or the single dtype of its array.
    dtypes: tuple[str, ...] = ()

    def __call__(self, rows: Data) -> FloatArray:
        """Return predictions (n, k) of the explained outputs."""
        batch_rows = max(1, BATCH_BYTES // (8 * rows.shape[1]))
        if len(rows) > batch_rows:
            return np.concatenate(
                [self(take_rows(rows, part)) for part in slices_of(len(rows), batch_rows)]
            )
        try:
            raw = _predict_checked(self.predict, rows)
        except Exception as error:
            self._note_dtypes(error, rows)
            raise
        if raw.shape[1] != self.n_raw:
            raise ValueError(
                f"The model returned {raw.shape[1]} outputs where it returned {self.n_raw} before."
                " A model must return the same number of outputs for every row."
            )
        explained = raw[:, list(self.output_positions)]
        return log_odds(explained) if self.link == "logit" else explained

    def _note_dtypes(self, error: Exception, rows: Data) -> None:
        """Add a note to `error` if dtypes of `rows` differ from those of the background."""
        pairs = zip(_dtypes(rows), self.dtypes, strict=False)
        # A dictionary keeps each pair once, in order.
        differences = {
            f"{own} where the background has {expected}": None
            for own, expected in pairs
            if own != expected
        }
        if differences:
            error.add_note(
                f"The model was given {', '.join(differences)}, as numbers of `X` are not rounded."
                " If it takes the background's dtypes alone, pass rows in these, by `X.astype(…)`."
            )

    @cached_property
    def single_threaded(self) -> Self | None:
        """A copy of the model that uses a single thread; None unless it is a LightGBM model.

        Only LightGBM's `predict` has an option for this.
        """
        if self.is_custom or library_of(self.original) != "lightgbm":
            return None
        return replace(self, predict=partial(self.predict, num_threads=1))

    def predictions(self, rows: Rows) -> FloatArray:
        """Return f(x) (n, k) at the explained rows; ``rows.ask(model)`` caches the result."""
        return (self.single_threaded or self)(rows.data)

    def predict_in_parts(self, n: int, predict: Callable[[slice], FloatArray]) -> FloatArray:
        """Call ``predict(part)`` on consecutive slices of n items; return all predictions (n, k).

        A progress bar is shown.
        """
        values = [np.empty((0, len(self.output_positions)))]
        with progress_bar(n, "asking the model", self.progress) as progress:
            for part in slices_of(n, PART_ROWS):
                values.append(predict(part))
                progress.update(part.stop - part.start)
        return np.concatenate(values)


def as_model(
    model: UserModel,
    background: Table,
    predict: Predict | None = None,
    outputs: Outputs = None,
    link: str = "identity",
) -> Model:
    """Return the user's model as a `Model`, after a trial on the first background rows.

    Classifiers are called through ``predict_proba`` (with two classes, the second is explained), or
    through ``decision_function`` if they have no probabilities; other estimators through
    ``predict``, torch modules and functions directly; `predict` overrides all of these. `outputs`
    selects outputs by position or name: a single one, or a list, which keeps the axis k.
    ``link="logit"`` turns probabilities into log-odds, see `log_odds`.
    """
    if isinstance(model, Model):
        return model
    check_choice("link", link, ("identity", "logit"))
    n_expected = _n_expected_columns(model, predict is not None)
    function, space, class_names = resolve_predict(model, predict)
    width = len(background.names)
    if n_expected not in (None, width):
        raise ValueError(
            f"The background has {width} columns but the model expects {n_expected}. {IN_ORDER}"
        )

    first_rows = take_rows(background.data, slice(0, N_TRIAL_ROWS))
    raw = _predict_checked(function, first_rows)
    n_raw = raw.shape[1]
    is_distribution = space == "probability" and bool(np.allclose(raw.sum(axis=1), 1, atol=1e-3))
    # Probabilities that do not sum to one are those of several labels, each true or not: then the
    # names of the classes are not those of the outputs.
    are_labels = space == "probability" and n_raw > 1 and not is_distribution
    names = tuple(f"output {o}" for o in range(n_raw)) if n_raw > 1 else ("output",)
    if len(class_names) == n_raw and not are_labels:
        names = class_names

    default = (1,) if is_distribution and n_raw == 2 else tuple(range(n_raw))
    positions, has_output_axis = _select_outputs(outputs, names, default)
    result = Model(
        predict=function,
        original=model,
        output_names=tuple(names[o] for o in positions),
        space="margin" if link == "logit" else space,
        n_raw=n_raw,
        output_positions=positions,
        has_output_axis=has_output_axis,
        is_custom=predict is not None,
        link=link,
        dtypes=_dtypes(background.data),
    )
    # A trial of the link, which refuses numbers that are not probabilities.
    result(first_rows)
    return result


def _n_expected_columns(model: UserModel, is_custom: bool) -> int | None:
    """Return the number of columns a model was trained on; None if unknown.

    If the user passed `predict=` (`is_custom`), only the attribute ``n_features_in_`` is used.
    """
    # A CatBoost model from a file has 0 here.
    n: int | None = model_attributes(model)["n_features_in_"] or None
    if n or is_custom or library_of(model) not in ("lightgbm", "xgboost", "catboost"):
        return n
    names = trained_columns(model)
    # A booster of XGBoost predicts rows with fewer columns without an error.
    if names is None and hasattr(model, "num_features"):
        return int(model.num_features())
    return None if names is None else len(names)


def trained_columns(model: object) -> list[str] | None:
    """Return the names of the columns that a model was trained on, in order; None if unknown."""
    original = model.original if isinstance(model, Model) else model
    # A class is refused by `as_model`, with a better message than an error from here.
    if isinstance(original, type):
        return None
    for names in map(model_attributes(original).get, NAME_ATTRIBUTES):
        if callable(names) and library_of(original) == "lightgbm":
            names = names()
        if isinstance(names, (list, tuple, np.ndarray)) and len(names):
            return [str(name) for name in names]
    return None


def log_odds(p: FloatArray) -> FloatArray:
    """Return the log-odds log(p / (1 − p)), with p clipped to 1e-12 … 1 − 1e-12.

    With several classes, each is compared with all others together.
    """
    if ((p < 0) | (p > 1)).any():
        raise ValueError(
            "`link='logit'` needs probabilities between 0 and 1, but the model returned"
            f" {p.min():g}..{p.max():g}. Leave `link` out, or pass `predict=` a function that"
            " returns probabilities."
        )
    inside = np.clip(p, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def _predict_checked(predict: Predict, rows: Data) -> FloatArray:
    """Call `predict` on a copy of the rows; check the predictions and return them as (n, k).

    The copy protects the rows from models that modify them.
    """
    try:
        answer = predict(deepcopy(rows))
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in LIBRARIES:
            raise
        # Each library has errors of its own types, and some append the names of their functions
        # after the first line.
        lines = str(error).strip().splitlines()
        message = lines[0] if lines else type(error).__name__
        raise ValueError(f"The model cannot predict these rows: {message}") from error

    is_list_of_tables = (
        isinstance(answer, list)
        and len(answer) > 0
        and isinstance(answer[0], np.ndarray)
        and answer[0].ndim == 2
    )
    if is_list_of_tables:
        raise ValueError(
            f"The model returned a list of {len(answer)} tables, one for each of several targets."
            " Pass `predict=` a function that returns one table (n, k), for example the second"
            " column of each."
        )
    return as_2d(as_outputs(answer, len(rows), "The model"))


def _dtypes(rows: Data) -> tuple[str, ...]:
    """Return the dtype of each column of a frame, or the single dtype of an array, as text."""
    return (str(rows.dtype),) if isinstance(rows, np.ndarray) else tuple(map(str, rows.dtypes))


def _select_outputs(
    outputs: Outputs, names: tuple[str, ...], default: tuple[int, ...]
) -> tuple[tuple[int, ...], bool]:
    """Return the positions of the outputs to explain, and whether results have an output axis k.

    `outputs` is the user's option, `names` are those of all outputs, and `default` has the
    positions to explain if the option is None.
    """
    if outputs is None:
        return default, len(default) > 1
    if isinstance(outputs, (int, np.integer, str)):
        return (resolve_output(outputs, names),), False
    if not isinstance(outputs, (Sequence, np.ndarray)):
        raise TypeError(
            f"`outputs` must be a position, a name, or a list of them; got {outputs!r}."
        )
    positions = tuple(resolve_output(output, names) for output in outputs)
    if not positions:
        raise ValueError("`outputs` is an empty list; name at least one output, or leave it out.")
    repeated_names = [names[o] for o in positions if positions.count(o) > 1]
    if repeated_names:
        raise ValueError(f"`outputs` names {repeated_names[0]!r} more than once.")
    return positions, True
