"""Damaged and hostile model files, tried in a process of their own.

``python -m tests.attacks.model_damage folder kind seed n start`` prints a line of JSON for each
case, before it is tried and after: a case without an end took the interpreter with it, or over a
minute.
"""

from __future__ import annotations

import copy
import faulthandler
import json
import re
import sys
import warnings
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import xgboost

import weightedshap as ws
from tests.attacks.damage import at, change_bytes, change_text, places, print_json, put
from tests.attacks.verdicts import describe_error, is_ours
from tests.trees import ubjson
from weightedshap.jobs.model_files import as_model_file

SECONDS = 60
PLAIN = (
    "trees",
    "tree_info",
    "iteration_indptr",
    "enc",
    "weight_drop",
    "version",
    "feature_names",
    "feature_types",
)
TYPES = dict.fromkeys(("default_left", "split_type"), "u1") | {"values": "i1"}
TYPES |= dict.fromkeys(("split_conditions", "base_weights", "loss_changes", "sum_hessian"), "f4")
TYPES |= dict.fromkeys(("categories_segments", "categories_sizes"), "i8")
STRANGE = (
    -1,
    0,
    1,
    2,
    5,
    10**9,
    -(2**31),
    2**31,
    2**63,
    2.5,
    float("nan"),
    float("inf"),
    "x",
    "-1",
    "100000000",
    None,
    [],
)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = X[:, 0] * X[:, 1] + X[:, 2]
CLASSES = np.digitize(Y, [-0.5, 0.5])
SMALL = {"num_leaves": 6, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}


def frame():
    """Rows with categories."""
    rows = pd.DataFrame(X, columns=list("abcd"))
    rows["e"] = pd.Categorical(np.random.default_rng(1).choice(list("xyz"), len(X)))
    return rows


def of_lightgbm():
    """Boosters, and rows that they take."""
    with_set = frame()
    target = Y + with_set["e"].cat.codes
    linear = {"params": {"linear_tree": True}}
    several = {**SMALL, "objective": "multiclass", "num_class": 3}
    on_sets = {**SMALL, "max_cat_to_onehot": 1, "min_data_per_group": 2}
    return [
        (lightgbm.train(SMALL, lightgbm.Dataset(X, Y), 4), X),
        (lightgbm.train(several, lightgbm.Dataset(X, CLASSES), 2), X),
        (lightgbm.train(on_sets, lightgbm.Dataset(with_set, target), 3), with_set),
        (lightgbm.train({**SMALL, "linear_tree": True}, lightgbm.Dataset(X, Y, **linear), 3), X),
    ]


def of_xgboost():
    """Boosters, and rows that they take."""
    data = {"max_depth": 3, "nthread": 1}
    with_set = frame()
    sets = xgboost.DMatrix(with_set, Y + with_set["e"].cat.codes, enable_categorical=True)
    several = {**data, "objective": "multi:softprob", "num_class": 3}
    return [
        (xgboost.train(data, xgboost.DMatrix(X, Y), 3), X),
        (xgboost.train(several, xgboost.DMatrix(X, CLASSES), 2), X),
        (xgboost.train({**data, "max_cat_to_onehot": 1}, sets, 3), with_set),
        (xgboost.train({**data, "booster": "dart", "rate_drop": 0.5}, xgboost.DMatrix(X, Y), 3), X),
    ]


def change_lightgbm(text, rng):
    """Damaged text; where the sizes of trees are left alone they are put right, so that more is
    read."""
    kind = rng.integers(4)
    if kind == 0:
        return change_bytes(text.encode(), rng)
    for _ in range(rng.integers(1, 3)):
        text = change_number(text, rng) if rng.random() < 0.5 else change_text(text, rng)
    if kind == 1:
        return text.encode()
    if kind == 2:
        return re.sub(r"tree_sizes=.*\n", "", text).encode()
    _, _, rest = text.partition("\nTree=")
    trees, _, _ = rest.partition("end of trees")
    sizes = [len(block) + 6 for block in trees.split("\nTree=")]
    sizes[-1] -= 1
    return re.sub(r"tree_sizes=.*", f"tree_sizes={' '.join(map(str, sizes))}", text).encode()


def change_number(text, rng):
    """Text with one of its whole numbers a little larger or smaller."""
    found = list(re.finditer(r"(?<![\d.e-])-?\d+(?![\d.e])", text))
    if not found:
        return text
    one = found[rng.integers(len(found))]
    return text[: one.start()] + str(int(one[0]) + int(rng.integers(-3, 4))) + text[one.end() :]


