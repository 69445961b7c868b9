"""The paper's Section 3 and its example: two features, a hundred features, and the errors of estimates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import weightedshap as ws
from weightedshap.checks import FloatArray
from weightedshap.curves import area, mean_interval, order_of
from weightedshap.selection import best_weight
from weightedshap_paper import figures
from weightedshap_paper.family import MISSING
from weightedshap_paper.linear_gaussian import LinearGaussian, contributions
from weightedshap_paper.runner import Claim, Experiment, Numbers, Runs, Settings, shown_case, verdict

__all__ = ["EXAMPLE", "HUNDRED", "RELATIVE", "TWO"]

CORRELATIONS = (0.2, 0.6)
ORDERS = 1400  # of the features, walked for each row: about where the paper's stopping rule ends
SWEEP = tuple(round(0.1 * k, 1) for k in range(10))
TWO_MODELS = {"1.5x1+x2": (1.5, 1.0), "0.5x1+x2": (0.5, 1.0)}
ENDS = {"first": "Δ_1", "Shapley": "Shapley", "last": "Δ_d"}
PAPER_AREAS = {"last": "1.49 ± 0.06", "Shapley": "1.65 ± 0.08", "WeightedSHAP": "0.77 ± 0.03"}
PAPER_ERRORS = {"last": "9.23 ± 0.02", "Shapley": "6.16 ± 0.04", "WeightedSHAP": "7.90 ± 0.11"}


# Two features


def wrong_choice(beta: FloatArray, rho: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ℰ(1) − ℰ(2) at points x (n, 2), and whether Shapley ranks the less influential feature first.

    ℰ(k) = |f(x) − E[f(X) | x_k]| is what is left of the prediction when only x_k is known.
    """
    delta = contributions(x, beta, rho)  # (n, 2, 2)
    left = np.abs((x @ beta)[:, None] - delta[:, 0])  # v({k}) = Δ_1(x_k)
    shapley = np.abs(delta.mean(axis=1))
    return left[:, 0] - left[:, 1], (left[:, 0] < left[:, 1]) != (shapley[:, 0] > shapley[:, 1])


def square(cells: int, half: float = 2.0) -> FloatArray:
    """Centres of cells × cells cells of [−half, half]²: (cells², 2), x_1 fastest."""
    centres = (np.arange(cells) + 0.5) / cells * 2 * half - half
    return np.stack(np.meshgrid(centres, centres), axis=-1).reshape(-1, 2)


def run_two(case: str, settings: Settings, rng: np.random.Generator) -> Numbers:
    """The share of the square where Shapley picks the wrong feature, for ρ = 0, 0.1, … 0.9."""
    points = square(200 if settings.quick else 800)
    shares = [wrong_choice(np.array(TWO_MODELS[case]), rho, points)[1].mean() for rho in SWEEP]
    return {"rho": SWEEP, "share": shares}


def claims_two(runs: Runs) -> list[Claim]:
    share = {case: dict(zip(of[0]["rho"], of[0]["share"])) for case, of in runs.items()}
    shown = "; ".join(f"{case}: {of[0.2]:.1%} at ρ = 0.2, {of[0.6]:.1%} at 0.6" for case, of in share.items())
    lines = [list(of.values()) for of in share.values()]
    rising = "; ".join(f"{case}: {of[0.0]:.1%} … {of[0.9]:.1%}" for case, of in share.items())
    return [
        Claim(
            "Two features: there is a region where Shapley picks the less influential feature",
            "in all four panels",
            shown,
            verdict([of[rho] > 0.001 for of in share.values() for rho in CORRELATIONS]),
        ),
        Claim(
            "Two features: that region grows with the correlation",
            "ρ = 0.2 to 0.6",
            f"ρ = 0 … 0.9 in steps of 0.1: {rising}",
            verdict([all(a < b for a, b in pairwise(line)) for line in lines]),
        ),
    ]


def draw_two(runs: Runs) -> Any:
    panels = {
        f"f = {case}, ρ = {rho}": wrong_choice(np.array(TWO_MODELS[case]), rho, square(200))
        for case in TWO_MODELS
        for rho in CORRELATIONS
    }
    return figures.two_features(panels, {case: (of[0]["rho"], of[0]["share"]) for case, of in runs.items()})


# A hundred features


def run_hundred(case: str, settings: Settings, rng: np.random.Generator) -> Numbers:
    """Recovery curves and areas (divided by d) of Δ_1, Shapley and Δ_d, all exact."""
    problem = LinearGaussian.drawn(_rho(case), settings.rows, rng)
    d = len(problem.beta)
    family = ws.weights.first(d) | ws.weights.shapley(d) | ws.weights.last(d)
    curves = problem.recovery(order_of(family.phi(problem.contributions())))  # (m, 3, d + 1)
    mean, margin = mean_interval(curves)
    areas, area_margin = mean_interval(area(curves) / d)
    return {
        "methods": family.labels,
        "curve": mean,
        "curve_margin": margin,
        "area": dict(zip(family.labels, areas)),
        "area_margin": dict(zip(family.labels, area_margin)),
    }


