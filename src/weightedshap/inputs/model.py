"""The model as games call it."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Self

import numpy as np

from weightedshap._checks import FloatArray, as_outputs, one_of, output_position, with_axis
from weightedshap.coalitions import batches
from weightedshap.inputs.containers import IN_ORDER, Data, UserModel, part_of
from weightedshap.inputs.predict import COLUMNS, Predict, how_to_call, library_of, traits
from weightedshap.inputs.table import Table
from weightedshap.parallel import bar

LOOKED_AT = 2  # background rows on which a model is tried
PART = 2**13  # rows between two looks of a bar
# Rows handed to the model at once: large enough for its speed, small beside memory.
BATCH_BYTES = 2**26
LIBRARIES = ("lightgbm", "xgboost", "_catboost", "onnxruntime")
LEAST_PROBABILITY = 1e-12  # log-odds stay within ±28

Outputs = int | str | Sequence[int | str] | None


@dataclass(frozen=True)
class Model:
    """A model as the games call it: ``model(rows)`` → (n, k), always finite; it gets copies, in
    bounded batches."""

    predict: Predict
    original: UserModel
    output_names: tuple[str, ...]  # of the outputs explained
    space: str  # "probability", "margin" or "value", the scale of the numbers
    n_raw: int  # how many outputs the model has
    chosen: tuple[int, ...]  # which of them are explained
    has_axis: bool  # whether people see the axis k
    custom: bool = False  # whether `predict` overrides the model's own method
    link: str = "identity"  # or "logit": probabilities p are explained as log-odds log(p / (1 − p))
    progress: bool | str = (
        False  # whether a bar shows long work in fitting, see `weightedshap.parallel.bar`
    )
    dtypes: tuple[str, ...] = ()  # of the background's columns, or of its array

    def __call__(self, rows: Data) -> FloatArray:
        """(n, k) predictions of the chosen outputs."""
        at_most = max(1, BATCH_BYTES // (8 * rows.shape[1]))
        if len(rows) > at_most:
            return np.concatenate(
                [self(part_of(rows, part)) for part in batches(len(rows), at_most)]
            )
        try:
            raw = _answer(self.predict, rows)
        except Exception as error:
            self._note_dtypes(error, rows)
            raise
        if raw.shape[1] != self.n_raw:
            said = (
                f"The model returned {raw.shape[1]} outputs where it returned {self.n_raw} before"
            )
            raise ValueError(
                f"{said}. A model must return the same number of outputs for every row."
            )
        picked = raw[:, list(self.chosen)]
        return log_odds(picked) if self.link == "logit" else picked

    def _note_dtypes(self, error: Exception, rows: Data) -> None:
        """Add to `error` the dtypes of `rows` where the background's are others."""
        pairs = zip(_dtypes(rows), self.dtypes, strict=False)
        wider = {
            f"{own} where the background has {held}": None for own, held in pairs if own != held
        }
        if wider:
            said = f"The model was given {', '.join(wider)}, as numbers of `X` are not rounded."
            advice = "pass rows in these, by `X.astype(…)`"
            error.add_note(f"{said} If it takes the background's dtypes alone, {advice}.")

    @cached_property
    def on_one_thread(self) -> Self | None:
        """The same, told to take one thread; None for a model that cannot be told, which all but
        LightGBM's are."""
        if self.custom or library_of(self.original) != "lightgbm":
            return None
        return replace(self, predict=partial(self.predict, num_threads=1))

    def in_parts(self, n: int, predicted: Callable[[slice], FloatArray]) -> FloatArray:
        """(n, k) what `predicted` gives for a few thousand of n items at a time, with a bar."""
        found = [np.empty((0, len(self.chosen)))]
        with bar(n, "asking the model", self.progress) as shown:
            for part in batches(n, PART):
                found.append(predicted(part))
                shown.update(part.stop - part.start)
        return np.concatenate(found)


