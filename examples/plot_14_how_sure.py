"""
How sure are these numbers?
===========================

Where a game has to be sampled, every attribution comes with its standard error, and more
evaluations reduce it.
"""

import matplotlib.pyplot as plt
import numpy as np

import weightedshap as ws

rng = np.random.default_rng(6)
d = 14
main, pairs = rng.normal(size=d) / 2, np.triu(rng.normal(size=(d, d)), 1) / 6


def value(coalitions):
    """Return main effects and pairs, bent by a tanh: a stand-in for a slow black box."""
    z = coalitions.astype(float)
    return np.tanh(z @ main + np.einsum("mi,ij,mj->m", z, pairs, z)) * 3


game = ws.games.FunctionGame(value, d=d)
truth = ws.estimators.exact(game).mean.mean(axis=0)  # all 16,384 coalitions, for comparison only

# %%
# The same game with three budgets. The bars are 95 % intervals, the crosses are the true values.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained", sharey=True)
for ax, budget in zip(axes, (150, 600, 2400), strict=True):
    found = ws.explain(
        game, family="shapley", estimator="stratified", evaluations=budget, random_state=0
    )
    order = np.argsort(-truth)
    ax.errorbar(
        np.arange(d),
        found.values[0][order],
        1.96 * found.standard_errors[0][order],
        fmt="o",
        ms=4,
        color="#0072B2",
    )
    ax.plot(np.arange(d), truth[order], "x", color="#D55E00")
    ax.set(title=f"{budget:,} evaluations", xlabel="feature, by its true Shapley value", xticks=[])
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("Shapley value")

# %%
# What does this mean for the ranking? `instability` is the chance that the first features of a row
# are not in their true order.

for budget in (150, 600, 2400):
    found = ws.explain(
        game, family="shapley", estimator="stratified", evaluations=budget, random_state=0
    )
    print(
        f"{budget:5,} evaluations: first five in another order with a chance of"
        f" {found.instability(5)[0]:.0%}"
    )
