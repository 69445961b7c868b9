"""The interface of the ways to hide features from trees.

`background` and `path_dependent` implement it, and the tree games use it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap.trees.ensembles import Ensemble

# (encoded rows, slice of k outputs, out): writes φ_w under m weight vectors into out (k, n, m, d).
SemivalueFiller = Callable[[Any, slice, FloatArray], None]


class EncodedRows(NamedTuple):
    """Rows, preprocessed so that v(S) can be computed at any coalition S."""

    content: Any  # the input of the methods of the `Removal`; its type depends on the class
    endpoints: FloatArray  # (k, n, 2) v(∅) and v([d])


class Removal(Protocol):
    """The interface of a way to hide features from ensembles of trees, one for each output.

    Rows are encoded once by `encode_rows`; the other methods take the content of these rows and the
    position of an output among the ensembles. They write into `out`, because one array holds all
    outputs of a batch.
    """

    @property
    def ensembles(self) -> tuple[Ensemble, ...]:
        """The ensembles of trees, one for each output."""

    @property
    def bytes_per_row(self) -> int:
        """The approximate memory, in bytes, that an encoded row takes."""

    def encode_rows(self, X: FloatArray) -> EncodedRows:
        """Preprocess rows X (n, c) for the other methods; also compute their v(∅) and v([d])."""

    def semivalue_filler(self, vectors: FloatArray) -> SemivalueFiller:
        """Return a function that writes semivalues φ_w into an array, for weight vectors (m, d)."""

    def values(self, rows: Any, output: int, coalitions: BoolArray, out: FloatArray) -> None:
        """Write v(S) of each row, at m coalitions S (m, d), into `out` (n, m)."""

    def along(self, rows: Any, output: int, orders: IntArray, out: FloatArray) -> None:
        """Write v(S) after 0, 1, …, d players of each order (n, m, d) into `out` (n, m, d + 1)."""
