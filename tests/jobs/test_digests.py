"""The hash of rows tells all that a part depends on, and nothing of how Arrow holds it."""

from __future__ import annotations

import subprocess
from datetime import datetime

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.jobs import example_run
from weightedshap.jobs import exit_codes as stops
from weightedshap.jobs.inputs import FileRows, TableSource

LANDS = ["DE", "IT", "DE", "FR"]
PLAIN = {
    "id": pa.array([1, 2, 3, 4]),
    "x": pa.array([0.5, None, 1.5, 2.0]),
    "land": pa.array(LANDS).dictionary_encode(),
    "day": pa.array([datetime(2026, 1, 1)] * 4, pa.timestamp("us", "UTC")),
    "tags": pa.array([[land] for land in LANDS], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
}


def digest(columns=PLAIN, schema=None):
    """The hash of rows with these columns."""
    batch = pa.record_batch(list(columns.values()), names=list(columns))
    return FileRows("file", 0, batch.cast(schema) if schema else batch).digest()


def renamed(column):
    """DE and IT exchanged, without a change of the indices."""
    names = {"DE": "IT", "IT": "DE"}
    dictionary = [names.get(land, land) for land in column.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(column.indices, dictionary)


def bits(column, kind):
    """The same bits, read as another type."""
    return pa.Array.from_buffers(kind, len(column), column.buffers())


CHANGES = {
    "a value": {"x": pa.array([0.5, None, 1.5, 2.5])},
    "a sign": {"id": pa.array([1, 2, 3, -4])},
    "nothing in place of zero bits": {"x": pa.array([0.5, 0.0, 1.5, 2.0])},
    "two rows exchanged": {"id": pa.array([2, 1, 3, 4])},
    "categories renamed": {"land": renamed(PLAIN["land"])},
    "categories in a list renamed": {
        "tags": pa.ListArray.from_arrays(PLAIN["tags"].offsets, renamed(PLAIN["tags"].values))
    },
    "text in place of categories": {"land": pa.array(LANDS)},
    "signed whole numbers as unsigned": {"id": bits(PLAIN["id"], pa.uint64())},
    "floats as whole numbers": {"x": bits(PLAIN["x"], pa.int64())},
    "dates as numbers": {"day": bits(PLAIN["day"], pa.int64())},
    "another time zone": {"day": bits(PLAIN["day"], pa.timestamp("us", "Europe/Rome"))},
    "no time zone": {"day": bits(PLAIN["day"], pa.timestamp("us"))},
    "another unit of time": {"day": bits(PLAIN["day"], pa.timestamp("ms", "UTC"))},
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_the_rows_changes_the_hash(change):
    assert digest({**PLAIN, **CHANGES[change]}) != digest()


def test_another_name_is_another_hash():
    other = {("y" if name == "x" else name): column for name, column in PLAIN.items()}
    assert digest(other) != digest()


def test_a_column_that_may_not_be_null_is_another_one():
    columns = {"id": PLAIN["id"]}
    assert digest(columns, pa.schema([pa.field("id", pa.int64(), nullable=False)])) != digest(
        columns
    )


def test_the_order_of_a_dictionary_does_not_matter():
    codes = pa.array([2, 1, 2, 0], pa.int32())
    column = pa.DictionaryArray.from_arrays(codes, ["FR", "IT", "DE"])
    assert column.indices != PLAIN["land"].indices
    assert digest({**PLAIN, "land": column}) == digest()


@pytest.mark.parametrize("group", [1, 3, 10])
def test_how_a_file_is_cut_does_not_matter(tmp_path, group):
    lands = pa.array([["DE", "IT", None, "FR", "AT"][i % 5] for i in range(20)]).dictionary_encode()
    table = pa.table({"id": range(20), "land": lands})
    for name, size in (("a", group), ("b", 20)):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=size)
    digests = [
        [rows.digest() for rows in TableSource.from_path(tmp_path / f"{name}.parquet").batches(7)]
        for name in "ab"
    ]
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == 3


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Files of a run whose cities are categories and whose keys are whole numbers."""
    folder = example_run.write_files(tmp_path_factory.mktemp("run"), n=150)
    rows = pd.read_parquet(folder / "rows.parquet").astype({"city": "category"})
    rows.assign(id=range(150)).to_parquet(folder / "rows.parquet", index=False)
    return folder


def exchanged(table):
    """Bonn and Ulm exchanged in the dictionary alone."""
    column = table["city"].combine_chunks()
    names = {"Bonn": "Ulm", "Ulm": "Bonn"}
    dictionary = [names.get(city, city) for city in column.dictionary.to_pylist()]
    place = table.column_names.index("city")
    return table.set_column(
        place, "city", pa.DictionaryArray.from_arrays(column.indices, dictionary)
    )


def unsigned(table):
    """Keys of another type."""
    place = table.column_names.index("id")
    return table.set_column(place, "id", table["id"].cast(pa.uint64()))


@pytest.mark.parametrize("change", [exchanged, unsigned])
def test_a_changed_input_is_refused_with_file_and_part_named(home, tmp_path, change):
    other = tmp_path / "home"
    out = tmp_path / "out"
    subprocess.run(["cp", "-r", home, other], check=True)
    assert example_run.explain(other, out, **{"part-rows": 50}).exit_code == 0
    example_run.parts(out)[2].unlink()
    before = example_run.contents(out)

    pq.write_table(change(pq.read_table(other / "rows.parquet")), other / "rows.parquet")
    result = example_run.explain(other, out, resume=True, **{"part-rows": 50})
    assert result.exit_code == stops.MISMATCH, result.output
    assert (
        "part-00000000.parquet was made of other rows than there are now from row 0 on of"
        in result.output
    )
    assert f"{other / 'rows.parquet'}: the input changed" in result.output
    assert example_run.contents(out) == before
