"""Rows where they are: the engines that people already run, each handed one Arrow function.

An explainer is loaded once in every worker, from the folder that `Explainer.save` wrote and a
model: a file without pickle, ``module:function``, or an object that the engine ships. Loss of
workers, retries and spilling are the engine's.
"""

from weightedshap.jobs.engines import ModelFile, Worker, dask, polars, ray, spark

__all__ = ["ModelFile", "Worker", "dask", "polars", "ray", "spark"]
