"""Explanations on disk: the round trip to the bit, and files that mean harm."""

import dataclasses
import hashlib
import io
import json
import pickle
import zipfile
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

import weightedshap as ws
from tests.oracles import normal_rows, product_model, random_game, three_outputs
from weightedshap.files import archive as files


@cache
def explain(model=product_model, **choices):
    background = normal_rows(9)
    return ws.Explainer(model, background, **{"game": "marginal", **choices})(
        normal_rows(3, seed=1)
    )


def round_trip(explanation, tmp_path):
    path = tmp_path / "explanation.npz"
    explanation.save(path)
    return ws.Explanation.load(path)


KINDS = {
    "one output": explain,
    "several outputs": lambda: explain(three_outputs),
    "without Δ": lambda: explain(keep_contributions=False),
    "sampled": lambda: ws.explain(random_game(8), estimator="permutation", evaluations=600),
    "a surrogate's info": lambda: explain(game="tree_surrogate"),
    "selected features": lambda: explain(three_outputs)[1:, ["x3", "x1"], [2, 0]],
    "one player": lambda: ws.explain(random_game(1)),
    "a family of one": lambda: explain(family="shapley"),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_an_explanation_is_loaded_to_the_bit(make, tmp_path):
    explanation = make()
    assert round_trip(explanation, tmp_path).equals(explanation)


def test_the_same_explanation_gives_the_same_bytes(tmp_path):
    for name in ("one", "other"):
        explain().save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_numpy_reads_the_arrays_too(tmp_path):
    explain().save(tmp_path / "explanation.npz")
    with np.load(tmp_path / "explanation.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["values"], explain().values)


def test_a_loaded_explanation_can_be_used_but_not_reweighted(tmp_path):
    loaded = round_trip(explain(), tmp_path)
    assert repr(loaded) == repr(explain())
    loaded.values[0, 0] = 1.0
    assert loaded[1:].equals(explain()[1:])
    with pytest.raises(ValueError, match="loaded from a file"):
        loaded.reweight("wide")


def test_a_failed_save_leaves_the_old_file_as_it_was(tmp_path):
    path = tmp_path / "explanation.npz"
    explain().save(path)
    with pytest.raises(TypeError, match="cannot be saved"):
        replace(explain(), data=np.array([[object()]] * 3)).save(path)
    with pytest.raises(TypeError, match="only arrays and frames"):
        replace(explain(), data={"a": 1}).save(path)
    assert ws.Explanation.load(path).equals(explain())
    assert list(tmp_path.iterdir()) == [path]


N = 4
INDEXES = {
    "a range": pd.RangeIndex(3, 3 + 2 * N, 2, name="row"),
    "numbers": pd.Index([7, 5, 5, 1]),
    "text": pd.Index(["a", "b", "ß", ""], name="who"),
    "dates": pd.date_range("2024-01-01", periods=N, freq="D").as_unit("ns")[[1, 0, 2, 3]],
    "two levels": pd.MultiIndex.from_arrays([[1, 1, 2, 2], list("abab")], names=["n", None]),
}
COLUMNS = {
    "float64": [1.5, np.nan, -0.0, np.inf],
    "float32": np.array([1.5, np.nan, 0, 1], dtype=np.float32),
    "int8": np.array([1, -2, 3, 4], dtype=np.int8),
    "bool": [True, False, True, True],
    "text": ["a", None, "", "日本\0"],
    "text of numpy's objects": np.array(["a", None, np.nan, "b"], dtype=object),
    "mixed": np.array([1, "1", 1.0, True], dtype=object),
    "missing of all sorts": np.array([None, np.nan, pd.NA, pd.NaT], dtype=object),
    "string[NA]": pd.array(["a", pd.NA, "c", "d"], dtype="string"),
    "string[python]": pd.array(
        ["a", np.nan, "c", "d"], dtype=pd.StringDtype("python", na_value=np.nan)
    ),
    "Int64": pd.array([1, pd.NA, 2**62, 0], dtype="Int64"),
    "Float32": pd.array([1.5, pd.NA, 0, 1], dtype="Float32"),
    "boolean": pd.array([True, pd.NA, False, True], dtype="boolean"),
    "category": pd.Categorical(["b", None, "a", "b"], categories=["b", "a", "c"]),
    "ordered": pd.Categorical(["b", None, "a", "b"], categories=["b", "a"], ordered=True),
    "category of numbers": pd.Categorical([3, 1, None, 3]),
    "category of bools": pd.Categorical([True, False, None, True]),
    "dates": pd.to_datetime(["2024-01-01", None, "1969-12-31", "2100-02-28"]),
    "zoned dates": pd.to_datetime(["2024-01-01", None, "2024-07-01", "2100-02-28"]).tz_localize(
        "Europe/Berlin"
    ),
    "spans": pd.to_timedelta(["1 day", None, "2 s", "0 s"]),
}


def with_data(data):
    whole = explain()[[0, 1, 2, 0]]
    return replace(whole, data=data)


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_every_type_of_column_is_loaded(column, tmp_path):
    explanation = with_data(pd.DataFrame({"column": column, "other": range(N)}))
    loaded = round_trip(explanation, tmp_path)
    pd.testing.assert_frame_equal(loaded.data, explanation.data, check_exact=True, check_freq=False)
    assert loaded.equals(explanation)


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
@pytest.mark.parametrize("labels", [["a", "b"], [0, 1], ["a", 1], [("a", 1), ("b", 2)]])
def test_every_index_is_loaded(index, labels, tmp_path):
    columns = pd.MultiIndex.from_tuples(labels) if isinstance(labels[0], tuple) else labels
    explanation = with_data(
        pd.DataFrame(np.arange(2.0 * N).reshape(N, 2), index=index, columns=columns)
    )
    loaded = round_trip(explanation, tmp_path)
    pd.testing.assert_frame_equal(loaded.data, explanation.data, check_exact=True, check_freq=False)
    assert loaded.equals(explanation)


def test_polars_frames_are_loaded(tmp_path):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {
            "float": [1.5, None, float("nan"), -0.0],
            "int": pl.Series([1, None, 3, 4], dtype=pl.Int16),
            "bool": [True, None, False, True],
            "text": ["a", None, "", "ß"],
            "category": pl.Series(["b", "a", None, "b"], dtype=pl.Categorical),
            "enum": pl.Series(["b", "a", None, "b"], dtype=pl.Enum(["b", "a", "c"])),
        }
    )
    explanation = with_data(frame)
    loaded = round_trip(explanation, tmp_path)
    assert loaded.data.schema == frame.schema
    assert loaded.equals(explanation)
    assert loaded[1:, :].data.equals(frame[1:])
    assert ws.Explanation.concatenate([explanation[:1], explanation[1:]]).equals(explanation)
    with pytest.raises(TypeError, match="Column 'when' has type Date"):
        round_trip(with_data(pl.DataFrame({"when": pl.Series([0] * N).cast(pl.Date)})), tmp_path)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.period_range("2024", periods=N, freq="M"), "has type period"),
        ([(1, 2)] * N, "a tuple in column 'odd'"),
        (pd.arrays.SparseArray([0.0] * N), "has type Sparse"),
    ],
)
def test_columns_that_need_pickle_are_refused_by_name(column, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        with_data(pd.DataFrame({"odd": column})).save(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


INFO = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(),
        st_numpy.arrays(float, (2, 0)),
    ),
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(st.text(), inner)
    ),
    max_leaves=6,
)


