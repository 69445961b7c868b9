"""Rows of files, in batches that do not depend on how the files are made."""

from __future__ import annotations

import gzip
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weightedshap.jobs.inputs import Source
from weightedshap.jobs.stops import INPUT, Stop


def small(n=25, start=0):
    return pa.table(
        {
            "id": list(range(start, start + n)),
            "x": [i / 7 for i in range(n)],
            "city": ["Ulm", None, "a,b"] * (n // 3) + ["Köln"] * (n % 3),
        }
    )


def read(path, size=10, columns=None):
    return list(Source.of(path, columns).batches(size))


@pytest.mark.parametrize("group", [1, 4, 10, 25])
def test_row_groups_do_not_matter(tmp_path, group):
    pq.write_table(small(), tmp_path / "a.parquet", row_group_size=group)
    found = read(tmp_path / "a.parquet")
    assert [(rows.first, rows.batch.num_rows) for rows in found] == [(0, 10), (10, 10), (20, 5)]
    assert pa.Table.from_batches([rows.batch for rows in found]).combine_chunks().equals(small())


def test_the_hash_is_of_the_rows(tmp_path):
    pq.write_table(small(), tmp_path / "a.parquet", row_group_size=4)
    pq.write_table(small(), tmp_path / "b.parquet", row_group_size=25)
    pq.write_table(small(start=1), tmp_path / "c.parquet")
    a, b, c = ([rows.digest() for rows in read(tmp_path / f"{name}.parquet")] for name in "abc")
    assert a == b
    assert not set(a) & set(c)


def test_a_worker_is_sent_its_rows_alone(tmp_path):
    pq.write_table(small(10_000), tmp_path / "a.parquet")
    sizes = [len(pickle.dumps(rows.batch)) for rows in read(tmp_path / "a.parquet", size=100)]
    assert max(sizes) < 4 * small(100).nbytes + 2_000  # a slice of arrow is pickled with all that it was cut from


def test_csv_is_text_with_holes_and_may_be_compressed(tmp_path):
    text = 'id,x,city\n1,0.5,Ulm\n2,,"a,b"\n3,1e3,"two\nlines"\n'
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("a.csv", "b.csv.gz"):
        (rows,) = read(tmp_path / name, columns=("city", "x"))
        assert rows.batch.to_pydict() == {"city": ["Ulm", "a,b", "two\nlines"], "x": ["0.5", None, "1e3"]}


def test_a_folder_is_read_in_the_order_of_names_without_hidden_files(tmp_path):
    for name, start in (("b", 100), ("a", 0), (".hidden", 7), ("_temporary", 9)):
        pq.write_table(small(3, start), tmp_path / f"{name}.parquet")
    assert [rows.batch["id"][0].as_py() for rows in read(tmp_path)] == [0, 100]


def test_hive_partitions_are_columns(tmp_path):
    for year, land in ((2026, "a b"), (2025, "c")):
        folder = tmp_path / f"year={year}" / f"land={land.replace(' ', '%20')}"
        folder.mkdir(parents=True)
        pq.write_table(small(2), folder / "x.parquet")
    found = [rows.batch for rows in read(tmp_path, columns=("land", "id", "year"))]
    assert [batch.to_pylist()[0] for batch in found] == [
        {"land": "c", "id": 0, "year": 2025},
        {"land": "a b", "id": 0, "year": 2026},
    ]
    assert Source.of(tmp_path).schema().names == ["id", "x", "city", "year", "land"]


def test_rows_are_counted_or_estimated(tmp_path):
    pq.write_table(small(), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("id,x\n" + "1,2\n" * 1000)
    assert len(Source.of(tmp_path / "a.parquet")) == 25
    assert len(Source.of(tmp_path / "b.csv")) == pytest.approx(1000, rel=0.01)


def test_a_whole_table_as_a_frame(tmp_path):
    (tmp_path / "b.csv").write_text("id,x,city\n1,0.5,Ulm\n2,,Bonn\n")
    found = Source.of(tmp_path / "b.csv").frame()
    assert found["id"].tolist() == [1, 2]
    assert found["x"].isna().tolist() == [False, True]


@pytest.mark.parametrize("change", ["shrinks", "grows", "is rewritten"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_that_changes_meanwhile_is_an_error(tmp_path, change, suffix):
    path = tmp_path / f"a.{suffix}"
    if suffix == "csv":
        path.write_text("id,x\n" + "1,2\n" * 40)
    else:
        pq.write_table(small(40), path, row_group_size=5)
    batches = Source.of(path).batches(10)
    next(batches)
    content = path.read_bytes()
    path.write_bytes({"shrinks": content[:90], "grows": content * 2, "is rewritten": content[::-1]}[change])
    with pytest.raises(Stop, match=rf"a\.{suffix}.*(changed while it was read|cannot be read)") as stopped:
        list(batches)
    assert stopped.value.code == INPUT


def test_a_damaged_row_group_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(small(40), path, row_group_size=10, compression="zstd")
    meta = pq.read_metadata(path).row_group(2).column(0)
    content, start = bytearray(path.read_bytes()), meta.dictionary_page_offset or meta.data_page_offset
    content[start : start + meta.total_compressed_size] = b"\xff" * meta.total_compressed_size
    path.write_bytes(content)
    with pytest.raises(Stop, match=r"a\.parquet, row group 2 \(rows 20 to 29, counted from 0\), cannot be read"):
        read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"PAR1 and nonsense", "cannot be read"), (b"", "cannot be read")],
)
def test_files_that_are_none(tmp_path, content, message):
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(Stop, match=message):
        read(tmp_path / "a.parquet")


def test_what_is_not_there_is_named(tmp_path):
    (tmp_path / "b.csv").write_text("id,x\n1,2\n")
    for path, columns, message in [
        (tmp_path / "no", None, "is not there"),
        (tmp_path / "b.csv", ("y",), r"b\.csv lacks the column 'y'. It has: 'id', 'x'"),
    ]:
        with pytest.raises(Stop, match=message):
            read(path, columns=columns)
    (tmp_path / "empty").mkdir()
    with pytest.raises(Stop, match="holds no file of rows"):
        read(tmp_path / "empty")


def test_a_line_that_is_no_row(tmp_path):
    (tmp_path / "b.csv").write_text("id,x\n1,2\n3,4,5\n6,7\n")
    with pytest.raises(Stop, match="Expected 2 columns, got 3"):
        read(tmp_path / "b.csv")
    lines = []
    (rows,) = Source.of(tmp_path / "b.csv").batches(10, lambda file, line: lines.append(line))
    assert rows.batch["id"].to_pylist() == ["1", "6"]
    assert lines == ["3,4,5"]
