"""What a person does with changes that are not committed, and what could be meant while writing a message."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from portico.changes import review
from portico.changes.component import captures_of
from portico.changes.review import Side, Uncommitted
from portico.commands import READS
from portico.doors.app import App
from portico.doors.body import JsonResponse
from portico.doors.read_forward import at_place
from portico.doors.route import Param, Route, Table
from portico.errors import BadRequest
from portico.queries import suggestions
from portico.queries.suggestions import SessionReference, Suggestion


class Suggestions(Struct):
    items: list[Suggestion]


def which(request: Request) -> tuple[str, Side]:
    side = request.query_params.get("side", "after")
    if side not in ("before", "after"):
        raise BadRequest(f"'side' is before or after, not {side!r}.", field="side")
    return request.query_params.get("path", ""), side  # type: ignore[return-value]


def raw(data: bytes) -> Response:
    """Whatever is in it, a browser that is led here keeps it apart from this host's pages."""
    return Response(data, media_type="application/octet-stream", headers={"Content-Disposition": "attachment"})


def table(app: App) -> Table:
    async def listing(request: Request) -> Response:
        return JsonResponse(await review.uncommitted(await app.view(request).get(request.path_params["id"])))

    async def diff(request: Request) -> Response:
        return PlainTextResponse(await review.uncommitted_diff(await app.view(request).get(request.path_params["id"])))

    async def file(request: Request) -> Response:
        session = await app.view(request).get(request.path_params["id"])
        return raw(await review.uncommitted_file(session, *which(request)))

    async def changed(request: Request) -> Response:
        session = await app.view(request).get(request.path_params["id"])
        found = await captures_of(session).differences(request.query_params.get("turn"))
        return raw(await review.changed_file(session, found, *which(request)))

    async def suggest(request: Request) -> Response:
        view = app.view(request)
        session = await view.get(request.path_params["id"])
        found = await suggestions.suggest(session, request.query_params.get("q", ""), view)
        if found is None:
            raise BadRequest("'q' begins with '@' (files, sessions), '/' (commands) or '!' (command lines).", field="q")
        return JsonResponse(Suggestions(found))

    async def reference(request: Request) -> Response:
        return JsonResponse(suggestions.reference(await app.view(request).get(request.path_params["id"])))

    one = "/v1/sessions/{id}"
    sides: dict[str, str | Param] = {
        "path": Param("the file, as the list names it", str, True),
        "side": Param("`before` or `after` the change; after", Side),
    }
    return [
        Route(
            f"{one}/uncommitted",
            at_place(app, listing),
            READS["changes"],
            summary="Files that differ from the last commit.",
            doc={"answer": Uncommitted, "codes": ["conflict"]},
        ),
        Route(
            f"{one}/uncommitted/diff",
            at_place(app, diff),
            READS["changes"],
            summary="The same as a unified diff.",
            doc={"media": "text/plain", "codes": ["conflict"]},
        ),
        Route(
            f"{one}/uncommitted/file",
            at_place(app, file),
            READS["changes"],
            summary="One side of such a file.",
            doc={"media": "application/octet-stream", "query": sides, "codes": ["conflict"]},
        ),
        Route(
            f"{one}/changes/file",
            at_place(app, changed),
            READS["changes"],
            summary="One side of a file that the turns changed.",
            doc={
                "media": "application/octet-stream",
                "query": {**sides, "turn": "of one turn; without it of all"},
                "codes": ["conflict"],
            },
        ),
        Route(
            f"{one}/suggestions",
            at_place(app, suggest),
            "read",
            summary="Files and sessions (`@`), commands (`/`) and command lines (`!`) that fit a word.",
            doc={"answer": Suggestions, "query": {"q": "the word, with its sign"}},
        ),
        Route(
            f"{one}/reference",
            reference,
            "read",
            summary="The session as an attachment for a message in another one.",
            doc={"answer": SessionReference},
        ),
    ]
