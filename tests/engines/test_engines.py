"""Real engines, each started once: the same numbers as one thread, to the bit, also where a worker
is killed.

`make test-engines` installs the engines and sets WEIGHTEDSHAP_ENGINES; there nothing is skipped.
"""

from __future__ import annotations

import os
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weightedshap as ws
from tests.jobs import example_run
from weightedshap.jobs import exit_codes as stops

pytestmark = [
    pytest.mark.engines,
    pytest.mark.filterwarnings("ignore"),  # engines warn of each other's versions
    pytest.mark.skipif(
        "WEIGHTEDSHAP_ENGINES" not in os.environ,
        reason="on Dask, Ray and Spark; to run: make test-engines",
    ),
]

MORTAL = """
import os, pathlib
HERE = pathlib.Path(__file__).parent

def score(rows):
    if len(rows) > 20:  # in a worker: nobody else asks for so many
        try:
            (HERE / "kill").unlink()
        except FileNotFoundError:
            pass
        else:
            (HERE / "killed").touch()
            os.kill(os.getpid(), 9)
    return (rows["f0"] * rows["f1"] - rows["f2"]).to_numpy()

def leaving(rows):
    if (rows["f0"] > 9).any():
        raise SystemExit(0)
    return rows["f0"].to_numpy()

def ending(rows):
    if (rows["f0"] > 9).any():
        os._exit(0)
    return rows["f0"].to_numpy()
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The files of a run, explainers of an exact and a sampled game, and a model that can kill
    its process."""
    folder = example_run.write_files(tmp_path_factory.mktemp("run"), n=120)
    (folder / "mortal.py").write_text(MORTAL)
    sys.path.insert(0, str(folder))
    root = os.path.dirname(os.path.dirname(ws.__file__))
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(folder), root, os.getcwd(), os.environ.get("PYTHONPATH", "")]
    )
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    background = pd.read_parquet(folder / "background.parquet").drop(columns="price")
    model = ws.engines.ModelFile(str(folder / "model.txt")).load()
    categories = background.astype({"city": "category"})
    ws.Explainer(model, categories, game="tree_path", progress=False).save(folder / "exact")
    import mortal

    choices = {"game": "marginal", "estimator": "permutation", "evaluations": 60, "progress": False}
    ws.Explainer(mortal.score, background[:6], **choices).save(folder / "sampled")
    return folder


MODELS = {"exact": "model.txt", "sampled": "mortal:score"}


def model(home, kind):
    return home / MODELS[kind] if kind == "exact" else MODELS[kind]


def alone(home, kind):
    """What one thread says."""
    rows = pq.read_table(home / "rows.parquet")
    made = ws.Explainer.load(
        home / kind, ws.engines.ModelFile(str(model(home, kind))).load(), progress=False
    )
    return pa.Table.from_batches(made.stream(rows, key="id")).to_pandas()


def check(found, home, kind):
    """The same rows to the bit, in any order."""
    want = alone(home, kind).sort_values("id", ignore_index=True)
    found = pd.DataFrame(found).sort_values("id", ignore_index=True)
    assert list(found.columns) == list(want.columns)
    for name in want.columns:
        assert np.array_equal(np.asarray(found[name]), np.asarray(want[name])), name


def killing(home):
    """From now on the first worker that is asked for many rows dies."""
    (home / "killed").unlink(missing_ok=True)
    (home / "kill").touch()


@pytest.fixture(scope="module")
def dask(home):
    from distributed import Client

    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        yield client


def by_dask(dask, home, kind):
    import dask.dataframe as dd

    rows = dd.from_pandas(pd.read_parquet(home / "rows.parquet"), npartitions=3)
    found = ws.engines.dask(rows, home / kind, model(home, kind), key="id")
    assert type(found).__name__ == "DataFrame"
    assert not isinstance(found, pd.DataFrame)
    return found.compute()


@pytest.fixture(scope="module")
def ray(home):
    import ray

    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}},
    )
    yield ray
    ray.shutdown()


def by_ray(ray, home, kind):
    rows = pq.read_table(home / "rows.parquet")
    data = ray.data.from_arrow([rows.slice(0, 50), rows.slice(50, 30), rows.slice(80)])
    return ws.engines.ray(data, home / kind, model(home, kind), key="id").to_pandas()


