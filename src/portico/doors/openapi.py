"""The OpenAPI document of every HTTP route, generated from the route tables of the gate, and a page that shows it.

The `doc` of a route has its details. The schemas come from the msgspec structs that the doors read and write, so the
document matches the code. `tests/doors/test_fuzz.py` checks the responses against it.
"""

import re
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from portico import __version__
from portico.doors.openapi_examples import EXAMPLES
from portico.doors.openapi_schema import public_names, tidy
from portico.kernel.errors import KINDS
from portico.server.app import App
from portico.server.body import ErrorBody
from portico.server.door import Door
from portico.server.route import LaterShape, Param, Route, Table
from portico.server.routes import Routes

JSON = "application/json"
_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_REFERENCE = "#/components/schemas/{name}"
_TEXT = {"schema": {"type": "string"}}
_EVERYWHERE = (
    "bad_request",
    "unauthenticated",
    "forbidden",
    "too_large",
    "misdirected",
    "rate_limited",
    "log_unavailable",
)
"""Errors that the gate can return for every route."""
_NAMED = ("not_found", "wrong_method")
"""Errors of routes with a path parameter: the name is unknown, or the path matches another route."""


class OpenapiDoor(Door):
    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.routes = _routes(app)


def _routes(app: App) -> Table:
    """The document is generated on request, so it contains the routes of all doors."""
    route = Routes(app)

    @route("/openapi.json", "read", "This API as an OpenAPI 3.1 document.")
    async def as_json(request: Request) -> dict[str, Any]:
        return document(app.gate.table, app.settings.server.public_url.rstrip("/") or app.settings.server.root_path)

    @route("/openapi", "read", "This API as a page.", media="text/html")
    async def as_page(request: Request) -> Response:
        from portico.doors.openapi_page import CSP, page  # late import: only needed for the page

        shown = page(document(app.gate.table))
        return Response(shown, media_type="text/html", headers={"Content-Security-Policy": CSP})

    return route.table


