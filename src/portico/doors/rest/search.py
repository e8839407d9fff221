"""Search over HTTP."""

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from portico.doors.app import App
from portico.doors.body import JsonResponse
from portico.doors.rest.query import number, numbered
from portico.doors.route import Param, Route, Table
from portico.errors import BadRequest
from portico.queries.search import Hit, Search

LONGEST = 200
"""Characters of a query: a sentence, and no way to make every comparison slow."""


class SearchHits(Struct):
    hits: list[Hit]
    complete: bool
    """Everything was searched, and these are all."""


def table(app: App) -> Table:
    searching = app.search or Search(app.host)

    async def search(request: Request) -> Response:
        wanted = request.query_params.get("q", "").strip()
        if not 2 <= len(wanted) <= LONGEST:
            raise BadRequest(f"A search has 2 to {LONGEST} characters.", field="q")
        hits, complete = await searching.find(wanted, number(request, "limit", 50, 1, 1000), app.view(request).list)
        return JsonResponse(SearchHits(hits, complete))

    text = Annotated[str, Meta(min_length=2, max_length=LONGEST)]
    query: dict[str, str | Param] = {
        "q": Param("what was said, in any case", text, required=True),
        "limit": numbered("how many; 50", 1, 1000),
    }
    return [
        Route(
            "/v1/search",
            search,
            "read",
            summary="Sessions in which something was said.",
            doc={"answer": SearchHits, "query": query},
        )
    ]
