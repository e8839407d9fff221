"""Changes that the turns of a session made in its folder, and actions on uncommitted changes."""

from functools import partial

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from portico.features.changes import review
from portico.features.changes.captures import OwnChanges
from portico.features.changes.component import captures_of
from portico.features.changes.review import Side, Uncommitted
from portico.kernel.commands import READS
from portico.kernel.errors import BadRequest
from portico.kernel.state import ChangeList
from portico.server.app import App
from portico.server.read_forward import at_place
from portico.server.route import Param, Table
from portico.server.routes import Routes


def which(request: Request) -> tuple[str, Side]:
    side = request.query_params.get("side", "after")
    if side not in ("before", "after"):
        raise BadRequest(f"'side' is before or after, not {side!r}.", field="side")
    return request.query_params.get("path", ""), side  # type: ignore[return-value]


def raw(data: bytes) -> Response:
    """Return a download. The browser does not render it as a page of this host, regardless of its contents."""
    return Response(data, media_type="application/octet-stream", headers={"Content-Disposition": "attachment"})


def table(app: App) -> Table:
    routes, turn = Routes(app), "of one turn; without it of all"
    read = partial(routes, scope=READS["changes"], near=at_place, codes=["conflict"])
    bytes_of = partial(read, media="application/octet-stream")
    changes, uncommitted = "/v1/sessions/{id}/changes", "/v1/sessions/{id}/uncommitted"
    sides: dict[str, str | Param] = {
        "path": Param("the file, as the list names it", str, True),
        "side": Param("`before` or `after` the change; after", Side),
    }

    @read(changes, summary="Files that the turns changed.", query={"turn": turn})
    async def listing(request: Request) -> ChangeList:
        return await (await routes.session(request)).changes(request.query_params.get("turn"))

    @read(f"{changes}/own", summary="Which of them are the session's own, where others work in its folder.")
    async def own(request: Request) -> OwnChanges:
        return await captures_of(await routes.session(request)).own()

    query: dict[str, str | Param] = {"turn": turn, "path": "of one file"}

    @read(f"{changes}/diff", summary="The same as a unified diff.", media="text/plain", query=query)
    async def diff(request: Request) -> Response:
        session, asked = await routes.session(request), request.query_params
        return PlainTextResponse(await session.diff(asked.get("path"), asked.get("turn")))

    @read(uncommitted, summary="Files that differ from the last commit.")
    async def differing(request: Request) -> Uncommitted:
        return await review.uncommitted(await routes.session(request))

    @read(f"{uncommitted}/diff", summary="The same as a unified diff.", media="text/plain")
    async def differing_lines(request: Request) -> Response:
        return PlainTextResponse(await review.uncommitted_diff(await routes.session(request)))

    @bytes_of(f"{uncommitted}/file", summary="One side of such a file.", query=sides)
    async def file(request: Request) -> Response:
        return raw(await review.uncommitted_file(await routes.session(request), *which(request)))

    @bytes_of(f"{changes}/file", summary="One side of a file that the turns changed.", query={**sides, "turn": turn})
    async def changed(request: Request) -> Response:
        session = await routes.session(request)
        found = await captures_of(session).differences(request.query_params.get("turn"))
        return raw(await review.changed_file(session, found, *which(request)))

    return routes.table
