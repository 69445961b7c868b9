"""Figures of one row: waterfall, contributions by size, image."""

from __future__ import annotations

import dataclasses

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import weightedshap as ws
from tests.plots.drawings import (
    FIGURES,
    SEGMENTS,
    error_widths,
    labels_of,
    legend_names,
    new_axes,
    render,
    texts,
    tick_names,
)
from tests.plots.examples import classifier, make_explanation, with_factor
from weightedshap import plots
from weightedshap._format import number
from weightedshap.plots import style


def test_a_waterfall_in_log_odds_shows_the_probability_too():
    case = classifier()
    label = labels_of(plots.waterfall(case, 2, ax=new_axes()))
    f_x, p, base = (
        number(float(of[2])) for of in (case.predictions, case.judge_predictions, case.base_values)
    )
    assert (
        f"row 2: base {base}, f(x) {f_x} (probability {p}) tree_path (log-odds); weight: " in label
    )
    assert plots.waterfall(case, 2, ax=new_axes()).get_title().startswith("class True")


def test_waterfall_leads_from_the_base_to_the_prediction_by_a_factor_in_its_title(explanation):
    scaled = with_factor(explanation, 0.25)
    ax = plots.waterfall(scaled, 2, max_display=3, ax=new_axes())
    phi = 0.25 * scaled.values[2]
    order = scaled.orders[2]
    base = scaled.base_values[2]
    prediction = scaled.predictions[2]
    lengths = [*phi[order[:3]], phi[order[3:]].sum()]
    assert [patch.get_width() for patch in ax.patches] == pytest.approx(lengths)
    starts = [patch.get_x() for patch in ax.patches]
    assert starts == pytest.approx(base + np.cumsum([0, *lengths[:-1]]))
    assert starts[-1] + lengths[-1] == pytest.approx(prediction)
    assert ax.lines[0].get_xdata() == pytest.approx([base, prediction])
    assert texts(ax) == [
        number(base),
        *(number(length, 3, sign=True) for length in lengths),
        number(prediction),
    ]
    assert ax.get_title() == "φ* × 0.25, so that it adds up to f(x)"
    assert legend_names(ax) == ["raises the prediction", "lowers it"]
    signs = [mpl.colors.to_hex(patch.get_facecolor()).upper() for patch in ax.patches[:3]]
    assert signs == [style.RAISES if length > 0 else style.LOWERS for length in lengths[:3]]


@pytest.mark.parametrize("factor", [-1.0, 0.05, 20.0])
def test_where_no_moderate_factor_makes_it_add_up_bars_start_at_zero_and_the_gap_has_one(
    factor, explanation
):
    other = with_factor(explanation, factor)
    ax = plots.waterfall(other, 2, ax=new_axes())
    phi = other.values[2]
    gap = other.efficiency_gap[2]
    assert {patch.get_x() for patch in ax.patches} == {0}
    assert [patch.get_width() for patch in ax.patches] == pytest.approx(
        [*phi[other.orders[2]], gap]
    )
    *features, last = ax.patches
    assert tick_names(ax)[-1] == "not attributed"
    assert last.get_hatch()
    assert not any(patch.get_hatch() for patch in features)
    assert last.get_facecolor() not in [patch.get_facecolor() for patch in features]
    assert "does not add up" in ax.get_title()


def test_a_row_that_adds_up_has_no_gap(explanation):
    ax = plots.waterfall(explanation.reweight("shapley"), 0, ax=new_axes())
    assert "not attributed" not in tick_names(ax)
    assert len(ax.patches) == 5


def test_waterfall_of_selected_features_says_what_the_gap_holds(explanation):
    part = explanation[:, [1, 4]]
    ax = plots.waterfall(part, 0, ax=new_axes())
    assert tick_names(ax)[-1].replace("\n", " ") == "not attributed, or to features left out"
    assert ax.patches[-1].get_width() == pytest.approx(part.efficiency_gap[0])


def test_waterfall_names_values_and_the_sum_of_the_others(explanation):
    data = pd.DataFrame([[39, "Bonn", np.nan, -0.25, True]] * 6)
    framed = dataclasses.replace(
        explanation, data=data, feature_names=("age", "city", "income", "rate", "new")
    )
    framed = with_factor(framed, 1.0)
    names = tick_names(plots.waterfall(framed, 2, ax=new_axes()))[1:-1]
    assert set(names) == {
        "age = 39",
        "city = Bonn",
        "income = missing",
        "rate = −0.25",
        "new = True",
    }
    assert (
        tick_names(plots.waterfall(framed, 0, max_display=2, ax=new_axes()))[3]
        == "sum of 3 other features"
    )
    assert (
        tick_names(plots.waterfall(framed, 0, max_display=4, ax=new_axes()))[5] == "1 other feature"
    )


def test_waterfall_of_a_sampled_row_shows_standard_errors(sampled):
    ax = plots.waterfall(with_factor(sampled, 0.5), 1, max_display=3, ax=new_axes())
    errors = 0.5 * sampled.standard_errors[1][sampled.orders[1]][:3]
    assert error_widths(ax)[:3] == pytest.approx(2 * errors)
    assert not any(error_widths(ax)[3:])
    errors_shown = [text.partition(" ± ")[2] for text in texts(ax)[1:4]]
    assert errors_shown == [number(e, 1) if e else "" for e in errors]


