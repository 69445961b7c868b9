"""Figures with a dot, line or cell for each row: beeswarm, scatter, heatmap, decision."""

from __future__ import annotations

import dataclasses

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import weightedshap as ws
from tests.plots.drawings import legend_names, new_axes, render, texts, tick_names
from tests.plots.examples import make_explanation, with_factor, with_table
from weightedshap import plots
from weightedshap._format import number
from weightedshap.plots import many_rows, style


def test_beeswarm_has_a_dot_for_each_row_and_feature_at_its_value(explanation):
    ax = plots.beeswarm(explanation, max_display=3, ax=new_axes())
    top = np.argsort(-np.abs(explanation.values).mean(axis=0))[:3]
    swarms = [c for c in ax.collections if len(c.get_offsets()) == len(explanation)]
    assert len(swarms) == 3
    for place, (dots, i) in enumerate(zip(swarms, top)):
        x, y = np.asarray(dots.get_offsets()).T
        assert x == pytest.approx(explanation.values[:, i])
        assert (np.abs(y - place) < 0.4).all()
        assert dots.get_rasterized()
    assert tick_names(ax) == [explanation.feature_names[i] for i in top]
    assert ax.get_ylabel() == "3 of 5 features"


def test_beeswarm_colours_follow_the_value_of_the_feature(explanation):
    ax = plots.beeswarm(explanation, ax=new_axes())
    order = np.argsort(-np.abs(explanation.values).mean(axis=0))
    for dots, i in zip(ax.collections, order):
        colour = dots.get_array()
        value = explanation.data[:, i]
        assert (colour.min(), colour.max()) == (0, 1)
        assert (np.diff(colour[np.argsort(value)]) >= 0).all()
    (bar,) = ax.child_axes
    assert [tick.get_text() for tick in bar.get_yticklabels()] == ["low", "high"]


def colours_of(explanation, column):
    """Colours of the dots of a beeswarm whose features all have the values `column`."""
    data = pd.DataFrame(dict.fromkeys(explanation.feature_names, column))
    return (
        plots.beeswarm(dataclasses.replace(explanation, data=data), ax=new_axes())
        .collections[0]
        .get_array()
    )


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([0, 1, 0, 1, 0, 1], [0, 1, 0, 1, 0, 1]),
        ([True, False] * 3, [1, 0] * 3),
        (pd.array([1, None, 2, 1, 2, 1], dtype="Int64"), [0, np.nan, 1, 0, 1, 0]),
        ([2.0, np.nan, np.inf, -np.inf, 2.0, 4.0], [0, np.nan, 1, 0, 0, 1]),
        ([7] * 6, [0.5] * 6),
        ([0] * 50 + [9], None),
        ([f"text {i}" for i in range(30)], [np.nan] * 30),
        (pd.Categorical([1, 2] * 3, ordered=True), [0, 1] * 3),
        ([np.nan] * 6, [np.nan] * 6),
    ],
    ids=[
        "integers",
        "flags",
        "nullable",
        "infinite",
        "constant",
        "rare",
        "text",
        "ordered",
        "missing",
    ],
)
def test_colours_run_from_low_to_high_for_numbers(column, expected, explanation):
    explanation = explanation[np.resize(np.arange(6), len(column))]
    if expected is None:  # most rows are equal: the odd one still stands out
        explanation = explanation[np.resize(np.arange(6), 51)]
        expected = [0] * 50 + [1]
    colours = np.ma.filled(colours_of(explanation, column), np.nan)
    assert np.array_equal(colours[: len(expected)], expected, equal_nan=True)


def test_levels_of_a_category_have_colours_and_names(explanation):
    data = pd.DataFrame({name: ["Ulm", "Bonn", None] * 2 for name in explanation.feature_names})
    framed = dataclasses.replace(explanation, data=data)
    ax = render(plots.beeswarm(framed, max_display=1, ax=new_axes()))
    faces = ax.collections[0].get_facecolors()
    wanted = [style.PALETTE[1], style.PALETTE[0], style.UNKNOWN] * 2
    assert np.allclose(faces, [mpl.colors.to_rgba(colour) for colour in wanted])
    assert set(texts(ax)) == {"Bonn", "Ulm"}
    assert not ax.child_axes
    phi = explanation.values[:, np.abs(explanation.values).mean(axis=0).argmax()]
    placed = {text.get_text(): text.get_position()[0] for text in ax.texts}
    assert placed == {"Ulm": np.median(phi[[0, 3]]), "Bonn": np.median(phi[[1, 4]])}


def test_beeswarm_without_numbers_is_grey_and_has_no_colour_bar(explanation):
    ax = render(plots.beeswarm(dataclasses.replace(explanation, data=None), ax=new_axes()))
    assert not ax.child_axes
    grey = ax.collections[0].get_facecolors()[:, :3]
    assert (grey == grey[0, 0]).all()


