"""The result: its fields and shapes, what they mean, weighing it anew, and when two are equal."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import weightedshap as ws
from tests.explanation.examples import (
    BACKGROUND,
    D,
    M,
    N,
    X,
    assert_equal_up_to_rounding,
    assert_same_explanation,
    explain,
    explain_by_sampling,
)
from tests.inputs.lightgbm_example import FRAME, MODEL, explain_rows
from tests.oracles import (
    CountingGame,
    additive,
    product_model,
    random_game,
    three_outputs,
)
from weightedshap._checks import UnknownNameError
from weightedshap.estimators import permutation
from weightedshap.games import FunctionGame
from weightedshap.parallel import row_generator
from weightedshap.weights import paper, shapley, sizes


@pytest.mark.parametrize(
    ("model", "outputs", "k"), [(product_model, None, ()), (three_outputs, None, (3,))]
)
def test_the_axis_of_outputs_is_last_and_there_only_if_needed(model, outputs, k):
    explanation = explain(model, outputs=outputs)
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
    together = explain(three_outputs)
    for o in range(3):
        alone = explain(three_outputs, outputs=o)
        for name in (
            "values",
            "shapley",
            "weights",
            "orders",
            "scores",
            "curves",
            "weight_labels",
            "predictions",
        ):
            assert_equal_up_to_rounding(getattr(together, name)[..., o], getattr(alone, name))


def test_every_field_of_a_row_belongs_to_its_contributions():
    explanation = explain()
    delta = explanation.contributions
    np.testing.assert_allclose(explanation.shapley, delta.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(
        explanation.values, np.einsum("nj,nji->ni", explanation.weights, delta), atol=1e-12
    )
    np.testing.assert_array_equal(explanation.orders, ws.curves.order_of(explanation.values))
    for row in range(N):
        label = explanation.weight_labels[row]
        index = explanation.family.labels.index(label)
        np.testing.assert_array_equal(explanation.weights[row], explanation.family.vectors[index])
        assert -explanation.curves[row, 1:].sum() == pytest.approx(explanation.scores[row, index])


def test_curves_are_recovery_errors_along_the_chosen_order():
    explanation = explain()
    game = ws.games.Marginal().fit(product_model, BACKGROUND)
    for row in range(N):
        expected = ws.curves.recovery_error(
            game.at(X[row]), explanation.orders[[row]], explanation.predictions[row]
        )
        np.testing.assert_allclose(explanation.curves[row], expected[0], atol=1e-12)


def test_reference_curves_are_those_of_single_weights():
    explanation = explain()
    for name, label in (("shapley", "shapley"), ("first", "first"), ("last", "last")):
        alone = explain(family=label)
        np.testing.assert_array_equal(explanation.reference_curves[name], alone.curves)


def test_base_values_predictions_and_gaps_of_the_marginal_game():
    explanation = explain(family="shapley")
    np.testing.assert_allclose(explanation.predictions, product_model(X))
    np.testing.assert_allclose(explanation.base_values, product_model(BACKGROUND).mean())
    np.testing.assert_allclose(explanation.efficiency_gap, 0, atol=1e-12)
    for gap in explanation.endpoint_gaps.values():
        np.testing.assert_allclose(gap, 0, atol=1e-12)


def test_the_gap_of_a_weighted_attribution_is_shown_and_not_hidden():
    explanation = explain(family="first")
    expected = explanation.predictions - explanation.base_values - explanation.values.sum(axis=1)
    np.testing.assert_allclose(explanation.efficiency_gap, expected)
    assert np.abs(expected).max() > 0.1


def test_exact_rows_say_so_and_have_no_errors():
    explanation = explain()
    assert explanation.standard_errors is None
    assert set(explanation.stopped) == {"exact: all 16 coalitions evaluated"}
    assert explanation.n_evaluations.tolist() == [16] * N


@pytest.mark.parametrize("chains_drawn", [10, 3, 20])
def test_sampled_rows_have_the_errors_of_their_estimate(chains_drawn):
    budget = 18 + 40 * chains_drawn
    explanation = explain_by_sampling(budget)
    table = permutation(random_game(8), evaluations=budget, rng=row_generator(0, 0))
    np.testing.assert_array_equal(explanation.contributions[0], table.mean)
    expected = table.standard_error_of(explanation.weights[0])
    np.testing.assert_allclose(explanation.standard_errors[0], expected, rtol=1e-10)
    uniform = explanation.reweight("shapley")
    np.testing.assert_allclose(
        uniform.standard_errors[0], table.standard_error_of(uniform.weights[0]), rtol=1e-10
    )
    assert explanation.n_evaluations.tolist() == [budget]
    assert explanation.stopped == (table.stopped,)


def test_errors_are_at_most_a_little_too_careful_when_chains_are_drawn_unequally():
    explanation = explain_by_sampling(18 + 40 * 15, family="shapley")
    table = permutation(random_game(8), evaluations=18 + 40 * 15, rng=row_generator(0, 0))
    ratio = explanation.standard_errors[0] / table.standard_error_of(explanation.weights[0])
    assert ratio.min() > 0.8
    assert ratio.max() < 1.25


def test_errors_of_one_draw_are_unknown_and_not_zero():
    assert np.isnan(explain_by_sampling(18 + 40, family="shapley").standard_errors).all()


def test_errors_of_several_outputs_are_those_of_each():
    game = random_game(8, outputs=(2,))
    together = ws.explain(game, estimator="permutation", evaluations=600)
    for o in range(2):
        alone = ws.explain(type(game)(game.values[:, o]), estimator="permutation", evaluations=600)
        np.testing.assert_allclose(
            together.standard_errors[..., o], alone.standard_errors, rtol=1e-10
        )


def test_exact_and_sampled_rows_can_be_mixed():
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
def test_reweighting_is_the_same_as_explaining_again(family, select):
    again = explain().reweight(family, select=select)
    fresh = explain(family=family, select=select)
    assert_same_explanation(again, fresh)


def test_reweighting_several_outputs_is_the_same_as_explaining_again():
    assert_same_explanation(
        explain(three_outputs).reweight("sizes"), explain(three_outputs, family="sizes")
    )


def test_reweighting_sampled_rows_is_the_same_as_explaining_again():
    assert_same_explanation(
        explain_by_sampling().reweight("wide", "exclusion"),
        explain_by_sampling(family="wide", utility="exclusion"),
    )


def test_reweighting_leaves_the_first_explanation_as_it_was():
    explanation = explain()
    before = explanation.values.copy()
    explanation.reweight("first")
    np.testing.assert_array_equal(explanation.values, before)
    assert len(explanation.family) == M


def test_reweighting_without_a_family_keeps_it():
    assert explain(family="sizes").reweight(utility="exclusion").family.labels == sizes(D).labels


def test_reweighting_needs_the_contributions():
    explanation = explain(keep_contributions=False)
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
    with pytest.raises(UnknownNameError, match="Did you mean"):
        explain().reweight(**{"family": "paper", **bad})


def test_importance_is_the_mean_size_of_the_values_largest_first():
    explanation = explain()
    importance = explanation.importance()
    mean = np.abs(explanation.values).mean(axis=0)
    assert importance.to_dict() == {f"x{i}": mean[i] for i in range(D)}
    assert importance.is_monotonic_decreasing


def test_importance_of_several_outputs_has_a_column_for_each():
    explanation = explain(three_outputs)
    importance = explanation.importance()
    assert list(importance.columns) == list(explanation.output_names)
    assert importance.mean(axis=1).is_monotonic_decreasing
    assert importance.loc["x2", "output 1"] == np.abs(explanation.values[:, 2, 1]).mean()


@pytest.mark.parametrize("model", [product_model, three_outputs])
def test_a_frame_has_one_row_for_each_value(model):
    explanation = explain(model)
    frame = explanation.to_frame()
    assert len(frame) == explanation.values.size
    np.testing.assert_array_equal(frame["value"], explanation.values.ravel())
    top = frame[frame["rank"] == 1].sort_values(
        ["row", "output"] if explanation.has_outputs else "row"
    )
    first = explanation.orders[:, 0].ravel()
    assert top["feature"].tolist() == [f"x{i}" for i in first]
    assert top["weight"].tolist() == explanation.weight_labels.ravel().tolist()
    assert ("output" in frame) is explanation.has_outputs


def test_a_frame_of_sampled_rows_shows_their_errors():
    explanation = explain_by_sampling()
    np.testing.assert_array_equal(
        explanation.to_frame()["standard_error"], explanation.standard_errors.ravel()
    )


def test_the_print_of_an_explanation_summarises_it():
    lines = repr(explain(three_outputs)).splitlines()
    assert lines[0] == "Explanation of 3 rows × 4 features × 3 outputs"
    assert "marginal" in lines[1]
    assert "exact: all 16 coalitions evaluated" in lines[1]


def test_contributions_that_are_too_large_are_left_out_with_a_sentence(monkeypatch):
    monkeypatch.setattr("weightedshap.method.KEEP_BYTES", 100)
    explanation = explain()
    assert explanation.contributions is None
    assert any("keep_contributions=True" in note for note in explanation.notes)
    assert explain(keep_contributions=True).contributions is not None


def test_leaving_contributions_out_changes_nothing_else():
    without = explain(keep_contributions=False)
    kept = explain()
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


def test_instability_is_zero_where_nothing_was_sampled():
    np.testing.assert_array_equal(ws.explain(random_game(5)).instability(), [0.0])


def test_instability_rises_with_k_and_falls_with_the_budget():
    game = random_game(8)
    few, many = (ws.explain(game, estimator="permutation", evaluations=n) for n in (200, 40_000))
    assert few.instability(1)[0] <= few.instability(3)[0] <= few.instability(8)[0]
    assert many.instability(2)[0] <= few.instability(2)[0]
    assert 0 <= many.instability(2)[0] <= few.instability(8)[0] <= 1


def test_instability_has_the_axis_of_outputs():
    game = random_game(6, outputs=(2,))
    assert ws.explain(game, estimator="permutation", evaluations=200).instability(3).shape == (1, 2)


def test_instability_is_how_often_the_order_is_wrong():
    claimed = []
    wrong = []
    for seed in range(150):
        game = random_game(8, seed)
        found = ws.explain(
            game, family="shapley", estimator="permutation", evaluations=800, random_state=seed
        )
        truth = ws.explain(game, family="shapley").orders[0, :2]
        claimed.append(found.instability(2)[0])
        wrong.append((found.orders[0, :2] != truth).any())
    claimed = np.array(claimed)
    wrong = np.array(wrong)
    assert abs(claimed.mean() - wrong.mean()) < 0.12
    sure = claimed < 0.2
    assert wrong[sure].mean() < 0.3 < wrong[~sure].mean()


def test_instability_refuses_a_k_below_one():
    with pytest.raises(ValueError, match="`k` must be an integer of at least 1"):
        ws.explain(random_game(4)).instability(0)


def test_equal_means_to_the_bit():
    explanation = explain()
    assert explanation.equals(explain())
    assert not explanation.equals("text")
    for name in ("values", "predictions", "curves"):
        changed = getattr(explanation, name).copy()
        changed.flat[0] = np.nextafter(changed.flat[0], np.inf)
        assert not explanation.equals(replace(explanation, **{name: changed}))
    zero = replace(explanation, values=np.zeros((N, D)))
    assert zero.equals(replace(explanation, values=np.zeros((N, D))))
    assert not zero.equals(replace(explanation, values=-np.zeros((N, D))))
    assert not explanation.equals(explain(family="sizes"))
    assert not explanation.equals(explanation[:2])
    assert not explanation.equals(replace(explanation, data=None))
    assert not explanation.equals(replace(explanation, _notes=("new",)))
    unknown = replace(explanation, endpoint_gaps={"empty": np.full(N, np.nan), "full": np.zeros(N)})
    assert unknown.equals(replace(unknown))


def test_families_and_explanations_can_be_compared_without_ambiguity():
    assert paper(4) != paper(4)
    assert paper(4).equals(paper(4))
    assert not paper(4).equals(paper(5))
    assert not paper(4).equals("paper")
    assert explain() != explain()
    assert len({explain(), explain()}) == 2


@pytest.mark.parametrize("model", [product_model, three_outputs])
def test_a_wide_frame_has_one_column_for_each_feature(model):
    explanation = explain(model)
    frame = explanation.to_frame("wide")
    assert list(frame.columns) == list(explanation.feature_names)
    assert list(frame.index.names) == (["row", "output"] if explanation.has_outputs else ["row"])
    if explanation.has_outputs:
        assert frame.loc[(2, "output 1"), "x3"] == explanation.values[2, 3, 1]
    else:
        assert frame.loc[2, "x3"] == explanation.values[2, 3]
    with pytest.raises(UnknownNameError, match="Did you mean 'wide'"):
        explanation.to_frame("wied")


@pytest.mark.parametrize("model", [product_model, three_outputs])
def test_notebooks_show_names_as_text(model):
    background = pd.DataFrame(BACKGROUND, columns=["<script>alert(1)</script>", "a & b", "c", "d"])
    explanation = ws.Explainer(model, background, game="marginal")(background[:2])
    page = explanation._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "a &amp; b" in page
    assert "Explanation of 2 rows × 4 features" in page
    assert page.count("<polyline") == 2


def test_notebooks_show_the_first_ten_features():
    page = ws.explain(additive(np.arange(1.0, 13.0)).game)._repr_html_()
    assert "and 2 more" in page
    assert page.count("<tr>") == 10


def test_a_file_needs_a_name():
    explanation = ws.explain(FunctionGame(lambda coalitions: coalitions.sum(axis=1), 4))
    with pytest.raises(ValueError, match="A file needs a name"):
        explanation.save("")


@pytest.mark.parametrize(
    ("name", "instead"), [("abs", "importance"), ("mean", "importance"), ("cohorts", "mask")]
)
def test_names_of_shap_say_what_to_use(name, instead):
    explanation = explain_rows(MODEL, FRAME)
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'.*{instead}"):
        getattr(explanation, name)
    assert not hasattr(explanation, "unheard_of")
    assert explanation[2].values.shape == (1, 4)
