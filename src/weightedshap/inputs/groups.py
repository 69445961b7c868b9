"""Players made of several columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weightedshap.checks import IntArray, unknown_sentence

__all__ = ["Groups", "owners", "players_of", "listed"]

Groups = Mapping[str, Sequence[Any]] | Sequence[Sequence[Any]]


def owners(names: tuple[str, ...], groups: Groups | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """For each column the player it belongs to, its group or the column itself; and the columns in no group."""
    owner: dict[int, str] = {}
    places = {name: column for column, name in enumerate(names)}
    for label, members in _labelled(groups, places):
        if len(members) == 0:
            raise ValueError(f"The group {label!r} has no columns. Name at least one, or leave it out.")
        for member in members:
            column = _position(member, places)
            if column in owner:
                raise ValueError(f"Column {names[column]!r} is in two groups, {owner[column]!r} and {label!r}.")
            owner[column] = label
    alone = tuple(name for column, name in enumerate(names) if column not in owner)
    labels = set(owner.values())
    taken = [name for name in alone if name in labels]
    if taken:
        raise ValueError(f"The group {taken[0]!r} is named like a column outside it. Give the group another name.")
    return tuple(owner.get(column, name) for column, name in enumerate(names)), alone


def players_of(owner: Sequence[str]) -> tuple[tuple[IntArray, ...], tuple[str, ...]]:
    """The columns of each player and its name, in the order in which players are first met."""
    columns: dict[str, list[int]] = {}
    for column, player in enumerate(owner):
        columns.setdefault(player, []).append(column)
    return tuple(np.array(c, dtype=np.intp) for c in columns.values()), tuple(columns)


def listed(names: Sequence[str], most: int = 8) -> str:
    """``'a', 'b' and 3 more``."""
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _labelled(groups: Groups | None, places: Mapping[str, int]) -> list[tuple[str, Sequence[Any]]]:
    if groups is None:
        return []
    if isinstance(groups, str) or not hasattr(groups, "__iter__"):
        raise TypeError(f"`groups` must be {{name: columns}} or a list of lists of columns; got {groups!r}.")
    if isinstance(groups, Mapping):
        pairs = [(str(label), _members(members)) for label, members in groups.items()]
    else:
        pairs = [(_label(_members(members), places), members) for members in groups]
    labels = [label for label, _ in pairs]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ValueError(f"Two groups are named {twice[0]!r}. Give each a name of its own: {{name: columns}}.")
    return pairs


def _members(members: Any) -> Sequence[Any]:
    if isinstance(members, (str, bytes)) or not hasattr(members, "__len__"):
        raise TypeError(f"A group must be a list of columns; got {members!r}. Write [{members!r}] for one column.")
    return list(members)


def _label(members: Sequence[Any], places: Mapping[str, int], most: int = 4) -> str:
    """``a + b``; ``x0 + x1 + x2 + 61 more`` where there are many."""
    names = list(places)
    shown = [names[_position(member, places)] for member in members]
    return " + ".join(shown if len(shown) <= most else [*shown[: most - 1], f"{len(shown) - most + 1} more"])


def _position(member: Any, places: Mapping[str, int]) -> int:
    if isinstance(member, (int, np.integer)) and str(member) not in places and 0 <= member < len(places):
        return int(member)
    if str(member) not in places:
        raise ValueError(unknown_sentence("column in `groups`", member, tuple(places)))
    return places[str(member)]
