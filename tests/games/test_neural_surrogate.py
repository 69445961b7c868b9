"""The network's game: what it learns, how it is evaluated, and what happens when training goes
wrong."""

import functools
import importlib.util
import sys
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest

import weightedshap as ws
from tests.games.batches import masked_values
from tests.oracles import linear_model, normal_rows, product_model
from weightedshap import Explainer, curves
from weightedshap._checks import look_up
from weightedshap.coalitions import all_coalitions, prefixes
from weightedshap.estimators import exact, permutation
from weightedshap.games import (
    GAMES,
    NeuralSurrogate,
    TreeSurrogate,
    block_exchangeable_contributions,
)
from weightedshap.games.surrogates.network.training import CompiledLearner
from weightedshap.inputs import as_model, as_table

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="with torch; to run: pip install torch",
)

TINY = NeuralSurrogate(units=16, epochs=3, batch=64, every=1)
ROW = np.array([[0.5, -1.0, 2.0, 0.1]])


class Classifier:
    """Probabilities of the given number of classes, from four columns."""

    def __init__(self, classes):
        self.classes_ = np.arange(classes)

    def predict_proba(self, rows):
        scores = np.asarray(rows, dtype=float)[:, : len(self.classes_)]
        return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


@functools.cache
def fit_game(recipe=TINY):
    return recipe.fit(product_model, normal_rows(200), 0)


def mixed_frame(n=300, seed=0):
    """Strings, a hole, numbers on large and small scales."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["a", "b", "c"], size=n)
    size = rng.normal(1e4, 1e3, size=n)
    hole = np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n))
    return pd.DataFrame({"kind": kind, "size": size, "hole": hole})


def mixed_model(frame):
    worth = frame["kind"].map({"a": 0.0, "b": 5.0, "c": 1.0}).to_numpy(dtype=float)
    hole = frame["hole"].to_numpy(dtype=float)
    return worth + (frame["size"].to_numpy() - 1e4) / 1e3 + np.where(np.isnan(hole), 4.0, hole)


def exchangeable(n, d, rho, seed=0):
    rng = np.random.default_rng(seed)
    return np.sqrt(rho) * rng.normal(size=(n, 1)) + np.sqrt(1 - rho) * rng.normal(size=(n, d))


@functools.cache
def linear_gaussian(d=20, rho=0.4):
    """A network on X ~ N(0, Σ) and a linear model, with β."""
    beta = np.where(np.arange(d) < 6, 1 - 0.1 * np.arange(d), 0.0)
    recipe = NeuralSurrogate(epochs=40, batch=512)
    return recipe.fit(linear_model(beta), exchangeable(4000, d, rho), 0), beta


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


def conditional_values(x, beta, rho, coalitions):
    """The lemma: v(S) = x_Sᵀβ_S + ρ/(1 − ρ + ρ|S|) · Σ x_S · Σ β_{S^c}."""
    share = rho / (1 - rho + rho * coalitions.sum(axis=1))
    return coalitions @ (x * beta) + share * (coalitions @ x) * (~coalitions @ beta)


def game_error(game, x, beta, rho):
    """Root mean square of the network's v(S) − E[f(X) | x_S] at one row, sizes of S uniform."""
    d = len(beta)
    orders = np.random.default_rng(1).permuted(np.tile(np.arange(d), (200, 1)), axis=1)
    coalitions = prefixes(orders).reshape(-1, d)
    return rms(game(coalitions) - conditional_values(x, beta, rho, coalitions))


def test_the_network_learns_the_conditional_expectation_of_gaussian_features():
    fit_game, beta = linear_gaussian()
    rows = exchangeable(5, 20, 0.4, seed=9)
    errors = [game_error(fit_game.at(x), x, beta, 0.4) for x in rows]
    assert rms(errors) < 0.08 * np.sqrt(fit_game.info["variance"])


