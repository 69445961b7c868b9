"""Explain the partitions of Dask, Ray, Spark and polars with one Arrow function.

Every worker loads the explainer once, from the folder that `Explainer.save` wrote, and the model
once: from a file without pickle (see `weightedshap.jobs.model_files`), from ``module:function``, or
as an object that the engine ships. Loss of workers, retries and spilling are the engine's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from weightedshap._checks import require
from weightedshap._lazy import Lazily, pd
from weightedshap.explainer import Explainer
from weightedshap.inputs.containers import Data, UserModel
from weightedshap.jobs.model_files import ModelFile, as_model_file

__all__ = ["ModelFile", "Worker", "dask", "polars", "ray", "spark"]

streaming = Lazily("weightedshap.jobs.stream")  # it loads pyarrow
Folder = str | os.PathLike[str]
Key = str | Sequence[str] | None


@dataclass(frozen=True)
class Worker:
    """What a worker needs: an explainer's folder, a model, and what is asked for; both are loaded
    at first use."""

    folder: str = field(compare=False)
    model: UserModel = field(compare=False)
    asked: Any = field(compare=False)  # an `Asked` of `weightedshap.jobs.stream`
    # Two are the same if one is a copy of the other.
    token: str = field(default_factory=lambda: uuid4().hex)

    @classmethod
    def of(
        cls,
        folder: Folder,
        model: UserModel,
        key: Key,
        columns: Sequence[str] | None = None,
        **asked: Any,
    ) -> Worker:
        """From what people pass; a weight that rows share is chosen here, once."""
        found = as_model_file(model) if isinstance(model, (str, os.PathLike)) else model
        told = streaming.Asked.of(columns, key, asked.pop("include", ()), **asked)
        first = cls(str(Path(folder).resolve()), found, told)
        return cls(first.folder, first.model, first.stream().asked)

    def stream(self) -> Any:
        """The `Stream` of this process."""
        return _loaded(self)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Arrow batches in, Arrow batches out."""
        return iter(self.stream()(batches))

    def table(self, rows: Any) -> Any:
        """The same for an Arrow table."""
        pa = require("pyarrow", "stream")
        return pa.Table.from_batches(self(rows.to_batches()), self.stream().schema(rows.schema))

    def frame(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The same for a frame of pandas, whose index stays; every column keeps its type of
        Arrow."""
        pa = require("pyarrow", "stream")
        told = self.table(pa.Table.from_pandas(rows, preserve_index=False))
        return pd.DataFrame(told.to_pandas(types_mapper=pd.ArrowDtype)).set_index(rows.index)


@lru_cache(maxsize=2)
def _loaded(worker: Worker) -> Any:
    model = worker.model.load() if isinstance(worker.model, ModelFile) else worker.model
    return streaming.Stream.of(
        Explainer.load(worker.folder, model, n_jobs=1, progress=False), worker.asked
    )


def spark(df: Data, folder: Folder, model: UserModel, key: Key = None, **asked: Any) -> Data:
    """A Spark DataFrame of the explained rows, by `mapInArrow`; the folder must be where every
    executor finds it."""
    types = require("pyspark.sql.pandas.types", "spark")
    worker = Worker.of(folder, model, key, **asked)
    schema = worker.stream().schema(types.to_arrow_schema(df.schema))
    return df.mapInArrow(worker, types.from_arrow_schema(schema))


def dask(ddf: Data, folder: Folder, model: UserModel, key: Key = None, **asked: Any) -> Data:
    """A lazy Dask DataFrame of the explained rows, partition by partition, with the index that the
    rows had."""
    require("dask.dataframe", "dask")
    worker = Worker.of(folder, model, key, **asked)
    return ddf.map_partitions(worker.frame, meta=worker.frame(ddf._meta))


def ray(dataset: Data, folder: Folder, model: UserModel, key: Key = None, **asked: Any) -> Data:
    """A Ray Dataset of the explained rows, by `map_batches`."""
    require("ray.data", "ray")
    return dataset.map_batches(
        Worker.of(folder, model, key, **asked).table, batch_format="pyarrow", batch_size=None
    )


def polars(
    lazyframe: Data, folder: Folder, model: UserModel, key: Key = None, **asked: Any
) -> Data:
    """A polars LazyFrame of the explained rows; ``collect(engine="streaming")`` goes through it in
    batches."""
    pl = require("polars", "polars")
    worker = Worker.of(folder, model, key, **asked)

    def explained(rows: Data) -> Data:
        return pl.from_arrow(worker.table(rows.to_arrow()))

    schema = explained(lazyframe.collect_schema().to_frame()).schema
    return lazyframe.map_batches(explained, schema=schema, streamable=True)
