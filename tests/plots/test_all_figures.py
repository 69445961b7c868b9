"""What holds for every figure: it draws what the explanation holds, and touches nothing else of
matplotlib."""

from __future__ import annotations

import dataclasses
import inspect

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

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
from tests.plots.examples import (
    classifier,
    make_explanation,
    two_games,
    with_many_features,
    with_unknown_errors,
)
from weightedshap import plots

NAMED = (
    "bar",
    "bar of a row",
    "beeswarm",
    "heatmap",
    "cohorts",
    "decision",
    "compare",
    "waterfall",
    "sizes",
)
WITH_NAMES = [FIGURES[name] for name in NAMED]


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_a_given_ax_is_drawn_on_and_pyplot_stays_as_it_was(draw, explanation):
    current = plt.figure()
    settings = dict(mpl.rcParams)
    ax = new_axes()
    assert draw(explanation, ax) is ax
    assert ax.has_data()
    assert ax.figure.axes == [ax]
    assert plt.get_fignums() == [current.number]
    assert plt.gcf() is current
    assert not current.axes
    assert dict(mpl.rcParams) == settings


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_without_ax_a_new_figure_is_made_and_older_ones_are_left_alone(draw, explanation):
    older, ax = plt.subplots()
    settings = dict(mpl.rcParams)
    drawn = draw(explanation)
    assert drawn.figure is not older
    assert drawn.figure.get_figwidth() == 5.5
    assert not ax.has_data()
    assert dict(mpl.rcParams) == settings


CASES = {
    "one row": lambda: make_explanation(n=1),
    "one feature": lambda: make_explanation(d=1),
    "one of each": lambda: make_explanation(n=1, d=1),
    "outputs": lambda: make_explanation(d=2, outputs=3),
    "zeros": lambda: make_explanation(model=lambda rows: np.zeros(len(rows))),
    "sampled": lambda: make_explanation(n=2, estimator="permutation"),
    "one sampled row": lambda: make_explanation(n=1, estimator="permutation"),
    "unknown errors": lambda: with_unknown_errors(make_explanation(n=3, estimator="permutation")),
    "sliced": lambda: make_explanation(outputs=2)[1:4, [3, 0], 1],
    "two games": two_games,
    "classifier": classifier,
    "10,000 rows": lambda: make_explanation()[np.resize(np.arange(6), 10_000)],
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_figure_can_be_rendered(case):
    case = case()
    for draw in FIGURES.values():
        render(draw(case, new_axes()))


@pytest.mark.parametrize("name", sorted(set(FIGURES) - {"sizes", "scatter"}))
def test_three_thousand_features_can_be_rendered(name, explanation):
    ax = render(FIGURES[name](with_many_features(explanation)))
    assert ax.figure.get_figheight() < 6


@pytest.mark.parametrize("name", sorted(set(FIGURES) - {"recovery", "weights", "weight vectors"}))
def test_figures_of_attributions_name_the_game_and_its_scale(name):
    for case, words in (
        (classifier(), ("tree_path", "log-odds")),
        (two_games(), (two_games().game_labels[0],)),
    ):
        labels = labels_of(FIGURES[name](case, new_axes()))
        assert all(word in labels for word in words)
        assert "anchored" not in labels


@pytest.mark.parametrize("name", ["recovery", "weights", "weight vectors"])
def test_figures_of_curves_and_weights_name_the_judge_and_its_scale(name):
    for case, words in (
        (classifier(), "anchored (probability)"),
        (two_games(), "tree_surrogate (prediction)"),
    ):
        ax = FIGURES[name](case, new_axes())
        assert f"judged by {words}" in labels_of(ax)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("max", lambda e: np.argsort(-np.abs(e.values).max(axis=0))),
        ("table", lambda e: np.arange(5)),
        (["x3", 0], lambda e: [3, 0]),
    ],
)
@pytest.mark.parametrize("draw", [plots.bar, plots.beeswarm, plots.heatmap, plots.cohorts])
def test_features_come_in_the_order_asked_for(draw, order, expected, explanation):
    ax = draw(explanation, order=order, ax=new_axes())
    assert tick_names(ax) == [explanation.feature_names[i] for i in expected(explanation)]


def test_unknown_errors_are_marked_and_not_drawn_as_zero(sampled):
    unknown = with_unknown_errors(sampled)
    bars = plots.bar(unknown, row=1, ax=new_axes())
    steps = plots.waterfall(unknown, 1, ax=new_axes())
    assert sum("±?" in text for text in texts(bars)) == 1
    assert len(error_widths(bars)) == 4
    assert sum("± ?" in text for text in texts(steps)) == 1


