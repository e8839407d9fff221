"""Sessions that the Copilot CLI keeps, through the SDK: their list and their history.

The SDK returns all sessions in one answer, so the pages are made here. The history arrives as events of the SDK. They
are translated to the updates of ACP, in which the turns of other programs are imported as well.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from copilot import session_events as s
from copilot.client import SessionListFilter, SessionMetadata

from portico.agents.acp.history import HistoryBuilder
from portico.agents.copilot.event import KINDS
from portico.agents.copilot.runtime import Runtime
from portico.agents.native import NativeHistory, NativePage, NativeSession
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json

PAGE = 100
"""Sessions per page: as many as the other programs list."""
_TITLE_CHARS = 200


async def list_sessions(runtime: Runtime, cwd: str | None, cursor: str | None) -> NativePage:
    wanted = SessionListFilter(working_directory=cwd) if cwd is not None else None
    found = [each for each in await runtime.ask(runtime.client.list_sessions(wanted)) if not each.is_remote]
    found.sort(key=lambda each: each.modified_time, reverse=True)
    try:
        first = int(cursor or 0)
    except ValueError:
        raise BadRequest(f"{cursor!r} is not a cursor of this list.", field="cursor") from None
    following = str(first + PAGE) if first + PAGE < len(found) else None
    return NativePage([_entry(each) for each in found[first : first + PAGE]], following)


def _entry(found: SessionMetadata) -> NativeSession:
    return NativeSession(
        found.session_id,
        found.context.working_directory if found.context is not None else "",
        " ".join((found.summary or "").split())[:_TITLE_CHARS],
        milliseconds(found.modified_time),
    )


async def read_history(runtime: Runtime, session: NativeSession, provider: Json | None) -> NativeHistory:
    """Without handlers the session runs nothing; it is released afterwards."""
    more: dict[str, Any] = {"provider": provider} if provider is not None else {}
    opened = await runtime.ask(
        runtime.client.resume_session(session.id, client_name="portico", suppress_resume_event=True, **more)
    )
    try:
        events = await runtime.ask(opened.get_events())
    finally:
        await runtime.ask(opened.disconnect())
    builder = HistoryBuilder("copilot", session.id, session.updated)
    for event in events:
        for update in updates(event):
            await builder.update(update)
    return NativeHistory(builder.finish())


def updates(event: s.SessionEvent) -> Iterator[Json]:
    """Translate one event. Events of sub-agents are part of the output of the call that started them."""
    if event.agent_id is not None or getattr(event.data, "parent_tool_call_id", None):
        return
    meta = {"timestamp": milliseconds(event.timestamp)}
    match event.data:
        case s.UserMessageData() as data:
            yield {"sessionUpdate": "user_message_chunk", "messageId": str(event.id), **_text(data.content, meta)}
        case s.AssistantReasoningData() as data:
            yield {"sessionUpdate": "agent_thought_chunk", "messageId": data.reasoning_id, **_text(data.content, meta)}
        case s.AssistantMessageData() as data:
            if data.reasoning_text:
                thought = _text(data.reasoning_text, meta)
                yield {"sessionUpdate": "agent_thought_chunk", "messageId": data.message_id, **thought}
            if data.content:
                text = _text(data.content, meta)
                yield {"sessionUpdate": "agent_message_chunk", "messageId": data.message_id, **text}
        case s.ToolExecutionStartData() as data:
            name = data.mcp_tool_name or data.tool_name
            yield {
                "sessionUpdate": "tool_call",
                "toolCallId": data.tool_call_id,
                "title": data.tool_title or name,
                "kind": KINDS.get(name, "other"),
                "rawInput": data.arguments,
                "_meta": meta,
            }
        case s.ToolExecutionCompleteData() as data:
            shown = data.result.content if data.result is not None else data.error.message if data.error else ""
            yield {
                "sessionUpdate": "tool_call_update",
                "toolCallId": data.tool_call_id,
                "status": "completed" if data.success else "failed",
                "rawOutput": shown,
                "_meta": meta,
            }


def _text(text: str, meta: Json) -> Json:
    return {"content": {"type": "text", "text": text}, "_meta": meta}


def milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)
