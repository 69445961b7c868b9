"""LightGBM's text of trees: what LightGBM writes is read as it is, and what is damaged is named
before it is read."""

import json
import re

import lightgbm
import numpy as np
import pandas as pd
import pytest

from tests.oracles import normal_rows
from weightedshap.jobs.model_files import as_model_file
from weightedshap.trees.lightgbm_text import MISSING, check_own_text, check_text
from weightedshap.trees.nodes import DEEPEST

X = normal_rows(200)
Y = X[:, 0] * X[:, 1] + X[:, 2]
CLASSES = np.digitize(Y, [-0.5, 0.5])
MANY_HOLES = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
SMALL = {"verbose": -1, "num_leaves": 7, "num_threads": 1, "min_data_in_leaf": 5}


def booster(rows=MANY_HOLES, target=Y, trees=3, data=None, **more):
    parameters = {"objective": "regression", **SMALL, **more}
    return lightgbm.train(parameters, lightgbm.Dataset(rows, target, **(data or {})), trees)


def categories():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["e"] = pd.Categorical(rng.choice(["x", "y", "z [0, 1)", 'a "quote"'], len(X)))
    frame["f"] = pd.Categorical(rng.integers(0, 70, len(X)))
    return frame


def on_categories():
    frame = categories()
    target = frame["e"].cat.codes * 1.0 + frame["f"].cat.codes % 3
    return booster(frame, target, min_data_per_group=2, cat_smooth=1, max_cat_to_onehot=1), frame


def of_own_objective():
    def loss(predictions, data):
        return predictions - np.repeat(data.get_label()[:, None], 2, axis=1), np.ones_like(
            predictions
        )

    return booster(objective=loss, num_class=2), MANY_HOLES


REAL = {
    "regression": lambda: (booster(), MANY_HOLES),
    "no missing values": lambda: (booster(use_missing=False), MANY_HOLES),
    "zero as missing": lambda: (booster(zero_as_missing=True), np.where(X > 0, X, 0.0)),
    "two leaves": lambda: (booster(num_leaves=2), X),
    "categories": on_categories,
    "linear leaves": lambda: (
        booster(X, linear_tree=True, data={"params": {"linear_tree": True}}),
        X,
    ),
    "dart": lambda: (booster(boosting="dart", drop_rate=0.9, trees=8), X),
    "random forest": lambda: (booster(boosting="rf", bagging_freq=1, bagging_fraction=0.6), X),
    "binary": lambda: (booster(target=Y > 0, objective="binary", scale_pos_weight=2.0), X),
    "multiclass": lambda: (booster(target=CLASSES, objective="multiclass", num_class=3), X),
    "one against all": lambda: (booster(target=CLASSES, objective="multiclassova", num_class=3), X),
    "a class that is always there": lambda: (
        booster(target=CLASSES * 0, objective="multiclass", num_class=2),
        X,
    ),
    "ranking": lambda: (
        booster(target=CLASSES, objective="lambdarank", data={"group": [20] * 10}),
        X,
    ),
    "constant": lambda: (booster(target=np.ones(200)), X),
    "own objective": of_own_objective,
    "monotone": lambda: (booster(monotone_constraints=[1, -1, 0, 0]), X),
    "poisson": lambda: (booster(target=np.exp(Y), objective="poisson"), X),
    "quantile": lambda: (booster(objective="quantile", alpha=0.9), X),
    "names": lambda: (booster(data={"feature_name": ["größe", "a=b", "c|d", "e"]}), X),
    "large numbers": lambda: (booster(X * 1e200, Y * 1e-20), X * 1e200),
    "infinite numbers": lambda: (booster(np.where(X > 1, np.inf, X), Y * 1e37), X),
    "more parameters": lambda: (
        booster(metric=["l1", "l2"], interaction_constraints=[[0, 1], [2, 3]]),
        X,
    ),
    "a thousand trees": lambda: (booster(trees=1000, num_leaves=4), X),
}


