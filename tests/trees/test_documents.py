"""XGBoost's JSON and UBJSON: what XGBoost writes is read as it is, and what is damaged is named
before it is read."""

import copy
import json

import numpy as np
import pandas as pd
import pytest

from tests.oracles import normal_rows
from tests.time_limit import time_limit
from tests.trees import ubjson as written
from weightedshap.jobs.model_files import as_model_file
from weightedshap.trees.documents import check_document, read_json
from weightedshap.trees.nodes import DEEPEST
from weightedshap.trees.ubjson import decode

xgboost = pytest.importorskip("xgboost")

X = normal_rows(200).astype(np.float32)
Y = X[:, 0] * X[:, 1] + X[:, 2]
CLASSES = np.digitize(Y, [-0.5, 0.5])
SINCE_3_2 = pytest.mark.skipif(
    tuple(map(int, xgboost.__version__.split(".")[:2])) < (3, 2),
    reason="on vector leaves; to run: pip install 'xgboost>=3.2'",
)


def booster(rows=X, target=Y, trees=3, data=None, **more):
    parameters = ({} if more.get("booster") == "gblinear" else {"max_depth": 3}) | {
        "nthread": 1,
        **more,
    }
    return xgboost.train(parameters, xgboost.DMatrix(rows, target, **(data or {})), trees)


def categories():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(X[:, :2], columns=list("ab"))
    frame["text"] = pd.Categorical(rng.choice(["x", "größe", "z [0, 1)"], len(X)))
    frame["number"] = pd.Categorical(rng.integers(5, 45, len(X)))
    return frame, frame["text"].cat.codes + frame["number"].cat.codes % 3


def on_categories(**more):
    frame, target = categories()
    return booster(frame, target, data={"enable_categorical": True}, **more)


REAL = {
    "gbtree": booster,
    "missing values": lambda: booster(np.where(X > 1, np.nan, X)),
    "dart": lambda: booster(booster="dart", rate_drop=0.5, trees=8),
    "linear": lambda: booster(booster="gblinear"),
    "linear, multiclass": lambda: booster(
        booster="gblinear", target=CLASSES, objective="multi:softprob", num_class=3
    ),
    "forest": lambda: booster(num_parallel_tree=4, subsample=0.5, trees=2),
    "lossguide": lambda: booster(grow_policy="lossguide", max_depth=0, max_leaves=9),
    "nodes cut off": lambda: booster(tree_method="exact", gamma=20.0, max_depth=5),
    "binary": lambda: booster(target=Y > 0, objective="binary:logistic"),
    "multiclass": lambda: booster(target=CLASSES, objective="multi:softprob", num_class=3),
    "several targets": lambda: booster(target=np.stack([Y, -Y], axis=1)),
    "quantiles": lambda: booster(
        objective="reg:quantileerror", quantile_alpha=np.array([0.1, 0.9])
    ),
    "ranking": lambda: booster(
        target=CLASSES, objective="rank:ndcg", data={"qid": np.repeat(np.arange(10), 20)}
    ),
    "survival": lambda: booster(target=np.exp(Y), objective="survival:cox"),
    "poisson": lambda: booster(target=np.exp(Y), objective="count:poisson"),
    "monotone": lambda: booster(monotone_constraints=(1, -1, 0, 0)),
    "constant": lambda: booster(target=np.ones(200)),
    "no trees": lambda: booster(trees=0),
    "names": lambda: booster(data={"feature_names": ["größe", "a=b", 'c "d"', "e"]}),
    "one of several": lambda: on_categories(max_cat_to_onehot=100),
    "sets of categories": lambda: on_categories(max_cat_to_onehot=1),
    "a thousand trees": lambda: booster(trees=1000, max_depth=2),
    "vector leaves": lambda: booster(
        target=np.stack([Y, -Y, Y * Y], axis=1), multi_strategy="multi_output_tree"
    ),
}
OF_CATEGORIES = ("one of several", "sets of categories")


