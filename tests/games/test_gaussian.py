"""Gaussian features: Theorem 1 against enumeration, and the sampled games against closed forms and
integrals."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, PoissonRegressor

from tests.oracles import linear_model, normal_rows
from weightedshap.coalitions import all_coalitions
from weightedshap.estimators.exact import enumerate_game
from weightedshap.games import Copula, FunctionGame, Gaussian, block_exchangeable_contributions
from weightedshap.inputs import as_table


def blocks_of(sizes):
    ends = np.cumsum([0, *sizes])
    return [list(range(start, stop)) for start, stop in pairwise(ends)]


def covariance_of(blocks, rho):
    d = sum(map(len, blocks))
    covariance = np.zeros((d, d))
    for block, r in zip(blocks, np.broadcast_to(rho, len(blocks)), strict=True):
        covariance[np.ix_(block, block)] = r
    np.fill_diagonal(covariance, 1.0)
    return covariance


def conditional_mean(x, known, covariance):
    """E[X | X_S = x_S] for X ~ N(0, Σ), by its definition."""
    mean = x.copy()
    if known.any():
        gain = np.linalg.solve(covariance[np.ix_(known, known)], x[known])
        mean[~known] = covariance[np.ix_(~known, known)] @ gain
    else:
        mean[:] = 0.0
    return mean


def linear_game(x, beta, covariance):
    """v(S) = βᵀ E[X | X_S = x_S] for X ~ N(0, Σ): Σ_SS is padded with ones where features are
    hidden."""

    def values(S):
        padded = np.where(S[:, :, None] & S[:, None, :], covariance, np.eye(len(x)))
        return (np.linalg.solve(padded, (S * x)[..., None])[..., 0] * S) @ covariance @ beta

    return FunctionGame(values, len(x))


def partitions(d, largest=None):
    """All ways to write d as a sum, larger parts first."""
    if d == 0:
        yield []
    for first in range(min(d, largest or d), 0, -1):
        yield from ([first, *rest] for rest in partitions(d - first, first))


def draw_coefficients_and_row(d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=d), rng.normal(size=d)


@pytest.mark.parametrize("rho", [0.0, 0.2, 0.6, 0.95])
@pytest.mark.parametrize("d", range(1, 13))
def test_theorem_1_equals_enumeration_for_all_partitions(d, rho):
    x, beta = draw_coefficients_and_row(d, seed=d)
    for sizes in partitions(d):
        blocks = blocks_of(sizes)
        expected = enumerate_game(linear_game(x, beta, covariance_of(blocks, rho))).mean
        delta = block_exchangeable_contributions(x, beta, blocks, rho)
        assert delta.exact
        np.testing.assert_allclose(delta.mean, expected, rtol=0, atol=1e-10, err_msg=str(sizes))


def test_all_partitions_are_tried():
    assert [len(list(partitions(d))) for d in range(1, 13)] == [
        1,
        2,
        3,
        5,
        7,
        11,
        15,
        22,
        30,
        42,
        56,
        77,
    ]


def test_the_padded_game_is_the_definition():
    x, beta = draw_coefficients_and_row(4, seed=5)
    covariance = covariance_of(blocks_of([3, 1]), 0.6)
    expected = [conditional_mean(x, known, covariance) @ beta for known in all_coalitions(4)]
    np.testing.assert_allclose(
        linear_game(x, beta, covariance)(all_coalitions(4)), expected, atol=1e-12
    )


@pytest.mark.parametrize("sizes", [[1], [2], [1, 1], [3, 2, 1], [6, 4], [2, 9, 1]], ids=str)
def test_theorem_1_equals_the_gaussian_game_on_rows_of_that_covariance(sizes):
    d = sum(sizes)
    x, beta = draw_coefficients_and_row(d, seed=d)
    rows = normal_rows(200, d)
    rows -= rows.mean(axis=0)
    white = (
        rows
        @ np.linalg.inv(np.linalg.cholesky(np.cov(rows, rowvar=False, bias=True).reshape(d, d))).T
    )
    rows = (
        white @ np.linalg.cholesky(covariance_of(blocks_of(sizes), 0.6)).T
    )  # their sample covariance is Σ itself
    game = Gaussian(draws=2).fit(linear_model(beta), rows, 0).at(x)
    expected = block_exchangeable_contributions(x, beta, blocks_of(sizes), 0.6).mean
    np.testing.assert_allclose(enumerate_game(game).mean, expected, rtol=0, atol=1e-10)


def test_blocks_may_be_scattered_and_have_their_own_correlations():
    blocks = [[4, 0, 2], [5], [1, 3]]
    rho = [0.9, 0.3, -0.7]
    x, beta = draw_coefficients_and_row(6, seed=3)
    expected = enumerate_game(linear_game(x, beta, covariance_of(blocks, rho))).mean
    np.testing.assert_allclose(
        block_exchangeable_contributions(x, beta, blocks, rho).mean, expected, atol=1e-10
    )


@pytest.mark.parametrize("sizes", [[1000], [990, 7, 2, 1], [500, 500]], ids=str)
def test_a_thousand_features_share_out_the_whole_gain(sizes):
    x, beta = draw_coefficients_and_row(1000, seed=1)
    delta = block_exchangeable_contributions(x, beta, blocks_of(sizes), 0.6).mean
    assert delta.shape == (1000, 1000)
    assert delta.mean(axis=0).sum() == pytest.approx(x @ beta, abs=1e-9)


def test_ends_are_right_at_a_thousand_features():
    x, beta = draw_coefficients_and_row(1000, seed=2)
    delta = block_exchangeable_contributions(x, beta, [range(1000)], 0.2).mean
    np.testing.assert_allclose(delta[0], x * (0.8 * beta + 0.2 * beta.sum()), atol=1e-10)
    others = (x.sum() - x) * 0.2 / (1 - 0.2 + 0.2 * 999)
    np.testing.assert_allclose(delta[-1], (x - others) * beta, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"blocks": [[0, 1]]}, "each of the features 0..2 once"),
        ({"blocks": [[0, 1], [1, 2]]}, "each of the features 0..2 once"),
        ({"correlations": 1.0}, "below 1"),
        ({"correlations": -0.6}, "above -0.5"),
        ({"beta": [1.0, 2.0]}, "shape"),
        ({"x": [1.0, np.nan, 0.0]}, "finite"),
    ],
)
def test_bad_input_is_named(change, sentence):
    arguments = {
        "x": [1.0, 2.0, 3.0],
        "beta": [1.0, 0.0, 1.0],
        "blocks": [[0, 1, 2]],
        "correlations": 0.5,
    } | change
    with pytest.raises(ValueError, match=sentence):
        block_exchangeable_contributions(**arguments)


def correlated_rows(n=500, seed=0):
    """(n, 3) rows with means, scales and correlations."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) @ np.array(
        [[2.0, 0.5, 1.0], [0.0, 1.0, -1.0], [0.0, 0.0, 3.0]]
    ) + [1.0, -2.0, 10.0]


