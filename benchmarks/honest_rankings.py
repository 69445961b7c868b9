"""Which ranking wins when somebody else keeps score?

    WEIGHTEDSHAP_DATA=… python benchmarks/honest_rankings.py truth [--seeds 3] [--only boosting]
    WEIGHTEDSHAP_DATA=… python benchmarks/honest_rankings.py real [--seeds 3] [--only airfoil]
    python benchmarks/honest_rankings.py page

`truth` judges rankings by the true conditional expectation in twelve made settings (see truths.py),
`real` by games that are fitted to the half of the rows that the explainers never saw, on the
paper's twelve tables with boosted trees, a linear model and a small network. Each run is kept in
results/honest/ as soon as it is done; what is there is not done again. `page` prints the tables and
puts them into docs/honest-rankings.md.

A run keeps the mean area under the recovery-error curve of every method and the covariance of these
means over its rows, so that any two methods can be compared in pairs.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import weightedshap as ws
from common import row, rule, written
from truths import KINDS, REAL, SETTINGS, Case, make, make_real, real_half
from weightedshap._checks import FloatArray, IntArray
from weightedshap.curves import along_each_output, order_of
from weightedshap.evaluation import halves
from weightedshap.files.atomic import replaced
from weightedshap.games import Anchored, AnchoredNetwork, Marginal, TreeSurrogate
from weightedshap.games.base import BaseGame
from weightedshap.games.tree_model import PathTreeGame
from weightedshap.inputs.rows import Rows
from weightedshap.method import judge_slices

HERE = Path(__file__).parent.parent
KEPT = HERE / "results" / "honest"
PAGE = HERE / "docs" / "honest-rankings.md"
OURS = "WeightedSHAP"
TWO = "two games"
REFINED = "refined"
BEFORE = "paper's way"
CONDITIONAL = "conditional Shapley"
ALTERNATIVES = (
    "TreeSHAP path",
    "TreeSHAP interventional",
    "marginal Shapley",
    "distilled TreeSHAP",
    CONDITIONAL,
)
ALTERNATIVES += "conditional first", "conditional last"
INTERVENTIONAL_ROWS = 300
NETWORKS = 3  # learned anew: one network's verdict moves by 5 % with its seed where rows are few

Orders = dict[str, IntArray]
"""(n, d) rankings by method."""


def explained(case: Case, background: FloatArray, seed: int) -> tuple[Orders, ws.Explainer]:
    """Every ranking to compare, learned from `background`, and the explainer with the default
    choices."""
    asked = {"random_state": seed, "progress": False}
    default = ws.Explainer(case.model, background, **asked)
    found = default(case.rows)
    plain = ws.Explainer(case.model, background, game="tree_surrogate", **asked)(case.rows)
    delta = np.asarray(plain.contributions)
    orders: Orders = {OURS: found.orders, REFINED: found.refined_orders(), BEFORE: plain.orders}
    orders |= (
        of_trees(case, background, default, asked)
        if isinstance(default.game, PathTreeGame)
        else of_others(found, default)
    )
    orders |= {CONDITIONAL: order_of(plain.shapley)}
    orders |= {
        "conditional first": order_of(delta[:, 0]),
        "conditional last": order_of(delta[:, -1]),
    }
    return orders, default


def of_trees(
    case: Case, background: FloatArray, default: ws.Explainer, asked: Mapping[str, Any]
) -> Orders:
    """TreeSHAP of both kinds, and both games in competition."""
    few = np.random.default_rng(0).permutation(len(background))[:INTERVENTIONAL_ROWS]
    own = ws.games.TreeModel("interventional").fit(
        default.setup.model, default.background.subset(few)
    )
    inside = ws.Explainer(case.model, background, game=own, judge=default.judge, **asked)(case.rows)
    both = ws.Explainer(
        case.model, background, game=[default.game, own], judge=default.judge, **asked
    )(case.rows)
    path = default(case.rows).shapley
    return {
        TWO: both.orders,
        "TreeSHAP path": order_of(path),
        "TreeSHAP interventional": order_of(inside.shapley),
    }


def of_others(found: ws.Explanation, default: ws.Explainer) -> Orders:
    """The marginal Shapley value of the model, and TreeSHAP of trees distilled from it."""
    uniform = np.full((1, found.values.shape[1]), 1 / found.values.shape[1])
    rows = Rows(default.background.align(found.data))
    trees = default.games[1].batch(rows).semivalues(uniform)[:, 0, :, 0]
    return {"marginal Shapley": order_of(found.shapley), "distilled TreeSHAP": order_of(trees)}


def areas(orders: Orders, walk: Callable[[IntArray], FloatArray]) -> FloatArray:
    """(n, methods) areas; `walk` gives |f(x) − v| (n, m, d + 1) along orders (n, m, d)."""
    return walk(np.stack(list(orders.values()), axis=1))[..., 1:].sum(axis=-1)


def by_game(game: BaseGame, X: FloatArray, orders: Orders) -> FloatArray:
    """(n, methods) areas on a fitted game, at rows X (n, d)."""
    rows = Rows(X)
    f_x = rows.ask(game)  # (n, 1)

    def walk(many: IntArray) -> FloatArray:
        values = [
            along_each_output(rows[part].bind(game), many[part][..., None])[..., 0]
            for part in judge_slices(game, *X.shape, k=1)
        ]
        return np.abs(f_x[:, None] - np.concatenate(values))

    return areas(orders, walk)


def by_truth(case: Case, orders: Orders) -> FloatArray:
    """(n, methods) areas on the true game."""
    f_x = case.predict(case.rows)

    def walk(many: IntArray) -> FloatArray:
        walked = np.stack(
            [case.truth(row).along(of_row) for row, of_row in zip(case.rows, many, strict=True)]
        )
        return np.abs(f_x[:, None, None] - walked)

    return areas(orders, walk)


@dataclass(frozen=True)
class Job:
    """One run: what it is called, the half it belongs to, and how it is made."""

    name: str
    half: str
    seed: int
    make: Callable[[], Case]

    @property
    def key(self) -> str:
        return f"{self.name} | {self.seed}"


def run_truth(job: Job) -> dict[str, Any]:
    """All rankings from the whole background, judged by the truth and by the judge that chose."""
    case = job.make()
    orders, default = explained(case, case.background, job.seed)
    scored = {"truth": by_truth(case, orders), "own": by_game(default.judge, case.rows, orders)}
    return told(orders, scored)


def run_real(job: Job) -> dict[str, Any]:
    """All rankings from one half of the background, judged by games of the other half."""
    case = job.make()
    table = ws.Explainer(case.model, case.background, game="baseline", progress=False).background
    one, other = halves(table, np.random.default_rng(job.seed))
    orders, default = explained(case, np.asarray(one.data), job.seed)
    model = default.setup.model
    rng = np.random.default_rng([job.seed, 7])
    base = "tree_path" if isinstance(default.game, PathTreeGame) else Marginal(rows=10)
    recipes = {
        "plain": TreeSurrogate(fits=2),
        "anchored trees": TreeSurrogate(base=base, fits=2),
    }
    if isinstance(default.game, PathTreeGame):
        recipes["same kind"] = Anchored().recipe_for_trees(default.game)
    games = {name: recipe.fit(model, other, rng) for name, recipe in recipes.items()}
    scored = {name: by_game(game, case.rows, orders) for name, game in games.items()}
    networks = [
        by_game(AnchoredNetwork().fit(model, other, rng), case.rows, orders)
        for _ in range(NETWORKS)
    ]
    scored["anchored network"] = np.mean(networks, axis=0)
    return told(orders, {**scored, "own": by_game(default.judge, case.rows, orders)})


def told(orders: Orders, scored: Mapping[str, FloatArray]) -> dict[str, Any]:
    """What a file keeps of a run."""
    judges = {
        judge: {
            "mean": table.mean(axis=0).tolist(),
            "covariance": (np.cov(table.T) / len(table)).tolist(),
        }
        for judge, table in scored.items()
    }
    return {"methods": list(orders), "rows": len(next(iter(scored.values()))), "judges": judges}


def jobs(group: str, seeds: int, only: str) -> Iterator[Job]:
    """All runs of a group, seed by seed, so that what is there first is a whole."""
    for seed in range(seeds):
        if group == "truth":
            made = [
                Job(s.name, s.half, seed, lambda s=s, seed=seed: make(s, seed)) for s in SETTINGS
            ]
        else:
            pairs = [(name, kind) for name in REAL for kind in KINDS]
            made = [
                Job(
                    f"{name}, {kind}",
                    real_half(name),
                    seed,
                    lambda n=name, k=kind, seed=seed: make_real(n, k, seed),
                )
                for name, kind in pairs
            ]
        yield from (job for job in made if only in job.name)


def run(group: str, seeds: int, only: str) -> None:
    """Every run that is not there yet."""
    work = {"truth": run_truth, "real": run_real}[group]
    path = KEPT / f"{group}.json"
    for job in jobs(group, seeds, only):
        kept = json.loads(path.read_text()) if path.exists() else {}
        if job.key in kept:
            continue
        started = time.process_time()
        found = {"half": job.half, **work(job)}
        found["seconds"] = round(time.process_time() - started, 1)
        KEPT.mkdir(parents=True, exist_ok=True)
        with (KEPT / ".lock").open("w") as lock:  # several processes may share the work
            fcntl.flock(lock, fcntl.LOCK_EX)
            kept = json.loads(path.read_text()) if path.exists() else {}
            with replaced(path) as file:
                file.write_text(json.dumps({**kept, job.key: rounded(found)}, sort_keys=True))
        print(f"{found['seconds']:7.1f} s  {job.key}: {in_short(found)}", flush=True)


def rounded(value: Any) -> Any:
    """Floats to six digits."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def in_short(found: Mapping[str, Any]) -> str:
    """The default against the best single alternative, by judge."""
    return ", ".join(
        f"{judge} {relative([found], judge, OURS)[0]:.3f}" for judge in found["judges"]
    )