@pytest.mark.parametrize("suffix", ["json", "ubj"])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=SINCE_3_2 if "vector" in name else ()) for name in REAL]
)
def test_what_xgboost_writes_is_loaded_as_it_is(tmp_path, name, suffix):
    model = REAL[name]()
    model.save_model(tmp_path / f"m.{suffix}")
    content = (tmp_path / f"m.{suffix}").read_bytes()
    facts = check_document(read_json(content) if suffix == "json" else decode(content))
    assert facts.features == model.num_features()
    assert facts.estimator == ""

    named = {"feature_names": model.feature_names}
    if name in OF_CATEGORIES:
        rows = xgboost.DMatrix(categories()[0], enable_categorical=True)
    else:
        rows = xgboost.DMatrix(np.where(X < -1, np.nan, X), **named)
    again = as_model_file(tmp_path / f"m.{suffix}").load()
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


def test_real_models_have_sets_of_categories_nodes_cut_off_and_constant_trees():
    """So that the test above is one of them."""
    sets = [tree["categories_sizes"] for tree in trees_of(document(REAL["sets of categories"]()))]
    assert max(max(sizes, default=0) for sizes in sets) > 1
    assert any(
        tree["tree_param"]["num_deleted"] != "0"
        for tree in trees_of(document(REAL["nodes cut off"]()))
    )
    assert any(len(tree["left_children"]) == 1 for tree in trees_of(document(REAL["constant"]())))