ROWS = correlated_rows()
X = np.array([2.0, -1.0, 7.0])
ALL = all_coalitions(3)


def conditional_moments(known):
    """Mean (3,) and covariance (3, 3) of the features given the known ones of X, under N(mean, cov)
    of ROWS."""
    mean = ROWS.mean(axis=0)
    cov = np.cov(ROWS, rowvar=False, bias=True)
    mean = mean + conditional_mean(X - mean, known, cov)
    rest = np.zeros((3, 3))
    if not known.all():
        gain = np.zeros((0, (~known).sum()))
        if known.any():
            gain = np.linalg.solve(cov[np.ix_(known, known)], cov[np.ix_(known, ~known)])
        rest[np.ix_(~known, ~known)] = (
            cov[np.ix_(~known, ~known)] - cov[np.ix_(~known, known)] @ gain
        )
    return mean, rest


def closed_form(beta):
    return [conditional_moments(known)[0] @ beta for known in ALL]


def test_a_linear_model_has_the_closed_form_whatever_the_draws():
    beta = np.array([1.0, -2.0, 0.5])
    expected = closed_form(beta)
    for draws in (2, 64):
        game = Gaussian(draws=draws).fit(linear_model(beta), ROWS, 0).at(X)
        np.testing.assert_allclose(game(ALL), expected, rtol=1e-10)


