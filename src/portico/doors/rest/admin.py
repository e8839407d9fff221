"""Routes for operators: the hosts on the log, usage, tokens, and settings with their origin."""

import re
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request

from portico import limits
from portico.doors.rest.query import number, numbered
from portico.features.configuration.editable import EDITABLE, Form, choices_of, form_of, needs_restart
from portico.features.secrets.store import Secret
from portico.features.usage.prices import price_list
from portico.features.usage.rollup import read_keys, roll_up
from portico.features.usage.shapes import KEYS, UsageAnswer
from portico.features.usage.usage_index import UsageIndex
from portico.kernel.members import Member
from portico.server.app import App
from portico.server.identity import NamedToken, read_tokens
from portico.server.route import Param, Table
from portico.server.routes import Routes
from portico.server.settings_load import describe, is_secret, keys, shown

_ZONES = 14 * 60
"""Maximum offset of a time zone from UTC, in minutes."""


class HostList(Struct):
    hosts: list[Member]
    """Empty if only one host uses the log."""


class TokenShown(Struct, kw_only=True):
    name: str
    scopes: list[str]
    created: int
    expires: int = 0
    """Milliseconds since the epoch; 0: never."""
    used: int = 0
    """When it was last seen, to the minute; 0: not yet."""
    tools: list[str] = []
    """The MCP tools that it was created for by name."""
    device: str = ""
    """The name of the paired device that it belongs to."""


class TokenList(Struct):
    tokens: list[TokenShown]


class SecretList(Struct):
    secrets: list[Secret]
    """Names only: no route gives a value."""


class SettingShown(Struct):
    key: str
    value: Any
    default: Any
    origin: str
    """`default`, the file, the environment or a flag."""
    about: str
    form: Form
    choices: list[str]
    """The values of a `choice`."""
    editable: bool
    """`PATCH /v1/settings` can change it; all others are changed in the file."""
    restart: bool
    """The host reads it only when it starts."""


class SettingList(Struct):
    path: str
    """The settings file."""
    settings: list[SettingShown]


def table(app: App) -> Table:
    book, read = app.features[UsageIndex], Routes(app)
    query: dict[str, str | Param] = {
        "by": f"added up by some of {', '.join(KEYS)}: `sums` instead of `rows`",
        "days": numbered("how many days back; 30", 1, limits.USAGE_DAYS),
        "east": numbered("your zone: minutes east of Greenwich plus 840; 840", 0, 2 * _ZONES),
    }

    @read("/v1/usage", "read", "Tokens and cost by day, session, agent, model and person.", query=query)
    async def usage(request: Request) -> UsageAnswer:
        days = number(request, "days", 30, 1, limits.USAGE_DAYS)
        east = number(request, "east", _ZONES, 0, 2 * _ZONES) - _ZONES
        by = read_keys(request.query_params.get("by", ""))
        rows = await book.rows(days, east, app.view(request).sees)
        listed = await price_list({row.model for row in rows if row.estimated})
        return UsageAnswer([] if by else rows, roll_up(rows, by) if by else [], *listed)

    @read("/v1/tokens", "admin", "The host's own named tokens.")
    async def tokens(request: Request) -> TokenList:
        used = app.gate.tokens.used
        own = [each for each in read_tokens(app.home) if not each.person]
        return TokenList([TokenShown(**_token(each), used=used.get(each.id, 0)) for each in own])

    @read("/v1/secrets", "admin", "The names of the secrets, and where each is stored.")
    async def secrets(request: Request) -> SecretList:
        return SecretList(await app.secrets.all())

    @read("/v1/settings", "admin", "Every setting with its value and where it comes from.")
    async def settings(request: Request) -> SettingList:
        defaults = keys()
        shown = [
            SettingShown(
                key,
                _setting(key, source.value),
                defaults[key],
                source.origin,
                describe(key),
                form_of(key),
                choices_of(key),
                key in EDITABLE,
                needs_restart(key),
            )
            for key, source in app.loaded.sources.items()
        ]
        return SettingList(str(app.home.settings_path), shown)

    only = "only the host that runs this session"

    @read("/v1/hosts", "read", "The hosts on this log.", query={"session": only}, codes=["not_found"])
    async def hosts(request: Request) -> HostList:
        view, found = app.view(request), await app.host.members.all()
        if ident := request.query_params.get("session"):
            await app.host.members.hear()
            owner, _ = await app.host.members.owner((await view.get(ident)).channel)
            found = [each for each in found if each.id == owner]
        if not view.may("metrics"):  # without this permission, hide the load of the hosts
            found = [replace(each, sessions=0, running=0) for each in found]
        return HostList(found)

    return read.table


def _token(each: NamedToken) -> dict[str, Any]:
    own = ("name", "scopes", "created", "expires", "tools", "device")
    return {name: getattr(each, name) for name in own}


_SECRET = re.compile(r"(?i)key|token|secret|password|authorization")


def _setting(key: str, value: Any) -> Any:
    return "(hidden)" if is_secret(key) and value else _hidden(value)


def _hidden(value: Any) -> Any:
    """Hide secrets: settings of agents can contain keys, which pages do not need."""
    if isinstance(value, dict):
        return {
            name: "(hidden)" if isinstance(each, str) and _SECRET.search(name) else _hidden(each)
            for name, each in value.items()
        }
    return [_hidden(each) for each in value] if isinstance(value, list) else shown(value)
