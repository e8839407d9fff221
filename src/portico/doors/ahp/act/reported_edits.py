"""Changesets without git: the edits that the calls of a turn, or of all turns, have reported.

A file that was edited more than once has one entry, from the first text that was replaced to the last one written.
Changes made by shell commands are not known here.
"""

import asyncio
from typing import TYPE_CHECKING

from portico.doors.ahp.view.content import file_edit
from portico.doors.ahp.wire.record import Json
from portico.kernel.session import Session
from portico.kernel.state import CallPart, TurnState

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorHub


async def edits(broker: "EditorHub", session: Session, turn: str | None) -> list[Json]:
    """The edits of one turn of a chat, or of all turns, including those of its sub-agents."""
    # Counting the lines of both texts of every edit in a long session would block the event loop.
    return await asyncio.to_thread(_by_file, await _turns(broker, session, turn))


def _by_file(turns: list[TurnState]) -> list[Json]:
    found: dict[str, Json] = {}
    for each in [made for turn in turns for made in _made(turn)]:
        name = each["after"]["uri"]
        found[name] = _joined(found[name], each) if name in found else each
    return list(found.values())


async def _turns(broker: "EditorHub", session: Session, turn: str | None) -> list[TurnState]:
    found = [each for each in session.state.turns if turn in (None, each.id)]
    idents = {each.id for each in found}
    for child in reversed(broker.host.list(parent=session.id)):  # oldest first
        if child.origin is not None and child.origin.kind == "agent" and child.origin.turn in idents:
            found += await _turns(broker, await broker.host.get(child.id), None)
    return found


def _made(turn: TurnState) -> list[Json]:
    calls = [part for part in list(turn.parts) if isinstance(part, CallPart) and part.done and part.ok]
    items = [item for call in calls for item in call.content if item.get("type") == "diff"]
    return [made for item in items if (made := file_edit(item)) is not None]


def _joined(first: Json, last: Json) -> Json:
    counts = {key: count + last["diff"][key] for key, count in first["diff"].items()}
    return first | {"after": last["after"], "diff": counts}
