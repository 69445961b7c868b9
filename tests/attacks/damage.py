"""Damaged and hostile explainer files, tried in a process of their own.

``python -m tests.attacks.damage folder seed n`` prints a line of JSON for each case, before it is
tried and after: a case without an end took the interpreter with it.
"""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path

import numpy as np

import weightedshap as ws
from tests.attacks.verdicts import describe_error, is_ours
from weightedshap.files import archive
from weightedshap.files.explainer_folder import MAIN, VERSION

STRANGE = (
    -1,
    0,
    1,
    10**9,
    -(10**18),
    2.5,
    float("nan"),
    float("inf"),
    "x",
    "",
    None,
    [],
    {},
    (),
    True,
)
BITS = (1, 2, 4, 8, 16, 32, 64, 128)


def model(rows):
    """The model behind all explainers that are attacked."""
    X = np.asarray(rows, dtype=float)
    return X[:, 0] * X[:, 1] + X[:, 2]


def change_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Some bits flipped, a piece left out, or the end cut off."""
    kind = rng.integers(3)
    if kind == 0:
        damaged = bytearray(content)
        for place in rng.integers(len(damaged), size=rng.integers(1, 5)):
            damaged[place] ^= int(rng.choice(BITS))
        return bytes(damaged)
    start, stop = np.sort(rng.integers(len(content), size=2))
    return content[:start] if kind == 1 else content[:start] + content[stop:]


def places(value, path=()):
    """The ways to everything inside nested dicts, lists and tuples."""
    if isinstance(value, dict):
        yield from ((*path, key) for key in value)
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, (list, tuple)):
        for place, inner in enumerate(value):
            yield (*path, place)
            yield from places(inner, (*path, place))


def put(value, path, new, gone=False):
    """`value` with what is at `path` replaced, or left out."""
    key, *rest = path
    if isinstance(value, dict):
        items = dict(value)
        if gone and not rest:
            del items[key]
        else:
            items[key] = put(items[key], rest, new, gone) if rest else new
        return items
    items = list(value)
    if gone and not rest:
        del items[key]
    else:
        items[key] = put(items[key], rest, new, gone) if rest else new
    return type(value)(items)


def at(value, path):
    for key in path:
        value = value[key]
    return value


def change_array(array, rng):
    """Another shape, another type, or some other numbers."""
    kind = rng.integers(5)
    changed = array.copy()
    if kind == 0 and array.size:
        return array[:-1]
    if kind == 1:
        return np.concatenate([array, array])
    if kind == 2:
        return array.astype(rng.choice(["<f4", "<i2", "<f8", "|b1", "<U5"]))
    if kind == 3:
        return array.reshape(-1, 1)
    if array.size:
        changed = changed.astype(np.float64) if array.dtype.kind == "f" else changed
        worse = (
            [np.nan, np.inf, -1e300, -1.0, 1e9]
            if array.dtype.kind == "f"
            else [-1, 10**6, 2**31 - 1]
        )
        with np.errstate(all="ignore"):
            changed.flat[rng.integers(array.size)] = np.array(rng.choice(worse)).astype(
                changed.dtype
            )
    return changed


def change_text(text, rng):
    """A line or a word lost, a number replaced, or the end cut off; of a booster, often its
    children and columns."""
    lines = text.split("\n")
    named = [
        n
        for n, line in enumerate(lines)
        if line.startswith(("left_", "right_", "split_f", "num_l", "tree_s"))
    ]
    place = (
        int(rng.choice(named)) if named and rng.random() < 0.7 else int(rng.integers(len(lines)))
    )
    kind = rng.integers(4)
    if kind == 0:
        return "\n".join(lines[:place])
    if kind == 1:
        return "\n".join(lines[:place] + lines[place + 1 :])
    name, sign, values = lines[place].partition("=")
    words = values.split(" ")
    which = int(rng.integers(len(words)))
    strange = str(
        rng.choice(
            ["-1", "0", "1", "99999999", "-99999999", "nan", "inf", "x", "", "1e999", "2147483648"]
        )
    )
    words = words[:which] + ([] if kind == 2 else [strange]) + words[which + 1 :]
    lines[place] = name + sign + " ".join(words)
    return "\n".join(lines)


def change_content(content, rng):
    """One thing in the content of a file is another, or gone."""
    path = list(places(content))
    path = path[rng.integers(len(path))]
    old = at(content, path)
    if isinstance(old, np.ndarray) and rng.random() < 0.8:
        return put(content, path, change_array(old, rng)), path
    if isinstance(old, str) and len(old) > 200 and rng.random() < 0.9:
        return put(content, path, change_text(old, rng)), path
    if rng.random() < 0.3:
        return put(content, path, None, gone=True), path
    return put(content, path, copy.deepcopy(STRANGE[rng.integers(len(STRANGE))])), path


def outcome(folder, rows):
    """What loading and explaining gives: the kind of outcome, and what is wrong about it."""
    try:
        explainer = ws.Explainer.load(folder, model, progress=False)
    except archive.UnreadableFile:
        return "unreadable", None
    except Exception as error:
        return ("refused", None) if is_ours(error) else ("loading fails", describe_error(error))
    try:
        explanation = explainer(rows)
    except Exception as error:
        return ("refused", None) if is_ours(error) else ("explaining fails", describe_error(error))
    finite = np.isfinite(explanation.values).all() and np.isfinite(explanation.predictions).all()
    return "loaded", None if finite else "not finite"


def print_json(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main(folder, seed, n, start=0):
    folder = Path(folder)
    rows = np.random.default_rng(1).normal(size=(3, 3))
    original = (folder / MAIN).read_bytes()
    expected = ws.Explainer.load(folder, model, progress=False)(rows)
    content = archive.read(folder / MAIN, "explainer", VERSION)
    for case in range(start, n):
        rng = np.random.default_rng([seed, case])
        if case % 3 == 0:
            (folder / MAIN).write_bytes(damaged := change_bytes(original, rng))
            about = "bytes"
        else:
            changed, path = change_content(content, rng)
            about = "/".join(map(str, path))
            try:
                archive.write(folder / MAIN, "explainer", VERSION, changed)
            except TypeError:
                continue  # what no file can hold
        print_json(case=case, about=about)
        kind, wrong = outcome(folder, rows)
        if case % 3 == 0 and kind == "loaded" and damaged != original:
            same = ws.Explainer.load(folder, model, progress=False)(rows).equals(expected)
            kind = "loaded the same"
            wrong = None if same else "other numbers"
        print_json(case=case, kind=kind, wrong=wrong)
    (folder / MAIN).write_bytes(original)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
