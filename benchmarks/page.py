"""The pages of benchmarks from the runs kept in results/: `make bench-page`. Nothing is measured
here.

docs/honest-rankings.md and the tables of speed come from `honest_rankings.py page` and `peers.py
page`; this adds the samplers, a summary of the rankings, the versions, and everything in which a
peer is ahead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import honest_rankings
import peers
from common import row, rule, written

BUDGETS = ("20 d", "100 d", "300 d")
WEIGHTS = ("Shapley", "Banzhaf")
SHOWN = {"woodelf_explainer": "woodelf-explainer", "xgboost-cpu": "xgboost"}
OURS = ("stratified", "permutation")

Errors = Mapping[str, Mapping[str, float]]


def samplers() -> dict[str, Any]:
    return json.loads((peers.KEPT / "samplers.json").read_text())


def error(errors: Errors, game: str, budget: str, weights: str, method: str) -> float:
    """Root mean square over the seeds; NaN where it was not run."""
    found = errors.get(f"{game} | {budget} | {weights} | {method}", {})
    return float(np.sqrt(np.mean(np.square(list(found.values()))))) if found else np.nan


def beside_the_best(
    errors: Errors, game: str, budget: str, weights: str
) -> tuple[float, str] | None:
    """Our error ÷ that of the best peer, and who that is."""
    methods = {key.split(" | ")[3] for key in errors} - set(OURS)
    found = {method: error(errors, game, budget, weights, method) for method in sorted(methods)}
    known = {method: value for method, value in found.items() if not np.isnan(value)}
    if not known:
        return None
    best = min(known, key=known.__getitem__)
    return error(errors, game, budget, weights, "stratified") / known[best], best


def sampler_table() -> list[str]:
    """Games × budgets, for each value that peers estimate too."""
    errors = samplers()["errors"]
    games = sorted({key.split(" | ")[0] for key in errors})
    header = [f"{weights}, {budget}" for weights in WEIGHTS for budget in BUDGETS]
    lines = [row("game", *header), rule(1 + len(header))]
    for game in games:
        found = [
            beside_the_best(errors, game, budget, weights)
            for weights in WEIGHTS
            for budget in BUDGETS
        ]
        lines.append(
            row(game, *("–" if one is None else f"{one[0]:.2f} {one[1]}" for one in found))
        )
    return lines


def ranking_table() -> list[str]:
    """One line for each kind of model: judged by the truth, and by rows that chose nothing."""
    truth = honest_rankings.gathered("truth")
    real = honest_rankings.gathered("real")
    lines = [
        row(
            "models",
            "by the truth, mean",
            "by networks of other rows, median",
            "by plain trees, median",
        ),
        rule(4),
    ]
    for name, trees in (("boosted trees", True), ("linear models and networks", False)):
        of_truth, of_real = (honest_rankings.of_trees_only(runs, trees) for runs in (truth, real))
        judged = [honest_rankings.median(of_real, judge) for judge in ("anchored network", "plain")]
        lines.append(
            row(name, honest_rankings.mean(of_truth, "truth", honest_rankings.OURS), *judged)
        )
    return lines


def ahead() -> list[str]:
    """A line for every comparison that we lose."""
    lines = [f"* {line}" for line in [*ahead_in_speed(), *ahead_in_errors(), *ahead_in_rankings()]]
    return lines or ["* Nowhere, in the runs that are kept."]


def ahead_in_speed() -> Iterator[str]:
    for group, game in {
        "path": "path-dependent",
        "interventional": "interventional",
        "surrogate": "surrogate",
    }.items():
        for (ours, peer), ratios in ratios_of(group).items():
            if slower := {name: ratio for name, ratio in ratios.items() if ratio > 1}:
                most = max(slower, key=slower.__getitem__)
                what = ours.removeprefix("ours, ")
                where = (
                    f"in {len(slower)} of {len(ratios)} settings our *{what}* takes longer than its"
                    " Shapley values"
                )
                yield (
                    f"{peer} ({game} game): {where}, at the most {slower[most]:.1f} times as long"
                    f" ({most})"
                )
    for name, run in peers.kept("end_to_end").items():
        ours, *others = ((method, one["seconds"]) for method, one in run["times"].items() if one)
        for peer, seconds in (other for other in others if other[1] < ours[1]):
            yield (
                f"{peer} ({name}, from a model to 1,000 rows): ours takes {ours[1] / seconds:.1f}"
                " times as long"
            )
    cold = {name: run["times"]["CPU"]["seconds"] for name, run in peers.kept("cold").items()}
    ours, shap = (cold[f"{name}, trees: first row"] for name in ("weightedshap", "shap"))
    again = cold["… from the second start on"]
    yield (
        f"shap, first row of a new process: {shap:.1f} s; ours {ours:.1f} s while it compiles,"
        f" {again:.1f} s later on"
    )


def ratios_of(group: str) -> dict[tuple[str, str], dict[str, float]]:
    """Seconds of each of our methods ÷ those of each peer, line by line where both were timed."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for name, run in peers.kept(group).items():
        known = {method: one["seconds"] for method, one in run["times"].items() if one}
        for ours, peer in (
            (ours, peer) for ours in known for peer in known if peers.of_us(ours, peer)
        ):
            found.setdefault((ours, peer), {})[name] = known[ours] / known[peer]
    return found


def ahead_in_errors() -> Iterator[str]:
    errors = samplers()["errors"]
    for game in sorted({key.split(" | ")[0] for key in errors}):
        for weights in WEIGHTS:
            for budget in BUDGETS:
                found = beside_the_best(errors, game, budget, weights)
                if found is not None and found[0] > 1.005:
                    yield (
                        f"{found[1]} ({weights} at {budget}; {game}): our error is {found[0]:.2f}"
                        " times its own"
                    )


def ahead_in_rankings() -> Iterator[str]:
    for name, runs in honest_rankings.gathered("real").items():
        ratio, margin = honest_rankings.relative(runs, "anchored network", honest_rankings.OURS)
        if ratio - margin > 1:
            best = honest_rankings.best(runs, "anchored network")
            told = f"our area is {ratio:.2f} ± {margin:.2f} times its own"
            yield f"{best} ({name}; judged by networks of other rows): {told}"


def versions() -> list[str]:
    """What all lines of speed were made with, and the samplers."""
    made = {
        tuple(sorted({**run["versions"], "Python": run["python"]}.items()))
        for group in peers.GROUPS
        for run in peers.kept(group).values()
    }
    told = [_listed("Speed", dict(one)) for one in sorted(made)]
    return [*told, _listed("Samplers", samplers()["versions"])]


def _listed(what: str, of: Mapping[str, str]) -> str:
    return (
        f"* {what}:"
        f" {', '.join(f'{SHOWN.get(name, name)} {version}' for name, version in of.items())}"
    )


def readable(text: str) -> str:
    """Settings as people say them."""
    for setting, said in {
        "library = ": "",
        "depth = -1": "31 leaves",
        "depth = 6": "depth 6",
    }.items():
        text = text.replace(setting, said)
    return re.sub(r"(?<== )\d{4,}", lambda number: f"{int(number[0]):,}", text)


def main() -> None:
    honest_rankings.page()
    peers.page()
    peers.PAGE.write_text(readable(peers.PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    parts = {
        "versions": versions,
        "samplers": sampler_table,
        "rankings": ranking_table,
        "ahead": ahead,
    }
    written(peers.PAGE, {mark: [readable(line) for line in make()] for mark, make in parts.items()})


if __name__ == "__main__":
    main()
