"""
A torch network
===============

A network has no trees to read, so two games compete, row by row: the marginal game of the model
itself, and the trees of a boosted copy of it. Pass the module as it is: it is called in eval mode
and without gradients.
"""

import numpy as np
import pandas as pd
import torch

import weightedshap as ws

rng = np.random.default_rng(3)
torch.manual_seed(0)
torch.set_num_threads(1)  # for such a small network, one thread is fastest
names = ["speed", "angle", "chord", "thickness", "humidity", "day"]
common = rng.normal(size=(1200, 1))
X = pd.DataFrame(0.7 * common + 0.7 * rng.normal(size=(1200, 6)), columns=names).astype("float32")
y = (
    np.sin(2 * X["speed"])
    + X["angle"] * X["chord"]
    - 0.5 * X["thickness"]
    + rng.normal(0, 0.1, 1200)
)

network = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
rows, answers = (
    torch.tensor(X[:1000].to_numpy()),
    torch.tensor(y[:1000].to_numpy(), dtype=torch.float32),
)
optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
for _ in range(400):
    optimizer.zero_grad()
    loss = torch.mean((network(rows)[:, 0] - answers) ** 2)
    loss.backward()
    optimizer.step()
print(f"mean squared error {loss.item():.3f}")

# %%
explanation = ws.Explainer(network, X[:300])(X[1000:1050])
explanation

# %%
# The label of the weight now names the game too. The segments of a bar show how many rows each game
# won.

explanation.plot.weights()

# %%
# *Humidity* and *day* have no effect on the target. Both share a cause with the other columns, and
# still get next to nothing, because both games ask what the *model* does.

explanation.plot.beeswarm()
