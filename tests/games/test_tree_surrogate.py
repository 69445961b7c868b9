"""The default game: learned from masked rows, exact in what it learned, honest about how well."""

import functools

import numpy as np
import pandas as pd
import pytest

import weightedshap as ws
from tests.games.batches import batch_at, masked_values
from tests.trees.random_ensembles import assert_matches_own_values
from weightedshap.coalitions import all_coalitions, random_coalitions
from weightedshap.games import TreeSurrogate
from weightedshap.games.surrogates.data import Encoding, fit_quality, split_rows
from weightedshap.inputs import as_table

D = 6
small = functools.partial(TreeSurrogate, trees=30, n_jobs=1)


def rows(n=400, d=D, seed=0):
    """Correlated normal rows."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 0.7 * rng.normal(size=(n, 1))


def f(X):
    return X[:, 0] * X[:, 1] + 2 * X[:, 2] + np.sin(X[:, 3])


def two_outputs(X):
    return np.stack([f(X), X[:, 4] - X[:, 0]], axis=1)


@functools.cache
def fit_game(n=400):
    return small().fit(f, rows(n), np.random.default_rng(0))


def test_contributions_and_walks_equal_the_games_own_values():
    for row in rows(5, seed=1):
        assert_matches_own_values(fit_game().at(row))


def test_a_value_is_what_the_booster_predicts_with_hidden_features_missing():
    row = rows(1, seed=2)
    coalitions = all_coalitions(D)
    masked = np.where(coalitions, row, np.nan)
    np.testing.assert_allclose(
        fit_game().at(row)(coalitions), fit_game().boosters[0].predict(masked), atol=1e-10
    )


def test_uniform_weights_add_up_to_the_gap_between_the_ends():
    explanation = ws.Explainer(f, rows(), game=fit_game())(rows(20, seed=3))
    game_full = explanation.predictions + explanation.endpoint_gaps["full"]
    np.testing.assert_allclose(
        explanation.shapley.sum(axis=1), game_full - explanation.base_values, atol=1e-9
    )


def test_it_learns_the_conditional_expectation():
    """x0 and x1 are nearly the same, so knowing one of them tells the other."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 1))
    X = np.hstack([x, x + 0.01 * rng.normal(size=(3000, 1)), rng.normal(size=(3000, 1))])
    game = TreeSurrogate(n_jobs=1).fit(lambda rows: rows[:, 0], X, 0).at([1.0, 1.0, 0.0])
    values = game(np.array([[False, True, False], [True, False, False], [False, False, True]]))
    np.testing.assert_allclose(values, [1.0, 1.0, 0.0], atol=0.15)


def test_the_game_can_be_chosen_by_name():
    explainer = ws.Explainer(f, rows(60), game="tree_surrogate")
    assert explainer(rows(2)).game_info["game"] == "tree_surrogate"
    assert len(explainer.game.boosters) == 1