def relative(
    runs: Sequence[Mapping[str, Any]], judge: str, method: str, other: str | None = None
) -> tuple[float, float]:
    """Area of a method ÷ that of the best single alternative (or of `other`), over seeds and rows,
    and its error.

    The best alternative is the one with the smallest mean area over all seeds: the judge picks it.
    The error is that of a ratio of paired means (the delta method), rows of all seeds taken
    together.
    """
    means = np.mean([run["judges"][judge]["mean"] for run in runs], axis=0)
    covariance = (
        np.sum([run["judges"][judge]["covariance"] for run in runs], axis=0) / len(runs) ** 2
    )
    methods = runs[0]["methods"]
    rivals = [other] if other else [name for name in ALTERNATIVES if name in methods]
    best = min((methods.index(name) for name in rivals), key=lambda place: means[place])
    own = methods.index(method)
    ratio = means[own] / means[best]
    spread = (
        covariance[own, own] - 2 * ratio * covariance[own, best] + ratio**2 * covariance[best, best]
    )
    return float(ratio), float(np.sqrt(max(spread, 0)) / means[best])


def gathered(group: str) -> dict[str, list[dict[str, Any]]]:
    """The runs that are there, seed by seed, by the name of the setting."""
    path = KEPT / f"{group}.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    names = dict.fromkeys(key.rpartition(" | ")[0] for key in kept)
    return {
        name: [kept[key] for key in sorted(kept) if key.rpartition(" | ")[0] == name]
        for name in names
    }


