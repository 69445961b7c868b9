"""Figures with a dot, line, cell or bar for each row or group of rows: what is drawn is what the
explanation holds."""

from __future__ import annotations

import dataclasses

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import weightedshap as ws
from tests.test_plots import _close_figures as _close_figures
from tests.test_plots import (
    explained,
    labels_of,
    legend_names,
    new_axes,
    rendered,
    texts,
    tick_names,
    with_factor,
)
from weightedshap import plots
from weightedshap._format import number
from weightedshap.plots import axes as drawing
from weightedshap.plots import data as reading
from weightedshap.plots import many_rows, style

RNG = np.random.default_rng(1)


def with_table(**columns) -> ws.Explanation:
    """An explanation whose features are these columns, φ* random but for what a test sets."""
    n = len(next(iter(columns.values())))
    some = explained()[np.resize(np.arange(6), n)]
    d = len(columns)
    family = ws.weights.paper(d)
    phi = RNG.normal(size=(n, d))
    return dataclasses.replace(
        some[:, list(range(d))],
        data=pd.DataFrame(columns),
        values=phi,
        shapley=phi / 2,
        feature_names=tuple(columns),
        orders=ws.curves.order_of(phi),
        family=family,
        contributions=None,
    )


def partnered(n=200) -> ws.Explanation:
    """φ* of `dose` depends on `sex`, in rows of like dose; `age` and `bmi` have no part in it."""
    dose = RNG.uniform(0, 9, n)
    sex = RNG.choice(["f", "m"], n)
    made = with_table(dose=dose, age=RNG.normal(size=n), sex=sex, bmi=RNG.normal(size=n))
    values = made.values.copy()
    values[:, 0] = dose * np.where(sex == "f", 1.0, -1.0)
    return dataclasses.replace(made, values=values)


def test_scatter_draws_the_value_against_the_attribution_coloured_by_the_strongest_partner():
    found = partnered()
    ax = rendered(plots.scatter(found, "dose", ax=new_axes()))
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


def test_a_partner_is_looked_for_beyond_chance_and_among_rows_of_like_values():
    found = partnered()
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
    found = partnered()
    ax = plots.scatter(found, "dose", color="bmi", ax=new_axes())
    (bar,) = ax.child_axes
    ends = np.quantile(found.data["bmi"], [0.05, 0.95])
    assert [tick.get_text() for tick in bar.get_yticklabels()] == [number(end, 3) for end in ends]
    assert bar.get_ylabel() == "bmi"


def test_scatter_of_a_category_has_its_levels_side_by_side_and_missing_apart():
    n = 30
    city = np.resize(np.array(["Ulm", "Bonn", None], dtype=object), n)
    found = with_table(city=city, a=RNG.normal(size=n))
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
        found = with_table(city=pd.Series(values).astype(kind), a=RNG.normal(size=n))
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
    found = explained()
    assert plots.scatter(found, ax=new_axes()).get_xlabel() == found.importance().index[0]


def test_heatmap_holds_every_attribution_with_like_rows_side_by_side():
    one = np.array([[3.0, 0, 0], [0, -2.0, 0]])
    found = with_table(a=np.arange(8.0), b=np.zeros(8), c=np.zeros(8))
    found = dataclasses.replace(
        found, values=one[[0, 1, 0, 1, 1, 0, 0, 1]] + 0.01 * RNG.normal(size=(8, 3))
    )
    ax = rendered(plots.heatmap(found, ax=new_axes()))
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
    found = explained()
    ax = plots.heatmap(found, rows="prediction", ax=new_axes())
    assert (np.diff(ax.child_axes[0].lines[0].get_ydata()) >= 0).all()
    ax = plots.heatmap(found, rows=[4, 1], ax=new_axes())
    assert ax.child_axes[0].lines[0].get_ydata() == pytest.approx(found.predictions[[4, 1]])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["4", "1"]


def test_heatmap_and_decision_say_how_many_rows_they_draw():
    many = explained()[np.resize(np.arange(6), 3_000)]
    assert "1,000 rows of 3,000" in plots.heatmap(many, rows="table", ax=new_axes()).get_xlabel()
    assert "200 rows of 3,000" in plots.decision(many, ax=new_axes()).get_xlabel()


def test_decision_lines_lead_from_the_base_to_the_prediction():
    found = with_factor(explained(), 0.5)
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
    found = with_factor(explained(), 0.5)
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


def test_cohorts_are_bars_of_each_group_with_numbers():
    found = explained()
    ax = rendered(plots.cohorts(found, ["old", "new", "old", "old", "new", "old"], ax=new_axes()))
    assert legend_names(ax) == ["old (4 rows)", "new (2 rows)"]
    top = np.argsort(-np.abs(found.values).mean(axis=0))
    for bars, rows in zip(ax.containers, ([0, 2, 3, 5], [1, 4])):
        means = np.abs(found.values[rows]).mean(axis=0)[top]
        assert [bar.get_width() for bar in bars] == pytest.approx(means)
        assert {number(mean, 3) for mean in means} <= set(texts(ax))


