"""Finds the route of a request. Routes are checked in the order in which they were added, and the first match is used.
Results are cached by path, because pages and polls request the same paths repeatedly.
"""

import re
from collections import defaultdict
from functools import cached_property
from typing import Any

from starlette.convertors import Convertor
from starlette.requests import Request
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from portico.kernel.cache import Cache
from portico.kernel.errors import NotFound, WrongMethod
from portico.server.route import Route, Socket

_SHAPES = 1_000
"""Cache size: path shapes (first segment and number of segments). A few dozen are in use."""
_PATH_CHARS = 200
"""Maximum length of a path whose route is cached."""
_ANY = "{"
"""Shared key of patterns that start with a parameter: the catch-all of the pages."""


class RouterEntry:
    """A route. It is compiled on first use, because compiling all routes would delay the start."""

    def __init__(self, route: Route | Socket) -> None:
        self.route = route
        self.app = _app(route)
        self.socket = isinstance(route, Socket)
        self.held = isinstance(route, Socket) or route.stream
        """A long connection, which is closed when its token is revoked."""
        self.segments = None if ":path}" in route.path else route.path.count("/")

    @cached_property
    def _compiled(self) -> tuple[re.Pattern[str], str, dict[str, Convertor[Any]]]:
        return compile_path(self.route.path)

    @cached_property
    def methods(self) -> frozenset[str]:
        if isinstance(self.route, Socket):
            return frozenset()
        return frozenset({*self.route.methods, "HEAD"} if "GET" in self.route.methods else self.route.methods)

    def match(self, path: str) -> dict[str, object] | None:
        regex, _, converters = self._compiled
        found = regex.match(path)
        if found is None:
            return None
        try:
            return {name: converters[name].convert(value) for name, value in found.groupdict().items()}
        except ValueError:
            return None


class Router:
    def __init__(self) -> None:
        self._entries: defaultdict[str, list[RouterEntry]] = defaultdict(list)
        self._near = Cache[tuple[str, int], list[RouterEntry]](_SHAPES)
        self._found = Cache[tuple[str | None, str], tuple[RouterEntry, dict[str, object]]](_SHAPES)

    def add(self, route: Route | Socket) -> None:
        self._entries[_first(route.path)].append(RouterEntry(route))
        self._near.clear()
        self._found.clear()

    def taken(self, route: Route | Socket) -> str | None:
        """Return the path of an existing route that would receive the requests of this one."""
        wanted = RouterEntry(route)
        for entry in self._entries.get(_first(route.path), ()):
            overlap = entry.socket is wanted.socket and not (entry.methods and entry.methods.isdisjoint(wanted.methods))
            if overlap and entry.match(route.path) is not None:
                return entry.route.path
        return None

    def find(self, scope: Scope) -> RouterEntry:
        """Find the route and store its parameters in the scope. The error for a wrong method lists the allowed ones."""
        path: str = scope["path"]
        method = scope["method"] if scope["type"] == "http" else None
        found = self._found.get((method, path))
        if found is None:
            found = self._look(path, method)
            if len(path) <= _PATH_CHARS:
                self._found[method, path] = found
        entry, scope["path_params"] = found
        return entry

    def _look(self, path: str, method: str | None) -> tuple[RouterEntry, dict[str, object]]:
        first, allowed = _first(path), set[str]()
        for entry in self._candidates(first, path.count("/")) if first != _ANY else ():
            if entry.socket is (method is not None):
                continue
            params = entry.match(path)
            if params is None:
                continue
            if method is not None and method not in entry.methods:
                allowed |= set(entry.route.methods) if isinstance(entry.route, Route) else set()
                continue
            return entry, params
        if method is not None and allowed:
            raise WrongMethod(method, sorted(allowed))
        return self._of_any(path, method)

    def _candidates(self, first: str, segments: int) -> list[RouterEntry]:
        found = self._near.get((first, segments))
        if found is None:
            entries = self._entries.get(first, ())
            found = [each for each in entries if each.segments in (None, segments)]
            self._near[first, segments] = found
        return found

    def _of_any(self, path: str, method: str | None) -> tuple[RouterEntry, dict[str, object]]:
        """Find a catch-all route. It matches every path, so a wrong method is reported as not found."""
        for entry in self._entries.get(_ANY, ()):
            if entry.socket is (method is None) and (method is None or method in entry.methods):
                params = entry.match(path)
                if params is not None:
                    return entry, params
        raise NotFound("page", path)


def _first(path: str) -> str:
    """Return the first segment of a path, by which routes are indexed."""
    segment = path.lstrip("/").partition("/")[0]
    return _ANY if segment.startswith(_ANY) else segment


def _app(route: Route | Socket) -> ASGIApp:
    if isinstance(route, Socket):
        return _socket_app(route)
    if route.app is not None:
        return route.app
    endpoint = route.endpoint
    assert endpoint is not None

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        response = await endpoint(Request(scope, receive, send))
        await response(scope, receive, send)

    return app


def _socket_app(route: Socket) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await route.endpoint(WebSocket(scope, receive, send))

    return app