def claims_hundred(runs: Runs) -> list[Claim]:
    areas = {case: {name: _mean(of, "area", name) for name in ENDS} for case, of in runs.items()}
    every = [run["area"] for of in runs.values() for run in of]
    shown = "; ".join(
        f"{shown_case(case)}: " + ", ".join(f"{label} {of[name]:.2f}" for name, label in ENDS.items())
        for case, of in areas.items()
    )
    gaps = {case: of["Shapley"] - of["last"] for case, of in areas.items()}
    claims = [
        Claim(
            "d = 100: area of Δ_d < Shapley < Δ_1 (areas divided by d)",
            "order in both settings",
            f"{shown}; in {sum(_ordered(of) for of in every)} of {len(every)} runs",
            verdict([_ordered(of) for of in every]),
        ),
    ]
    if len(gaps) == len(CORRELATIONS):
        text = "d = 100: the gap between Shapley and Δ_d is larger at ρ = 0.6"
        shown = ", ".join(f"{shown_case(case)}: {gap:.2f}" for case, gap in gaps.items())
        claims.append(Claim(text, "larger", shown, verdict([gaps["rho=0.6"] > gaps["rho=0.2"]])))
    return claims


def _ordered(areas: Numbers) -> bool:
    return bool(areas["last"] < areas["Shapley"] < areas["first"])


def draw_hundred(runs: Runs) -> Any:
    return figures.recovery({shown_case(case): of[0] for case, of in runs.items()}, ENDS)


# Estimates


def estimated(case: str, settings: Settings, rng: np.random.Generator) -> tuple[LinearGaussian, ws.Explanation]:
    """The same setting, and an explanation by a learned game in the place of the known one."""
    rho, game = case.split("/")
    problem = LinearGaussian.drawn(_rho(rho), settings.rows, rng, n=3000 if settings.quick else 10_000)
    walks = partial(ws.estimators.permutation, evaluations=ORDERS * (len(problem.beta) + 1))
    explainer = ws.Explainer(
        problem.predict,
        problem.X_train,
        game=game,
        estimator=walks if game == "neural_surrogate" else "auto",
        keep_contributions=True,
        random_state=int(rng.integers(2**31)),
        progress=False,
    )
    return problem, explainer(problem.X)


def relative_difference(a: FloatArray, b: FloatArray) -> FloatArray:
    """|A − B| / max(|A|, |B|), the paper's; 0 where both are 0."""
    size = np.maximum(np.abs(a), np.abs(b))
    return np.asarray(np.abs(a - b) / np.where(size > 0, size, 1.0))


def run_example(case: str, settings: Settings, rng: np.random.Generator) -> Numbers:
    """Areas (divided by d) and estimation errors of Δ_d, Shapley and WeightedSHAP.

    Weights are chosen on the learned game. Areas are measured on the learned and on the true game; errors are √Σ_i of
    squared relative differences between φ̂_w and the true φ_w of the same w.
    """
    problem, explanation = estimated(case, settings, rng)
    d, family = len(problem.beta), explanation.family
    known, learned = (family.phi(delta) for delta in (problem.contributions(), np.asarray(explanation.contributions)))
    areas = {"learned": -explanation.scores / d}
    areas["true"] = area(problem.recovery(order_of(learned))) / d
    areas["exact"] = area(problem.recovery(order_of(known))) / d
    error = np.sqrt((relative_difference(learned, known) ** 2).sum(axis=-1))
    chosen = best_weight(explanation.scores, family)
    exact = best_weight(-areas["exact"], family)
    pick = {name: _picker(family, chosen) for name in areas} | {"exact": _picker(family, exact)}
    return {
        "area": {name: pick[name](values) for name, values in areas.items()},
        "error": pick["learned"](error),
        "distance": pick["learned"](np.sqrt(((learned - known) ** 2).sum(axis=-1))),
        "twelve_weights": areas["learned"][:, [label != MISSING for label in family.labels]].min(axis=1).mean(),
        "relative_error": explanation.game_info.get("relative_error"),
    }


def _picker(family: ws.weights.WeightFamily, chosen: Any) -> Any:
    """Mean and standard error over rows of a table (rows, weights), at Δ_d, Shapley and the chosen weight."""
    uniform, _, last = family.reference_positions
    positions = {"last": np.full(len(chosen), last), "Shapley": np.full(len(chosen), uniform), "WeightedSHAP": chosen}

    def pick(values: FloatArray) -> dict[str, tuple[float, float]]:
        columns = {name: values[np.arange(len(at)), at] for name, at in positions.items()}
        return {name: (column.mean(), column.std() / np.sqrt(len(column))) for name, column in columns.items()}

    return pick


