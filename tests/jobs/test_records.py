"""Records of CSV files: cut where Arrow's parser cuts them, with their lines, and none that
swallows others."""

from __future__ import annotations

import csv
import gzip
import io

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightedshap.jobs.exit_codes import INPUT, CommandError
from weightedshap.jobs.records import MAX_LINES, Records, count_lines, read_records

TEXT = st.text('ab,"\n\r é', max_size=6)


def records_in(path, content, block=2**22, max_lines=MAX_LINES):
    path.write_bytes(content)
    return list(read_records(path, block, max_lines))


def parse(content):
    """The rows of two cells that Arrow finds, and the text of the others."""
    others = []

    def skip(row):
        others.append(row.text)
        return "skip"

    table = pyarrow.csv.read_csv(
        pa.BufferReader(content),
        pyarrow.csv.ReadOptions(
            column_names=["a", "b"], use_threads=False, block_size=len(content) + 1
        ),
        pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
        pyarrow.csv.ConvertOptions(column_types={"a": pa.string(), "b": pa.string()}),
    )
    return table.to_pylist(), others


@given(content=st.text('ab,"\n\r', max_size=40), block=st.integers(1, 50))
def test_pieces_are_parsed_as_the_whole_file_is(tmp_path_factory, content, block):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    content = content.encode()
    try:
        pieces = [records.content for records in records_in(path, content, block)]
    except CommandError:
        return
    assert b"".join(pieces) == content
    rows = []
    others = []
    for piece in pieces:
        more = parse(piece)
        rows += more[0]
        others += more[1]
    assert (rows, others) == (parse(content) if content else ([], []))


@given(
    cells=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=8),
    way=st.sampled_from(
        [("\r\n", csv.QUOTE_MINIMAL), *((end, csv.QUOTE_ALL) for end in ("\n", "\r\n", "\r"))]
    ),
    block=st.integers(1, 60),
)
def test_what_a_csv_writer_writes_is_read_whatever_the_cells_hold(
    tmp_path_factory, cells, way, block
):
    end, quoting = way
    path = tmp_path_factory.getbasetemp() / "written.csv"
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator=end, quoting=quoting).writerows(cells)
    pieces = records_in(path, written.getvalue().encode(), block)
    rows = [(row["a"], row["b"]) for records in pieces for row in parse(records.content)[0]]
    assert rows == cells


@given(
    cells=st.lists(st.tuples(TEXT, TEXT.filter(bool)), min_size=1, max_size=8),
    end=st.sampled_from(["\n", "\r\n"]),
    block=st.integers(1, 60),
)
def test_every_record_has_the_line_that_it_begins_on(tmp_path_factory, cells, end, block):
    path = tmp_path_factory.getbasetemp() / "lines.csv"
    written = io.StringIO(newline="")
    lines = []
    for row in cells:
        lines.append(1 + count_lines(written.getvalue() + "x") - 1)
        csv.writer(written, lineterminator=end, quoting=csv.QUOTE_ALL).writerow(row)
    pieces = records_in(path, written.getvalue().encode(), block)
    assert [line for records in pieces for line in records.starts()] == lines


def test_blank_lines_count_as_lines_and_are_no_records(tmp_path):
    (records,) = records_in(tmp_path / "a.csv", b"\n\nid,x\n\n1,2\r\n\r\n3,4\n")
    assert records.starts() == [3, 5, 7]
    assert records.header() == b"id,x\n"


def test_a_byte_order_mark_is_no_part_of_a_quoted_name(tmp_path):
    (records,) = records_in(tmp_path / "a.csv", b'\xef\xbb\xbf"id,\n1",x\n1,2\n')
    assert records.header() == b'"id,\n1",x\n'


def test_compressed_files_are_cut_like_plain_ones(tmp_path):
    content = b'id,x\n1,"a\nb"\n2,c\n' * 50
    plain = records_in(tmp_path / "a.csv", content, 64)
    packed = records_in(tmp_path / "a.csv.gz", gzip.compress(content), 64)
    assert [(one.line, one.content) for one in plain] == [(one.line, one.content) for one in packed]
    assert len(plain) > 5


ROWS = [f'{i},"city {i}"' for i in range(200)]


def with_line(number, line):
    """A file of 200 rows with another one on a line; the header is line 1."""
    lines = ["id,city", *ROWS]
    lines[number - 1] = line
    return "\n".join(lines).encode() + b"\n"


@pytest.mark.parametrize("block", [2**22, 64])
@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (with_line(50, '48,"city 48'), 50, "the next one, on line 51, has text behind it"),
        (with_line(50, '48,"city ""48""'), 50, "the next one, on line 51, has text behind it"),
        (with_line(201, '199,"city 199'), 201, "a quote is opened here and never closed"),
        (with_line(201, '199,"city ""199""'), 201, "a quote is opened here and never closed"),
        (b"id,city\n" + b'1,"a\n' + b"2,b\n" * 150 + b'","c"\n', 2, "takes more than 100 lines"),
        (b"id,city\n" + b'1,"a\n' + b"2,b\n" * 150, 2, "takes more than 100 lines|never closed"),
        (b"id,city\r\n" + b'1,"a\r\n' + b'2,"b"\r\n', 2, "line 3, has text behind it"),
        (b"id,city\r" + b'1,"a\r' + b'2,"b"\r', 2, "line 3, has text behind it"),
    ],
)
def test_a_quote_that_swallows_lines_is_an_error_with_its_line(
    tmp_path, content, line, message, block
):
    with pytest.raises(CommandError, match=rf"a\.csv, line {line}: .*({message})") as stopped:
        records_in(tmp_path / "a.csv", content, block)
    assert stopped.value.code == INPUT


def test_quotes_within_a_field_are_letters(tmp_path):
    content = b'id,size\n1,5" pipe\n2,3"\n3,"6"" pipe"\n4,"a"b\n'
    (records,) = records_in(tmp_path / "a.csv", content)
    assert records.starts() == [1, 2, 3, 4, 5]


def test_a_text_may_take_as_many_lines_as_people_say(tmp_path):
    content = b'id,text\n1,"' + b"line\n" * 149 + b'end"\n2,b\n'
    with pytest.raises(CommandError, match=r"line 2: .* more than 100 lines.*--record-lines"):
        records_in(tmp_path / "a.csv", content)
    (records,) = records_in(tmp_path / "a.csv", content, max_lines=150)
    assert records.starts() == [1, 2, 152]
    with pytest.raises(CommandError, match="more than 149 lines"):
        records_in(tmp_path / "a.csv", content, max_lines=149)


def test_a_record_may_be_longer_than_what_is_read_at_once_but_not_endless(tmp_path, monkeypatch):
    content = b"id,text\n1," + b"x" * 5_000 + b"\n2,y\n"
    pieces = records_in(tmp_path / "a.csv", content, 100)
    assert b"".join(records.content for records in pieces) == content
    monkeypatch.setattr("weightedshap.jobs.records.MAX_BYTES", 2_000)
    with pytest.raises(
        CommandError, match="line 2: the record that begins here takes more than 0 MiB"
    ):
        records_in(tmp_path / "a.csv", content, 100)


@pytest.mark.parametrize(("record", "lines"), [("a,b", 1), ('"a\nb",c\n', 2), ('"a\r\nb\rc",d', 3)])
def test_lines_of_a_record_are_counted(record, lines):
    assert count_lines(record) == lines
    assert Records(None, 1, record.encode()).starts() == [1]
