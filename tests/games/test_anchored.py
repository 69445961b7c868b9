"""The judges: right at [d] whatever the model, halves of a blend are weighed by held-out rows, and
calls of the model are counted."""

import functools
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import weightedshap as ws
from tests.games.batches import batch_at, masked_values
from weightedshap.coalitions import all_coalitions, prefixes, random_coalitions
from weightedshap.games import Anchored, AnchoredNetwork, Marginal, NeuralSurrogate, TreeSurrogate
from weightedshap.games.surrogates.anchored import blend_weight, lifting_weights
from weightedshap.games.surrogates.data import MaskedRows
from weightedshap.games.user import as_model_and_table
from weightedshap.inputs import as_table
from weightedshap.inputs.rows import Rows

D = 6
ALL = all_coalitions(D)
SHORT = NeuralSurrogate(units=32)
BLIND = NeuralSurrogate(epochs=1, every=1, rate=1e-9)
small = functools.partial(Anchored, masks=8, network=SHORT)


def rows(n=400, d=D, seed=0):
    """Correlated normal rows."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 0.7 * rng.normal(size=(n, 1))


def f(X):
    return X[:, 0] * X[:, 1] + 2 * X[:, 2] + np.sin(X[:, 3])


def two_outputs(X):
    return np.stack([f(X), X[:, 4] - X[:, 0]], axis=1)


@functools.cache
def judge(name="blend"):
    recipe = {"blend": small(), "network": AnchoredNetwork(SHORT), "two": small(rows=3)}[name]
    return recipe.fit(two_outputs if name == "two" else f, rows(), np.random.default_rng(0))


judges = pytest.mark.parametrize("name", ["blend", "network", "two"])


# games that are right at [d] ----------------------------------------------------------------------


@judges
def test_a_judge_gives_the_prediction_when_everything_is_known(name):
    X = rows(5, seed=1)
    batch = batch_at(judge(name), X)
    expected = judge(name).predictions(Rows(X))
    np.testing.assert_allclose(batch.values(ALL[-1:])[:, 0], expected, rtol=1e-14)
    np.testing.assert_allclose(batch.endpoints()[:, 1], expected, rtol=1e-14)
    orders = np.tile(np.arange(D), (5, 2, 1))
    np.testing.assert_allclose(
        batch.along(orders)[:, :, -1], expected[:, None].repeat(2, axis=1), rtol=1e-14
    )


@judges
def test_walks_and_endpoints_agree_with_values(name):
    batch = batch_at(judge(name), rows(3, seed=1))
    rng = np.random.default_rng(0)
    orders = rng.permuted(np.tile(np.arange(D), (3, 4, 1)), axis=-1)
    along = batch.along(orders)
    for r in range(3):
        one = batch_at(judge(name), rows(3, seed=1)[[r]])
        expected = one.values(prefixes(orders[r]).reshape(-1, D))[0].reshape(4, D + 1, -1)
        np.testing.assert_allclose(along[r], expected, atol=5e-6)
    np.testing.assert_allclose(batch.endpoints(), batch.values(ALL[[0, -1]]), atol=5e-6)
    assert (batch.d, batch.n) == (D, 3)


def test_each_output_can_be_selected():
    batch = batch_at(judge("two"), rows(3, seed=1))
    for o in range(2):
        np.testing.assert_allclose(
            batch.output(o).values(ALL), batch.values(ALL)[..., [o]], atol=1e-12
        )


def test_the_network_is_lifted_by_the_square_of_what_is_known():
    X = rows(3, seed=1)
    inner = batch_at(judge("network").network, X)
    expected = (
        inner.values(ALL)
        + lifting_weights(D)[ALL.sum(axis=1), None]
        * (f(X)[:, None] - inner.endpoints()[:, 1])[:, None]
    )
    np.testing.assert_allclose(batch_at(judge("network"), X).values(ALL), expected, atol=1e-6)
    np.testing.assert_array_equal(lifting_weights(4), [0, 1 / 16, 1 / 4, 9 / 16, 1])


def test_a_blend_is_the_weighted_mean_of_its_halves():
    X = rows(3, seed=1)
    w = judge().info["network_share"]
    network, trees = judge().parts
    expected = w * batch_at(network, X).values(ALL) + (1 - w) * batch_at(trees, X).values(ALL)
    np.testing.assert_allclose(batch_at(judge(), X).values(ALL), expected, atol=1e-12)
    assert 0.1 <= w <= 0.9
    assert judge().info["blend"].startswith(f"{w:.0%} network")


@judges
def test_values_of_masked_rows_are_those_of_the_batch(name):
    fitted = judge(name)
    parts = fitted.parts if name != "network" else (fitted,)
    for part in parts:
        X = rows(20, seed=1)
        C = random_coalitions(20, D, np.random.default_rng(0))
        one_by_one = [batch_at(part, X[[r]]).values(C[[r]])[0, 0] for r in range(20)]
        np.testing.assert_allclose(masked_values(part, X, C), one_by_one, atol=5e-6)


# how good they are --------------------------------------------------------------------------------


def conditional(X, C, rho, weights):
    """E[w·X | X_S = x_S] of equicorrelated standard normal features."""
    s = C.sum(axis=1)
    each = (
        rho / (1 + (np.maximum(s, 1) - 1) * rho) * (X * C).sum(axis=1)
    )  # the mean of every hidden feature
    return (X * C) @ weights + each * ((~C) @ weights)


def test_both_judges_are_nearer_to_the_truth_than_the_tree_surrogate():
    rho = 0.5
    weights = np.array([1.0, -1.0, 0.5, 0.5, 0.0, 0.0])
    rng = np.random.default_rng(0)
    draw = lambda n: (
        np.sqrt(1 - rho) * rng.normal(size=(n, D)) + np.sqrt(rho) * rng.normal(size=(n, 1))
    )
    background = draw(1500)
    X = np.repeat(draw(60), 20, axis=0)
    C = random_coalitions(len(X), D, rng)
    model = lambda rows: rows @ weights
    error = lambda game: float(np.sqrt(((game - conditional(X, C, rho, weights)) ** 2).mean()))
    surrogate = error(masked_values(TreeSurrogate(n_jobs=1).fit(model, background, 0), X, C)[:, 0])
    for recipe in (Anchored(), AnchoredNetwork()):
        fitted = recipe.fit(model, background, 0)
        values = [
            batch_at(fitted, X[[r]]).values(C[r : r + 20])[0, :, 0] for r in range(0, len(X), 20)
        ]
        assert error(np.concatenate(values)) < 0.6 * surrogate


@judges
def test_the_info_of_a_judge_states_its_space_gap_and_errors(name):
    info = judge(name).info
    assert info["game"] == ("anchored_network" if name == "network" else "anchored")
    assert info["space"] == "value"
    assert info["full_gap"] < 1e-6
    assert info["held_out_error_by_size"].shape == (D + 1,)
    assert 0 < info["relative_error"] < 1


# weighing the halves ------------------------------------------------------------------------------


def test_the_share_minimises_the_squared_error_of_the_blend():
    rng = np.random.default_rng(0)
    f_x = rng.normal(size=(500, 2)) * [1.0, 100.0]
    network, trees = (
        f_x + scale * rng.normal(size=(500, 2)) * [1.0, 100.0] for scale in (0.5, 1.0)
    )
    sd = np.array([1.0, 100.0])
    w = blend_weight(network, trees, f_x, sd)
    errors = [
        (((u * network + (1 - u) * trees - f_x) / sd) ** 2).sum() for u in (w - 0.01, w, w + 0.01)
    ]
    assert errors[1] < min(errors[0], errors[2])
    assert w == pytest.approx(0.8, abs=0.05)  # by the inverse variances


def test_the_share_of_the_network_is_bounded_and_a_small_one_is_none():
    f_x = np.random.default_rng(0).normal(size=(500, 1))
    off = f_x + np.random.default_rng(1).normal(size=(500, 1))
    assert blend_weight(f_x, off, f_x, np.ones(1)) == 0.9
    assert blend_weight(off, f_x, f_x, np.ones(1)) == 0.0
    assert blend_weight(off, off, f_x, np.ones(1)) == 0.5


def test_a_network_that_learned_nothing_is_left_out():
    fitted = Anchored(masks=8, network=BLIND).fit(f, rows(), 0)
    assert len(fitted.parts) == 1
    assert fitted.info["network_share"] == 0
    assert fitted.info["blend"].startswith("no network")
    assert fitted.info["network_error"] > fitted.info["trees_error"]
    np.testing.assert_allclose(
        batch_at(fitted, rows(2)).endpoints()[:, 1, 0], f(rows(2)), rtol=1e-14
    )


# models, tables, files ----------------------------------------------------------------------------


def test_probabilities_of_several_classes_are_judged_each_by_its_own():
    X = rows()
    model = LogisticRegression().fit(X, np.digitize(f(X), [-1.0, 1.0]))
    fitted = small().fit(model, X, 0)
    assert fitted.space == "probability"
    ends = batch_at(fitted, X[:4]).endpoints()
    np.testing.assert_allclose(ends[:, 1], model.predict_proba(X[:4]), atol=1e-12)
    np.testing.assert_allclose(ends[0, 0], model.predict_proba(X).mean(axis=0), atol=0.05)


def test_frames_with_categories_missing_values_groups_and_weights_are_learned():
    frame = pd.DataFrame(rows(), columns=list("abcdef")).assign(
        kind=np.where(rows()[:, 0] > 0, "high", "low")
    )
    frame.loc[::7, "b"] = np.nan
    model = lambda X: X["a"].to_numpy() + 3 * (X["kind"] == "high") + X["b"].isna()
    table = as_table(frame, np.linspace(1, 2, 400), groups={"ab": ["a", "b"]})
    for recipe in (small(), small(rows=4)):
        batch = batch_at(recipe.fit(model, table, 0), frame.iloc[:3])
        assert batch.d == 6
        np.testing.assert_allclose(batch.endpoints()[:, 1, 0], model(frame.iloc[:3]), rtol=1e-12)


def test_one_feature_can_be_judged():
    fitted = small().fit(lambda X: X[:, 0] ** 2, rows(d=1), 0)
    np.testing.assert_allclose(
        batch_at(fitted, rows(3, d=1)).endpoints()[:, 1, 0], rows(3, d=1)[:, 0] ** 2
    )


@pytest.mark.parametrize("few", [1, 4])
def test_calls_of_the_model_are_counted(few):
    n_rows = []

    def counted(X):
        n_rows.append(len(X))
        return f(X)

    model, table, rng = as_model_and_table(counted, rows(), 0)
    n_rows.clear()  # the model was probed on two rows
    fitted = small(rows=few).fit(model, table, rng)
    assert sum(n_rows) == pytest.approx(
        fitted.info["calls"]["fit"], rel=0.15
    )  # but for whole rows and looks at 100
    assert fitted.info["calls"]["ranking"] == few * (D - 1)
    fitted.warm_up()
    batch = batch_at(fitted, rows(1, seed=1))
    batch.endpoints()
    n_rows.clear()
    batch.along(np.arange(D)[None, None])
    assert sum(n_rows) <= fitted.info["calls"]["ranking"]


@judges
def test_what_was_learned_is_kept(name):
    fitted = judge(name)
    X = rows(4, seed=2)
    again = ws.games.RECIPES[fitted.state()["recipe"]].from_state(
        fitted.state(), fitted.model, fitted.background
    )
    for copy in (again, pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(
            batch_at(copy, X).values(ALL), batch_at(fitted, X).values(ALL)
        )
        assert copy.info.keys() == fitted.info.keys()


@pytest.mark.parametrize("name", ["anchored", "anchored_network"])
def test_an_explainer_with_this_judge_is_saved_and_loaded(tmp_path, name):
    model = LinearRegression().fit(rows(), f(rows()))
    explainer = ws.Explainer(model, rows(150), game="marginal", judge=name, progress=False)
    explainer.save(tmp_path)
    X = rows(3, seed=3)
    assert ws.Explainer.load(tmp_path, model)(X).equals(explainer(X))
    assert explainer(X).judge_info["game"] == name


def test_the_default_leaves_features_that_the_model_does_not_use_alone():
    X = np.random.default_rng(0).normal(size=(660, 4))
    explanation = ws.Explainer(lambda rows: rows[:, 0] + rows[:, 1], X[:600], progress=False)(
        X[600:]
    )
    chosen = np.abs(explanation.values)
    shapley = np.abs(explanation.shapley)
    assert (shapley[:, 2:] == 0).all()  # the marginal game
    assert chosen[:, 2:].mean() < 0.03 * chosen[:, :2].mean()


def test_long_fits_show_a_progress_bar_on_request(capsys):
    model = LinearRegression().fit(rows(), f(rows()))
    ws.Explainer(model, rows(100), game="marginal", judge=small(), progress=False)
    assert capsys.readouterr().err == ""
    ws.Explainer(model, rows(100), game="marginal", judge=small(), progress=True)
    assert "asking the model" in capsys.readouterr().err


def test_some_of_the_masked_rows_can_be_taken():
    masked = MaskedRows(np.arange(4), ALL[:4])
    assert masked.take(slice(1, 3)).row.tolist() == [1, 2]
    np.testing.assert_array_equal(masked.take(np.array([3])).coalition, ALL[3:4])


def test_the_same_seed_fits_the_same_judge():
    again = small().fit(f, rows(), np.random.default_rng(0))
    np.testing.assert_array_equal(
        batch_at(again, rows(2)).values(ALL), batch_at(judge(), rows(2)).values(ALL)
    )


def test_the_rows_of_the_marginal_game_are_a_parameter():
    assert judge("two").parts[-1].base.info["rows"] == 3
    assert judge().parts[-1].base.drawn == ()
    assert isinstance(judge().parts[-1].base, type(Marginal().fit(f, rows())))
