"""Bars of features, cohorts and comparisons: they are as long as the explanation says."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.plots.drawings import (
    error_widths,
    labels_of,
    legend_names,
    new_axes,
    render,
    texts,
    tick_names,
)
from tests.plots.examples import make_explanation, with_table
from weightedshap import plots
from weightedshap._format import number


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


def test_bar_stacks_all_outputs_unless_one_is_chosen():
    several = make_explanation(outputs=3)
    ax = render(plots.bar(several, ax=new_axes()))
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
    many = make_explanation(outputs=13)
    ax = plots.bar(many, ax=new_axes())
    assert legend_names(ax)[-1] == "3 other outputs"
    looks = {(bars[0].get_facecolor(), bars[0].get_hatch()) for bars in ax.containers}
    assert len(ax.containers) == len(looks) == 11
    widths = np.sum([[bar.get_width() for bar in bars] for bars in ax.containers], axis=0)
    assert np.sort(widths) == pytest.approx(np.sort(np.abs(many.values).mean(axis=0).sum(axis=1)))


@pytest.mark.parametrize("row", [None, 0, 3])
@pytest.mark.parametrize("max_display", [1, 5])
def test_the_legend_of_bar_covers_no_bar(row, max_display, explanation):
    ax = render(plots.bar(explanation, row, max_display=max_display))
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


def test_cohorts_are_bars_of_each_group_with_numbers():
    found = make_explanation()
    ax = render(plots.cohorts(found, ["old", "new", "old", "old", "new", "old"], ax=new_axes()))
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
        age=age,
        city=np.resize(["Ulm", "Bonn", "Köln", "Mainz"], n),
        c=np.random.default_rng(2).normal(size=n),
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
    found = make_explanation(n=12)
    theirs = found.values.copy()
    theirs[:, 1] *= -2
    ax = render(plots.compare(found, theirs, names=("ours", "theirs"), ax=new_axes()))
    top = np.argsort(-np.abs(found.values).mean(axis=0))
    for bars, phi in zip(ax.containers, (found.values, theirs)):
        mean = np.abs(phi).mean(axis=0)
        assert [bar.get_width() for bar in bars] == pytest.approx(100 * mean[top] / mean.sum())
    assert texts(ax)[-5:] == ["r −1" if i == 1 else "r 1" for i in top]
    assert [name.partition(",")[0] for name in legend_names(ax)] == ["ours", "theirs"]


def test_compare_takes_explanations_and_those_of_shap():
    shap = pytest.importorskip("shap")
    several = make_explanation(outputs=3)
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
