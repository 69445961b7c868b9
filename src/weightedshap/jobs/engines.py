"""Explain the data of Dask, Ray, Spark and polars with one function on Arrow batches.

Every worker loads the explainer once, from the folder that `Explainer.save` wrote, and the model
once: from a file without pickle (see `weightedshap.jobs.model_files`), from ``module:function``, or
as an object that the engine sends to the workers. The engine handles lost workers, retries, and
spilling to disk. `weightedshap.engines` re-exports the functions for users.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self
from uuid import uuid4

from weightedshap._checks import require
from weightedshap._lazy import LazyModule, pd
from weightedshap.explainer import Explainer
from weightedshap.jobs.model_files import ModelFile, as_model_file

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

    from weightedshap.jobs import stream as streams
else:
    streams = LazyModule("weightedshap.jobs.stream")  # it loads pyarrow

__all__ = ["LazyExplainer", "ModelFile", "dask", "polars", "ray", "spark"]

Folder = str | os.PathLike[str]
Key = str | Sequence[str] | None


class SparkDataFrame(Protocol):
    """Typing protocol for a Spark DataFrame: the attributes and methods this package needs."""

    schema: Any

    def mapInArrow(self, func: Callable[..., Any], schema: Any) -> SparkDataFrame: ...


class DaskDataFrame(Protocol):
    """Typing protocol for a Dask DataFrame: the attributes and methods this package needs."""

    _meta: pd.DataFrame  # without rows

    def map_partitions(self, func: Callable[..., Any], *, meta: pd.DataFrame) -> DaskDataFrame: ...


class RayDataset(Protocol):
    """Typing protocol for a Ray Dataset: the method this package needs."""

    def map_batches(
        self, fn: Callable[..., Any], *, batch_format: str, batch_size: int | None
    ) -> RayDataset: ...


@dataclass(frozen=True)
class LazyExplainer:
    """A reference to a saved explainer and its model, which each worker loads at first use."""

    folder: str = field(compare=False)
    # A `ModelFile`, or the model itself, of any library.
    model: object = field(compare=False)
    options: streams.StreamOptions = field(compare=False)
    # Equality compares the token alone, so that copies of an object are equal.
    token: str = field(default_factory=lambda: uuid4().hex)

    @classmethod
    def from_folder(
        cls,
        folder: Folder,
        model: object,
        key: Key,
        columns: Sequence[str] | None = None,
        **options: Any,
    ) -> Self:
        """Build a `LazyExplainer` from the arguments of `spark`, `dask`, `ray` or `polars`.

        The arguments are checked. A weight that all rows share is chosen here, before any worker
        starts. `options` are `include`, `layout` and `unseen` of `Explainer.stream`.
        """
        if isinstance(model, (str, os.PathLike)):
            model = as_model_file(model)
        path = str(Path(folder).resolve())
        lazy = cls(path, model, streams.StreamOptions.build(columns, key, **options))
        return cls(path, model, lazy.stream().options)

    def stream(self) -> streams.Stream:
        """Return the `Stream` that explains batches; each process loads it once."""
        return _load_stream(self)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Explain Arrow batches; yield one or more batches of results for each."""
        return iter(self.stream()(batches))

    def explain_table(self, rows: pa.Table) -> pa.Table:
        """Explain the rows of an Arrow table; return the results as an Arrow table."""
        arrow = require("pyarrow", "stream")
        schema = self.stream().schema(rows.schema)
        return arrow.Table.from_batches(self(rows.to_batches()), schema)

    def explain_frame(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Explain the rows of a pandas frame; return Arrow-typed columns with the same index."""
        arrow = require("pyarrow", "stream")
        explained = self.explain_table(arrow.Table.from_pandas(rows, preserve_index=False))
        frame = pd.DataFrame(explained.to_pandas(types_mapper=pd.ArrowDtype))
        return frame.set_index(rows.index)


@lru_cache(maxsize=2)
def _load_stream(lazy: LazyExplainer) -> streams.Stream:
    """Load a saved explainer and its model as a `Stream`; cache the two latest streams."""
    model = lazy.model.load() if isinstance(lazy.model, ModelFile) else lazy.model
    explainer = Explainer.load(lazy.folder, model, n_jobs=1, progress=False)
    return streams.Stream.build(explainer, lazy.options)


def spark(
    df: SparkDataFrame, folder: Folder, model: object, key: Key = None, **options: Any
) -> SparkDataFrame:
    """Explain the rows of a Spark DataFrame with `mapInArrow`; return them as a new DataFrame.

    `folder` is the one that `Explainer.save` wrote, `model` a path, a `ModelFile`,
    ``module:function`` or the model itself, `key` the columns that identify a row, and `options`
    are `columns`, `include`, `layout` and `unseen` of `Explainer.stream`. Every executor must be
    able to read `folder`.
    """
    types = require("pyspark.sql.pandas.types", "spark")
    lazy = LazyExplainer.from_folder(folder, model, key, **options)
    schema = lazy.stream().schema(types.to_arrow_schema(df.schema))
    return df.mapInArrow(lazy, types.from_arrow_schema(schema))


def dask(
    ddf: DaskDataFrame, folder: Folder, model: object, key: Key = None, **options: Any
) -> DaskDataFrame:
    """Explain a Dask DataFrame by partitions; return a lazy Dask DataFrame with the same index.

    `folder` is the one that `Explainer.save` wrote, `model` a path, a `ModelFile`,
    ``module:function`` or the model itself, `key` the columns that identify a row, and `options`
    are `columns`, `include`, `layout` and `unseen` of `Explainer.stream`.
    """
    require("dask.dataframe", "dask")
    lazy = LazyExplainer.from_folder(folder, model, key, **options)
    return ddf.map_partitions(lazy.explain_frame, meta=lazy.explain_frame(ddf._meta))


def ray(
    dataset: RayDataset, folder: Folder, model: object, key: Key = None, **options: Any
) -> RayDataset:
    """Explain the rows of a Ray Dataset with `map_batches`; return them as a new Dataset.

    `folder` is the one that `Explainer.save` wrote, `model` a path, a `ModelFile`,
    ``module:function`` or the model itself, `key` the columns that identify a row, and `options`
    are `columns`, `include`, `layout` and `unseen` of `Explainer.stream`.
    """
    require("ray.data", "ray")
    lazy = LazyExplainer.from_folder(folder, model, key, **options)
    return dataset.map_batches(lazy.explain_table, batch_format="pyarrow", batch_size=None)


def polars(
    lazyframe: pl.LazyFrame, folder: Folder, model: object, key: Key = None, **options: Any
) -> pl.LazyFrame:
    """Explain the rows of a polars LazyFrame; return them as a new LazyFrame.

    `folder` is the one that `Explainer.save` wrote, `model` a path, a `ModelFile`,
    ``module:function`` or the model itself, `key` the columns that identify a row, and `options`
    are `columns`, `include`, `layout` and `unseen` of `Explainer.stream`.
    ``collect(engine="streaming")`` explains the rows in batches.
    """
    library = require("polars", "polars")
    lazy = LazyExplainer.from_folder(folder, model, key, **options)

    def explain_rows(rows: pl.DataFrame) -> pl.DataFrame:
        return library.from_arrow(lazy.explain_table(rows.to_arrow()))

    schema = explain_rows(lazyframe.collect_schema().to_frame()).schema
    return lazyframe.map_batches(explain_rows, schema=schema, streamable=True)
