"""The OpenAPI document as a plain HTML page without scripts."""

import base64
import hashlib
import html
import json
from typing import Any

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
html { color-scheme: light dark }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #8886 }
details { margin: .3rem 0 } details > :not(summary) { margin-left: 1.2rem }
summary { cursor: pointer } summary b { display: inline-block; min-width: 4.5rem } code { font-size: 14px }
pre { overflow: auto; background: #8881; padding: .6rem } td { padding: .1rem .8rem .1rem 0; vertical-align: top }
"""
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
CSP = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; frame-ancestors 'none'"


def page(document: dict[str, Any]) -> str:
    """Render the routes by door, each with its parameters and responses; the schemas are at the end."""
    doors: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            doors.setdefault(operation["tags"][0], []).append(_operation(path, method, operation))
    schemas = document["components"]["schemas"]
    shapes = "".join(_shape(name, schema) for name, schema in sorted(schemas.items()))
    body = "".join(f"<h2>{html.escape(door)}</h2>{''.join(rows)}" for door, rows in doors.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Portico API</title><style>{_STYLE}</style></head><body>"
        f'<h1>Portico API</h1><p><a href="/openapi.json">openapi.json</a></p>{body}<h2>Shapes</h2>{shapes}'
        "</body></html>"
    )


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    rows = [(each["name"], f"in the {each['in']}. {each.get('description', '')}") for each in operation["parameters"]]
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        rows.append(("body", f"{media} {_said(content['schema'])}"))
    for status, answer in operation["responses"].items():
        rows += [(status, text) for text in _answers(answer)]
    table = "".join(
        f"<tr><td><code>{html.escape(name)}</code></td><td>{html.escape(text)}</td></tr>" for name, text in rows
    )
    return (
        f"<details><summary><b>{method.upper()}</b> <code>{html.escape(path)}</code> "
        f"{html.escape(operation['summary'])}</summary><p>{html.escape(operation['description'])}</p><table>{table}</table></details>"
    )


def _answers(answer: dict[str, Any]) -> list[str]:
    if "$ref" in answer:
        return ["ErrorBody"]
    return [f"{media} {_said(content['schema'])}" for media, content in answer.get("content", {}).items()] or [
        "no body"
    ]


def _said(schema: dict[str, Any]) -> str:
    """Describe a schema briefly, with names instead of references."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_said(each) for each in schema["anyOf"])
    enum = schema.get("properties", {}).get("error", {}).get("enum")
    return f"error: {', '.join(enum)}" if enum else str(schema.get("type", "anything"))


def _shape(name: str, schema: dict[str, Any]) -> str:
    name, text = html.escape(name), html.escape(json.dumps(schema, indent=2, ensure_ascii=False))
    return f'<details id="{name}"><summary><code>{name}</code></summary><pre>{text}</pre></details>'