def test_a_linear_regression_is_recognised_and_needs_one_evaluation():
    model = LinearRegression().fit(ROWS, ROWS @ [1.0, -2.0, 0.5] + 3.0)
    fitted = Gaussian().fit(model, ROWS, 0)
    assert fitted.info["draws"] == 1
    np.testing.assert_allclose(
        fitted.at(X)(ALL), np.array(closed_form(model.coef_)) + model.intercept_, rtol=1e-10
    )


def test_a_model_with_coefficients_that_is_not_linear_is_not_taken_for_one():
    model = PoissonRegressor().fit(ROWS, np.exp(0.1 * ROWS[:, 0]))
    assert Gaussian(draws=8).fit(model, ROWS, 0).info["draws"] == 8


def test_a_quadratic_model_matches_the_integral():
    A = np.array([[1.0, 0.3, 0.0], [0.3, -0.5, 0.2], [0.0, 0.2, 0.1]])
    expected = []
    for known in ALL:  # E xᵀAx = mᵀAm + tr(A C)
        mean, rest = conditional_moments(known)
        expected.append(mean @ A @ mean + np.trace(A @ rest))
    game = (
        Gaussian(draws=40_000)
        .fit(lambda rows: np.einsum("ni,ij,nj->n", rows, A, rows), ROWS, 0)
        .at(X)
    )
    np.testing.assert_allclose(game(ALL), expected, rtol=0.02, atol=0.1)


def test_a_kinked_model_matches_numerical_integration():
    known = np.array([True, False, False])
    mean, rest = conditional_moments(known)
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    expected = np.abs(mean[1] + np.sqrt(rest[1, 1]) * nodes) @ weights / np.sqrt(2 * np.pi)
    game = Gaussian(draws=40_000).fit(lambda rows: np.abs(rows[:, 1]), ROWS, 0).at(X)
    assert game(known[None])[0] == pytest.approx(expected, rel=0.02)


def test_more_draws_give_a_smaller_error():
    A = np.diag([1.0, 1.0, 0.1])
    model = lambda rows: np.einsum("ni,ij,nj->n", rows, A, rows)
    truth = Gaussian(draws=100_000).fit(model, ROWS, 1).at(X)(ALL)
    errors = [
        np.abs(Gaussian(draws=m).fit(model, ROWS, 0).at(X)(ALL) - truth).mean() for m in (16, 4096)
    ]
    assert errors[1] < errors[0] / 3


def test_a_singular_covariance_is_shrunk_and_the_info_says_by_how_much():
    rows = np.column_stack([ROWS, ROWS[:, 0], np.ones(len(ROWS))])  # a copy and a constant
    fitted = Gaussian().fit(linear_model([1.0, 0.0, 0.0, 1.0, 1.0]), rows, 0)
    assert 0 < fitted.info["shrinkage"] < 0.5
    value = fitted.at([2.0, -1.0, 7.0, 2.0, 1.0])(np.array([[True, False, False, False, False]]))[0]
    assert value == pytest.approx(5.0, abs=0.1)


def test_fewer_rows_than_columns_work():
    fitted = Gaussian(draws=16).fit(linear_model(np.ones(8)), normal_rows(5, 8), 0)
    assert fitted.info["shrinkage"] > 0
    assert np.isfinite(fitted.at(np.zeros(8))(all_coalitions(8))).all()


def test_row_weights_count():
    doubled = np.concatenate([ROWS, ROWS[:100]])
    weights = np.where(np.arange(len(ROWS)) < 100, 2.0, 1.0)
    beta = [1.0, -2.0, 0.5]
    one = Gaussian(draws=2).fit(linear_model(beta), doubled, 0).at(X)(ALL)
    other = Gaussian(draws=2).fit(linear_model(beta), as_table(ROWS, weights), 0).at(X)(ALL)
    np.testing.assert_allclose(one, other, rtol=1e-10)


def test_the_copula_keeps_each_features_own_distribution():
    rows = np.exp(normal_rows(800, 2) @ np.array([[1.0, 0.8], [0.0, 0.6]]))
    fitted = Copula(draws=4000).fit(lambda rows: rows[:, 1], rows, 0)
    nothing = fitted.at(rows[0])(np.zeros((1, 2), dtype=bool))[0]
    assert nothing == pytest.approx(rows[:, 1].mean(), rel=0.1)
    assert fitted.info["game"] == "copula"


