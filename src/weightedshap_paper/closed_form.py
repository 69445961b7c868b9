"""The paper's Section 3 and its example: two features, a hundred features, and the errors of
estimates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure

import weightedshap as ws
from weightedshap._checks import FloatArray
from weightedshap.curves import area, mean_interval, order_of
from weightedshap.selection import best_weight
from weightedshap_paper import figures
from weightedshap_paper.experiment import Case, Claim, Experiment, Numbers, Runs, Settings, across
from weightedshap_paper.family import MISSING
from weightedshap_paper.linear_gaussian import LinearGaussian, contributions

CORRELATIONS = (0.2, 0.6)
ORDERS = 1400  # of the features, walked for each row: about where the paper's stopping rule ends
SWEEP = tuple(round(0.1 * k, 1) for k in range(10))
TWO_MODELS = {"1.5x1+x2": (1.5, 1.0), "0.5x1+x2": (0.5, 1.0)}
ENDS = {"first": "Δ_1", "Shapley": "Shapley", "last": "Δ_d"}
WHERE = {
    "learned": "on the learned game",
    "true": "same orders on the true game",
    "exact": "with exact Δ",
}
PAPER_AREAS = {"last": "1.49 ± 0.06", "Shapley": "1.65 ± 0.08", "WeightedSHAP": "0.77 ± 0.03"}
PAPER_ERRORS = {"last": "9.23 ± 0.02", "Shapley": "6.16 ± 0.04", "WeightedSHAP": "7.90 ± 0.11"}


def wrong_choice(beta: FloatArray, rho: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ℰ(1) − ℰ(2) at points x (n, 2), ℰ(k) = |f(x) − E[f(X) | x_k]|, and whether Shapley ranks the
    wrong one first."""
    delta = contributions(x, beta, rho)  # (n, 2, 2)
    left = np.abs((x @ beta)[:, None] - delta[:, 0])  # v({k}) = Δ_1(x_k)
    shapley = np.abs(delta.mean(axis=1))
    return left[:, 0] - left[:, 1], (left[:, 0] < left[:, 1]) != (shapley[:, 0] > shapley[:, 1])


def square(cells: int, half: float = 2.0) -> FloatArray:
    """Centres of cells × cells cells of [−half, half]²: (cells², 2), x_1 fastest."""
    centres = (np.arange(cells) + 0.5) / cells * 2 * half - half
    return np.stack(np.meshgrid(centres, centres), axis=-1).reshape(-1, 2)


def run_two(case: Case, settings: Settings, rng: np.random.Generator) -> Numbers:
    """The share of the square where Shapley picks the wrong feature, for ρ = 0, 0.1, … 0.9."""
    points = square(200 if settings.quick else 800)
    beta = np.array(TWO_MODELS[case.name])
    return {"rho": SWEEP, "share": [wrong_choice(beta, rho, points)[1].mean() for rho in SWEEP]}


def claims_two(runs: Runs) -> list[Claim]:
    share = {case.words: dict(zip(of[0]["rho"], of[0]["share"])) for case, of in runs.items()}
    text = "Two features: there is a region where Shapley picks the less influential feature"
    shown = "; ".join(
        f"{case}: {of[0.2]:.1%} at ρ = 0.2, {of[0.6]:.1%} at 0.6" for case, of in share.items()
    )
    present = [of[rho] > 0.001 for of in share.values() for rho in CORRELATIONS]
    claims = [Claim(text, "in all four panels", shown, present)]
    text = "Two features: that region grows with the correlation"
    shown = "; ".join(f"{case}: {of[0.0]:.1%} … {of[0.9]:.1%}" for case, of in share.items())
    rising = [all(a < b for a, b in pairwise(of.values())) for of in share.values()]
    return [*claims, Claim(text, "ρ = 0.2 to 0.6", f"ρ = 0 … 0.9 in steps of 0.1: {shown}", rising)]


def draw_two(runs: Runs) -> Figure:
    panels = {
        f"f = {name}, ρ = {rho}": wrong_choice(np.array(beta), rho, square(200))
        for name, beta in TWO_MODELS.items()
        for rho in CORRELATIONS
    }
    return figures.two_features(
        panels, {case.words: (of[0]["rho"], of[0]["share"]) for case, of in runs.items()}
    )


def run_hundred(case: Case, settings: Settings, rng: np.random.Generator) -> Numbers:
    """Recovery curves and areas (divided by d) of Δ_1, Shapley and Δ_d, all exact."""
    problem = LinearGaussian.drawn(case.rho, settings.rows, rng)
    d = len(problem.beta)
    family = ws.weights.first(d) | ws.weights.shapley(d) | ws.weights.last(d)
    curves = problem.recovery(order_of(family.phi(problem.contributions())))  # (m, 3, d + 1)
    mean, margin = mean_interval(curves)
    areas, area_margin = (dict(zip(family.labels, of)) for of in mean_interval(area(curves) / d))
    found = {"area": areas, "area_margin": area_margin}
    return {"methods": family.labels, "curve": mean, "curve_margin": margin, **found}


