"""The history of a project, from the stored sessions."""

from collections.abc import AsyncIterator

import msgspec

from portico.doors.anywhere.identity import Idents
from portico.doors.anywhere.translate import detail
from portico.features.people.view import View
from portico.features.projects.commands import Project
from portico.features.projects.projects import Projects
from portico.kernel.events import Json
from portico.kernel.state import CallPart, QuestionPart, TextPart, TurnState


async def messages(view: View, projects: Projects, idents: Idents, project: Project) -> list[Json]:
    """Return the current conversations of a project and of editors in its folder, in the order of their turns."""
    found: list[tuple[int, str, TurnState, str]] = []
    for ident in (*projects.sessions(project.id, view.has), *projects.chats(project.id, view.has)):
        session = await view.get(ident)
        found += [(turn.started, ident, turn, session.state.model) for turn in session.state.turns]
    items: list[Json] = []
    for _, session_id, turn, model in sorted(found, key=lambda each: each[0]):
        items += turn_items(await idents.of(session_id, turn.id), turn, model)
    return items


async def context(view: View, projects: Projects, idents: Idents, project: Project) -> AsyncIterator[bytes]:
    """Yield the whole history as JSON lines, one conversation after another, including cleared ones."""
    for ident in (*projects.sessions(project.id, view.has, cleared=True), *projects.chats(project.id, view.has)):
        session = await view.get(ident)
        for turn in session.state.turns:
            items = turn_items(await idents.of(ident, turn.id), turn, session.state.model)
            yield b"".join(msgspec.json.encode({"session": ident, **item}) + b"\n" for item in items)


def turn_items(ident: str, turn: TurnState, model: str) -> list[Json]:
    model = turn.message.model or (turn.usage.model if turn.usage is not None else "") or model
    items: list[Json] = [
        {"type": "inbound", "id": ident, "text": turn.message.text, "source": turn.by, "time": turn.started}
    ]
    for part in turn.parts:
        if isinstance(part, TextPart) and part.kind != "reasoning":
            items.append({"type": "outbound", "id": ident, "text": part.text, "model": model})
        elif isinstance(part, CallPart):
            items.append(
                {
                    "type": "action",
                    "id": ident,
                    "tool": part.tool,
                    "summary": part.title or part.tool,
                    "ok": part.ok,
                    "detail": detail(part),
                }
            )
        elif isinstance(part, QuestionPart):
            asked = {"type": "question", "id": ident, "questionId": part.id, "text": part.text}
            items.append({**asked, **({"response": part.response, "answers": part.answers} if part.done else {})})
    if turn.outcome is not None:
        error = {"error": turn.error.message} if turn.error is not None else {}
        items.append({"type": "done", "id": ident, "outcome": turn.outcome, "model": model, **error})
    return items
