"""Answers that are made of a session's files, or of what its host has in memory: asked for where those are.

The attack: whoever reaches the port between hosts reads what is nobody's business. So the route's scope and the
caller's view count there as here; and what was asked for by another host is answered, never passed on.
"""

from collections.abc import Callable
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Scope

from portico.commands import Caller
from portico.doors.app import App
from portico.doors.gate import Gate
from portico.doors.route import Endpoint, caller
from portico.host.members import Fetched

_INSIDE = "portico.inside"
_KEPT = ("content-type", "content-disposition")
NAMES = Callable[[Request], str]


def at_place(app: App, endpoint: Endpoint) -> Endpoint:
    """By a host that sees the session's files."""
    return _near(app, endpoint, lambda request: str(request.path_params["id"]), owner=False)


def at_owner(app: App, endpoint: Endpoint, session: NAMES) -> Endpoint:
    """By the very host that runs the session."""
    return _near(app, endpoint, session, owner=True)


def _near(app: App, endpoint: Endpoint, session: NAMES, *, owner: bool) -> Endpoint:
    async def asked(request: Request) -> Response:
        members = app.host.members
        if not members.several or _INSIDE in request.scope:
            return await endpoint(request)
        view = app.view(request)
        found = await view.get(session(request))  # who may not see it learns nothing of where it is
        address = f"{request.url.path}?{request.url.query}"
        there = await members.fetch(found.channel, address, caller(request), owner=owner)
        if there is None:
            return await endpoint(request)
        status, headers, body = there
        return Response(body, status, headers)

    return asked


async def answer_inside(gate: Gate, address: str, who: Caller) -> Fetched:
    """What a route of ours answers to another host's caller."""
    path, _, query = address.partition("?")
    scope: Scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [],
        "client": None,
        "server": None,
        "portico.caller": who,
        _INSIDE: True,
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await gate.run(scope, receive, send)
    headers = {name.decode(): value.decode("latin-1") for name, value in sent[0].get("headers", [])}
    body = b"".join(each.get("body", b"") for each in sent[1:])
    return sent[0]["status"], {name: headers[name] for name in _KEPT if name in headers}, body
