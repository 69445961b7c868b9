"""Figures: what is drawn is what the explanation holds, and nothing else of matplotlib is touched."""

from __future__ import annotations

import dataclasses

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import weightedshap as ws
from weightedshap import plots

FIGURES = {
    "recovery": lambda explanation, ax=None: explanation.plot.recovery(ax=ax),
    "weights": lambda explanation, ax=None: explanation.plot.weights(ax=ax),
    "bar": lambda explanation, ax=None: explanation.plot.bar(ax=ax),
    "bar of a row": lambda explanation, ax=None: explanation.plot.bar(row=0, ax=ax),
    "sizes": lambda explanation, ax=None: explanation.plot.sizes(0, ax=ax),
}


def explained(n: int = 6, d: int = 5, outputs: int = 0, estimator: str = "exact", model=None) -> ws.Explanation:
    rng = np.random.default_rng(3)
    background, X = rng.normal(size=(8, d)), rng.normal(size=(n, d))
    slopes = rng.normal(size=(d, max(outputs, 1)))

    def smooth(rows):
        values = np.tanh(rows @ slopes) + rows[:, :1] * rows[:, -1:]
        return values if outputs else values[:, 0]

    return ws.Explainer(model or smooth, background, estimator=estimator)(X)


@pytest.fixture(scope="module")
def explanation() -> ws.Explanation:
    return explained()


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def new_axes():
    return Figure(layout="constrained").subplots()


