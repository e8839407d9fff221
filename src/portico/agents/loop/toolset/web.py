"""`webFetch`: the text of a page. It asks, because an address can carry data away.

The attack: a page or a file tells the model to fetch an address of this network, or one with secrets in its query. So a
person sees the whole address; a redirect to another host is reported, not followed; and an address of this machine or
its network is `unclear`, so that no rule and no earlier approval covers it. The request has no cookies and no keys.
In a sandbox it is judged and recorded as the connections of programs are, and uses the address that was judged;
without one it uses the proxy of the environment, as commands do.
"""

import asyncio
import ipaddress
import socket
from urllib.parse import urljoin, urlsplit

import httpx
from msgspec import Struct

from portico.agents.certificates import certificates
from portico.agents.loop.judged_transport import JudgedTransport
from portico.agents.loop.page_text import page_text
from portico.agents.loop.tools import PlannedCall
from portico.agents.loop.toolset.tool import TEXT, ExtraTool, ToolContext, declare
from portico.agents.loop.transcript import cut
from portico.features.sandboxes.access import ASK_SECONDS
from portico.kernel.action import Action
from portico.kernel.call import Call
from portico.kernel.errors import AgentError, BadRequest, Forbidden
from portico.sandbox.egress import ConnectionDenied, Egress

BODY_BYTES = 4 * 1024 * 1024
TEXT_CHARS = 60_000
"""Of a page: 15,000 tokens."""
FETCH_SECONDS = 30.0
REDIRECTS_MAX = 5
_TEXTS = ("text/", "application/json", "application/xml", "application/xhtml", "application/javascript")


class FetchArguments(Struct, forbid_unknown_fields=True):
    url: str


class FetchFailed(AgentError):
    """The page is not there; the model reads why."""


async def _plan(wanted: FetchArguments, context: ToolContext) -> PlannedCall:
    parts = urlsplit(wanted.url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise BadRequest("'url' is an http or https address without a user name.", field="url")
    egress = await context.egress() if context.egress is not None else None
    # A lookup alone can carry data out of a sandbox, which judges the name and its addresses itself.
    near = egress is None and await _is_near(parts.hostname, parts.port)

    async def act(call: Call) -> str:
        return await fetch(wanted.url, egress)

    unclear = f"{parts.hostname} is this machine or in its network" if near else ""
    return PlannedCall(Action(unclear=unclear), f"Fetch {wanted.url}"[:400], act)


async def _is_near(host: str, port: int | None) -> bool:
    """Whether the name leads to an address that only this machine or its network reaches."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port or 443, type=socket.SOCK_STREAM)
    except OSError:
        return False  # perhaps a proxy knows it; else the request fails
    return any(not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_global for *_, address in found)


async def fetch(url: str, egress: Egress | None = None) -> str:
    """Return the text of a page. `egress`: the way out of a sandbox."""
    verify = await asyncio.to_thread(certificates) if url.startswith("https:") else False
    headers = {"User-Agent": "portico", "Accept": "text/html, text/plain, application/json, */*;q=0.5"}
    through = JudgedTransport(egress, verify) if egress is not None else None
    seconds = FETCH_SECONDS + (ASK_SECONDS if egress is not None else 0)
    try:
        async with (
            asyncio.timeout(seconds),
            httpx.AsyncClient(headers=headers, verify=verify, timeout=FETCH_SECONDS, transport=through) as http,
        ):
            for _ in range(REDIRECTS_MAX):
                async with http.stream("GET", url) as response:
                    if not response.has_redirect_location:
                        return await _text(response)
                    target = urljoin(url, response.headers["location"])
                if urlsplit(target)[:2] != urlsplit(url)[:2]:
                    return f"[redirected to another host: fetch {target} if it is needed]"
                url = target
    except TimeoutError:
        raise FetchFailed(f"{url} did not answer within {FETCH_SECONDS:g} seconds.") from None
    except ConnectionDenied as refused:
        raise Forbidden(f"{refused} Continue without the page.") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise FetchFailed(f"{url} cannot be fetched: {str(error) or type(error).__name__}.") from error
    raise FetchFailed(f"{url} redirects more than {REDIRECTS_MAX} times.")


async def _text(response: httpx.Response) -> str:
    kind = response.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    if not kind.startswith(_TEXTS) and not kind.endswith(("+json", "+xml")):
        raise FetchFailed(f"{response.url} is {kind}, not a text.")
    body = bytearray()
    async for data in response.aiter_bytes():
        body += data
        if len(body) > BODY_BYTES:
            break
    text = bytes(body[:BODY_BYTES]).decode(response.charset_encoding or "utf-8", "replace")
    if "html" in kind:
        text = await asyncio.to_thread(page_text, text)
    if response.status_code >= 400:
        raise FetchFailed(f"{response.url} answers {response.status_code}.\n{cut(text, 2000)}")
    return cut(text, TEXT_CHARS)


FETCH = ExtraTool(
    declare("webFetch", "The text of a web page or file. The person is asked first.", ["url"], url=TEXT),
    FetchArguments,
    _plan,
    kind="fetch",
    reads=True,
)
