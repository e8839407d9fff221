"""An MCP server behind an address: streamable HTTP. Every message is a POST; its answer is JSON or a stream of events.

A stream that breaks off before the reply is resumed if the server numbers its events (`Last-Event-ID`).
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from urllib.parse import urlsplit

import httpx
import msgspec

from portico import surrogates
from portico.agents.mcp.client import Listener, ServerError, SessionLost
from portico.agents.mcp.sign_in import Bearer, SignInNeeded, challenge, same_origin
from portico.features.sandboxes.host_requests import HOOKS
from portico.kernel.events import Json, SignInReason

CONNECT_SECONDS = 10.0
EVENT_BYTES = 32 * 1024 * 1024
"""One event of a stream, as one line of a server on stdio."""
REPLY_BYTES = 32 * 1024 * 1024
RESUMES = 5
"""How often the stream of one reply is resumed."""
_SESSION, _VERSION = "Mcp-Session-Id", "MCP-Protocol-Version"


class HttpWire:
    def __init__(
        self,
        name: str,
        url: str,
        headers: Mapping[str, str],
        verify: ssl.SSLContext | bool,
        bearer: Bearer | None = None,
    ) -> None:
        self.version = ""
        self._name = name
        self._url = url
        self._session = ""
        self._bearer = bearer
        self._resource = ""
        """The resource that needs a token, once the server has reported it."""
        local = urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
        self._http = httpx.AsyncClient(
            headers=dict(headers),
            # A tool may run long without output; the turn that waits for it has its own timeout for silence.
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            trust_env=not local,  # a proxy is for the world outside
            verify=verify,
            event_hooks=HOOKS,
        )

    async def request(self, message: Json, listener: Listener) -> Json:
        sent = self._token()
        try:
            return await self._request(message, listener)
        except SignInNeeded as needed:
            if self._token() in (None, sent):
                needed.bearer = self._bearer
                raise
            return await self._request(message, listener)  # now that we know what for, there is one

    async def _request(self, message: Json, listener: Listener) -> Json:
        if message["method"] == "initialize":
            self._session = self.version = ""
        try:
            async with self._http.stream("POST", self._url, **self._posting(message)) as response:
                await self._check(response)
                self._session = response.headers.get(_SESSION, self._session)
                if not response.headers.get("content-type", "").startswith("text/event-stream"):
                    return self._object(await _body(response))
                reply, last = await self._listen(response, message["id"], listener)
            for _ in range(RESUMES):
                if reply is not None or not last:
                    break
                reply, last = await self._resume(last, message["id"], listener)
        except httpx.HTTPError as error:
            raise ServerError(
                f"MCP server {self._name!r} at {self._url}: {str(error) or type(error).__name__}"
            ) from error
        if reply is None:
            raise ServerError(f"MCP server {self._name!r} ended its stream before the reply.")
        return reply

    async def _resume(self, last: str, ident: int, listener: Listener) -> tuple[Json | None, str]:
        headers = {**self._headers(), "Accept": "text/event-stream", "Last-Event-ID": last}
        async with self._http.stream("GET", self._url, headers=headers) as response:
            await self._check(response)
            return await self._listen(response, ident, listener)

    async def _listen(self, response: httpx.Response, ident: int, listener: Listener) -> tuple[Json | None, str]:
        """The reply to `ident`, or the id of the last event before the stream ended."""
        last = ""
        async with aclosing(_events(response)) as events:
            async for event, data in events:
                last = event or last
                message = self._object(data) if data else {}
                if "method" not in message:
                    if message.get("id") == ident:
                        return message, last
                elif message.get("id") is None:
                    listener.hear(message)
                else:
                    await self.notify(await listener.serve(message))
        return None, last

    async def notify(self, message: Json) -> None:
        try:
            response = await self._http.post(self._url, **self._posting(message))
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        await self._check(response)

    async def close(self) -> None:
        if self._session:
            with suppress(httpx.HTTPError, TimeoutError):  # it forgets us anyway
                async with asyncio.timeout(1.0):
                    await self._http.delete(self._url, headers=self._headers())
        await self._http.aclose()

    def _posting(self, message: Json) -> Json:
        accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        return {"content": msgspec.json.encode(message), "headers": {**accept, **self._headers()}}

    def _headers(self) -> dict[str, str]:
        headers = {_VERSION: self.version} if self.version else {}
        if (token := self._token()) is not None:
            headers["Authorization"] = f"Bearer {token}"
        return {**headers, _SESSION: self._session} if self._session else headers

    async def _check(self, response: httpx.Response) -> None:
        status = response.status_code
        if status < 400:
            return
        if status == 404 and self._session:
            raise SessionLost(f"MCP server {self._name!r} has ended the session.")
        if status in (401, 403) and self._bearer is not None and "www-authenticate" in response.headers:
            await self._want_sign_in(status, response.headers["www-authenticate"])
        words = (await _body(response))[:300].decode("utf-8", "replace").strip()
        hint = " Look at its headers in the settings." if status in (401, 403) else ""
        raise ServerError(f"MCP server {self._name!r} at {self._url} answered {status}: {words or 'nothing'}.{hint}")

    def _token(self) -> str | None:
        return self._bearer.token(self._resource) if self._bearer is not None and self._resource else None

    async def _want_sign_in(self, status: int, header: str) -> None:
        said, had = challenge(header), self._token() is not None
        if status == 403 and said.error != "insufficient_scope":
            return
        resource = await self._describe(said.metadata)
        self._resource = resource["resource"]
        assert self._bearer is not None  # only called with one
        self._bearer.tokens.learn(resource)
        reason: SignInReason = "insufficient_scope" if status == 403 else "expired" if had else "required"
        message = f"MCP server {self._name!r} wants a sign-in ({resource['resource']})."
        raise SignInNeeded(message, resource, reason, said.scopes)

    async def _describe(self, metadata: str) -> Json:
        """What the token is for, from the server itself and from nowhere else."""
        plain: Json = {"resource": self._url, "resource_name": self._name}
        if not metadata or not same_origin(metadata, self._url):
            return plain
        async with self._http.stream("GET", metadata) as response:
            found = self._object(await _body(response)) if response.status_code == 200 else plain
        resource = found.get("resource")
        if not isinstance(resource, str) or not same_origin(resource, self._url):
            raise ServerError(f"MCP server {self._name!r} asks for a token of {resource!r}, which it is not.")
        return {"resource_name": self._name, **found}

    def _unreachable(self, error: httpx.HTTPError) -> ServerError:
        return ServerError(f"MCP server {self._name!r} at {self._url}: {str(error) or type(error).__name__}")

    def _object(self, data: bytes) -> Json:
        try:
            message = surrogates.decode(data, msgspec.json.decode)
        except (ValueError, RecursionError) as error:
            raise ServerError(f"MCP server {self._name!r} sent something that is not JSON.") from error
        if not isinstance(message, dict):
            raise ServerError(f"MCP server {self._name!r} sent something that is no message.")
        return message


async def _body(response: httpx.Response) -> bytes:
    body = bytearray()
    async for data in response.aiter_bytes():
        body += data
        if len(body) > REPLY_BYTES:
            raise ServerError("The reply is too large.")
    return bytes(body)


async def _events(response: httpx.Response) -> AsyncGenerator[tuple[str, bytes], None]:
    """Each event's id and data."""
    ident, data, size = "", list[str](), 0
    async for line in response.aiter_lines():
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        size += len(line)
        if size > EVENT_BYTES:
            raise ServerError("An event of the stream is too large.")
        if not line:
            if ident or data:
                yield ident, "\n".join(data).encode()
            ident, data, size = "", [], 0
        elif name == "data":
            data.append(value)
        elif name == "id":
            ident = value
