"""What explanations, explainers and games print, and notes where something would mislead."""

import re

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor

import weightedshap as ws
from weightedshap.games import JUDGES, TreeSurrogate

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(500, 5)), columns=list("abcde"))
TARGET = 200_000 + 50_000 * (FRAME["a"] + FRAME["a"] * FRAME["b"] + 0.5 * FRAME["c"])
TREES = LGBMRegressor(n_estimators=30, n_jobs=1, verbose=-1).fit(
    FRAME[["a", "b", "c"]].assign(d=0.0, e=0.0), TARGET
)
SMALL = TreeSurrogate(trees=5, masks=4)


def explain(model=TREES, rows=300, **choices):
    return ws.Explainer(model, FRAME[:rows], progress=False, **choices)(FRAME[300:340])


def notes_with(explanation, text):
    return [note for note in explanation.notes if text in note]


def test_the_print_shows_games_scales_the_rest_and_whose_area_it_is():
    explanation = explain()
    text = str(explanation)
    gap = np.median(
        np.abs(explanation.efficiency_gap / (explanation.predictions - explanation.base_values))
    )
    area, shapley = (
        c[:, 1:].sum(1).mean()
        for c in (explanation.curves, explanation.reference_curves["shapley"])
    )
    assert text.startswith(
        "Explanation of 40 rows × 5 features\n  explained: tree_path (prediction) · exact"
    )
    assert f"left over: {100 * gap:.0f} % of f(x) − base value in the median row" in text
    assert re.search(
        r"judged by: anchored \(prediction\), misses \d+ % of the sd .* known, 0 % with all", text
    )
    smaller = f"{100 - 100 * area / shapley:.1f} % smaller"
    assert f"known features: {area:,.0f}, by Shapley {shapley:,.0f} ({smaller})" in text
    assert "on the judge that chose the weights; ws.evaluate uses another judge" in text
    assert "e+0" not in text
    assert max(map(len, text.splitlines())) <= 130


def test_one_row_is_one_row_and_classes_are_outputs():
    label = (FRAME["a"] > 0).astype(int) + (FRAME["b"] > 0)
    several = explain(LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(FRAME, label))
    assert str(several).startswith("Explanation of 40 rows × 5 features × 3 outputs")
    assert str(several[0, "a", "2"]).startswith("Explanation of 1 row × 1 feature\n")
    assert "left over: unknown, as only some features are selected" in str(several[:, "a"])
    binary = LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(FRAME, label > 0)
    assert "explained: tree_path (log-odds)" in str(explain(binary))
    assert "judged by: anchored (probability)" in str(explain(binary))


def test_a_shapley_attribution_leaves_nothing():
    assert "left over: 0 % of f(x) − base value in the median row\n" in str(
        explain(family="shapley")
    )


def test_few_background_rows_are_noted_with_what_is_missed():
    few = explain(rows=60)
    missed = 100 * np.sqrt(few.judge_info["relative_error"])
    assert notes_with(
        few,
        f"misses {missed:.0f} % of the predictions' sd on rows that it did not see: it learned"
        " from 60.",
    )
    assert not notes_with(explain(), "it learned from")
    assert not notes_with(explain(rows=60, game="marginal"), "learned")  # nothing was


def test_a_single_background_row_is_noted():
    assert notes_with(explain(rows=1, game="marginal"), "a single row")
    assert notes_with(explain(rows=1), "a single row")


def test_a_judge_that_misses_much_is_noted():
    poor = explain(game="tree_path", judge=SMALL)
    share = poor.judge_info["full_gap"] / np.sqrt(poor.judge_info["variance"])
    assert share > 1 / 3
    assert notes_with(
        poor,
        f"'tree_surrogate' misses {100 * share:.0f} % of the predictions' sd even with all"
        " features",
    )
    assert not notes_with(explain(), "even with all")


def test_unused_features_and_constant_predictions_are_noted():
    assert notes_with(explain(), "no use of 2 features in these rows: 'd', 'e'.")
    constant = explain(lambda rows: np.full(len(rows), 3.0), game="marginal")
    assert constant.notes == (
        "No feature changes the prediction of these rows: all attributions are zero.",
    )
    assert "left over: nothing, as f(x) is the base value" in str(constant)


def test_notes_on_rows_follow_the_rows():
    model = lambda rows: rows["a"].to_numpy() * (rows["b"].to_numpy() > 0)
    whole = ws.Explainer(model, FRAME[FRAME["b"] < 0][:50], game="baseline")(FRAME[300:340])
    low = whole[(FRAME["b"] < 0).to_numpy()[300:340]]
    assert notes_with(whole, "no use of 3 features")
    assert notes_with(low, "all attributions are zero")
    joined = ws.Explanation.concatenate([low, whole])
    assert notes_with(joined, "no use of 3 features")
    assert not notes_with(joined, "all attributions are zero")


def test_an_explainer_is_two_readable_lines():
    first, second = repr(ws.Explainer(TREES, FRAME[:300], progress=False)).splitlines()
    assert first == "Explainer of LGBMRegressor, 300 background rows × 5 features"
    assert (
        second == "  explains tree_path (prediction), judged by anchored (prediction); 13 weights,"
        " utility aup"
    )
    alone = ws.Explainer(TREES, FRAME[:300], game="tree_path", family="shapley")
    assert repr(alone).endswith(
        "explains tree_path (prediction), judged by itself; 1 weight, utility aup"
    )


@pytest.mark.parametrize(
    "name", sorted(set(JUDGES) - {"surrogate", "neural_surrogate", "anchored_network"})
)
def test_every_game_is_two_readable_lines(name):
    game = JUDGES[name]().fit(TREES, FRAME[:150], 0)
    first, second = repr(game).splitlines()
    assert first == f"{name} game of LGBMRegressor, explains its prediction"
    assert second.startswith("  150 background rows × 5 features")
    assert len(second) <= 150
