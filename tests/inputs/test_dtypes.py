"""Tests that no number of the user is rounded, whatever the dtypes of background and rows.

Mixed rows hold the numbers of both exactly.
"""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lightgbm import Dataset, LGBMRegressor, train
from sklearn.ensemble import HistGradientBoostingRegressor

import weightedshap as ws
from tests.inputs.onnx_models import onnx_linear
from weightedshap.inputs import as_table, concat_rows

pl = pytest.importorskip("polars")

# Below it, float64 has a value of its own for every integer.
EXACT_LIMIT = 2**53
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
NUMPY = ["bool", *INTEGERS, *FLOATS]
KINDS = ["numpy", "pandas", "nullable", "polars"]
NAMES = ["a", "b"]


def dtypes_of(kind):
    """Return numpy's dtypes that a kind of table has; some lack half precision."""
    return [dtype for dtype in NUMPY if kind in ("numpy", "pandas") or dtype != "float16"]


def nullable(dtype):
    """Return the name of pandas' nullable dtype."""
    return (
        "boolean"
        if dtype == "bool"
        else dtype.replace("uint", "UInt").replace("int", "Int").replace("float", "Float")
    )


def numbers_of(dtype, holes=False):
    """Return a strategy for numbers of a dtype, with its largest and smallest below 2^53.

    `holes` adds missing values.
    """
    kind = np.dtype(dtype).kind
    if kind == "b":
        numbers = st.booleans()
    elif kind in "iu":
        limits = np.iinfo(dtype)
        least = max(limits.min, 1 - EXACT_LIMIT)
        most = min(limits.max, EXACT_LIMIT - 1)
        numbers = st.integers(least, most) | st.sampled_from([least, most, 0, 1, 2])
    else:
        width = 8 * np.dtype(dtype).itemsize
        most = {16: 30_000, 32: 2.0**100, 64: 2.0**200}[width]
        special = {16: [0.5, 1.0], 32: [2.0**24, 1e5], 64: [2.0**24 + 1, 1e5, 1 / 3]}[width]
        numbers = st.floats(-most, most, width=width) | st.sampled_from(special)
    missing = [float("nan")] if kind == "f" else []
    return numbers | st.sampled_from([None, *missing]) if holes else numbers


def table(kind, columns, dtype):
    """Return columns of Python's numbers (None if missing) as a table of one kind and dtype."""
    if kind == "numpy":
        return np.array(columns, dtype=dtype).T
    if kind == "polars":
        polars_dtypes = {
            name.lower(): getattr(pl, name)
            for name in dir(pl)
            if name.startswith(("Int", "UInt", "Float"))
        }
        polars_dtype = polars_dtypes.get(dtype, pl.Boolean)
        if polars_dtype == pl.Boolean:
            columns = [
                [None if value is None else bool(value) for value in column] for column in columns
            ]
        return pl.DataFrame(
            {name: pl.Series(column, dtype=polars_dtype) for name, column in zip(NAMES, columns)}
        )
    pandas_dtype = dtype if kind == "pandas" else nullable(dtype)
    return pd.DataFrame(
        {name: pd.Series(column, dtype=pandas_dtype) for name, column in zip(NAMES, columns)}
    )


def cells(rows):
    """Return the cells of any table as Python's numbers, which compare exactly; None if missing."""
    if isinstance(rows, pl.DataFrame):
        values = [list(row) for row in rows.rows()]
    elif isinstance(rows, pd.DataFrame):
        values = [[rows.iloc[r, c] for c in range(rows.shape[1])] for r in range(len(rows))]
    else:
        values = [list(row) for row in rows]
    return [
        [None if value is None or pd.isna(value) else np.asarray(value).item() for value in row]
        for row in values
    ]


def floats(rows):
    """Return any table as float64, missing values as NaN."""
    if isinstance(rows, pl.DataFrame):
        return np.stack([column.cast(pl.Float64).to_numpy() for column in rows], axis=1)
    return (
        rows.to_numpy(dtype=float, na_value=np.nan)
        if isinstance(rows, pd.DataFrame)
        else rows.astype(float)
    )


def columns_of(rows):
    """Return the columns of any table."""
    return list(rows.T) if isinstance(rows, np.ndarray) else [rows[name] for name in rows.columns]


def in_double(rows):
    """A model that computes in double precision, whatever the dtype of its rows."""
    X = np.nan_to_num(floats(rows), nan=-7.0)
    return X[:, 0] - 3 * X[:, 1]


