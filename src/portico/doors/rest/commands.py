"""The `/v1` routes of commands, built from the command table; and `POST /v1/commands`, which accepts any of them."""

from collections.abc import Iterable
from functools import cache, partial
from typing import Any, cast

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico.command_shapes import arguments, private_field
from portico.doors.rest.sessions import QueueShown
from portico.doors.rest.shell import TerminalInfo, info
from portico.features.automations import commands as ac
from portico.features.jobs import commands as jc
from portico.features.terminals.state import TerminalState
from portico.kernel.commands import (
    COMMANDS,
    Command,
    Deleted,
    Done,
    Http,
    sentence,
)
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json
from portico.kernel.state import Summary
from portico.server.app import App
from portico.server.body import EmptyBody, JsonResponse, decode_as, field_path, identified_caller, read_as
from portico.server.route import Doc, Endpoint, LaterShape, Route, Table

_SHOWN: dict[str, type[Struct]] = {"session": Summary, "queue": QueueShown, "terminal": TerminalInfo}


def table(app: App) -> Table:
    """Return the routes of all commands except jobs and automations, which have their own doors."""
    elsewhere = (*jc.COMMANDS, *ac.COMMANDS)
    return [*routes(app, [kind for kind in COMMANDS.values() if kind not in elsewhere]), _any(app)]


def routes(app: App, kinds: Iterable[type[Command]]) -> Table:
    return [_route(app, kind, kind.http) for kind in kinds if kind.http is not None]


def _route(app: App, kind: type[Command], http: Http) -> Route:
    doc: Doc = {"status": http.status, "codes": list(kind.errors)}
    body = cache(partial(_body, kind, http))
    if http.method != "DELETE":
        doc["body"] = LaterShape(body)
    if http.status == 204:
        doc["others"] = {204: None}
    else:
        doc["answer"] = kind.gives or _SHOWN[kind.shows]
    if kind.gives is Deleted:
        doc["others"] = {204: None}

    async def endpoint(request: Request) -> Response:
        who = identified_caller(request)
        if kind.about != "host":
            await app.host.commands.check_subject(kind, request.path_params["id"], who)
        given = decode_as(await request.body() or b"{}", body()) if http.method != "DELETE" else EmptyBody()
        said = {name: getattr(given, name) for name in given.__struct_fields__}
        ids = {kind.about if name == "id" else name: value for name, value in request.path_params.items()}
        command = kind(**said, **ids)
        answer = await app.host.do(command, who)
        if http.status == 204 or answer == Deleted(""):
            return Response(status_code=204)
        if command.shows in ("queue", "terminal"):
            answer = await _shown(app, command, answer)
        return JsonResponse(answer, http.status)

    return Route(http.path, cast(Endpoint, endpoint), kind.scope, (http.method,), sentence(kind), doc=doc)


def _body(kind: type[Command], http: Http) -> type[Struct]:
    """Return the fields of the command, without those in the path and those that this door does not accept."""
    named = {kind.about if name == "id" else name for name in _names(http.path)}
    return arguments(kind, without=named, module=__name__) or EmptyBody


def _names(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


async def _shown(app: App, command: Command, answer: Any) -> Any:
    if isinstance(answer, TerminalState):
        return info(answer, app.host.connected)
    if isinstance(answer, Summary) and command.shows == "queue":
        state = (await app.host.get(answer.id)).state
        return QueueShown(state.queue, state.queue_held)
    return answer


# -- any command -----------------------------------------------------------------------------------------------


class AnyCommandBody(Struct, forbid_unknown_fields=True):
    command: str
    """Its name, such as `message.send`."""
    arguments: Json = {}


def _any(app: App) -> Route:
    async def endpoint(request: Request) -> Response:
        command = _read(await read_as(request, AnyCommandBody))
        answer = await app.host.do(command, identified_caller(request))
        return JsonResponse(await _shown(app, command, Done() if answer is None else answer))

    doc: Doc = {
        "body": AnyCommandBody,
        "answer": Json,
        "codes": ["conflict", "not_found", "agent_failed", "agent_unavailable"],
    }
    summary = "Any command by its name, with what it takes."
    return Route("/v1/commands", cast(Endpoint, endpoint), "any", ("POST",), summary, doc=doc)


def _read(body: AnyCommandBody) -> Command:
    kind = COMMANDS.get(body.command)
    if kind is None:
        names = ", ".join(sorted(COMMANDS))
        raise BadRequest(f"There is no command {body.command!r}; there are: {names}.", field="command")
    name = private_field(kind, body.arguments)
    if name is not None:
        raise BadRequest(f"{name!r} is not for this door.", field=f"arguments.{name}")
    try:
        return msgspec.convert({**body.arguments, "command": body.command}, kind)
    except msgspec.ValidationError as error:
        field = field_path(str(error))
        raise BadRequest(f"The command is not as expected: {error}", field=f"arguments.{field}") from None
