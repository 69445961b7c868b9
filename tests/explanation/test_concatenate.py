"""Explanations of blocks of rows, joined."""

import numpy as np
import pandas as pd
import pytest

import weightedshap as ws
from tests.explanation.examples import BACKGROUND, N, X, explain, explain_by_sampling
from tests.oracles import (
    product_model,
    random_game,
    three_outputs,
)


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


def test_exact_parts_joined_with_sampled_ones_have_no_errors():
    sampled_part = explain_by_sampling()
    exact_part = ws.explain(random_game(8, seed=1))
    joined = ws.Explanation.concatenate([sampled_part, exact_part])
    np.testing.assert_array_equal(joined.standard_errors[0], sampled_part.standard_errors[0])
    assert (joined.standard_errors[1] == 0).all()
    assert joined.replicates is None
    with pytest.raises(ValueError, match="several explainers"):
        joined.reweight("wide")


def test_what_the_parts_do_not_share_is_noted():
    joined = ws.Explanation.concatenate([explain(keep_contributions=False), explain()])
    assert joined.contributions is None
    assert any("some of the joined parts lack it" in note for note in joined.notes)
    one = explain()
    other = ws.Explainer(product_model, BACKGROUND[:5], game="marginal")(X)
    joined = ws.Explanation.concatenate([one, other])
    assert joined.game_info == {"game": "marginal"} | {
        key: value for key, value in one.game_info.items() if other.game_info.get(key) == value
    }
    assert any("background_rows" in note for note in joined.notes)


def test_parts_that_shared_different_weights_say_so():
    parts = [explain(rows=X[[row]], select="shared") for row in range(N)]
    assert len({part.weight_labels[0] for part in parts}) > 1
    assert any("its own shared weight" in note for note in ws.Explanation.concatenate(parts).notes)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: explain(family="sizes"), "differ in family"),
        (lambda: explain(utility="exclusion"), "differ in utility"),
        (lambda: explain(select="shared"), "'per_row' and 'shared'"),
        (lambda: explain(three_outputs), "output_names"),
        (lambda: explain()[:, :2], "feature_names"),
        (lambda: "text", "at least one Explanation"),
    ],
)
def test_parts_that_differ_cannot_be_joined(other, message):
    with pytest.raises(ValueError, match=message):
        ws.Explanation.concatenate([explain(), other()])


def test_nothing_cannot_be_joined():
    with pytest.raises(ValueError, match="at least one Explanation"):
        ws.Explanation.concatenate([])