def document(table: Table, server: str = "") -> dict[str, Any]:
    """The document of these routes. `server`: the address of the host; by default it is relative to the document."""
    routes = [route for route in table if isinstance(route, Route)]
    shapes = _Shapes(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        for method in route.methods:
            paths.setdefault(template(route.path), {})[method.lower()] = _operation(route, method, shapes)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Portico", "version": __version__, "description": "One log, many doors."},
        "servers": [{"url": server or "/", "description": "This host."}],
        "paths": paths,
        "components": {
            "schemas": shapes.components,
            "responses": _refusals(shapes),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def template(path: str) -> str:
    """Convert a path from Starlette syntax (`{name:path}`) to OpenAPI syntax (`{name}`)."""
    return _PARAMETER.sub(r"{\1}", path)


class _Shapes:
    """The schemas of all types that the routes use."""

    def __init__(self, routes: list[Route]) -> None:
        types = [ErrorBody, *(kind for route in routes for kind in _types(route))]
        found, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
        names = public_names(components)
        self.components = {
            names[name]: {**tidy(each, names), "title": names[name]} for name, each in components.items()
        }
        self.components["ErrorBody"]["properties"]["code"]["enum"] = sorted(KINDS)
        self._schemas = list(zip(types, tidy(list(found), names), strict=True))

    def __call__(self, kind: Any) -> dict[str, Any]:
        return next(schema for known, schema in self._schemas if known == kind)


def _types(route: Route) -> list[Any]:
    body = _body_shape(route)
    return [*_several(route.doc.get("answer")), *([] if body is None else [body])]


def _body_shape(route: Route) -> Any:
    body = route.doc.get("body")
    return body.make() if isinstance(body, LaterShape) else body


def _several(value: Any) -> tuple[Any, ...]:
    """Return the values of a `doc` field as a tuple: it can have one value or several."""
    if value is None:
        return ()
    if isinstance(value, LaterShape):
        return (value.make(),)
    return value if isinstance(value, tuple) else (value,)


def _operation(route: Route, method: str, shapes: _Shapes) -> dict[str, Any]:
    words = re.findall(r"\w+", _PARAMETER.sub(r"by \1", route.path))
    operation: dict[str, Any] = {
        "operationId": "_".join([method.lower(), *words]) or method.lower(),
        "tags": [route.path.lstrip("/").partition("/")[0] or "pages"],
        "summary": route.summary,
        "description": _description(route),
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": _responses(route, shapes),
        "security": [] if route.scope == "open" else [{"token": []}],
        "x-scope": route.scope,
    }
    body = _body(route, shapes) if method in ("POST", "PUT", "PATCH") else None
    if body is None:
        return operation
    if JSON in body and operation["operationId"] in EXAMPLES:
        body[JSON]["examples"] = {"example": {"value": EXAMPLES[operation["operationId"]]}}
    return {**operation, "requestBody": {"content": body, "required": _is_needed(body, shapes)}}


def _is_needed(body: dict[str, Any], shapes: _Shapes) -> bool:
    """Whether a request must have a body: a text, or an object with a required field."""
    if JSON not in body:
        return True
    schema = body[JSON]["schema"]
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    return bool(shapes.components.get(name, schema).get("required")) or "anyOf" in schema


def _description(route: Route) -> str:
    needs = "Open to everybody." if route.scope == "open" else f"Needs the scope `{route.scope}`."
    codes = route.doc.get("errors", [])
    return f"{needs} Errors: {', '.join(f'`{code}`' for code in codes)}." if codes else needs


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    names = _PARAMETER.findall(route.path)
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    found = []
    for name, said in route.doc.get("query", {}).items():
        meaning, kind, required = Param(said, str) if isinstance(said, str) else said
        schema = tidy(msgspec.json.schema(kind), {})
        found.append({"name": name, "in": "query", "required": required, "description": meaning, "schema": schema})
    return found


def _body(route: Route, shapes: _Shapes) -> dict[str, Any] | None:
    kind = _body_shape(route)
    if kind is None:
        return None
    if kind is str:
        return {"text/plain": _TEXT}
    return {JSON: {"schema": shapes(kind)}}


def _responses(route: Route, shapes: _Shapes) -> dict[str, Any]:
    codes = [*_EVERYWHERE, *(_NAMED if "{" in route.path else ()), *route.doc.get("codes", ())]
    found: dict[int, dict[str, Any]] = {
        KINDS[code].http: {"$ref": f"#/components/responses/{KINDS[code].http}"} for code in codes
    }
    for status, media in route.doc.get("others", {}).items():
        refused = {JSON: {"schema": shapes(ErrorBody)}} if status >= 400 else {}
        content = dict.fromkeys(_several(media), _TEXT) | refused
        found[status] = {"description": HTTPStatus(status).phrase, **({"content": content} if content else {})}
    content = _content(route, shapes)
    if content:
        found[route.doc.get("status", 200)] = {"description": route.summary, "content": content}
    return {str(status): answer for status, answer in sorted(found.items())}


def _content(route: Route, shapes: _Shapes) -> dict[str, Any]:
    content: dict[str, Any] = dict.fromkeys(_several(route.doc.get("media")), _TEXT)
    schemas = [shapes(kind) for kind in _several(route.doc.get("answer"))]
    errors = route.doc.get("errors", [])
    if errors:  # the Portal door returns its errors with status 200
        schemas.append({"type": "object", "required": ["error"], "properties": {"error": {"enum": errors}}})
    if schemas:
        content[JSON] = {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}
    return content


def _refusals(shapes: _Shapes) -> dict[str, Any]:
    """Return one response per error status, with its possible codes."""
    by_status: dict[int, list[str]] = {}
    for code, kind in KINDS.items():
        by_status.setdefault(kind.http, []).append(code)
    content = {JSON: {"schema": shapes(ErrorBody)}}
    return {
        str(status): {
            "description": f"What went wrong: {', '.join(f'`{code}`' for code in codes)}.",
            "content": content,
        }
        for status, codes in sorted(by_status.items())
    }
