"""Rows of files, in batches that do not depend on how the files are made."""

from __future__ import annotations

import gzip
import os
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weightedshap.jobs.csv_files import CsvRules
from weightedshap.jobs.exit_codes import INPUT, CommandError
from weightedshap.jobs.inputs import TableSource


def small(n=25, start=0):
    return pa.table(
        {
            "id": list(range(start, start + n)),
            "x": [i / 7 for i in range(n)],
            "city": ["Ulm", None, "a,b"] * (n // 3) + ["Köln"] * (n % 3),
        }
    )


def read(path, size=10, columns=None, keys=(), **rules):
    return list(TableSource.from_path(path, columns, keys, CsvRules(**rules)).batches(size))


@pytest.mark.parametrize("group", [1, 4, 10, 25])
def test_row_groups_do_not_matter(tmp_path, group):
    pq.write_table(small(), tmp_path / "a.parquet", row_group_size=group)
    found = read(tmp_path / "a.parquet")
    assert [(rows.first_row, rows.batch.num_rows) for rows in found] == [(0, 10), (10, 10), (20, 5)]
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
    assert (
        max(sizes) < 4 * small(100).nbytes + 2_000
    )  # a slice of arrow is pickled with all that it was cut from


def test_csv_is_text_with_holes_and_may_be_compressed(tmp_path):
    text = 'id,x,city\n1,0.5,Ulm\n2,,"a,b"\n3,1e3,"two\nlines"\n'
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("a.csv", "b.csv.gz"):
        (rows,) = read(tmp_path / name, columns=("city", "x"))
        assert rows.batch.to_pydict() == {
            "city": ["Ulm", "a,b", "two\nlines"],
            "x": ["0.5", None, "1e3"],
        }


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
    assert TableSource.from_path(tmp_path).schema().names == ["id", "x", "city", "year", "land"]


def test_rows_are_counted_or_estimated(tmp_path):
    pq.write_table(small(), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("id,x\n" + "1,2\n" * 1000)
    assert len(TableSource.from_path(tmp_path / "a.parquet")) == 25
    assert len(TableSource.from_path(tmp_path / "b.csv")) == pytest.approx(1000, rel=0.01)


def test_a_whole_table_can_be_read_as_a_frame(tmp_path):
    (tmp_path / "b.csv").write_text("id,x,city\n1,0.5,Ulm\n2,,Bonn\n")
    found = TableSource.from_path(tmp_path / "b.csv").to_pandas()
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
    batches = TableSource.from_path(path).batches(10)
    next(batches)
    content = path.read_bytes()
    path.write_bytes(
        {"shrinks": content[:90], "grows": content * 2, "is rewritten": content[::-1]}[change]
    )
    with pytest.raises(
        CommandError, match=rf"a\.{suffix}.*(changed while it was read|cannot be read)"
    ) as stopped:
        list(batches)
    assert stopped.value.code == INPUT


def test_a_damaged_row_group_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(small(40), path, row_group_size=10, compression="zstd")
    meta = pq.read_metadata(path).row_group(2).column(0)
    content = bytearray(path.read_bytes())
    start = meta.dictionary_page_offset or meta.data_page_offset
    content[start : start + meta.total_compressed_size] = b"\xff" * meta.total_compressed_size
    path.write_bytes(content)
    with pytest.raises(
        CommandError,
        match=r"a\.parquet, row group 2 \(rows 20 to 29, counted from 0\), cannot be read",
    ):
        read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"PAR1 and nonsense", "cannot be read"), (b"", "cannot be read")],
)
def test_a_file_that_is_no_parquet_is_refused(tmp_path, content, message):
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(CommandError, match=message):
        read(tmp_path / "a.parquet")


def test_what_does_not_exist_is_named(tmp_path):
    (tmp_path / "b.csv").write_text("id,x\n1,2\n")
    for path, columns, message in [
        (tmp_path / "no", None, "is not there"),
        (tmp_path / "b.csv", ("y",), r"b\.csv lacks the column 'y'. It has: 'id', 'x'"),
    ]:
        with pytest.raises(CommandError, match=message):
            read(path, columns=columns)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CommandError, match="holds no file of rows"):
        read(tmp_path / "empty")


def test_a_line_that_is_no_row_is_named(tmp_path):
    (tmp_path / "b.csv").write_text("id,x\n1,2\n3,4,5\n6,7\n")
    with pytest.raises(CommandError, match="Expected 2 columns, got 3"):
        read(tmp_path / "b.csv")
    lines = []
    (rows,) = TableSource.from_path(tmp_path / "b.csv").batches(
        10, lambda record: lines.append(record.text)
    )
    assert rows.batch["id"].to_pylist() == ["1", "6"]
    assert lines == ["3,4,5"]


