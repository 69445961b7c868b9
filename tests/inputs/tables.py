"""Tables for tests: one with every type of column and with holes, and those of the paper where
`WEIGHTEDSHAP_DATA` points to them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


def paper_table(name, rows=400):
    """The first rows of one of the paper's datasets; the test is skipped where the file is not
    there."""
    folder = os.environ.get("WEIGHTEDSHAP_DATA")
    if not folder or not (Path(folder) / f"{name}.csv.gz").exists():
        pytest.skip(
            "on the paper's data; to run: set WEIGHTEDSHAP_DATA to the folder that holds it, see"
            " docs/paper.md"
        )
    return pd.read_csv(Path(folder) / f"{name}.csv.gz", nrows=rows)


def housing_frame(n=120, seed=0):
    """A generated frame, no real data: every type of column that people have, with holes."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "weight": rng.normal(size=n).astype(np.float32),
            "rooms": rng.integers(1, 6, size=n),
            "floor": pd.array(rng.integers(0, 9, size=n), dtype="Int64"),
            "rate": pd.array(rng.random(n), dtype="Float64"),
            "city": rng.choice(["Bonn", "Köln", "Ulm"], size=n),
            "street": pd.array(rng.choice(["A", "B"], size=n), dtype="string"),
            "kind": pd.Categorical(
                rng.choice(["flat", "house"], size=n), categories=["flat", "house", "boat"]
            ),
            "grade": pd.Categorical(rng.choice([1, 2, 3], size=n), ordered=True),
            "new": rng.random(n) < 0.5,
            "lift": pd.array(rng.random(n) < 0.3, dtype="boolean"),
        }
    )
    frame.loc[::9, ["size", "floor", "rate", "city", "street", "kind", "lift"]] = None
    return frame


def housing_score(rows):
    """A number for each row of `housing_frame`, by every type of column, holes included."""
    size = rows["size"].fillna(-1.0).to_numpy(float) + rows["weight"].to_numpy(float)
    whole = rows["rooms"].to_numpy(float) + rows["floor"].fillna(-2).to_numpy(float)
    text = rows["city"].map({"Bonn": 1.0, "Köln": 2.0, "Ulm": 3.0}).fillna(0.5).to_numpy(float)
    kind = rows["kind"].isna().to_numpy(float) + 2 * (rows["kind"] == "house").to_numpy(float)
    flags = rows["new"].to_numpy(float) - rows["lift"].fillna(False).to_numpy(float)
    street = (rows["street"] == "A").fillna(False).to_numpy(float)
    return size * text + whole * kind + flags * street + rows["rate"].fillna(0).to_numpy(float)


def mixed_rows(table, row, known, hidden):
    """(m·B) rows: known columns (m, c) from `row`, others from each of B `hidden` rows, which come
    together."""
    return table.mix(row, 0, known[:, None], hidden, np.arange(len(hidden)))
