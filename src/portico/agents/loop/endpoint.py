"""One OpenAI-compatible endpoint: a streamed request, bounded, with errors that say whether to try again.

Answers are read in whole network chunks: all deltas of a chunk become one report, which is what keeps a fast model
from costing more than a slow one. The key is in no message and no log line.
"""

import asyncio
import contextlib
import importlib.util
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from urllib.parse import urlsplit

import httpx
import msgspec
from msgspec import Struct

from portico.agents.certificates import certificates
from portico.agents.facts import Problem
from portico.agents.loop.answer import (
    ANSWER_MAX,
    ERROR_CHARS,
    Feature,
    ModelError,
    NoList,
    Reply,
    Report,
    StreamedAnswer,
    error_words,
)
from portico.events import Json

if importlib.util.find_spec("sniffio") is None:
    # httpcore looks for it some seven times a request, each time in all folders of the path: a third of our own time.
    sys.modules["sniffio"] = None  # type: ignore[assignment]

LINE_MAX = 8 * 1024 * 1024
"""Bytes of one frame without an end: a server that is none of ours."""
CONNECT_SECONDS = 10.0
END_SECONDS = 0.05
"""For the end of a body whose content is whole: less than what a new connection takes."""
LIST_SECONDS = 1.5
"""For the list of models: a person waits for it."""

_WORDS: dict[Feature, tuple[str, ...]] = {
    "pictures": ("image", "vision", "multimodal", "mmproj"),
    "usage": ("stream_options", "include_usage"),
    "tools": ("tool", "function", "jinja"),
    "schema": ("response_format", "json_schema", "schema", "grammar"),
}


class CompletionRequest(Struct, frozen=True):
    """One request. `tools` and `schema` are asked for only where the endpoint is believed to know them."""

    model: str
    messages: Sequence[Json]
    tools: Sequence[Json] = ()
    schema: Json | None = None
    usage: bool = True
    temperature: float | None = None
    max_tokens: int | None = None

    @property
    def pictures(self) -> bool:
        return any(isinstance(message.get("content"), list) for message in self.messages)

    def body(self) -> Json:
        body: Json = {"model": self.model, "messages": list(self.messages), "stream": True}
        if self.usage:
            body["stream_options"] = {"include_usage": True}
        if self.tools:
            body["tools"] = list(self.tools)
        if self.schema is not None:
            shape = {"name": "step", "schema": self.schema, "strict": False}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        return body


class _Listed(Struct):
    id: str


