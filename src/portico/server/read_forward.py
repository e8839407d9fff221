"""Forwards reads that need the files of a session, or the memory of its host, to the host that has them.

The attack: a client that reaches the port between hosts reads data without permission. So the scope of the route and
the view of the caller are checked there, too; and a forwarded request is never forwarded again.
"""

from collections.abc import Callable
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Scope

from portico.kernel.commands import Caller
from portico.kernel.members import Fetched
from portico.server.app import App
from portico.server.gate import Gate
from portico.server.route import Endpoint, caller

_INSIDE = "portico.inside"
_KEPT = ("content-type", "content-disposition")
NAMES = Callable[[Request], str]


def at_place(app: App, endpoint: Endpoint) -> Endpoint:
    """Run the endpoint on a host that can access the files of the session."""
    return _near(app, endpoint, lambda request: str(request.path_params["id"]), owner=False)


def at_owner(app: App, endpoint: Endpoint, session: NAMES) -> Endpoint:
    """Run the endpoint on the host that runs the session."""
    return _near(app, endpoint, session, owner=True)


def _near(app: App, endpoint: Endpoint, session: NAMES, *, owner: bool) -> Endpoint:
    async def asked(request: Request) -> Response:
        members = app.host.members
        if not members.several or _INSIDE in request.scope:
            return await endpoint(request)
        view = app.view(request)
        found = await view.get(session(request))  # callers without access must not learn where it is
        address = f"{request.url.path}?{request.url.query}"
        there = await members.fetch(found.channel, address, caller(request), owner=owner)
        if there is None:
            return await endpoint(request)
        status, headers, body = there
        return Response(body, status, headers)

    return asked


async def answer_inside(gate: Gate, address: str, who: Caller) -> Fetched:
    """Run a local route for a caller of another host and return the response."""
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
