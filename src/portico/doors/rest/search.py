"""Search, and suggestions while writing a message."""

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request

from portico.doors.rest.query import number, numbered
from portico.features.board import suggestions
from portico.features.board.suggestions import SessionReference, Suggestion
from portico.features.search.search import Hit, Search
from portico.kernel.errors import BadRequest
from portico.server.app import App
from portico.server.read_forward import at_place
from portico.server.route import Param, Table
from portico.server.routes import Routes

LONGEST = 200
"""Maximum length of a query: enough for a sentence, too short to slow down every comparison."""


class SearchHits(Struct):
    hits: list[Hit]
    complete: bool
    """Everything was searched, and these are all hits."""


class Suggestions(Struct):
    items: list[Suggestion]


def table(app: App) -> Table:
    searching, read = app.features[Search], Routes(app)
    words = Param("what was said, in any case", Annotated[str, Meta(min_length=2, max_length=LONGEST)], required=True)
    query: dict[str, str | Param] = {"q": words, "limit": numbered("how many; 50", 1, 1000)}
    one = "/v1/sessions/{id}"

    @read("/v1/search", "read", "Sessions in which something was said.", query=query)
    async def search(request: Request) -> SearchHits:
        wanted = request.query_params.get("q", "").strip()
        if not 2 <= len(wanted) <= LONGEST:
            raise BadRequest(f"A search has 2 to {LONGEST} characters.", field="q")
        return SearchHits(*await searching.find(wanted, number(request, "limit", 50, 1, 1000), app.view(request).list))

    summary = "Files and sessions (`@`), commands (`/`) and command lines (`!`) that fit a word."

    @read(f"{one}/suggestions", "read", summary, near=at_place, query={"q": "the word, with its sign"})
    async def suggest(request: Request) -> Suggestions:
        session, typed = await read.session(request), request.query_params.get("q", "")
        found = await suggestions.suggest(session, typed, app.view(request))
        if found is None:
            raise BadRequest("'q' begins with '@' (files, sessions), '/' (commands) or '!' (command lines).", field="q")
        return Suggestions(found)

    @read(f"{one}/reference", "read", "The session as an attachment for a message in another one.")
    async def reference(request: Request) -> SessionReference:
        return suggestions.reference(await read.session(request))

    return read.table
