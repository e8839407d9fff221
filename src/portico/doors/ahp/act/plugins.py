"""Plugins that a client contributes to a session (`activeClient.customizations`): read from the client, shown to all.

A plugin is a folder on the client's side: `skills/NAME/SKILL.md`, `commands/NAME.md`, `agents/NAME.md` and
`rules/NAME.md`. The host asks for those files (`resourceList`, `resourceRead`), lists what it found as the plugin's
children, and keeps their texts with the session while the client is connected. Nothing of a plugin is ever run: its
hooks and MCP servers would be foreign programs on this machine.
"""

import asyncio
import base64
import binascii
import logging
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from portico.doors.ahp.wire import uri
from portico.doors.ahp.wire.record import Json
from portico.kernel.commands import Caller, ShareData
from portico.kernel.customization import PLUGIN
from portico.kernel.errors import PorticoError
from portico.kernel.session import Session
from portico.kernel.state import is_subagent

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient

logger = logging.getLogger("portico.ahp")

_PLUGINS = 50
"""Of one client in one session: more is a mistake."""
_FILES = 100
"""Of one plugin."""
_FILE_CHARS = 64 * 1024
_PLUGIN_CHARS = 256 * 1024
"""Texts of one plugin: they are stored in the log, and the agent receives only a part of them."""
_SETTLE_SECONDS = 5.0
"""A turn waits this long for plugins that came just before it."""
_KINDS = {"skills": "skill", "commands": "prompt", "agents": "agent", "rules": "rule"}
_LEFT_OUT = ("hooks", ".mcp.json")


async def publish(connection: "EditorClient", session: Session, given: Iterable[Json]) -> None:
    """Store what the client contributes now; remove earlier contributions that it no longer names."""
    wanted = {str(each.get("id") or each["uri"]): each for each in list(given)[:_PLUGINS]}
    for ident, kept in _own(session, connection.client_id):
        if ident not in wanted:
            await _keep(session, ident, None)
        elif kept.get("nonce") is not None and kept.get("nonce") == wanted[ident].get("nonce"):
            del wanted[ident]  # the very same
    for ident, each in wanted.items():
        plugin = _announced(connection, session, ident, each)
        await _keep(session, plugin["id"], plugin)
        task = connection.spawn(_load(connection, session, plugin), f"plugin {ident}")
        loading = connection.broker.loading.setdefault(session.id, set())
        loading.add(task)
        task.add_done_callback(partial(_loaded, connection.broker.loading, session.id))


def _loaded(loading: dict[str, set[asyncio.Task[None]]], session: str, task: "asyncio.Task[None]") -> None:
    tasks = loading.get(session, set())
    tasks.discard(task)
    if not tasks:
        loading.pop(session, None)


async def withdraw(session: Session, client_id: str) -> None:
    """Remove the contributions of a client that has left."""
    for ident, _ in _own(session, client_id):
        await _keep(session, ident, None)


async def hand_down(session: Session, chat: Session) -> None:
    """Copy the plugins of a session to its new chat."""
    for key, value in list(session.state.client_data.items()):
        if key.startswith(PLUGIN):
            await _share(chat, key, value)


async def _keep(session: Session, ident: str, value: Json | None) -> None:
    """Store the plugin with the session and with each of its chats, which are published separately."""
    host = session.host
    below = host.descendants(session.id)
    chats = [each.id for each in below if not is_subagent(each)]
    for chat in (session.id, *chats):
        await _share(await host.get(chat), PLUGIN + ident, value)


async def _share(session: Session, key: str, value: Json | None) -> None:
    await session.host.do(ShareData(session=session.id, key=key, value=value), Caller.inside("host"))


async def settled(connection: "EditorClient", session: Session) -> None:
    loading = connection.broker.loading.get(session.id)
    if loading:
        await asyncio.wait(set(loading), timeout=_SETTLE_SECONDS)


def _own(session: Session, client_id: str) -> list[tuple[str, Json]]:
    found = [
        (key.removeprefix(PLUGIN), value) for key, value in session.state.client_data.items() if key.startswith(PLUGIN)
    ]
    return [(ident, value) for ident, value in found if value.get("clientId") == client_id]


def _announced(connection: "EditorClient", session: Session, ident: str, said: Json) -> Json:
    """As the client described it, in either dialect. An id that another client has taken gets that of its client."""
    taken = session.state.client_data.get(PLUGIN + ident)
    if taken is not None and taken.get("clientId") != connection.client_id:
        ident = f"{ident}@{connection.client_id}"
    named = said.get("name") or said.get("displayName") or said["uri"]
    shown = {key: value for key, value in said.items() if key not in ("children", "displayName")}
    ours = {"type": "plugin", "id": ident, "name": str(named), "clientId": connection.client_id}
    decided = next((each["enabled"] for each in said.get("enablement") or []), said.get("enabled") is not False)
    return {**shown, **ours, "enabled": decided, "load": {"kind": "loading"}}