def claims_example(runs: Runs) -> list[Claim]:
    claims = []
    for case, of in runs.items():
        areas = {kind: {name: _mean(of, "area", kind, name, 0) for name in PAPER_AREAS} for kind in of[0]["area"]}
        error, distance = ({name: _mean(of, key, name, 0) for name in PAPER_AREAS} for key in ("error", "distance"))
        kinds = [areas[kind] for kind in ("learned", "true")]
        ratios = {kind: values["WeightedSHAP"] / values["last"] for kind, values in areas.items()}
        title = f"Example, {shown_case(case)}"
        claims += [
            Claim(
                f"{title}: WeightedSHAP has the smallest area of Δ_d, Shapley, WeightedSHAP (divided by d)",
                ", ".join(PAPER_AREAS.values()),
                "; ".join(f"{_WHERE[kind]} {_three(values)}" for kind, values in areas.items())
                + f"; with 12 weights, without Beta(32,1), {_mean(of, 'twelve_weights'):.2f} on the learned game",
                verdict([all(a["WeightedSHAP"] < a[name] for a in kinds) for name in ("last", "Shapley")]),
            ),
            Claim(
                f"{title}: WeightedSHAP's area is about half of Δ_d's",
                "0.77 / 1.49 = 0.52",
                ", ".join(f"{_WHERE[kind]} {ratio:.2f}" for kind, ratio in ratios.items()),
                verdict([ratios[kind] < 0.65 for kind in ("learned", "true")]),
            ),
            Claim(
                f"{title}: the estimation error of Shapley < WeightedSHAP < Δ_d",
                ", ".join(PAPER_ERRORS.values()),
                f"{_three(error)}; as Euclidean distance {_three(distance)}",
                verdict([error["Shapley"] < error["WeightedSHAP"], error["WeightedSHAP"] < error["last"]]),
            ),
        ]
    return claims


_WHERE = {"learned": "on the learned game", "true": "same orders on the true game", "exact": "with exact Δ"}


def _three(values: Numbers) -> str:
    return ", ".join(f"{values[name]:.2f}" for name in PAPER_AREAS)


def run_relative(case: str, settings: Settings, rng: np.random.Generator) -> Numbers:
    """The relative difference of Δ̂_j and Δ_j, a mean over features and rows, for every size j."""
    problem, explanation = estimated(case, settings, rng)
    estimate, truth = np.asarray(explanation.contributions), problem.contributions()
    difference = relative_difference(estimate, truth).mean(axis=-1)  # (m, d)
    mean, margin = mean_interval(difference)
    return {
        "difference": mean,
        "margin": margin,
        "relative_error": explanation.game_info.get("relative_error"),
    }


def claims_relative(runs: Runs) -> list[Claim]:
    claims = []
    for case, of in runs.items():
        curve = np.mean([run["difference"] for run in of], axis=0)
        largest = [int(np.argmax(run["difference"])) + 1 for run in of]
        claims.append(
            Claim(
                f"Estimates, {shown_case(case)}: the relative difference is largest at j = d",
                "at j = 100",
                f"{curve[-1]:.2f} at j = {len(curve)}, {curve[len(curve) // 2]:.2f} in the middle, {curve[0]:.2f} at "
                f"j = 1; the largest is at j = {int(curve.argmax()) + 1}",
                verdict([at == len(curve) for at in largest]),
            )
        )
    return claims


def draw_relative(runs: Runs) -> Any:
    return figures.by_size(
        {shown_case(case): np.mean([run["difference"] for run in of], axis=0) for case, of in runs.items()}
    )


def _rho(case: str) -> float:
    return float(case.removeprefix("rho="))


def _mean(runs: Sequence[Any], *keys: Any) -> float:
    """Mean over runs of the number at a path of keys."""
    values = list(runs)
    for key in keys:
        values = [value[key] for value in values]
    return float(np.mean(values))


TWO = Experiment(
    "two features: where Shapley picks the wrong one",
    lambda settings: tuple(TWO_MODELS),
    run_two,
    draw_two,
    claims_two,
    depends=("quick",),
    notes=("The region is a cone, so that its share does not depend on the size of the square.",),
)
HUNDRED = Experiment(
    "a hundred features: recovery curves of Δ_1, Shapley and Δ_d in closed form",
    lambda settings: tuple(f"rho={rho}" for rho in CORRELATIONS),
    run_hundred,
    draw_hundred,
    claims_hundred,
    depends=("seed", "rows"),
    notes=("The figure shows the first run, and 95 % intervals over its rows; the areas above are means of all runs.",),
)
EXAMPLE = Experiment(
    "the example: areas and estimation errors of Δ_d, Shapley and WeightedSHAP at ρ = 0.6",
    lambda settings: (f"rho=0.6/{settings.game}",),
    run_example,
    None,
    claims_example,
    game="neural_surrogate",
    notes=(
        "The paper's areas are sums over k divided by d; with exact Δ its Shapley area is met and its Δ_d area is not, "
        "so its example is read as one of estimates.",
        "The paper does not say what its estimation error is. Here it is √Σ_i of squared relative differences, the "
        "norm that gives numbers of the printed size (10 if every difference is 1).",
    ),
)
RELATIVE = Experiment(
    "the relative difference of estimated and true contributions, by size",
    lambda settings: tuple(f"rho={rho}/{settings.game}" for rho in reversed(CORRELATIONS)),
    run_relative,
    draw_relative,
    claims_relative,
    game="neural_surrogate",
)
