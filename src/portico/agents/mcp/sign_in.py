"""Tokens for MCP servers that want one: asked for in the middle of a call, given by a client, kept in memory only.

The attack: a server that claims to be another one (`resource: https://api.github.com`) would receive a token that is
not meant for it. The resource that a server names must be on its own origin; a token goes to that server alone, for the
turns of the client that provided it.
"""

import asyncio
import re
import time
from typing import NamedTuple
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from portico.agents.mcp.client import ServerError
from portico.kernel.agent import Resource, SignInState
from portico.kernel.cache import Cache
from portico.kernel.call import Call
from portico.kernel.events import Json, SignInReason

_PARAMETER = re.compile(r'(\w+)="([^"]*)"')
_RESOURCES = 100
"""That servers ask for: the servers of one settings file, several times over."""


class SignInNeeded(ServerError):
    """The server answers 401 or 403: it wants a token, another one, or one that may do more."""

    def __init__(self, message: str, resource: Json, reason: SignInReason, scopes: list[str]) -> None:
        super().__init__(message)
        self.resource = resource
        self.reason = reason
        self.scopes = scopes
        self.bearer: Bearer | None = None
        self.by = ""
        """Who would not give one."""


class Challenge(NamedTuple):
    """`WWW-Authenticate: Bearer resource_metadata="...", scope="...", error="..."`."""

    metadata: str
    scopes: list[str]
    error: str


def challenge(header: str) -> Challenge:
    found = dict(_PARAMETER.findall(header))
    return Challenge(found.get("resource_metadata", ""), found.get("scope", "").split(), found.get("error", ""))


def same_origin(one: str, other: str) -> bool:
    first, second = urlsplit(one), urlsplit(other)
    return (first.scheme, first.netloc) == (second.scheme, second.netloc)


class McpTokens:
    """Of one agent, by resource and client."""

    def __init__(self) -> None:
        self.resources = Cache[str, Resource](_RESOURCES)
        """What servers have asked for since the host started."""
        self._given: dict[tuple[str, str], tuple[str, float]] = {}
        self._arrivals = WeakValueDictionary[tuple[str, str], asyncio.Event]()
        """For those who wait."""

    def learn(self, described: Json) -> None:
        self.resources[described["resource"]] = Resource(
            described["resource"],
            str(described.get("resource_name") or ""),
            [str(each) for each in described.get("authorization_servers") or []],
            [str(each) for each in described.get("scopes_supported") or []],
            required=False,
        )

    def give(self, resource: str, token: str, seconds: float | None, client: str) -> None:
        until = float("inf") if seconds is None else time.monotonic() + seconds
        self._given[resource, client] = (token, until)
        self.arrival(resource, client).set()

    def forget(self, client: str) -> None:
        for key in [key for key in self._given if key[1] == client]:
            del self._given[key]

    def get(self, resource: str, client: str) -> str | None:
        token, until = self._given.get((resource, client), ("", 0.0))
        return token if token and time.monotonic() < until else None

    def state(self, resource: str, client: str) -> SignInState:
        if self.get(resource, client) is not None:
            return "given"
        return "expired" if (resource, client) in self._given else "required"

    def arrival(self, resource: str, client: str) -> asyncio.Event:
        return self._arrivals.setdefault((resource, client), asyncio.Event())


class Bearer:
    """What one client may use."""

    def __init__(self, tokens: McpTokens, client: str) -> None:
        self.tokens = tokens
        self.client = client

    def token(self, resource: str) -> str | None:
        return self.tokens.get(resource, self.client)


async def asked(needed: SignInNeeded, call: Call) -> bool:
    """Wait in the call for a token. False: no client can provide one, or the client declined."""
    bearer = needed.bearer
    if bearer is None or bearer.client not in call.turn.session.host.connected:
        return False
    resource: str = needed.resource["resource"]
    arrival = bearer.tokens.arrival(resource, bearer.client)
    arrival.clear()
    call.turn.remark(f"{needed.resource.get('resource_name') or resource} wants a sign-in: give it in your editor.")
    waiting = asyncio.ensure_future(call.sign_in(needed.resource, needed.reason, needed.scopes))
    coming = asyncio.ensure_future(arrival.wait())
    try:
        await asyncio.wait({waiting, coming}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            call.signed_in(True, f"client:{bearer.client}")
        settled = await waiting
        needed.by = "" if settled.given or settled.by == "turn" else settled.by
        return settled.given
    finally:
        waiting.cancel()
        coming.cancel()