@pytest.mark.parametrize("name", REAL)
def test_what_lightgbm_writes_is_loaded_as_it_is(tmp_path, name):
    model, rows = REAL[name]()
    model.save_model(tmp_path / "m.txt")
    facts = check_text(model.model_to_string())
    assert facts.features == model.num_feature()
    assert facts.outputs == model.num_model_per_iteration()
    assert facts.is_numeric == (name not in ("categories", "linear leaves"))
    np.testing.assert_array_equal(
        as_model_file(tmp_path / "m.txt").load().predict(rows), model.predict(rows)
    )


def test_real_models_have_sets_of_categories_linear_leaves_and_constant_trees():
    """So that the test above is one of them."""
    assert re.search(r"num_cat=[1-9]", on_categories()[0].model_to_string())
    assert re.search(r"leaf_features=\d", REAL["linear leaves"]()[0].model_to_string())
    assert "num_leaves=1\n" in REAL["constant"]()[0].model_to_string()


def test_a_text_with_windows_line_ends_or_without_sizes_is_loaded(tmp_path):
    model = booster()
    text = model.model_to_string()
    for changed in (text.replace("\n", "\r\n"), re.sub(r"tree_sizes=.*\n", "", text)):
        (tmp_path / "m.txt").write_bytes(changed.encode())
        np.testing.assert_array_equal(
            as_model_file(tmp_path / "m.txt").load().predict(X), model.predict(X)
        )


def test_missing_values_go_left_or_right_and_are_none_zero_or_nan():
    assert {0, 2, 4, 6, 8, 10} == MISSING


def chain(n, tree=None, head=None, tail=""):
    """The text of a tree whose right children go on; n leaves, and two columns."""
    inner = range(n - 1)
    fields = {
        "num_leaves": [n],
        "num_cat": [0],
        "split_feature": [0] * (n - 1),
        "threshold": [0.5] * (n - 1),
        "decision_type": [2] * (n - 1),
        "left_child": [~k for k in inner],
        "right_child": [*range(1, n - 1), ~(n - 1)],
        "leaf_value": [1.0] * n,
    } | (tree or {})
    lines = "\n".join(
        f"{name}={' '.join(map(str, numbers))}"
        for name, numbers in fields.items()
        if numbers is not None
    )
    block = f"Tree=0\n{lines}\n\n\n"
    first = {
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": 1,
        "objective": "regression",
        "feature_names": "a b",
        "feature_infos": "[-1:1] none",
        "tree_sizes": len(block),
    } | (head or {})
    before = "\n".join(f"{name}={value}" for name, value in first.items() if value is not None)
    return f"tree\n{before}\n\n{block}end of trees\n{tail}"


def test_the_chain_is_a_model_of_lightgbm():
    text = chain(4, {"threshold": [-1, 0, 1], "leaf_value": [1, 2, 3, 4]})
    check_text(text)
    np.testing.assert_array_equal(
        lightgbm.Booster(model_str=text).predict([[-2, 0], [-0.5, 0], [0.5, 0], [2, 0]]),
        [1, 2, 3, 4],
    )


