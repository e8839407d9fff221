"""One OpenAI-compatible endpoint: a streamed request, bounded, with errors that indicate whether to retry.

Answers are read in whole network chunks: all deltas of a chunk become one report, which is what keeps a fast model
from costing more than a slow one. The key is in no message and no log line.
"""

import asyncio
import contextlib
import importlib.util
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing, nullcontext
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
from msgspec import Struct

from portico.agents.certificates import certificates
from portico.agents.facts import Problem
from portico.agents.loop.http_transport import FastTransport, needs_proxy
from portico.agents.loop.refusal import BODY_BYTES, refusal
from portico.agents.loop.reply import ANSWER_MAX, ERROR_CHARS, ModelError, NoList, Reply, Report
from portico.agents.loop.windows import listed, of_llama_cpp, of_ollama
from portico.agents.loop.wires.registry import CODECS, AnswerStream, WireSetting, wire_of
from portico.agents.loop.wires.request import CompletionRequest
from portico.features.sandboxes.host_requests import HOOKS, recording
from portico.kernel.events import Json

if importlib.util.find_spec("sniffio") is None:
    # httpcore looks for it some seven times a request, each time in all folders of the path: a third of our own time.
    sys.modules["sniffio"] = None  # type: ignore[assignment]

LINE_MAX = 8 * 1024 * 1024
"""Bytes of one frame without an end: a server that is none of ours."""
BOM = b"\xef\xbb\xbf"
CONNECT_SECONDS = 10.0
END_SECONDS = 0.05
"""For the end of a body whose content is whole: less than what a new connection takes."""
REDIRECTS_MAX = 4
"""Of one request: to https, to a path, and two more."""
LIST_SECONDS = 1.5
"""For the list of models: a person waits for it."""


class _List(Struct):
    data: list[Json] = []


