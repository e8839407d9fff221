"""What a person does with changes that are not committed, and what could be meant while writing a message."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from portico.changes import review
from portico.changes.review import Uncommitted
from portico.doors.app import App
from portico.doors.body import JsonResponse, read_as
from portico.doors.route import Doc, Route, Table, caller
from portico.errors import BadRequest
from portico.queries import suggestions
from portico.queries.suggestions import Suggestion


class CommitBody(Struct, forbid_unknown_fields=True):
    message: str
    state: str
    """As `GET …/uncommitted` told it: the folder that you have seen."""
    paths: list[str] = []
    """None: all of them."""


class DiscardBody(Struct, forbid_unknown_fields=True):
    state: str
    paths: list[str] = []


class RestoreBody(Struct, forbid_unknown_fields=True):
    undo: str
    paths: list[str]


class Committed(Struct):
    commit: str


class Discarded(Struct):
    undo: str
    """Brings the files back, until the next discard."""


class Suggestions(Struct):
    items: list[Suggestion]


def table(app: App) -> Table:
    async def listing(request: Request) -> Response:
        return JsonResponse(await review.uncommitted(await app.view(request).get(request.path_params["id"])))

    async def diff(request: Request) -> Response:
        return PlainTextResponse(await review.uncommitted_diff(await app.view(request).get(request.path_params["id"])))

    async def commit(request: Request) -> Response:
        session = await app.view(request).get(request.path_params["id"], "drive")
        body = await read_as(request, CommitBody)
        made = await review.commit(session, body.message, body.paths, body.state, by=caller(request).by)
        return JsonResponse(Committed(made), 201)

    async def discard(request: Request) -> Response:
        session = await app.view(request).get(request.path_params["id"], "drive")
        body = await read_as(request, DiscardBody)
        return JsonResponse(Discarded(await review.discard(session, body.paths, body.state, by=caller(request).by)))

    async def restore(request: Request) -> Response:
        session = await app.view(request).get(request.path_params["id"], "drive")
        body = await read_as(request, RestoreBody)
        await review.undo_discard(session, body.paths, body.undo, by=caller(request).by)
        return Response(status_code=204)

    async def suggest(request: Request) -> Response:
        session = await app.view(request).get(request.path_params["id"])
        word = request.query_params.get("q", "")
        if word.startswith("@"):
            caller(request).require("files")
            return JsonResponse(Suggestions(await suggestions.files(session, word[1:])))
        if word.startswith("/"):
            return JsonResponse(Suggestions(await suggestions.commands(session, word[1:])))
        raise BadRequest("'q' begins with '@' (files) or '/' (commands).", field="q")

    one = "/v1/sessions/{id}"
    committed: Doc = {"body": CommitBody, "answer": Committed, "status": 201, "codes": ["conflict"]}
    discarded: Doc = {"body": DiscardBody, "answer": Discarded, "codes": ["conflict"]}
    restored: Doc = {"body": RestoreBody, "others": {204: None}, "codes": ["conflict"]}
    return [
        Route(
            f"{one}/uncommitted",
            listing,
            "read",
            summary="Files that differ from the last commit.",
            doc={"answer": Uncommitted, "codes": ["conflict"]},
        ),
        Route(
            f"{one}/uncommitted/diff",
            diff,
            "read",
            summary="The same as a unified diff.",
            doc={"media": "text/plain", "codes": ["conflict"]},
        ),
        Route(f"{one}/commit", commit, "files", ("POST",), "Commit changed files.", doc=committed),
        Route(f"{one}/discard", discard, "files", ("POST",), "Throw changes away.", doc=discarded),
        Route(f"{one}/discard/undo", restore, "files", ("POST",), "Take the last discard back.", doc=restored),
        Route(
            f"{one}/suggestions",
            suggest,
            "read",
            summary="Files (`@`) and commands (`/`) that fit a word.",
            doc={"answer": Suggestions, "query": {"q": "the word, with its sign"}},
        ),
    ]
