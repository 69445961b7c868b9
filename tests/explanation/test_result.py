"""The result: its fields and shapes, what they mean, weighing it anew, slicing it and joining
parts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import weightedshap as ws
from tests.oracles import (
    CountingGame,
    additive,
    normal_rows,
    product_model,
    random_game,
    three_outputs,
)
from weightedshap._checks import UnknownName
from weightedshap.estimators import permutation
from weightedshap.explanation import field_names
from weightedshap.explanation import slicing as axes
from weightedshap.games import FunctionGame
from weightedshap.parallel import row_generator
from weightedshap.weights import paper, shapley, sizes

N = 3
D = 4
M = 13
BACKGROUND = normal_rows(9)
X = normal_rows(N, seed=1)


def explained(model=product_model, rows=X, **choices):
    return ws.Explainer(model, BACKGROUND, **{"game": "marginal", **choices})(rows)


def sampled(evaluations=600, d=8, **choices):
    return ws.explain(random_game(d), estimator="permutation", evaluations=evaluations, **choices)


@pytest.mark.parametrize(
    ("model", "outputs", "k"), [(product_model, None, ()), (three_outputs, None, (3,))]
)
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
            assert_alike(getattr(together, name)[..., o], getattr(alone, name))


def assert_alike(one, other):
    """Equal, and numbers up to what a matrix product may round differently for a block of
    outputs."""
    if one.dtype.kind == "f":
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)
    else:
        np.testing.assert_array_equal(one, other)


def test_every_field_of_a_row_belongs_to_its_contributions():
    explanation = explained()
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
    explanation = explained()
    game = ws.games.Marginal().fit(product_model, BACKGROUND)
    for row in range(N):
        expected = ws.curves.recovery_error(
            game.at(X[row]), explanation.orders[[row]], explanation.predictions[row]
        )
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
    np.testing.assert_allclose(
        uniform.standard_errors[0], table.standard_error_of(uniform.weights[0]), rtol=1e-10
    )
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
        np.testing.assert_allclose(
            together.standard_errors[..., o], alone.standard_errors, rtol=1e-10
        )


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
    again = explained().reweight(family, select=select)
    fresh = explained(family=family, select=select)
    assert_same(again, fresh)


def assert_same(one, other):
    for name in field_names():
        if name in ("family", "data"):
            continue
        np.testing.assert_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.family.labels == other.family.labels


def test_reweighting_several_outputs_is_the_same_as_explaining_anew():
    assert_same(
        explained(three_outputs).reweight("sizes"), explained(three_outputs, family="sizes")
    )


def test_reweighting_sampled_rows_is_the_same_as_explaining_anew():
    assert_same(
        sampled().reweight("wide", "exclusion"), sampled(family="wide", utility="exclusion")
    )


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
    top = frame[frame["rank"] == 1].sort_values(
        ["row", "output"] if explanation.has_outputs else "row"
    )
    first = explanation.orders[:, 0].ravel()
    assert top["feature"].tolist() == [f"x{i}" for i in first]
    assert top["weight"].tolist() == explanation.weight_labels.ravel().tolist()
    assert ("output" in frame) is explanation.has_outputs


def test_a_frame_of_sampled_rows_shows_their_errors():
    explanation = sampled()
    np.testing.assert_array_equal(
        explanation.to_frame()["standard_error"], explanation.standard_errors.ravel()
    )


def test_the_explanation_introduces_itself():
    lines = repr(explained(three_outputs)).splitlines()
    assert lines[0] == "Explanation of 3 rows × 4 features × 3 outputs"
    assert "marginal" in lines[1]
    assert "exact: all 16 coalitions evaluated" in lines[1]


def test_contributions_that_are_too_large_are_left_out_with_a_sentence(monkeypatch):
    monkeypatch.setattr("weightedshap.weighing.KEEP_BYTES", 100)
    explanation = explained()
    assert explanation.contributions is None
    assert any("keep_contributions=True" in note for note in explanation.notes)
    assert explained(keep_contributions=True).contributions is not None


def test_leaving_contributions_out_changes_nothing_else():
    without = explained(keep_contributions=False)
    kept = explained()
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


def test_instability_tells_how_often_the_order_is_wrong():
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


SLICES = {
    "a row": 1,
    "the last row": -1,
    "a range of rows": slice(0, 2),
    "a mask": np.array([True, False, True]),
    "rows in another order, one twice": [2, 0, 2],
    "a row by numpy's integer": np.int64(2),
}


def rows_of(key):
    return np.atleast_1d(np.arange(N)[key])


@pytest.mark.parametrize("key", SLICES.values(), ids=SLICES)
@pytest.mark.parametrize("model", [product_model, three_outputs])
def test_rows_are_cut_out_of_every_array_and_keep_their_axis(model, key):
    whole = explained(model)
    part = whole[key]
    rows = rows_of(key)
    assert len(part) == len(part.stopped) == len(rows)
    for name in axes.AXES:
        value = getattr(whole, name)
        expected = {k: v[rows] for k, v in value.items()} if isinstance(value, dict) else value
        expected = expected[rows] if isinstance(expected, np.ndarray) else expected
        np.testing.assert_equal(getattr(part, name), expected, err_msg=name)
    np.testing.assert_array_equal(part.data, X[rows])
    assert part.feature_names == whole.feature_names


def test_the_table_of_axes_names_every_array():
    explanation = ws.explain(random_game(8, outputs=(2,)), estimator="permutation", evaluations=600)
    shapes = {"row": 1, "feature": 8, "size": 8, "step": 9, "weight": M, "chain": 10, "output": 2}
    for name in field_names():
        value = getattr(explanation, name)
        arrays = value.values() if name in ("reference_curves", "endpoint_gaps") else [value]
        if all(isinstance(array, np.ndarray) for array in arrays):
            assert {array.shape for array in arrays} == {
                tuple(shapes[axis] for axis in axes.AXES[name] if axis in shapes)
            }, name


def test_iterating_gives_explanations_of_one_row():
    whole = explained()
    assert [part.values.shape for part in whole] == [(1, D)] * N
    assert ws.Explanation.concatenate(whole).equals(whole)


def test_a_row_is_explained_as_if_alone():
    assert_same(explained()[1], explained(rows=X[1:2]))


def test_an_output_is_explained_as_if_alone():
    whole = explained(three_outputs)
    for key in (1, "output 1", np.int64(-2)):
        assert_same(whole[..., key], explained(three_outputs, outputs=1))
    for key in ([2, 0], ["output 2", "output 0"]):
        assert_same(whole[:, :, key], explained(three_outputs, outputs=[2, 0]))
    assert whole[..., [1]].values.shape == (N, D, 1)
    assert whole[0, :, 1].values.shape == (1, D)


@pytest.mark.parametrize("model", [product_model, three_outputs])
@pytest.mark.parametrize("key", [[2, 0], ["x2", "x0"], ("x2", 0), np.array([2, 0])])
def test_features_are_selected_by_name_or_position(model, key):
    whole = explained(model)
    part = whole[:, key]
    np.testing.assert_array_equal(part.values, whole.values[:, [2, 0]])
    np.testing.assert_array_equal(part.contributions, whole.contributions[:, :, [2, 0]])
    np.testing.assert_array_equal(part.data, X[:, [2, 0]])
    assert part.feature_names == ("x2", "x0")
    for name in ("weights", "scores", "curves", "predictions", "base_values"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name))
    np.testing.assert_array_equal(
        part.orders, np.moveaxis(ws.curves.order_of(np.moveaxis(part.values, 1, -1)), -1, 1)
    )


def test_one_feature_keeps_its_axis():
    part = explained()[:, "x1"]
    assert part.values.shape == (N, 1)
    assert (part.orders == 0).all()
    assert explained()[..., "x1"].equals(part)
    assert explained()[1:, "x1"].values.shape == (N - 1, 1)


def test_columns_of_frames_are_selected_with_their_features():
    frame = pd.DataFrame(X, columns=list("abcd"), index=[7, 8, 9])
    explanation = ws.Explainer(
        product_model, pd.DataFrame(BACKGROUND, columns=list("abcd")), game="marginal"
    )(frame)
    pd.testing.assert_frame_equal(explanation[1:, ["d", "a"]].data, frame.loc[[8, 9], ["d", "a"]])


def test_groups_keep_all_their_columns():
    explanation = explained(groups={"pair": [0, 1]})
    np.testing.assert_array_equal(explanation[:2, "pair"].data, X[:2])


@pytest.mark.parametrize("select", ["per_row", "shared"])
def test_rows_and_outputs_that_were_cut_out_can_be_weighed_anew(select):
    part = explained(three_outputs)[[2, 0]][..., [2, 1]][..., 1].reweight("sizes", select=select)
    fresh = explained(three_outputs, rows=X[[2, 0]], outputs=1, family="sizes", select=select)
    assert_same(part, fresh)


def test_sampled_outputs_that_were_cut_out_can_be_weighed_anew():
    whole = ws.explain(random_game(8, outputs=(2,)), estimator="permutation", evaluations=600)
    part = whole[..., 1].reweight("wide")
    cut = whole.reweight("wide")[..., 1]
    for name in (
        "values",
        "shapley",
        "weights",
        "orders",
        "scores",
        "curves",
        "weight_labels",
        "standard_errors",
    ):
        assert_alike(getattr(part, name), getattr(cut, name))


def test_blocks_of_rows_that_were_cut_out_can_be_weighed_anew():
    whole = explained(three_outputs, game="tree_surrogate")
    part = whole[[2, 0], :, [2, 1]].reweight("sizes")
    assert part.equals(whole.reweight("sizes")[[2, 0], :, [2, 1]])


def test_a_cut_can_be_weighed_by_a_utility_that_looks_at_another_game():
    part = explained(three_outputs)[1:, :, 2].reweight("paper", "masked_inclusion")
    fresh = explained(three_outputs, rows=X[1:], outputs=2, utility="masked_inclusion")
    assert_same(part, fresh)


def test_selected_features_cannot_be_weighed_anew():
    with pytest.raises(ValueError, match="features were selected"):
        explained()[:, ["x3", "x2", "x1", "x0"]].reweight("wide")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("x1", r"explanation\[:, 'x1'\]"),
        (["x1"], "Rows are selected by position"),
        (3, "There is no row 3: there are 3"),
        ([0, -4], "There is no row -4"),
        ((0, 4), "There is no feature 4"),
        ((0, "x9"), "Did you mean"),
        ((0, ["x0", "x0"]), "selected once"),
        ((0, []), "at least one feature"),
        ([], "at least one row"),
        (np.zeros(N, dtype=bool), "at least one row"),
        (np.ones(N + 1, dtype=bool), "mask over 3 rows"),
        (1.5, "by position, slice, mask or list"),
        (None, "by position, slice, mask or list"),
        ((0, 0, 0), "got 3 parts"),
        ((..., ...), "sliced as"),
    ],
)
def test_slices_that_make_no_sense_are_refused(key, message):
    with pytest.raises((IndexError, KeyError), match=message):
        explained()[key]


def test_parts_joined_are_the_whole():
    explainer = ws.Explainer(three_outputs, BACKGROUND, game="marginal")
    whole = explainer(X)
    parts = [explainer(X[:1]), explainer(X[1:])]
    joined = ws.Explanation.concatenate(parts)
    assert joined.equals(whole)
    assert joined.reweight("sizes", select="shared").equals(
        whole.reweight("sizes", select="shared")
    )
    assert joined[..., 0].equals(ws.Explanation.concatenate([part[..., 0] for part in parts]))


def test_parts_with_frames_are_joined():
    frame = pd.DataFrame({"a": X[:, 0], "town": pd.Categorical(["x", "y", "x"])})
    explainer = ws.Explainer(
        lambda rows: rows["a"].to_numpy() * (rows["town"] == "x"), frame, game="marginal"
    )
    assert ws.Explanation.concatenate([explainer(frame[:2]), explainer(frame[2:])]).equals(
        explainer(frame)
    )


def test_exact_parts_have_no_errors_beside_sampled_ones():
    sampled_part = sampled()
    exact_part = ws.explain(random_game(8, seed=1))
    joined = ws.Explanation.concatenate([sampled_part, exact_part])
    np.testing.assert_array_equal(joined.standard_errors[0], sampled_part.standard_errors[0])
    assert (joined.standard_errors[1] == 0).all()
    assert joined.replicates is None
    with pytest.raises(ValueError, match="several explainers"):
        joined.reweight("wide")


def test_what_the_parts_do_not_share_is_said():
    joined = ws.Explanation.concatenate([explained(keep_contributions=False), explained()])
    assert joined.contributions is None
    assert any("some of the joined parts lack it" in note for note in joined.notes)
    one = explained()
    other = ws.Explainer(product_model, BACKGROUND[:5], game="marginal")(X)
    joined = ws.Explanation.concatenate([one, other])
    assert joined.game_info == {"game": "marginal"} | {
        key: value for key, value in one.game_info.items() if other.game_info.get(key) == value
    }
    assert any("background_rows" in note for note in joined.notes)


def test_parts_that_shared_different_weights_say_so():
    parts = [explained(rows=X[[row]], select="shared") for row in range(N)]
    assert len({part.weight_labels[0] for part in parts}) > 1
    assert any("its own shared weight" in note for note in ws.Explanation.concatenate(parts).notes)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: explained(family="sizes"), "differ in family"),
        (lambda: explained(utility="exclusion"), "differ in utility"),
        (lambda: explained(select="shared"), "'per_row' and 'shared'"),
        (lambda: explained(three_outputs), "output_names"),
        (lambda: explained()[:, :2], "feature_names"),
        (lambda: "text", "at least one Explanation"),
    ],
)
def test_parts_that_differ_cannot_be_joined(other, message):
    with pytest.raises(ValueError, match=message):
        ws.Explanation.concatenate([explained(), other()])


def test_nothing_cannot_be_joined():
    with pytest.raises(ValueError, match="at least one Explanation"):
        ws.Explanation.concatenate([])


def test_equal_means_to_the_bit():
    explanation = explained()
    assert explanation.equals(explained())
    assert not explanation.equals("text")
    for name in ("values", "predictions", "curves"):
        changed = getattr(explanation, name).copy()
        changed.flat[0] = np.nextafter(changed.flat[0], np.inf)
        assert not explanation.equals(replace(explanation, **{name: changed}))
    zero = replace(explanation, values=np.zeros((N, D)))
    assert zero.equals(replace(explanation, values=np.zeros((N, D))))
    assert not zero.equals(replace(explanation, values=-np.zeros((N, D))))
    assert not explanation.equals(explained(family="sizes"))
    assert not explanation.equals(explanation[:2])
    assert not explanation.equals(replace(explanation, data=None))
    assert not explanation.equals(replace(explanation, _notes=("new",)))
    unknown = replace(explanation, endpoint_gaps={"empty": np.full(N, np.nan), "full": np.zeros(N)})
    assert unknown.equals(replace(unknown))


def test_families_and_explanations_can_be_asked_for_equality_without_ambiguity():
    assert paper(4) != paper(4)
    assert paper(4).equals(paper(4))
    assert not paper(4).equals(paper(5))
    assert not paper(4).equals("paper")
    assert explained() != explained()
    assert len({explained(), explained()}) == 2


@pytest.mark.parametrize("model", [product_model, three_outputs])
def test_a_wide_frame_has_one_column_for_each_feature(model):
    explanation = explained(model)
    frame = explanation.to_frame("wide")
    assert list(frame.columns) == list(explanation.feature_names)
    assert list(frame.index.names) == (["row", "output"] if explanation.has_outputs else ["row"])
    if explanation.has_outputs:
        assert frame.loc[(2, "output 1"), "x3"] == explanation.values[2, 3, 1]
    else:
        assert frame.loc[2, "x3"] == explanation.values[2, 3]
    with pytest.raises(UnknownName, match="Did you mean 'wide'"):
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