class ModelEndpoint:
    """Where models answer. `close` it when it is not needed any more."""

    def __init__(
        self,
        name: str,
        url: str,
        key: str = "",
        *,
        timeout: float = 120.0,
        schema_first: bool = False,
        context_chars: int | None = None,
        max_tokens: int | None = None,
        bound: int | None = None,
        wire: WireSetting = "auto",
        using: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.name = name
        self.url = url.rstrip("/")
        self.windows: dict[str, int] = {}
        """Context windows in tokens, by model, as far as they are reported."""
        self._asked: set[str] = set()
        self.refused = Problem()
        """Why it rejected our key, until it answers. New settings create a new endpoint, without this note."""
        self._seconds = timeout
        self.schema_first = schema_first
        """Constrained decoding is this server's strength (llama.cpp); native calls depend on the model's template."""
        self.context_chars = context_chars
        self.max_tokens = max_tokens
        self.bound = bound
        """The longest text in a constrained answer, for models that would not end one."""
        self._using = using
        """Entered around each request: a model of our own is not unloaded in the middle of one."""
        self.cache_keys = urlsplit(self.url).hostname == "api.openai.com"
        """Takes `prompt_cache_key`; others reject fields that they do not know."""
        self.wire = wire_of(self.url, wire)
        self.codec = CODECS[self.wire]
        headers = self.codec.headers(key)
        local = urlsplit(self.url).hostname in ("127.0.0.1", "localhost", "::1")
        verify = certificates() if self.url.startswith("https:") else None
        proxied = not local and needs_proxy(httpx.URL(self.url))  # a proxy is for the world outside
        self._http = httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(timeout, connect=min(CONNECT_SECONDS, timeout)),
            trust_env=proxied,
            verify=verify or False,
            transport=None if proxied else FastTransport(verify),
            event_hooks=HOOKS,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def models(self) -> list[str]:
        """The names the endpoint lists; raises ModelError when it does not answer."""
        try:
            with recording(None):
                answer = await self._send(self._http.build_request("GET", f"{self.url}/models", timeout=LIST_SECONDS))
                await answer.aread()
                await answer.aclose()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ModelError(f"{self.name} at {self.url} does not answer: {_said(error)}.", again=True) from error
        if answer.status_code >= 400:
            if answer.status_code in (404, 405, 501):
                raise NoList(f"{self.name} at {self.url} does not list its models.")
            raise self._refusal(answer.status_code, answer.content, answer.headers)
        try:
            found = msgspec.json.decode(answer.content, type=_List).data
            names = [str(each["id"]) for each in found]
            self.windows |= {name: size for name, each in zip(names, found, strict=True) if (size := listed(each))}
            return names
        except (ValueError, KeyError, RecursionError) as error:
            raise ModelError(f"{self.name} at {self.url} lists its models in no known form.") from error

    async def window(self, model: str) -> int | None:
        """The context window of a model. llama.cpp and Ollama have requests of their own for it, made once."""
        if model not in self._asked:
            self._asked.add(model)
            root = self.url.removesuffix("/v1")
            if self.name == "llama.cpp":
                found = of_llama_cpp(await self._fetch("GET", f"{root}/props"))
            elif self.name == "Ollama":
                found = of_ollama(await self._fetch("POST", f"{root}/api/show", {"model": model}))
            else:
                found = None
            if found is not None:
                self.windows[model] = found
        return self.windows.get(model)

    async def _fetch(self, method: str, url: str, body: Json | None = None) -> Any:
        """Optional facts: a server that does not answer has none."""
        try:
            with recording(None):
                answer = await self._http.request(method, url, json=body, timeout=LIST_SECONDS)
            return msgspec.json.decode(answer.content) if answer.status_code == 200 else None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
            return None

    async def ask(
        self,
        ask: CompletionRequest,
        report: Report,
        drained: Callable[[], Awaitable[None]],
        retract: Callable[[], None] = lambda: None,
        grow: Callable[[str, str, str], None] = lambda ident, name, piece: None,
        timeout_factor: int = 1,
    ) -> Reply:
        """Streams one answer; returns when it is complete. `drained` waits while the disk is slower; `retract` is
        called when everything reported so far turns out to be reasoning, `grow` with arguments of calls;
        `timeout_factor`: how many times the usual timeout the model may be silent."""
        with self._using():
            return await self._ask(ask, self.codec.stream(self.name, report, retract, grow), drained, timeout_factor)

    async def _send(self, request: httpx.Request) -> httpx.Response:
        """Follows redirects on the same host, also from http to https; the method stays. The key is sent to no other
        host."""
        for _ in range(REDIRECTS_MAX):
            response = await self._http.send(request, stream=True)
            if not response.has_redirect_location:
                return response
            await response.aclose()
            target = response.url.join(response.headers["location"])
            if not _follows(response.url, target):
                raise ModelError(
                    f"{self.name} at {self.url} redirects to {_base(target, self.codec.path)}. The key was not sent "
                    "there. If this address is right, set it as base_url."
                )
            request = self._http.build_request(
                request.method, target, content=request.content, headers=request.headers, timeout=_timeout(request)
            )
        raise ModelError(f"{self.name} at {self.url} redirects more than {REDIRECTS_MAX} times.")

    async def _ask(
        self, ask: CompletionRequest, answer: AnswerStream, drained: Callable[[], Awaitable[None]], timeout_factor: int
    ) -> Reply:
        times = httpx.Timeout(self._seconds * timeout_factor, connect=self._http.timeout.connect)
        try:
            request = self._http.build_request(
                "POST",
                f"{self.url}/{self.codec.path}",
                content=msgspec.json.encode(self.codec.body(ask)),
                headers={"Content-Type": "application/json", "Accept": "text/event-stream"},
                timeout=times,
            )
            response = await self._send(request)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ModelError(
                f"{self.name} at {self.url} does not answer: {_said(error)}.",
                again=True,
                silent=isinstance(error, httpx.ReadTimeout),
            ) from error
        try:
            if response.status_code != 200:
                refusal = self._refusal(response.status_code, await _some(response), response.headers)
                self.refused = Problem.now(refusal.message) if response.status_code == 401 else self.refused
                raise refusal
            self.refused = Problem()
            kind = response.headers.get("content-type", "")
            if kind.startswith("text/html"):
                hint = "Is the address right? Most end in /v1. A proxy or a login page may have answered"
                raise ModelError(f"{self.name} at {self.url} answered with a web page, not as a model. {hint}.")
            async with aclosing(_lines(response)) as batches:
                if kind.startswith("application/json"):
                    body = await _whole(batches)
                    if not _is_stream(body):
                        return answer.take_whole(body)
                    answer.take(body.split(b"\n"))
                async for lines in batches:
                    if answer.take(lines):
                        await _read_end(batches)
                        break
                    await drained()
        except httpx.HTTPError as error:
            silent = isinstance(error, httpx.ReadTimeout)
            raise ModelError(
                f"The stream of {self.name} broke off: {_said(error)}.", again=True, silent=silent
            ) from error
        finally:
            # Shielded: a cancel must not leave the connection, and with it the model, running.
            await asyncio.shield(response.aclose())
        return answer.reply()

    def _refusal(self, status: int, body: bytes, headers: httpx.Headers) -> ModelError:
        return refusal(self.name, self.url, status, body, headers)


async def _lines(response: httpx.Response) -> AsyncGenerator[list[bytes], None]:
    """The whole lines of each network chunk."""
    rest = b""
    first = True
    async for data in response.aiter_bytes():
        *lines, rest = (rest + data).split(b"\n")
        if first and lines:
            lines[0], first = lines[0].removeprefix(BOM), False
        if len(rest) > LINE_MAX:
            raise ModelError("The endpoint sent a frame without an end.")
        if lines:
            yield lines
    if rest:
        yield [rest]


async def _whole(batches: AsyncGenerator[list[bytes], None]) -> bytes:
    body = bytearray()
    async for lines in batches:
        body += b"\n".join([*lines, b""])
        if len(body) > ANSWER_MAX:
            break
    return bytes(body)


def _is_stream(body: bytes) -> bool:
    """Some gateways send a stream under the type of JSON."""
    return body.lstrip()[:1] not in (b"{", b"[")


async def _read_end(batches: AsyncGenerator[list[bytes], None]) -> None:
    """Read the end of the body after the last frame: a connection that has reached it is reused for the next request,
    which saves a handshake. The end arrives immediately, or is not waited for."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_SECONDS):
            async for _ in batches:
                pass


async def _some(response: httpx.Response, limit: int = BODY_BYTES) -> bytes:
    """A body, or its beginning."""
    body = bytearray()
    async for data in response.aiter_bytes():
        body += data
        if len(body) > limit:
            break
    return bytes(body)


def _follows(source: httpx.URL, target: httpx.URL) -> bool:
    """Whether a request is made again at the target, which gets the key."""
    same = (target.scheme, target.host, target.port) == (source.scheme, source.host, source.port)
    return same or (target.scheme == "https" and source.scheme == "http" and target.host == source.host)


def _base(target: httpx.URL, path: str) -> str:
    """The address for the settings, without what a person must not see."""
    shown = target.copy_with(userinfo=b"", query=None, fragment=None)
    return str(shown).removesuffix("/").removesuffix(f"/{path}").removesuffix("/models")[:ERROR_CHARS]


def _timeout(request: httpx.Request) -> httpx.Timeout:
    times = request.extensions["timeout"]
    return httpx.Timeout(times["read"], connect=times["connect"])


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
