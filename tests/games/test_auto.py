"""The game "surrogate": the tree surrogate unless the network is clearly better."""

import numpy as np

from tests.oracles import linear_model, normal_rows
from weightedshap import Explainer
from weightedshap.games import Auto, NeuralSurrogate, TreeSurrogate
from weightedshap.games.surrogates import data as surrogate
from weightedshap.games.surrogates import neural as neural_surrogate

SMALL = TreeSurrogate(trees=20, leaves=7)


def steps(rows):
    return np.sign(rows[:, 0]) + np.sign(rows[:, 1])


def without_torch(monkeypatch):
    monkeypatch.setattr(neural_surrogate, "find_spec", lambda name: None)


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
    rows = normal_rows(600, 6)
    model = linear_model(np.ones(6))
    errors = Auto(tree=SMALL).fit(model, rows, 0).info
    gain = 1 - errors["network_error"] / errors["tree_error"]
    assert Auto(tree=SMALL, gain=gain - 0.01).fit(model, rows, 0).info["game"] == "neural_surrogate"
    assert Auto(tree=SMALL, gain=gain + 0.01).fit(model, rows, 0).info["game"] == "tree_surrogate"


def test_both_learn_from_and_are_judged_on_one_split(monkeypatch):
    splits = []
    judged = []

    def recorded(fit):
        def fit_split(self, model, table, split, rng):
            splits.append(split)
            return fit(self, model, table, split, rng)

        return fit_split

    def held_out_masks(rows, d, rng):
        judged.append(rows)
        return surrogate.held_out_masks(rows, d, rng)

    for recipe in (TreeSurrogate, NeuralSurrogate):
        monkeypatch.setattr(recipe, "fit_split", recorded(recipe.fit_split))
    monkeypatch.setattr(neural_surrogate, "held_out_masks", held_out_masks)
    Auto(tree=SMALL, network=NeuralSurrogate(units=4, epochs=1)).fit(steps, normal_rows(200), 7)
    assert len(splits) == 2
    assert splits[0] is splits[1]
    assert not set(splits[0].train) & set(splits[0].test)
    assert len(judged) == 2
    for rows in judged:
        np.testing.assert_array_equal(rows, splits[0].test)


def test_each_learns_as_it_would_by_itself():
    rows = normal_rows(200)
    model = linear_model(np.ones(4))
    seed = np.random.default_rng(3).integers(2**63)
    network = NeuralSurrogate(units=8, epochs=2)
    for gain, recipe in ((-np.inf, network), (np.inf, SMALL)):
        taken = Auto(gain, SMALL, network).fit(model, rows, 3)
        alone = recipe.fit(model, rows, int(seed))
        np.testing.assert_array_equal(taken.at(rows[0])(np.eye(4)), alone.at(rows[0])(np.eye(4)))


def test_the_explainer_knows_the_game_by_name():
    rows = normal_rows(150)
    explanation = Explainer(steps, rows, game="surrogate")(rows[:2])
    assert explanation.game_info["game"] in ("tree_surrogate", "neural_surrogate")
    assert "auto" in explanation.game_info