def test_groups_have_no_value_of_their_own(explanation):
    grouped = dataclasses.replace(explanation, data=np.ones((6, 9)))
    assert not plots.beeswarm(grouped, ax=new_axes()).child_axes
    assert not any("=" in name for name in tick_names(plots.waterfall(grouped, 0, ax=new_axes())))


def test_rows_are_named_by_the_index_of_the_table(explanation):
    frame = pd.DataFrame(explanation.data, columns=explanation.feature_names)
    houses = dataclasses.replace(explanation, data=frame.set_axis([f"house {i}" for i in range(6)]))
    numbered = dataclasses.replace(explanation, data=frame.set_axis(range(400, 406)))
    for case, name in ((houses, "house 3"), (numbered, "row 403"), (explanation, "row 3")):
        assert labels_of(plots.waterfall(case, 3, ax=new_axes())).startswith(f"{name}: base ")
        assert f"of {name}, %" in labels_of(plots.bar(case, 3, ax=new_axes()))
        assert labels_of(plots.sizes(case, 3, ax=new_axes())).startswith(f"{name}, size")


def test_an_output_is_picked_by_position_or_name():
    several = make_explanation(outputs=3)
    by_name = plots.recovery(several, output="output 2", ax=new_axes())
    by_position = plots.recovery(several, output=2, ax=new_axes())
    assert np.array_equal(by_name.lines[0].get_ydata(), several.curves[..., 2].mean(axis=0))
    assert np.array_equal(by_name.lines[0].get_ydata(), by_position.lines[0].get_ydata())
    assert by_name.get_title() == "output 2, one of 3 outputs"


@pytest.mark.parametrize("name", sorted(set(plots.__all__) - {"PlotAccessor", "chosen_shares"}))
def test_a_method_has_the_arguments_and_the_docstring_of_its_function(name, explanation):
    method = getattr(explanation.plot, name)
    function = getattr(plots, name)
    arguments = list(inspect.signature(function).parameters.values())
    assert list(inspect.signature(method).parameters.values()) == arguments[1:]
    assert inspect.getdoc(method) == inspect.getdoc(function)


def with_factor_of(several, output):
    """The same with predictions of an output that no factor leads to."""
    predictions = several.predictions.copy()
    predictions[:, output] = several.base_values[:, output] - several.values[..., output].sum(
        axis=1
    )
    return dataclasses.replace(several, predictions=predictions)


def test_every_figure_of_an_output_draws_that_output():
    several = make_explanation(outputs=3)
    of_two = several[..., 2]
    values = of_two.values
    top = np.argsort(-np.abs(values).mean(axis=0))
    dots = np.asarray(plots.beeswarm(several, 2, ax=new_axes()).collections[0].get_offsets())
    assert dots[:, 0] == pytest.approx(values[:, top[0]])
    bars = plots.waterfall(with_factor_of(several, 2), 1, 2, ax=new_axes()).patches
    assert bars[0].get_width() == pytest.approx(values[1, of_two.orders[1, 0]])
    assert bars[-1].get_width() == pytest.approx(with_factor_of(several, 2).efficiency_gap[1, 2])
    lines = [
        plots.weight_vectors(e, o, ax=new_axes()).lines for e, o in ((several, 2), (of_two, 0))
    ]
    assert all(np.array_equal(a.get_data(), b.get_data()) for a, b in zip(*lines))


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda e: plots.recovery(e, output=1), "Unknown output 1"),
        (lambda e: plots.recovery(e, output="class"), "Unknown output 'class'"),
        (lambda e: plots.stability(e, output=1, others=[e]), "Unknown output 1"),
        (lambda e: plots.scatter(e, "bmi"), "Unknown feature 'bmi'"),
        (lambda e: plots.scatter(e, 5), r"a name or a position 0\.\.4; got 5"),
        (lambda e: plots.scatter(dataclasses.replace(e, data=None)), "no column of the data"),
        (lambda e: plots.heatmap(e, rows="size"), "Unknown order of rows 'size'"),
        (lambda e: plots.heatmap(e, order="size"), "Unknown order of features 'size'"),
        (lambda e: plots.heatmap(e, rows=[6]), r"`row` must be a position 0\.\.5"),
        (lambda e: plots.cohorts(e, ["a"] * 5), "a label for each of 6 rows; got 5"),
        (lambda e: plots.cohorts(e, 4), "cannot be found by rules"),
        (lambda e: plots.cohorts(e[np.resize(np.arange(6), 30)], range(30)), "30 groups.*pd.cut"),
        (lambda e: plots.compare(e, np.zeros((6, 4))), r"shape \(6, 5\); got \(6, 4\)"),
        (lambda e: plots.compare(e, e[:, ::-1]), "other feature names, or in another order"),
        (lambda e: plots.beeswarm(e, output=1), "Unknown output 1"),
        (lambda e: plots.weight_vectors(e, output=1), "Unknown output 1"),
        (lambda e: plots.bar(e, row=6), r"`row` must be a position 0\.\.5"),
        (lambda e: plots.sizes(e, row=-7), r"`row` must be a position 0\.\.5"),
        (lambda e: plots.waterfall(e, row=1.0), r"`row` must be a position 0\.\.5"),
        (lambda e: plots.waterfall(e, row=True), r"`row` must be a position 0\.\.5"),
        (lambda e: plots.bar(e, max_display=0), "`max_display` must be an integer of at least 1"),
        (
            lambda e: plots.beeswarm(e, max_display=0),
            "`max_display` must be an integer of at least 1",
        ),
        (
            lambda e: plots.waterfall(e, 0, max_display=0),
            "`max_display` must be an integer of at least 1",
        ),
        (
            lambda e: plots.weight_vectors(e, max_display=0),
            "`max_display` must be an integer of at least 1",
        ),
        (
            lambda e: plots.image(e, 0, np.zeros((3, 3)), SEGMENTS, values="shap"),
            "Unknown kind of values 'shap'",
        ),
        (
            lambda e: plots.image(e, 0, np.zeros((3, 3)), SEGMENTS + 1),
            "0..4, or −1 for none; got 0..5.*segments - 1",
        ),
        (
            lambda e: plots.image(e, 0, np.zeros((3, 3)), SEGMENTS / 2),
            "`segments` must be integers",
        ),
        (lambda e: plots.image(e, 0, np.zeros((3, 4)), SEGMENTS), "must be the same"),
        (lambda e: plots.image(e, 0, np.zeros((3, 3, 2)), SEGMENTS), "`picture` must have shape"),
        (lambda e: plots.image(e, 0, np.zeros((3, 3)), SEGMENTS, top=10), "`top` must be a share"),
    ],
)
def test_wrong_choices_are_named_and_leave_no_empty_figure(draw, message, explanation):
    with pytest.raises(ValueError, match=message):
        draw(explanation)
    assert not plt.get_fignums()


