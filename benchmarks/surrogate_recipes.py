"""Which recipe of boosted trees learns E[f(X) | X_S = x_S] best, and how does it compare with a
network?

Every recipe trains on the same rows: the distinct training rows of the paper's boosting model. Its
error is the mean of (f(x) − s(x, S))² over rows that neither model nor surrogate has seen (the
estimation and test parts), 64 masks each, sizes uniform on 0..d; the part Var[f(X) | x_S] of it
cannot be removed by any surrogate.

    WEIGHTEDSHAP_DATA=… python benchmarks/surrogate_recipes.py [--datasets cpu wind] [--quick]
    [--network]

`--network` adds the paper's network (128-128 ELU on [x·S, S]), which needs torch. Prints Markdown
tables.
"""

import argparse
import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from weightedshap_paper import datasets, models

Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]
Surrogate = Callable[[Floats, Masks], Floats]

QUICK = ("boston", "airfoil", "phoneme")
N_PERMUTATIONS = 4096


@dataclass(frozen=True)
class Recipe:
    """How the trees are trained; the defaults are those of `TreeSurrogate`."""

    masks: int = 32  # per row, as long as there are at most `rows` masked rows
    rows: int = 200_000
    leaves: int = 63
    trees: int = 150
    rate: float = 0.1
    patience: int = 20
    bins: int = 63
    least: float = 1.0  # a leaf holds at least this many rows' worth of masks, and 20 masked rows
    antithetic: bool = False
    categories: tuple[int, ...] = ()  # columns of codes that are split into sets
    options: tuple[tuple[str, Any], ...] = ()


RECOMMENDED = Recipe()
QUANTISED = (
    ("use_quantized_grad", True),
    ("num_grad_quant_bins", 16),
    ("quant_train_renew_leaf", True),
)
RECIPES: dict[str, Recipe] = {
    "recommended": RECOMMENDED,
    "8 masks": replace(RECOMMENDED, masks=8),
    "16 masks": replace(RECOMMENDED, masks=16),
    "128 masks": replace(RECOMMENDED, masks=128),
    "at most 400k masked rows": replace(RECOMMENDED, rows=400_000),
    "masks in complementary pairs": replace(RECOMMENDED, antithetic=True),
    "300 trees of 31 leaves": replace(RECOMMENDED, leaves=31, trees=300),
    "75 trees of 127 leaves": replace(RECOMMENDED, leaves=127, trees=75),
    "rate 0.2, 75 trees": replace(RECOMMENDED, rate=0.2, trees=75),
    "leaves of 20 masked rows": replace(RECOMMENDED, least=0),
    "leaves of 3 rows": replace(RECOMMENDED, least=3),
    "31 bins": replace(RECOMMENDED, bins=31),
    "127 bins": replace(RECOMMENDED, bins=127),
    "half of the rows per tree": replace(
        RECOMMENDED, options=(("bagging_fraction", 0.5), ("bagging_freq", 1))
    ),
    "half of the features per tree": replace(RECOMMENDED, options=(("feature_fraction", 0.5),)),
    "goss": replace(RECOMMENDED, options=(("data_sample_strategy", "goss"),)),
    "extra trees": replace(RECOMMENDED, options=(("extra_trees", True),)),
    "path smoothing 20": replace(RECOMMENDED, options=(("path_smooth", 20.0),)),
    "lambda_l2 20": replace(RECOMMENDED, options=(("lambda_l2", 20.0),)),
    "quantised gradients": replace(RECOMMENDED, options=QUANTISED),
}


@dataclass(frozen=True)
class Outcome:
    """One surrogate on one dataset."""

    error: float
    seconds: float
    leaves: int


@dataclass(frozen=True)
class Problem:
    """One dataset with its model: rows and predictions to learn from and to judge by."""

    name: str
    task: str
    X: Floats
    f: Floats
    X_new: Floats
    f_new: Floats
    masks_new: Masks


def problem(name: str, n_masks: int = 64, most_rows: int = 1000) -> Problem:
    """The dataset `name`, the paper's boosting model on it, and masks to judge surrogates by."""
    data = datasets.prepare(name, np.random.default_rng(0))
    model = models.boosting(data, seed=0)
    X = np.unique(data.X_train, axis=0)
    rng = np.random.default_rng(1)
    unseen = rng.permutation(np.concatenate([data.X_est, data.X_test]))[:most_rows]
    X_new = np.repeat(unseen, n_masks, axis=0)
    return Problem(
        name,
        data.task,
        X,
        _predict(model, X),
        X_new,
        _predict(model, X_new),
        draw_masks(len(X_new), X.shape[1], rng),
    )


def draw_masks(n: int, d: int, rng: np.random.Generator) -> Masks:
    """Masks (n, d) whose size is uniform on 0..d and whose members, given the size, are uniform.

    Row by row a size and one of 4096 random orders is drawn, and the first features of that order
    are known.
    """
    ranks = rng.permuted(np.tile(np.arange(d, dtype=np.int16), (min(n, N_PERMUTATIONS), 1)), axis=1)
    sizes = rng.integers(0, d + 1, size=(n, 1))
    masks: Masks = ranks[rng.integers(len(ranks), size=n)] < sizes
    return masks


