"""A directory of small datasets, and a stand-in for OpenML."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets._openml as sklearn_openml

from weightedshap_paper import datasets

COLUMNS = ("a", "word", "b", "c", "d")
NUMBERS = ("a", "b", "c", "d")


def small_table(name, n=600):
    """A table with four columns of numbers and one of words, and a target that two of them tell."""
    rng = np.random.default_rng(len(name))
    frame = pd.DataFrame(
        {c: rng.choice(["x", "y"], n) if c == "word" else rng.normal(size=n) for c in COLUMNS}
    )
    signal = frame["a"] + 0.5 * frame["b"]
    rare = (signal > 1.5).astype(int)
    return frame.assign(target=signal.round(3) if name in datasets.REGRESSION else rare)


def write_manifest(directory, entries):
    (directory / "MANIFEST.json").write_text(json.dumps({"datasets": entries}), encoding="utf-8")


def entry(path, features=COLUMNS):
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"file": path.name, "sha256": digest, "features": list(features), "task": "ignored"}


def small_images(n):
    """n images whose digit is the column of the bright pixels."""
    digits = np.arange(n) % 10
    images = np.random.default_rng(n).integers(0, 60, size=(n, 28, 28))
    images[np.arange(n)[:, None], :, 2 * digits[:, None] + np.arange(3)] = 255
    return images.astype(np.uint8), digits.astype(np.uint8)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """WEIGHTEDSHAP_DATA with every dataset, small."""
    directory = tmp_path / "data"
    directory.mkdir()
    entries = {}
    for name in datasets.DATASETS:
        path = directory / f"{name}.csv.gz"
        small_table(name).to_csv(path, index=False)
        entries[name] = entry(path)
    (x_train, y_train) = small_images(600)
    (x_test, y_test) = small_images(100)
    np.savez(
        directory / "mnist.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test
    )
    entries["mnist"] = entry(directory / "mnist.npz", "28 x 28")
    write_manifest(directory, entries)
    monkeypatch.setenv(datasets.VARIABLE, str(directory))
    return directory


class StandIn:
    """OpenML's answers for one dataset given as ARFF columns and rows."""

    def __init__(self, openml, attributes, rows, md5=None):
        header = [f"@attribute {name} {kind}" for name, kind in attributes]
        self.arff = (
            "\n".join(["@relation t", *header, "@data", *(",".join(map(str, row)) for row in rows)])
            + "\n"
        )
        self.openml, self.attributes, self.n = openml, attributes, len(rows)
        self.md5 = md5 or hashlib.md5(self.arff.encode()).hexdigest()
        self.requests = []

    def answer(self, path, base):
        self.requests.append(path)
        if path == f"/data/{self.openml}":
            about = {
                "status": "active",
                "format": "ARFF",
                "url": f"{base}/file.arff",
                "md5_checksum": self.md5,
            }
            return json.dumps(
                {"data_set_description": {**about, "description": "", "name": "t", "version": "1"}}
            )
        if path.startswith("/features/"):
            return json.dumps(
                {"data_features": {"feature": [self.feature(*pair) for pair in self.attributes]}}
            )
        if path.startswith("/qualities/"):
            return json.dumps(
                {
                    "data_qualities": {
                        "quality": [{"name": "NumberOfInstances", "value": str(self.n)}]
                    }
                }
            )
        return self.arff if path == "/file.arff" else None

    @staticmethod
    def feature(name, kind):
        plain = {"name": name, "data_type": "numeric", "is_target": "false", "is_ignore": "false"}
        nominal = (
            {"data_type": "nominal", "nominal_value": kind.strip("{}").split(",")}
            if kind[0] == "{"
            else {}
        )
        return {**plain, **nominal, "is_row_identifier": "false", "number_of_missing_values": "0"}


@pytest.fixture
def openml(tmp_path, monkeypatch):
    """A function that puts a `StandIn` in the place of OpenML, with an empty cache and no data
    directory."""
    pytest.importorskip("sklearn", "1.7")  # the stand-in speaks as OpenML does to this version
    monkeypatch.delenv(datasets.VARIABLE, raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(sklearn_openml.time, "sleep", lambda seconds: None)
    servers = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            host, port = self.server.server_address
            text = self.server.stand_in.answer(self.path, f"http://{host}:{port}")
            self.send_response(404 if text is None else 200)
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, *arguments):
            pass

    def serve(stand_in):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.stand_in = stand_in
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        host, port = server.server_address
        for name, path in (
            ("_DATA_INFO", "data"),
            ("_DATA_FEATURES", "features"),
            ("_DATA_QUALITIES", "qualities"),
        ):
            monkeypatch.setattr(sklearn_openml, name, f"http://{host}:{port}/{path}/{{}}")
        return server

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()
