"""Folders of explainers that the first version wrote, as the content that `explainers` reads now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

NETWORK = "network"


def translated(content: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The first version kept a recipe beside its choices, and learned games in files of their own."""
    choices, recipe, game = dict(content["choices"]), content["recipe"], content["game"]
    again = list(content["again"])
    for name in again:
        choices.pop(name, None)
    if recipe is not None:
        choices["game"] = {"recipe": recipe["name"], "settings": recipe["settings"]}
    return {
        "choices": {**choices, "family": content["family"]},
        "again": again,
        "background": content["background"],
        "learned": None if game is None else LEARNED[game["kind"]](game, folder),
    }


def _trees(game: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    paths = [folder / f"booster_{output}.txt" for output in range(game["outputs"])]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    encoding = {"missing": game["missing"], "ranks": game["ranks"]}
    return {"recipe": "TreeSurrogate", "boosters": texts, "encoding": encoding, "quality": game["quality"]}


def _network(game: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    settings = json.loads((folder / NETWORK / "network.json").read_text(encoding="utf-8"))
    arrays = _tensors(folder / NETWORK / "network.safetensors")
    ranks = {int(c): {v: float(r) for r, v in enumerate(vs)} for c, vs in settings["categories"].items()}
    inputs = {name.removeprefix("inputs."): array for name, array in arrays.items() if name.startswith("inputs.")}
    quality = settings["quality"]
    quality["held_out_error_by_size"] = np.array(quality["held_out_error_by_size"])
    return {
        "recipe": "NeuralSurrogate",
        "settings": settings["recipe"],
        **{name: settings[name] for name in ("names", "players", "outputs")},
        "encoding": {"missing": inputs["missing"], "ranks": ranks},
        "inputs": {"centre": inputs["centre"], "scale": inputs["scale"], "holes": tuple(inputs["holes"].tolist())},
        "parameters": {name: arrays[name] for name in ("W1", "b1", "W2", "b2", "W3", "b3")},
        "target": {"link": settings["link"], "centre": arrays["centre"], "scale": arrays["scale"]},
        "quality": quality,
    }


LEARNED = {"tree_surrogate": _trees, "neural_surrogate": _network}
DTYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}


def _tensors(path: Path) -> dict[str, Any]:
    """The arrays of a safetensors file: the length of its head, the head as JSON, and the bytes it points into."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    head = json.loads(content[8:start])
    return {
        name: np.frombuffer(content[start:][slice(*entry["data_offsets"])], DTYPES[entry["dtype"]])
        .reshape(entry["shape"])
        .copy()
        for name, entry in head.items()
        if name != "__metadata__"
    }