@settings(max_examples=30)
@given(
    n=st.integers(1, 4),
    d=st.integers(1, 4),
    k=st.sampled_from([None, 1, 3]),
    info=st.dictionaries(st.text(), INFO, max_size=3),
    names=st.data(),
)
def test_any_shape_and_any_info_is_loaded(n, d, k, info, names, tmp_path_factory):
    game = random_game(d, outputs=() if k is None else (k,))
    features = names.draw(st.lists(st.text(), min_size=d, max_size=d))
    explanation = replace(
        ws.explain(game)[[0] * n], game_info=info, feature_names=tuple(features), _notes=("ü", "")
    )
    assert round_trip(explanation, tmp_path_factory.mktemp("files")).equals(explanation)


def test_what_json_cannot_hold_is_kept_as_text(tmp_path):
    explanation = replace(
        explain(), game_info={"game": Path("a"), "count": np.int64(3), 1: np.float32(0.5)}
    )
    assert round_trip(explanation, tmp_path).game_info == {"game": "a", "count": 3, 1: 0.5}


# -- files that mean harm
# ---------------------------------------------------------------------------------------------


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def load_tampered(tmp_path):
    """Write a good file with some members changed or added, under checksums that are right, and
    load it."""
    good = tmp_path / "good.npz"
    explain().save(good)

    def load(changes=None, head=None, compression=zipfile.ZIP_STORED):
        members = members_of(good) | (changes or {})
        members = {name: content for name, content in members.items() if content is not None}
        if files.HEAD not in (changes or {}):
            known = json.loads(members[files.HEAD])
            known["manifest"] = {
                name: hashlib.sha256(content).hexdigest() for name, content in members.items()
            }
            _ = head and head(known)
            members[files.HEAD] = json.dumps(known).encode()
        with zipfile.ZipFile(tmp_path / "bad.npz", "w", compression) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
            archive.comment = hashlib.sha256(members[files.HEAD]).hexdigest().encode()
        return ws.Explanation.load(tmp_path / "bad.npz")

    assert load().equals(explain())
    return load