def test_the_copula_matches_the_truth_for_lognormal_features():
    # log X is bivariate normal with correlation 0.8: E[X₂ | X₁ = x] = exp(0.8 log x + 0.36 / 2)
    rows = np.exp(normal_rows(20_000, 2) @ np.array([[1.0, 0.8], [0.0, 0.6]]))
    game = Copula(draws=4000).fit(lambda rows: rows[:, 1], rows, 0).at([2.0, 1.0])
    assert game(np.array([[True, False]]))[0] == pytest.approx(
        np.exp(0.8 * np.log(2) + 0.18), rel=0.05
    )


def test_groups_and_frames_work():
    frame = pd.DataFrame(ROWS, columns=["a", "b", "c"])
    table = as_table(frame, groups={"ab": ["a", "b"]})
    game = (
        Gaussian(draws=8)
        .fit(lambda f: f["a"].to_numpy() + f["c"].to_numpy(), table, 0)
        .at(frame.iloc[:1])
    )
    assert game.d == 2
    assert game(np.ones((1, 2), dtype=bool))[0] == pytest.approx(ROWS[0, 0] + ROWS[0, 2])


@pytest.mark.parametrize("recipe", [Gaussian(), Copula()], ids=["gaussian", "copula"])
def test_words_and_holes_are_refused_by_name(recipe):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "kind": ["x", "y", "x"]})
    for column in (frame["kind"], frame["kind"].astype("category"), frame["kind"] == "x"):
        with pytest.raises(TypeError, match="'kind' holds categories"):
            recipe.fit(lambda f: f["a"].to_numpy(), frame.assign(kind=column), 0)
    with pytest.raises(ValueError, match="'x1' has a missing"):
        recipe.fit(lambda rows: rows[:, 0], np.array([[1.0, np.nan], [2.0, 1.0]]), 0)


INTEGERS = np.round(3 * ROWS[:, 2])


@pytest.mark.parametrize("recipe", [Gaussian(draws=8), Copula(draws=8)], ids=["gaussian", "copula"])
@pytest.mark.parametrize("whole", ["int64", "Int64", "UInt16", "Float64", "float32"])
def test_frames_of_every_dtype_of_numbers_give_the_values_of_the_array(recipe, whole):
    pl = pytest.importorskip("polars")
    plain = np.column_stack([ROWS[:, :2], INTEGERS - INTEGERS.min()])
    frame = pd.DataFrame(plain, columns=list("abc")).astype({"c": whole})
    model = lambda rows: np.sin(np.asarray(rows, dtype=float)).sum(axis=1) * 3.0
    expected = recipe.fit(model, plain, 0).at(plain[0])(ALL)
    for table in (frame, pl.from_pandas(frame)):
        game = recipe.fit(model, table, 0).at(table[:1])
        np.testing.assert_allclose(game(ALL), expected, atol=1e-5 if whole == "float32" else 1e-12)


def test_drawn_rows_keep_the_dtypes_that_can_hold_them():
    frame = (
        pd.DataFrame(ROWS, columns=list("abc"))
        .astype({"a": "float32", "b": "Float64"})
        .assign(n=INTEGERS.astype(int))
    )
    seen = []
    model = lambda rows: seen.append([str(t) for t in rows.dtypes]) or rows["a"].to_numpy(float)
    game = Gaussian(draws=8).fit(model, frame, 0).at(frame[:1])
    for known, dtype in ((False, "float64"), (True, "int64")):
        game(np.full((1, 4), known))
        assert seen[-1] == ["float32", "Float64", "float64", dtype]


def test_polars_frames_work():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(ROWS, schema=["a", "b", "c"])
    game = (
        Gaussian(draws=8)
        .fit(lambda f: f["a"].to_numpy() ** 2 + f["c"].to_numpy(), frame, 0)
        .at(frame[:1])
    )
    assert game(np.ones((1, 3), dtype=bool))[0] == pytest.approx(ROWS[0, 0] ** 2 + ROWS[0, 2])
    assert np.isfinite(game(ALL)).all()