def change_document(content, rng):
    """A document with one to three things changed, half of them in a tree."""
    content = copy.deepcopy(content)
    for _ in range(rng.integers(1, 4)):
        paths = list(places(content))
        deep = [path for path in paths if "trees" in path]
        if deep and rng.random() < 0.6:
            paths = deep
        path = paths[rng.integers(len(paths))]
        old = at(content, path)
        if isinstance(old, list) and old and rng.random() < 0.8:
            new = [old[:-1], old + old, [*old[:-1], STRANGE[rng.integers(len(STRANGE))]]][
                rng.integers(3)
            ]
        elif isinstance(old, int) and rng.random() < 0.6:
            new = old + int(rng.integers(-3, 4))
        else:
            new = STRANGE[rng.integers(len(STRANGE))]
        content = put(content, path, new, gone=rng.random() < 0.1)
    return content


def change_json(content, rng):
    if rng.random() < 0.3:
        return change_bytes(json.dumps(content).encode(), rng)
    return json.dumps(change_document(content, rng)).encode()


def change_ubj(content, rng):
    """Damaged UBJSON; lists of numbers are arrays of numbers, as XGBoost writes them."""
    kind = rng.random()
    encoded = ubjson.encode(typed(content if kind < 0.4 else change_document(content, rng)))
    if kind < 0.2:
        return change_bytes(encoded, rng)
    if kind < 0.4:
        damaged = bytearray(encoded)
        damaged[rng.integers(len(damaged))] = rng.integers(256)
        return bytes(damaged)
    return encoded


def typed(value, name=""):
    """Nested dicts and lists with arrays where XGBoost writes some, and where their numbers allow
    for it."""
    if isinstance(value, dict):
        return {key: typed(inner, key) for key, inner in value.items()}
    if not isinstance(value, list):
        return min(max(value, -(2**63)), 2**63 - 1) if isinstance(value, int) else value
    if name in PLAIN or not all(isinstance(one, (int, float)) for one in value):
        return [typed(one) for one in value]
    return np.array(value, dtype=np.float64).astype(TYPES.get(name, "i4"))


def own_prediction(kind, path, rows):
    """(n, k) what the library itself says, from the same file."""
    if kind == "txt":
        found = lightgbm.Booster(model_str=path.read_text("utf-8")).predict(rows)
    else:
        matrix = xgboost.DMatrix(rows, enable_categorical=not isinstance(rows, np.ndarray))
        found = xgboost.Booster(model_file=path).predict(matrix)
    return np.asarray(found, dtype=np.float64).reshape(len(rows), -1)


def outcome(kind, path, rows):
    """What loading and explaining gives: the kind of outcome, and what is wrong about it."""
    try:
        model = as_model_file(path).load()
    except Exception as error:
        return ("refused", None) if is_ours(error) else ("loading fails", describe_error(error))
    some = rows[:3] if isinstance(rows, np.ndarray) else rows.iloc[:3]
    for game in ("tree_path", "marginal"):
        try:
            explanation = ws.Explainer(model, rows, game=game, progress=False, evaluations=40)(some)
        except Exception as error:
            if game == "tree_path" and is_ours(error):
                continue  # linear leaves, and so on
            return (
                ("refused later", None)
                if is_ours(error)
                else ("explaining fails", describe_error(error))
            )
        break
    own = own_prediction(kind, path, some)
    if game == "marginal" and not np.allclose(explanation.predictions.reshape(own.shape), own):
        return "other numbers", f"{explanation.predictions} for {own}"
    return f"explained by {game}", None if np.isfinite(explanation.values).all() else "not finite"


def main(folder, kind, seed, n, start=0):
    warnings.simplefilter("ignore")
    path = Path(folder) / f"m.{kind}"
    models = of_lightgbm() if kind == "txt" else of_xgboost()
    change = {"txt": change_lightgbm, "json": change_json, "ubj": change_ubj}[kind]
    originals = [
        m.model_to_string() if kind == "txt" else json.loads(m.save_raw("json")) for m, _ in models
    ]
    for case in range(int(start), int(n)):
        rng = np.random.default_rng([int(seed), case])
        which = case % len(models)
        path.write_bytes(change(originals[which], rng))
        print_json(case=case, about=f"model {which}")
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        result, wrong = outcome(kind, path, models[which][1])
        faulthandler.cancel_dump_traceback_later()
        print_json(case=case, kind=result, wrong=wrong)


if __name__ == "__main__":
    main(*sys.argv[1:])
