"""The result: its fields and shapes, what they mean, and weighing it anew."""

import numpy as np
import pytest

import weightedshap as ws
from tests.oracles import CountingGame, additive, normal_rows, product_model, random_game, three_outputs
from weightedshap.checks import UnknownName
from weightedshap.estimators import permutation
from weightedshap.explanation import field_names
from weightedshap.games import FunctionGame
from weightedshap.parallel import row_generator
from weightedshap.weights import paper, shapley, sizes

N, D, M = 3, 4, 13
BACKGROUND, X = normal_rows(9), normal_rows(N, seed=1)


def explained(model=product_model, rows=X, **choices):
    return ws.Explainer(model, BACKGROUND, **{"game": "marginal", **choices})(rows)


def sampled(evaluations=600, d=8, **choices):
    return ws.explain(random_game(d), estimator="permutation", evaluations=evaluations, **choices)


@pytest.mark.parametrize(("model", "outputs", "k"), [(product_model, None, ()), (three_outputs, None, (3,))])
def test_the_axis_of_outputs_is_last_and_there_only_if_needed(model, outputs, k):
    explanation = explained(model, outputs=outputs)
    shapes = {
        "values": (N, D, *k),
        "shapley": (N, D, *k),
        "weights": (N, D, *k),
        "orders": (N, D, *k),
        "contributions": (N, D, D, *k),
        "scores": (N, M, *k),
        "curves": (N, D + 1, *k),
        "base_values": (N, *k),
        "predictions": (N, *k),
        "weight_labels": (N, *k),
        "efficiency_gap": (N, *k),
        "n_evaluations": (N,),
    }
    assert {name: getattr(explanation, name).shape for name in shapes} == shapes
    assert {curve.shape for curve in explanation.reference_curves.values()} == {(N, D + 1, *k)}
    assert {gap.shape for gap in explanation.endpoint_gaps.values()} == {(N, *k)}
    assert len(explanation) == len(explanation.stopped) == N
    assert explanation.has_outputs is bool(k)


def test_each_output_is_explained_as_if_alone():
    together = explained(three_outputs)
    for o in range(3):
        alone = explained(three_outputs, outputs=o)
        for name in ("values", "shapley", "weights", "orders", "scores", "curves", "weight_labels", "predictions"):
            np.testing.assert_array_equal(getattr(together, name)[..., o], getattr(alone, name))