def test_the_chosen_weight_stands_below_the_waterfall(explanation):
    first = dataclasses.replace(
        explanation, weights=np.eye(5)[[0] * 6], weight_labels=np.array(["first"] * 6)
    )
    assert "weight: each feature alone (first)" in labels_of(
        plots.waterfall(first, 0, ax=new_axes())
    )
    assert "weight w*: each feature alone (first)" in legend_names(
        plots.sizes(first, 0, ax=new_axes())
    )[-1].replace("\n", " ")


def test_sizes_draws_contributions_of_the_top_features(explanation):
    ax = plots.sizes(explanation, row=2, max_display=3, ax=new_axes())
    top = explanation.orders[2, :3]
    for line, i in zip(ax.lines, top):
        assert np.array_equal(line.get_xdata(), np.arange(1, 6))
        assert np.array_equal(line.get_ydata(), explanation.contributions[2, :, i])
    assert legend_names(ax)[:-1] == [explanation.feature_names[i] for i in top]


def test_sizes_without_contributions_says_what_to_do(explanation):
    bare = dataclasses.replace(explanation, contributions=None)
    with pytest.raises(ValueError, match="keep_contributions=True"):
        plots.sizes(bare, row=0)
    assert not plt.get_fignums()


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize(
    "draw", [FIGURES["sizes"], FIGURES["weight vectors"]], ids=["sizes", "weight vectors"]
)
def test_ticks_of_sizes_are_whole_numbers(draw, d):
    ax = render(draw(make_explanation(d=d), new_axes()))
    low, high = ax.get_xlim()
    assert [tick for tick in ax.get_xticks() if low <= tick <= high] == list(range(1, d + 1))


def test_sizes_of_ninety_features_has_lines_without_markers():
    d = 90
    game = ws.games.FunctionGame(lambda known: np.tanh(known @ np.linspace(-1, 1, d)), d=d)
    ax = render(
        plots.sizes(ws.explain(game, estimator="permutation", random_state=0), 0, ax=new_axes())
    )
    assert [line.get_marker() for line in ax.lines[:6]] == ["None"] * 6
    assert len(ax.lines[0].get_ydata()) == d


def test_image_maps_each_segment_to_its_value(explanation):
    ax = plots.image(explanation, 1, np.arange(9).reshape(3, 3), SEGMENTS, ax=new_axes())
    picture, attribution = ax.images
    assert np.array_equal(picture.get_array(), np.arange(9).reshape(3, 3))
    known = SEGMENTS >= 0
    assert np.asarray(attribution.get_array())[known] == pytest.approx(
        explanation.values[1][SEGMENTS[known]]
    )
    low, high = attribution.get_clim()
    assert -low == high == np.abs(explanation.values[1]).max()
    assert attribution.get_alpha()[~known] == 0
    assert attribution.get_alpha()[known] == pytest.approx(
        np.abs(explanation.values[1][SEGMENTS[known]]) / high
    )


def test_image_of_shapley_and_of_an_output():
    several = make_explanation(outputs=3)
    ax = plots.image(
        several, 0, np.zeros((3, 3, 3)), SEGMENTS, "output 2", "Shapley", ax=new_axes()
    )
    assert ax.images[1].get_array()[1, 1] == several.shapley[0, 3, 2]
    assert ax.get_title() == "output 2, one of 3 outputs"
    assert labels_of(ax).strip() == "row 0, φ Shapley of marginal (prediction)"


def test_colour_bars_of_images_side_by_side_do_not_collide(explanation):
    figure = Figure(figsize=(7, 4))
    for ax in figure.subplots(1, 2):
        plots.image(explanation, 0, np.zeros((3, 3)), SEGMENTS, ax=ax)
    FigureCanvasAgg(figure).draw()
    one, other = ([ax.get_tightbbox(), ax.child_axes[0].get_tightbbox()] for ax in figure.axes)
    assert not any(a.overlaps(b) for a in one for b in other)
    assert not one[1].overlaps(figure.axes[0].get_window_extent())


@pytest.mark.parametrize(("top", "count"), [(0.2, 1), (0.4, 2), (0.5, 3), (1, 5)])
def test_image_marks_only_the_top_share(top, count, explanation):
    ax = plots.image(explanation, 0, np.zeros((3, 3)), SEGMENTS, top=top, ax=new_axes())
    marked = np.unique(SEGMENTS[np.asarray(ax.images[1].get_alpha()) > 0])
    assert set(marked) == set(explanation.orders[0, :count])


def test_image_of_zeros_marks_nothing():
    zeros = make_explanation(model=lambda rows: np.zeros(len(rows)))
    for top in (None, 0.5):
        ax = render(plots.image(zeros, 0, np.zeros((3, 3)), SEGMENTS, top=top, ax=new_axes()))
        assert not np.any(ax.images[1].get_alpha())
