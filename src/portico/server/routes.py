"""Builds routes from handlers. The return value is the response; the return annotation is in the OpenAPI document."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, Unpack, cast

from starlette.requests import Request
from starlette.responses import Response

from portico.features.people.view import View
from portico.kernel.commands import Scope
from portico.kernel.session import Session
from portico.server.app import App
from portico.server.body import JsonResponse
from portico.server.route import Doc, Endpoint, Route, Table

Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Any]])
Near = Callable[[App, Endpoint], Endpoint]


class Routes:
    """A route table filled by decorators, in their order."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.table: Table = []

    def __call__(
        self,
        path: str,
        scope: Scope,
        summary: str,
        *,
        methods: tuple[str, ...] = ("GET",),
        near: Near | None = None,
        max_body: int | None = None,
        limited: bool = False,
        **doc: Unpack[Doc],
    ) -> Callable[[Handler], Handler]:
        """Register a handler, which takes the request. If it returns a `Response`, `doc` describes the contents."""

        def add(handler: Handler) -> Handler:
            endpoint, said = _answering(handler, doc)
            endpoint = near(self._app, endpoint) if near is not None else endpoint
            route = Route(path, endpoint, scope, methods, summary, limited=limited, max_body=max_body, doc=said)
            self.table.append(route)
            return handler

        return add

    def view(self, request: Request) -> View:
        return self._app.view(request)

    async def session(self, request: Request) -> Session:
        """Return the session in the path, if the caller may see it."""
        return await self._app.view(request).get(request.path_params["id"])


def _answering(handler: Callable[..., Awaitable[Any]], doc: Doc) -> tuple[Endpoint, Doc]:
    gives = handler.__annotations__["return"]
    if gives is Response:
        return cast(Endpoint, handler), doc
    status = doc.get("status", 200)

    async def endpoint(request: Request) -> Response:
        return JsonResponse(await handler(request), status)

    return endpoint, {**doc, "answer": gives}
