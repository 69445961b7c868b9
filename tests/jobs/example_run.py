"""A small model file, a background and files of rows, and the command that explains them."""

from __future__ import annotations

import os
import subprocess
import sys
from inspect import signature
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner
from lightgbm import LGBMRegressor

import weightedshap as ws
from weightedshap.jobs import cli

NAMES = [f"f{i}" for i in range(5)]


def frame(n, seed=0):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(rng.normal(size=(n, 5)), columns=NAMES)
    rows["city"] = rng.choice(["Bonn", "Köln", "Ulm"], size=n)
    return rows


def answers(rows):
    return rows["f0"] * rows["f1"] + rows["f2"] + (rows["city"] == "Ulm")


def fit_model(rows):
    """A LightGBM model that knows the cities as categories."""
    model = LGBMRegressor(n_estimators=12, num_leaves=8, n_jobs=1, verbose=-1)
    return model.fit(rows.astype({"city": "category"}), answers(rows))


def write_files(folder: Path, n=600):
    """model.txt, background.parquet and .csv, rows.parquet and .csv in a folder."""
    background = frame(300)
    fit_model(background).booster_.save_model(folder / "model.txt")
    with_target = background.assign(price=answers(background))
    with_target.to_parquet(folder / "background.parquet", index=False)
    with_target.to_csv(folder / "background.csv", index=False)
    rows = frame(n, seed=1).assign(id=[f"row {i}" for i in range(n)])
    rows.to_parquet(folder / "rows.parquet", index=False, row_group_size=70)
    rows.to_csv(folder / "rows.csv", index=False)
    return folder


def arguments(folder: Path, out, rows="rows.parquet", **more):
    """The options of `weightedshap explain`; exact by default, and nothing is learned."""
    options = {
        "model": folder / "model.txt",
        "background": folder / "background.parquet",
        "rows": folder / rows,
    }
    options |= {
        "target": "price",
        "key": "id",
        "game": "tree_path",
        "part-rows": 100,
        "out": out,
        **more,
    }
    flags = [f"--{name}" for name, value in options.items() if value is True]
    valued = {name: value for name, value in options.items() if not isinstance(value, bool)}
    pairs = [str(text) for name, value in valued.items() for text in (f"--{name}", value)]
    return [*pairs, *flags]


def run_command(words):
    """Run `weightedshap` in this process: exit code, standard output, standard error, and both."""
    # Before 8.2 click kept one stream of both unless it was told otherwise, and not both ways.
    is_separate = "mix_stderr" not in signature(CliRunner).parameters
    runner = CliRunner() if is_separate else CliRunner(mix_stderr=False)
    result = runner.invoke(cli.main, words, catch_exceptions=False)
    output = result.output if is_separate else result.stdout + result.stderr
    return SimpleNamespace(
        exit_code=result.exit_code, stdout=result.stdout, stderr=result.stderr, output=output
    )


def explain(folder: Path, out, **more):
    """Run the command in this process."""
    return run_command(["explain", *arguments(folder, out, **more)])


def start_process(home, out, modules=None, group=False, **more):
    """The command in a process of its own; interrupts reach it even where these tests run in the
    background.

    modules : the folder of models that are functions
    group : whether it leads a group of processes, which can be interrupted together, as by a
        terminal
    """
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code += "; from weightedshap.jobs.cli import main; main()"
    path = os.pathsep.join([str(Path(ws.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    command = [
        sys.executable,
        "-c",
        code,
        "explain",
        *arguments(home, out, **{"json": True, **more}),
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    look = {"cwd": modules, "start_new_session": group, "env": {**os.environ, "PYTHONPATH": path}}
    return subprocess.Popen(command, text=True, **look, **pipes)


def parts(out: Path):
    return sorted(Path(out).glob("*.parquet"))


def table(out: Path):
    """All rows of a run, in order."""
    found = pa.concat_tables([pq.read_table(part).replace_schema_metadata() for part in parts(out)])
    return found.set_column(0, "id", found["id"].cast(pa.string()))


def contents(out: Path):
    """Every byte of what a run leaves, but for the lock."""
    files = [
        file for file in sorted(Path(out).rglob("*")) if file.is_file() and file.name != ".lock"
    ]
    return {str(file.relative_to(out)): file.read_bytes() for file in files}
