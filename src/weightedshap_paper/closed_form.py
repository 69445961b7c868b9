"""The paper's Section 3 and its example: two features, a hundred features, errors of estimates.

All of them use the linear-Gaussian setting of `linear_gaussian`, where the truth is known.
"""

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
ORDERS = 1400  # random orders for each row: about where the paper's stopping rule ends
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
    """Return how much two features differ in error at points x, and if Shapley ranks them wrongly.

    The difference is ℰ(1) − ℰ(2), where ℰ(k) = |f(x) − E[f(X) | x_k]| is the error that remains
    when only feature k is known. A ranking is wrong if the feature with the larger error is first.
    Points are (n, 2). f is linear with coefficients `beta`, and the two features have correlation
    `rho`. The two results are (n,).
    """
    delta = contributions(x, beta, rho)  # (n, 2, 2)
    error = np.abs((x @ beta)[:, None] - delta[:, 0])  # v({k}) = Δ_1(x_k)
    shapley = np.abs(delta.mean(axis=1))

    first_is_better = error[:, 0] < error[:, 1]
    shapley_takes_first = shapley[:, 0] > shapley[:, 1]
    return error[:, 0] - error[:, 1], first_is_better != shapley_takes_first


def square(cells: int, half: float = 2.0) -> FloatArray:
    """Return the centres of a grid of `cells` × `cells` cells on the square [−`half`, `half`]².

    The centres are (cells², 2), and x_1 varies fastest.
    """
    centres = (np.arange(cells) + 0.5) / cells * 2 * half - half
    return np.stack(np.meshgrid(centres, centres), axis=-1).reshape(-1, 2)


def run_two(case: Case, settings: Settings, rng: np.random.Generator) -> Numbers:
    """Compute how often Shapley ranks the worse of two features first, by their correlation.

    This is the share of points (x_1, x_2) on a grid over the square [−2, 2]², see `wrong_choice`,
    for the correlations 0, 0.1, …, 0.9.
    """
    points = square(200 if settings.quick else 800)
    beta = np.array(TWO_MODELS[case.name])
    return {"rho": SWEEP, "share": [wrong_choice(beta, rho, points)[1].mean() for rho in SWEEP]}


def claims_two(runs: Runs) -> list[Claim]:
    """Return the claims on how often Shapley ranks the worse of two features first."""
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
    """Draw the difference in error of two features, for each model and correlation ρ.

    The error ℰ(k) remains when only feature k is known; the panels show ℰ(1) − ℰ(2). Points are
    black where Shapley ranks the worse feature first. The last panel shows their share by ρ.
    """
    panels = {
        f"f = {name}, ρ = {rho}": wrong_choice(np.array(beta), rho, square(200))
        for name, beta in TWO_MODELS.items()
        for rho in CORRELATIONS
    }
    shares = {case.words: (of[0]["rho"], of[0]["share"]) for case, of in runs.items()}
    return figures.two_features(panels, shares)


def run_hundred(case: Case, settings: Settings, rng: np.random.Generator) -> Numbers:
    """Compute exact recovery curves and areas of three attributions for a hundred features.

    They are Δ_1 (the effect of each feature alone), Shapley, and Δ_d (its effect when it is added
    to all others). Areas are divided by d; curves and areas are means over rows, with 95 %
    intervals.
    """
    problem = LinearGaussian.draw(case.rho, settings.rows, rng)
    d = len(problem.beta)
    family = ws.weights.first(d) | ws.weights.shapley(d) | ws.weights.last(d)
    curves = problem.recovery(order_of(family.phi(problem.contributions())))  # (m, 3, d + 1)
    mean, margin = mean_interval(curves)
    areas, area_margin = mean_interval(area(curves) / d)
    return {
        "methods": family.labels,
        "curve": mean,
        "curve_margin": margin,
        "area": dict(zip(family.labels, areas, strict=True)),
        "area_margin": dict(zip(family.labels, area_margin, strict=True)),
    }


def claims_hundred(runs: Runs) -> list[Claim]:
    """Return the claims on the areas under the recovery curves of three attributions, d = 100.

    They are Δ_1, Shapley and Δ_d, see `run_hundred`.
    """
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