@pytest.fixture(scope="module")
def spark(home):
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false").getOrCreate()
    )
    yield session
    session.stop()


def by_spark(spark, home, kind):
    rows = spark.read.parquet(str(home / "rows.parquet")).repartition(3)
    return ws.engines.spark(rows, home / kind, model(home, kind), key="id").toPandas()


BY = {"dask": by_dask, "ray": by_ray, "spark": by_spark}


@pytest.mark.parametrize("engine", BY)
@pytest.mark.parametrize("kind", MODELS)
def test_the_same_as_one_thread(engine, kind, home, request):
    check(BY[engine](request.getfixturevalue(engine), home, kind), home, kind)


@pytest.mark.parametrize("engine", BY)
def test_a_killed_worker_changes_nothing(engine, home, request):
    started = request.getfixturevalue(engine)
    killing(home)
    found = BY[engine](started, home, "sampled")
    assert (home / "killed").exists()
    check(found, home, "sampled")


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("collect", [{}, {"engine": "streaming"}])
def test_polars(home, kind, collect):
    import polars

    rows = polars.scan_parquet(home / "rows.parquet")
    check(
        ws.engines.polars(rows, home / kind, model(home, kind), key="id")
        .collect(**collect)
        .to_pandas(),
        home,
        kind,
    )


def test_duckdb_by_its_arrow_stream(home):
    import duckdb

    explainer = ws.Explainer.load(
        home / "exact", ws.engines.ModelFile(str(home / "model.txt")).load()
    )
    rows = duckdb.connect().sql(f"select * from '{home / 'rows.parquet'}'").to_arrow_reader(50)
    schema = explainer.stream_schema(rows.schema, key="id")
    other = duckdb.connect()  # the first has its hands full
    other.register(
        "streamed", pa.RecordBatchReader.from_batches(schema, explainer.stream(rows, key="id"))
    )
    check(other.sql("select * from streamed").df(), home, "exact")


WAYS = {
    "leaving": (stops.INPUT, "row 77 (counted from 0)"),
    "ending": (stops.OUTPUT, "A worker ended or was killed"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ["dask", "ray", "spark"])
def test_a_model_that_ends_the_program_is_no_success_on_any_engine(
    engine, way, home, request, tmp_path
):
    started = request.getfixturevalue(engine)
    where = {"address": started.scheduler.address} if engine == "dask" else {}
    rows = pd.read_parquet(home / "rows.parquet")
    rows.loc[77, "f0"] = 10.0
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    background = pq.read_table(home / "background.parquet").slice(0, 6)
    pq.write_table(background, tmp_path / "background.parquet")
    given = {
        "model": f"mortal:{way}",
        "background": tmp_path / "background.parquet",
        "game": "baseline",
    }
    more = {
        "rows": tmp_path / "rows.parquet",
        "part-rows": 30,
        "engine": engine,
        "on-error": "skip",
        **where,
    }
    result = example_run.explain(home, tmp_path / "out", **given, **more)
    code, words = WAYS[way]
    assert result.exit_code == code, result.output
    assert words in result.output
    assert not (tmp_path / "out" / "part-00000002.parquet").exists()
    assert not (tmp_path / "out" / "summary.json").exists()


@pytest.mark.parametrize("engine", ["dask", "ray", "spark"])
def test_the_command_on_an_engine_writes_the_same_bytes(engine, home, request, tmp_path):
    started = request.getfixturevalue(engine)
    where = {"dask": lambda: started.scheduler.address, "ray": lambda: None, "spark": lambda: None}[
        engine
    ]()
    more = {"explainer": home / "sampled", "model": "mortal:score", "part-rows": 30}
    for name, own in (
        ("alone", {}),
        (engine, {"engine": engine, **({"address": where} if where else {})}),
    ):
        given = example_run.arguments(home, tmp_path / name, **more, **own)
        for unwanted in ("--background", "--game", "--target"):
            at = given.index(unwanted)
            del given[at : at + 2]
        result = example_run.CliRunner().invoke(
            example_run.cli.main, ["explain", *given], catch_exceptions=False
        )
        assert result.exit_code == 0, result.output
    assert example_run.contents(tmp_path / engine) == example_run.contents(tmp_path / "alone")