def test_polars_columns_are_read(explanation):
    polars = pytest.importorskip("polars")
    data = polars.DataFrame(
        {name: [1.5, None, 3.0, 1.5, 3.0, 1.5] for name in explanation.feature_names}
    )
    framed = dataclasses.replace(explanation, data=data)
    colours = plots.beeswarm(framed, ax=new_axes()).collections[0].get_array()
    assert np.array_equal(np.ma.filled(colours, np.nan), [0, np.nan, 1, 0, 1, 0], equal_nan=True)
    assert tick_names(plots.waterfall(framed, 1, ax=new_axes()))[1].endswith("= missing")


def test_dots_of_one_value_are_stacked_and_stay_in_their_line(explanation):
    many = explanation[np.resize(np.arange(6), 3_000)]
    _, y = np.asarray(
        plots.beeswarm(many, max_display=1, ax=new_axes()).collections[0].get_offsets()
    ).T
    assert np.abs(y).max() < 0.4
    assert len(np.unique(y[::6].round(9))) == 500


def rows_with_a_partner(n=200) -> ws.Explanation:
    """φ* of `dose` depends on `sex`, in rows of like dose; `age` and `bmi` have no part in it."""
    rng = np.random.default_rng(2)
    dose = rng.uniform(0, 9, n)
    sex = rng.choice(["f", "m"], n)
    rows = with_table(dose=dose, age=rng.normal(size=n), sex=sex, bmi=rng.normal(size=n))
    values = rows.values.copy()
    values[:, 0] = dose * np.where(sex == "f", 1.0, -1.0)
    return dataclasses.replace(rows, values=values)


def test_scatter_draws_the_value_against_the_attribution_coloured_by_the_strongest_partner():
    found = rows_with_a_partner()
    ax = render(plots.scatter(found, "dose", ax=new_axes()))
    x, y = np.asarray(ax.collections[0].get_offsets()).T
    assert x == pytest.approx(found.data["dose"])
    assert y == pytest.approx(found.values[:, 0])
    assert legend_names(ax) == ["f", "m"]
    assert ax.get_legend().get_title().get_text() == "sex (strongest partner)"
    women = (found.data["sex"] == "f").to_numpy()
    assert np.allclose(
        ax.collections[0].get_facecolors()[women], mpl.colors.to_rgba(style.PALETTE[0])
    )
    assert ax.get_xlabel() == "dose"


def test_a_partner_must_exceed_chance_among_rows_of_similar_values():
    found = rows_with_a_partner()
    assert many_rows.strongest_partner(found, 0) == 2
    assert [many_rows.strongest_partner(found, i) for i in (1, 3)] == [None, None]
    additive = dataclasses.replace(
        found, values=found.data["dose"].to_numpy()[:, None] * np.ones(4)
    )
    follows = dataclasses.replace(
        additive, data=additive.data.assign(age=2 * additive.data["dose"])
    )
    assert many_rows.strongest_partner(follows, 0) != 2
    assert many_rows.strongest_partner(found[:10], 0) is None
    assert "no partner beyond chance" in plots.scatter(found, "age", ax=new_axes()).get_title()


def test_scatter_is_coloured_by_a_given_column_with_its_range_at_the_colour_bar():
    found = rows_with_a_partner()
    ax = plots.scatter(found, "dose", color="bmi", ax=new_axes())
    (bar,) = ax.child_axes
    ends = np.quantile(found.data["bmi"], [0.05, 0.95])
    assert [tick.get_text() for tick in bar.get_yticklabels()] == [number(end, 3) for end in ends]
    assert bar.get_ylabel() == "bmi"


def test_scatter_of_a_category_has_a_place_for_each_level_and_one_for_missing_values():
    n = 30
    city = np.resize(np.array(["Ulm", "Bonn", None], dtype=object), n)
    found = with_table(city=city, a=np.random.default_rng(2).normal(size=n))
    ax = plots.scatter(found, "city", ax=new_axes())
    x = np.asarray(ax.collections[0].get_offsets())[:, 0]
    expected = pd.Series(city).map({"Bonn": 0, "Ulm": 1}).fillna(-1)
    assert np.abs(x - expected).max() <= 0.25
    assert [label.get_text() for label in ax.get_xticklabels()] == ["Bonn", "Ulm"]
    assert texts(ax) == ["missing"]


def test_scatter_names_the_levels_of_categories_in_their_own_order():
    n = 30
    values = np.resize(["low", "high", "mid"], n)
    for ordered in (False, True):
        kind = pd.CategoricalDtype(["low", "mid", "high", "unused"], ordered=ordered)
        found = with_table(
            city=pd.Series(values).astype(kind), a=np.random.default_rng(2).normal(size=n)
        )
        ax = plots.scatter(found, "city", ax=new_axes())
        names = [label.get_text() for label in ax.get_xticklabels()]
        x = np.asarray(ax.collections[-1].get_offsets())[:, 0]
        assert names == ["low", "mid", "high"]
        assert [names[round(place)] for place in x] == values.tolist()


