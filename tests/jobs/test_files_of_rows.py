"""Files of rows as people have them: words for missing values, quotes, types, and files without
rows."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import weightedshap as ws
from tests.jobs import example_run
from weightedshap.jobs import cli
from weightedshap.jobs import exit_codes as stops

WORDS = ["NA", "null", "N/A", "nan", "", "Ulm", None]
MODEL = """
import numpy as np

WORTH = {"NA": 1.0, "null": 2.0, "N/A": 3.0, "nan": 4.0, "": 5.0, "Ulm": 6.0}


def score(rows):
    cities = rows["city"].astype(object)
    words = [WORTH.get(word, 50.0) if isinstance(word, str) else 100.0 for word in cities]
    sign = np.where(rows["flag"].to_numpy(dtype=bool), 1.0, -1.0)
    second = np.nan_to_num(rows["f1"].to_numpy(), nan=7.0)
    return rows["f0"].to_numpy() + sign * second + rows["n"].to_numpy() + words
"""


def table(n, seed):
    """Numbers, whole numbers, booleans, and text that is easily taken for something else."""
    rows = example_run.frame(n, seed)[["f0", "f1"]]
    rows.loc[3, "f1"] = np.nan
    rows["n"] = np.arange(n) % 5
    rows["flag"] = np.arange(n) % 2 == 0
    rows["city"] = pd.Series([WORDS[i % len(WORDS)] for i in range(n)], dtype=object)
    return rows


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A model that tells words for missing apart, a background and rows."""
    (tmp_path / "wordy.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "wordy", raising=False)
    background = table(30, 0).assign(price=1.0)
    rows = table(21, 1)
    rows["id"] = [*WORDS[:5], *(f"row {i}" for i in range(5, 21))]
    for name, frame in (("background", background), ("rows", rows)):
        write(tmp_path / f"{name}.parquet", frame)
        write(tmp_path / f"{name}.csv", frame)
    return tmp_path


def write(path, frame):
    rows = pa.Table.from_pandas(frame, preserve_index=False)
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(rows, path)
    else:
        pq.write_table(rows, path)


def explain(home, out, background="background.parquet", **more):
    return example_run.explain(
        home, home / out, background=home / background, model="wordy:score", game="baseline", **more
    )


def explained(home, out, **more):
    result = explain(home, out, **more)
    assert result.exit_code == 0, result.output
    return example_run.table(home / out)


def test_a_table_gives_the_same_bits_as_csv_and_as_parquet(home):
    whole = explained(home, "whole")
    assert whole["id"].to_pylist()[:5] == ["NA", "null", "N/A", "nan", ""]
    for i, (background, rows) in enumerate(
        [("parquet", "csv"), ("csv", "parquet"), ("csv", "csv")]
    ):
        found = explained(
            home, f"out{i}", background=f"background.{background}", rows=f"rows.{rows}"
        )
        assert found.equals(whole)


def test_words_are_missing_in_background_and_rows_where_people_say_so(home):
    options = {"background": "background.csv", "rows": "rows.csv", "null-values": "NA,null"}
    found = explained(home, "out", **options)
    rows = table(21, 1)
    for name in ("background", "rows"):
        frame = pd.read_parquet(home / f"{name}.parquet")
        write(
            home / f"{name}.parquet",
            frame.assign(city=frame["city"].where(~frame["city"].isin(["NA", "null"]), None)),
        )
    assert found.equals(explained(home, "same"))
    assert found["id"].to_pylist()[:2] == ["NA", "null"]
    assert (found["prediction"].to_numpy() > 90).tolist() == [
        city in ("NA", "null", None) for city in rows["city"]
    ]


def test_words_for_missing_may_stand_in_toml(home):
    (home / "run.toml").write_text('null-values = ["NA", "null", -999]')
    options = {"background": "background.csv", "rows": "rows.csv"}
    found = explained(home, "out", config=home / "run.toml", **options)
    assert found.equals(explained(home, "same", **options, **{"null-values": "NA,null"}))


def test_a_run_with_other_words_for_missing_is_another_run(home):
    options = {"background": "background.csv", "rows": "rows.csv"}
    assert explain(home, "out", **options).exit_code == 0
    result = explain(home, "out", resume=True, **options, **{"null-values": "NA"})
    assert result.exit_code == stops.MISMATCH
    assert "null_values" in result.output


def with_word(home, name, word):
    """A column of numbers with a word in row 2."""
    rows = pd.read_parquet(home / f"{name}.parquet")
    rows["f0"] = [word if i == 2 else repr(value) for i, value in enumerate(rows["f0"])]
    write(home / f"{name}.csv", rows)


@pytest.mark.parametrize("word", ["NA", "nan", "null"])
@pytest.mark.parametrize("name", ["background", "rows"])
def test_a_word_among_numbers_is_an_error_that_names_it_and_the_option(home, name, word):
    with_word(home, name, word)
    options = {"background": "background.csv", "rows": "rows.csv"}
    result = explain(home, "out", **options)
    assert result.exit_code == stops.INPUT
    assert f"{name}.csv, row 2 (counted from 0): Column 'f0' holds" in result.output
    assert f"--null-values {word}" in result.output
    assert explain(
        home, "other", **options, **{"null-values": word, "unseen": "pass"}
    ).exit_code in (0, stops.INPUT)


def test_evaluate_reads_rows_by_the_same_rules(home):
    options = ["--model", "wordy:score", "--game", "baseline", "--target", "price", "--sample", "8"]

    def evaluated(background, rows):
        files = ["--background", str(home / background), "--rows", str(home / rows)]
        return CliRunner().invoke(
            cli.main, ["evaluate", *options, *files, "--json"], catch_exceptions=False
        )

    write(home / "rows.csv", table(21, 1).assign(price=2.0))
    write(home / "rows.parquet", table(21, 1).assign(price=2.0))
    first = evaluated("background.parquet", "rows.parquet")
    assert first.exit_code == 0, first.output
    for background, rows in [("parquet", "csv"), ("csv", "parquet"), ("csv", "csv")]:
        assert evaluated(f"background.{background}", f"rows.{rows}").output == first.output
    with_word(home, "rows", "NA")
    refused = evaluated("background.csv", "rows.csv")
    assert refused.exit_code == stops.INPUT
    assert (
        "Column 'f0' holds text where the background holds numbers: 'NA'"
        in json.loads(refused.output.splitlines()[0])["message"]
    )


def quoted_rows(n=200):
    """The lines of a file whose last column is text in quotes, and is no feature."""
    rows = table(n, 2)[["f0", "f1", "n", "flag"]].assign(city="Ulm")
    lines = rows.to_csv(index=False).splitlines()
    return [
        f"{lines[0]},id,comment",
        *(f'{line},row {i},"good"' for i, line in enumerate(lines[1:])),
    ]


@pytest.mark.parametrize("way", ["stop", "skip"])
@pytest.mark.parametrize("line", [51, 201])
def test_a_quote_that_is_not_closed_is_an_error_with_its_line_whatever_is_skipped(home, way, line):
    lines = quoted_rows()
    lines[line - 1] = lines[line - 1].removesuffix('"')
    (home / "rows.csv").write_text("\n".join(lines) + "\n")
    result = explain(home, "out", rows="rows.csv", **{"on-error": way})
    assert result.exit_code == stops.INPUT
    assert f"rows.csv, line {line}: a quote is opened here" in result.output


def test_lines_that_are_lost_with_a_record_are_reported(home):
    lines = quoted_rows(60)
    lines[20] = lines[20].replace('"good"', '"first\n\nthird",more')
    (home / "rows.csv").write_text("\n".join(lines) + "\n")
    result = explain(home, "out", rows="rows.csv", **{"on-error": "skip"})
    assert result.exit_code == stops.SKIPPED
    assert "1 row was skipped" in result.output
    assert "3 lines of CSV files made no row" in result.output
    assert json.loads((home / "out" / "summary.json").read_text())["malformed_lines"] == 3
    (record,) = map(json.loads, (home / "out" / "skipped" / "lines.jsonl").read_text().splitlines())
    assert (record["first_line"], record["lines"]) == (21, 3)
    assert len(example_run.table(home / "out")) == 59


def test_a_text_of_many_lines_is_read_where_people_say_so(home):
    lines = quoted_rows(5)
    lines[2] = lines[2].replace("good", "line\n" * 120)
    (home / "rows.csv").write_text("\n".join(lines) + "\n")
    result = explain(home, "out", rows="rows.csv")
    assert result.exit_code == stops.INPUT
    assert "line 3: the record that begins here takes more than 100 lines" in result.output
    assert "--record-lines" in result.output
    assert len(explained(home, "out2", rows="rows.csv", **{"record-lines": 121})) == 5


def folder_of(home, **frames):
    (home / "in.parquet").mkdir()
    for name, frame in frames.items():
        file, _, suffix = name.partition("_")
        write(home / "in.parquet" / f"{file}.{suffix or 'parquet'}", frame)


def rows_of(home):
    return pd.read_parquet(home / "rows.parquet").assign(id=lambda rows: np.arange(len(rows)))


def test_a_folder_whose_first_file_has_no_rows_is_read(home):
    rows = rows_of(home)
    folder_of(
        home, a=rows[:0].astype({"id": "int32"}), b=rows[:10].astype({"id": "int32"}), c=rows[10:]
    )
    assert explain(home, "out", rows="in.parquet", **{"part-rows": 4}).exit_code == 0
    schemas = [pq.read_schema(part) for part in example_run.parts(home / "out")]
    assert all(schema.equals(schemas[0]) for schema in schemas)
    assert schemas[0].field("id").type == pa.int64()
    assert pq.read_table(example_run.parts(home / "out"))["id"].to_pylist() == list(range(21))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("files", [1, 2])
def test_a_run_without_rows_ends_well_and_its_part_has_the_schema(home, suffix, files):
    folder_of(
        home, **{f"{name}_{suffix}": rows_of(home)[:0].astype({"id": str}) for name in "ab"[:files]}
    )
    result = explain(home, "out", rows="in.parquet")
    assert result.exit_code == 0, result.output
    assert "0 rows explained" in result.output
    whole = explained(home, "whole")
    assert example_run.table(home / "out").schema.equals(whole.schema)
    assert len(example_run.table(home / "out")) == 0
    assert json.loads((home / "out" / "summary.json").read_text())["rows"] == 0
    assert explain(home, "out", rows="in.parquet", resume=True).exit_code == 0
    shown = CliRunner().invoke(cli.main, ["show", str(home / "out")], catch_exceptions=False)
    assert "0 rows explained" in shown.output


def test_keys_that_no_type_holds_are_refused_before_anything_is_written(home):
    rows = rows_of(home)
    folder_of(home, a=rows[:10], b_csv=rows[10:])
    result = explain(home, "out", rows="in.parquet")
    assert result.exit_code == stops.INPUT
    assert "Column 'id' is int64 in " in result.output
    assert "a.parquet and string in " in result.output
    assert not example_run.parts(home / "out")
    assert not (home / "out" / "manifest.json").exists()


@pytest.mark.parametrize("name", ["background", "rows"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_name_that_appears_twice_is_refused(home, name, suffix):
    frame = pd.read_parquet(home / f"{name}.parquet")
    rows = pa.Table.from_pandas(frame.assign(f0=0.5), preserve_index=False).append_column(
        "f0", frame["f0"].to_numpy()[None]
    )
    (
        pyarrow.csv.write_csv(rows, home / f"{name}.csv")
        if suffix == "csv"
        else pq.write_table(rows, home / f"{name}.parquet")
    )
    given = {"rows": f"rows.{suffix}"} if name == "rows" else {"background": f"background.{suffix}"}
    result = explain(home, "out", **given)
    assert result.exit_code == stops.INPUT
    assert f"{name}.{suffix} has 2 columns called 'f0'" in result.output


@pytest.mark.parametrize("option", ["columns", "key"])
def test_an_option_that_names_a_column_twice_is_wrong(home, option):
    result = explain(home, "out", **{option: "f0,f1,f0"})
    assert result.exit_code == stops.USAGE
    assert "names 'f0' more than once" in result.output


def test_a_column_of_the_background_that_is_not_read_may_hold_anything(home):
    frame = pd.read_parquet(home / "background.parquet")
    frame["note"] = ["NA", *["1"] * 29]
    write(home / "background.csv", frame)
    columns = {"columns": "f0,f1,n,flag,city"}
    found = explained(home, "out", background="background.csv", **columns)
    assert found.equals(explained(home, "whole", **columns))
    assert explain(home, "refused", background="background.csv").exit_code == stops.INPUT


def test_the_module_is_the_command(home):
    command = [sys.executable, "-m", "weightedshap"]
    shown = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, check=True
    ).stdout
    assert ws.__version__ in shown
    wrong = subprocess.run([*command, "explain"], capture_output=True, text=True, check=False)
    assert wrong.returncode == stops.USAGE
    assert "Usage: python -m weightedshap explain" in wrong.stderr
    options = example_run.arguments(
        home, home / "out", model="wordy:score", game="baseline", jobs=2, **{"part-rows": 5}
    )
    done = subprocess.run(
        [*command, "explain", *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("rows explained") == 1
    assert len(example_run.table(home / "out")) == 21