def test_only_a_field_with_nothing_in_it_is_missing(tmp_path):
    (tmp_path / "a.csv").write_text('x,y\nNA,null\n,""\n"","N/A"\nnan,NaN\n')
    (rows,) = read(tmp_path / "a.csv")
    assert rows.batch.to_pydict() == {"x": ["NA", None, "", "nan"], "y": ["null", "", "N/A", "NaN"]}


def test_texts_named_as_missing_are_missing_but_not_in_keys(tmp_path):
    (tmp_path / "a.csv").write_text('id,x\nNA,NA\nnull,"null"\n"","x"\n')
    (rows,) = read(tmp_path / "a.csv", columns=("x",), keys=("id",), null_values=("NA", "null", ""))
    assert rows.batch.to_pydict() == {"id": ["NA", "null", ""], "x": [None, None, "x"]}


def test_a_background_is_read_by_the_same_rules(tmp_path):
    text = "n,i,b,t,day,gap\n1.5,1,true,NA,2026-01-01,\n,2,False,null,2026-01-02,\n"
    (tmp_path / "a.csv").write_text(text)
    found = TableSource.from_path(tmp_path / "a.csv").to_pandas()
    assert found["n"].isna().tolist() == [False, True]
    assert found["i"].dtype == "int64"
    assert found["b"].dtype == "bool"
    assert found["t"].tolist() == ["NA", "null"]
    assert found["day"].tolist() == ["2026-01-01", "2026-01-02"]
    assert found["gap"].isna().all()
    assert TableSource.from_path(tmp_path / "a.csv", rules=CsvRules(("NA",))).to_pandas()[
        "t"
    ].isna().tolist() == [
        True,
        False,
    ]


def test_a_word_for_missing_among_the_numbers_of_a_background_is_named_with_file_and_row(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    (tmp_path / "b.csv").write_text("x\n3\nNA\n")
    with pytest.raises(
        CommandError, match=r"b\.csv, row 1 .*'x' holds 'NA' among numbers.*--null-values NA"
    ) as stopped:
        TableSource.from_path(tmp_path).to_pandas()
    assert stopped.value.code == INPUT
    found = TableSource.from_path(tmp_path, rules=CsvRules(("NA",))).to_pandas()
    assert found["x"].isna().tolist() == [False, False, False, True]


def test_a_column_of_several_csv_files_is_what_it_is_in_all_of_them(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,1\n")
    (tmp_path / "b.csv").write_text("x,y\nhigh,2.5\n")
    found = TableSource.from_path(tmp_path).to_pandas()
    assert found["x"].tolist() == ["1", "high"]
    assert found["y"].tolist() == [1.0, 2.5]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_names_that_appear_twice_are_refused_where_the_column_is_read(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    if suffix == "csv":
        path.write_text("id,x,x\n1,2,3\n")
    else:
        columns = [pa.array([1]), pa.array([2]), pa.array([3])]
        pq.write_table(pa.Table.from_arrays(columns, names=["id", "x", "x"]), path)
    for columns in (None, ("x",)):
        with pytest.raises(CommandError, match=rf"a\.{suffix} has 2 columns called 'x'") as stopped:
            read(path, columns=columns)
        assert stopped.value.code == INPUT
    assert read(path, columns=("id",))[0].batch.num_rows == 1


def test_a_file_without_rows_may_come_first(tmp_path):
    pq.write_table(small().slice(0, 0), tmp_path / "a.parquet")
    pq.ParquetWriter(tmp_path / "b.parquet", small().schema).close()  # without a row group
    pq.write_table(small(3), tmp_path / "c.parquet")
    source = TableSource.from_path(tmp_path)
    assert source.schema().names == ["id", "x", "city"]
    assert [(rows.first_row, rows.batch.num_rows) for rows in source.batches(10)] == [(0, 3)]
    (tmp_path / "c.parquet").unlink()
    (rows,) = source.from_path(tmp_path).batches(10)
    assert rows.batch.num_rows == 0
    assert rows.batch.schema.names == ["id", "x", "city"]


def test_a_csv_file_may_have_no_rows_but_has_a_header(tmp_path):
    (tmp_path / "a.csv").write_text("id,x\n")
    (tmp_path / "b.csv").write_text("id,x\n1,2")
    assert [rows.batch.to_pylist() for rows in read(tmp_path)] == [[{"id": "1", "x": "2"}]]
    (tmp_path / "a.csv").write_text("\n")
    with pytest.raises(CommandError, match=r"a\.csv is empty"):
        read(tmp_path)


def test_folders_may_be_named_like_files(tmp_path):
    folder = tmp_path / "in.parquet"
    (folder / "deep.csv").mkdir(parents=True)
    pq.write_table(small(2), folder / "a.parquet")
    pq.write_table(small(3), folder / "deep.csv" / "b.PARQUET")
    assert [rows.batch.num_rows for rows in read(folder)] == [2, 3]
    assert [rows.batch.num_rows for rows in read(tmp_path)] == [2, 3]


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.uint32(), pa.int32(), pa.int64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.string(), pa.large_string(), pa.large_string()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string(), pa.string()),
        (pa.null(), pa.string(), pa.string()),
        (pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("us")),
    ],
)
def test_a_key_has_one_type_in_all_files(tmp_path, one, other, common):
    for name, kind in (("a", one), ("b", other), ("c", one)):
        value = (
            None
            if pa.types.is_null(kind)
            else "1"
            if common in (pa.string(), pa.large_string())
            else 1
        )
        column = pa.array([value, value]).cast(kind)
        pq.write_table(pa.table({"id": column, "x": [1, 2]}), tmp_path / f"{name}.parquet")
    source = TableSource.from_path(tmp_path, ("x",), ("id",))
    assert source.schema().field("id").type == common
    assert {rows.batch.schema.field("id").type for rows in source.batches(10)} == {common}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.int64(), pa.string()),
        (pa.int64(), pa.float64()),
        (pa.int64(), pa.uint64()),
        (pa.bool_(), pa.int64()),
        (pa.date32(), pa.timestamp("ms")),
    ],
)
def test_keys_that_no_type_holds_are_refused_with_both_files(tmp_path, one, other):
    for name, kind in (("a", one), ("b", one), ("c", other)):
        pq.write_table(pa.table({"id": pa.nulls(1, kind), "x": [1]}), tmp_path / f"{name}.parquet")
    source = TableSource.from_path(tmp_path, ("x",), ("id",))
    message = rf"'id' is {one} in .*a\.parquet and {other} in .*c\.parquet".replace(
        "[", r"\["
    ).replace("]", r"\]")
    with pytest.raises(CommandError, match=message) as stopped:
        source.schema()
    assert stopped.value.code == INPUT