def held_out(X: NDArray[Any], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which rows are kept for stopping: 15 % of the distinct rows, at least 50 or a third; copies
    stay together."""
    _, group = np.unique(X, axis=0, return_inverse=True)
    k = int(group.max()) + 1
    chosen = np.zeros(k, dtype=bool)
    chosen[rng.permutation(k)[: max(int(0.15 * k), min(50, k // 3))]] = True
    out: NDArray[np.bool_] = chosen[group.ravel()]
    return out


def tree_surrogate(p: Problem, recipe: Recipe, n_threads: int) -> tuple[Surrogate, int]:
    """The trees of `recipe` for problem p, and how many leaves they have."""
    rng = np.random.default_rng(2)
    X = p.X.astype(np.float32)
    out = held_out(X, rng)
    m = max(1, min(recipe.masks, recipe.rows // int((~out).sum())))
    m_out = max(1, min(16, 20_000 // int(out.sum())))
    parameters = {
        "objective": "regression",
        "metric": "l2",
        "learning_rate": recipe.rate,
        "num_leaves": recipe.leaves,
        "min_data_in_leaf": max(20, int(recipe.least * m)),
        "max_bin": recipe.bins,
        "bin_construct_sample_cnt": 50_000,
        "enable_bundle": False,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": n_threads,
        "seed": 0,
        "verbose": -1,
        **dict(recipe.options),
    }
    masked = _masked(X[~out], p.f[~out], m, rng, recipe.antithetic)
    train = lgb.Dataset(*masked, params=parameters, categorical_feature=list(recipe.categories))
    validation = lgb.Dataset(*_masked(X[out], p.f[out], m_out, rng), reference=train)
    booster = lgb.train(
        parameters,
        train,
        num_boost_round=recipe.trees,
        valid_sets=[validation],
        callbacks=[lgb.early_stopping(recipe.patience, verbose=False)],
    )

    def surrogate(x: Floats, masks: Masks) -> Floats:
        return _predict(booster, np.where(masks, x.astype(np.float32), np.float32(np.nan)))

    trees = booster.dump_model(num_iteration=booster.best_iteration)["tree_info"]
    return surrogate, sum(tree["num_leaves"] for tree in trees)


def _masked(
    X: NDArray[np.float32], f: Floats, m: int, rng: np.random.Generator, antithetic: bool = False
) -> tuple[NDArray[np.float32], Floats]:
    rows = np.repeat(np.arange(len(X)), m)
    masks = draw_masks(len(rows), X.shape[1], rng)
    if antithetic:
        half = len(rows) // 2
        masks[1 : 2 * half : 2] = ~masks[0 : 2 * half : 2]
    hidden = X[rows]
    hidden[~masks] = np.nan
    return hidden, f[rows]


def _predict(booster: lgb.Booster, X: NDArray[Any]) -> Floats:
    return np.asarray(booster.predict(X), dtype=np.float64)


def network_surrogate(
    p: Problem, n_threads: int, epochs: int = 100, lookback: int = 20
) -> Surrogate:
    """The paper's network: 128-128 ELU, Adam 1e-3, batches of 64, one fresh mask per row and epoch.

    Cross entropy with the predicted probability, or squared error; the rate is halved after five
    epochs without progress on the held-out rows, and training ends after `lookback` of them.
    """
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(n_threads)
    rng = np.random.default_rng(2)
    d = p.X.shape[1]
    out = held_out(p.X.astype(np.float32), rng)
    classify = p.task == "classification"
    centre, scale = (0.0, 1.0) if classify else (p.f.mean(), p.f.std())

    def tensor(a: NDArray[Any]) -> torch.Tensor:
        return torch.tensor(a, dtype=torch.float32)

    X = tensor(p.X[~out])
    f = tensor((p.f[~out] - centre) / scale)
    X_out = tensor(np.repeat(p.X[out], 16, axis=0))
    f_out = tensor((np.repeat(p.f[out], 16) - centre) / scale)
    M_out = tensor(draw_masks(len(X_out), d, rng))
    net = nn.Sequential(
        nn.Linear(2 * d, 128),
        nn.ELU(),
        nn.Linear(128, 128),
        nn.ELU(),
        nn.Linear(128, 1),
        nn.Flatten(0),
    )
    loss = nn.BCEWithLogitsLoss() if classify else nn.MSELoss()
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimiser, factor=0.5, patience=5, min_lr=1e-5
    )
    best = np.inf
    best_epoch = 0
    state = {}
    for epoch in range(epochs):
        M = tensor(draw_masks(len(X), d, rng))
        for batch in torch.randperm(len(X)).split(64):
            optimiser.zero_grad()
            loss(net(torch.cat([X[batch] * M[batch], M[batch]], dim=1)), f[batch]).backward()
            optimiser.step()
        with torch.no_grad():
            error = loss(net(torch.cat([X_out * M_out, M_out], dim=1)), f_out).item()
        schedule.step(error)
        if error < best:
            best = error
            best_epoch = epoch
            state = {key: value.clone() for key, value in net.state_dict().items()}
        elif epoch - best_epoch >= lookback:
            break
    net.load_state_dict(state)

    def surrogate(x: Floats, masks: Masks) -> Floats:
        with torch.no_grad():
            raw = net(torch.cat([tensor(x * masks), tensor(masks)], dim=1))
        return np.asarray(
            torch.sigmoid(raw) if classify else raw * scale + centre, dtype=np.float64
        )

    return surrogate


def measure(p: Problem, recipe: Recipe, n_threads: int) -> Outcome:
    """Train the trees of `recipe` and judge them."""
    start = time.perf_counter()
    surrogate, leaves = tree_surrogate(p, recipe, n_threads)
    seconds = time.perf_counter() - start
    return Outcome(_error(p, surrogate), seconds, leaves)


def measure_network(p: Problem, n_threads: int) -> Outcome:
    """Train the network and judge it."""
    start = time.perf_counter()
    surrogate = network_surrogate(p, n_threads)
    seconds = time.perf_counter() - start
    return Outcome(_error(p, surrogate), seconds, 0)


def _error(p: Problem, surrogate: Surrogate) -> float:
    return float(np.mean((p.f_new - surrogate(p.X_new, p.masks_new)) ** 2))


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """An aligned Markdown table: first column left, the others right."""
    widths = [max(len(cells[i]) for cells in [header, *rows]) for i in range(len(header))]
    rule = ["-" * widths[0], *("-" * (w - 1) + ":" for w in widths[1:])]

    def line(cells: list[str]) -> str:
        padded = [
            cells[0].ljust(widths[0]),
            *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True)),
        ]
        return "| " + " | ".join(padded) + " |"

    return "\n".join(map(line, [header, rule, *rows]))


def recipe_table(problems: list[Problem], recipes: dict[str, Recipe], n_threads: int) -> str:
    """Errors of all recipes relative to the first one, seconds over all datasets, mean leaves."""
    reference: list[float] = []
    rows = []
    for label, recipe in recipes.items():
        outcomes = [measure(p, recipe, n_threads) for p in problems]
        reference = reference or [o.error for o in outcomes]
        ratios = [o.error / r for o, r in zip(outcomes, reference, strict=True)]
        mean = float(np.exp(np.mean(np.log(ratios))))
        total = sum(o.seconds for o in outcomes)
        leaves = float(np.mean([o.leaves for o in outcomes]))
        rows.append(
            [label, *(f"{r:.3f}" for r in ratios), f"{mean:.3f}", f"{total:.1f}", f"{leaves:.0f}"]
        )
    return markdown(["recipe", *(p.name for p in problems), "mean", "seconds", "leaves"], rows)


def network_table(problems: list[Problem], n_threads: int) -> str:
    """The recommended trees against the paper's network, dataset by dataset."""
    rows = []
    for p in problems:
        trees = measure(p, RECOMMENDED, n_threads)
        net = measure_network(p, n_threads)
        rows.append(
            [
                p.name,
                str(p.X.shape[0]),
                str(p.X.shape[1]),
                f"{trees.error:.4g}",
                f"{trees.error / p.f_new.var():.3f}",
                f"{net.error / p.f_new.var():.3f}",
                f"{trees.error / net.error:.3f}",
                f"{trees.seconds:.2f}",
                f"{net.seconds:.2f}",
                f"{trees.seconds / net.seconds:.2f}",
                str(trees.leaves),
            ]
        )
    header = [
        "dataset",
        "n",
        "d",
        "error",
        "error/Var f",
        "network's",
        "ratio",
        "s",
        "network's s",
        "ratio",
        "leaves",
    ]
    return markdown(header, rows)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--datasets", nargs="+", choices=datasets.DATASETS, metavar="NAME")
    parser.add_argument(
        "--quick", action="store_true", help="three small datasets, the first four recipes"
    )
    parser.add_argument(
        "--network", action="store_true", help="compare with the paper's network (needs torch)"
    )
    parser.add_argument(
        "--only-network", action="store_true", help="leave the table of recipes out"
    )
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    names = arguments.datasets or (QUICK if arguments.quick else datasets.DATASETS)
    recipes = dict(list(RECIPES.items())[:4]) if arguments.quick else RECIPES
    problems = [problem(name) for name in names]
    if not arguments.only_network:
        print(recipe_table(problems, recipes, arguments.threads), end="\n\n")
    if arguments.network or arguments.only_network:
        if importlib.util.find_spec("torch") is None:
            print(
                "torch is not installed, so the network was left out. Install torch to compare"
                " with it."
            )
        else:
            print(network_table(problems, arguments.threads))


if __name__ == "__main__":
    main()
