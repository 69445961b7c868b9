"""
A folder of Parquet files, batch by batch
=========================================

Rows that do not fit into memory are read, explained and written as Arrow batches. The numbers do
not depend on how the rows are split into batches.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from lightgbm import LGBMRegressor

import weightedshap as ws

rng = np.random.default_rng(5)
columns = ["visits", "basket", "age", "distance", "discount"]
X = pd.DataFrame(rng.gamma(2, 1, (5000, 5)), columns=columns)
y = (
    X["visits"] * X["basket"]
    - 0.4 * X["distance"]
    + np.sqrt(X["discount"])
    + rng.normal(0, 0.3, 5000)
)

# %%
# Three files in a folder, with a key for each customer.

folder = Path(tempfile.mkdtemp())
for part in range(3):
    rows = slice(2000 + 1000 * part, 3000 + 1000 * part)
    X[rows].rename_axis("customer").reset_index().to_parquet(folder / f"part-{part}.parquet")

# %%
# The explainer is fitted once. `stream` takes batches and yields batches, in a schema that is known
# in advance.

model = LGBMRegressor(n_estimators=60, num_leaves=15, n_jobs=1, verbose=-1).fit(X[:2000], y[:2000])
explainer = ws.Explainer(model, X[:2000])
rows = ds.dataset(folder, format="parquet")
schema = explainer.stream_schema(rows.schema, columns, key="customer")

with pq.ParquetWriter(folder / "explained.parquet", schema) as out:
    for batch in explainer.stream(rows.to_batches(batch_size=500), columns, key="customer"):
        out.write_batch(batch)

explained = pq.read_table(folder / "explained.parquet")
print(explained.schema.names)
explained.slice(0, 3).to_pandas().round(2).T

# %%
# The mean absolute attribution over all files, computed from the written columns:

phi = np.column_stack(
    [explained[name] for name in explained.schema.names if name.startswith("phi_")]
)
figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.barh(columns[::-1], np.abs(phi).mean(axis=0)[::-1], color="#0072B2")
ax.set_xlabel(f"mean |φ*| of {len(phi):,} customers")
ax.spines[["top", "right"]].set_visible(False)

# %%
# On the command line this is a single command, which survives being killed: ``weightedshap explain
# --rows folder …``; see :doc:`/scale`.