def npy(array, **choices):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **choices)
    return stream.getvalue()


def header(shape, descr="<f8"):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return stream.getvalue()


class Bomb:
    def __reduce__(self):
        return exec, ("raise SystemExit('code ran')",)


def assert_refused(load, match):
    with pytest.raises(ValueError, match=match) as caught:
        load()
    assert "cannot be loaded" in str(caught.value)
    return caught.value


def test_a_file_that_is_missing_is_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        ws.Explanation.load(tmp_path / "nothing")


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 not really", pickle.dumps(Bomb())])
def test_what_is_not_a_zip_is_refused(content, tmp_path):
    (tmp_path / "bad").write_bytes(content)
    assert_refused(
        lambda: ws.Explanation.load(tmp_path / "bad"), "not a zip file, or it is truncated"
    )


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path):
    good = tmp_path / "good"
    bad = tmp_path / "bad"
    explain().save(good)
    content = good.read_bytes()
    for end in np.linspace(0, len(content) - 1, 60).astype(int):
        bad.write_bytes(content[:end])
        assert_refused(lambda: ws.Explanation.load(bad), "bad")


def test_a_flipped_bit_is_noticed(tmp_path):
    good = tmp_path / "good"
    bad = tmp_path / "bad"
    explain().save(good)
    content = good.read_bytes()
    for place in np.linspace(0, len(content) - 1, 150).astype(int):
        bad.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        with suppress(files.UnreadableFile):
            assert ws.Explanation.load(bad).equals(
                explain()
            )  # a date or the like: nothing that is read


def test_another_zip_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", values=np.zeros(3))
    assert_refused(lambda: ws.Explanation.load(tmp_path / "other.npz"), "was not written by `save`")


def test_a_newer_version_says_what_to_do(load_tampered):
    assert_refused(
        lambda: load_tampered(head=lambda known: known.update(version=3)),
        "Install a newer weightedshap",
    )


def test_an_older_version_says_what_to_do(load_tampered):
    assert_refused(
        lambda: load_tampered(head=lambda known: known.update(version=1)),
        "format version 1, and this weightedshap reads version 2. Save it again",
    )


