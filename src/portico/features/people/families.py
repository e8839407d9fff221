"""Families of sessions in a list of summaries: those that a caller may see, for example."""

from collections.abc import Iterable

from portico.kernel.events import number_of
from portico.kernel.state import Summary

Children = dict[str, list[Summary]]
"""Summaries by their parent."""


def children(summaries: Iterable[Summary]) -> Children:
    found: Children = {}
    for summary in summaries:
        if summary.parent is not None:
            found.setdefault(summary.parent, []).append(summary)
    return found


def descendants(root: str, among: Children) -> list[Summary]:
    found: list[Summary] = []
    todo = [root]
    while todo:
        below = among.get(todo.pop(), [])
        found += below
        todo += [each.id for each in below]
    return sorted(found, key=lambda each: (each.created, number_of(each.id)))