@pytest.mark.parametrize("seed", [9, 10, 11])
def test_contributions_and_attributions_agree_with_theorem_1_within_the_networks_error(seed):
    # Δ is a difference of two means of v, so its error is at most twice that of v
    fit_game, beta = linear_gaussian()
    x = exchangeable(1, 20, 0.4, seed=seed)[0]
    truth = block_exchangeable_contributions(x, beta, [range(20)], 0.4).mean
    sampled = permutation(fit_game.at(x), evaluations=40_000, rng=0)
    bound = 2 * game_error(fit_game.at(x), x, beta, 0.4)
    assert rms(sampled.mean - truth) < bound
    assert rms((sampled.mean - truth).mean(axis=0)) < bound
    assert bound < 0.2 * np.abs(truth).max()


def test_enumerated_contributions_agree_with_theorem_1_at_few_features():
    beta = np.array([1.0, -0.5, 0.0, 2.0, 0.3])
    fitted = NeuralSurrogate(epochs=30, batch=256).fit(
        linear_model(beta), exchangeable(3000, 5, 0.6), 0
    )
    x = exchangeable(1, 5, 0.6, seed=4)[0]
    truth = block_exchangeable_contributions(x, beta, [range(5)], 0.6).mean
    assert rms(exact(fitted.at(x)).mean - truth) < 2 * game_error(fitted.at(x), x, beta, 0.6)


def test_paper_is_the_papers_recipe():
    recipe = asdict(NeuralSurrogate.paper())
    assert recipe["units"] == 128
    assert (recipe["rate"], recipe["batch"], recipe["epochs"], recipe["masks"]) == (
        1e-3,
        64,
        100,
        1,
    )
    assert recipe["beta_2"] == 0.999  # Adam's own
    assert NeuralSurrogate.paper().n_epochs(10**9) == 100
    assert recipe["schedule"] == "plateau"
    assert recipe["loss"] == "auto"


@needs_torch
def test_the_papers_recipe_trains():
    game = replace(NeuralSurrogate.paper(), epochs=4).fit(product_model, normal_rows(200), 0)
    assert np.isfinite(game.info["held_out_error"])


def test_the_compiled_walk_is_the_plain_network():
    game = fit_game()
    coalitions = np.random.default_rng(0).random((700, 4)) < 0.5
    plain = masked_values(game, np.repeat(ROW, 700, axis=0), coalitions)[:, 0]
    np.testing.assert_allclose(game.at(ROW)(coalitions), plain, atol=2e-6)


@needs_torch
def test_the_network_is_the_one_that_torch_trained():
    import torch

    game = replace(TINY, engine="torch").fit(product_model, normal_rows(200), 0)
    p = {name: torch.tensor(array) for name, array in game.network.parameters.items()}
    coalitions = all_coalitions(4)
    inputs = np.concatenate([game.inputs(ROW) * coalitions, coalitions], axis=1)
    units = torch.tensor(inputs, dtype=torch.float32)
    for layer in "12":
        units = torch.nn.functional.elu(units @ p["W" + layer] + p["b" + layer])
    raw = (units @ p["W3"] + p["b3"]).numpy()[:, 0].astype(float)
    expected = raw * game.network.scaling.scale + game.network.scaling.centre
    np.testing.assert_allclose(game.at(ROW)(coalitions), expected, atol=2e-6)


MODELS = {"identity": product_model, "sigmoid": Classifier(2), "softmax": Classifier(3)}


@needs_torch
@pytest.mark.parametrize("schedule", ["cycle", "plateau"])
@pytest.mark.parametrize("link", MODELS)
def test_both_engines_take_the_same_steps(link, schedule):
    rows = as_table(normal_rows(200), np.arange(1.0, 201.0))
    recipe = replace(TINY, rate=1e-3, schedule=schedule)
    compiled, by_torch = (
        replace(recipe, engine=e).fit(MODELS[link], rows, 0) for e in ("compiled", "torch")
    )
    assert compiled.network.scaling.link == link
    for name, array in compiled.network.parameters.items():
        np.testing.assert_allclose(array, by_torch.network.parameters[name], atol=2e-5)