@pytest.mark.parametrize(
    "change", [{"version": "1"}, {"version": 0}, {"version": True}, {"format": "weightedshap x"}]
)
def test_another_kind_of_file_is_refused(change, load_tampered):
    assert_refused(
        lambda: load_tampered(head=lambda known: known.update(change)),
        "is not a number|not 'weightedshap explanation'",
    )


def test_pickled_arrays_are_refused_and_run_nothing(load_tampered):
    bomb = npy(np.array([Bomb()], dtype=object), allow_pickle=True)
    assert_refused(lambda: load_tampered({"values.npy": bomb}), "only numbers, text and dates")
    assert_refused(lambda: load_tampered({"values.npy": pickle.dumps(Bomb())}), "damaged")
    assert_refused(lambda: load_tampered({"bomb.npy": bomb}), "only numbers, text and dates")


@pytest.mark.parametrize(
    "name",
    ["../evil.npy", "/etc/evil.npy", "..\\evil.npy", "a/b.npy", "evil.py", "C:evil.npy", ".npy"],
)
def test_path_tricks_in_names_are_refused(name, load_tampered, tmp_path):
    before = sorted(tmp_path.iterdir())
    assert_refused(lambda: load_tampered({name: npy(np.zeros(1))}), "does not belong there")
    assert sorted(tmp_path.iterdir()) == sorted({*before, tmp_path / "bad.npz"})


@pytest.mark.parametrize(
    "shape", [(10**12,), (10**9, 10**9, 10**9), (-1,), (3, 5), (0, 10**18), ()]
)
def test_huge_and_false_shapes_are_refused_before_anything_is_allocated(shape, load_tampered):
    assert_refused(
        lambda: load_tampered({"values.npy": header(shape) + b"\0" * 96}),
        "which is not what it holds",
    )


@pytest.mark.parametrize("descr", ["<U0", "|V8", [("a", "<f8")], "|O"])
def test_odd_types_are_refused(descr, load_tampered):
    assert_refused(
        lambda: load_tampered({"values.npy": header((10**15,), descr)}),
        "only numbers, text and dates|damaged",
    )


def test_compressed_members_are_refused_because_they_may_explode(load_tampered):
    zeros = {"values.npy": npy(np.zeros((100, 1000)))}
    assert_refused(
        lambda: load_tampered(zeros, compression=zipfile.ZIP_DEFLATED), "compressed or encrypted"
    )


def test_members_that_share_their_bytes_are_refused(tmp_path):
    path = tmp_path / "bad.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", npy(np.zeros(1000)))
        for name in ("b.npy", "c.npy"):
            twin = zipfile.ZipInfo(name)
            known = archive.getinfo("a.npy")
            twin.header_offset, twin.CRC, twin.file_size, twin.compress_size = (
                0,
                known.CRC,
                8128,
                8128,
            )
            archive.filelist.append(twin)
            archive.NameToInfo[name] = twin
    assert_refused(lambda: ws.Explanation.load(path), "larger than the file")


def test_two_members_of_one_name_are_refused(tmp_path):
    path = tmp_path / "bad.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", npy(np.zeros(1)))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a.npy", npy(np.zeros(1)))
    assert_refused(lambda: ws.Explanation.load(path), "two of one name")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[",
        "null",
        "[1]",
        '{"format": ' + "[" * 100_000,
        '{"format": ' + "9" * 5000 + "}",
        "\xff",
    ],
)
def test_broken_json_is_refused(content, load_tampered):
    assert_refused(
        lambda: load_tampered({files.HEAD: content.encode("latin-1")}), "damaged|it holds None"
    )


@pytest.mark.parametrize("changed", ["values.npy", files.HEAD])
def test_what_was_changed_with_another_tool_is_refused(tmp_path, changed):
    explain().save(tmp_path / "good.npz")
    members = members_of(tmp_path / "good.npz")
    with zipfile.ZipFile(tmp_path / "good.npz") as archive:
        comment = archive.comment
    with zipfile.ZipFile(tmp_path / "bad.npz", "w") as archive:
        for name, content in members.items():
            archive.writestr(
                name, content[:-9] + b"}" + content[-8:] if name == changed else content
            )
        archive.comment = comment
    assert ws.Explanation.load(tmp_path / "good.npz").equals(explain())
    assert_refused(
        lambda: ws.Explanation.load(tmp_path / "bad.npz"), "changed after it was written|damaged"
    )