def test_rows_in_blocks_in_threads_and_alone_give_the_same_numbers():
    X = rows(300, seed=4)
    one, two = (ws.Explainer(f, rows(), game=fit_game(), n_jobs=n)(X) for n in (1, 2))
    single = [ws.Explainer(f, rows(), game=fit_game())(X[r : r + 1]) for r in range(5)]
    for name in ("values", "contributions", "scores", "curves"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        np.testing.assert_array_equal(
            getattr(one, name)[:5], np.concatenate([getattr(a, name) for a in single])
        )


def test_contributions_that_are_not_kept_change_nothing_else():
    X = rows(10, seed=4)
    kept, dropped = (
        ws.Explainer(f, rows(), game=fit_game(), keep_contributions=k)(X) for k in (True, False)
    )
    assert dropped.contributions is None
    np.testing.assert_array_equal(kept.values, dropped.values)
    np.testing.assert_allclose(kept.shapley, kept.contributions.mean(axis=1), atol=1e-12)


def test_each_output_has_its_own_ensemble():
    explainer = ws.Explainer(two_outputs, rows(), game=small())
    explanation = explainer(rows(4, seed=5))
    assert len(explainer.game.boosters) == 2
    assert explanation.contributions.shape == (4, D, D, 2)
    assert_matches_own_values(
        batch_at(explainer.game, rows(1, seed=5)).output(1).row_game(axis=False)
    )


def test_the_same_seed_learns_the_same_trees():
    again = small().fit(f, rows(), np.random.default_rng(0))
    assert again.boosters[0].model_to_string() == fit_game().boosters[0].model_to_string()


# quality ------------------------------------------------------------------------------------------


def test_the_result_says_how_well_the_game_fits():
    info = ws.Explainer(f, rows(), game=fit_game())(rows(2)).game_info
    assert info["held_out_error"] == pytest.approx(info["relative_error"] * info["variance"])
    assert 0 < info["relative_error"] < 1
    assert info["held_out_error_by_size"].shape == (D + 1,)
    assert info["held_out_error_by_size"][0] > 3 * info["held_out_error_by_size"][D]
    assert np.isfinite([info["empty_gap"], info["full_gap"]]).all()


def test_quality_is_the_mean_squared_error_by_size():
    game = np.array([[1.0], [2.0], [3.0]])
    truth = np.array([[1.0], [0.0], [0.0]])
    coalitions = np.array([[False, False], [True, False], [False, True]])
    quality = fit_quality(game, truth, coalitions, np.array([[0.0], [2.0]]), np.array([0.5, 0.5]))
    assert quality["held_out_error"] == pytest.approx(13 / 3)
    np.testing.assert_allclose(quality["held_out_error_by_size"], [0.0, 6.5, np.nan])
    assert quality["relative_error"] == pytest.approx(13 / 3)
    assert quality["empty_gap"] == 0.0


def test_a_model_of_more_noise_is_reported_as_harder():
    noise = np.random.default_rng(1)
    table = {row.tobytes(): noise.normal() * 3 for row in rows()}
    noisy = small().fit(lambda X: f(X) + [table.get(row.tobytes(), 0.0) for row in X], rows(), 0)
    assert noisy.info["held_out_error"] > 2 * fit_game().info["held_out_error"]


# masks and splits ---------------------------------------------------------------------------------


def test_sizes_of_random_coalitions_are_uniform_from_none_to_all():
    sizes = random_coalitions(70_000, D, np.random.default_rng(0)).sum(axis=1)
    np.testing.assert_allclose(np.bincount(sizes) / len(sizes), 1 / (D + 1), atol=0.01)


def test_members_of_random_coalitions_are_equally_likely():
    coalitions = random_coalitions(70_000, D, np.random.default_rng(0))
    np.testing.assert_allclose(coalitions.mean(axis=0), 0.5, atol=0.02)


def test_copies_of_one_row_are_never_on_both_sides_of_the_split():
    X = np.repeat(rows(50), 4, axis=0)
    train, held = split_rows(X, 0.15, np.random.default_rng(0))
    assert len(train) + len(held) == len(X)
    assert not {row.tobytes() for row in X[train]} & {row.tobytes() for row in X[held]}


def test_a_row_with_very_many_copies_is_learned_from():
    X = np.concatenate([np.zeros((80, D)), rows(20)])
    for seed in range(5):
        train, held = split_rows(X, 0.15, np.random.default_rng(seed))
        assert (X[train] == 0).all(axis=1).sum() == 80
        assert 10 < len(held) <= 33


def test_more_background_rows_than_the_limit_are_all_used_with_one_mask_each():
    surrogate = TreeSurrogate(trees=3, max_rows=100, n_jobs=1)
    seen = []
    surrogate.fit(lambda X: (seen.append(len(X)), f(X))[1], rows(500), 0)
    assert max(seen) == 500


# missing is not hidden ----------------------------------------------------------------------------


def test_a_missing_value_is_information_and_not_a_hidden_feature():
    """f asks whether x0 is missing: a known hole must differ from a hidden feature."""
    X = rows(1500)
    X[np.random.default_rng(1).random(1500) < 0.3, 0] = np.nan
    game = TreeSurrogate(n_jobs=1).fit(lambda rows: np.isnan(rows[:, 0]) * 1.0, X, 0)
    known = np.array([[True] + [False] * (D - 1), [False] * D])
    with_hole = game.at(np.r_[np.nan, np.zeros(D - 1)])(known)
    without = game.at(np.zeros(D))(known)
    assert with_hole[0] == pytest.approx(1.0, abs=0.05)
    assert without[0] == pytest.approx(0.0, abs=0.05)
    assert with_hole[1] == without[1] == pytest.approx(0.3, abs=0.1)


def test_no_encoded_number_is_nan():
    X = rows(50)
    X[::3, 1] = np.nan
    table = as_table(X)
    encoded = Encoding.fit(table, f(np.nan_to_num(X))[:, None])(X)
    assert not np.isnan(encoded).any()
    assert (encoded[::3, 1] < np.nanmin(X[:, 1])).all()


def test_a_frame_with_words_booleans_and_holes_is_learned():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=600),
            "colour": rng.choice(["red", "green", "blue"], size=600),
            "late": rng.random(600) < 0.5,
        }
    )
    frame.loc[::7, "size"] = np.nan
    frame["colour"] = frame["colour"].astype("category")

    def model(rows):
        return (
            rows["colour"].map({"red": 2.0, "green": 0.0, "blue": -1.0}).astype(float)
            + rows["late"] * 1.0
        )

    game = (
        TreeSurrogate(n_jobs=1)
        .fit(model, frame, 0)
        .at({"size": np.nan, "colour": "red", "late": True})
    )
    assert game(np.array([[False, True, True]]))[0] == pytest.approx(3.0, abs=0.1)
    assert_matches_own_values(game)


