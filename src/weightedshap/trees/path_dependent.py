"""Path-dependent games of trees.

At a split on a hidden feature, both sides are averaged by cover, the training weight of their rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap.trees.ensembles import Ensemble, Steps
from weightedshap.trees.kernels import coalitions as coalition_kernels
from weightedshap.trees.kernels import splits as split_kernels
from weightedshap.trees.quadrature import QuadraturePlan, QuadratureSemivalues
from weightedshap.trees.removal import EncodedRows, SemivalueFiller


@dataclass(frozen=True)
class PathDependentRemoval:
    """Hide features by averaging both sides of their splits by cover (training weight).

    It is a `Removal`. An encoded row is an array (I,) that says whether the row goes left at each
    inner node.
    """

    ensembles: tuple[Ensemble, ...]  # one for each output, with the same nodes
    steps: Steps  # (k, I) the steps of `Ensemble.groups` with the leaf values of each ensemble
    plan: QuadraturePlan
    empty_values: FloatArray  # (k,) v(∅), the same at every row
    constants: FloatArray  # (k,) the part of each value that depends on no split
    stack_size: int  # the most values stored at once when a tree is evaluated from its leaves up

    @classmethod
    def build(cls, ensembles: Iterable[Ensemble]) -> Self:
        """Prepare to hide features from ensembles with the same nodes, one for each output."""
        ensembles = tuple(ensembles)
        first = ensembles[0]
        first.warm_up()
        empty_values = np.array([one.mean_by_cover for one in ensembles])
        return cls(
            ensembles=ensembles,
            steps=first.with_leaf_values(first.groups.steps, ensembles),
            plan=QuadraturePlan.build(ensembles),
            empty_values=empty_values,
            constants=np.array([one.constant for one in ensembles]),
            stack_size=first.stack_size,
        )

    @property
    def bytes_per_row(self) -> int:
        """The approximate memory, in bytes, that an encoded row takes."""
        return 2 * len(self.ensembles[0].left)

    def encode_rows(self, X: FloatArray) -> EncodedRows:
        """Return whether rows X (n, c) go left at each inner node, with v(∅) and v([d])."""
        first = self.ensembles[0]
        goes_left = first.goes_left(X)
        endpoints = np.empty((len(self.ensembles), len(X), 2))
        for one, empty, of_output in zip(self.ensembles, self.empty_values, endpoints, strict=True):
            full = np.full(len(X), one.offset)
            split_kernels.add_predictions(goes_left, first.nodes, one.value, full)
            of_output[:, 0] = empty
            of_output[:, 1] = full
        return EncodedRows(goes_left, endpoints)

    def semivalue_filler(self, vectors: FloatArray) -> SemivalueFiller:
        """Return a function that writes semivalues φ_w into an array, for weight vectors (m, d)."""
        return QuadratureSemivalues.build(self.ensembles, self.plan, vectors).fill

    def values(
        self, goes_left: BoolArray, output: int, coalitions: BoolArray, out: FloatArray
    ) -> None:
        """Write v(S) of each row, at m coalitions S (m, d), into `out` (n, m)."""
        ensemble = self.ensembles[output]
        out[:] = self.constants[output]
        coalition_kernels.values(goes_left, ensemble.steps, self.stack_size, coalitions, out)

    def along(self, goes_left: BoolArray, output: int, orders: IntArray, out: FloatArray) -> None:
        """Write v(S) after 0, 1, …, d players of each order (n, m, d) into `out` (n, m, d + 1)."""
        first = self.ensembles[0]
        groups = first.groups._replace(steps=self.steps[output])
        _, m, d = orders.shape

        widest = int(np.diff(groups.first_player).max(initial=0))
        scratch = coalition_kernels.CoalitionScratch.build(m, d, widest, self.stack_size)
        ranges = None
        if widest > coalition_kernels.FEW:
            ranges = np.empty((4, len(groups.steps)), np.uint64)

        # The kernel writes the change by each player; the running sums of these are the values.
        out[:] = 0.0
        coalition_kernels.add_steps(goes_left, groups, orders, scratch, ranges, out)
        np.cumsum(out, axis=2, out=out)
        out += self.constants[output]
