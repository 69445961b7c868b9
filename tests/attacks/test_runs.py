"""Folders of runs that are damaged, and inputs that change before a run is resumed."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from tests.attacks.damage import BITS
from tests.jobs import example_run
from weightedshap.jobs import exit_codes as stops
from weightedshap.jobs.verify import verify_folder

PART = 40


def many(few, long):
    return pytest.mark.parametrize("n", [few, pytest.param(long, marks=pytest.mark.attack)])


def explain(home, out, **more):
    return example_run.explain(home, out, **{"part-rows": PART, "on-error": "skip", **more})


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Files of a run with categories, keys that are whole numbers, zeros in f4, and a bad row."""
    folder = example_run.write_files(tmp_path_factory.mktemp("run"), n=120)
    rows = pd.read_parquet(folder / "rows.parquet").assign(id=range(120))
    rows.loc[50, "city"] = "Rom"
    rows.loc[::2, "f4"] = 0.0
    rows.astype({"city": "category"}).to_parquet(folder / "rows.parquet", index=False)
    return folder


@pytest.fixture(scope="module")
def whole(home):
    """A run that nobody disturbed."""
    result = explain(home, home / "whole")
    assert result.exit_code == stops.SKIPPED, result.output
    return home / "whole"


def flip_bit(path, rng):
    """One bit of a file is another one."""
    content = bytearray(path.read_bytes())
    content[rng.integers(len(content))] ^= int(rng.choice(BITS))
    path.write_bytes(content)


def says_the_same(file, before, after):
    """Whether nothing that is read changes: JSON may write one number in two ways."""
    try:
        return file.endswith(".json") and json.loads(after) == json.loads(before)
    except ValueError:
        return False


@many(10, 300)
def test_flipped_bits_in_parts_and_all_other_files_are_noticed_and_repaired(
    home, whole, tmp_path, tally, n
):
    counted = tally("flipped bits in runs")
    intact = example_run.contents(whole)
    parts = [file for file in intact if file.startswith("part-")]
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    for case in range(n):
        rng = np.random.default_rng(case)
        file = str(rng.choice(parts if case % 2 else list(intact)))
        flip_bit(out / file, rng)
        damaged = (out / file).read_bytes()
        noticed = bool(verify_folder(out).flaws)
        same = says_the_same(file, intact[file], damaged)
        result = explain(home, out, resume=True)
        repaired = result.exit_code == stops.SKIPPED and (
            same or example_run.contents(out) == intact
        )
        about = f"case {case} ({file})"
        if not (noticed or same):
            counted.count("unnoticed", f"{about}: not noticed")
        else:
            kind = "noticed" if noticed else "the same"
            counted.count(kind, None if repaired else f"{about}: not repaired: {result.output}")
        for name, content in intact.items():
            (out / name).write_bytes(content)


def another_value(rows, place, rng):
    column = f"f{rng.integers(5)}"
    rows.loc[place, column] = np.nextafter(rows.loc[place, column], np.inf)
    return rows


def another_sign_of_nothing(rows, place, rng):
    rows.loc[place - place % 2, "f4"] = -0.0
    return rows


def no_value(rows, place, rng):
    rows.loc[place, f"f{rng.integers(5)}"] = np.nan
    return rows


def another_category(rows, place, rng):
    others = [city for city in ("Bonn", "Köln", "Ulm") if city != rows.loc[place, "city"]]
    rows.loc[place, "city"] = rng.choice(others)
    return rows


def renamed_categories(rows, place, rng):
    rows["city"] = rows["city"].cat.rename_categories({"Bonn": "Ulm", "Ulm": "Bonn"})
    return rows


def text_for_categories(rows, place, rng):
    return rows.astype({"city": str})


def another_key(rows, place, rng):
    rows.loc[place, "id"] += 1000
    return rows


def keys_of_another_type(rows, place, rng):
    return rows.astype({"id": rng.choice(["uint64", "int32", "float64", "str"])})


def values_of_another_type(rows, place, rng):
    column = f"f{rng.integers(5)}"
    if rng.random() < 0.5:
        return rows.astype({column: "float32"})
    return rows.assign(**{column: rows[column].to_numpy().view("int64")})


def exchanged_rows(rows, place, rng):
    order = np.arange(len(rows))
    other = (place + 1 + rng.integers(2 * PART - 1)) % (2 * PART)
    order[[place, other]] = order[[other, place]]
    return rows.iloc[order]


def a_row_less(rows, place, rng):
    return rows.drop(index=place)


def a_row_more(rows, place, rng):
    return rows.iloc[np.sort(np.append(np.arange(len(rows)), place))]


def another_name(rows, place, rng):
    return rows.rename(columns={"f2": "f9"})


def exchanged_columns(rows, place, rng):
    return rows.rename(columns={"f2": "f3", "f3": "f2"})


CHANGES = [
    another_value,
    another_sign_of_nothing,
    no_value,
    another_category,
    renamed_categories,
    text_for_categories,
    another_key,
    keys_of_another_type,
    values_of_another_type,
    exchanged_rows,
    a_row_less,
    a_row_more,
    another_name,
    exchanged_columns,
]


@many(len(CHANGES), 50)
def test_inputs_that_change_between_kill_and_resume_are_refused(home, whole, tmp_path, tally, n):
    counted = tally("changed inputs")
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    for killed in ("part-00000002.parquet", "checksums/part-00000002.json", "summary.json"):
        (out / killed).unlink()
    before = example_run.contents(out)
    for case in range(n):
        rng = np.random.default_rng(case)
        change = CHANGES[case % len(CHANGES)]
        place = int(rng.integers(2 * PART))  # in one of the two finished parts
        rows = pd.read_parquet(home / "rows.parquet").copy()
        other = tmp_path / "changed.parquet"
        change(rows, place, rng).to_parquet(other, index=False)
        result = explain(home, out, rows=other, resume=True)
        refused = result.exit_code in (stops.MISMATCH, stops.INPUT) and "Error: " in result.output
        kept = example_run.contents(out) == before
        about = f"case {case} ({change.__name__}, row {place})"
        wrong = None if refused and kept else f"{about}: exit {result.exit_code}: {result.output}"
        counted.count(f"exit {result.exit_code}", wrong)
