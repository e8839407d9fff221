"""What a person does with changes that are not committed, and what could be meant while writing a message."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from portico.changes import review
from portico.changes.review import Uncommitted
from portico.doors.app import App
from portico.doors.body import JsonResponse
from portico.doors.route import Route, Table, caller
from portico.errors import BadRequest
from portico.queries import suggestions
from portico.queries.suggestions import Suggestion


class Suggestions(Struct):
    items: list[Suggestion]


def table(app: App) -> Table:
    async def listing(request: Request) -> Response:
        return JsonResponse(await review.uncommitted(await app.view(request).get(request.path_params["id"])))

    async def diff(request: Request) -> Response:
        return PlainTextResponse(await review.uncommitted_diff(await app.view(request).get(request.path_params["id"])))

    async def suggest(request: Request) -> Response:
        session = await app.view(request).get(request.path_params["id"])
        word = request.query_params.get("q", "")
        if word.startswith("@"):
            return JsonResponse(Suggestions(await suggestions.files(session, word[1:], caller(request))))
        if word.startswith("/"):
            return JsonResponse(Suggestions(await suggestions.commands(session, word[1:])))
        raise BadRequest("'q' begins with '@' (files) or '/' (commands).", field="q")

    one = "/v1/sessions/{id}"
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
        Route(
            f"{one}/suggestions",
            suggest,
            "read",
            summary="Files (`@`) and commands (`/`) that fit a word.",
            doc={"answer": Suggestions, "query": {"q": "the word, with its sign"}},
        ),
    ]
