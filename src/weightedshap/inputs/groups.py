"""Players made of several columns."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized

import numpy as np

from weightedshap._checks import IntArray, unknown_sentence
from weightedshap._format import quoted

Groups = Mapping[str, Sequence[int | str]] | Sequence[Sequence[int | str]]


def group_of(names: tuple[str, ...], groups: Groups | None) -> dict[str, str]:
    """For each column that is in a group, the name of the group."""
    groups = () if groups is None else groups
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise TypeError(
            f"`groups` must be {{name: columns}} or a list of lists of columns; got {groups!r}."
        )
    members = [
        _members(one, names) for one in (groups.values() if isinstance(groups, Mapping) else groups)
    ]
    labels = [*map(str, groups)] if isinstance(groups, Mapping) else [*map(_label, members)]
    if twice := repeated(labels):
        raise ValueError(
            f"Two groups are named {twice[0]!r}. Give each a name of its own: {{name: columns}}."
        )
    group: dict[str, str] = {}
    for label, columns in zip(labels, members, strict=True):
        if not columns:
            raise ValueError(
                f"The group {label!r} has no columns. Name at least one, or leave it out."
            )
        for name in columns:
            if name in group:
                raise ValueError(
                    f"Column {name!r} is in two groups, {group[name]!r} and {label!r}."
                )
            group[name] = label
    if taken := [name for name in names if name in labels and name not in group]:
        raise ValueError(
            f"The group {taken[0]!r} is named like a column outside it. Give the group another"
            " name."
        )
    return group


def players_of(owners: Iterable[str]) -> tuple[tuple[IntArray, ...], tuple[str, ...]]:
    """The columns of each player and its name, in the order in which players are first met."""
    columns: dict[str, list[int]] = {}
    for column, player in enumerate(owners):
        columns.setdefault(player, []).append(column)
    return tuple(np.array(c, dtype=np.intp) for c in columns.values()), tuple(columns)


def code_of_one_player(columns: Iterable[int], owner: IntArray, names: Sequence[str]) -> str:
    """Return code to paste, ``groups={…}``, that makes one player of `columns` of a background `X`.

    `owner` (c,) and `names` are the players that columns belong to so far, and the columns' names.
    Players that have one of the columns become one, and others of several columns stay. No name is
    left out, however many there are, so that the code runs.
    """
    joined = {int(owner[c]) for c in columns}
    first = min(joined)
    members: dict[int, list[str]] = {}
    for player, name in zip(owner.tolist(), names, strict=True):
        members.setdefault(first if player in joined else player, []).append(name)

    if len(members) == 1:
        # as columns of arrays are called
        numbered = list(names) == [f"x{c}" for c in range(len(names))]
        every = f"range({len(names)})" if numbered else "list(X.columns)"
        return f'groups={{"all": {every}}}'
    several = {_label(own): own for own in members.values() if len(own) > 1}
    return f"groups={several!r}"


def listed(names: Sequence[str], most: int = 8) -> str:
    """``'a', 'b' and 3 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(quoted, names[:most])) + more


def repeated(names: Iterable[str]) -> list[str]:
    """The names that stand more than once, in alphabetical order."""
    return sorted(name for name, times in Counter(names).items() if times > 1)


def _members(group: object, names: tuple[str, ...]) -> list[str]:
    """The columns of a group, given by name or by position."""
    if isinstance(group, (str, bytes)) or not (
        isinstance(group, Sized) and isinstance(group, Iterable)
    ):
        raise TypeError(
            f"A group must be a list of columns; got {group!r}. Write [{group!r}] for one column."
        )
    return [_named(member, names) for member in group]


def _named(member: object, names: tuple[str, ...]) -> str:
    if str(member) in names:
        return str(member)
    if isinstance(member, (int, np.integer)) and 0 <= member < len(names):
        return names[member]
    raise ValueError(unknown_sentence("column in `groups`", member, names))


def _label(members: Sequence[str], most: int = 4) -> str:
    """``a + b``; ``x0 + x1 + x2 + 61 more`` where there are many."""
    return " + ".join(
        members
        if len(members) <= most
        else [*members[: most - 1], f"{len(members) - most + 1} more"]
    )