def test_every_field_of_a_row_belongs_to_its_contributions():
    explanation = explained()
    delta = explanation.contributions
    np.testing.assert_allclose(explanation.shapley, delta.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(explanation.values, np.einsum("nj,nji->ni", explanation.weights, delta), atol=1e-12)
    np.testing.assert_array_equal(explanation.orders, ws.curves.order_of(explanation.values))
    for row in range(N):
        label = explanation.weight_labels[row]
        index = explanation.family.labels.index(label)
        np.testing.assert_array_equal(explanation.weights[row], explanation.family.vectors[index])
        assert -explanation.curves[row, 1:].sum() == pytest.approx(explanation.scores[row, index])


def test_curves_are_recovery_errors_along_the_chosen_order():
    explanation = explained()
    game = ws.games.Marginal().fit(product_model, BACKGROUND)
    for row in range(N):
        expected = ws.curves.recovery_error(game.at(X[row]), explanation.orders[[row]], explanation.predictions[row])
        np.testing.assert_allclose(explanation.curves[row], expected[0], atol=1e-12)


def test_reference_curves_are_those_of_single_weights():
    explanation = explained()
    for name, label in (("shapley", "shapley"), ("first", "first"), ("last", "last")):
        alone = explained(family=label)
        np.testing.assert_array_equal(explanation.reference_curves[name], alone.curves)


def test_base_values_predictions_and_gaps_of_the_marginal_game():
    explanation = explained(family="shapley")
    np.testing.assert_allclose(explanation.predictions, product_model(X))
    np.testing.assert_allclose(explanation.base_values, product_model(BACKGROUND).mean())
    np.testing.assert_allclose(explanation.efficiency_gap, 0, atol=1e-12)
    for gap in explanation.endpoint_gaps.values():
        np.testing.assert_allclose(gap, 0, atol=1e-12)


def test_the_gap_of_a_weighted_attribution_is_shown_and_not_hidden():
    explanation = explained(family="first")
    expected = explanation.predictions - explanation.base_values - explanation.values.sum(axis=1)
    np.testing.assert_allclose(explanation.efficiency_gap, expected)
    assert np.abs(expected).max() > 0.1


def test_exact_rows_say_so_and_have_no_errors():
    explanation = explained()
    assert explanation.standard_errors is None
    assert set(explanation.stopped) == {"exact: all 16 coalitions evaluated"}
    assert explanation.n_evaluations.tolist() == [16] * N


@pytest.mark.parametrize("chains_drawn", [10, 3, 20])
def test_sampled_rows_have_the_errors_of_their_estimate(chains_drawn):
    budget = 18 + 40 * chains_drawn
    explanation = sampled(budget)
    table = permutation(random_game(8), evaluations=budget, rng=row_generator(0, 0))
    np.testing.assert_array_equal(explanation.contributions[0], table.mean)
    expected = table.standard_error_of(explanation.weights[0])
    np.testing.assert_allclose(explanation.standard_errors[0], expected, rtol=1e-10)
    uniform = explanation.reweight("shapley")
    np.testing.assert_allclose(uniform.standard_errors[0], table.standard_error_of(uniform.weights[0]), rtol=1e-10)
    assert explanation.n_evaluations.tolist() == [budget]
    assert explanation.stopped == (table.stopped,)


def test_errors_are_at_most_a_little_too_careful_when_chains_are_drawn_unequally():
    explanation = sampled(18 + 40 * 15, family="shapley")
    table = permutation(random_game(8), evaluations=18 + 40 * 15, rng=row_generator(0, 0))
    ratio = explanation.standard_errors[0] / table.standard_error_of(explanation.weights[0])
    assert ratio.min() > 0.8
    assert ratio.max() < 1.25


def test_errors_of_one_draw_are_unknown_and_not_zero():
    assert np.isnan(sampled(18 + 40, family="shapley").standard_errors).all()


def test_errors_of_several_outputs_are_those_of_each():
    game = random_game(8, outputs=(2,))
    together = ws.explain(game, estimator="permutation", evaluations=600)
    for o in range(2):
        alone = ws.explain(type(game)(game.values[:, o]), estimator="permutation", evaluations=600)
        np.testing.assert_allclose(together.standard_errors[..., o], alone.standard_errors, rtol=1e-10)


def test_rows_that_know_their_contributions_stand_beside_sampled_ones():
    class Knowing(CountingGame):
        def contributions(self):
            return ws.estimators.exact(self.game)

    games = [Knowing(random_game(6)), random_game(6, seed=1)]
    rows = np.repeat([[0.0], [1.0]], 6, axis=1)
    choices = {"game": lambda row: games[int(row[0])], "family": "shapley", "evaluations": 63}
    explanation = ws.Explainer(None, rows, **choices)(rows)
    assert (explanation.standard_errors[0] == 0).all()
    assert (explanation.standard_errors[1] > 0).all()


@pytest.mark.parametrize("family", ["wide", "sizes", sizes(D), paper])
@pytest.mark.parametrize("select", ["per_row", "shared"])
def test_reweighting_is_the_same_as_explaining_anew(family, select):
    again, fresh = explained().reweight(family, select=select), explained(family=family, select=select)
    assert_same(again, fresh)


def assert_same(one, other):
    for name in field_names():
        if name in ("family", "data"):
            continue
        np.testing.assert_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.family.labels == other.family.labels


def test_reweighting_several_outputs_is_the_same_as_explaining_anew():
    assert_same(explained(three_outputs).reweight("sizes"), explained(three_outputs, family="sizes"))


def test_reweighting_sampled_rows_is_the_same_as_explaining_anew():
    assert_same(sampled().reweight("wide", "exclusion"), sampled(family="wide", utility="exclusion"))


def test_reweighting_leaves_the_first_explanation_as_it_was():
    explanation = explained()
    before = explanation.values.copy()
    explanation.reweight("first")
    np.testing.assert_array_equal(explanation.values, before)
    assert len(explanation.family) == M


def test_reweighting_without_a_family_keeps_it():
    assert explained(family="sizes").reweight(utility="exclusion").family.labels == sizes(D).labels


def test_reweighting_needs_the_contributions():
    explanation = explained(keep_contributions=False)
    assert explanation.contributions is None
    with pytest.raises(ValueError, match="keep_contributions=True"):
        explanation.reweight("wide")


def test_reweighting_a_sampled_game_samples_nothing():
    game = CountingGame(random_game(8))
    explanation = ws.explain(game, estimator="permutation", evaluations=600)
    before = len(game.asked)
    explanation.reweight("first")
    assert len(game.asked) - before <= 4 * 9  # the curves of first, last, Shapley


@pytest.mark.parametrize("bad", [{"family": "papre"}, {"utility": "apu"}, {"select": "per row"}])
def test_reweighting_refuses_unknown_names(bad):
    with pytest.raises(UnknownName, match="Did you mean"):
        explained().reweight(**{"family": "paper", **bad})


def test_importance_is_the_mean_size_of_the_values_largest_first():
    explanation = explained()
    importance = explanation.importance()
    mean = np.abs(explanation.values).mean(axis=0)
    assert importance.to_dict() == {f"x{i}": mean[i] for i in range(D)}
    assert importance.is_monotonic_decreasing


def test_importance_of_several_outputs_has_a_column_for_each():
    explanation = explained(three_outputs)
    importance = explanation.importance()
    assert list(importance.columns) == list(explanation.output_names)
    assert importance.mean(axis=1).is_monotonic_decreasing
    assert importance.loc["x2", "output 1"] == np.abs(explanation.values[:, 2, 1]).mean()


@pytest.mark.parametrize("model", [product_model, three_outputs])
def test_a_frame_has_one_row_for_each_value(model):
    explanation = explained(model)
    frame = explanation.to_frame()
    assert len(frame) == explanation.values.size
    np.testing.assert_array_equal(frame["value"], explanation.values.ravel())
    top = frame[frame["rank"] == 1].sort_values(["row", "output"] if explanation.has_outputs else "row")
    first = explanation.orders[:, 0].ravel()
    assert top["feature"].tolist() == [f"x{i}" for i in first]
    assert top["weight"].tolist() == explanation.weight_labels.ravel().tolist()
    assert ("output" in frame) is explanation.has_outputs


def test_a_frame_of_sampled_rows_shows_their_errors():
    explanation = sampled()
    np.testing.assert_array_equal(explanation.to_frame()["standard_error"], explanation.standard_errors.ravel())


def test_the_explanation_introduces_itself():
    lines = repr(explained(three_outputs)).splitlines()
    assert lines[0] == "Explanation of 3 rows × 4 features × 3 outputs"
    assert "marginal" in lines[1]
    assert "exact: all 16 coalitions evaluated" in lines[1]


def test_contributions_that_are_too_large_are_left_out_with_a_sentence(monkeypatch):
    monkeypatch.setattr("weightedshap.rows.KEEP_BYTES", 100)
    explanation = explained()
    assert explanation.contributions is None
    assert any("keep_contributions=True" in note for note in explanation.notes)
    assert explained(keep_contributions=True).contributions is not None


def test_leaving_contributions_out_changes_nothing_else():
    without, kept = explained(keep_contributions=False), explained()
    np.testing.assert_array_equal(without.values, kept.values)
    assert without.notes == ()


@pytest.mark.parametrize("outputs", [(), (2,)])
def test_a_constant_game_has_zero_contributions_and_the_uniform_weight(outputs):
    game = FunctionGame(lambda coalitions: np.full((len(coalitions), *outputs), 3.5), 5)
    explanation = ws.explain(game)
    assert (explanation.contributions == 0).all()
    assert (explanation.values == 0).all()
    assert set(explanation.weight_labels.ravel()) == {"Beta(1,1)"}
    assert (explanation.curves == 0).all()


@pytest.mark.parametrize("estimator", ["exact", "permutation"])
@pytest.mark.parametrize("worth", [[2.0], [2.0, -1.0], [2.0, -1.0, 0.5]])
def test_one_two_and_three_players_are_explained(estimator, worth):
    explanation = ws.explain(additive(worth).game, estimator=estimator)
    np.testing.assert_allclose(explanation.values, [worth], atol=1e-12)
    np.testing.assert_allclose(explanation.efficiency_gap, 0, atol=1e-12)
    assert explanation.family.index(shapley(len(worth)).vectors[0]) is not None