def of_trees_only(runs: Mapping[str, Sequence[Any]], trees: bool) -> dict[str, Sequence[Any]]:
    """The settings whose model is made of trees that can be read, or the others."""
    return {name: of for name, of in runs.items() if ("TreeSHAP path" in of[0]["methods"]) == trees}


def cell(runs: Sequence[Any], judge: str, method: str, other: str | None = None) -> str:
    """A ratio and its standard error, as .87 ± .02."""
    if method not in runs[0]["methods"] or judge not in runs[0]["judges"]:
        return "–"
    ratio, error = relative(runs, judge, method, other)
    return f"{ratio:.2f} ± {error:.2f}".replace("0.", ".")


def truth_table(runs: Mapping[str, Sequence[Any]]) -> list[str]:
    """Settings × methods, the area relative to the best single alternative, by halves."""
    shown = (
        OURS,
        *((TWO,) if "TreeSHAP path" in next(iter(runs.values()))[0]["methods"] else ()),
        REFINED,
        BEFORE,
    )
    lines = [row("setting", *shown, "ours ÷ conditional Shapley", "best alternative", "seeds")]
    lines.append(rule(len(shown) + 4))
    for half, title in (("pick", "recipes were picked here"), ("report", "untouched")):
        some = {name: of for name, of in sorted(runs.items()) if of[0]["half"] == half}
        for name, of in some.items():
            cells = [cell(of, "truth", method) for method in shown]
            lines.append(
                row(
                    name,
                    *cells,
                    cell(of, "truth", OURS, CONDITIONAL),
                    best(of, "truth"),
                    str(len(of)),
                )
            )
        if some:
            means = [mean(some, "truth", method) for method in shown]
            lines.append(
                row(f"**mean, {title}**", *means, mean(some, "truth", OURS, CONDITIONAL), "", "")
            )
    means = [mean(runs, "truth", method) for method in shown]
    return [*lines, row("**mean of all**", *means, mean(runs, "truth", OURS, CONDITIONAL), "", "")]