@pytest.mark.parametrize(
    ("estimator", "target"),
    [("XGBRegressor", Y), ("XGBClassifier", Y > 0), ("XGBClassifier", CLASSES)],
)
@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_the_estimator_that_wrote_a_file_comes_back_and_stops_at_its_best_iteration(
    tmp_path, estimator, target, suffix
):
    model = getattr(xgboost, estimator)(
        n_estimators=30, early_stopping_rounds=2, max_depth=2, n_jobs=1
    )
    model.fit(X, target, eval_set=[(X, target[::-1])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    model.save_model(tmp_path / f"m.{suffix}")
    again = as_model_file(tmp_path / f"m.{suffix}").load()
    assert type(again) is type(model)
    ask = "predict" if estimator == "XGBRegressor" else "predict_proba"
    np.testing.assert_array_equal(getattr(again, ask)(X), getattr(model, ask)(X))


def test_a_document_with_spaces_is_loaded(tmp_path):
    model = booster()
    for indent in (None, 1):
        (tmp_path / "m.json").write_text(json.dumps(document(model), indent=indent))
        again = as_model_file(tmp_path / "m.json").load()
        np.testing.assert_array_equal(
            again.predict(xgboost.DMatrix(X)), model.predict(xgboost.DMatrix(X))
        )


def document(model):
    return json.loads(model.save_raw("json"))


def trees_of(content):
    return content["learner"]["gradient_booster"]["model"]["trees"]


def changed(content, way, value):
    """A copy where what is at `way` is `value`, or is gone where that is Ellipsis."""
    content = copy.deepcopy(content)
    *before, last = way
    table = content
    for key in before:
        table = table[key]
    if value is ...:
        del table[last]
    else:
        table[last] = value
    return content


def one_tree(**more):
    """A document with one tree of three leaves: x₀ < 0.5 ? (x₁ < 0 ? 1 : 2) : 3."""
    content = document(booster(X, Y, trees=1, max_depth=1))
    n = 5
    tree = {
        "left_children": [1, 3, -1, -1, -1],
        "right_children": [2, 4, -1, -1, -1],
        "parents": [2147483647, 0, 0, 1, 1],
        "split_indices": [0, 1, 0, 0, 0],
        "split_conditions": [0.5, 0.0, 3.0, 1.0, 2.0],
        "default_left": [1, 0, 0, 0, 0],
        "split_type": [0] * n,
        "base_weights": [0.0] * n,
        "loss_changes": [1.0, 1.0, 0.0, 0.0, 0.0],
        "sum_hessian": [9.0, 6.0, 3.0, 2.0, 4.0],
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "id": 0,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": "4",
            "num_nodes": str(n),
            "size_leaf_vector": "1",
        },
    } | more
    content = changed(content, ("learner", "gradient_booster", "model", "trees"), [tree])
    return changed(content, ("learner", "learner_model_param", "base_score"), "[0E0]")


TREE = one_tree()
LEARNER = ("learner",)
PARAMETERS = ("learner", "learner_model_param")
MODEL = ("learner", "gradient_booster", "model")


def test_the_tree_is_a_model_of_xgboost(tmp_path):
    (tmp_path / "m.json").write_text(json.dumps(TREE))
    model = as_model_file(tmp_path / "m.json").load()
    rows = np.array([[0, -1, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]])
    np.testing.assert_array_equal(model.predict(xgboost.DMatrix(rows)), [1, 2, 3])


SET = {
    "split_type": [0, 1, 0, 0, 0],
    "split_conditions": [0.5, float("nan"), 3.0, 1.0, 2.0],
    "categories": [0, 3],
    "categories_nodes": [1],
    "categories_segments": [0],
    "categories_sizes": [2],
}


@pytest.mark.parametrize(
    ("tree", "sentence"),
    [
        (SET, None),
        ({"left_children": [1, 0, -1, -1, -1]}, "root below another"),
        ({"left_children": [1, 1, -1, -1, -1]}, "two parents"),
        ({"left_children": [1, 3, 4, -1, -1], "right_children": [2, 4, 3, -1, -1]}, "two parents"),
        (
            {"left_children": [-1, 3, -1, -1, -1], "right_children": [-1, 4, -1, -1, -1]},
            "no root leads to",
        ),
        ({"left_children": [1, 5, -1, -1, -1]}, "children that do not exist"),
        ({"left_children": [1, -7, -1, -1, -1]}, "children that do not exist"),
        ({"left_children": [1, 2**31, -1, -1, -1]}, "children that do not exist"),
        ({"left_children": [1, 2**64, -1, -1, -1]}, "`left_children` must hold whole numbers"),
        ({"left_children": [1, 3.0, -1, -1, -1]}, "`left_children` must hold whole numbers"),
        ({"left_children": [1, "3", -1, -1, -1]}, "`left_children` must hold whole numbers"),
        ({"left_children": [1, None, -1, -1, -1]}, "`left_children` must hold whole numbers"),
        (
            {"left_children": [[1], [3], [-1], [-1], [-1]]},
            "`left_children` must hold whole numbers",
        ),
        ({"left_children": [[1, 2], [3], -1, -1, -1]}, "`left_children` must hold whole numbers"),
        ({"left_children": [1, 3, -1]}, "as many entries as its tree has nodes"),
        ({"left_children": {}}, "`left_children` is missing"),
        ({"left_children": ...}, "`left_children` is missing"),
        ({"right_children": [2, 4, 2, -1, -1]}, "leaves with a child"),
        ({"right_children": [2, -1, -1, -1, -1]}, "children that do not exist"),
        ({"parents": [2147483647, 0, 0, 1, 5]}, "parents that do not exist"),
        ({"parents": [2147483647, 0, 0, 1, -1]}, "parents that do not exist"),
        ({"parents": [2147483647, 0, 0, 1]}, "as many entries as its tree has nodes"),
        ({"split_indices": [0, 4, 0, 0, 0]}, "none of 4"),
        ({"split_indices": [0, -1, 0, 0, 0]}, "none of 4"),
        ({"split_indices": [0, 2147483647, 0, 0, 0]}, "none of 4"),
        (
            {"split_conditions": [0.5, float("nan"), 3.0, 1.0, 2.0]},
            "thresholds that are not numbers",
        ),
        ({"split_conditions": [0.5, float("inf"), 3.0, 1.0, 2.0]}, None),
        ({"split_conditions": [0.5, 0.0, float("nan"), 1.0, 2.0]}, "without a finite value"),
        ({"split_conditions": [0.5, 0.0, 1e39, 1.0, 2.0]}, "without a finite value"),
        ({"sum_hessian": [9.0, 6.0, -3.0, 2.0, 4.0]}, "`sum_hessian` must be finite"),
        ({"sum_hessian": [9.0, 6.0, float("nan"), 2.0, 4.0]}, "`sum_hessian` must be finite"),
        ({"default_left": [1, 0, 0]}, "as many entries as its tree has nodes"),
        ({"default_left": [True, False, False, False, False]}, None),  # before XGBoost 1.6
        ({"loss_changes": [0.0]}, "as many entries as its tree has nodes"),
        ({"split_type": [0, 7, 0, 0, 0]}, "unknown kind"),
        ({"split_type": [0, 1, 0, 0, 0]}, "does not name the nodes that split on categories"),
        ({"split_type": [0]}, "as many entries as its tree has nodes"),
        (
            {"split_type": ..., "categories": ..., "categories_nodes": ...},
            None,
        ),  # before XGBoost 1.3
        ({"categories_nodes": [1]}, "does not name the nodes that split on categories"),
        (SET | {"categories_nodes": [9]}, "does not name the nodes that split on categories"),
        (SET | {"categories_nodes": [-1]}, "does not name the nodes that split on categories"),
        (SET | {"categories_segments": [1]}, "follow each other"),
        (SET | {"categories_segments": []}, "follow each other"),
        (SET | {"categories_sizes": [0]}, "`categories_sizes` must be at least 1"),
        (SET | {"categories_sizes": [3]}, "numbered from 0 to 16777215"),
        (SET | {"categories_sizes": [10**9]}, "numbered from 0 to 16777215"),
        (SET | {"categories": [0, -3]}, "numbered from 0 to 16777215"),
        (SET | {"categories": [0, 2**24]}, "numbered from 0 to 16777215"),
        (SET | {"categories": [0, 3, 4]}, "numbered from 0 to 16777215"),
        ({"id": 1}, "must be 0 to 0, each once"),
        ({"id": "0"}, "`id` is missing"),
        ({"tree_param": {"num_nodes": "4"}}, "as many entries as its tree has nodes"),
        ({"tree_param": {"num_nodes": "0"}}, "trees without nodes"),
        ({"tree_param": {"num_nodes": "-5"}}, "whole number from 0 on"),
        ({"tree_param": {"num_nodes": "5", "num_deleted": "1"}}, "no root leads to"),
        (
            {"tree_param": {"num_nodes": "5", "size_leaf_vector": "3"}},
            "or all 1, one for each output",
        ),
        ({"tree_param": {}}, "`num_nodes` is missing"),
        ({"tree_param": ...}, "`tree_param` is missing"),
    ],
)
def test_damage_in_a_tree_is_named(tree, sentence):
    more = {name: value for name, value in tree.items() if value is not ...}
    content = one_tree(**more)
    for name in tree.keys() - more.keys():
        del trees_of(content)[0][name]
    if sentence is None:
        check_document(content)
        xgboost.Booster(model_file=bytearray(json.dumps(content).encode()))
        return
    with pytest.raises(ValueError, match=sentence):
        check_document(content)


@pytest.mark.parametrize(
    ("way", "value", "sentence"),
    [
        (LEARNER, ..., "`learner` is missing"),
        (LEARNER, [], "`learner` is missing"),
        ((*LEARNER, "objective"), ..., "`objective` is missing"),
        (
            (*LEARNER, "objective"),
            {"name": "multi:softprob", "x": {"num_class": "3"}},
            "3 classes, but the model has 1 outputs",
        ),
        (
            (*LEARNER, "objective"),
            {"name": "multi:softprob", "x": {"num_class": "0"}},
            "0 classes, but the model has 1 outputs",
        ),
        ((*LEARNER, "feature_names"), ["a"], "must be 4 strings"),
        ((*LEARNER, "feature_names"), [1, 2, 3, 4], "must be 4 strings"),
        ((*LEARNER, "feature_types"), ["float"], "must be 4 strings"),
        ((*LEARNER, "attributes"), {"a": 1}, "must be strings"),
        (
            (*LEARNER, "attributes"),
            {"best_iteration": "1"},
            "must be one of 1 rounds, counted from 0; it is 1",
        ),
        ((*LEARNER, "attributes"), {"best_iteration": "-1"}, "`best_iteration` must be"),
        ((*LEARNER, "attributes"), {"scikit_learn": "{"}, "Expecting property name"),
        ((*LEARNER, "attributes"), {"scikit_learn": "[" * 10**5}, "nested too deeply"),
        ((*PARAMETERS, "num_class"), "100000000", "100000000 outputs but has only 1 trees"),
        ((*PARAMETERS, "num_class"), 3, "`num_class` is missing"),
        ((*PARAMETERS, "num_target"), "4294967296", "`num_target` must be"),
        ((*PARAMETERS, "num_feature"), "1", "none of 1"),
        ((*PARAMETERS, "num_feature"), ..., "`num_feature` is missing"),
        ((*PARAMETERS, "base_score"), "nan", "`base_score`"),
        ((*PARAMETERS, "base_score"), "[0,0]", "`base_score`"),
        ((*PARAMETERS, "base_score"), "1E99", None),
        ((*PARAMETERS, "base_score"), "1E999", "`base_score`"),
        ((*PARAMETERS, "base_score"), "[" * 10**5, "`base_score`"),
        ((*LEARNER, "gradient_booster", "name"), "gbrandom", "unknown kind"),
        ((*LEARNER, "gradient_booster", "name"), "gblinear", "`weights` is missing"),
        ((*LEARNER, "gradient_booster", "name"), "dart", "`gbtree` is missing"),
        ((*MODEL, "trees"), [], "`num_trees` is 1, but it holds 0 trees"),
        ((*MODEL, "trees"), [1], "a tree is missing, or not of the type"),
        (
            (*MODEL, "gbtree_model_param", "num_trees"),
            "2",
            "`num_trees` is 2, but it holds 1 trees",
        ),
        (
            (*MODEL, "gbtree_model_param", "num_trees"),
            "1000000000",
            "`num_trees` is 1000000000, but it holds 1 trees",
        ),
        ((*MODEL, "tree_info"), [1], "one of 1 outputs for each tree"),
        ((*MODEL, "tree_info"), [-1], "one of 1 outputs for each tree"),
        ((*MODEL, "tree_info"), [], "one of 1 outputs for each tree"),
        ((*MODEL, "iteration_indptr"), [0, 2], "into rounds"),
        ((*MODEL, "iteration_indptr"), [0, 5, 1], "into rounds"),
        ((*MODEL, "iteration_indptr"), [], "into rounds"),
        ((*MODEL, "iteration_indptr"), ..., None),
        ((*MODEL, "weight_drop"), [1.0, 1.0], "`weight_drop`"),
        (
            (*MODEL, "cats"),
            {"enc": [{}], "feature_segments": [], "sorted_idx": []},
            "categories of 4 features; it has 1 entries",
        ),
        ((*MODEL, "cats"), [], "`cats` is missing"),
        ((*MODEL, "cats"), ..., None),
        ((*MODEL, "unknown"), {"a": [[[1.0]]]}, None),
    ],
)
def test_damage_outside_the_trees_is_named(way, value, sentence):
    content = changed(TREE, way, value)
    if sentence is None:
        check_document(content)
        return
    with pytest.raises(ValueError, match=sentence):
        check_document(content)


def test_a_document_that_is_no_table_is_refused():
    for content in ([], 1, None):
        with pytest.raises(ValueError, match="the document is missing, or not of the type"):
            check_document(content)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ([0.0], "5 finite numbers"),
        ([0.0, 0.0, 0.0, 0.0, float("nan")], "5 finite numbers"),
        ([0.0] * 6, "5 finite numbers"),
    ],
)
def test_damage_in_linear_models_is_named(value, sentence):
    content = document(booster(booster="gblinear"))
    with pytest.raises(ValueError, match=sentence):
        check_document(changed(content, (*MODEL, "weights"), value))


