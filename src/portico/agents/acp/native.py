"""Sessions that an ACP agent's own program keeps: `session/list`, `session/load`, and the way back to the program."""

import contextlib
import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from portico.agents.acp.autonomy import kind_of
from portico.agents.acp.choice import choices
from portico.agents.acp.program import Program
from portico.agents.native import NativeHistory, NativePage, NativeSession, OwnCommand
from portico.agents.supervisor import agent_environment
from portico.kernel.errors import AgentError, Conflict
from portico.kernel.events import Json

if TYPE_CHECKING:
    from portico.agents.acp.agent import AcpAgent
    from portico.agents.acp.link import AgentLink

CONTINUE: dict[str, list[str]] = {
    "claude": ["claude", "--resume", "{id}"],
    "codex": ["codex", "resume", "{id}"],
    "copilot": ["copilot", "--resume={id}"],
    "goose": ["goose", "session", "--resume", "--session-id", "{id}"],
    "opencode": ["opencode", "--session", "{id}"],
    "qwen": ["qwen", "--resume", "{id}"],
}
"""How each program continues a session in the terminal, as its help describes it. Gemini 0.61 takes only the number of
a session in its current list, which changes."""
MESSAGE: dict[str, list[str]] = {
    "claude": ["claude", "-p", "{text}", "--resume", "{id}"],
    "codex": ["codex", "exec", "--skip-git-repo-check", "resume", "{id}", "{text}"],
    "copilot": ["copilot", "-p", "{text}", "--resume={id}"],
    "goose": ["goose", "run", "-t", "{text}", "--resume", "--session-id", "{id}"],
    "opencode": ["opencode", "run", "{text}", "--session", "{id}"],
    "qwen": ["qwen", "-p", "{text}", "--resume", "{id}"],
}
"""How each program sends one message to a session without its interactive page."""
_PER_FOLDER = ("qwen",)
"""Programs that list the sessions of one folder at a time."""
_LOCKING = ("codex",)
"""Programs that lock a session for the process that has loaded it, until that process exits. `session/close` of
codex-acp 2.6 does not release the lock, and `codex resume` answers "already has an active writer"."""
_FOLDERS = 20
"""Folders that are searched in such programs: the list is bounded by time as well."""
_TITLE_CHARS = 200


async def list_sessions(agent: "AcpAgent", cwd: str | None, cursor: str | None, folders: Sequence[str]) -> NativePage:
    async with agent.connected(cwd) as link:
        if not link.capability("sessionCapabilities", "list"):
            return NativePage([])
        if cwd is None and kind_of(agent.program) in _PER_FOLDER:
            pages = [await _page(link, folder, None) for folder in folders[:_FOLDERS]]
            return NativePage([each for page in pages for each in page.sessions])
        return await _page(link, cwd, cursor)


async def _page(link: "AgentLink", cwd: str | None, cursor: str | None) -> NativePage:
    params = {name: value for name, value in (("cwd", cwd), ("cursor", cursor)) if value is not None}
    answer = await link.request("session/list", params)
    found, following = answer.get("sessions"), answer.get("nextCursor")
    entries = [_entry(each) for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return NativePage([each for each in entries if each.id], following if isinstance(following, str) else None)


def _entry(found: Json) -> NativeSession:
    meta: Any = found.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    count = meta.get("messageCount")
    title = str(found.get("title") or meta.get("preview") or "").strip()
    return NativeSession(
        str(found.get("sessionId") or ""),
        str(found.get("cwd") or ""),
        " ".join(title.split())[:_TITLE_CHARS],
        _milliseconds(found.get("updatedAt")),
        count if isinstance(count, int) else None,
    )


def _milliseconds(text: object) -> int:
    """An ISO time (`2026-01-31T05:13:55.123Z`) in milliseconds since the epoch; 0 if it is none."""
    try:
        return int(datetime.fromisoformat(str(text)).timestamp() * 1000)
    except ValueError:
        return 0


def locks_sessions(program: Program) -> bool:
    return kind_of(program) in _LOCKING


async def read_history(agent: "AcpAgent", session: NativeSession) -> NativeHistory:
    async with agent.connected(session.cwd, alone=locks_sessions(agent.program)) as link:
        from portico.agents.acp.history import HistoryBuilder
        from portico.agents.acp.replay import HistoryReplay

        if not link.capability("loadSession"):
            raise Conflict(f"{agent.program.name or agent.name} cannot load its sessions (no `session/load`).")
        builder = HistoryBuilder(agent.id, session.id, session.updated)
        replay = HistoryReplay(builder, everything=True)
        link.join(session.id, replay)
        try:
            # `mcpServers` is required: claude-agent-acp answers "Invalid params" without it.
            answer = await link.request("session/load", {"sessionId": session.id, "cwd": session.cwd, "mcpServers": []})
            await replay.over(link, session.id)
        finally:
            link.part(session.id, replay)
        agent.learn(link, answer)
        if link.capability("sessionCapabilities", "close"):
            with contextlib.suppress(AgentError):  # the history is read: a failing close changes nothing
                await link.request("session/close", {"sessionId": session.id})
        model = next((each.current for each in choices(answer) if each.category == "model"), "")
        return NativeHistory(builder.finish(), model)


def message_command(program: Program, session: str, text: str) -> OwnCommand | None:
    words = MESSAGE.get(kind_of(program) or "")
    if words is None:
        return None
    command = [each.replace("{id}", session).replace("{text}", text) for each in words]
    return OwnCommand(command, agent_environment(program.pass_env, program.env))


def terminal_command(program: Program, session: str, cwd: str) -> str:
    words = [each.replace("{id}", session) for each in CONTINUE.get(kind_of(program) or "", [])]
    return f"cd {shlex.quote(cwd)} && {shlex.join(words)}" if words else ""