def test_scatter_draws_missing_numbers_left_of_all_others():
    dose = np.array([np.nan, *np.linspace(1, 5, 24)])
    found = with_table(dose=dose, a=np.zeros(25))
    x = np.asarray(plots.scatter(found, 0, ax=new_axes()).collections[0].get_offsets())[:, 0]
    assert x[0] < 1
    assert x[1:] == pytest.approx(dose[1:])


def test_scatter_shows_the_most_influential_feature_if_none_is_named():
    found = make_explanation()
    assert plots.scatter(found, ax=new_axes()).get_xlabel() == found.importance().index[0]


def test_heatmap_holds_every_attribution_with_similar_rows_side_by_side():
    one = np.array([[3.0, 0, 0], [0, -2.0, 0]])
    found = with_table(a=np.arange(8.0), b=np.zeros(8), c=np.zeros(8))
    found = dataclasses.replace(
        found,
        values=one[[0, 1, 0, 1, 1, 0, 0, 1]] + 0.01 * np.random.default_rng(2).normal(size=(8, 3)),
    )
    ax = render(plots.heatmap(found, ax=new_axes()))
    (cells,) = ax.collections
    drawn = np.asarray(cells.get_array()).reshape(3, 8)
    assert tick_names(ax) == ["a", "b", "c"]
    assert np.sort(drawn[0]) == pytest.approx(np.sort(found.values[:, 0]))
    big = drawn[0] > 1
    assert (np.diff(big.astype(int)) != 0).sum() == 1  # two blocks
    low, high = cells.get_clim()
    assert -low == high
    (line,) = ax.child_axes[0].lines
    assert np.sort(line.get_ydata()) == pytest.approx(np.sort(found.predictions))
    assert "8 rows, like ones side by side" in ax.get_xlabel()


def test_heatmap_orders_rows_by_prediction_or_as_listed_and_names_a_few():
    found = make_explanation()
    ax = plots.heatmap(found, rows="prediction", ax=new_axes())
    assert (np.diff(ax.child_axes[0].lines[0].get_ydata()) >= 0).all()
    ax = plots.heatmap(found, rows=[4, 1], ax=new_axes())
    assert ax.child_axes[0].lines[0].get_ydata() == pytest.approx(found.predictions[[4, 1]])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["4", "1"]


def test_heatmap_and_decision_say_how_many_rows_they_draw():
    many = make_explanation()[np.resize(np.arange(6), 3_000)]
    assert "1,000 rows of 3,000" in plots.heatmap(many, rows="table", ax=new_axes()).get_xlabel()
    assert "200 rows of 3,000" in plots.decision(many, ax=new_axes()).get_xlabel()


def test_decision_lines_lead_from_the_base_to_the_prediction():
    found = with_factor(make_explanation(), 0.5)
    ax = plots.decision(found, max_display=3, ax=new_axes())
    lines = np.array(ax.collections[0].get_segments())  # (rows, steps + 1, 2)
    assert lines[:, 0, 0] == pytest.approx(found.base_values)
    assert lines[:, -1, 0] == pytest.approx(found.predictions)
    top = np.argsort(-np.abs(found.values).mean(axis=0))[:3]
    assert tick_names(ax) == [*(found.feature_names[i] for i in top), "sum of 2 other features"]
    assert np.diff(lines[..., 0], axis=1)[:, ::-1][:, :3] == pytest.approx(
        0.5 * found.values[:, top]
    )
    assert (np.diff(lines[0, :, 1]) < 0).all()  # upwards: the axis is turned
    assert np.asarray(ax.collections[0].get_array()) == pytest.approx(found.predictions)
    assert ax.get_title() == "φ* of 6 rows multiplied, so that it adds up"


def test_decision_shows_what_is_not_attributed_where_no_factor_helps():
    found = with_factor(make_explanation(), 0.5)
    predictions = found.predictions.copy()
    predictions[1] = found.base_values[1] - found.values[1].sum()
    ax = plots.decision(dataclasses.replace(found, predictions=predictions), ax=new_axes())
    assert tick_names(ax)[0] == "not attributed"
    lines = np.array(ax.collections[0].get_segments())
    last = lines[:, -1, 0] - lines[:, -2, 0]
    assert last[1] == pytest.approx(-2 * found.values[1].sum())
    assert np.delete(last, 1) == pytest.approx(0, abs=1e-9)
    assert ax.get_title().endswith("; 1 cannot be")
    some = plots.decision(found, rows=[2, 4], ax=new_axes())
    assert len(some.collections[0].get_segments()) == 2
