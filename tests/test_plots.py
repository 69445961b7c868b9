"""Figures: what is drawn is what the explanation holds, and nothing else of matplotlib is
touched."""

from __future__ import annotations

import dataclasses
import inspect
import re
import warnings
from functools import cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager

import weightedshap as ws
from weightedshap import plots
from weightedshap._format import number, percent
from weightedshap.curves import misfit
from weightedshap.plots import data as reading
from weightedshap.plots import style
from weightedshap.report.content import contents


def image_of(explanation, ax=None, **choices):
    """A picture with one row of pixels, one for each feature, and a pixel of none."""
    d = explanation.values.shape[1]
    return explanation.plot.image(
        0, np.arange(d + 1.0)[None], np.arange(-1, d)[None], ax=ax, **choices
    )


FIGURES = {
    "recovery": lambda explanation, ax=None: explanation.plot.recovery(ax=ax),
    "weights": lambda explanation, ax=None: explanation.plot.weights(ax=ax),
    "weight vectors": lambda explanation, ax=None: explanation.plot.weight_vectors(ax=ax),
    "bar": lambda explanation, ax=None: explanation.plot.bar(ax=ax),
    "bar of a row": lambda explanation, ax=None: explanation.plot.bar(row=0, ax=ax),
    "beeswarm": lambda explanation, ax=None: explanation.plot.beeswarm(ax=ax),
    "stability": lambda explanation, ax=None: explanation.plot.stability(
        others=[explanation], ax=ax
    ),
    "scatter": lambda explanation, ax=None: explanation.plot.scatter(ax=ax),
    "heatmap": lambda explanation, ax=None: explanation.plot.heatmap(ax=ax),
    "cohorts": lambda explanation, ax=None: explanation.plot.cohorts(
        np.arange(len(explanation)) % 2, ax=ax
    ),
    "decision": lambda explanation, ax=None: explanation.plot.decision(ax=ax),
    "compare": lambda explanation, ax=None: explanation.plot.compare(explanation.shapley, ax=ax),
    "waterfall": lambda explanation, ax=None: explanation.plot.waterfall(0, ax=ax),
    "sizes": lambda explanation, ax=None: explanation.plot.sizes(0, ax=ax),
    "image": image_of,
}
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


def explained(
    n: int = 6, d: int = 5, outputs: int = 0, estimator: str = "exact", model=None
) -> ws.Explanation:
    rng = np.random.default_rng(3)
    background = rng.normal(size=(8, d))
    X = rng.normal(size=(n, d))
    slopes = rng.normal(size=(d, max(outputs, 1)))

    def smooth(rows):
        values = np.tanh(rows @ slopes) + rows[:, :1] * rows[:, -1:]
        return values if outputs else values[:, 0]

    return ws.Explainer(model or smooth, background, game="marginal", estimator=estimator)(X)


def with_unknown_errors(explanation, rows=slice(None)):
    errors = explanation.standard_errors.copy()
    errors[rows, 0] = np.nan
    return dataclasses.replace(explanation, standard_errors=errors)


def widened(explanation, d=3_000):
    """The same rows with d features, most of them without influence; Δ, which would be large, is
    not kept."""
    n = len(explanation)
    family = ws.weights.paper(d)
    values = np.zeros((n, d))
    values[:, ::600] = explanation.values
    return dataclasses.replace(
        explanation,
        values=values,
        shapley=values / 2,
        feature_names=tuple(f"feature {i}" for i in range(d)),
        data=None,
        contributions=None,
        family=family,
        weights=np.tile(family.vectors[0], (n, 1)),
        weight_labels=np.array([family.labels[0]] * n),
        orders=ws.curves.order_of(values),
        curves=np.linspace(1, 0, d + 1) * np.ones((n, 1)),
        reference_curves={name: np.ones((n, d + 1)) for name in explanation.reference_curves},
    )


@pytest.fixture(scope="module")
def explanation() -> ws.Explanation:
    return explained()


@pytest.fixture(scope="module")
def sampled() -> ws.Explanation:
    return explained(n=4, estimator="permutation")


@pytest.fixture(autouse=True)
def _close_figures():
    plt.close("all")  # of other tests in this process
    yield
    plt.close("all")


def new_axes():
    return Figure().subplots()