# -- read from the client --------------------------------------------------------------------------------------


async def _load(connection: "EditorClient", session: Session, plugin: Json) -> None:
    key = PLUGIN + plugin["id"]
    try:
        loaded = {**plugin, **await _read(connection, plugin)}
    except PorticoError as error:
        logger.info("the plugin %r of %s cannot be read: %s", plugin["id"], connection.client_id, error.message)
        loaded = {**plugin, "load": {"kind": "error", "message": error.message}}
    if session.loaded and session.state.client_data.get(key) == plugin:  # it may be gone, or newer, by now
        await _keep(session, plugin["id"], loaded)


async def _read(connection: "EditorClient", plugin: Json) -> Json:
    top, room = str(plugin["uri"]).rstrip("/"), _PLUGIN_CHARS
    there = await _list(connection, top)
    children: list[Json] = []
    texts: dict[str, str] = {}
    for folder, kind in _KINDS.items():
        for name, subscription in await _files(connection, f"{top}/{folder}", kind) if folder in there else []:
            text = await _text(connection, subscription)
            if text is None or len(text) > room or len(children) >= _FILES:
                continue
            room -= len(text)
            ident = f"{plugin['id']}/{folder}/{name}"
            about, texts[ident] = _front(text)
            shown = {"type": kind, "id": ident, "uri": subscription, "name": name, **_described(kind, about)}
            children.append(shown | _enabled(plugin, name))
    ignored = [each for each in _LEFT_OUT if each in there]
    load: Json = {"kind": "loaded"}
    if ignored:
        load = {"kind": "degraded", "message": f"Not run on this host: {', '.join(ignored)}."}
    return {"children": children, "texts": texts, "load": load}


def _enabled(plugin: Json, child: str) -> Json:
    """What the client has decided about a child that only we could discover; a session may still switch it."""
    decisions = (plugin.get("childEnablement") or {}).get(child)
    return {"enabled": decisions[0]["enabled"], "enablement": decisions} if decisions else {}


async def _files(connection: "EditorClient", folder: str, kind: str) -> list[tuple[str, str]]:
    """Names and places: a skill is a folder, everything else a file of Markdown."""
    found = await _list(connection, folder)
    if kind == "skill":
        return [(name, f"{folder}/{name}/SKILL.md") for name, what in found.items() if what == "directory"]
    plain = [name for name, what in found.items() if what == "file" and name.endswith((".md", ".mdc"))]
    return [(name.rpartition(".")[0], f"{folder}/{name}") for name in plain]


async def _list(connection: "EditorClient", folder: str) -> dict[str, str]:
    answer = await connection.ask("resourceList", {"channel": uri.ROOT, "uri": folder})
    entries = answer.get("entries") if isinstance(answer, dict) else None
    named = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
    return {str(each["name"]): str(each.get("type")) for each in named[:_FILES] if _is_plain(each.get("name"))}


def _is_plain(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) <= 200 and "/" not in name and name not in (".", "..")


async def _text(connection: "EditorClient", subscription: str) -> str | None:
    """None for what cannot be read, or is too long to be meant for a model."""
    try:
        answer = await connection.ask("resourceRead", {"channel": uri.ROOT, "uri": subscription, "encoding": "utf-8"})
    except PorticoError as error:
        logger.info("%s does not give %r: %s", connection.client_id, subscription, error.message)
        return None
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, str) or len(data) > 2 * _FILE_CHARS:
        return None
    if answer.get("encoding") == "base64":
        try:
            data = base64.b64decode(data).decode("utf-8", "replace")
        except binascii.Error:
            return None
    return data if len(data) <= _FILE_CHARS else None


def _front(text: str) -> tuple[dict[str, str], str]:
    """The `key: value` lines between two lines of dashes at the top, and what follows them."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != "---" or "---" not in [line.strip() for line in lines[1:]]:
        return {}, text
    end = [line.strip() for line in lines].index("---", 1)
    pairs = [line.partition(":") for line in lines[1:end] if ":" in line]
    return {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}, "\n".join(lines[end + 1 :]).strip()


def _described(kind: str, about: dict[str, str]) -> Json:
    shown: Json = {"description": about["description"]} if about.get("description") else {}
    if kind == "rule" and "alwaysApply" in about:
        shown["alwaysApply"] = about["alwaysApply"].lower() == "true"
    return shown
