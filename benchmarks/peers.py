"""Speed, start and memory beside the newest peers, as ratios in one run.

    python benchmarks/peers.py interventional | path | surrogate | whole | end_to_end | cold |
    memory | page [--only …]

Set OMP_NUM_THREADS=1. Wants Python 3.13 and, beside this library, the newest shap, shapiq,
woodelf-explainer, lightgbm and xgboost-cpu (`make bench-peers` makes such an environment). CPU
seconds of one thread. All methods of a line are timed in one process, ours after a first call that
compiles. Each line is kept in results/peers/ as soon as it is done, with the versions it was made
with; what is there is not done again. `page` prints the tables and puts them into
docs/benchmarks.md.

A method whose time for all rows would exceed half a minute is timed on fewer, shown with ~ and
scaled up. WOODELF and our interventional game keep what rows share, so their time is not
proportional to rows: their Shapley values are timed on all rows or not at all, and our whole
explanation on 2,048 at least, as many as share their work. Nothing is said of a method that refuses
a model.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from common import data, row, rule, written

HERE = Path(__file__).parent.parent
KEPT = HERE / "results" / "peers"
PAGE = HERE / "docs" / "benchmarks.md"
PACKAGES = (
    "weightedshap",
    "shap",
    "shapiq",
    "woodelf_explainer",
    "lightgbm",
    "xgboost-cpu",
    "numba",
    "numpy",
)
LONGEST = 30.0
# Seconds that one timing should take, and rows that tell whether it will.
SIZES = (
    200,
    2048,
    10_000,
)
TRAINED = 10_000

Line = dict[str, Any]
Work = Callable[[np.ndarray], Any]


def seconds(work: Callable[[], Any]) -> float:
    """CPU time of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def timed(work: Work, rows: np.ndarray, fewest: int = 10) -> Line | None:
    """Seconds for all rows, found on fewer where all would take too long; None where `fewest`
    would, too.

    They are found on a line through the last two numbers of rows, as fitting and preparing take the
    same time for any.
    """
    # The first compiles.
    points = [(some, seconds(lambda some=some: work(rows[:some]))) for some in (1, 10)]
    for more in sorted({n for n in SIZES if fewest <= n < len(rows)} | {len(rows)}):
        some, spent = points[-1]
        if spent * more / some > LONGEST and some >= fewest:
            break
        if spent > LONGEST:
            return None
        points.append((more, best(lambda more=more: work(rows[:more]))))
    (few, before), (some, spent) = points[-2:]
    slope = (spent - before) / (some - few) if spent > before else spent / some
    found = {"seconds": spent + slope * (len(rows) - some), "timed": some}
    return found if some == len(rows) else found | {"scaled": True}


def best(work: Callable[[], Any]) -> float:
    """CPU time of a call, the least of three where they are short enough."""
    taken = [seconds(work)]
    while len(taken) < 3 and sum(taken) < LONGEST / 2:
        taken.append(seconds(work))
    return min(taken)


def boosted(X: np.ndarray, y: np.ndarray, trees: int, depth: int) -> Any:
    """A LightGBM model; −1 for leaves as they come."""
    import lightgbm

    grown = {"num_leaves": 2**depth - 1, "max_depth": depth} if depth > 0 else {"num_leaves": 31}
    chosen = {
        "n_estimators": trees,
        "learning_rate": 0.1 if trees < 500 else 0.02,
        "n_jobs": 1,
        "verbose": -1,
    }
    return lightgbm.LGBMRegressor(**chosen, **grown).fit(X[:TRAINED], y[:TRAINED])


def frame(X: np.ndarray) -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=[f"Column_{c}" for c in range(X.shape[1])])