def claims_hundred(runs: Runs) -> list[Claim]:
    areas = {
        case: {name: across(of, "area", name).mean() for name in ENDS} for case, of in runs.items()
    }
    every = [run["area"] for of in runs.values() for run in of]
    ordered = [of["last"] < of["Shapley"] < of["first"] for of in every]
    shown = "; ".join(
        f"{case.words}: " + ", ".join(f"{label} {of[name]:.2f}" for name, label in ENDS.items())
        for case, of in areas.items()
    )
    text = "d = 100: area of Δ_d < Shapley < Δ_1 (areas divided by d)"
    claims = [
        Claim(
            text,
            "order in both settings",
            f"{shown}; in {sum(ordered)} of {len(every)} runs",
            ordered,
        )
    ]
    gaps = {case: of["Shapley"] - of["last"] for case, of in areas.items()}
    if len(gaps) == len(CORRELATIONS):
        text = "d = 100: the gap between Shapley and Δ_d is larger at ρ = 0.6"
        shown = ", ".join(f"{case.words}: {gap:.2f}" for case, gap in gaps.items())
        claims.append(Claim(text, "larger", shown, [gaps[Case(rho=0.6)] > gaps[Case(rho=0.2)]]))
    return claims


def estimated(
    case: Case, settings: Settings, rng: np.random.Generator
) -> tuple[LinearGaussian, ws.Explanation]:
    """The same setting, and an explanation by a learned game in the place of the known one."""
    problem = LinearGaussian.drawn(
        case.rho, settings.rows, rng, n=3000 if settings.quick else 10_000
    )
    walks = partial(ws.estimators.permutation, evaluations=ORDERS * (len(problem.beta) + 1))
    explainer = ws.Explainer(
        problem.predict,
        problem.X_train,
        game=case.game,
        estimator=walks if case.game == "neural_surrogate" else "auto",
        keep_contributions=True,
        random_state=int(rng.integers(2**31)),
        progress=False,
    )
    return problem, explainer(problem.X)


def relative_difference(a: FloatArray, b: FloatArray) -> FloatArray:
    """|A − B| / max(|A|, |B|), the paper's; 0 where both are 0."""
    size = np.maximum(np.abs(a), np.abs(b))
    return np.asarray(np.abs(a - b) / np.where(size > 0, size, 1.0))


def run_example(case: Case, settings: Settings, rng: np.random.Generator) -> Numbers:
    """Areas (divided by d) and estimation errors of Δ_d, Shapley and WeightedSHAP.

    Weights are chosen on the learned game. Areas are measured on the learned and on the true game;
    errors are √Σ_i of squared relative differences between φ̂_w and the true φ_w of the same w.
    """
    problem, explanation = estimated(case, settings, rng)
    d = len(problem.beta)
    family = explanation.family
    true, learned = (
        family.phi(delta)
        for delta in (problem.contributions(), np.asarray(explanation.contributions))
    )
    areas = {
        "learned": -explanation.scores / d,
        "true": area(problem.recovery(order_of(learned))) / d,
        "exact": area(problem.recovery(order_of(true))) / d,
    }
    uniform, _, last = family.reference_positions
    chosen = {
        "last": last,
        "Shapley": uniform,
        "WeightedSHAP": best_weight(explanation.scores, family),
    }
    exact = chosen | {"WeightedSHAP": best_weight(-areas["exact"], family)}
    return {
        "area": {
            where: _picked(of, exact if where == "exact" else chosen) for where, of in areas.items()
        },
        "error": _picked(np.sqrt((relative_difference(learned, true) ** 2).sum(axis=-1)), chosen),
        "distance": _picked(np.sqrt(((learned - true) ** 2).sum(axis=-1)), chosen),
        "twelve_weights": (
            areas["learned"][:, [label != MISSING for label in family.labels]].min(axis=1).mean()
        ),
        "relative_error": explanation.game_info.get("relative_error"),
    }


def _picked(values: FloatArray, chosen: Numbers) -> dict[str, tuple[float, float]]:
    """Mean and standard error over rows of a table (rows, weights), at the weight that each row
    chose."""
    columns = {name: values[np.arange(len(values)), at] for name, at in chosen.items()}
    return {
        name: (column.mean(), column.std() / np.sqrt(len(column)))
        for name, column in columns.items()
    }


