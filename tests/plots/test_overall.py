"""Figures of the method: recovery, weights, weight vectors, stability."""

from __future__ import annotations

import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pytest

import weightedshap as ws
from tests.plots.drawings import (
    FIGURES,
    labels_of,
    legend_names,
    new_axes,
    render,
    texts,
    tick_names,
)
from tests.plots.examples import classifier, make_explanation, two_games, with_unknown_errors
from weightedshap import plots
from weightedshap._format import number, percent
from weightedshap.curves import judge_error_share
from weightedshap.report.content import contents


@pytest.mark.parametrize(
    "draw", [FIGURES["weights"], FIGURES["weight vectors"]], ids=["shares", "vectors"]
)
@pytest.mark.parametrize(
    ("family", "select"), [("wide", "per_row"), ("sizes", "shared"), ("last", "per_row")]
)
def test_weights_of_any_family_can_be_rendered(draw, family, select, explanation):
    render(draw(explanation.reweight(family, select=select), new_axes()))


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
    assert not plots.recovery(make_explanation(n=1), ax=new_axes()).collections


def test_bands_are_student_intervals_over_rows(explanation):
    mean, margin = ws.curves.mean_interval(explanation.curves)
    band = plots.recovery(explanation, ax=new_axes()).collections[0].get_paths()[0].vertices
    n = len(explanation)
    assert margin == pytest.approx(
        2.570582 * explanation.curves.std(axis=0, ddof=1) / np.sqrt(n), rel=1e-6
    )
    assert band[:, 1].max() == pytest.approx((mean + margin).max())


def test_recovery_draws_further_methods_in_colours_and_dashes_of_their_own(explanation):
    further = {
        name: explanation.curves * share
        for name, share in (("greedy", 0.8), ("optimum", 0.7), ("_mine$", 2))
    }
    ax = render(plots.recovery(explanation, ax=new_axes(), curves=further))
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
    several = make_explanation(outputs=3)
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


def test_recovery_marks_where_the_curves_end_and_why():
    ax = plots.recovery(classifier(), ax=new_axes())
    assert ax.lines[4].get_xydata().tolist() == [[4, pytest.approx(0, abs=1e-9)]]
    assert texts(ax) == ["all known: the judge gives f(x)"]
    ax = plots.recovery(two_games(), ax=new_axes())
    level = two_games().curves[:, -1].mean()
    share = judge_error_share(two_games().reference_curves["shapley"])
    assert set(ax.lines[4].get_ydata()) == {level}
    assert ax.lines[5].get_xydata().tolist() == [[4, level]]
    assert (
        f"the judge itself misses {number(level, 3)},\n{percent(share)} of Shapley's area"
        in texts(ax)[0]
    )
    assert "of baseline" in ax.get_legend().get_title().get_text()


def test_weights_of_games_that_compete_are_bars_with_a_part_for_each():
    explanation = two_games()
    ax = render(plots.weights(explanation))
    assert len(tick_names(ax)) == 13
    shares = dict(zip(explanation.family.labels, 100 * plots.chosen_shares(explanation)))
    for game, bars in zip(("baseline", "marginal"), ax.containers):
        expected = [
            shares[f"{game} · {name.removesuffix(' = Shapley')}"] for name in tick_names(ax)
        ]
        assert [bar.get_width() for bar in bars] == pytest.approx(expected)
    ends = [bar.get_x() + bar.get_width() for bar in ax.containers[1]]
    assert sum(ends) == pytest.approx(100)
    counts = [
        round(100 * (explanation.game_labels == game).mean()) for game in ("baseline", "marginal")
    ]
    assert legend_names(ax) == [f"baseline {counts[0]} %", f"marginal {counts[1]} %"]
    vectors = legend_names(plots.weight_vectors(explanation, ax=new_axes()))
    assert not any("·" in name for name in vectors)


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
    another_order, other_features = ax.lines
    assert another_order.get_xdata().tolist() == [1, 2, 3, 5]
    assert another_order.get_ydata() == pytest.approx([25, 25, 25, 25])
    assert other_features.get_ydata() == pytest.approx([25, 0, 0, 0])
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


def test_stability_counts_rows_with_unknown_errors_separately(sampled):
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