def mean(
    runs: Mapping[str, Sequence[Any]], judge: str, method: str, other: str | None = None
) -> str:
    """The mean ratio over settings."""
    ratios = [
        relative(of, judge, method, other)[0] for of in runs.values() if method in of[0]["methods"]
    ]
    return f"**{np.mean(ratios):.2f}**".replace("0.", ".")


def best(runs: Sequence[Any], judge: str) -> str:
    """The name of the best single alternative."""
    methods = runs[0]["methods"]
    means = np.mean([run["judges"][judge]["mean"] for run in runs], axis=0)
    return min(
        (name for name in ALTERNATIVES if name in methods),
        key=lambda name: means[methods.index(name)],
    )


def real_table(runs: Mapping[str, Sequence[Any]]) -> list[str]:
    """Tables × judges, the area relative to the best single alternative; and the gain over Shapley
    on both games."""
    judges = "plain", "anchored trees", "anchored network"
    lines = [
        row(
            "table, model",
            *judges,
            "refined, anchored network",
            "gain over Shapley: own",
            "same kind",
            "seeds",
        )
    ]
    lines.append(rule(len(judges) + 5))
    for half, title in (("pick", "recipes were picked here"), ("report", "untouched")):
        some = {name: of for name, of in sorted(runs.items()) if of[0]["half"] == half}
        for name, of in some.items():
            cells = [cell(of, judge, OURS) for judge in judges]
            gains = [f"{gain(of, judge):.0%}" for judge in ("own", same_kind(of))]
            lines.append(row(name, *cells, cell(of, judges[-1], REFINED), *gains, str(len(of))))
        if some:
            lines.append(
                row(
                    f"**median, {title}**",
                    *(median(some, judge) for judge in judges),
                    "",
                    "",
                    "",
                    "",
                )
            )
    return [
        *lines,
        row("**median of all**", *(median(runs, judge) for judge in judges), "", "", "", ""),
    ]


def same_kind(runs: Sequence[Any]) -> str:
    """Of the judges made from other rows, the one whose recipe is that of the judge that chose."""
    return "same kind" if "same kind" in runs[0]["judges"] else "anchored trees"


def gain(runs: Sequence[Any], judge: str) -> float:
    """By which share the area is smaller than that of the explained game's Shapley value."""
    shapley = "TreeSHAP path" if "TreeSHAP path" in runs[0]["methods"] else "marginal Shapley"
    return 1 - relative(runs, judge, OURS, shapley)[0]


def median(runs: Mapping[str, Sequence[Any]], judge: str) -> str:
    return f"**{np.median([relative(of, judge, OURS)[0] for of in runs.values()]):.2f}**".replace(
        "0.", "."
    )


def page() -> None:
    """The tables between the marks of the page."""
    truth = gathered("truth")
    real = gathered("real")
    parts = {
        "truth, trees": (truth_table, of_trees_only(truth, True)),
        "truth, other models": (truth_table, of_trees_only(truth, False)),
        "real, trees": (real_table, of_trees_only(real, True)),
        "real, other models": (real_table, of_trees_only(real, False)),
    }
    written(
        PAGE,
        {
            name: table(runs) if runs else ["Not measured yet."]
            for name, (table, runs) in parts.items()
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("group", choices=["truth", "real", "page"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="runs whose name holds this")
    given = parser.parse_args()
    if given.group == "page":
        page()
    else:
        run(given.group, given.seeds, given.only)


if __name__ == "__main__":
    main()
