"""Explain rows inside Dask, Polars, Ray or Spark.

This is the public name of `weightedshap.jobs.engines`. Each engine gets one function that maps an
Arrow table to an Arrow table. Every worker loads the explainer once, from the folder that
`Explainer.save` wrote, and a model: from a file without pickle, from ``module:function``, or as an
object that the engine sends to its workers. The engine takes care of lost workers, of retries, and
of data that do not fit into memory.
"""

from weightedshap.jobs.engines import LazyExplainer, ModelFile, dask, polars, ray, spark

__all__ = ["LazyExplainer", "ModelFile", "dask", "polars", "ray", "spark"]