@pytest.mark.parametrize(
    ("way", "value", "sentence"),
    [
        (("enc", 2, "offsets"), [0, 1, 2], "`offsets` does not divide"),
        (("enc", 2, "offsets"), [0, 2**31 - 1], "`offsets` does not divide"),
        (("enc", 2, "offsets"), [0, 5, 1], "`offsets` does not divide"),
        (("enc", 2, "offsets"), [], "`offsets` does not divide"),
        (("enc", 2, "values"), [], "`offsets` does not divide"),
        (("enc", 3, "values"), [1], "`feature_segments`"),
        (("enc", 3, "values"), ["a"], "`values` must hold whole numbers"),
        (("enc", 3, "type"), ..., "`type` is missing"),
        (("feature_segments",), [0, 0], "`feature_segments`"),
        (("feature_segments",), [], "`feature_segments`"),
        (("sorted_idx",), [], "`sorted_idx`"),
        (("sorted_idx", 0), 10**9, "`sorted_idx`"),
        (("sorted_idx", 0), -1, "`sorted_idx`"),
    ],
)
def test_damage_in_categories_is_named(way, value, sentence):
    content = document(on_categories())
    with pytest.raises(ValueError, match=sentence):
        check_document(changed(content, (*MODEL, "cats", *way), value))