def interventional(d: int, trees: int, depth: int, m: int, n: int) -> Line:
    """Shapley values over m background rows, and ours with 13 weights, Δ, curves and choice."""
    import shap
    from woodelf import WoodelfExplainer

    import weightedshap as ws
    from weightedshap.inputs.rows import Rows

    X, y = data(d, max(n, TRAINED) + m)
    model = boosted(X, y, trees, depth)
    rows = X[:n]
    background = X[len(X) - m :]
    uniform = ws.weights.shapley(d).vectors

    def ours(some: np.ndarray) -> Any:
        game = ws.games.TreeModel("interventional").fit(model, background)
        return game.batch(Rows(some)).semivalues(uniform)

    def whole(some: np.ndarray) -> Any:
        asked = {
            "game": "tree_interventional",
            "judge": "game",
            "keep_contributions": False,
            "progress": False,
        }
        return ws.Explainer(model, background, **asked)(some)

    def of_shap(some: np.ndarray) -> Any:
        masker = shap.maskers.Independent(background, max_samples=m)
        return shap.TreeExplainer(model, masker).shap_values(some, check_additivity=False)

    def woodelf(some: np.ndarray) -> Any:
        return WoodelfExplainer(model, frame(background)).shap_values(frame(some))

    return {
        "ours, Shapley": timed(ours, rows, fewest=n),
        "ours, whole": timed(whole, rows, fewest=min(n, 2048)),
        "WOODELF": timed(woodelf, rows, fewest=n),
        "shap": timed(of_shap, rows),
        "shapiq": timed(of_shapiq(model, background), rows) if m <= 1000 else None,
    }


def of_shapiq(model: Any, background: np.ndarray) -> Work:
    """Shapley values by shapiq's interventional trees, row by row as its interface has it."""
    from shapiq.tree import InterventionalTreeSHAPIQ

    explainer = InterventionalTreeSHAPIQ(model, background, index="SV", max_order=1)
    return lambda some: [explainer.explain(row) for row in some]


def path(library: str, d: int, trees: int, depth: int, n: int) -> Line:
    """The path-dependent game: 13 semivalues, and with Δ, curves and choice, beside the model's own
    library."""
    import shap
    from woodelf import WoodelfExplainer

    import weightedshap as ws
    from weightedshap.inputs.rows import Rows

    X, y = data(d, max(n, TRAINED))
    model, own = boosted_with_own(library, X, y, trees, depth)
    explainer = ws.Explainer(
        model, X[:100], game="tree_path", keep_contributions=False, progress=False
    )
    tree_shap = shap.TreeExplainer(model)
    wood = WoodelfExplainer(model)
    vectors = explainer.family.vectors
    return {
        "ours, 13 weights": timed(
            lambda some: explainer.game.batch(Rows(some)).semivalues(vectors), X[:n]
        ),
        "ours, whole": timed(explainer, X[:n]),
        "own": timed(own, X[:n]),
        "shap": timed(lambda some: tree_shap.shap_values(some, check_additivity=False), X[:n]),
        "WOODELF": timed(lambda some: wood.shap_values(frame(some)), X[:n], fewest=n),
    }


def surrogate(d: int, n: int) -> Line:
    """The whole method on a tree surrogate, beside Shapley values of the same trees against one
    missing row."""
    import shap

    from trees import explainer_of, synthetic

    X, booster = synthetic(d, 150, 63)
    rows = X[:n]
    hidden = np.full((1, d), np.nan)
    ours = {
        kept: explainer_of(booster, rows, np.zeros(n))(keep_contributions=kept)
        for kept in (False, True)
    }
    of_shap = shap.TreeExplainer(booster, hidden, feature_perturbation="interventional")
    return {
        "ours, whole": timed(ours[False], rows),
        "ours, whole with Δ": timed(ours[True], rows),
        "shap": timed(lambda some: of_shap.shap_values(some, check_additivity=False), rows),
    }


