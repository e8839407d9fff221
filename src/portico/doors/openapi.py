"""The OpenAPI document of every HTTP route, made from the tables that the gate serves, and a page that shows it.

A route says its own details in `doc`: `body` and `answer` (a msgspec type, or absent: text on the Portal door, any JSON
elsewhere), `errors` (the codes of the Portal door), `query` (name: meaning).
"""

import html
import re
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from portico import __version__
from portico.doors.body import JsonResponse
from portico.doors.gate import Gate
from portico.doors.route import Route, Table
from portico.errors import KINDS

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_REFERENCE = "#/components/schemas/{name}"
_CSP = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"


def openapi(gate: Gate) -> Table:
    """Add it last: the document is made when it is asked for, so later routes are in it, too."""

    async def as_json(request: Request) -> Response:
        return JsonResponse(document(gate.table))

    async def as_page(request: Request) -> Response:
        return Response(page(gate.table), media_type="text/html", headers={"Content-Security-Policy": _CSP})

    return [
        Route("/openapi.json", as_json, "read", summary="This API as an OpenAPI 3.1 document."),
        Route("/openapi", as_page, "read", summary="This API as a page."),
    ]


def document(table: Table) -> dict[str, Any]:
    routes = [route for route in table if isinstance(route, Route)]
    types = [kind for route in routes for kind in (route.doc.get("body"), route.doc.get("answer")) if kind is not None]
    _, schemas = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        for method in route.methods:
            paths.setdefault(template(route.path), {})[method.lower()] = _operation(route, method)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Portico", "version": __version__, "description": "One log, many doors."},
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {"type": "string"},
        "code": {"enum": sorted(KINDS)},
        "field": {"type": "string"},
    },
}


def template(path: str) -> str:
    """`{name:path}` is Starlette's; OpenAPI only knows `{name}`."""
    return _PARAMETER.sub(r"{\1}", path)


def _operation(route: Route, method: str) -> dict[str, Any]:
    words = re.findall(r"\w+", _PARAMETER.sub(r"by \1", route.path))
    operation: dict[str, Any] = {
        "operationId": "_".join([method.lower(), *words]) or method.lower(),
        "summary": route.summary,
        "description": _description(route),
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": _responses(route),
        "security": [] if route.scope == "open" else [{"token": []}],
        "x-scope": route.scope,
    }
    if method in ("POST", "PUT", "PATCH"):
        operation["requestBody"] = {"content": _content(route, "body")}
    return operation


def _description(route: Route) -> str:
    needs = "Open to everybody." if route.scope == "open" else f"Needs the scope `{route.scope}`."
    codes = route.doc.get("errors", [])
    return f"{needs} Errors: {', '.join(f'`{code}`' for code in codes)}." if codes else needs


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    names = _PARAMETER.findall(route.path)
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    query: dict[str, str] = route.doc.get("query", {})
    return [
        {"name": name, "in": "query", "description": text, "schema": {"type": "string"}} for name, text in query.items()
    ]


def _responses(route: Route) -> dict[str, Any]:
    refused = {"description": "What went wrong.", "content": {"application/json": {"schema": _reference("Error")}}}
    return {"200": {"description": route.summary, "content": _content(route, "answer")}, "default": refused}


def _content(route: Route, part: str) -> dict[str, Any]:
    kind = route.doc.get(part)
    if kind is not None:
        return {"application/json": {"schema": _reference(kind.__name__)}}
    if part == "body" and route.path.startswith("/api/"):
        return {"text/plain": {"schema": {"type": "string"}}}
    if route.stream:
        return {"text/event-stream": {"schema": {"type": "string"}}, "application/json": {"schema": {}}}
    return {"application/json": {"schema": {}}}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": _REFERENCE.format(name=name)}


def page(table: Table) -> str:
    """Plain HTML, nothing that runs."""
    rows = []
    for route in table:
        if isinstance(route, Route):
            cells = (" ".join(route.methods), template(route.path), route.scope, route.summary, _description(route))
            rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "<tr><th>methods</th><th>path</th><th>scope</th><th>what</th><th></th></tr>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Portico API</title></head><body>'
        f'<h1>Portico API</h1><p><a href="/openapi.json">openapi.json</a></p><table>{head}{"".join(rows)}</table>'
        "</body></html>"
    )