@SINCE_3_2
@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("leaf_weights", [0.0], "3 finite numbers for each leaf"),
        ("leaf_weights", ..., "`leaf_weights` is missing"),
        ("base_weights", [0.0], "`base_weights` must hold as many"),
        ("right_children", None, "leaves without numbers"),
    ],
)
def test_damage_in_vector_leaves_is_named(name, value, sentence):
    content = document(REAL["vector leaves"]())
    tree = trees_of(content)[0]
    if name == "right_children":
        value = [
            right if left >= 0 else 99
            for left, right in zip(tree["left_children"], tree[name], strict=True)
        ]
    with pytest.raises(ValueError, match=sentence):
        check_document(changed(content, (*MODEL, "trees", 0, name), value))


@SINCE_3_2
def test_trees_are_all_of_one_kind():
    content = document(REAL["vector leaves"]())
    with pytest.raises(ValueError, match="must all hold 1 number"):
        check_document(
            changed(content, (*MODEL, "trees", 0, "tree_param", "size_leaf_vector"), "1")
        )


def chain(splits):
    """A tree whose right children go on; the nodes of a level stand beside each other."""
    n = 2 * splits + 1
    inner = range(0, n - 1, 2)
    left = {node: node + 1 for node in inner}
    parents = [2147483647] + [node // 2 * 2 - 2 * (node % 2 == 0) for node in range(1, n)]
    return one_tree(
        left_children=[left.get(node, -1) for node in range(n)],
        right_children=[left.get(node, -2) + 1 for node in range(n)],
        parents=parents,
        split_indices=[0] * n,
        split_conditions=[0.5] * n,
        default_left=[0] * n,
        split_type=[0] * n,
        base_weights=[0.0] * n,
        loss_changes=[0.0] * n,
        sum_hessian=[1.0] * n,
        tree_param={
            "num_deleted": "0",
            "num_feature": "4",
            "num_nodes": str(n),
            "size_leaf_vector": "1",
        },
    )


def test_the_deepest_leaf_has_500_splits_above_it():
    check_document(chain(DEEPEST))
    xgboost.Booster(model_file=bytearray(json.dumps(chain(DEEPEST)).encode()))
    for splits in (DEEPEST + 1, 20_000):
        with pytest.raises(ValueError, match="deeper than 500"):
            check_document(chain(splits))


@pytest.mark.parametrize(
    "way", [(*MODEL, "x"), (*LEARNER, "x"), (*MODEL, "trees", 0, "x"), ("left_children",)]
)
def test_nesting_is_bounded(way):
    value = []
    for _ in range(100):
        value = [0, value]
    with pytest.raises(ValueError, match="deeper than 64"):
        check_document(changed(TREE, way, value))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "Expecting value"),
        (b"{", "Expecting property name"),
        (b'{"a": 1} 2', "Extra data"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": {"b": 1, "c": [{"d": 1, "d": 1}]}}', "twice"),
        (b'{"a": "\xff"}', "decode"),
        (b"[" * 10**6, "nested too deeply"),
        (b'{"a": "\0"}', "control character"),
        ('{"a": 1}'.encode("utf-16"), "decode"),
    ],
)
def test_text_that_is_no_json_is_refused(content, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_json(content)


def test_json_and_ubjson_hold_the_same_document():
    for name in ("gbtree", "dart", "linear", "sets of categories", "nodes cut off"):
        model = REAL[name]()
        assert_same(decode(bytes(model.save_raw("ubj"))), document(model))


def assert_same(a, b):
    if isinstance(b, dict):
        assert a.keys() == b.keys()
        for name in b:
            assert_same(a[name], b[name])
    elif isinstance(b, list):
        assert len(a) == len(b)
        for one, other in zip(list(a), b, strict=True):
            assert_same(one, other)
    elif isinstance(b, float):
        assert np.float32(a) == np.float32(b) or np.isnan(b)
    else:
        assert a == b or (b == 2147483647 and a == -1)  # the parent of a root


def test_text_among_many_numbers_takes_no_memory(tmp_path):
    """numpy would give each number the room of the longest text."""
    content = changed(TREE, (*MODEL, "tree_info"), ["x" * 10**6, *range(10**5)])
    with time_limit(10), pytest.raises(ValueError, match="`tree_info` must hold whole numbers"):
        check_document(content)


def test_ubjson_knows_every_type_that_xgboost_reads():
    content = b"{" + b"".join(
        [
            *(
                written.count(1) + b"a" + b"i\xff",
                written.count(1) + b"b" + b"U\xff",
                written.count(1) + b"c" + b"I\xff\xfe",
            ),
            *(
                written.count(1) + b"d" + b"C\x07",
                written.count(1) + b"e" + b"D\x3f\xf8" + bytes(6),
            ),
            *(
                written.count(1) + b"f" + b"[ZTF]",
                written.count(1) + b"g" + b"[$i#" + written.count(2) + b"\x01\xff",
            ),
        ]
    )
    found = decode(content + b"}")
    numbers = found.pop("g")
    assert found == {"a": -1, "b": 255, "c": -2, "d": 7, "e": 1.5, "f": [None, True, False]}
    np.testing.assert_array_equal(numbers, [1, -1])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "cut off"),
        (b"{", "cut off"),
        (b"{}{}", "2 bytes after the end of its value"),
        (b"X", "unknown type 'X'"),
        (b"{" + 2 * (written.count(1) + b"aZ") + b"}", "holds the name 'a' twice in one table"),
        (b"S" + written.count(10**12), "more values than it has bytes"),
        (b"S" + written.count(-1), "more values than it has bytes"),
        (b"S" + written.count(1) + b"\xff", "decode"),
        (b"Si\x01a", "64-bit numbers, of the type 'L'|cut off"),
        (b"Si\x01a" + bytes(20), "64-bit numbers, of the type 'L'; one is 'i'"),
        (b"[#" + written.count(10**12), "more values than it has bytes"),
        (b"[#" + written.count(2) + b"Z", "more values than it has bytes"),
        (b"[$d#" + written.count(10**12) + bytes(9), "more values than it has bytes"),
        (b"[$d#" + written.count(2**62) + bytes(9), "more values than it has bytes"),
        (b"[$d#" + written.count(-1), "more values than it has bytes"),
        (b"[$Z#" + written.count(2), "array of the unknown type 'Z'"),
        (b"[$dL" + written.count(2), "an array of numbers without '#L'"),
        (b"[$d#i\x02" + bytes(20), "an array of numbers without '#L'"),
        (b"[" * 10**5, "deeper than 64"),
        (b"[#" + written.count(1) + (b"[#" + written.count(1)) * 10**4, "deeper than 64"),
        ((b"{" + written.count(1) + b"a") * 10**4, "deeper than 64"),
        (b"d\x00", "cut off"),
        (b"[ZZ", "cut off"),
    ],
)
def test_bytes_that_are_no_ubjson_are_refused(content, sentence):
    with pytest.raises(ValueError, match=sentence):
        decode(content)


def test_the_two_encodings_of_tests_and_package_agree():
    assert_same(decode(written.encode(TREE)), TREE)