def test_the_deepest_leaf_has_500_splits_above_it():
    check_text(chain(DEEPEST + 1))
    with pytest.raises(ValueError, match="deeper than 500"):
        check_text(chain(DEEPEST + 2))
    with pytest.raises(ValueError, match="deeper than 500"):
        check_text(chain(20_001))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"left_child": [1, -2, -3], "right_child": [-1, 2, -4]}, None),
        (
            {"left_child": [2, -1, -2], "right_child": [-4, -3, 1]},
            None,
        ),  # a child that stands before its parent
        (
            {"left_child": [-1, 1, -3], "right_child": [-2, 2, -4]},
            "two parents|circle",
        ),  # the second is its own child
        ({"left_child": [-1, -2, 1], "right_child": [2, -3, -4]}, None),
        (
            {"left_child": [-1, 2, 1], "right_child": [-2, -3, -4]},
            "no root leads to, or that run in a circle",
        ),
        ({"left_child": [0, -2, -3], "right_child": [1, 2, -4]}, "root below another"),
        ({"left_child": [-1, -1, -3], "right_child": [1, 2, -4]}, "two parents"),
        ({"left_child": [-1, -2, -3], "right_child": [1, 2, 3]}, "children that do not exist"),
        ({"left_child": [-1, -2, -9], "right_child": [1, 2, -4]}, "children that do not exist"),
        (
            {"left_child": [-1, -2, -(2**40)], "right_child": [1, 2, -4]},
            "children that do not exist",
        ),
        ({"left_child": [-1, -2, 10**17], "right_child": [1, 2, -4]}, "children that do not exist"),
        (
            {"left_child": [-1, -2, 10**30], "right_child": [1, 2, -4]},
            "must hold (whole )?numbers with",
        ),
        (
            {"left_child": [-1, -2, 1.5], "right_child": [1, 2, -4]},
            "must hold (whole )?numbers with",
        ),
        ({"left_child": [-1, -2], "right_child": [1, 2, -4]}, "holds 2 numbers where 3 are needed"),
        ({"left_child": None}, "`left_child` holds 0 numbers where 3 are needed"),
        (
            {"left_child": ["-1 ", -3], "right_child": [1, 2, -4]},
            "must hold (whole )?numbers with",
        ),  # as many spaces as there should be
        ({"left_child": ["-1", "", "-2-3"]}, "must hold (whole )?numbers with"),
        ({"decision_type": [2, 1, 2]}, "sets of categories that do not exist"),
        (
            {"decision_type": [2, 1, 2], "num_cat": [1], "threshold": [1, 1, 1]},
            "sets of categories that do not exist",
        ),
        (
            {"decision_type": [2, 1, 2], "num_cat": [1], "threshold": [1, 0, 1]},
            "`cat_boundaries` holds 0",
        ),
        ({"decision_type": [2, 12, 2]}, "unknown kind"),
        ({"decision_type": [2, -2, 2]}, "unknown kind"),
        ({"decision_type": [2, 258, 2]}, "unknown kind"),
        ({"split_feature": [0, 2, 0]}, "none of 2"),
        ({"split_feature": [0, -1, 0]}, "none of 2"),
        ({"split_feature": [0, 2147483647, 0]}, "none of 2"),
        ({"threshold": [0.5, "x", 1]}, "must hold (whole )?numbers with"),
        ({"threshold": [0.5, "nan", 1]}, "must hold (whole )?numbers with"),
        ({"threshold": [0.5, "-inf", 1]}, None),
        ({"threshold": [1.0000000180025095e-35, "1e+300", "-1e+300"]}, None),
        ({"leaf_value": [1, 2, "inf", 4]}, "must hold (whole )?numbers with"),
        ({"leaf_value": [1, 2, "1e999", 4]}, "must hold (whole )?numbers with"),
        ({"leaf_value": [1, 2, "9" * 400, 4]}, "must hold (whole )?numbers with"),
        ({"leaf_value": [1, 2, "1.2.3", 4]}, "must hold (whole )?numbers with"),
        ({"leaf_value": [1, 2, "1_000", 4]}, "must hold (whole )?numbers with"),
        ({"leaf_value": [1, 2, 3]}, "holds 3 numbers where 4 are needed"),
        ({"leaf_value": [1] * 5}, "holds 5 numbers where 4 are needed"),
        ({"leaf_count": [1, 2, -3, 4]}, "must hold numbers of rows"),
        ({"internal_count": [1, 2, 2**31]}, "must hold numbers of rows"),
        (
            {"internal_value": [1, "nan", "inf"]},
            "must hold (whole )?numbers with",
        ),  # LightGBM's own JSON would be none
        ({"leaf_weight": [1, 2, 3, "inf"]}, "must hold (whole )?numbers with"),
        ({"split_gain": [1, "nan", "inf"]}, None),
        ({"split_gain": [1, 2]}, "holds 2 numbers where 3"),
        ({"num_leaves": [0]}, "whole number from 1 on"),
        ({"num_leaves": [-4]}, "whole number from 1 on"),
        ({"num_leaves": [10**9]}, "holds 3 numbers where 999999999"),
        ({"num_leaves": [1]}, "holds 4 numbers where 1"),
        ({"num_leaves": None}, "whole number from 1 on"),
        ({"num_cat": None}, "`num_cat` must be a whole number"),
        ({"num_leaves": [1], "num_cat": None, "leaf_value": [1]}, "`num_cat` is missing"),
        ({"num_cat": [-1]}, "`num_cat` must be a whole number"),
        ({"num_cat": [1]}, "`cat_boundaries` holds 0 numbers where 2"),
        (
            {"num_cat": [1], "cat_boundaries": [0, 2], "cat_threshold": [1]},
            "holds 1 numbers where 2",
        ),
        (
            {"num_cat": [1], "cat_boundaries": [0, 10**9], "cat_threshold": [1]},
            "holds 1 numbers where 1000000000",
        ),
        (
            {"num_cat": [1], "cat_boundaries": [0, -1], "cat_threshold": [1]},
            "holds 1 numbers where -1",
        ),
        ({"num_cat": [2], "cat_boundaries": [0, 3, 1], "cat_threshold": [1]}, "follow each other"),
        ({"num_cat": [1], "cat_boundaries": [1, 1], "cat_threshold": [1]}, "follow each other"),
        ({"num_cat": [1], "cat_boundaries": [0, 1], "cat_threshold": [2**32]}, "follow each other"),
        ({"shrinkage": ["x"]}, "`shrinkage` must be a number; it is 'x'"),
        ({"is_linear": [1]}, "`num_features` holds 0 numbers where 4"),
        ({"is_linear": ["yes"]}, "`is_linear` must be 0, or 1"),
        ({f"line {k}": [k] for k in range(20)}, "up to 22 lines"),
        ({"leaf_value=1\nleaf_value": [1] * 4}, "each name once"),
        ({"what is this\nx": [1]}, "name=value"),
        ({"split_feature": ["0 0 0 ü"]}, "not ASCII"),
        ({"x": ["1\nTree=1"]}, "up to 22 lines|tree_sizes"),
        ({"x": ["1\n\nnum_leaves=5"]}, "each name once"),
    ],
)
def test_damage_in_a_tree_is_named(changed, sentence):
    text = chain(4, changed)
    if sentence is None:
        check_text(text)
        return
    with pytest.raises(ValueError, match=sentence):
        check_text(text)