def tick_names(ax) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def legend_names(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_a_given_ax_is_drawn_on_and_pyplot_stays_as_it_was(draw, explanation):
    current = plt.figure()
    settings, ax = dict(mpl.rcParams), new_axes()
    assert draw(explanation, ax) is ax
    assert ax.has_data()
    assert plt.get_fignums() == [current.number]
    assert plt.gcf() is current
    assert not current.axes
    assert dict(mpl.rcParams) == settings


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_without_ax_a_new_figure_is_made_and_older_ones_are_left_alone(draw, explanation):
    older, ax = plt.subplots()
    settings = dict(mpl.rcParams)
    made = draw(explanation)
    assert made.figure is not older
    assert not ax.has_data()
    assert dict(mpl.rcParams) == settings


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
@pytest.mark.parametrize(
    "case",
    [
        explained(n=1),
        explained(d=1),
        explained(n=1, d=1),
        explained(d=2, outputs=3),
        explained(model=lambda rows: np.zeros(len(rows))),
        explained(n=2, estimator="permutation"),
        explained().reweight("wide"),
        explained().reweight("sizes", select="shared"),
        explained().reweight("last"),
    ],
    ids=["one row", "one feature", "one of each", "outputs", "zeros", "sampled", "wide", "shared", "no Shapley"],
)
def test_every_figure_can_be_rendered(draw, case):
    draw(case, new_axes()).figure.canvas.draw()


def test_recovery_draws_mean_curves_with_bands_and_areas(explanation):
    ax = plots.recovery(explanation, ax=new_axes())
    drawn = [explanation.curves, *explanation.reference_curves.values()]
    assert len(ax.lines) == len(ax.collections) == len(drawn) == 4
    for line, curves in zip(ax.lines, drawn):
        assert np.array_equal(line.get_xdata(), np.arange(6))
        assert np.array_equal(line.get_ydata(), curves.mean(axis=0))
    areas = [f"{curves[:, 1:].sum(axis=1).mean():.3g}" for curves in drawn]
    names = ["WeightedSHAP", "Shapley", "first", "last"]
    assert legend_names(ax) == [f"{name} {area}" for name, area in zip(names, areas)]


def test_recovery_of_one_row_has_no_band():
    assert not plots.recovery(explained(n=1), ax=new_axes()).collections


def test_bands_are_student_intervals_over_rows(explanation):
    mean, margin = ws.curves.mean_interval(explanation.curves)
    band = plots.recovery(explanation, ax=new_axes()).collections[0].get_paths()[0].vertices
    n = len(explanation)
    assert margin == pytest.approx(2.570582 * explanation.curves.std(axis=0, ddof=1) / np.sqrt(n), rel=1e-6)
    assert band[:, 1].max() == pytest.approx((mean + margin).max())


def test_weights_shows_the_share_of_rows_in_family_order(explanation):
    ax = plots.weights(explanation, ax=new_axes())
    labels = explanation.family.labels
    assert tick_names(ax) == ["Beta(1,1) = Shapley" if label == "Beta(1,1)" else label for label in labels]
    shares = [100 * np.mean(explanation.weight_labels == label) for label in labels]
    assert [patch.get_width() for patch in ax.patches] == pytest.approx(shares)
    assert sum(shares) == pytest.approx(100)
    colours = [patch.get_facecolor() for patch in ax.patches]
    assert len(set(colours)) == 2
    assert colours.count(colours[labels.index("Beta(1,1)")]) == 1


def test_a_large_family_shows_only_chosen_weights_and_shapley(explanation):
    wide = explanation.reweight("wide")
    names = tick_names(plots.weights(wide, ax=new_axes()))
    assert {name.removesuffix(" = Shapley") for name in names} == {*wide.weight_labels, "Beta(1,1)"}
    vectors = dict(zip(wide.family.labels, wide.family.vectors))
    sizes = [vectors[name.removesuffix(" = Shapley")] @ np.arange(5) for name in names]
    assert sizes == sorted(sizes)


def test_bar_holds_mean_absolute_values_of_both_attributions(explanation):
    ax = plots.bar(explanation, max_display=3, ax=new_axes())
    chosen, shapley = np.abs(explanation.values).mean(axis=0), np.abs(explanation.shapley).mean(axis=0)
    top = np.argsort(-chosen)[:3]
    assert [patch.get_width() for patch in ax.containers[0]] == pytest.approx(chosen[top])
    assert [patch.get_width() for patch in ax.containers[1]] == pytest.approx(shapley[top])
    assert tick_names(ax) == list(explanation.importance().index[:3])
    assert legend_names(ax) == ["WeightedSHAP", "Shapley"]


def test_bar_of_a_row_holds_signed_values_in_the_order_of_the_row(explanation):
    ax = plots.bar(explanation, row=-1, ax=new_axes())
    top = explanation.orders[-1]
    assert [patch.get_width() for patch in ax.containers[0]] == pytest.approx(explanation.values[-1][top])
    assert tick_names(ax) == [explanation.feature_names[i] for i in top]


def test_bar_of_a_sampled_row_shows_standard_errors():
    sampled = explained(n=2, estimator="permutation")
    bars = plots.bar(sampled, row=1, ax=new_axes()).containers
    (lines,) = next(c for c in bars if hasattr(c, "errorbar") and c.errorbar).errorbar.lines[2]
    widths = [segment[1, 0] - segment[0, 0] for segment in lines.get_segments()]
    assert widths == pytest.approx(2 * sampled.standard_errors[1][sampled.orders[1]])


def test_sizes_draws_contributions_of_the_top_features(explanation):
    ax = plots.sizes(explanation, row=2, max_display=3, ax=new_axes())
    top = explanation.orders[2, :3]
    for line, i in zip(ax.lines, top):
        assert np.array_equal(line.get_xdata(), np.arange(1, 6))
        assert np.array_equal(line.get_ydata(), explanation.contributions[2, :, i])
    assert legend_names(ax) == [*(explanation.feature_names[i] for i in top), "chosen weight w*"]


def test_sizes_without_contributions_says_what_to_do(explanation):
    bare = dataclasses.replace(explanation, contributions=None)
    with pytest.raises(ValueError, match="keep_contributions=True"):
        plots.sizes(bare, row=0)
    assert not plt.get_fignums()


def test_an_output_is_picked_by_position_or_name():
    several = explained(outputs=3)
    by_name = plots.recovery(several, output="output 2", ax=new_axes())
    by_position = plots.recovery(several, output=2, ax=new_axes())
    assert np.array_equal(by_name.lines[0].get_ydata(), several.curves[..., 2].mean(axis=0))
    assert np.array_equal(by_name.lines[0].get_ydata(), by_position.lines[0].get_ydata())
    assert by_name.get_title() == "output 2"


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda e: plots.recovery(e, output=1), "Unknown output 1"),
        (lambda e: plots.recovery(e, output="class"), "Unknown output 'class'"),
        (lambda e: plots.bar(e, row=6), r"`row` must be a position 0\.\.5"),
        (lambda e: plots.sizes(e, row=-7), r"`row` must be a position 0\.\.5"),
        (lambda e: plots.bar(e, max_display=0), "`max_display` must be an integer of at least 1"),
    ],
)
def test_wrong_choices_are_named_and_leave_no_empty_figure(draw, message, explanation):
    with pytest.raises(ValueError, match=message):
        draw(explanation)
    assert not plt.get_fignums()


@pytest.mark.parametrize("draw", [FIGURES["bar"], FIGURES["sizes"]])
def test_names_are_wrapped_and_never_cut(draw, explanation):
    names = ("_hidden", "cost in $ of $5", "long name " * 20, "x" * 200, r"\frac{")
    ax = draw(dataclasses.replace(explanation, feature_names=names), new_axes())
    ax.figure.canvas.draw()
    shown = {name.replace("\n", "").replace(" ", "") for name in [*tick_names(ax), *legend_names(ax)]}
    assert {name.replace(" ", "") for name in names} <= shown
