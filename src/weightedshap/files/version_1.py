"""Folders of explainers that the first version wrote, as the content that `explainers` reads
now."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from weightedshap.files import archive
from weightedshap.inputs.containers import Array

Content = dict[str, Any]
DTYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}


def translated(content: Content, folder: Path) -> Content:
    """The first version kept a recipe beside its choices, and learned games in files of their
    own."""
    recipe = content["recipe"]
    game = content["game"]
    again = content["again"]
    choices = {name: value for name, value in content["choices"].items() if name not in again}
    if recipe is not None:
        choices["game"] = {"recipe": recipe["name"], "settings": recipe["settings"]}
    choices["family"] = content["family"]
    learned = (
        None
        if game is None
        else (_trees if game["kind"] == "tree_surrogate" else _network)(game, folder)
    )
    return {
        "choices": choices,
        "again": again,
        "background": content["background"],
        "learned": learned,
    }


def _trees(game: Content, folder: Path) -> Content:
    texts = [
        _bytes(folder / f"booster_{output}.txt").decode("utf-8")
        for output in range(game["outputs"])
    ]
    encoding = {"missing": game["missing"], "ranks": game["ranks"]}
    return {
        "recipe": "TreeSurrogate",
        "boosters": texts,
        "encoding": encoding,
        "quality": game["quality"],
    }


def _network(game: Content, folder: Path) -> Content:
    settings = json.loads(_bytes(folder / "network" / "network.json").decode("utf-8"))
    arrays = _tensors(folder / "network" / "network.safetensors")
    ranks = {
        int(c): {v: float(r) for r, v in enumerate(vs)} for c, vs in settings["categories"].items()
    }
    centre, scale, holes = (arrays[f"inputs.{name}"] for name in ("centre", "scale", "holes"))
    quality = settings["quality"]
    return {
        "recipe": "NeuralSurrogate",
        "settings": settings["recipe"],
        **{name: settings[name] for name in ("names", "players", "outputs")},
        "encoding": {"missing": arrays["inputs.missing"], "ranks": ranks},
        "inputs": {"centre": centre, "scale": scale, "holes": tuple(holes.tolist())},
        "parameters": {name: arrays[name] for name in ("W1", "b1", "W2", "b2", "W3", "b3")},
        "target": {"link": settings["link"], "centre": arrays["centre"], "scale": arrays["scale"]},
        "quality": quality
        | {"held_out_error_by_size": np.array(quality["held_out_error_by_size"])},
    }


def _bytes(path: Path) -> bytes:
    with archive.open_regular(path) as file:
        return file.read()


def _tensors(path: Path) -> dict[str, Array]:
    """The arrays of a safetensors file: the length of its head, the head as JSON, and the bytes it
    points into."""
    content = _bytes(path)
    start = 8 + int.from_bytes(content[:8], "little")
    head = json.loads(content[8:start])
    body = content[start:]
    head.pop("__metadata__", None)
    flat = {
        name: np.frombuffer(body[slice(*e["data_offsets"])], DTYPES[e["dtype"]])
        for name, e in head.items()
    }
    return {name: array.reshape(head[name]["shape"]).copy() for name, array in flat.items()}
