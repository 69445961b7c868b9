"""Experiments whose truth is known: against formulas that share no code with them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.oracles import delta_by_definition
from weightedshap.curves import order_of
from weightedshap.games import FunctionGame
from weightedshap_paper import closed_form, linear_gaussian
from weightedshap_paper.experiment import Case, Settings
from weightedshap_paper.linear_gaussian import LinearGaussian
from weightedshap_paper.runner import generator


def conditional_mean(x, beta, rho, known):
    """E[xᵀβ | x_S] by solving with the covariance matrix."""
    sigma = (1 - rho) * np.eye(len(x)) + rho
    if not known.any():
        return 0.0
    gain = np.linalg.solve(sigma[np.ix_(known, known)], sigma[np.ix_(known, ~known)])
    return x[known] @ beta[known] + x[known] @ gain @ beta[~known]


@pytest.mark.parametrize("rho", [0.0, 0.2, 0.6])
def test_recovery_curves_follow_the_conditional_mean(rho):
    problem = LinearGaussian.draw(rho, 2, np.random.default_rng(0), n=50, d=7)
    orders = np.random.default_rng(1).permuted(np.tile(np.arange(7), (2, 3, 1)), axis=2)
    curves = problem.recovery(orders)
    for r, x in enumerate(problem.X):
        for w, order in enumerate(orders[r]):
            known = [np.isin(np.arange(7), order[:k]) for k in range(8)]
            expected = [
                abs(x @ problem.beta - conditional_mean(x, problem.beta, rho, mask))
                for mask in known
            ]
            np.testing.assert_allclose(curves[r, w], expected, atol=1e-12)


def test_contributions_of_many_rows_are_those_of_enumeration():
    problem = LinearGaussian.draw(0.6, 3, np.random.default_rng(0), n=50, d=5)
    for x, delta in zip(problem.X, problem.contributions()):
        game = FunctionGame(
            lambda S, x=x: np.array([conditional_mean(x, problem.beta, 0.6, mask) for mask in S]), 5
        )
        np.testing.assert_allclose(delta, delta_by_definition(game), atol=1e-12)


def test_the_model_finds_the_papers_coefficients():
    problem = LinearGaussian.draw(0.2, 1, np.random.default_rng(0))
    truth = np.concatenate([np.linspace(1, 0.81, 20), np.zeros(80)])
    np.testing.assert_allclose(problem.beta, truth, atol=0.1)
    assert np.corrcoef(problem.X_train, rowvar=False)[0, 1] == pytest.approx(0.2, abs=0.03)


def exact_share(beta, rho):
    """The share of the square where Shapley is wrong, from the four lines that bound the cones.

    All comparisons change only across lines c·x = 0, and cones over the edge of the square have
    areas as their lengths on it.
    """
    b1, b2 = beta
    first = np.array([[b1 + rho * b2, 0], [b1, -rho * b1]]).mean(axis=0)  # φ_1 as a linear form
    second = np.array([[0, b2 + rho * b1], [-rho * b2, b2]]).mean(axis=0)
    left1 = np.array([-rho * b2, b2])
    left2 = np.array([b1, -rho * b1])  # ℰ(1), ℰ(2) without the modulus
    lines = [first - second, first + second, left1 - left2, left1 + left2]
    corners = [np.arctan2(c[0], -c[1]) % np.pi for c in lines] + [
        np.pi / 4,
        3 * np.pi / 4,
        0,
        np.pi,
    ]
    angles = np.sort(np.array(corners))
    share = 0.0
    for low, high in pairwise(angles):
        middle = np.array([np.cos((low + high) / 2), np.sin((low + high) / 2)])
        truth = abs(middle @ left1) < abs(middle @ left2)
        if truth != (abs(middle @ first) > abs(middle @ second)):
            ends = [np.array([np.cos(a), np.sin(a)]) for a in (low, high)]
            ends = [end / np.abs(end).max() for end in ends]
            share += np.abs(ends[1] - ends[0]).sum() / 4
    return share


@pytest.mark.parametrize("beta", [(1.5, 1.0), (0.5, 1.0)])
@pytest.mark.parametrize("rho", [0.2, 0.6, 0.9])
def test_the_wrong_share_is_that_between_the_lines(beta, rho):
    wrong = closed_form.wrong_choice(np.array(beta), rho, closed_form.square(400))[1]
    assert wrong.mean() == pytest.approx(exact_share(beta, rho), abs=3e-3)


def test_two_features_run_reports_growing_shares():
    cases = closed_form.TWO.cases(Settings())
    runs = {case: [closed_form.run_two(case, Settings(quick=True), None)] for case in cases}
    assert [claim.verdict for claim in closed_form.claims_two(runs)] == ["holds", "holds"]


def test_the_order_of_the_methods_is_the_papers():
    """Areas of two independent halves of the rows agree within Monte Carlo error, and so does the
    order."""
    strong = Case(rho=0.6)
    weak = Case(rho=0.2)
    one, other = (
        closed_form.run_hundred(strong, Settings(rows=60), generator(0, strong, run))
        for run in range(2)
    )
    for name in ("first", "Shapley", "last"):
        spread = np.hypot(one["area_margin"][name], other["area_margin"][name])
        assert abs(one["area"][name] - other["area"][name]) < 2 * spread
    claims = closed_form.claims_hundred({strong: [one, other], weak: [one]})
    assert claims[0].verdict == "holds"
    assert claims[1].verdict == "does not hold"  # the same numbers stand for both
    assert len(closed_form.claims_hundred({strong: [one]})) == 1  # the other case was not run yet


def test_first_features_of_the_last_contribution_are_found_by_hand():
    """Δ_d(x_i) = β_i (x_i − E[x_i | others]), so that its order needs no theorem."""
    problem = LinearGaussian.draw(0.6, 3, np.random.default_rng(0), n=200, d=30)
    rest = problem.X.sum(axis=1, keepdims=True) - problem.X
    by_hand = problem.beta * (problem.X - 0.6 / (1 - 0.6 + 0.6 * 29) * rest)
    np.testing.assert_array_equal(order_of(problem.contributions()[:, -1]), order_of(by_hand))


def test_the_relative_difference_is_the_papers():
    a = np.array([1.0, -1, 0, 2])
    b = np.array([2.0, 1, 0, 0])
    np.testing.assert_allclose(closed_form.relative_difference(a, b), [0.5, 2, 0, 1])


def test_with_the_true_game_the_example_has_no_error(monkeypatch):
    """The Gaussian game knows the truth up to the estimated covariance."""
    monkeypatch.setattr(linear_gaussian.LinearGaussian, "draw", small_draw(LinearGaussian.draw))
    case = Case(game="gaussian", rho=0.6)
    numbers = closed_form.run_example(case, Settings(rows=4), np.random.default_rng(0))
    areas = numbers["area"]
    assert areas["learned"]["last"][0] == pytest.approx(areas["exact"]["last"][0], rel=0.1)
    assert areas["learned"]["WeightedSHAP"][0] <= areas["learned"]["Shapley"][0]
    assert numbers["distance"]["Shapley"][0] < 0.05
    difference = closed_form.run_relative(case, Settings(rows=4), np.random.default_rng(0))[
        "difference"
    ]
    assert len(difference) == 9
    assert np.max(difference) < 0.3


def small_draw(draw):
    """d = 9 in the place of 100."""
    return classmethod(
        lambda cls, rho, rows, rng, n=10_000, d=9: draw(rho, rows, rng, n=20_000, d=9)
    )