LINEAR = {
    "is_linear": [1],
    "leaf_const": [1, 2],
    "num_features": [1, 0],
    "leaf_features": ["1 "],
    "leaf_coeff": ["0.5 "],
}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({}, None),
        ({"num_features": [1, -1]}, "`num_features` holds a negative"),
        ({"num_features": [10**9, 0]}, "`leaf_features` holds 1 numbers where 1000000000"),
        ({"leaf_features": [2]}, "none of 2"),
        ({"leaf_coeff": ["nan"]}, "must hold (whole )?numbers with"),
        ({"leaf_const": [1]}, "`leaf_const` holds 1 numbers where 2"),
    ],
)
def test_damage_in_linear_leaves_is_named(changed, sentence):
    text = chain(2, LINEAR | changed)
    if sentence is None:
        check_text(text)
        np.testing.assert_array_equal(
            lightgbm.Booster(model_str=text).predict([[0, 4], [1, 4]]), [3, 2]
        )
        return
    with pytest.raises(ValueError, match=sentence):
        check_text(text)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"tree_sizes": 10}, "tree_sizes"),
        ({"tree_sizes": "0 10"}, "tree_sizes"),
        ({"tree_sizes": 2**62}, "tree_sizes"),
        ({"tree_sizes": ""}, "tree_sizes"),
        (
            {"num_class": 0, "num_tree_per_iteration": 0},
            "`num_class` must be a whole number from 1 on",
        ),
        (
            {"num_tree_per_iteration": 0},
            "`num_tree_per_iteration` must be a whole number from 1 on",
        ),
        (
            {"num_class": 10**8, "num_tree_per_iteration": 10**8},
            "1 trees, which is no multiple of its 100000000 outputs",
        ),
        ({"num_class": 10**8}, "`num_tree_per_iteration` is 1, but `num_class` is 100000000"),
        ({"num_class": None}, "`num_class` must"),
        (
            {"objective": "multiclass num_class:100000000"},
            "'num_class:100000000', but `num_class` is 1",
        ),
        ({"objective": "multiclass num_class:1 num_class:9"}, "but `num_class` is 1"),
        ({"objective": ""}, "`objective` has no name"),
        ({"objective": " regression"}, "`objective` has no name"),
        ({"label_index": "x"}, "`label_index`"),
        ({"max_feature_idx": -1}, "`max_feature_idx`"),
        ({"max_feature_idx": 2**31}, "`max_feature_idx`"),
        ({"max_feature_idx": 10**9}, "`feature_names` holds 2 words where 1000000001"),
        ({"feature_names": "a"}, "`feature_names` holds 1 words where 2"),
        ({"feature_names": 'a "b'}, "quotation mark"),
        ({"feature_infos": "none"}, "`feature_infos` holds 1 words where 2"),
        ({"feature_infos": "none [0,1]"}, "neither a range nor categories"),
        ({"feature_infos": '[0:1],"x":[2:3] none'}, "neither a range nor categories"),
        ({"monotone_constraints": "1"}, "`monotone_constraints` holds 1 words"),
        ({"monotone_constraints": "1 9"}, "-1, 0 or 1"),
        ({"objective=x\nobjective": "y"}, "twice"),
    ],
)
def test_damage_before_the_trees_is_named(changed, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_text(chain(4, head=changed))


@pytest.mark.parametrize(
    ("tail", "sentence"),
    [
        (
            (
                "\nparameters:\n[boosting: gbdt]\n[data: ]\n\nend of"
                " parameters\n\npandas_categorical:null\n"
            ),
            None,
        ),
        ('\npandas_categorical:[[1, 2], ["a"]]\n', None),
        ("\nparameters:\n[boosting]\nend of parameters\n", "parameters"),
        ("\nparameters:\n[:]\n", "parameters"),
        ("\nparameters:\nx\n", "parameters"),
        ("\npandas_categorical:[1]\n", "list of lists"),
        ("\npandas_categorical:[[{}]]\n", "strings and numbers only"),
        ("\npandas_categorical:{\n", "property name"),
    ],
)
def test_damage_after_the_trees_is_named(tail, sentence):
    if sentence is None:
        check_text(chain(4, tail=tail))
        return
    with pytest.raises(ValueError, match=sentence):
        check_text(chain(4, tail=tail))


@pytest.mark.parametrize("text", ["", "tree\n", "tree\nTree=0\n", chain(4)[:-20], chain(4) + "\0"])
def test_a_text_that_is_cut_off_or_no_text_is_refused(text):
    with pytest.raises(ValueError, match=r"cut off|no text"):
        check_text(text)


def test_trees_of_learned_games_have_one_output_and_splits_on_numbers_in_known_columns():
    text = booster().model_to_string()
    assert check_own_text(text, 4) == text
    with pytest.raises(ValueError, match="4 columns where 3 are needed"):
        check_own_text(text, 3)
    for name in ("categories", "linear leaves", "multiclass"):
        model, _ = REAL[name]()
        with pytest.raises(ValueError, match="splits on numbers alone, and constant leaves"):
            check_own_text(model.model_to_string(), model.num_feature())


def test_lightgbm_can_write_as_json_whatever_passes():
    """A deep tree, and names that JSON has to escape or that hold its brackets."""
    for text in (chain(DEEPEST + 1), chain(4, head={"feature_names": "größe a=b"})):
        check_text(text)
        dumped = lightgbm.Booster(model_str=text).dump_model()
        assert json.dumps(dumped["feature_names"])