def explain_by_estimates(
    case: Case, settings: Settings, rng: np.random.Generator
) -> tuple[LinearGaussian, ws.Explanation]:
    """Draw a linear-Gaussian problem, and explain it by a learned game instead of the known one."""
    n = 3000 if settings.quick else 10_000
    problem = LinearGaussian.draw(case.rho, settings.rows, rng, n=n)
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
    """Return the paper's relative difference |a − b| / max(|a|, |b|); 0 where both are 0."""
    size = np.maximum(np.abs(a), np.abs(b))
    return np.asarray(np.abs(a - b) / np.where(size > 0, size, 1.0))


def run_example(case: Case, settings: Settings, rng: np.random.Generator) -> Numbers:
    """Run the paper's example; return areas and estimation errors of three attributions.

    They are Δ_d (the effect of a feature added to all others), Shapley and WeightedSHAP. The areas
    are those under the recovery curves, divided by d. The weights are chosen on the learned game.
    Areas are measured on the learned game, on the true game with the same orders, and with exact Δ.
    An error is √Σ_i of the squared relative differences between the estimate φ̂_w and the true φ_w
    for the same w.
    """
    problem, explanation = explain_by_estimates(case, settings, rng)
    d = len(problem.beta)
    family = explanation.family
    true = family.phi(problem.contributions())
    learned = family.phi(np.asarray(explanation.contributions))
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
    squared_error = relative_difference(learned, true) ** 2
    in_print = [label != MISSING for label in family.labels]
    return {
        "area": {
            where: _mean_of_chosen(of_weights, exact if where == "exact" else chosen)
            for where, of_weights in areas.items()
        },
        "error": _mean_of_chosen(np.sqrt(squared_error.sum(axis=-1)), chosen),
        "distance": _mean_of_chosen(np.sqrt(((learned - true) ** 2).sum(axis=-1)), chosen),
        "twelve_weights": areas["learned"][:, in_print].min(axis=1).mean(),
        "relative_error": explanation.game_info.get("relative_error"),
    }


def _mean_of_chosen(values: FloatArray, chosen: Numbers) -> dict[str, tuple[float, float]]:
    """Return the mean and standard error over the rows of `values` at the weight of each method.

    `values` are (rows, weights). `chosen` has the position of each method's weight: one for all
    rows, or one for each row.
    """
    columns = {name: values[np.arange(len(values)), at] for name, at in chosen.items()}
    return {
        name: (column.mean(), column.std() / np.sqrt(len(column)))
        for name, column in columns.items()
    }


def _claims_of_example(case: Case, runs: Sequence[Numbers]) -> list[Claim]:
    """Return the claims on areas and estimation errors in the paper's example, for one case."""
    title = f"Example, {case.words}"
    areas = {where: _means(runs, "area", where) for where in WHERE}
    error = _means(runs, "error")
    distance = _means(runs, "distance")
    ratios = {where: of["WeightedSHAP"] / of["last"] for where, of in areas.items()}
    shown = "; ".join(f"{WHERE[where]} {_format_values(of)}" for where, of in areas.items())
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
            f"{_format_values(error)}; as Euclidean distance {_format_values(distance)}",
            [error["Shapley"] < error["WeightedSHAP"], error["WeightedSHAP"] < error["last"]],
        ),
    ]


def _means(runs: Sequence[Numbers], *keys: str) -> dict[str, float]:
    """Return the mean over runs of the value at `keys`, as a dict by method.

    The methods are Δ_d, Shapley and WeightedSHAP. Each run stores the value as a pair with its
    standard error, which is ignored.
    """
    return {name: float(across(runs, *keys, name, 0).mean()) for name in PAPER_AREAS}


def _format_values(values: Numbers) -> str:
    """Format the values of a mapping as text, such as "1.50, 1.65, 0.77"."""
    return ", ".join(f"{value:.2f}" for value in values.values())


def run_relative(case: Case, settings: Settings, rng: np.random.Generator) -> Numbers:
    """Estimate contributions; return their mean relative difference from the truth, by size j.

    The mean is over features and rows.
    """
    problem, explanation = explain_by_estimates(case, settings, rng)
    estimates = np.asarray(explanation.contributions)
    difference = relative_difference(estimates, problem.contributions())  # (m, d, d)
    mean, margin = mean_interval(difference.mean(axis=-1))
    return {
        "difference": mean,
        "margin": margin,
        "relative_error": explanation.game_info.get("relative_error"),
    }


def _largest_at_last(case: Case, curves: FloatArray) -> Claim:
    """Return the claim that estimated contributions are worst at the largest size j = d.

    `curves` (runs, d) are the relative differences from the true contributions by size.
    """
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