def test_csv_and_parquet_are_one_table_where_keys_are_text_in_both(tmp_path):
    pq.write_table(pa.table({"id": ["a"], "x": [1.5]}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("id,x\nb,2.5\n")
    source = TableSource.from_path(tmp_path, ("x",), ("id",))
    assert [rows.batch["id"].to_pylist() for rows in source.batches(10)] == [["a"], ["b"]]
    assert TableSource.from_path(tmp_path).to_pandas()["x"].tolist() == [1.5, 2.5]
    (tmp_path / "b.csv").write_text("id,x\nb,high\n")
    with pytest.raises(CommandError, match=r"'x' is double in .*a\.parquet and string in .*b\.csv"):
        TableSource.from_path(tmp_path).to_pandas()


def test_a_partition_has_one_type_in_all_folders(tmp_path):
    for year in ("2025", "unknown"):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(small(1), tmp_path / f"year={year}" / "a.parquet")
    found = read(tmp_path, columns=("year",))
    assert [rows.batch["year"].to_pylist() for rows in found] == [["2025"], ["unknown"]]
    assert {str(rows.batch.schema) for rows in found} == {"year: string"}


def test_a_pipe_is_no_file_of_rows(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    for path in (tmp_path, tmp_path / "a.csv"):
        with pytest.raises(CommandError, match="holds no file of rows"):
            TableSource.from_path(path)


def test_columns_of_all_files_are_checked_before_the_first_row(tmp_path):
    pq.write_table(small(1), tmp_path / "a.parquet")
    pq.write_table(small(1).drop_columns("x"), tmp_path / "b.parquet")
    with pytest.raises(CommandError, match=r"b\.parquet lacks the column 'x'"):
        TableSource.from_path(tmp_path, ("x",)).schema()


def test_a_long_cell_is_read_whatever_is_looked_at_at_once(tmp_path):
    long = "x" * (5 * 2**20)  # more than a block
    (tmp_path / "a.csv").write_text(f"id,t\n1,{long}\n2,y\n")
    (rows,) = read(tmp_path / "a.csv")
    assert rows.batch["t"].to_pylist() == [long, "y"]


def test_sampled_rows_are_spread_evenly_over_files(tmp_path):
    pq.write_table(small(10), tmp_path / "a.parquet")
    pq.write_table(small(10, start=10), tmp_path / "b.parquet")
    batches, positions = TableSource.from_path(tmp_path, ("id",)).sample(5)
    assert [key for batch in batches for key in batch["id"].to_pylist()] == positions.tolist()
    assert positions.tolist() == [0, 4, 9, 14, 19]


def test_the_lines_of_a_record_that_is_no_row_are_reported(tmp_path):
    (tmp_path / "b.csv").write_text('id,x\n1,2\n\n3,"4\n\n5",6\n7\n8,9\n')
    with pytest.raises(CommandError, match=r"b\.csv, line 4: Expected 2 columns, got 3"):
        read(tmp_path / "b.csv")
    found = []
    (rows,) = TableSource.from_path(tmp_path / "b.csv").batches(10, found.append)
    assert rows.batch["id"].to_pylist() == ["1", "8"]
    assert [(record.line, record.n_lines, record.text) for record in found] == [
        (4, 3, '3,"4\n\n5",6'),
        (7, 1, "7"),
    ]