def test_categories_that_say_nothing_are_not_taken_for_knowledge():
    """Half as many identifiers as rows: the error on held-out rows is what it is on new rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=1200), "b": rng.normal(size=1200)})
    frame["id"] = [f"id {i}" for i in rng.integers(300, size=1200)]
    model = lambda rows: np.sin(3 * rows["a"].to_numpy()) + rows["b"].to_numpy()
    game = TreeSurrogate(masks=8, trees=40, n_jobs=1).fit(model, frame[:600], 0)
    row = np.repeat(np.arange(600, 1200), 8)
    masks = random_coalitions(len(row), 3, np.random.default_rng(1))
    new = frame.iloc[row]
    error = ((masked_values(game, new, masks)[:, 0] - model(new)) ** 2).mean()
    assert game.info["held_out_error"] == pytest.approx(error, rel=0.2)
    plain = TreeSurrogate(masks=8, trees=40, n_jobs=1).fit(model, frame.loc[:599, ["a", "b"]], 0)
    assert error < 1.3 * plain.info["held_out_error"]


# bad and thin input -------------------------------------------------------------------------------


def test_an_infinite_value_is_refused_by_column():
    row = rows(1)
    row[0, 3] = np.inf
    with pytest.raises(ValueError, match="Column 'x3' holds an infinite value"):
        fit_game().at(row)


def test_a_row_without_any_value_is_explained():
    assert_matches_own_values(fit_game().at(np.full(D, np.nan)))


def test_a_constant_model_has_no_contributions():
    explanation = ws.Explainer(lambda X: np.full(len(X), 3.0), rows(50), game="tree_surrogate")(
        rows(3)
    )
    assert (explanation.contributions == 0).all()
    np.testing.assert_allclose(explanation.base_values, 3.0)
    assert set(explanation.weight_labels) == {"Beta(1,1)"}
    assert explanation.game_info["relative_error"] == 0.0


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_background_of_few_rows_is_enough(n):
    explanation = ws.Explainer(f, rows(n), game="tree_surrogate")(rows(2, seed=1))
    assert np.isfinite(explanation.values).all()


def test_a_single_feature_gets_the_whole_difference():
    explanation = ws.Explainer(lambda X: X[:, 0] ** 2, rows(200, d=1), game=small())(rows(3, d=1))
    game_full = explanation.predictions + explanation.endpoint_gaps["full"]
    np.testing.assert_allclose(explanation.values[:, 0], game_full - explanation.base_values)


def test_a_category_never_seen_is_ranked_between_the_middle_ones_with_a_note():
    frame = pd.DataFrame({"a": np.arange(60.0), "b": ["low", "mid", "high"] * 20})
    model = lambda rows: rows["b"].map({"low": 0.0, "mid": 1.0, "high": 2.0}).fillna(5.0).to_numpy()
    explainer = ws.Explainer(model, frame, game=small())
    assert explainer.game.encoding(pd.DataFrame({"a": [1.0], "b": ["new"]}))[0, 1] == 1.5
    explanation = explainer(pd.DataFrame({"a": [1.0], "b": ["new"]}))
    assert (
        explanation.notes[0] == "Column 'b' holds categories that the background never saw: 'new'."
    )
    assert (
        explanation.endpoint_gaps["full"][0] < -2.5
    )  # the game stays in what it knows, and the gap says so