class _List(Struct):
    data: list[_Listed] = []


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
        using: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.name = name
        self.url = url.rstrip("/")
        self.refused = Problem()
        """Why it rejected our key, until it answers. New settings create a new endpoint, without this note."""
        self.schema_first = schema_first
        """Constrained decoding is this server's strength (llama.cpp); native calls depend on the model's template."""
        self.context_chars = context_chars
        self.max_tokens = max_tokens
        self.bound = bound
        """The longest text in a constrained answer, for models that would not end one."""
        self._using = using
        """Entered around each request: a model of our own is not unloaded in the middle of one."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        local = urlsplit(self.url).hostname in ("127.0.0.1", "localhost", "::1")
        self._http = httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(timeout, connect=min(CONNECT_SECONDS, timeout)),
            trust_env=not local,  # a proxy is for the world outside
            verify=certificates() if self.url.startswith("https:") else False,
            limits=httpx.Limits(max_keepalive_connections=8),
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def models(self) -> list[str]:
        """The names the endpoint lists; raises ModelError when it does not answer."""
        try:
            answer = await self._http.get(f"{self.url}/models", timeout=LIST_SECONDS)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ModelError(f"{self.name} at {self.url} does not answer: {_said(error)}.", again=True) from error
        if answer.status_code >= 400:
            if answer.status_code in (404, 405, 501):
                raise NoList(f"{self.name} at {self.url} does not list its models.")
            raise self._refusal(answer.status_code, answer.content, answer.headers)
        try:
            return [each.id for each in msgspec.json.decode(answer.content, type=_List).data]
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{self.name} at {self.url} lists its models in no known form.") from error

    async def ask(self, ask: CompletionRequest, report: Report, drained: Callable[[], Awaitable[None]]) -> Reply:
        """Streams one answer; returns when it is whole. `drained` holds us up when the disk is slower."""
        with self._using():
            return await self._ask(ask, report, drained)

    async def _ask(self, ask: CompletionRequest, report: Report, drained: Callable[[], Awaitable[None]]) -> Reply:
        answer = StreamedAnswer(self.name, report)
        try:
            request = self._http.build_request(
                "POST",
                f"{self.url}/chat/completions",
                content=msgspec.json.encode(ask.body()),
                headers={"Content-Type": "application/json", "Accept": "text/event-stream"},
            )
            response = await self._http.send(request, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ModelError(f"{self.name} at {self.url} does not answer: {_said(error)}.", again=True) from error
        try:
            if response.status_code != 200:
                refusal = self._refusal(response.status_code, await _some(response), response.headers)
                self.refused = Problem.now(refusal.message) if response.status_code == 401 else self.refused
                raise refusal
            self.refused = Problem()
            if response.headers.get("content-type", "").startswith("application/json"):
                return answer.take_whole(await _some(response, ANSWER_MAX))
            async with aclosing(_lines(response)) as batches:
                async for lines in batches:
                    if answer.take(lines):
                        await _read_end(batches)
                        break
                    await drained()
        except httpx.HTTPError as error:
            raise ModelError(f"The stream of {self.name} broke off: {_said(error)}.", again=True) from error
        finally:
            # Shielded: a cancel must not leave the connection, and with it the model, running.
            await asyncio.shield(response.aclose())
        return answer.reply()

    def _refusal(self, status: int, body: bytes, headers: httpx.Headers) -> ModelError:
        words = _words(body).rstrip(".")
        message = f"{self.name} answered {status}: {words}."
        if status in (401, 403):
            hint = "Set another one: OPENAI_API_KEY, or api_key_env in [agents.loop]."
            return ModelError(
                f"{self.name} at {self.url} does not accept the key ({status}): {words}. {hint}", refused=True
            )
        if status == 404 and not self.url.endswith("/v1"):
            message += " (Most addresses end in /v1.)"
        if status in (408, 409, 425, 429):
            return ModelError(message, again=True, retry_after=_seconds(headers.get("retry-after")))
        lacks = _lacks(words) if status in (400, 404, 422, 500, 501) else None
        too_long = status in (400, 413, 500) and "context" in words.lower()
        again = status >= 500 and not too_long
        after = _seconds(headers.get("retry-after"))
        return ModelError(message, again=again, retry_after=after, lacks=lacks, too_long=too_long)


async def _lines(response: httpx.Response) -> AsyncGenerator[list[bytes], None]:
    """The whole lines of each network chunk."""
    rest = b""
    async for data in response.aiter_bytes():
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > LINE_MAX:
            raise ModelError("The endpoint sent a frame without an end.")
        if lines:
            yield lines
    if rest:
        yield [rest]


async def _read_end(batches: AsyncGenerator[list[bytes], None]) -> None:
    """What follows the last frame is the end of the body: a connection that has seen it serves the next request, and
    another handshake is saved. It comes at once, or is not waited for."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_SECONDS):
            async for _ in batches:
                pass


async def _some(response: httpx.Response, limit: int = 64 * 1024) -> bytes:
    """A body, or its beginning."""
    body = bytearray()
    async for data in response.aiter_bytes():
        body += data
        if len(body) > limit:
            break
    return bytes(body)


def _words(body: bytes) -> str:
    try:
        value = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return body[:ERROR_CHARS].decode("utf-8", "replace").strip() or "nothing"
    return error_words(value.get("error", value) if isinstance(value, dict) else value)


def _lacks(words: str) -> Feature | None:
    """Which of the optional things the endpoint complains about."""
    said = words.lower()
    return next((feature for feature, signs in _WORDS.items() if any(sign in said for sign in signs)), None)


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None  # a date: our own waits are about as good


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
