"""Watches on files: `createResourceWatch` returns a channel, and its subscribers receive the changes."""

import asyncio
import secrets
from typing import TYPE_CHECKING

from portico.doors.ahp.act.command import Method, optional, text
from portico.doors.ahp.view import names
from portico.doors.ahp.view.targets import Target
from portico.doors.ahp.wire.envelope import Outgoing
from portico.doors.ahp.wire.record import Json
from portico.features.people.view import View
from portico.kernel.errors import BadRequest, Forbidden, NotFound, PorticoError, RateLimited
from portico.workspace.watch import watch

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient, EditorHub

_WATCHES = 200
"""Limit for the whole host: each watch has a thread."""
_GRACE_SECONDS = 30.0
"""How long a watch without subscribers is kept for a reconnecting client."""


class Watch:
    def __init__(self, name: str, caller: str, state: Json, task: "asyncio.Task[None]") -> None:
        self.name = name
        self.caller = caller
        self.state = state
        self.task = task
        self.ending: asyncio.TimerHandle | None = None


async def create(connection: "EditorClient", params: Json) -> Json:
    broker = connection.broker
    if len(broker.watches) >= _WATCHES:
        raise RateLimited(f"There are {_WATCHES} watches; end some.")
    uri, recursive = text(params, "uri"), optional(params, "recursive", bool) or False
    globs = {key: _globs(params, key) for key in ("includes", "excludes")}
    name = names.WATCH + secrets.token_urlsafe(12)
    ready = asyncio.Event()
    path = names.path_of(uri)
    stream = watch(connection.view.jail(), path, recursive=recursive, ready=ready, **globs)
    task = connection.host.own(_follow(connection, name, path, stream), f"ahp {name}")
    waiting = asyncio.ensure_future(ready.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        failed = task.exception()
        raise failed if isinstance(failed, PorticoError) else NotFound("path", uri)
    state: Json = {"root": uri, "recursive": recursive}
    state |= {key: {"items": found} for key, found in globs.items() if found}
    broker.watches[name] = Watch(name, connection.caller.id, state, task)
    _end_later(broker, name)
    return {"channel": name}


def _globs(params: Json, field: str) -> list[str]:
    said = optional(params, field, dict) or {}
    found = said.get("items") or []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise BadRequest(f"'{field}.items' must be a list of globs.", field=field)
    return found


async def _follow(opener: "EditorClient", name: str, path: str, stream: object) -> None:
    broker, view = opener.broker, opener.view
    async for batch in stream:  # type: ignore[attr-defined]
        if not _is_open(view, path):
            _end(broker, name)
            return
        items = [{"uri": names.file_uri(each.path), "type": each.kind} for each in batch]
        for connection in list(broker.hearers(Target("watch", name))):
            connection.say(Target("watch", name), Outgoing("changed", {"changes": {"items": items}}))


def _is_open(view: View, path: str) -> bool:
    """Whether the path is still allowed: its session may be deleted or may have changed its folder."""
    try:
        view.jail().resolve(path)
    except NotFound:
        return True  # a watch reports the removal
    except Forbidden:
        return False
    return True


def state(connection: "EditorClient", target: Target) -> Json:
    """Only the owner of a watch may subscribe: watch names are secret."""
    found = connection.broker.watches.get(target.ident)
    if found is None:
        raise NotFound("watch", target.ident)
    if found.caller != connection.caller.id:
        raise Forbidden("This watch belongs to somebody else.")
    connection.view.require("files")
    if found.ending is not None:
        found.ending.cancel()
        found.ending = None
    return found.state


def forget(connection: "EditorClient", target: Target) -> None:
    if not list(connection.broker.hearers(target)):
        _end_later(connection.broker, target.ident)


def _end_later(broker: "EditorHub", name: str) -> None:
    found = broker.watches.get(name)
    if found is not None and found.ending is None:
        found.ending = asyncio.get_running_loop().call_later(_GRACE_SECONDS, _end, broker, name)


def _end(broker: "EditorHub", name: str) -> None:
    found = broker.watches.pop(name, None)
    if found is not None:
        found.task.cancel()


COMMANDS = {"createResourceWatch": Method(create, "files", beside=True, seed=False)}