def as_model(
    model: UserModel,
    background: Table,
    predict: Predict | None = None,
    outputs: Outputs = None,
    link: str = "identity",
) -> Model:
    """Wrap `model`, looking at what it returns for the first background rows.

    Classifiers are called through ``predict_proba`` (of two classes the second is explained), or
    through ``decision_function`` if they know no probabilities; other estimators through
    ``predict``, torch modules and functions directly; `predict` overrides all of these. `outputs`
    picks outputs by position or name: one of them, or a list, which keeps the axis k.
    ``link="logit"`` turns probabilities into log-odds, see `log_odds`.
    """
    if isinstance(model, Model):
        return model
    one_of("link", link, ("identity", "logit"))
    function, space, own_names = how_to_call(model, predict)
    expected = _expected_columns(model, predict is not None)
    width = len(background.names)
    if expected not in (None, width):
        raise ValueError(
            f"The background has {width} columns but the model expects {expected}. {IN_ORDER}"
        )
    first = background.take(slice(0, LOOKED_AT))
    raw = _answer(function, first)
    n_raw = raw.shape[1]
    classes = space == "probability" and bool(np.allclose(raw.sum(axis=1), 1, atol=1e-3))
    numbered = tuple(f"output {o}" for o in range(n_raw)) if n_raw > 1 else ("output",)
    # Several labels, each true or not by itself.
    alone = space == "probability" and n_raw > 1 and not classes
    names = own_names if len(own_names) == n_raw and not alone else numbered
    chosen, has_axis = _choose(
        outputs, names, (1,) if classes and n_raw == 2 else tuple(range(n_raw))
    )
    picked = tuple(names[o] for o in chosen)
    scale = "margin" if link == "logit" else space
    own = predict is not None
    dtypes = _dtypes(background.data)
    made = Model(function, model, picked, scale, n_raw, chosen, has_axis, own, link, dtypes=dtypes)
    made(first)
    return made


def _expected_columns(model: UserModel, custom: bool) -> int | None:
    """Return how many columns a model was fitted on; None where it does not say."""
    # CatBoost says 0 of a model from a file.
    told: int | None = traits(model)["n_features_in_"] or None
    if told or custom or library_of(model) not in ("lightgbm", "xgboost", "catboost"):
        return told
    names = trained_columns(model)
    # A booster of XGBoost takes fewer columns without a word.
    if names is None and hasattr(model, "num_features"):
        return int(model.num_features())
    return None if names is None else len(names)


def trained_columns(model: object) -> list[str] | None:
    """The column names a model was trained on, in that order; None if it does not tell."""
    original = model.original if isinstance(model, Model) else model
    if isinstance(original, type):
        return None  # refused by `as_model`
    for names in map(traits(original).get, COLUMNS):
        if callable(names) and library_of(original) == "lightgbm":
            names = names()
        if isinstance(names, (list, tuple, np.ndarray)) and len(names):
            return [str(name) for name in names]
    return None


def log_odds(p: FloatArray) -> FloatArray:
    """log(p / (1 − p)) with p kept within 1e-12 of 0 and 1; of several classes, each against the
    rest."""
    if ((p < 0) | (p > 1)).any():
        said = (
            "`link='logit'` needs probabilities between 0 and 1, but the model returned"
            f" {p.min():g}..{p.max():g}."
        )
        raise ValueError(
            f"{said} Leave `link` out, or pass `predict=` a function that returns probabilities."
        )
    inside = np.clip(p, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def _answer(predict: Predict, rows: Data) -> FloatArray:
    """(n, k) what the model says; it gets a copy of the rows, which it may write to."""
    try:
        answer = predict(deepcopy(rows))
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in LIBRARIES:
            raise
        # Each library has kinds of errors of its own, and some tell the names of their functions
        # after the first line.
        said, *_ = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(f"The model cannot predict these rows: {said}") from error
    if (
        isinstance(answer, list)
        and answer
        and isinstance(answer[0], np.ndarray)
        and answer[0].ndim == 2
    ):
        said = (
            f"The model returned a list of {len(answer)} tables, one for each of several targets."
            " Pass `predict=`"
        )
        raise ValueError(
            f"{said} a function that returns one table (n, k), for example the second column of"
            " each."
        )
    return with_axis(as_outputs(answer, len(rows), "The model"))


def _dtypes(rows: Data) -> tuple[str, ...]:
    """Return the dtype of each column of a frame, or the one of an array."""
    return (str(rows.dtype),) if isinstance(rows, np.ndarray) else tuple(map(str, rows.dtypes))


def _choose(
    outputs: Outputs, names: tuple[str, ...], default: tuple[int, ...]
) -> tuple[tuple[int, ...], bool]:
    """Positions of the outputs to explain, and whether results carry the axis k."""
    if outputs is None:
        return default, len(default) > 1
    if isinstance(outputs, (int, np.integer, str)):
        return (output_position(outputs, names),), False
    if not isinstance(outputs, (Sequence, np.ndarray)):
        raise TypeError(
            f"`outputs` must be a position, a name, or a list of them; got {outputs!r}."
        )
    if not (chosen := tuple(output_position(o, names) for o in outputs)):
        raise ValueError("`outputs` is an empty list; name at least one output, or leave it out.")
    if twice := [names[o] for o in chosen if chosen.count(o) > 1]:
        raise ValueError(f"`outputs` names {twice[0]!r} more than once.")
    return chosen, True
