"""Players made of several columns: the option `groups`, and how columns and players are named.

A player is a group of columns, or a single column in no group. `table` builds the players of a
background with these functions; lists of names in errors and notes are written here, too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized

import numpy as np

from weightedshap._checks import IntArray, unknown_name_message
from weightedshap._format import quote

Groups = Mapping[str, Sequence[int | str]] | Sequence[Sequence[int | str]]
"""The option `groups`: ``{"address": ["city", "zip"]}``, or lists of columns without names."""


def group_by_column(names: tuple[str, ...], groups: Groups | None) -> dict[str, str]:
    """Return ``{column name: group name}`` for the columns that are in a group.

    `names` are the names of all columns. Raise an error if a group has no columns, a column is in
    two groups, or two players have the same name.
    """
    groups = () if groups is None else groups
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise TypeError(
            f"`groups` must be {{name: columns}} or a list of lists of columns; got {groups!r}."
        )
    selections = groups.values() if isinstance(groups, Mapping) else groups
    members = [_resolve_columns(selection, names) for selection in selections]
    labels = list(map(str, groups)) if isinstance(groups, Mapping) else list(map(_label, members))
    repeated_labels = duplicates(labels)
    if repeated_labels:
        raise ValueError(
            f"Two groups are named {repeated_labels[0]!r}. Give each a name of its own:"
            " {name: columns}."
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

    clashes = [name for name in names if name in labels and name not in group]
    if clashes:
        raise ValueError(
            f"The group {clashes[0]!r} is named like a column outside it. Give the group another"
            " name."
        )
    return group


def split_into_players(
    player_names: Iterable[str],
) -> tuple[tuple[IntArray, ...], tuple[str, ...]]:
    """Return each player's column indices and name, given the player's name for each column.

    Players are in the order of their first columns.
    """
    columns: dict[str, list[int]] = {}
    for column, player in enumerate(player_names):
        columns.setdefault(player, []).append(column)
    return tuple(np.array(c, dtype=np.intp) for c in columns.values()), tuple(columns)


def grouping_code(columns: Iterable[int], owner: IntArray, names: Sequence[str]) -> str:
    """Return the Python code ``groups={…}`` that makes one player of the given columns.

    `owner` (c,) is the current player of each column, and `names` are the column names in a
    background `X`. Players that contain one of the `columns` are merged, and other players of
    several columns stay. No name is left out, however many there are, so that the code runs.
    """
    merged = {int(owner[c]) for c in columns}
    first = min(merged)
    members: dict[int, list[str]] = {}
    for player, name in zip(owner.tolist(), names, strict=True):
        members.setdefault(first if player in merged else player, []).append(name)

    if len(members) == 1:
        # Columns of arrays have these names; an array has no `X.columns`.
        is_array = list(names) == [f"x{c}" for c in range(len(names))]
        all_columns = f"range({len(names)})" if is_array else "list(X.columns)"
        return f'groups={{"all": {all_columns}}}'
    several = {_label(group): group for group in members.values() if len(group) > 1}
    return f"groups={several!r}"


def comma_list(names: Sequence[str], most: int = 8) -> str:
    """Join quoted names as in ``'a', 'b' and 3 more``; at most `most` of them are written out."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(quote, names[:most])) + more


def duplicates(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, in alphabetical order."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def check_unique(names: Iterable[str]) -> None:
    """Raise an error if a column name occurs more than once."""
    repeated_names = duplicates(names)
    if repeated_names:
        raise ValueError(
            f"Column names must differ; {', '.join(map(repr, repeated_names))} stands more than"
            " once."
        )


def _resolve_columns(group: object, names: tuple[str, ...]) -> list[str]:
    """Return the names of the columns in a group, which lists names or positions.

    `names` are the names of all columns.
    """
    is_text = isinstance(group, (str, bytes))
    if is_text or not (isinstance(group, Sized) and isinstance(group, Iterable)):
        raise TypeError(
            f"A group must be a list of columns; got {group!r}. Write [{group!r}] for one column."
        )
    return [_resolve_column(member, names) for member in group]


def _resolve_column(member: object, names: tuple[str, ...]) -> str:
    """Return the name of a column that is given as a name or a position.

    `names` are the names of all columns.
    """
    if str(member) in names:
        return str(member)
    if isinstance(member, (int, np.integer)) and 0 <= member < len(names):
        return names[member]
    raise ValueError(unknown_name_message("column in `groups`", member, names))


def _label(members: Sequence[str], most: int = 4) -> str:
    """Return a name for an unnamed group of columns: ``a + b``, ``x0 + x1 + x2 + 61 more``.

    A name has at most `most` terms.
    """
    if len(members) <= most:
        return " + ".join(members)
    n_more = len(members) - most + 1
    return " + ".join([*members[: most - 1], f"{n_more} more"])
