"""Write the pages of benchmarks from the runs kept in results/, without measuring anything.

`make bench-page` runs this script. docs/honest-rankings.md and the tables of speed come from
`honest_rankings.py page` and `peers.py page`; this adds the samplers, a summary of the rankings,
the versions, and every comparison in which a peer is ahead.
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
    """Return the runs of the samplers."""
    return json.loads((peers.KEPT / "samplers.json").read_text())


def error(errors: Errors, game: str, budget: str, weights: str, method: str) -> float:
    """Return the root mean square error over the seeds; NaN where a method was not run."""
    by_seed = errors.get(f"{game} | {budget} | {weights} | {method}", {})
    return float(np.sqrt(np.mean(np.square(list(by_seed.values()))))) if by_seed else np.nan


def compare_with_best_peer(
    errors: Errors, game: str, budget: str, weights: str
) -> tuple[float, str] | None:
    """Return our error ÷ that of the best peer, and the name of the peer; None without a peer."""
    methods = {key.split(" | ")[3] for key in errors} - set(OURS)
    by_method = {method: error(errors, game, budget, weights, method) for method in sorted(methods)}
    measured = {method: value for method, value in by_method.items() if not np.isnan(value)}
    if not measured:
        return None
    best = min(measured, key=measured.__getitem__)
    return error(errors, game, budget, weights, "stratified") / measured[best], best


def sampler_table() -> list[str]:
    """Tabulate games × budgets: our error ÷ that of the best peer, for Shapley and Banzhaf."""
    errors = samplers()["errors"]
    games = sorted({key.split(" | ")[0] for key in errors})
    header = [f"{weights}, {budget}" for weights in WEIGHTS for budget in BUDGETS]
    lines = [row("game", *header), rule(1 + len(header))]
    for game in games:
        ratios = [
            compare_with_best_peer(errors, game, budget, weights)
            for weights in WEIGHTS
            for budget in BUDGETS
        ]
        lines.append(
            row(game, *("–" if one is None else f"{one[0]:.2f} {one[1]}" for one in ratios))
        )
    return lines


def ranking_table() -> list[str]:
    """Tabulate the rankings for each kind of model: judged by the truth, and by other rows."""
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
    """Return a line for every comparison in which a peer is ahead."""
    lines = [f"* {line}" for line in [*ahead_in_speed(), *ahead_in_errors(), *ahead_in_rankings()]]
    return lines or ["* Nowhere, in the runs that are kept."]


def ahead_in_speed() -> Iterator[str]:
    """Yield the comparisons of time in which a peer is faster."""
    for group, game in {
        "path": "path-dependent",
        "interventional": "interventional",
        "surrogate": "surrogate",
    }.items():
        for (ours, peer), ratios in ratios_of(group).items():
            if slower := {name: ratio for name, ratio in ratios.items() if ratio > 1}:
                most = max(slower, key=slower.__getitem__)
                what = ours.removeprefix("ours, ")
                yield (
                    f"{peer} ({game} game): its Shapley values are faster than our *{what}* in"
                    f" {len(slower)} of {len(ratios)} settings, by a factor of at most"
                    f" {slower[most]:.1f} ({most})"
                )
    for name, run in peers.kept("end_to_end").items():
        ours, *others = ((method, one["seconds"]) for method, one in run["times"].items() if one)
        for peer, seconds in (other for other in others if other[1] < ours[1]):
            yield (
                f"{peer} ({name}, from a model to 1,000 rows): faster than ours by a factor of"
                f" {ours[1] / seconds:.1f}"
            )
    cold = {name: run["times"]["CPU"]["seconds"] for name, run in peers.kept("cold").items()}
    ours, shap = (cold[f"{name}, trees: first row"] for name in ("weightedshap", "shap"))
    again = cold["… from the second start on"]
    yield (
        f"shap, first row of a new process: {shap:.1f} s; ours takes {ours:.1f} s at the first"
        f" start, when it compiles, and {again:.1f} s at later starts"
    )


def ratios_of(group: str) -> dict[tuple[str, str], dict[str, float]]:
    """Return the seconds of our methods ÷ those of peers, by setting, where both were timed."""
    ratios: dict[tuple[str, str], dict[str, float]] = {}
    for name, run in peers.kept(group).items():
        seconds = {method: one["seconds"] for method, one in run["times"].items() if one}
        for ours, peer in (
            (ours, peer) for ours in seconds for peer in seconds if peers.of_us(ours, peer)
        ):
            ratios.setdefault((ours, peer), {})[name] = seconds[ours] / seconds[peer]
    return ratios


def ahead_in_errors() -> Iterator[str]:
    """Yield the comparisons of samplers in which a peer has the smaller error."""
    errors = samplers()["errors"]
    for game in sorted({key.split(" | ")[0] for key in errors}):
        for weights in WEIGHTS:
            for budget in BUDGETS:
                comparison = compare_with_best_peer(errors, game, budget, weights)
                if comparison is not None and comparison[0] > 1.005:
                    ratio, peer = comparison
                    yield (
                        f"{peer} ({weights} at {budget}; {game}): our error is {ratio:.2f} times as"
                        " large"
                    )


def ahead_in_rankings() -> Iterator[str]:
    """Yield the comparisons of rankings in which another method has the smaller area."""
    for name, runs in honest_rankings.gathered("real").items():
        ratio, margin = honest_rankings.relative(runs, "anchored network", honest_rankings.OURS)
        if ratio - margin > 1:
            best = honest_rankings.best(runs, "anchored network")
            area = f"our area is {ratio:.2f} ± {margin:.2f} times as large"
            yield f"{best} ({name}; judged by networks of other rows): {area}"


def versions() -> list[str]:
    """Return lines with the versions of Python and packages, of the times and of the samplers."""
    environments = {
        tuple(sorted({**run["versions"], "Python": run["python"]}.items()))
        for group in peers.GROUPS
        for run in peers.kept(group).values()
    }
    lines = [_version_line("Speed", dict(one)) for one in sorted(environments)]
    return [*lines, _version_line("Samplers", samplers()["versions"])]


def _version_line(what: str, version_of: Mapping[str, str]) -> str:
    """Return a line of packages with their versions."""
    packages = [f"{SHOWN.get(name, name)} {version}" for name, version in version_of.items()]
    return f"* {what}: {', '.join(packages)}"


def readable(text: str) -> str:
    """Return text with settings in words, and with commas in large numbers."""
    for setting, words in {
        "library = ": "",
        "depth = -1": "31 leaves",
        "depth = 6": "depth 6",
    }.items():
        text = text.replace(setting, words)
    return re.sub(r"(?<== )\d{4,}", lambda number: f"{int(number[0]):,}", text)


def main() -> None:
    """Write both pages."""
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