NAMES = ("_hidden", r"cost in $\frac{$", "long name " * 20, "x" * 200, "$5")


@pytest.mark.parametrize("draw", WITH_NAMES)
def test_names_are_wrapped_and_never_cut(draw, explanation):
    named = dataclasses.replace(explanation, feature_names=NAMES, data=None)
    ax = render(draw(named))
    labels = ax.get_legend().get_texts() if draw is FIGURES["sizes"] else ax.get_yticklabels()
    shown = {label.get_text().replace("\n", "").replace(" ", "") for label in labels}
    assert {name.replace(" ", "") for name in NAMES} <= shown
    page = ax.figure.bbox
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    assert all(
        page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1
        for box in boxes
    )
    assert not any(one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[:k])


@pytest.mark.parametrize("draw", WITH_NAMES)
def test_features_of_equal_names_keep_a_line_each(draw, explanation):
    ax = render(
        draw(dataclasses.replace(explanation, feature_names=("same",) * 5, data=None), new_axes())
    )
    names = [*tick_names(ax), *(legend_names(ax) if ax.get_legend() else [])]
    assert names.count("same") == 5


@pytest.mark.parametrize("draw", WITH_NAMES)
def test_names_in_arabic_hebrew_and_emoji_are_drawn_without_a_warning(draw, explanation):
    names = ("عمر المريض", "גיל", "mood 😀", "größe", "Δ")
    with mpl.rc_context(
        {"font.family": "cmr10", "axes.formatter.use_mathtext": True, "axes.unicode_minus": False}
    ):
        render(draw(dataclasses.replace(explanation, feature_names=names, data=None), new_axes()))


@pytest.mark.parametrize(
    "figure", ["recovery", "weights", "stability", "bar", "beeswarm", "heatmap", "decision"]
)
@pytest.mark.parametrize("given", [3, None, np.zeros((2, 3))], ids=type)
def test_only_explanations_are_drawn(figure, given):
    with pytest.raises(
        TypeError, match=f"an Explanation, as an Explainer returns it; got {type(given).__name__}"
    ):
        getattr(plots, figure)(given)


@pytest.mark.parametrize("name", ["scatter", "heatmap", "decision", "cohorts", "compare"])
def test_figures_of_rows_say_which_of_several_outputs_they_show(name):
    several = make_explanation(outputs=3)
    more = {"cohorts": {"by": list("aababa")}, "compare": {"other": several.shapley}}.get(name, {})
    ax = getattr(plots, name)(several, output="output 1", ax=new_axes(), **more)
    legend = ax.get_legend()
    heading = ax.get_title() + ("" if legend is None else legend.get_title().get_text())
    assert "output 1, one of 3 outputs" in heading
    assert "(prediction)" in labels_of(ax)