def boosted_with_own(
    library: str, X: np.ndarray, y: np.ndarray, trees: int, depth: int
) -> tuple[Any, Work]:
    """A model, and the Shapley values that its own library computes."""
    if library == "lightgbm":
        model = boosted(X, y, trees, depth)
        return model, lambda some: model.booster_.predict(some, pred_contrib=True, num_threads=1)
    import xgboost

    grown = (
        {"max_depth": depth}
        if depth > 0
        else {"max_depth": 0, "grow_policy": "lossguide", "max_leaves": 31}
    )
    other = xgboost.XGBRegressor(
        n_estimators=trees, learning_rate=0.1 if trees < 500 else 0.02, n_jobs=1, **grown
    )
    other.fit(X[:TRAINED], y[:TRAINED])
    booster = other.get_booster()
    return other, lambda some: booster.predict(xgboost.DMatrix(some, nthread=1), pred_contribs=True)


def whole(d: int, n: int) -> Line:
    """The default (two games, judge fitted before) on 1,000 trees × 15 leaves, beside LightGBM's
    own Shapley values."""
    import lightgbm

    import weightedshap as ws

    X, y = data(d, 6000)
    chosen = {"learning_rate": 0.02, "num_leaves": 15, "verbose": -1, "num_threads": 1}
    model = lightgbm.train(chosen, lightgbm.Dataset(X, y), 1000)
    plain = ws.games.TreeSurrogate(n_jobs=1)
    anchored = ws.Explainer(model, X[:4000], keep_contributions=False, progress=False)
    recipe = ws.games.Anchored().recipe_for_trees(anchored.game)
    fits = {
        "fit, plain surrogate": lambda: plain.fit(model, X[:4000], 0),
        "fit, anchored judge": lambda: recipe.fit(model, X[:4000], 0),
    }
    fits["fit, anchored judge"]()
    return {
        "ours, default": timed(anchored, X[:n]),
        "own": timed(lambda some: model.predict(some, pred_contrib=True, num_threads=1), X[:n]),
        **{name: {"seconds": seconds(work), "timed": 4000} for name, work in fits.items()},
    }


def end_to_end(kind: str) -> Line:
    """From a trained model to 1,000 explained rows: construction, fit and call."""
    import shap

    import weightedshap as ws

    X, y = data(20, 6000)
    background = X[:4000]
    rows = X[-1000:]
    if kind == "boosted trees":
        model = boosted(X, y, 300, 6)
        peers = {
            "shap, path": lambda: shap.TreeExplainer(model).shap_values(rows),
            "shap, 100 background rows": (
                lambda: shap.TreeExplainer(model, background[:100]).shap_values(rows)
            ),
        }
    else:
        from sklearn.neural_network import MLPRegressor

        model = (
            MLPRegressor(
                hidden_layer_sizes=(32, 32), max_iter=200, random_state=0, early_stopping=True
            )
            .fit(X, y)
            .predict
        )
        few = shap.maskers.Independent(background, max_samples=100)
        peers = {
            "shap, permutation": lambda: shap.explainers.Permutation(model, few)(rows, silent=True),
            "shap, kernel": (
                lambda: shap.KernelExplainer(model, background[:100]).shap_values(
                    rows[:50], silent=True
                )
            ),
        }

    def ours() -> None:
        ws.Explainer(model, background, progress=False)(rows)

    ours()
    told = {"ours, default": {"seconds": seconds(ours), "timed": 1000}}
    for name, work in peers.items():
        share = 20 if name == "shap, kernel" else 1
        told[name] = {"seconds": share * seconds(work), "timed": 1000 // share}
    return told


COLD = {
    "import weightedshap": "import weightedshap",
    "numpy and numba alone": "import numpy, numba",
    "import shap": "import shap",
    "import shapiq": "import shapiq",
    "weightedshap, trees: first row": (
        "import weightedshap as ws; ws.Explainer(model, X, progress=False)(X[:1])"
    ),
    "… from the second start on": (
        "import weightedshap as ws; ws.Explainer(model, X, progress=False)(X[:1])"
    ),
    "weightedshap, interventional: first row": (
        "import weightedshap as ws; ws.Explainer(model, X[:100], game='tree_interventional',"
        " progress=False)(X[:1])"
    ),
    "weightedshap, a function: first row": (
        "import weightedshap as ws; ws.Explainer(lambda x: x[:, 0] * x[:, 1], X,"
        " progress=False)(X[:1])"
    ),
    "shap, trees: first row": "import shap; shap.TreeExplainer(model)(X[:1])",
    "WOODELF, trees: first row": (
        "import pandas as pd; from woodelf import WoodelfExplainer; "
        "F = pd.DataFrame(X, columns=[f'Column_{c}' for c in range(20)]); "
        "WoodelfExplainer(model, F[:100]).shap_values(F[:1])"
    ),
}
BEFORE = """
import time, resource, numpy as np
{model}
start, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{work}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
print(time.process_time() - start, peak / 1024)
"""
MODEL = """
import sys; sys.path.insert(0, {here!r})
import peers
X, y = peers.data(20, {n}); model = peers.boosted(X, y, 100, 6)
"""


def apart(work: str, cache: str, model: str = "") -> tuple[float, float]:
    """CPU seconds, and MiB by which the peak of memory grew, in a process of its own."""
    code = BEFORE.format(model=model, work=work)
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
    )
    if found.returncode:
        raise SystemExit(found.stderr)
    used, grown = map(float, found.stdout.split()[-2:])
    return used, grown


