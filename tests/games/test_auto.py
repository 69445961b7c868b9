"""The game "auto": the tree surrogate unless the network is clearly better."""

import numpy as np

from tests.oracles import linear_model, normal_rows
from weightedshap import Explainer
from weightedshap.games import Auto, NeuralSurrogate, TreeSurrogate
from weightedshap.games import auto as module

SMALL = TreeSurrogate(trees=20, leaves=7)


def steps(rows):
    return np.sign(rows[:, 0]) + np.sign(rows[:, 1])


def without_torch(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)


def test_without_torch_the_trees_are_taken_and_the_line_to_run_is_said(monkeypatch):
    without_torch(monkeypatch)
    info = Auto(tree=SMALL, network=NeuralSurrogate.paper()).fit(steps, normal_rows(200), 0).info
    assert info["game"] == "tree_surrogate"
    assert 'pip install "weightedshap[neural]"' in info["auto"]


def test_the_network_is_taken_where_it_is_clearly_better():
    game = Auto(tree=SMALL).fit(linear_model(np.ones(6)), normal_rows(1500, 6), 0)
    assert game.info["game"] == "neural_surrogate"
    assert game.info["network_error"] < 0.9 * game.info["tree_error"]
    assert "lower" in game.info["auto"]


def test_the_trees_are_taken_where_the_network_is_not_better():
    lazy = NeuralSurrogate(units=4, epochs=1)
    info = Auto(tree=TreeSurrogate(), network=lazy).fit(steps, normal_rows(500), 0).info
    assert info["game"] == "tree_surrogate"
    assert "higher" in info["auto"]


def test_a_gain_below_the_threshold_keeps_the_trees():
    rows, model = normal_rows(600, 6), linear_model(np.ones(6))
    errors = Auto(tree=SMALL).fit(model, rows, 0).info
    gain = 1 - errors["network_error"] / errors["tree_error"]
    assert Auto(tree=SMALL, gain=gain - 0.01).fit(model, rows, 0).info["game"] == "neural_surrogate"
    assert Auto(tree=SMALL, gain=gain + 0.01).fit(model, rows, 0).info["game"] == "tree_surrogate"


def test_both_are_judged_on_rows_that_neither_saw(monkeypatch):
    splits = []
    real = module.split_rows

    def recorded(X, share, rng):
        splits.append(real(X, share, rng))
        return splits[-1]

    for where in (module, *(__import__(f"weightedshap.games.{m}", fromlist=["_"]) for m in MODULES)):
        monkeypatch.setattr(where, "split_rows", recorded)
    Auto(tree=SMALL, network=NeuralSurrogate(units=4, epochs=1)).fit(steps, normal_rows(200), 7)
    assert len(splits) == 3
    for split in splits[1:]:
        np.testing.assert_array_equal(split[1], splits[0][1])


MODULES = ("tree_surrogate", "neural_surrogate")


def test_the_explainer_knows_the_game_by_name():
    rows = normal_rows(150)
    explanation = Explainer(steps, rows, game="auto")(rows[:2])
    assert explanation.game_info["game"] in ("tree_surrogate", "neural_surrogate")
    assert "auto" in explanation.game_info
