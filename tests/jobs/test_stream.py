"""Arrow batches in, Arrow batches out: what comes out is what the explainer says, however the rows
are cut."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weightedshap as ws
from tests.jobs.example_run import NAMES, fit_model, frame
from weightedshap.inputs.pandas import PANDAS
from weightedshap.jobs import stream as streaming

BACKGROUND = frame(200).astype({"city": "category"})
MODEL = fit_model(frame(200))
ROWS = frame(60, seed=1)
ROWS["id"] = np.arange(60) * 7
TABLE = pa.Table.from_pandas(ROWS, preserve_index=False)


def explainer(**choices):
    return ws.Explainer(MODEL, BACKGROUND, progress=False, **{"game": "tree_path", **choices})


def sampling_explainer():
    """A game that has to be sampled, on few background rows."""
    game = ws.games.Marginal()
    choices = {"game": game, "estimator": "permutation", "evaluations": 60, "progress": False}
    return ws.Explainer(
        lambda rows: (rows["f0"] * rows["f1"] - rows["f2"]).to_numpy(), BACKGROUND[:5], **choices
    )


EXACT = explainer()
SAMPLED = sampling_explainer()


def stream_table(made, batches=None, **asked):
    rows = TABLE if batches is None else batches
    return pa.Table.from_batches(made.stream(rows, **{"key": "id", **asked})).combine_chunks()


def test_the_columns_are_what_the_explainer_says():
    found = stream_table(EXACT)
    explanation = EXACT(ROWS.drop(columns="id"))
    assert found["id"].to_pylist() == ROWS["id"].tolist()
    assert np.array_equal(found["prediction"], explanation.predictions)
    assert np.array_equal(found["base_value"], explanation.base_values)
    assert found["weight"].to_pylist() == explanation.weight_labels.tolist()
    assert np.array_equal(
        np.stack([found[f"phi_{name}"] for name in (*NAMES, "city")], axis=1), explanation.values
    )
    assert np.array_equal(found["score"], explanation.scores.max(axis=1))
    assert np.array_equal(
        -np.asarray(found["shapley_score"]), ws.curves.area(explanation.reference_curves["shapley"])
    )


def test_draws_come_from_the_key_as_from_row_ids():
    explanation = SAMPLED(ROWS.drop(columns="id"), row_ids=ROWS["id"])
    assert np.array_equal(stream_table(SAMPLED)["phi_f0"], explanation.values[:, 0])


def in_pieces(cuts):
    pieces = [TABLE.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, 60], strict=True)]
    return [batch for piece in pieces for batch in piece.combine_chunks().to_batches()]


@settings(max_examples=15)
@given(cuts=st.lists(st.integers(0, 60), max_size=4).map(sorted))
def test_batches_do_not_matter(cuts):
    assert stream_table(EXACT, in_pieces(cuts)).equals(ALL)


@pytest.mark.parametrize("cuts", [[1], [7, 30, 31]])
def test_batches_do_not_matter_where_rows_draw(cuts):
    assert stream_table(SAMPLED, in_pieces(cuts)).equals(WHOLE)


ALL = stream_table(EXACT)
WHOLE = stream_table(SAMPLED)


@pytest.mark.parametrize("layout", streaming.LAYOUTS)
@pytest.mark.parametrize("include", [(), ("shapley",), ("contributions", "errors", "shapley")])
def test_the_schema_is_known_beforehand(layout, include):
    known = EXACT.stream_schema(TABLE.schema, key="id", include=include, layout=layout)
    batches = list(EXACT.stream(TABLE, key="id", include=include, layout=layout))
    assert all(batch.schema.equals(known) for batch in batches)


def test_lists_and_included_columns_are_options():
    explanation = EXACT.but(keep_contributions=True)(ROWS.drop(columns="id"))
    found = stream_table(EXACT, layout="lists", include=("shapley", "errors", "contributions"))
    assert np.array_equal(np.stack(found["phi"].to_pylist()), explanation.values)
    assert np.array_equal(np.stack(found["shapley"].to_pylist()), explanation.shapley)
    assert not np.stack(found["error"].to_pylist()).any()
    assert np.array_equal(
        np.stack(found["delta"].to_pylist()).reshape(60, 6, 6), explanation.contributions
    )


def test_a_sampled_game_has_columns_of_errors():
    explanation = SAMPLED(ROWS.drop(columns="id"), row_ids=ROWS["id"])
    found = stream_table(SAMPLED, include=("errors",), layout="lists")
    assert np.array_equal(np.stack(found["error"].to_pylist()), explanation.standard_errors)


def test_several_outputs_have_columns_of_their_own():
    def two(rows):
        return np.stack([rows["f0"], 2 * rows["f1"]], axis=1)

    made = ws.Explainer(two, BACKGROUND[:5], game="marginal", progress=False)
    found = stream_table(made)
    explanation = made(ROWS.drop(columns="id"))
    assert np.array_equal(found["phi_f1_output 1"], explanation.values[:, 1, 1])
    assert found.schema.equals(made.stream_schema(TABLE.schema, key="id"))


def test_several_keys_are_passed_through_and_identify_rows():
    doubled = TABLE.append_column("half", pa.array([0, 1] * 30))
    found = stream_table(SAMPLED, doubled, key=["id", "half"])
    assert found.column_names[:2] == ["id", "half"]
    assert not np.array_equal(found["phi_f0"], WHOLE["phi_f0"])


def test_a_sampled_game_needs_a_key_and_an_exact_one_does_not():
    with pytest.raises(ValueError, match="Pass `key=`"):
        stream_table(SAMPLED, key=None)
    assert stream_table(EXACT, key=None).equals(stream_table(EXACT).drop_columns("id"))


@pytest.mark.parametrize("select", ["shared", "one_standard_error"])
def test_a_shared_weight_is_chosen_on_the_background_before_the_first_row(select):
    made = explainer(select=select)
    chosen = made(BACKGROUND).weight_labels[0]
    for rows in (TABLE, TABLE.slice(0, 1), TABLE.slice(30, 7)):
        assert set(stream_table(made, rows)["weight"].to_pylist()) == {chosen}
    assert stream_table(made, TABLE.slice(30, 7)).equals(
        stream_table(made).slice(30, 7).combine_chunks()
    )


def test_columns_may_have_other_names():
    renamed = TABLE.rename_columns([*(f"X{i}" for i in range(6)), "id"])
    assert stream_table(EXACT, renamed, columns=[f"X{i}" for i in range(6)]).equals(
        stream_table(EXACT)
    )


def test_arrays_in_the_background_are_matched_by_place():
    made = ws.Explainer(
        lambda rows: rows[:, 0] * rows[:, 1], BACKGROUND[NAMES].to_numpy()[:9], game="baseline"
    )
    found = stream_table(made.but(progress=False), columns=NAMES)
    assert np.array_equal(found["phi_x1"], made(ROWS[NAMES].to_numpy()).values[:, 1])


def test_text_is_read_as_what_the_background_holds():
    text = pa.table({name: TABLE[name].cast(pa.string()) for name in TABLE.column_names})
    found = stream_table(EXACT, text)
    assert found.drop_columns("id").equals(stream_table(EXACT).drop_columns("id"))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("f1", "much", "'f1' holds text .* 'much'"),
        ("city", "Rom", "'Rom'"),
        ("id", None, "key 'id' is missing"),
    ],
)
def test_a_bad_row_is_named(column, value, message):
    text = {name: TABLE[name].cast(pa.string()).to_pylist() for name in TABLE.column_names}
    text[column][37] = value
    with pytest.raises(streaming.RowError, match=rf"Row 37 \(counted from 0\).*{message}"):
        stream_table(EXACT, pa.table(text))


def difference(rows):
    """A function of two columns of numbers, in double precision, that takes holes for zeros."""
    X = np.nan_to_num(np.asarray(rows, dtype=np.float64))
    return X[:, 0] - 3 * X[:, 1]


SINGLE = {
    "numpy": np.ones((4, 2), dtype=np.float32),
    "pandas": pd.DataFrame(np.ones((4, 2), dtype=np.float32), columns=["x0", "x1"]),
}


@pytest.mark.parametrize("form", ["double", "text"])
@pytest.mark.parametrize("kind", SINGLE)
def test_rows_of_a_file_are_explained_as_those_in_memory_with_a_background_in_single_precision(
    kind, form
):
    rows = pd.DataFrame({"x0": [2.0**24 + 1, 0.1], "x1": [1e10, 1 / 3]})
    made = ws.Explainer(
        difference, SINGLE[kind], game="marginal", judge="game", estimator="exact", progress=False
    )
    table = pa.Table.from_pandas(rows)
    sent = (
        table
        if form == "double"
        else pa.table({name: table[name].cast(pa.string()) for name in rows})
    )
    found = stream_table(made, sent, key=None)
    assert (
        found["prediction"].to_pylist()
        == made(rows).predictions.tolist()
        == difference(rows).tolist()
    )


@pytest.mark.parametrize("kind", SINGLE)
def test_a_file_in_single_precision_stays_so(kind):
    def only_single(rows):
        assert {str(dtype) for dtype in (rows.dtypes if kind == "pandas" else [rows.dtype])} == {
            "float32"
        }
        return difference(rows)

    made = ws.Explainer(
        only_single, SINGLE[kind], game="marginal", judge="game", estimator="exact", progress=False
    )
    assert (
        len(
            stream_table(
                made, pa.table({"x0": np.float32([0.1]), "x1": np.float32([0.2])}), key=None
            )
        )
        == 1
    )


@pytest.mark.parametrize(
    "column", [[2**53 + 1, None], ["9007199254740993", None], ["9007199254740993"], [str(2**63)]]
)
def test_whole_numbers_of_a_file_that_floats_cannot_distinguish_are_refused(column):
    made = ws.Explainer(
        difference, SINGLE["pandas"], game="marginal", estimator="exact", progress=False
    )
    with pytest.raises(streaming.RowError, match=r"whole numbers of 2\^53 and beyond"):
        stream_table(made, pa.table({"x0": column, "x1": [1.0] * len(column)}), key=None)


def test_whole_numbers_of_text_stay_whole_where_the_background_has_integers():
    def whole(rows):
        assert set(rows.dtypes) == {np.dtype("int64")}
        return difference(rows)

    made = ws.Explainer(
        whole, SINGLE["pandas"].astype("int64"), game="marginal", estimator="exact", progress=False
    )
    assert stream_table(made, pa.table({"x0": ["2", "3"], "x1": ["4", "5"]}), key=None)[
        "prediction"
    ].to_pylist() == [-10, -12]
    with pytest.raises(streaming.RowError, match="holds text where the background holds numbers"):
        stream_table(made, pa.table({"x0": ["0x1F"], "x1": ["4"]}), key=None)


def test_bad_rows_can_be_left_out():
    text = {name: TABLE[name].cast(pa.string()).to_pylist() for name in TABLE.column_names}
    text["f1"][37] = text["f1"][5] = "much"
    (batch,) = pa.table(text).to_batches()
    left_out = []
    stream = streaming.Stream.build(EXACT, streaming.StreamOptions.build(None, "id", ()))
    found = list(stream.explain_batch(batch, 100, lambda row, reason, rows: left_out.append(row)))
    assert left_out == [105, 137]
    kept = [start - 100 + i for start, _, one in found for i in range(len(one))]
    assert kept == [i for i in range(60) if i not in (5, 37)]
    values = np.concatenate([one.values for _, _, one in found])
    assert np.array_equal(values, EXACT(ROWS.drop(columns="id")).values[kept])


def test_a_category_in_text_that_the_background_never_saw_is_an_error_unless_it_may_pass():
    made = ws.Explainer(
        lambda rows: rows["f0"].to_numpy(), frame(20), game="baseline", progress=False
    )
    rows = pa.Table.from_pandas(ROWS.assign(city="Rom"), preserve_index=False)
    with pytest.raises(streaming.RowError, match="never saw: 'Rom'"):
        stream_table(made, rows)
    assert len(stream_table(made, rows, unseen="pass")) == 60


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"key": "idd"}, "Did you mean 'id'"),
        ({"include": ["shaply"]}, "Did you mean 'shapley'"),
        ({"layout": "wide"}, "Known: 'columns', 'lists'"),
        ({"columns": ["f0"]}, "names 1 columns but the background has 6"),
    ],
)
def test_wrong_options_are_refused(asked, message):
    with pytest.raises(ValueError, match=message):
        stream_table(EXACT, **asked)


def test_names_that_clash_are_refused():
    with pytest.raises(ValueError, match="'prediction'"):
        EXACT.stream_schema(
            TABLE.rename_columns([*TABLE.column_names[:-1], "prediction"]).schema, key="prediction"
        )


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "weightedshap.jobs.stream")
    with pytest.raises(ImportError, match=r'pip install "weightedshap\[stream\]"'):
        EXACT.stream([])


@pytest.mark.parametrize(
    ("engine", "module"),
    [("spark", "pyspark"), ("dask", "dask"), ("ray", "ray"), ("polars", "polars")],
)
def test_a_missing_engine_is_named_with_its_extra(engine, module, monkeypatch):
    for loaded in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.setitem(sys.modules, loaded, None)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf'pip install "weightedshap\[{engine}\]"'):
        getattr(ws.engines, engine)(None, "folder", "model.txt")


def test_memory_grows_with_the_bytes_of_keys_and_not_with_rows_times_the_longest():
    rows = pd.concat([ROWS] * 100, ignore_index=True)
    rows["id"] = ["k" * 300_000, *(f"row {i}" for i in range(1, 6_000))]
    batches = pa.Table.from_pandas(rows, preserve_index=False)
    stream_table(EXACT, batches.slice(1, 3_000))
    tracemalloc.start()
    try:
        found = stream_table(EXACT, batches)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found["id"].to_pylist() == rows["id"].tolist()
    assert peak < 50e6  # one array of these texts would be 1.2 MB for each of 3,000 rows


def test_a_long_text_is_not_copied_into_every_row_that_a_game_mixes():
    cities = pd.Series(["c" * 10**6, "Ulm", None], dtype=pd.StringDtype("pyarrow", na_value=np.nan))
    rows = pd.DataFrame({"city": cities})
    hidden = pd.DataFrame({"city": cities[1:]})
    before = pa.total_allocated_bytes()
    mixed = PANDAS.mix(rows, np.zeros(500, dtype=np.intp), np.ones((500, 1), dtype=bool), hidden, 0)
    assert pa.total_allocated_bytes() - before < 20e6
    assert (mixed["city"] == "c" * 10**6).all()
    assert mixed["city"].dtype == "str"
    some = PANDAS.mix(rows, 1, np.array([[True], [False]]), hidden, 1)
    assert some["city"].isna().tolist() == [False, True]


@pytest.mark.parametrize("rows", [ROWS, ROWS["f0"], [TABLE], [ROWS], 7, "rows", {"id": [1]}])
def test_what_is_no_batch_of_arrow_is_refused(rows):
    with pytest.raises(TypeError, match=r"`batches` must be a Table of Arrow, or RecordBatches"):
        list(EXACT.stream(rows, key="id"))


def test_a_frame_of_polars_is_refused_as_well():
    polars = pytest.importorskip("polars")
    for rows in (polars.from_pandas(ROWS), polars.from_pandas(ROWS).lazy()):
        with pytest.raises(
            TypeError, match=r"`batches` must be a Table of Arrow.*`frame.to_arrow\(\)`"
        ):
            EXACT.stream(rows, key="id")


def test_a_single_batch_is_as_good_as_a_list_of_one():
    (batch,) = TABLE.to_batches()
    assert stream_table(EXACT, batch).equals(ALL)


@pytest.mark.parametrize(
    "asked", [{"key": pd.NA}, {"key": 3}, {"key": ["id", None]}, {"columns": 5}, {"include": [1]}]
)
def test_a_name_must_be_text(asked):
    with pytest.raises(TypeError, match="must be a name, or a list of names"):
        stream_table(EXACT, **asked)


@pytest.mark.parametrize("asked", [{"key": ["id", "id"]}, {"columns": ["f0", "f1", "f0"]}])
def test_a_column_that_is_named_twice_is_refused(asked):
    with pytest.raises(ValueError, match=r"names '\w+' more than once"):
        stream_table(EXACT, **asked)


def test_names_may_come_as_an_index_or_alone():
    assert stream_table(EXACT, key=pd.Index(["id"])).equals(ALL)
    assert stream_table(EXACT, include="shapley").equals(stream_table(EXACT, include=["shapley"]))


def test_names_of_rows_that_appear_twice_are_refused():
    doubled = pa.Table.from_arrays([*TABLE.columns, TABLE["f0"]], names=[*TABLE.column_names, "f0"])
    with pytest.raises(ValueError, match="The rows have 2 columns called 'f0'"):
        stream_table(EXACT, doubled)
    unread = pa.Table.from_arrays(
        [*TABLE.columns, TABLE["f0"], TABLE["f0"]], names=[*TABLE.column_names, "a", "a"]
    )
    assert stream_table(EXACT, unread).equals(ALL)


def test_the_text_none_is_no_missing_value():
    background = frame(20)
    background.loc[3, "city"] = None
    made = ws.Explainer(
        lambda rows: rows["f0"].to_numpy(), background, game="baseline", progress=False
    )
    rows = pa.Table.from_pandas(ROWS.assign(city="None"), preserve_index=False)
    with pytest.raises(streaming.RowError, match="never saw: 'None'"):
        stream_table(made, rows)


def test_of_a_long_category_the_beginning_is_quoted():
    made = ws.Explainer(
        lambda rows: rows["f0"].to_numpy(), frame(20), game="baseline", progress=False
    )
    rows = pa.Table.from_pandas(ROWS[:1].assign(city="c" * 10**6), preserve_index=False)
    for explaining in (made, EXACT):
        with pytest.raises(
            streaming.RowError, match=r"never saw: 'cc.*1,000,000 characters"
        ) as raised:
            stream_table(explaining, rows)
        assert len(str(raised.value)) < 1_000


def test_integers_in_text_are_integers_for_the_model():
    held = []

    def score(rows):
        held.append(str(rows["n"].dtype))
        return rows["n"].to_numpy(dtype=float)

    background = pd.DataFrame({"n": np.arange(5), "f0": np.arange(5.0)})
    made = ws.Explainer(score, background, game="baseline", progress=False)
    rows = pa.table({"id": ["a", "b"], "n": ["3", "4"], "f0": ["1", "2"]})
    found = stream_table(made, rows)
    assert set(held) == {"int64"}
    assert found["prediction"].to_pylist() == [3, 4]