def in_its_own_precision(rows):
    """A model that computes in the dtype of its rows, as functions of numpy do."""
    assert isinstance(rows, np.ndarray)
    return rows[:, 0] - rows[:, 1] / 3


def explained(model, background, rows, **choices):
    defaults = {"game": "marginal", "judge": "game", "progress": False}
    return ws.Explainer(model, background, **{**defaults, **choices})(rows)


@st.composite
def tables(draw, kinds=KINDS, holes=False):
    """Draw a background of three rows, and two rows to explain, of any kinds and dtypes."""
    both = []
    for n in (3, 2):
        kind = draw(st.sampled_from(kinds))
        dtype = draw(st.sampled_from(dtypes_of(kind)))
        may_be_missing = holes and (kind in ("nullable", "polars") or np.dtype(dtype).kind == "f")
        column = st.lists(numbers_of(dtype, may_be_missing), min_size=n, max_size=n)
        both.append(table(kind, [draw(column), draw(column)], dtype))
    return both


# the explained prediction is that of the user's rows ----------------------------------------------


@settings(max_examples=100)
@given(pair=tables(holes=True))
def test_the_explained_prediction_is_that_of_the_users_rows(pair):
    background, rows = pair
    explanation = explained(in_double, background, rows)
    np.testing.assert_array_equal(explanation.predictions, in_double(rows))
    assert cells(explanation.data) == cells(rows)


@settings(max_examples=60)
@given(pair=tables(kinds=["numpy"]))
def test_a_model_that_works_in_the_dtype_of_its_rows_is_given_the_wider_one(pair):
    background, rows = pair
    wide = np.result_type(background, rows)
    explanation = explained(in_its_own_precision, background, rows)
    assert explanation.data.dtype == wide
    np.testing.assert_array_equal(explanation.predictions, in_its_own_precision(rows.astype(wide)))


@settings(max_examples=100)
@given(pair=tables(holes=True), known=st.lists(st.booleans(), min_size=8, max_size=8))
def test_every_cell_of_a_mixture_is_exactly_that_of_the_row_or_of_the_background(pair, known):
    background, rows = pair
    known = np.array(known).reshape(4, 2)
    which = np.array([0, 1, 1, 0])
    whose = np.array([2, 0, 1, 1])
    own = as_table(background)
    mixed = own.mix(own.align(rows), which, known, background, whose)
    row_cells = cells(rows)
    hidden = cells(background)
    expected = [
        [row_cells[which[m]][c] if known[m, c] else hidden[whose[m]][c] for c in range(2)]
        for m in range(len(known))
    ]
    assert cells(mixed) == expected
    assert isinstance(mixed, np.ndarray | pl.DataFrame) or object not in mixed.dtypes.tolist()


@settings(max_examples=15)
@given(pair=tables(kinds=["numpy"]))
@example(pair=[np.ones((3, 2), dtype=np.float16), np.array([[1e5, 0.1], [0.1, -1.0]])])
def test_one_table_gives_the_same_numbers_in_every_form(pair):
    background, rows = pair
    forms = [
        np.asarray,
        lambda X: pd.DataFrame(X, columns=NAMES),
        lambda X: pl.DataFrame(dict(zip(NAMES, X.T))),
    ]
    if np.float16 in (background.dtype, rows.dtype) and not hasattr(pl, "Float16"):
        forms = forms[:2]
    first = explained(in_double, background, rows)
    for one, other in itertools.product(forms, forms):
        explanation = explained(in_double, one(background), other(rows))
        np.testing.assert_array_equal(explanation.predictions, first.predictions)
        np.testing.assert_array_equal(explanation.values, first.values)


COUNTED = np.random.default_rng(0).integers(-300, 300, size=(600, 2)) + 2.0**24
# Here single precision has even numbers only.
STEPS = COUNTED[:, 0] % 2 + (COUNTED[:, 1] > 2.0**24)
FINE = {
    "min_data_in_bin": 1,
    "max_bin": 1000,
    "min_data_in_leaf": 1,
    "num_leaves": 300,
    "num_threads": 1,
}
BOOSTER = train({**FINE, "verbose": -1}, Dataset(COUNTED, STEPS), 3)
HISTOGRAM = HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=1, max_leaf_nodes=None).fit(
    COUNTED, STEPS
)