@pytest.mark.parametrize("name", ["values", "weights", "predictions", "base_values"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_impossible_numbers_are_refused(tmp_path, name, wrong):
    whole = explain()
    array = getattr(whole, name).copy()
    array.flat[0] = wrong
    dataclasses.replace(whole, **{name: array}).save(tmp_path / "bad.npz")
    assert_refused(lambda: ws.Explanation.load(tmp_path / "bad.npz"), f"{name} do not fit")


def test_negative_weights_are_refused(tmp_path):
    whole = explain()
    dataclasses.replace(whole, weights=-whole.weights).save(tmp_path / "bad.npz")
    assert_refused(lambda: ws.Explanation.load(tmp_path / "bad.npz"), "weights do not fit")


@pytest.mark.parametrize(
    "name", ["values", "orders", "family-vectors", "stopped-codes", "weight_labels"]
)
def test_missing_arrays_are_noticed(name, load_tampered):
    assert_refused(lambda: load_tampered({f"{name}.npy": None}), "damaged")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("values", np.zeros((3, 5))),
        ("values", np.zeros(3)),
        ("values", np.zeros((3, 4), dtype=int)),
        ("orders", np.full((3, 4), 10**9)),
        ("orders", np.zeros((3, 4), dtype=int)),
        ("curves", np.zeros((3, 4))),
        ("scores", np.zeros((3, 12))),
        ("contributions", np.zeros((3, 4, 3))),
        ("reference_curves-first", np.zeros(3)),
        ("weight_labels", np.zeros(3)),
        ("family-vectors", np.ones((13, 4))),
        ("family-vectors", np.ones((12, 4)) / 4),
        ("stopped-codes", np.array([0, 0, 10**9])),
        ("stopped-codes", np.zeros(2, dtype=int)),
        ("data", np.zeros((2, 4))),
    ],
)
def test_fields_that_do_not_fit_together_are_refused(name, array, load_tampered):
    assert_refused(
        lambda: load_tampered({f"{name}.npy": npy(array)}), "do not fit together|damaged"
    )


@pytest.mark.parametrize(
    "tag",
    [
        {"python": "x"},
        {"array": "../x"},
        {"array": []},
        {"frame": {}},
        {},
        {"map": [1]},
        {"float": "x"},
        [],
        "x",
    ],
)
def test_unknown_content_is_refused(tag, load_tampered):
    def change(known):
        for item in known["content"]["map"]:
            if item[0] == "feature_names":
                item[1] = tag

    assert_refused(lambda: load_tampered(head=change), "cannot be loaded")


@pytest.mark.parametrize("kind", ["plain", "text"])
def test_one_array_cannot_be_unfolded_into_many_columns(kind, load_tampered):
    reference = {"array": "data"}
    text = {
        "text": {"bytes": reference, "ends": reference, "missing": reference},
        "storage": "python",
        "missing": "NA",
    }
    index = {"names": [None], "range": [0, 3, 1]}

    def change(known):
        for item in known["content"]["map"]:
            if item[0] == "data":
                columns = [{"plain": reference} if kind == "plain" else text] * 1000
                item[1] = {"frame": {"columns": columns, "labels": index, "index": index}}

    assert_refused(
        lambda: load_tampered({"data.npy": npy(np.zeros(3, dtype=np.uint8))}, change), "damaged"
    )


@pytest.mark.parametrize("name", ["utility", "notes", "game_info", "family", "stopped"])
def test_fields_of_the_wrong_type_are_refused(name, load_tampered):
    def change(known):
        for item in known["content"]["map"]:
            if item[0] == name:
                item[1] = 7

    assert_refused(lambda: load_tampered(head=change), "do not fit together|damaged")
