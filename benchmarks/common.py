"""What several benchmarks share. Imports little: a cold start is timed in processes that load
this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np


def data(d: int, n: int = 6000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Correlated columns, and a target with effects of all and interactions of some."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 1::2] = 0.6 * X[:, ::2][:, : d // 2] + 0.8 * X[:, 1::2]
    effects = X @ (1 / np.sqrt(np.arange(1, d + 1)))
    return X, effects + np.sin(2 * X[:, 0] * X[:, 1]) + (X[:, 2] > 0) * X[:, 3] + rng.normal(
        scale=0.3, size=n
    )


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def rule(n: int) -> str:
    """Between the header and the rows of a table with n columns, numbers in all but the first."""
    return f"|---|{'--:|' * (n - 1)}"


def written(page: Path, tables: Mapping[str, Sequence[str]]) -> None:
    """Print the lines of tables, and put each between its marks on the page."""
    text = page.read_text(encoding="utf-8")
    for name, lines in tables.items():
        print("\n".join([f"\n{name}", *lines]))
        before, found, after = text.partition(f"<!-- {name} -->\n")
        if not found:
            raise SystemExit(f"{page} has no mark <!-- {name} -->")
        text = (
            before
            + found
            + "\n".join(lines)
            + "\n<!-- end -->"
            + after.partition("<!-- end -->")[2]
        )
    page.write_text(text, encoding="utf-8")