def test_along_is_the_game_on_prefixes():
    game = fit_game().at(ROW)
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(4), (30, 1)), axis=1)
    expected = game(prefixes(orders).reshape(-1, 4)).reshape(30, 5)
    np.testing.assert_allclose(game.along(orders), expected, atol=2e-6)
    np.testing.assert_array_equal(curves.along(game, orders), game.along(orders))


def test_no_coalitions_give_no_values():
    assert fit_game().at(ROW)(np.zeros((0, 4), dtype=bool)).shape == (0,)


def test_info_has_the_keys_of_the_tree_surrogate():
    tree = TreeSurrogate(trees=5).fit(product_model, normal_rows(200), 0)
    assert set(tree.quality) <= set(fit_game().info)
    assert fit_game().info["game"] == "neural_surrogate"


@pytest.mark.parametrize("engine", ["compiled", pytest.param("torch", marks=needs_torch)])
def test_the_same_seed_trains_the_same_network(engine):
    networks = [
        replace(TINY, engine=engine).fit(product_model, normal_rows(200), seed).network
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(networks[0].parameters["W1"], networks[1].parameters["W1"])
    assert not np.array_equal(networks[0].parameters["W1"], networks[2].parameters["W1"])


@needs_torch
def test_torchs_own_seed_is_left_alone():
    import torch

    before = torch.random.get_rng_state()
    replace(TINY, engine="torch").fit(product_model, normal_rows(50), 0)
    assert torch.equal(before, torch.random.get_rng_state())


def test_background_weights_count():
    rows = normal_rows(300)
    heavy = as_table(rows, np.where(rows[:, 0] > 0, 1.0, 1e-6))
    game = replace(TINY, epochs=10).fit(linear_model([1.0, 0.0, 0.0, 0.0]), heavy, 0)
    nothing = game.at(ROW)(np.zeros((1, 4), dtype=bool))[0]
    assert nothing > 0.4  # E[X₀ | X₀ > 0] = 0.8


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_stay_probabilities(classes):
    game = TINY.fit(Classifier(classes), normal_rows(200), 0)
    values = game.at(ROW)(all_coalitions(4))
    assert game.network.scaling.link == {2: "sigmoid", 3: "softmax"}[classes]
    assert values.shape == {2: (16,), 3: (16, 3)}[classes]
    assert ((values > 0) & (values < 1)).all()
    if classes == 3:
        np.testing.assert_allclose(values.sum(axis=1), 1.0, atol=1e-12)


def test_some_of_many_classes_are_learned_one_by_one():
    table = as_table(normal_rows(200))
    game = TINY.fit(as_model(Classifier(3), table, outputs=[0, 2]), table, 0)
    assert game.network.scaling.link == "sigmoid"
    assert game.at(ROW)(all_coalitions(4)).shape == (16, 2)


def test_kl_for_numbers_that_are_no_probabilities_is_refused():
    with pytest.raises(ValueError, match="is for probabilities"):
        replace(TINY, loss="kl").fit(product_model, normal_rows(50), 0)


def test_several_outputs_on_different_scales_are_learned_together():
    def model(rows):
        return np.stack([rows[:, 0], 1e4 + 1e3 * rows[:, 1]], axis=1)

    game = NeuralSurrogate(units=32, epochs=30, batch=128).fit(model, normal_rows(600, 2), 0)
    values = game.at([1.0, -1.0])(np.array([[True, True]]))[0]
    np.testing.assert_allclose((values - [0, 1e4]) / [1, 1e3], [1.0, -1.0], atol=0.25)


def test_a_group_of_columns_is_one_player():
    table = as_table(normal_rows(200), groups={"pair": [0, 1]})
    game = TINY.fit(product_model, table, 0)
    bound = game.at(ROW)
    assert bound.d == 3
    assert bound(all_coalitions(3)).shape == (8,)
    assert game.inputs.player_of_input.tolist() == [0, 0, 1, 2]


def test_categories_missing_values_and_hidden_values_are_three_different_things():
    frame = mixed_frame()
    game = NeuralSurrogate(units=64, epochs=40, batch=64).fit(mixed_model, frame, 0)
    assert game.inputs.player_of_input.tolist() == [
        0,
        0,
        0,
        1,
        2,
        2,
    ]  # three kinds, a number, a number and its hole
    row = pd.DataFrame({"kind": ["b"], "size": [1e4], "hole": [np.nan]})
    only_hole, everything = game.at(row)(np.array([[False, False, True], [True, True, True]]))
    mean = mixed_model(frame).mean()
    assert everything == pytest.approx(9.0, abs=1.0)
    assert only_hole > mean + 1.5
    zero = game.at(row.assign(hole=0.0))(np.array([[False, False, True]]))[0]
    assert zero < mean


def test_a_category_never_seen_is_known_to_be_none_of_the_others():
    game = TINY.fit(mixed_model, mixed_frame(), 0)
    row = pd.DataFrame({"kind": ["z"], "size": [1e4], "hole": [0.0]})
    np.testing.assert_array_equal(game.inputs(row)[0, :3], 0.0)
    assert np.isfinite(game.at(row)(all_coalitions(3))).all()


def test_a_missing_value_where_the_background_has_none_counts_as_the_mean():
    game = fit_game()
    rows = np.array([[0.5, np.nan, 2.0, 0.1]])
    mean = np.array([[0.5, normal_rows(200)[:, 1].mean(), 2.0, 0.1]])
    np.testing.assert_allclose(
        game.at(rows)(all_coalitions(4)), game.at(mean)(all_coalitions(4)), atol=2e-6
    )


PROBLEMS = {"numbers": (product_model, normal_rows(200)), "frame": (mixed_model, mixed_frame())}


def assert_same_game(again, game):
    row = game.background.take(slice(0, 1))
    coalitions = all_coalitions(game.background.d)
    np.testing.assert_array_equal(again.at(row)(coalitions), game.at(row)(coalitions))
    assert again.info["held_out_error"] == game.info["held_out_error"]
    assert again.info["stopped"] == game.info["stopped"]
    assert again.recipe == TINY


@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_stored_game_is_restored(kind):
    game = TINY.fit(*PROBLEMS[kind], 0)
    assert_same_game(NeuralSurrogate.from_state(game.state(), game.model, game.background), game)


@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_saved_explainer_brings_its_network_back_without_training(tmp_path, monkeypatch, kind):
    model, background = PROBLEMS[kind]
    explainer = Explainer(model, background, game=TINY, progress=False)
    explainer.save(tmp_path)
    monkeypatch.delattr(NeuralSurrogate, "fit_split")
    assert_same_game(Explainer.load(tmp_path, model).game, explainer.game)


@pytest.mark.parametrize("missing", ["names", "players", "outputs"])
def test_a_stored_game_is_refused_for_another_table_or_model(missing):
    content = fit_game().state()
    model = fit_game().model
    other = {
        "names": (model, as_table(pd.DataFrame(normal_rows(20), columns=list("abcd")))),
        "players": (model, as_table(normal_rows(20), groups=[["x0", "x1"]])),
        "outputs": (replace(model, output_names=("other",)), as_table(normal_rows(20))),
    }
    with pytest.raises(
        ValueError, match=f"has other {missing} than the given model and background"
    ):
        NeuralSurrogate.from_state(content, *other[missing])


def test_a_saved_explainer_is_refused_for_a_model_with_other_outputs(tmp_path):
    Explainer(Classifier(2), normal_rows(100), game=TINY, progress=False).save(tmp_path)
    with pytest.raises(ValueError, match="another number of outputs"):
        Explainer.load(tmp_path, Classifier(3))


def test_categories_that_no_file_can_hold_are_named(tmp_path):
    frame = pd.DataFrame({"when": pd.Categorical([(1, 2), (3, 4)] * 20), "x": np.arange(40.0)})
    explainer = Explainer(lambda rows: rows["x"].to_numpy(), frame, game=TINY, progress=False)
    with pytest.raises(TypeError, match=r"'when'.*tuple"):
        explainer.save(tmp_path)


def interrupt_training(monkeypatch, at_epoch):
    """Press Ctrl-C at the end of an epoch."""
    loss = CompiledLearner.loss
    epochs = iter(range(1, at_epoch + 1))

    def interrupted(self, batch):
        if next(epochs) == at_epoch:
            raise KeyboardInterrupt
        return loss(self, batch)

    monkeypatch.setattr(CompiledLearner, "loss", interrupted)


def test_an_interrupted_training_keeps_the_best_state_and_says_so(monkeypatch):
    interrupt_training(monkeypatch, at_epoch=3)
    game = TINY.fit(product_model, normal_rows(200), 0)
    assert "interrupted" in game.info["stopped"]
    assert np.isfinite(game.at(ROW)(all_coalitions(4))).all()


def test_an_interrupt_before_there_is_anything_to_keep_is_raised(monkeypatch):
    interrupt_training(monkeypatch, at_epoch=1)
    with pytest.raises(KeyboardInterrupt):
        TINY.fit(product_model, normal_rows(200), 0)


def test_patience_ends_training():
    recipe = replace(TINY, epochs=50, patience=1, schedule="plateau", rate=0.1)
    assert (
        "did not fall for 1 epoch" in recipe.fit(product_model, normal_rows(60), 0).info["stopped"]
    )


def test_training_that_diverges_is_an_error():
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="training diverged"):
        replace(TINY, rate=1e30, standardise=False, schedule="plateau").fit(
            lambda rows: 1e30 * rows[:, 0], normal_rows(100), 0
        )


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_network_that_gives_nan_is_not_explained(bad):
    game = fit_game()
    broken = replace(
        game.network, parameters={**game.network.parameters, "b3": np.full(1, bad, np.float32)}
    )
    for orders in ("cyclic", "per_feature"):
        with pytest.raises(ValueError, match="NaN or infinite"):
            permutation(replace(game, network=broken).at(ROW), evaluations=100, orders=orders)