def cold(what: str) -> Line:
    """A first start with an empty cache of compiled code (the packages themselves are read
    before)."""
    model = (
        MODEL.format(here=str(Path(__file__).parent), n=4000)
        if "row" in what or "second" in what
        else ""
    )
    with tempfile.TemporaryDirectory() as cache:
        warm = what.startswith(("…", "import", "numpy"))
        for _ in range(2 if warm else 1):
            used, _grown = apart(COLD[what], cache, model)
    return {"CPU": {"seconds": used, "timed": 1}}


MEMORY = {
    "weightedshap, default": (
        "import weightedshap as ws; ws.Explainer(model, X[:4000], keep_contributions=False, "
        "progress=False)(X)"
    ),
    "weightedshap, interventional, 1,000 background rows": (
        "import weightedshap as ws; ws.Explainer(model, X[:1000], "
        "game='tree_interventional', keep_contributions=False, progress=False)(X)"
    ),
    "shap, path": "import shap; shap.TreeExplainer(model).shap_values(X)",
    "WOODELF, 1,000 background rows": (
        "import pandas as pd; from woodelf import WoodelfExplainer; F = pd.DataFrame(X,"
        " columns=[f'Column_{c}' for c in range(20)]); WoodelfExplainer(model,"
        " F[:1000]).shap_values(F)"
    ),
}


def memory(what: str, n: int) -> Line:
    """By how much the peak of memory grows, imports included."""
    with tempfile.TemporaryDirectory() as cache:
        used, grown = apart(
            MEMORY[what], cache, MODEL.format(here=str(Path(__file__).parent), n=max(n, TRAINED))
        )
    return {"MiB": grown, "CPU": {"seconds": used, "timed": n}}


GROUPS: Mapping[str, tuple[Callable[..., Line], Mapping[str, tuple[Any, ...]]]] = {
    "whole": (whole, {"d": (10, 20, 40), "n": (1000,)}),
    "surrogate": (surrogate, {"d": (20, 90), "n": (1000,)}),
    "cold": (cold, {"what": tuple(COLD)}),
    "end_to_end": (end_to_end, {"kind": ("boosted trees", "network")}),
    "memory": (memory, {"what": tuple(MEMORY), "n": (1_000, 100_000)}),
    "path": (
        path,
        {
            "library": ("lightgbm", "xgboost"),
            "trees": (100, 1000),
            "d": (20, 90),
            "depth": (6, -1),
            "n": (1_000, 10_000, 100_000),
        },
    ),
    "interventional": (
        interventional,
        {
            "trees": (100, 1000),
            "d": (20, 90),
            "depth": (-1, 6),
            "m": (1000, 100, 1, 10_000),
            "n": (1_000, 10_000, 100_000),
        },
    ),
}