def test_cohorts_by_a_column_or_by_rules_of_a_small_tree():
    n = 60
    age = np.resize(np.arange(20.0, 80.0), n)
    found = with_table(
        age=age, city=np.resize(["Ulm", "Bonn", "Köln", "Mainz"], n), c=RNG.normal(size=n)
    )
    values = 0.01 * found.values
    values[:, 2] = np.where(age > 49.5, 5.0, -1.0)
    found = dataclasses.replace(found, values=values)
    assert set(legend_names(plots.cohorts(found, "city", ax=new_axes()))) == {
        f"{city} (15 rows)" for city in ("Ulm", "Bonn", "Köln", "Mainz")
    }
    by_rule = plots.cohorts(found, 2, ax=new_axes())
    assert set(legend_names(by_rule)) == {"age ≤ 49.5 (30 rows)", "age > 49.5 (30 rows)"}
    values[:, 2] = np.where(found.data["city"].isin(["Bonn", "Köln"]), 5.0, -1.0)
    by_city = plots.cohorts(dataclasses.replace(found, values=values), 2, ax=new_axes())
    assert set(legend_names(by_city)) == {
        "city: Bonn, Köln (30 rows)",
        "city: Mainz, Ulm (30 rows)",
    }


def test_rules_say_where_missing_rows_are():
    age = np.array([np.nan] * 10 + [30.0] * 10 + [60.0] * 20)
    found = with_table(age=age, b=np.zeros(40))
    values = np.column_stack([np.where(age > 45, 4.0, -1.0), np.zeros(40)])
    names = legend_names(plots.cohorts(dataclasses.replace(found, values=values), 2, ax=new_axes()))
    assert set(names) == {"age ≤ 45 or missing (20 rows)", "age > 45 (20 rows)"}


def test_compare_sets_two_attributions_side_by_side_with_their_rank_correlation():
    found = explained(n=12)
    theirs = found.values.copy()
    theirs[:, 1] *= -2
    ax = rendered(plots.compare(found, theirs, names=("ours", "theirs"), ax=new_axes()))
    top = np.argsort(-np.abs(found.values).mean(axis=0))
    for bars, phi in zip(ax.containers, (found.values, theirs)):
        mean = np.abs(phi).mean(axis=0)
        assert [bar.get_width() for bar in bars] == pytest.approx(100 * mean[top] / mean.sum())
    assert texts(ax)[-5:] == ["r −1" if i == 1 else "r 1" for i in top]
    assert [name.partition(",")[0] for name in legend_names(ax)] == ["ours", "theirs"]


def test_compare_takes_explanations_and_those_of_shap():
    shap = pytest.importorskip("shap")
    several = explained(outputs=3)
    exported = shap.Explanation(several.shapley, feature_names=list(several.feature_names))
    widths = [
        [
            bar.get_width()
            for bar in plots.compare(several, other, output=2, ax=new_axes()).containers[1]
        ]
        for other in (
            exported,
            several.shapley,
            several.shapley[..., 2],
            dataclasses.replace(several, values=several.shapley),
        )
    ]
    mean = np.abs(several.shapley[..., 2]).mean(axis=0)
    top = np.argsort(-np.abs(several.values[..., 2]).mean(axis=0))
    for found in widths:
        assert found == pytest.approx(100 * mean[top] / mean.sum())
    assert (
        plots.compare(several, exported, output=2, ax=new_axes()).get_title()
        == "output 2, one of 3 outputs"
    )


@pytest.mark.parametrize(
    ("name", "width", "lines"),
    [
        ("short", 10, ["short"]),
        ("two words here", 10, ["two words", "here"]),
        ("患者的年龄和体重", 10, ["患者的年龄", "和体重"]),
        ("abcdefghijklm", 5, ["abcde", "fghij", "klm"]),
        ("size_of_the_flat", 10, ["size_of_", "the_flat"]),
        ("", 5, [""]),
    ],
)
def test_lines_are_as_wide_as_they_may_be_and_letters_of_east_asia_count_twice(
    name, width, lines, monkeypatch
):
    monkeypatch.setattr(drawing, "drawable", str)  # whatever fonts there are
    assert drawing.in_lines(name, width).split("\n") == lines


@pytest.mark.parametrize("name", ["scatter", "heatmap", "decision", "cohorts", "compare"])
def test_new_figures_say_which_of_several_outputs_they_show(name):
    several = explained(outputs=3)
    more = {"cohorts": {"by": list("aababa")}, "compare": {"other": several.shapley}}.get(name, {})
    ax = getattr(plots, name)(several, output="output 1", ax=new_axes(), **more)
    legend = ax.get_legend()
    said = ax.get_title() + ("" if legend is None else legend.get_title().get_text())
    assert "output 1, one of 3 outputs" in said
    assert "(prediction)" in labels_of(ax)


def test_factors_make_attributions_add_up():
    found = with_factor(explained(), 0.4)
    factor = reading.factors(found)
    assert factor == pytest.approx(0.4)
    assert found.base_values + (found.values * factor[:, None]).sum(axis=1) == pytest.approx(
        found.predictions
    )
    assert np.isnan(reading.factors(found[:, [0, 1]])).all()


def test_style_sheet_is_told_apart_by_the_colour_blind_and_in_print():
    """Lightness of neighbours in a scale rises throughout, and method lines differ in dashes
    too."""
    lightness = [mpl.colors.rgb_to_hsv(mpl.colors.to_rgb(c)) @ [0, 0, 1] for c in style.LOW_TO_HIGH]
    luminance = [np.dot(mpl.colors.to_rgb(c), [0.2126, 0.7152, 0.0722]) for c in style.LOW_TO_HIGH]
    assert luminance == sorted(luminance)
    assert len(lightness) == 6
    shown = [
        dashes
        for name, (_, dashes, _) in style.METHODS.items()
        if name in ("WeightedSHAP", "Shapley", "first", "last")
    ]
    assert len(set(shown)) == 4
    assert set(shown) <= set(drawing.DASHES)
