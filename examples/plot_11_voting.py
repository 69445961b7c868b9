"""
A game of your own: who has power in a parliament?
==================================================

A game needs no model and no data, only a function of coalitions. Here five parties with unequal
numbers of seats vote, and a coalition wins with more than half of them. How much power does a party
have? Game theory has given several answers, and each of them is a vector of weights over the sizes
of coalitions.
"""

import matplotlib.pyplot as plt
import numpy as np

import weightedshap as ws

parties = ["Red", "Blue", "Green", "Gold", "Grey"]
seats = np.array([38, 30, 16, 10, 6])


def wins(coalitions):
    """Return 1 for every coalition (a row of True and False) that holds a majority."""
    return (coalitions @ seats > seats.sum() / 2).astype(float)


game = ws.games.FunctionGame(wins, d=len(parties))

# %%
# With five players there are only 32 coalitions. All of them are evaluated, so nothing is
# estimated.

contributions = ws.estimators.exact(game)
contributions.mean.round(
    2
)  # row: how many are in the coalition, this party included; column: party

# %%
# A row of this table says how often a party turns a losing coalition of that size into a winning
# one. Blue, with 30 seats, is needed no more often than Green with 16: only the majority counts.
# Now weight the sizes: equally (the Shapley–Shubik index), or as if every other party joined on the
# toss of a coin (the Banzhaf index).

family = ws.weights.shapley(5) | ws.weights.banzhaf(5) | ws.weights.sizes(5)
power = family.vectors @ contributions.mean

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
place = np.arange(len(parties))
ax.bar(place - 0.27, seats / seats.sum(), 0.25, color="0.8", label="seats")
ax.bar(place, power[0], 0.25, color="#0072B2", label="Shapley")
ax.bar(place + 0.27, power[1] / power[1].sum(), 0.25, color="#D55E00", label="Banzhaf, as shares")
ax.set(xticks=place, xticklabels=parties, ylabel="share")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)

# %%
# Seats and power are different things. You can also apply the whole method to the same function:
# `explain` looks for the weights under which the parties, taken in order, win soonest. No weights
# beat equal ones here, and of tied weights those nearest to Shapley's are kept.

explanation = ws.explain(game)
print(
    explanation.weight_labels[0],
    dict(zip(parties, explanation.values[0].round(2).tolist(), strict=True)),
)