def _claims_of_example(case: Case, runs: Sequence[Numbers]) -> list[Claim]:
    title = f"Example, {case.words}"
    areas = {where: _means(runs, "area", where) for where in WHERE}
    error = _means(runs, "error")
    distance = _means(runs, "distance")
    ratios = {where: of["WeightedSHAP"] / of["last"] for where, of in areas.items()}
    shown = "; ".join(f"{WHERE[where]} {_three(of)}" for where, of in areas.items())
    twelve = (
        f"with 12 weights, without Beta(32,1), {across(runs, 'twelve_weights').mean():.2f} on the"
        " learned game"
    )
    measured = [areas[where] for where in ("learned", "true")]
    return [
        Claim(
            f"{title}: WeightedSHAP has the smallest area of Δ_d, Shapley, WeightedSHAP (divided"
            " by d)",
            ", ".join(PAPER_AREAS.values()),
            f"{shown}; {twelve}",
            [all(of["WeightedSHAP"] < of[name] for of in measured) for name in ("last", "Shapley")],
        ),
        Claim(
            f"{title}: WeightedSHAP's area is about half of Δ_d's",
            "0.77 / 1.49 = 0.52",
            ", ".join(f"{WHERE[where]} {ratio:.2f}" for where, ratio in ratios.items()),
            [ratios[where] < 0.65 for where in ("learned", "true")],
        ),
        Claim(
            f"{title}: the estimation error of Shapley < WeightedSHAP < Δ_d",
            ", ".join(PAPER_ERRORS.values()),
            f"{_three(error)}; as Euclidean distance {_three(distance)}",
            [error["Shapley"] < error["WeightedSHAP"], error["WeightedSHAP"] < error["last"]],
        ),
    ]


def _means(runs: Sequence[Numbers], *keys: str) -> dict[str, float]:
    """Means over the runs of Δ_d, Shapley and WeightedSHAP, each of which stands there with a
    standard error."""
    return {name: float(across(runs, *keys, name, 0).mean()) for name in PAPER_AREAS}


def _three(values: Numbers) -> str:
    return ", ".join(f"{value:.2f}" for value in values.values())


def run_relative(case: Case, settings: Settings, rng: np.random.Generator) -> Numbers:
    """The relative difference of Δ̂_j and Δ_j, a mean over features and rows, for every size j."""
    problem, explanation = estimated(case, settings, rng)
    # (m, d, d).
    difference = relative_difference(np.asarray(explanation.contributions), problem.contributions())
    mean, margin = mean_interval(difference.mean(axis=-1))
    return {
        "difference": mean,
        "margin": margin,
        "relative_error": explanation.game_info.get("relative_error"),
    }


def _largest_at_last(case: Case, curves: FloatArray) -> Claim:
    """The claim from curves (runs, d) over the sizes."""
    curve = curves.mean(axis=0)
    d = curves.shape[1]
    return Claim(
        f"Estimates, {case.words}: the relative difference is largest at j = d",
        "at j = 100",
        f"{curve[-1]:.2f} at j = {d}, {curve[d // 2]:.2f} in the middle, {curve[0]:.2f} at j = 1; "
        f"the largest is at j = {int(curve.argmax()) + 1}",
        [at == d - 1 for at in curves.argmax(axis=1)],
    )


TWO = Experiment(
    "two features: where Shapley picks the wrong one",
    lambda settings: [Case(name) for name in TWO_MODELS],
    run_two,
    draw_two,
    claims_two,
    depends=("quick",),
    notes=("The region is a cone, so that its share does not depend on the size of the square.",),
)
HUNDRED = Experiment(
    "a hundred features: recovery curves of Δ_1, Shapley and Δ_d in closed form",
    lambda settings: [Case(rho=rho) for rho in CORRELATIONS],
    run_hundred,
    lambda runs: figures.recovery({case.words: of[0] for case, of in runs.items()}, ENDS),
    claims_hundred,
    depends=("seed", "rows"),
    notes=(
        (
            "The figure shows the first run, and 95 % intervals over its rows; the areas above are"
            " means of all runs."
        ),
    ),
)
EXAMPLE = Experiment(
    "the example: areas and estimation errors of Δ_d, Shapley and WeightedSHAP at ρ = 0.6",
    lambda settings: [Case(game=settings.game, rho=0.6)],
    run_example,
    claims=lambda runs: [
        claim for case, of in runs.items() for claim in _claims_of_example(case, of)
    ],
    game="neural_surrogate",
    notes=(
        (
            "The paper's areas are sums over k divided by d; with exact Δ its Shapley area is met"
            " and its Δ_d area is not, so its example is read as one of estimates."
        ),
        (
            "The paper does not say what its estimation error is. Here it is √Σ_i of squared"
            " relative differences, the norm that gives numbers of the printed size (10 if every"
            " difference is 1)."
        ),
    ),
)
RELATIVE = Experiment(
    "the relative difference of estimated and true contributions, by size",
    lambda settings: [Case(game=settings.game, rho=rho) for rho in reversed(CORRELATIONS)],
    run_relative,
    lambda runs: figures.by_size(
        {case.words: across(of, "difference").mean(axis=0) for case, of in runs.items()}
    ),
    lambda runs: [_largest_at_last(case, across(of, "difference")) for case, of in runs.items()],
    game="neural_surrogate",
)
