"""`portico doctor --editor`: checks whether an editor can connect, and which settings it needs.

It connects the way editors do: with the origin of VS Code's window, with and without the token, as a web page would,
and with every version that an editor may offer.
"""

import asyncio
import json
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.typing import Origin

from portico.cli.finding import Finding
from portico.kernel.errors import NotFound
from portico.kernel.events import Json
from portico.server.home import Home

SECONDS = 5
WINDOW = "vscode-file://vscode-app"
"""The origin of desktop VS Code."""
PAGE = "https://example.org"
OFFERS: dict[str, Json] = {
    "VS Code 1.139": {"protocolVersions": ["0.9.0", "0.7.0", "0.6.0", "0.5.2", "0.5.1"]},
    "Copilot CLI": {"protocolVersions": ["0.9.0"]},
    "protocol 1.0": {"protocolVersions": ["1.0.0"]},
    "protocol version 1": {"protocolVersion": 1},
}


@dataclass(frozen=True)
class EditorAddress:
    """The address for editors, and the token that they send."""

    url: str
    token: str

    @property
    def whole(self) -> str:
        return f"{self.url}?{urlencode({'tkn': self.token})}" if self.token else self.url


def find_address(home: Home, given: str | None) -> EditorAddress:
    """Return the given address, with or without a token in it, or the address of the host that runs here."""
    if given is not None:
        parts = urlsplit(given if "://" in given else f"ws://{given}")
        scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
        token = dict(parse_qsl(parts.query)).get("tkn", "")
        return EditorAddress(urlunsplit((scheme, parts.netloc, parts.path or "/", "", "")), token)
    endpoint = home.endpoint()
    if endpoint is None:
        raise NotFound("running host", str(home.path), "Start one with: portico serve")
    token = home.token() if endpoint.token_path else ""
    return EditorAddress(endpoint.url.rstrip("/").replace("http", "ws", 1) + "/", token)


async def check(address: EditorAddress) -> list[Finding]:
    findings = [await _comes_in(address)]
    if not findings[0].ok:
        return findings
    findings += [
        await _stays_out("without a token", address.url, WINDOW, "the token is not asked for"),
        await _stays_out("a web page", address.whole, PAGE, "pages of other sites may connect"),
    ]
    return findings + [await _speaks(address, name, offer) for name, offer in OFFERS.items()]


async def _comes_in(address: EditorAddress) -> Finding:
    what = "editor"
    try:
        async with _opened(address.whole, WINDOW):
            return Finding(what, True, f"{address.url} lets desktop VS Code in")
    except InvalidStatus as refused:
        return Finding(what, False, f"{address.url} answers {refused.response.status_code}: {_reason(refused)}")
    except (OSError, TimeoutError, WebSocketException) as error:
        return Finding(what, False, f"{address.url} cannot be reached ({error}). Does the host run, and there?")


async def _stays_out(what: str, url: str, origin: str, wrong: str) -> Finding:
    try:
        async with _opened(url, origin):
            return Finding(what, False, f"comes in, though it should not: {wrong}")
    except InvalidStatus as refused:
        return Finding(what, True, f"is refused ({refused.response.status_code})")
    except (OSError, TimeoutError, WebSocketException) as error:
        return Finding(what, False, str(error))


async def _speaks(address: EditorAddress, name: str, offer: Json) -> Finding:
    try:
        async with asyncio.timeout(SECONDS), _opened(address.whole, WINDOW) as socket:
            params = {"channel": "ahp-root://", "clientId": f"portico-doctor-{name.replace(' ', '-').lower()}", **offer}
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
            answer = json.loads(await socket.recv())
    except (OSError, TimeoutError, ValueError, WebSocketException) as error:
        return Finding(name, False, f"no answer to 'initialize': {error}")
    if "error" in answer:
        return Finding(name, False, str(answer["error"].get("message")))
    return Finding(name, True, f"speaks {answer['result']['protocolVersion']}")


def _opened(url: str, origin: str) -> connect:
    return connect(url, origin=Origin(origin), open_timeout=SECONDS, proxy=None, max_size=None)


def _reason(refused: InvalidStatus) -> str:
    body = refused.response.body or b""
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace")[:200] or "no reason given"


def settings(address: EditorAddress) -> dict[str, str]:
    """Return what to paste, by destination."""
    port = urlsplit(address.url).port or (443 if address.url.startswith("wss") else 80)
    host = urlsplit(address.url).hostname or "127.0.0.1"
    entry: Json = {"name": "Portico", "address": address.url.rstrip("/"), "connectionToken": address.token}
    desktop = {"chat.remoteAgentHostsEnabled": True, "chat.remoteAgentHosts": [entry]}
    bridge = {"host": host, "port": port, "connection-token": address.token}
    flags = " ".join(f"--agent-host-bridge-{name} {value}" for name, value in bridge.items())
    passed = " ".join(f"--vscode-option agent-host-bridge-{name}={value}" for name, value in bridge.items())
    return {
        "VS Code on the desktop, settings.json": json.dumps(desktop, indent=2),
        "VS Code in the browser, when you start VS Code's own server": f"code-server-oss {flags}",
        "VS Code in the browser, when you start Coder's code-server": f"code-server {passed}",
        "Copilot CLI": f"COPILOT_CLI_ENABLED_FEATURE_FLAGS=AHP_CLIENT copilot --ahp '{address.whole}'",
    }
