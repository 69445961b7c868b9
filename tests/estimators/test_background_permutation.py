"""Walks through single background rows: fair draws of Δ of the mean, each cell visited, calls of
the model counted."""

import numpy as np
import pandas as pd
import pytest

import weightedshap as ws
from tests.oracles import linear_model, normal_rows, product_model, random_game, three_outputs
from weightedshap.estimators import auto, exact, permutation, walks
from weightedshap.estimators.background_permutation import (
    balance_rows,
    latin_square,
    subtract_regression,
)
from weightedshap.games import Marginal
from weightedshap.inputs import as_table

ROW = np.array([0.5, -1.0, 2.0, 0.1])
BACKGROUND = normal_rows(30)


class Counted:
    """A model that counts the rows it was handed."""

    def __init__(self, model):
        self.model, self.calls = model, 0

    def __call__(self, rows):
        self.calls += len(rows)
        return self.model(rows)


def wide_rows(n, d=14, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def wide_model(rows):
    return rows[:, 0] * rows[:, 1] + np.abs(rows[:, 2]) - rows[:, 3]


def bound(model=product_model, background=BACKGROUND, row=ROW):
    return Marginal().fit(model, background).at(row)


def mean_of_many(game, times=400):
    return np.mean([walks(game, rng=seed).mean for seed in range(times)], axis=0)


@pytest.mark.parametrize("weights", [None, np.arange(30.0), np.where(np.arange(30) % 3, 0.0, 1.0)])
def test_the_mean_over_many_seeds_is_the_exact_table(weights):
    game = bound(background=as_table(BACKGROUND, weights))
    error = np.std([walks(game, rng=seed).mean for seed in range(50)], axis=0) / 20
    np.testing.assert_array_less(np.abs(mean_of_many(game) - exact(game).mean), 5 * error + 1e-12)


def test_groups_and_frames_with_categories_are_walked_alike():
    frame = pd.DataFrame(BACKGROUND, columns=list("abcd")).assign(
        e=np.where(BACKGROUND[:, 0] > 0, "high", "low")
    )
    model = lambda rows: rows["a"].to_numpy() * rows["b"] + rows["c"] * (rows["e"] == "high")
    game = bound(model, as_table(frame, groups={"ab": ["a", "b"]}), frame.iloc[:1])
    assert game.d == 4
    error = np.std([walks(game, rng=seed).mean for seed in range(50)], axis=0) / 10
    np.testing.assert_array_less(
        np.abs(mean_of_many(game, 100) - exact(game).mean), 5 * error + 1e-12
    )


def test_several_outputs_share_their_walks():
    together = walks(bound(three_outputs), rng=0)
    assert together.mean.shape == (4, 4, 3)
    apart = np.stack(
        [walks(bound(lambda rows, o=o: three_outputs(rows)[:, o]), rng=0).mean for o in range(3)],
        axis=-1,
    )
    np.testing.assert_allclose(together.mean.sum(axis=(0, 1)), apart.sum(axis=(0, 1)), atol=1.0)


def test_a_feature_that_the_model_does_not_use_contributes_exactly_nothing():
    found = walks(Marginal().fit(wide_model, wide_rows(200)).at(wide_rows(1, seed=1)), rng=0)
    assert (found.mean[:, 4:] == 0).all()
    assert (found.standard_error_of(np.full(14, 1 / 14))[4:] == 0).all()


def test_every_cell_is_visited_equally_often():
    found = walks(Marginal().fit(wide_model, wide_rows(200)).at(wide_rows(1, seed=1)), rng=0)
    assert (found.counts == 8).all()  # 112 walks at d = 14
    assert found.visited
    assert len(found.chains.mean) == 8


@pytest.mark.parametrize("d", [1, 2, 5, 9])
def test_in_a_latin_square_every_player_stands_at_every_place_once(d):
    square = latin_square(d, np.random.default_rng(d))
    for lines in (square, square.T):
        np.testing.assert_array_equal(np.sort(lines, axis=1), np.tile(np.arange(d), (d, 1)))


def test_every_square_gets_one_of_each_group_of_neighbours():
    dealt = balance_rows(np.arange(12), 3, np.random.default_rng(0)).reshape(3, 4)
    np.testing.assert_array_equal(np.sort(dealt // 3, axis=1), np.tile(np.arange(4), (3, 1)))
    np.testing.assert_array_equal(np.sort(dealt.ravel()), np.arange(12))


def test_rows_are_drawn_without_replacement_as_far_as_they_go():
    fitted = Marginal().fit(product_model, BACKGROUND)
    assert len(set(fitted.sample_rows(30, np.random.default_rng(0)).tolist())) == 30
    drawn = fitted.sample_rows(75, np.random.default_rng(0))
    assert np.bincount(drawn, minlength=30).tolist().count(2) == 15


def test_rows_are_drawn_by_weight_and_never_one_without():
    weights = np.where(np.arange(30) < 3, [1.0], 0.0) * np.resize([1.0, 1.0, 2.0], 30)
    fitted = Marginal().fit(product_model, as_table(BACKGROUND, weights))
    counts = np.bincount(fitted.sample_rows(8, np.random.default_rng(0)), minlength=30)
    assert counts[:3].tolist() == [2, 2, 4]


def test_rows_are_drawn_evenly_over_the_range_of_predictions():
    fitted = Marginal().fit(linear_model([1, 0, 0, 0]), normal_rows(1000))
    means = [
        normal_rows(1000)[fitted.sample_rows(20, np.random.default_rng(seed)), 0].mean()
        for seed in range(20)
    ]
    assert np.std(means) < 0.5 / np.sqrt(20)  # of random rows: 1 / √20


def test_the_whole_gain_is_nearly_shared_out():
    fitted = Marginal().fit(wide_model, wide_rows(1000))
    game = fitted.at(wide_rows(1, seed=1))
    gain = float(np.diff(game(np.array([[False] * 14, [True] * 14])))[0])
    sums = [walks(game, rng=seed).mean.mean(axis=0).sum() for seed in range(10)]
    assert np.abs(np.array(sums) - gain).max() < 0.1 * wide_model(wide_rows(1000)).std()


def test_calls_of_the_model_are_counted_and_bounded():
    model = Counted(wide_model)
    fitted = Marginal().fit(model, wide_rows(200)).warm_up()
    row = fitted.background.align(wide_rows(1, seed=1))
    model.calls = 0
    game = fitted.at(row)
    found = walks(game, rng=0)
    assert model.calls == found.evaluations == 112 * 13 + 1
    assert walks(fitted.at(row), evaluations=1_000, rng=0).evaluations == 5 * 14 * 13 + 1
    assert walks(fitted.at(row), evaluations=183, rng=0).visited
    with pytest.raises(ValueError, match="need at least 183"):
        walks(fitted.at(row), evaluations=182, rng=0)


def test_standard_errors_tell_the_error_or_a_little_more():
    fitted = Marginal().fit(wide_model, wide_rows(300))
    game = fitted.at(wide_rows(1, seed=1))
    w = np.full(14, 1 / 14)
    tables = [walks(game, rng=seed) for seed in range(60)]
    phi = np.array([table.mean.mean(axis=0) for table in tables])[:, :4]
    told = np.sqrt(np.mean([table.standard_error_of(w)[:4] ** 2 for table in tables], axis=0))
    ratio = told / phi.std(axis=0)
    assert (ratio > 0.85).all()
    assert (ratio < 2.2).all()


def test_of_a_linear_model_hardly_any_error_is_left():
    weights = np.linspace(-1, 1, 14)
    X = wide_rows(500) + 3.0
    game = Marginal().fit(lambda rows: rows @ weights, X).at(wide_rows(1, seed=1))
    exactly = weights * (wide_rows(1, seed=1)[0] - X.mean(axis=0))
    found = walks(game, rng=0)
    assert np.abs(found.mean - exactly).max() < 0.1  # a step has standard deviation up to 1
    assert np.abs(found.mean.mean(axis=0) - exactly).max() < 0.01


def test_steps_are_corrected_by_what_others_tell_and_constant_ones_are_not():
    rng = np.random.default_rng(0)
    d = 5
    orders = np.concatenate([latin_square(d, rng) for _ in range(20)])
    control_variates = rng.normal(size=(100, d, 2))
    place = np.argsort(orders, axis=1)
    by_player = (
        3 * control_variates[..., 0] + control_variates[..., 1] + control_variates[..., 0] * place
    )
    by_player[:, 3], by_player[:, 4] = 7.0, 0.0
    steps = np.take_along_axis(by_player, orders, axis=1)
    left = np.take_along_axis(subtract_regression(steps, orders, control_variates), place, axis=1)
    assert np.abs(left[:, :3]).max() < 0.1 * np.abs(by_player[:, :3]).max()
    np.testing.assert_allclose(left[:, 3], 7.0, atol=1e-12)
    assert (left[:, 4] == 0).all()
    two = subtract_regression(np.stack([steps, 2 * steps], axis=-1), orders, control_variates)
    np.testing.assert_allclose(
        two[..., 1], 2 * subtract_regression(steps, orders, control_variates), atol=1e-12
    )


def test_control_variates_have_mean_zero_whatever_the_columns():
    frame = pd.DataFrame(BACKGROUND, columns=list("abcd")).assign(
        e=np.where(BACKGROUND[:, 0] > 0, "high", None), f=1.0
    )
    frame.loc[3, "b"], frame.loc[4, "c"] = np.nan, np.inf
    model = lambda rows: rows["a"].to_numpy() + (rows["e"] == "high")
    weights = np.arange(30.0)
    control_variates = (
        Marginal().fit(model, as_table(frame, weights, groups={"ab": ["a", "b"]})).control_variates
    )
    assert control_variates.shape == (30, 5, 2)
    assert np.isfinite(control_variates).all()
    np.testing.assert_allclose(
        np.einsum("b,bip->ip", weights / weights.sum(), control_variates), 0, atol=1e-12
    )


def test_independent_walks_are_pooled():
    game = Marginal().fit(wide_model, wide_rows(300)).at(wide_rows(1, seed=1))
    one = walks(game, rng=0)
    other = walks(game, rng=1)
    np.testing.assert_allclose((one + other).mean, (one.mean + other.mean) / 2, atol=1e-12)
    with pytest.raises(ValueError, match="same random draws"):
        one + walks(game, rng=0)


def test_large_tables_of_mixed_rows_are_cut_into_batches():
    games = [
        Marginal(batch_bytes=size).fit(wide_model, wide_rows(50)).at(wide_rows(1, seed=1))
        for size in (2_000, 2**26)
    ]
    np.testing.assert_array_equal(walks(games[0], rng=0).mean, walks(games[1], rng=0).mean)


def test_a_game_without_parts_is_walked_by_permutation():
    np.testing.assert_array_equal(
        walks(random_game(6), rng=0).mean, permutation(random_game(6), rng=0).mean
    )


def test_one_player_is_exact():
    game = Marginal().fit(lambda rows: rows[:, 0] ** 2, BACKGROUND[:, :1]).at([2.0])
    assert walks(game).mean == pytest.approx(4 - (BACKGROUND[:, 0] ** 2).mean())


def test_auto_enumerates_a_marginal_game_of_few_calls_and_walks_through_others():
    assert auto(bound(), rng=0).stopped.startswith("exact")
    many = Marginal().fit(product_model, normal_rows(10_000)).at(ROW)
    assert auto(many, rng=0).stopped.startswith("walks")  # 2^4 · 10,000 calls
    wide = Marginal().fit(wide_model, wide_rows(20)).at(wide_rows(1, seed=1))
    assert auto(wide, rng=0).stopped.startswith("walks")


def test_a_budget_of_calls_decides_between_enumeration_and_walks():
    assert auto(bound(), evaluations=480, rng=0).exact
    assert auto(bound(), evaluations=479, rng=0).evaluations <= 479


def test_a_single_background_row_is_no_mean():
    assert Marginal().fit(wide_model, wide_rows(1)).at(wide_rows(1, seed=1)).parts is None


def test_an_explanation_tells_its_walks_and_errors():
    explainer = ws.Explainer(wide_model, wide_rows(300), game="marginal", progress=False)
    explanation = explainer(wide_rows(2, seed=2))
    assert explanation.stopped[0].startswith("walks: 112 orders")
    assert (explanation.n_evaluations == 112 * 13 + 1).all()
    assert np.isfinite(explanation.standard_errors).all()
    assert (explanation.values[:, 4:] == 0).all()


def test_corrections_prefer_neither_end_of_a_walk():
    """A place counted from one end: what is told of steps would depend on which end is called the
    first."""
    rng = np.random.default_rng(0)
    d = 5
    orders = np.concatenate([latin_square(d, rng) for _ in range(4)])
    control_variates = rng.normal(size=(4 * d, d, 2))
    steps = rng.normal(size=(4 * d, d))
    turned = subtract_regression(steps[:, ::-1], orders[:, ::-1], control_variates)[:, ::-1]
    np.testing.assert_allclose(
        turned, subtract_regression(steps, orders, control_variates), atol=1e-12
    )


def test_squares_are_dealt_to_ten_chains():
    assert len(walks(bound(), rng=0).chains.mean) == 10


def test_a_mean_of_games_is_enumerated_where_the_budget_of_calls_just_covers_it():
    game = bound()
    assert auto(game, evaluations=2**4 * 30, rng=0).exact
    assert not auto(game, evaluations=2**4 * 30 - 1, rng=0).exact
