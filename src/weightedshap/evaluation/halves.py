"""The halves of a background: rankings from one half are judged by games fitted to the other.

`evaluate` splits the background here, fits an explainer's games to each half, and passes the halves
to the methods of `rankings`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from weightedshap._checks import FloatArray, IntArray
from weightedshap._lazy import pd
from weightedshap.config import Setup
from weightedshap.evaluation.mci import mci_rankings
from weightedshap.explainer import Explainer
from weightedshap.explanation import Explanation
from weightedshap.games.base import BaseGame
from weightedshap.games.surrogates.data import duplicate_groups
from weightedshap.inputs import Table
from weightedshap.inputs.rows import Rows
from weightedshap.method import Problem
from weightedshap.parallel import Workers

Explained = Explainer | Setup
"""An input of `evaluate`: an explainer, or a setup whose games are not fitted yet."""


def halves(table: Table, rng: np.random.Generator) -> tuple[Table, Table]:
    """Split a table at random into two, each with half of the distinct rows.

    Copies of a row stay together.
    """
    columns = [table.column(c) for c in range(len(table.names))]
    codes = np.stack([pd.factorize(column)[0] for column in columns], axis=1)
    copy_of = duplicate_groups(codes)
    n_distinct = int(copy_of.max()) + 1
    if n_distinct < 4:
        raise ValueError(
            f"The background has {n_distinct} distinct rows, too few to cut in halves. Pass more"
            ' rows, or against="own".'
        )
    in_first = np.isin(copy_of, rng.permutation(n_distinct)[: n_distinct // 2])
    return table.subset(np.flatnonzero(in_first)), table.subset(np.flatnonzero(~in_first))


def fit_half(explained: Explained, setup: Setup, half: Table) -> tuple[Setup, Problem]:
    """Fit the games of an explainer to one half of its background; return `Setup` and `Problem`.

    `setup` has the options to use. Trees that the explainer has read already are not read again.
    """
    games = explained.games if isinstance(explained, Explainer) else ()
    return setup.refit(half, games)


def fit_whole(explained: Explained, setup: Setup) -> tuple[Setup, Problem]:
    """Return an explainer's `Setup`, and its `Problem` with games fitted to the full background."""
    problem = explained.problem if isinstance(explained, Explainer) else explained.fit()
    return setup, problem


@dataclass(frozen=True, eq=False)
class HalfBackground:
    """One half of the background: the games and the judge fitted to it, and the rows to rank.

    With ``against="own"`` the games are those of the explainer, fitted to the full background.
    """

    setup: Setup  # the model, the rows of the half, and the explainer's options
    problem: Problem  # the games of the half; each row gets its own weight, and Δ is kept
    rows: Rows  # the rows to rank, the same ones for both halves
    walks: IntArray  # (m, d) orders along which contributions are computed for the MCI
    whole: Table  # the full background

    @classmethod
    def build(
        cls, setup: Setup, problem: Problem, rows: Rows, walks: IntArray, whole: Table
    ) -> Self:
        """Build a `HalfBackground` that chooses a weight vector for each row and stores Δ.

        `walks` (m, d) are orders for the MCI, `whole` is the full background.
        """
        own = replace(problem, select="per_row", keep_delta=True, workers=setup.config.workers)
        return cls(setup, own, rows, walks, whole)

    @property
    def game(self) -> BaseGame:
        """The game whose contributions Δ are weighted; the first one if several compete."""
        return self.problem.games[0]

    @property
    def judge(self) -> BaseGame:
        """The game on which the weights were chosen."""
        return self.problem.judge

    @property
    def workers(self) -> Workers:
        """The number of parallel workers, and whether a progress bar is shown."""
        return self.problem.workers

    @property
    def d(self) -> int:
        """The number of players d."""
        return self.whole.d

    @property
    def n_outputs(self) -> int:
        """The number of outputs k."""
        return int(self.rows.ask(self.judge).shape[1])

    @cached_property
    def explanation(self) -> Explanation:
        """The explanation of all rows to rank, with a weight vector chosen for each row."""
        return Explainer._from_fitted(self.setup, self.problem)(self.rows.data)

    @cached_property
    def delta(self) -> FloatArray:
        """The contributions Δ (n, G, d, d, k) of all rows, for each of the G explained games."""
        source = self.explanation._source
        if source is not None and source.by_game is not None:
            return source.by_game["contributions"]
        delta = np.asarray(self.explanation.contributions)
        return delta.reshape(len(self.rows), 1, self.d, self.d, -1)

    @cached_property
    def mci(self) -> tuple[IntArray, IntArray]:
        """Two rankings (n, d, k) by MCI (marginal contribution feature importance) on the judge.

        The first has an order for each row, the second one order for all rows, repeated. The MCI of
        a feature is its largest contribution to any coalition.
        """
        return mci_rankings(self.judge, self.rows, self.walks, self.workers)