def rendered(ax):
    """The Axes after the figure was drawn to pixels, so that everything has its place."""
    FigureCanvasAgg(ax.figure).draw()
    return ax


def tick_names(ax) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def legend_names(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def numbers_of(ax) -> list[str]:
    return [text.replace("−", "-") for text in texts(ax)]


def error_widths(ax) -> list[float]:
    container = next(c for c in ax.containers if isinstance(c, mpl.container.ErrorbarContainer))
    return [
        np.diff(segment[:, 0])[0]
        for segment in container.lines[2][0].get_segments()
        if len(segment)
    ]


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
    made = draw(explanation)
    assert made.figure is not older
    assert made.figure.get_figwidth() == 5.5
    assert not ax.has_data()
    assert dict(mpl.rcParams) == settings


@cache
def two_games() -> ws.Explanation:
    """Two games compete, under a judge that misses the prediction."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    judge = ws.games.TreeSurrogate(trees=20)
    games = ["baseline", "marginal"]
    return ws.Explainer(
        lambda rows: rows[:, 0] * rows[:, 1] + np.sin(rows[:, 2]), X, game=games, judge=judge
    )(X[:20])


@cache
def classifier() -> ws.Explanation:
    """Log-odds that are judged by a probability."""
    from lightgbm import LGBMClassifier

    X = np.random.default_rng(0).normal(size=(200, 4))
    model = LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1).fit(
        X, X[:, 0] + X[:, 1] * X[:, 2] > 0
    )
    return ws.Explainer(model, X)(X[:8])


CASES = {
    "one row": lambda: explained(n=1),
    "one feature": lambda: explained(d=1),
    "one of each": lambda: explained(n=1, d=1),
    "outputs": lambda: explained(d=2, outputs=3),
    "zeros": lambda: explained(model=lambda rows: np.zeros(len(rows))),
    "sampled": lambda: explained(n=2, estimator="permutation"),
    "one sampled row": lambda: explained(n=1, estimator="permutation"),
    "unknown errors": lambda: with_unknown_errors(explained(n=3, estimator="permutation")),
    "sliced": lambda: explained(outputs=2)[1:4, [3, 0], 1],
    "two games": two_games,
    "classifier": classifier,
    "10,000 rows": lambda: explained()[np.resize(np.arange(6), 10_000)],
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_figure_can_be_rendered(case):
    case = case()
    for draw in FIGURES.values():
        rendered(draw(case, new_axes()))


@pytest.mark.parametrize(
    "draw", [FIGURES["weights"], FIGURES["weight vectors"]], ids=["shares", "vectors"]
)
@pytest.mark.parametrize(
    ("family", "select"), [("wide", "per_row"), ("sizes", "shared"), ("last", "per_row")]
)
def test_weights_of_any_family_can_be_rendered(draw, family, select, explanation):
    rendered(draw(explanation.reweight(family, select=select), new_axes()))


@pytest.mark.parametrize("name", sorted(set(FIGURES) - {"sizes", "scatter"}))
def test_three_thousand_features_can_be_rendered(name, explanation):
    ax = rendered(FIGURES[name](widened(explanation)))
    assert ax.figure.get_figheight() < 6


def test_recovery_draws_mean_curves_with_bands_and_areas(explanation):
    ax = plots.recovery(explanation, ax=new_axes())
    drawn = [explanation.curves, *explanation.reference_curves.values()]
    assert len(ax.collections) == len(drawn) == 4
    assert len(ax.lines) == 5  # and the dot where they end
    for line, curves in zip(ax.lines, drawn):
        assert np.array_equal(line.get_xdata(), np.arange(6))
        assert np.array_equal(line.get_ydata(), curves.mean(axis=0))
    areas = [number(curves[:, 1:].sum(axis=1).mean(), 3) for curves in drawn]
    names = ["WeightedSHAP", "Shapley", "first", "last"]
    assert legend_names(ax) == [f"{name} {area}" for name, area in zip(names, areas)]


def test_recovery_of_one_row_has_no_band():
    assert not plots.recovery(explained(n=1), ax=new_axes()).collections


def test_bands_are_student_intervals_over_rows(explanation):
    mean, margin = ws.curves.mean_interval(explanation.curves)
    band = plots.recovery(explanation, ax=new_axes()).collections[0].get_paths()[0].vertices
    n = len(explanation)
    assert margin == pytest.approx(
        2.570582 * explanation.curves.std(axis=0, ddof=1) / np.sqrt(n), rel=1e-6
    )
    assert band[:, 1].max() == pytest.approx((mean + margin).max())


def test_recovery_draws_further_methods_with_looks_of_their_own(explanation):
    further = {
        name: explanation.curves * share
        for name, share in (("greedy", 0.8), ("optimum", 0.7), ("_mine$", 2))
    }
    ax = rendered(plots.recovery(explanation, ax=new_axes(), curves=further))
    *lines, _ = ax.lines
    assert len(lines) == 7
    for line, curves in zip(lines[4:], further.values()):
        assert np.array_equal(line.get_ydata(), curves.mean(axis=0))
    assert [name.split()[0] for name in legend_names(ax)[4:]] == ["greedy", "optimum", "_mine$"]
    assert (
        len({(line.get_color(), line.get_linestyle(), str(line._dash_pattern)) for line in lines})
        == 7
    )


def test_further_curves_may_have_all_outputs_or_the_one_drawn():
    several = explained(outputs=3)
    whole = plots.recovery(several, 2, new_axes(), {"greedy": several.curves / 2})
    one = plots.recovery(several, 2, new_axes(), {"greedy": several.curves[..., 2] / 2})
    assert np.array_equal(whole.lines[4].get_ydata(), one.lines[4].get_ydata())


@pytest.mark.parametrize(
    ("curves", "message"),
    [
        ({"greedy": np.ones((6, 5))}, r"\['greedy'\]` must have shape \(6, 6\).*got \(6, 5\)"),
        (
            {"Shapley": np.ones((6, 6))},
            "names a method 'Shapley', which the explanation draws itself",
        ),
        ({"greedy": np.full((6, 6), np.nan)}, "'greedy' hold NaN"),
    ],
)
def test_further_curves_that_do_not_fit_are_refused(curves, message, explanation):
    with pytest.raises(ValueError, match=message):
        plots.recovery(explanation, curves=curves)
    assert not plt.get_fignums()


def labels_of(ax) -> str:
    below = [child.get_xlabel() + child.get_ylabel() for child in ax.child_axes]
    return " ".join([ax.get_xlabel(), ax.get_ylabel(), *below]).replace("\n", " ")


@pytest.mark.parametrize("name", sorted(set(FIGURES) - {"recovery", "weights", "weight vectors"}))
def test_figures_of_attributions_name_the_game_and_its_scale(name):
    for case, told in (
        (classifier(), ("tree_path", "log-odds")),
        (two_games(), (two_games().game_labels[0],)),
    ):
        labels = labels_of(FIGURES[name](case, new_axes()))
        assert all(each in labels for each in told)
        assert "anchored" not in labels


@pytest.mark.parametrize("name", ["recovery", "weights", "weight vectors"])
def test_figures_of_what_was_judged_name_the_judge_and_its_scale(name):
    for case, told in (
        (classifier(), "anchored (probability)"),
        (two_games(), "tree_surrogate (prediction)"),
    ):
        ax = FIGURES[name](case, new_axes())
        assert f"judged by {told}" in labels_of(ax)


def test_weights_of_a_utility_with_a_game_of_its_own_name_that_game(explanation):
    other = dataclasses.replace(explanation, utility="masked_inclusion")
    assert (
        labels_of(plots.weights(other, ax=new_axes())).count(
            "utility masked_inclusion, judged by baseline"
        )
        == 1
    )
    mine = dataclasses.replace(explanation, utility="mine")
    assert plots.weights(mine, ax=new_axes()).get_xlabel().endswith("utility mine")


def test_a_waterfall_in_log_odds_tells_the_probability_too():
    case = classifier()
    label = labels_of(plots.waterfall(case, 2, ax=new_axes()))
    f_x, p, base = (
        number(float(of[2])) for of in (case.predictions, case.judge_predictions, case.base_values)
    )
    assert (
        f"row 2: base {base}, f(x) {f_x} (probability {p}) tree_path (log-odds); weight: " in label
    )
    assert plots.waterfall(case, 2, ax=new_axes()).get_title().startswith("class True")


def test_recovery_marks_where_the_curves_end_and_why():
    ax = plots.recovery(classifier(), ax=new_axes())
    assert ax.lines[4].get_xydata().tolist() == [[4, pytest.approx(0, abs=1e-9)]]
    assert texts(ax) == ["all known: the judge gives f(x)"]
    ax = plots.recovery(two_games(), ax=new_axes())
    level = two_games().curves[:, -1].mean()
    share = misfit(two_games().reference_curves["shapley"])
    assert set(ax.lines[4].get_ydata()) == {level}
    assert ax.lines[5].get_xydata().tolist() == [[4, level]]
    assert (
        f"the judge itself misses {number(level, 3)},\n{percent(share)} of Shapley's area"
        in texts(ax)[0]
    )
    assert "of baseline" in ax.get_legend().get_title().get_text()


def test_weights_of_games_that_compete_are_bars_with_a_part_for_each():
    explanation = two_games()
    ax = rendered(plots.weights(explanation))
    assert len(tick_names(ax)) == 13
    shares = dict(zip(explanation.family.labels, 100 * plots.chosen_shares(explanation)))
    for game, bars in zip(("baseline", "marginal"), ax.containers):
        told = [shares[f"{game} · {name.removesuffix(' = Shapley')}"] for name in tick_names(ax)]
        assert [bar.get_width() for bar in bars] == pytest.approx(told)
    ends = [bar.get_x() + bar.get_width() for bar in ax.containers[1]]
    assert sum(ends) == pytest.approx(100)
    counts = [
        round(100 * (explanation.game_labels == game).mean()) for game in ("baseline", "marginal")
    ]
    assert legend_names(ax) == [f"baseline {counts[0]} %", f"marginal {counts[1]} %"]
    vectors = legend_names(plots.weight_vectors(explanation, ax=new_axes()))
    assert not any("·" in name for name in vectors)


def test_labels_that_look_like_pairs_are_left_alone():
    family = ws.weights.WeightFamily(("a · x", "b · y", "c"), np.full((3, 2), 0.5))
    assert reading.games_and_weights(family) == ((), family)
    pairs = ws.weights.paper(5).of_games(("one", "two"))
    games, weights = reading.games_and_weights(pairs)
    assert games == ("one", "two")
    assert weights.equals(ws.weights.paper(5))


def test_weights_shows_the_share_of_rows_in_family_order(explanation):
    ax = plots.weights(explanation, ax=new_axes())
    labels = explanation.family.labels
    assert tick_names(ax) == [
        "Beta(1,1) = Shapley" if label == "Beta(1,1)" else label for label in labels
    ]
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


def test_of_many_chosen_weights_the_thirty_most_frequent_and_shapley_are_shown(explanation):
    wide = explanation.reweight("wide")
    others = [label for label in wide.family.labels if label != "Beta(1,1)"]
    assert len(others) > 40
    many = wide[np.resize(np.arange(6), 80)]
    many = dataclasses.replace(
        many, weight_labels=np.array(others[:40] + others[10:40] + [others[39]] * 10)
    )
    names = {
        name.removesuffix(" = Shapley") for name in tick_names(plots.weights(many, ax=new_axes()))
    }
    assert names == {*others[10:40], "Beta(1,1)"}
    assert set(contents(many)[0]["summaries"][0]["weights"]["names"]) == names


def test_weight_vectors_are_those_chosen_relative_to_shapley(explanation):
    ax = plots.weight_vectors(explanation, max_display=13, ax=new_axes())
    vectors = dict(zip(explanation.family.labels, explanation.family.vectors))
    *lines, uniform = ax.lines
    names = [
        name.replace("\n", " ").partition(": ")[0].partition(" % ")[2]
        for name in legend_names(ax)[:-1]
    ]
    assert set(names) == set(explanation.weight_labels)
    for name, line in zip(names, lines):
        vector = np.zeros(5)
        vector[line.get_xdata() - 1] = line.get_ydata() / 5
        assert vector == pytest.approx(vectors[name])
    assert set(uniform.get_ydata()) == {1}


def test_weight_vectors_chosen_more_often_have_stronger_lines(explanation):
    labels = np.array(["first", "first", "first", "Beta(1,4)", "Beta(1,4)", "last"])
    ax = plots.weight_vectors(
        dataclasses.replace(explanation, weight_labels=labels), max_display=2, ax=new_axes()
    )
    first, other, _ = ax.lines
    named = [name.replace("\n", " ") for name in legend_names(ax)]
    assert named == [
        "50 % first: each feature alone",
        "33 % Beta(1,4): mostly with all others known",
        "Shapley",
    ]
    assert "1 more" in ax.get_legend().get_title().get_text()
    assert first.get_linewidth() > other.get_linewidth()
    assert first.get_alpha() > other.get_alpha()


def test_bars_are_shares_of_each_attribution_and_numbers_its_size(explanation):
    ax = plots.bar(explanation, max_display=3, ax=new_axes())
    chosen = np.abs(explanation.values).mean(axis=0)
    shapley = np.abs(explanation.shapley).mean(axis=0)
    top = np.argsort(-chosen)[:3]
    for bars, mean in zip(ax.containers, (chosen, shapley)):
        assert [patch.get_width() for patch in bars] == pytest.approx(100 * mean[top] / mean.sum())
    assert texts(ax) == [number(mean[i], 3) for mean in (chosen, shapley) for i in top]
    assert tick_names(ax) == list(explanation.importance().index[:3])
    sums = [number(float(mean.sum()), 3) for mean in (chosen, shapley)]
    assert legend_names(ax) == [f"WeightedSHAP, 100 % = {sums[0]}", f"Shapley, 100 % = {sums[1]}"]
    assert ax.get_xlabel().endswith("numbers: marginal (prediction)")


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


def test_of_several_outputs_bar_stacks_all_unless_one_is_asked_for():
    several = explained(outputs=3)
    ax = rendered(plots.bar(several, ax=new_axes()))
    means = np.abs(several.values).mean(axis=0)
    top = np.argsort(-means.sum(axis=1))
    for bars, o in zip(ax.containers, range(3), strict=True):
        assert [bar.get_width() for bar in bars] == pytest.approx(means[top, o])
        assert [bar.get_x() for bar in bars] == pytest.approx(means[top, :o].sum(axis=1))
    assert legend_names(ax) == list(several.output_names)
    assert texts(ax) == [number(total, 3) for total in means.sum(axis=1)[top]]
    assert "all 3 outputs" in ax.get_title()
    assert plots.bar(several, output=1, ax=new_axes()).get_title() == "output 1, one of 3 outputs"
    assert plots.bar(several, 0, ax=new_axes()).get_title() == "output 0, one of 3 outputs"


def test_of_many_outputs_the_smaller_ones_are_one_grey_part():
    many = explained(outputs=13)
    ax = plots.bar(many, ax=new_axes())
    assert legend_names(ax)[-1] == "3 other outputs"
    looks = {(bars[0].get_facecolor(), bars[0].get_hatch()) for bars in ax.containers}
    assert len(ax.containers) == len(looks) == 11
    widths = np.sum([[bar.get_width() for bar in bars] for bars in ax.containers], axis=0)
    assert np.sort(widths) == pytest.approx(np.sort(np.abs(many.values).mean(axis=0).sum(axis=1)))


@pytest.mark.parametrize("row", [None, 0, 3])
@pytest.mark.parametrize("max_display", [1, 5])
def test_the_legend_of_bar_covers_no_bar(row, max_display, explanation):
    ax = rendered(plots.bar(explanation, row, max_display=max_display))
    box = ax.get_legend().get_window_extent()
    bars = [patch.get_window_extent() for container in ax.containers[:2] for patch in container]
    assert not any(box.overlaps(bar) for bar in bars)


def test_bar_of_a_row_holds_signed_shares_in_the_order_of_the_row(explanation):
    ax = plots.bar(explanation, row=-1, ax=new_axes())
    phi = explanation.values[-1]
    top = explanation.orders[-1]
    assert [patch.get_width() for patch in ax.containers[0]] == pytest.approx(
        100 * phi[top] / np.abs(phi).sum()
    )
    assert tick_names(ax) == [explanation.feature_names[i] for i in top]
    assert labels_of(ax).startswith("share of all |φ| of row 5, % numbers: marginal (prediction)")


def test_bars_of_what_was_sampled_show_standard_errors(sampled):
    errors = sampled.standard_errors
    phi = sampled.values
    ax = plots.bar(sampled, row=1, ax=new_axes())
    top = sampled.orders[1]
    assert error_widths(ax) == pytest.approx(200 * errors[1][top] / np.abs(phi[1]).sum())
    ax = plots.bar(sampled, ax=new_axes())
    mean = np.abs(phi).mean(axis=0)
    expected = 200 * np.sqrt((errors**2).sum(axis=0)) / len(phi) / mean.sum()
    assert error_widths(ax) == pytest.approx(expected[np.argsort(-mean)])


def test_unknown_errors_are_marked_and_not_drawn_as_zero(sampled):
    unknown = with_unknown_errors(sampled)
    bars = plots.bar(unknown, row=1, ax=new_axes())
    steps = plots.waterfall(unknown, 1, ax=new_axes())
    assert sum("±?" in text for text in texts(bars)) == 1
    assert len(error_widths(bars)) == 4
    assert sum("± ?" in text for text in texts(steps)) == 1


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
    if expected is None:  # most rows alike: the odd one still stands out
        explanation = explanation[np.resize(np.arange(6), 51)]
        expected = [0] * 50 + [1]
    colours = np.ma.filled(colours_of(explanation, column), np.nan)
    assert np.array_equal(colours[: len(expected)], expected, equal_nan=True)


def test_levels_of_a_category_have_colours_and_names(explanation):
    data = pd.DataFrame({name: ["Ulm", "Bonn", None] * 2 for name in explanation.feature_names})
    framed = dataclasses.replace(explanation, data=data)
    ax = rendered(plots.beeswarm(framed, max_display=1, ax=new_axes()))
    faces = ax.collections[0].get_facecolors()
    wanted = [style.PALETTE[1], style.PALETTE[0], style.UNKNOWN] * 2
    assert np.allclose(faces, [mpl.colors.to_rgba(colour) for colour in wanted])
    assert set(texts(ax)) == {"Bonn", "Ulm"}
    assert not ax.child_axes
    phi = explanation.values[:, np.abs(explanation.values).mean(axis=0).argmax()]
    placed = {text.get_text(): text.get_position()[0] for text in ax.texts}
    assert placed == {"Ulm": np.median(phi[[0, 3]]), "Bonn": np.median(phi[[1, 4]])}


def test_beeswarm_without_numbers_is_grey_and_has_no_colour_bar(explanation):
    ax = rendered(plots.beeswarm(dataclasses.replace(explanation, data=None), ax=new_axes()))
    assert not ax.child_axes
    grey = ax.collections[0].get_facecolors()[:, :3]
    assert (grey == grey[0, 0]).all()


def test_groups_have_no_value_of_their_own(explanation):
    grouped = dataclasses.replace(explanation, data=np.ones((6, 9)))
    assert not plots.beeswarm(grouped, ax=new_axes()).child_axes
    assert not any("=" in name for name in tick_names(plots.waterfall(grouped, 0, ax=new_axes())))


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


def with_factor(explanation, factor):
    """The same attribution, of a prediction to which it adds up when it is multiplied."""
    return dataclasses.replace(
        explanation,
        predictions=explanation.base_values + factor * explanation.values.sum(axis=1),
        judge_predictions=explanation.base_values + factor * explanation.values.sum(axis=1),
    )


def test_waterfall_leads_from_the_base_to_the_prediction_by_a_factor_that_is_told(explanation):
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
def test_where_no_moderate_factor_makes_it_add_up_bars_stand_side_by_side_and_the_gap_apart(
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


def test_running_totals_of_probabilities_stay_between_0_and_1(explanation):
    phi = np.array([[0.7, 0.6, -0.5, -0.4, 0.1]] * 6)  # adds up, but climbs to 1.7
    changes = {"values": phi, "base_values": np.full(6, 0.4), "predictions": np.full(6, 0.9)}
    info = {**explanation.game_info, "space": "probability"}
    high = dataclasses.replace(explanation, **changes, game_info=info)
    assert np.isnan(reading.factors(high)).all()
    assert set(reading.factors(dataclasses.replace(high, game_info=explanation.game_info))) == {1.0}
    assert set(
        reading.factors(
            dataclasses.replace(
                high, values=phi[:, [0, 2, 1, 3, 4]] / 2.5, predictions=np.full(6, 0.6)
            )
        )
    ) == {1.0}


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
    told = [text.partition(" ± ")[2] for text in texts(ax)[1:4]]
    assert told == [number(e, 1) if e else "" for e in errors]


def test_rows_are_named_by_the_index_of_the_table(explanation):
    frame = pd.DataFrame(explanation.data, columns=explanation.feature_names)
    houses = dataclasses.replace(explanation, data=frame.set_axis([f"house {i}" for i in range(6)]))
    numbered = dataclasses.replace(explanation, data=frame.set_axis(range(400, 406)))
    for case, name in ((houses, "house 3"), (numbered, "row 403"), (explanation, "row 3")):
        assert labels_of(plots.waterfall(case, 3, ax=new_axes())).startswith(f"{name}: base ")
        assert f"of {name}, %" in labels_of(plots.bar(case, 3, ax=new_axes()))
        assert labels_of(plots.sizes(case, 3, ax=new_axes())).startswith(f"{name}, size")


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ("Beta(1,1)", "all sizes alike, as Shapley does"),
        ("first", "each feature alone"),
        ("last", "with all others known"),
        ("Beta(32,1)", "mostly features alone"),
        ("Beta(1,32)", "mostly with all others known"),
        ("Beta(2,1)", "more with few others known"),
        ("Beta(1,2)", "more with many others known"),
    ],
)
@pytest.mark.parametrize("d", [10, 90])
def test_a_weight_is_told_in_words(weight, words, d):
    family = ws.weights.paper(d)
    assert reading.weight_in_words(family.vectors[family.labels.index(weight)]) == words


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
    ax = rendered(draw(explained(d=d), new_axes()))
    low, high = ax.get_xlim()
    assert [tick for tick in ax.get_xticks() if low <= tick <= high] == list(range(1, d + 1))


def test_sizes_of_ninety_features_has_lines_without_markers():
    d = 90
    game = ws.games.FunctionGame(lambda known: np.tanh(known @ np.linspace(-1, 1, d)), d=d)
    ax = rendered(
        plots.sizes(ws.explain(game, estimator="permutation", random_state=0), 0, ax=new_axes())
    )
    assert [line.get_marker() for line in ax.lines[:6]] == ["None"] * 6
    assert len(ax.lines[0].get_ydata()) == d


def test_stability_draws_the_chance_of_another_order(sampled):
    noisy = dataclasses.replace(sampled, standard_errors=0.3 * np.abs(sampled.values))
    ax = plots.stability(noisy, ax=new_axes())
    sizes, median = ax.lines[0].get_data()
    assert list(sizes) == [1, 2, 3, 5]
    expected = [100 * np.median(noisy.instability(k)) for k in sizes]
    assert median == pytest.approx(expected, abs=5)
    assert 20 < expected[-1] < 90
    assert len(ax.collections) == 2
    assert ax.get_legend().get_title().get_text() == "4 rows"


def test_stability_of_what_was_not_sampled_is_refused_with_advice(explanation):
    with pytest.raises(
        ValueError, match=r"Nothing was sampled.*random_state=s.*stability\(others=others\)"
    ):
        plots.stability(explanation)
    assert not plt.get_fignums()


def test_stability_draws_what_changes_when_the_judge_is_fitted_again(explanation):
    swapped = explanation.orders.copy()
    swapped[:3, [0, 1]] = swapped[:3, [1, 0]]  # in half of the rows the first two change places
    others = [dataclasses.replace(explanation, orders=swapped), explanation]
    ax = plots.stability(explanation, others=others, ax=new_axes())
    ordered, alike = ax.lines
    assert ordered.get_xdata().tolist() == [1, 2, 3, 5]
    assert ordered.get_ydata() == pytest.approx([25, 25, 25, 25])
    assert alike.get_ydata() == pytest.approx([25, 0, 0, 0])
    assert np.asarray(ax.collections[0].get_offsets())[:, 1] == pytest.approx([50] * 4 + [0] * 4)
    assert legend_names(ax) == ["another order", "other features"]
    assert "2 further fits" in ax.get_title()


def test_stability_wants_explanations_of_the_same_rows(explanation):
    for other in (
        explanation[:3],
        dataclasses.replace(explanation, predictions=explanation.predictions + 1),
    ):
        with pytest.raises(ValueError, match="`others`"):
            plots.stability(explanation, others=[other])


def test_stability_counts_rows_with_unknown_errors_apart(sampled):
    ax = plots.stability(with_unknown_errors(sampled, slice(1)), ax=new_axes())
    assert "(standard errors unknown in 1 of 4 rows)" in ax.get_xlabel()
    assert ax.get_legend().get_title().get_text() == "3 rows"


def test_stability_without_any_known_error_draws_no_line(sampled):
    ax = plots.stability(with_unknown_errors(sampled), ax=new_axes())
    assert "unknown" in texts(ax)[0]
    assert not ax.lines


def test_stability_looks_at_a_hundred_rows_at_most(sampled):
    ax = plots.stability(sampled[np.resize(np.arange(4), 1_000)], ax=new_axes())
    assert ax.get_legend().get_title().get_text() == "100 rows"


SEGMENTS = np.array([[0, 0, 1], [2, 3, 4], [-1, 3, 4]])


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
    several = explained(outputs=3)
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
    zeros = explained(model=lambda rows: np.zeros(len(rows)))
    for top in (None, 0.5):
        ax = rendered(plots.image(zeros, 0, np.zeros((3, 3)), SEGMENTS, top=top, ax=new_axes()))
        assert not np.any(ax.images[1].get_alpha())


def test_an_output_is_picked_by_position_or_name():
    several = explained(outputs=3)
    by_name = plots.recovery(several, output="output 2", ax=new_axes())
    by_position = plots.recovery(several, output=2, ax=new_axes())
    assert np.array_equal(by_name.lines[0].get_ydata(), several.curves[..., 2].mean(axis=0))
    assert np.array_equal(by_name.lines[0].get_ydata(), by_position.lines[0].get_ydata())
    assert by_name.get_title() == "output 2, one of 3 outputs"


def test_an_output_is_looked_at_and_not_copied():
    several = explained(outputs=3, estimator="permutation")
    one, title = reading.one_output(several, 2)
    assert title == "output 2, one of 3 outputs"
    assert one.equals(several[..., 2])
    assert np.shares_memory(one.contributions, several.contributions)
    assert reading.one_output(one, 0) == (one, None)


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
    several = explained(outputs=3)
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
    ax = rendered(draw(named))
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
def test_equal_names_stay_apart(draw, explanation):
    ax = rendered(
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
        rendered(draw(dataclasses.replace(explanation, feature_names=names, data=None), new_axes()))


def test_letters_that_no_font_has_are_told_by_their_numbers_without_a_warning(explanation):
    named = dataclasses.replace(explanation, feature_names=("\U0010fffd_a", "b", "c", "d", "e"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = rendered(plots.bar(named, ax=new_axes()))
    assert "\\U0010fffd_a" in tick_names(ax)


def test_fonts_are_the_readers_own_and_then_installed_ones(explanation):
    with mpl.rc_context({"font.family": ["serif"]}):
        label = plots.bar(explanation, ax=new_axes()).get_yticklabels()[0]
    own, *others = label.get_fontfamily()
    assert own == "serif"
    assert others[0] == "DejaVu Sans"
    assert set(others) <= set(fontManager.get_font_names()) & set(style.FONTS)


def test_the_page_about_figures_names_all_of_them_and_its_code_runs(tmp_path, monkeypatch):
    page = (Path(__file__).parent.parent / "docs" / "figures.md").read_text(encoding="utf-8")
    methods = [name for name in vars(plots.PlotAccessor) if not name.startswith("_")]
    assert [name for name in methods if f"`{name}(" not in page] == []
    assert [name for name in methods if name not in plots.__all__] == []
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S):
        exec(compile(block, "figures.md", "exec"), names)
    assert (tmp_path / "row 3.pdf").stat().st_size > 0


@pytest.mark.parametrize(
    "figure", ["recovery", "weights", "stability", "bar", "beeswarm", "heatmap", "decision"]
)
@pytest.mark.parametrize("given", [3, None, np.zeros((2, 3))], ids=type)
def test_only_explanations_are_drawn(figure, given):
    with pytest.raises(
        TypeError, match=f"an Explanation, as an Explainer returns it; got {type(given).__name__}"
    ):
        getattr(plots, figure)(given)
