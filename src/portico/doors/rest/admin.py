"""For whoever looks after the host: what was used, tokens, settings with their origin."""

import re
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico import limits
from portico.doors.app import App
from portico.doors.body import JsonResponse
from portico.doors.identity import read_tokens
from portico.doors.rest.query import number, numbered
from portico.doors.route import Route, Table
from portico.queries.usage import UsageBook, UsageRow
from portico.settings import describe, keys

_ZONES = 14 * 60
"""No zone is further from Greenwich, in minutes."""


class Usage(Struct):
    rows: list[UsageRow]


class TokenShown(Struct):
    name: str
    scopes: list[str]
    created: int


class TokenList(Struct):
    tokens: list[TokenShown]


class SettingShown(Struct):
    key: str
    value: Any
    default: Any
    origin: str
    """`default`, the file, the environment or a flag."""
    about: str


class SettingList(Struct):
    path: str
    """The settings file."""
    settings: list[SettingShown]


def table(app: App) -> Table:
    book = UsageBook(app.host)

    async def usage(request: Request) -> Response:
        days = number(request, "days", 30, 1, limits.USAGE_DAYS)
        east = number(request, "east", _ZONES, 0, 2 * _ZONES) - _ZONES
        return JsonResponse(Usage(await book.rows(days, east)))

    async def tokens(request: Request) -> Response:
        found = [TokenShown(each.name, each.scopes, each.created) for each in read_tokens(app.home)]
        return JsonResponse(TokenList(found))

    async def settings(request: Request) -> Response:
        defaults = keys()
        shown = [
            SettingShown(key, _hidden(source.value), defaults[key], source.origin, describe(key))
            for key, source in app.loaded.sources.items()
        ]
        return JsonResponse(SettingList(str(app.home.settings_path), shown))

    return [
        Route(
            "/v1/usage",
            usage,
            "read",
            summary="Tokens and cost by day, session and model.",
            doc={
                "answer": Usage,
                "query": {
                    "days": numbered("how many days back; 30", 1, limits.USAGE_DAYS),
                    "east": numbered("your zone: minutes east of Greenwich plus 840; 840", 0, 2 * _ZONES),
                },
            },
        ),
        Route("/v1/tokens", tokens, "admin", summary="Named tokens.", doc={"answer": TokenList}),
        Route(
            "/v1/settings",
            settings,
            "admin",
            summary="Every setting with its value and where it comes from.",
            doc={"answer": SettingList},
        ),
    ]


_SECRET = re.compile(r"(?i)key|token|secret|password|authorization")


def _hidden(value: Any) -> Any:
    """Settings of agents may hold keys: a page has no use for them."""
    if isinstance(value, dict):
        return {
            name: "(hidden)" if isinstance(each, str) and _SECRET.search(name) else _hidden(each)
            for name, each in value.items()
        }
    return [_hidden(each) for each in value] if isinstance(value, list) else value