def lines(group: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name and the settings of every line of a group."""
    _, axes = GROUPS[group]
    for values in itertools.product(*axes.values()):
        given = dict(zip(axes, values, strict=True))
        told = (
            value if axis in ("what", "kind") else f"{axis} = {value}"
            for axis, value in given.items()
        )
        yield ", ".join(told), given


def kept(group: str) -> dict[str, Line]:
    path = KEPT / f"{group}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def run(group: str, only: str) -> None:
    """Every line that is not there yet."""
    work, _ = GROUPS[group]
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    print(" · ".join(f"{name} {version}" for name, version in versions.items()), flush=True)
    for name, given in lines(group):
        if only in name and name not in kept(group):
            found = {"versions": versions, "python": sys.version.split()[0], "times": work(**given)}
            KEPT.mkdir(parents=True, exist_ok=True)
            (KEPT / f"{group}.json").write_text(
                json.dumps({**kept(group), name: rounded(found)}, indent=1)
            )
            print(f"{name}: {in_short(found['times'])}", flush=True)


def rounded(value: Any) -> Any:
    """Floats to four digits."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def in_short(times: Line) -> str:
    return ", ".join(f"{method} {shown(time)}" for method, time in times.items())


def shown(one: Line | float | None) -> str:
    """Seconds, with ~ where fewer rows were timed; MiB."""
    if one is None:
        return "–"
    if not isinstance(one, dict):
        return f"{one:,.0f} MiB"
    return f"{'~' if one.get('scaled') else ''}{one['seconds']:.3g} s"


def ratio(times: Line, ours: str, peer: str) -> str:
    """Ours ÷ the peer's."""
    if times.get(ours) is None or times.get(peer) is None:
        return "–"
    about = "~" if any(times[one].get("scaled") for one in (ours, peer)) else ""
    return f"{about}{times[ours]['seconds'] / times[peer]['seconds']:.2g}"


def pivot(group: str) -> list[str]:
    """A table of a group: ratios for the tree games, seconds and MiB elsewhere."""
    found = {name: kept(group)[name]["times"] for name, _ in lines(group) if name in kept(group)}
    if not found:
        return ["Not measured yet."]
    if group in ("interventional", "path", "whole", "surrogate"):
        pairs = [
            (a, b)
            for a in next(iter(found.values()))
            for b in next(iter(found.values()))
            if of_us(a, b)
        ]
        header = [f"{a.removeprefix('ours, ')} ÷ {b}" for a, b in pairs]
        cells = {name: [ratio(times, a, b) for a, b in pairs] for name, times in found.items()}
    else:
        header = list(dict.fromkeys(method for times in found.values() for method in times))
        cells = {
            name: [shown(times.get(method)) for method in header] for name, times in found.items()
        }
    return [
        row("", *header),
        rule(len(header) + 1),
        *(row(name, *of) for name, of in cells.items()),
    ]


def of_us(ours: str, peer: str) -> bool:
    """Whether the first is ours and the second is what it stands beside."""
    if ours == "fit, anchored judge":
        return peer == "fit, plain surrogate"
    return ours.startswith("ours") and not peer.startswith(("ours", "fit"))


def page() -> None:
    """The tables between the marks of the page."""
    written(PAGE, {group: pivot(group) for group in GROUPS})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("group", choices=[*GROUPS, "page"])
    parser.add_argument("--only", default="", help="lines whose name holds this")
    given = parser.parse_args()
    page() if given.group == "page" else run(given.group, given.only)


if __name__ == "__main__":
    main()