def test_without_torch_the_error_is_the_line_to_run(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'pip install "weightedshap\[neural\]"'):
        NeuralSurrogate.paper().fit(product_model, normal_rows(20), 0)


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        ({"loss": "squard"}, "squared"),
        ({"schedule": "cycles"}, "cycle"),
        ({"engine": "touch"}, "torch"),
        ({"device": "cuda"}, "engine='torch'"),
        ({"epochs": 0}, "epochs"),
        ({"batch": 1.5}, "batch"),
        ({"beta_2": 1.0}, "beta_2"),
    ],
)
def test_bad_choices_are_named(choice, sentence):
    with pytest.raises(ValueError, match=sentence):
        NeuralSurrogate(**choice)


def test_the_explainer_samples_the_networks_game():
    rows = normal_rows(200, 14)
    explainer = Explainer(linear_model(np.arange(14.0)), rows, game=TINY, evaluations=1_000)
    explanation = explainer(rows[:2])
    assert explanation.values.shape == (2, 14)
    assert explanation.game_info["game"] == "neural_surrogate"
    assert (explanation.n_evaluations > 0).all()


def test_the_game_can_be_chosen_by_name():
    assert isinstance(look_up("game", "neural_surrogate", GAMES)(), NeuralSurrogate)


def test_a_choice_that_is_neither_true_nor_false_is_refused():
    with pytest.raises(ValueError, match="`standardise` must be True or False"):
        ws.games.NeuralSurrogate(standardise=np.ones(3)).fit(product_model, normal_rows(50, 4), 0)