@settings(max_examples=40)
@given(
    background_dtype=st.sampled_from(FLOATS + ["int32", "int64", "bool"]),
    row_dtype=st.sampled_from(["float32", "float64", "int32", "int64", "uint32"]),
    kinds=st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)),
    seed=st.integers(0, 99),
)
@example(background_dtype="float32", row_dtype="float64", kinds=("numpy", "numpy"), seed=0)
@example(background_dtype="float32", row_dtype="int64", kinds=("pandas", "polars"), seed=0)
@pytest.mark.parametrize("model", [BOOSTER, HISTOGRAM], ids=["LightGBM", "scikit-learn"])
def test_trees_explain_the_prediction_of_the_users_rows(
    model, background_dtype, row_dtype, kinds, seed
):
    rng = np.random.default_rng(seed)
    small = background_dtype in ("bool", "float16")
    known = (
        np.stack([rng.integers(0, 2, 3), rng.integers(0, 2, 3)])
        if small
        else COUNTED[rng.integers(0, 600, 3)].T
    )
    if background_dtype == "float16" and kinds[0] in ("nullable", "polars"):
        background_dtype = "float32"
    background = table(kinds[0], known.astype(background_dtype).tolist(), background_dtype)
    rows = table(kinds[1], COUNTED[rng.integers(0, 600, 4)].T.astype(row_dtype).tolist(), row_dtype)
    explanation = explained(model, background, rows, game="tree_interventional", family="shapley")
    # LightGBM itself rounds arrays of integers to single precision, so its prediction is taken for
    # the aligned rows.
    aligned = as_table(background).align(rows)
    rounds = model is BOOSTER and isinstance(aligned, np.ndarray) and aligned.dtype.kind in "iu"
    np.testing.assert_array_equal(
        explanation.predictions, model.predict(aligned if rounds else floats(rows))
    )
    rest = explanation.predictions - explanation.base_values
    np.testing.assert_allclose(explanation.values.sum(axis=1), rest, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("background_dtype", "row_dtype", "values"),
    [
        ("float32", "float64", [2.0**24 + 1, 0.1]),
        ("float32", "int64", [2**24 + 1, 1]),
        ("float16", "float64", [1e5, 0.1]),
        ("bool", "int64", [2, 1]),
        ("uint8", "int64", [-1, 1]),
        ("int8", "int64", [300, 1]),
        ("int64", "float64", [0.5, 2.0]),
        ("uint64", "int64", [-1, EXACT_LIMIT // 2]),
    ],
)
def test_what_the_backgrounds_dtype_cannot_hold_is_explained_as_it_is(
    kind, background_dtype, row_dtype, values
):
    background_dtype = "float32" if background_dtype not in dtypes_of(kind) else background_dtype
    background = table(kind, [[0, 1, 1], [1, 0, 1]], background_dtype)
    rows = table(kind, [[value] for value in values], row_dtype)
    explanation = explained(in_double, background, rows)
    assert cells(explanation.data) == [values]
    np.testing.assert_array_equal(explanation.predictions, [values[0] - 3 * values[1]])


@pytest.mark.parametrize(
    ("background_dtype", "row_dtype", "values", "answer"),
    [
        ("int8", "int64", [100, 100], 10_000),
        ("int8", "float64", [100.0, 100.0], 10_000),
        ("bool", "int64", [1, 1], 2),
        ("float32", "float64", [2.0**24, 1.0], 2.0**24 + 1),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_arithmetic_is_in_the_precision_of_the_users_rows(
    kind, background_dtype, row_dtype, values, answer
):
    def model(rows):
        a, b = (rows[:, 0], rows[:, 1]) if isinstance(rows, np.ndarray) else (rows["a"], rows["b"])
        return np.asarray(a * b if answer == 10_000 else a + b)

    background = table(kind, [[0, 1, 1], [1, 0, 1]], background_dtype)
    rows = table(kind, [[value] for value in values], row_dtype)
    assert explained(model, background, rows).predictions.tolist() == [answer]


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_explained_equally_whatever_rows_it_comes_with(kind):
    background = table(kind, [[0.5, 1.5, 2.5], [1.0, 2.0, 3.0]], "float32")
    # The first row by itself would fit into single precision.
    rows = table(kind, [[0.5, 0.1], [1.0, 0.2]], "float64")
    both, first = (as_table(background).align(some) for some in (rows, rows[:1]))
    assert [column.dtype for column in columns_of(both)] == [
        column.dtype for column in columns_of(first)
    ]


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("kind", KINDS)
def test_whole_numbers_that_floats_cannot_tell_apart_are_refused_in_rows_and_backgrounds(
    kind, dtype
):
    small = table(kind, [[1, 2], [3, 4]], "float32")
    big = table(kind, [[1, EXACT_LIMIT + 1], [3, 4]], dtype)
    for call in (lambda: as_table(big), lambda: as_table(small).align(big)):
        with pytest.raises(ValueError, match=r"whole numbers of 2\^53 and beyond"):
            call()


@pytest.mark.parametrize(
    "rows", [[[EXACT_LIMIT + 1, None]], [[2**64, 1]], {"a": EXACT_LIMIT + 1, "b": None}]
)
def test_large_whole_numbers_among_objects_are_refused_too(rows):
    for background in (np.ones((2, 2)), pd.DataFrame(np.ones((2, 2)), columns=NAMES)):
        with pytest.raises(
            (ValueError, TypeError), match=r"whole numbers of 2\^53 and beyond|holds integer values"
        ):
            as_table(background).align(rows)


def test_numbers_of_categories_are_not_rounded():
    background = pd.DataFrame({"a": np.ones(2, dtype=np.float32)})
    row = pd.DataFrame({"a": pd.Categorical([0.1])})
    assert as_table(background).align(row)["a"].tolist() == [0.1]


def test_what_is_no_boolean_does_not_become_one():
    background = pd.DataFrame(
        {"a": pd.Series([True, None, False], dtype=object), "b": [1.0, 2.0, 3.0]}
    )
    own = as_table(background)
    assert own.align({"a": 2, "b": 1.0})["a"].tolist() == [2]
    assert own.align({"a": 1, "b": 1.0})["a"].tolist() == [True]


def test_a_number_is_refused_where_objects_are_text():
    background = pd.DataFrame({"a": pd.Series(["x", "y"], dtype=object)})
    with pytest.raises(TypeError, match="holds numbers where the background holds text"):
        as_table(background).align({"a": 5.0})


# single precision throughout ----------------------------------------------------------------------


def only_single(rows):
    """A model that takes only single precision, as a function around a network may."""
    if {str(dtype) for dtype in (rows.dtypes if hasattr(rows, "dtypes") else [rows.dtype])} - {
        "float32",
        "Float32",
    }:
        raise TypeError("expected Float but found Double")
    return in_double(rows)


@pytest.mark.parametrize("form", [np.asarray, lambda X: pd.DataFrame(X, columns=NAMES), "polars"])
@pytest.mark.parametrize(
    "game", ["marginal", "baseline", "gaussian", "copula", "tree_surrogate", "distilled_trees"]
)
def test_rows_and_background_in_single_precision_stay_so_in_every_game(game, form):
    X = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    if form == "polars":
        form = lambda X: pl.DataFrame(dict(zip(NAMES, X.T)))
    explanation = explained(only_single, form(X[:50]), form(X[50:53]), game=game)
    np.testing.assert_array_equal(explanation.predictions, in_double(X[50:53]))


def test_the_error_of_a_model_that_refuses_wider_rows_notes_why_they_are_wider():
    X = np.random.default_rng(0).normal(size=(9, 2))
    explainer = ws.Explainer(
        only_single, X.astype(np.float32), game="marginal", judge="game", progress=False
    )
    with pytest.raises(TypeError, match="expected Float") as error:
        explainer(X[:2])
    assert error.value.__notes__ == [
        "The model was given float64 where the background has float32, as numbers of `X` are not"
        " rounded. If it takes the background's dtypes alone, pass rows in these, by `X.astype(…)`."
    ]
    with pytest.raises(ZeroDivisionError) as other:
        ws.Explainer(lambda rows: 1 // 0, X, game="marginal")
    assert not hasattr(other.value, "__notes__")


@pytest.mark.parametrize("game", ["gaussian", "copula", "baseline"])
def test_known_cells_of_wider_rows_are_not_rounded_in_games_that_make_rows_up(game):
    X = np.random.default_rng(0).normal(size=(60, 2))
    seen = []

    def model(rows):
        seen.append(np.array(rows))
        return in_double(rows)

    explained(model, X[:50].astype(np.float32), X[50:51], game=game)
    mixed = np.concatenate([rows for rows in seen if rows.dtype == np.float64])
    near = np.abs(mixed[:, 0] - X[50, 0]) < 1e-6
    assert near.sum() > 1
    assert (mixed[near, 0] == X[50, 0]).all()


def test_a_row_of_a_baseline_may_be_wider_than_background_and_rows():
    X = np.arange(8, dtype=np.float32).reshape(4, 2)
    game = ws.games.Baseline(values=np.array([0.1, 0.2]))
    explanation = explained(in_double, X, X[:2], game=game)
    np.testing.assert_allclose(explanation.base_values, 0.1 - 3 * 0.2, rtol=1e-12)


def test_a_network_in_single_precision_rounds_wider_rows_itself():
    torch = pytest.importorskip("torch")
    X = np.random.default_rng(0).normal(size=(20, 2))
    X[0, 0] = 2.0**24 + 1
    torch.manual_seed(0)
    module = torch.nn.Linear(2, 1)
    with torch.no_grad():
        expected = module(torch.tensor(X[:3], dtype=torch.float32))[:, 0].double().numpy()
    for background in (X.astype(np.float32), pd.DataFrame(X, columns=NAMES).astype("float32")):
        np.testing.assert_array_equal(explained(module, background, X[:3]).predictions, expected)
    session = onnx_linear([1.0, -3.0])
    answer = session.run(None, {"X": X[:3].astype(np.float32)})[0][:, 0]
    np.testing.assert_array_equal(
        explained(session, X.astype(np.float32), X[:3]).predictions, answer
    )


# concatenated and saved ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("one", "other"), [("bool", "int64"), ("float32", "float64"), ("int8", "uint8")]
)
def test_parts_in_other_dtypes_are_joined_exactly(kind, one, other):
    parts = [table(kind, [[1, 0], [1, 1]], one), table(kind, [[2, 3], [200, 1]], other)]
    joined = concat_rows(parts)
    assert cells(joined) == [*cells(parts[0]), *cells(parts[1])]
    assert not isinstance(joined, pd.DataFrame) or object not in joined.dtypes.tolist()


def test_explanations_of_rows_in_other_dtypes_are_put_together():
    X = np.random.default_rng(0).normal(size=(30, 2))
    single = pl.DataFrame(dict(zip(NAMES, X.astype(np.float32).T)))
    double = pl.DataFrame(dict(zip(NAMES, X.T)))
    explainer = ws.Explainer(in_double, single, game="marginal", judge="game", progress=False)
    joined = ws.Explanation.concatenate([explainer(single[:2]), explainer(double[2:4])])
    assert cells(joined.data) == [*cells(single[:2]), *cells(double[2:4])]


def test_a_saved_explainer_explains_wider_rows_equally(tmp_path):
    background = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    rows = np.array([[2.0**24 + 1, 0.1]])
    explainer = ws.Explainer(in_double, background, game="marginal", judge="game", progress=False)
    explainer.save(tmp_path / "explainer")
    loaded = ws.Explainer.load(tmp_path / "explainer", in_double)
    np.testing.assert_array_equal(loaded(rows).predictions, in_double(rows))
    loaded(rows).save(tmp_path / "explained.npz")
    assert ws.Explanation.load(tmp_path / "explained.npz").data.tolist() == rows.tolist()


def test_a_bound_game_and_a_group_take_the_row_as_it_is():
    background = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    row = np.array([2.0**24 + 1, 0.1, 3.0])
    explainer = ws.Explainer(
        in_double, background, game="marginal", judge="game", groups=[[0, 2]], progress=False
    )
    np.testing.assert_allclose(
        explainer.game.at(row)(np.ones((1, 2), dtype=bool)), in_double(row[None]), rtol=1e-15
    )
    np.testing.assert_array_equal(explainer(row).predictions, in_double(row[None]))


def test_integers_of_an_array_that_lightgbm_rounds_are_rounded_in_its_trees_too():
    model = LGBMRegressor(**FINE, n_estimators=3, verbose=-1).fit(COUNTED, STEPS)
    rows = COUNTED.astype(np.int64)
    for game in ("tree_interventional", "tree_path"):
        explanation = explained(model, rows[:100], rows[100:150], game=game, family="shapley")
        np.testing.assert_array_equal(explanation.predictions, model.predict(rows[100:150]))
        rest = explanation.predictions - explanation.base_values
        np.testing.assert_allclose(explanation.values.sum(axis=1), rest, atol=1e-9)
