"""A server that answers with the bytes of a case. The case is named in the prompt: `[case NAME]`."""

import asyncio
import contextlib
import json
import re
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from bench.difficult.case import Asked, Case
from bench.difficult.wire import Answer, Json, says

_CASE = re.compile(r"\[case ([\w-]+)\]")
MODELS = {"object": "list", "data": [{"id": "gpt-4.1", "object": "model", "created": 1, "owned_by": "x"}]}


class ByteEndpoint:
    def __init__(self, cases: Mapping[str, Case]) -> None:
        self._cases = cases
        self.requests: dict[str, list[Asked]] = {}
        """Those with tools, by case."""
        self.current = ""
        """The case that is played: an agent may shorten the conversation and lose its name."""
        self._open: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=64 * 1024 * 1024)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        for writer in list(self._open):
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                method, path, body = await _read(reader)
                answer = self._answer(method, path, body)
                await _write(writer, answer)
                if answer.drops:
                    break
        writer.close()
        self._open.discard(writer)

    def _answer(self, method: str, path: str, body: bytes) -> Answer:
        if method == "GET":
            return _json(MODELS if path.endswith("/models") else {})
        asked: Json = json.loads(body)
        named = _CASE.findall(body.decode("utf-8", "replace"))
        name = named[-1] if named else self.current
        if not asked.get("tools") or name not in self._cases:
            return _plain(asked)  # a title, or a summary
        return self._step(self._cases[name], asked, path)

    def _step(self, case: Case, body: Json, path: str) -> Answer:
        seen = self.requests.setdefault(case.name, [])
        asked = Asked(body, len(seen), path)
        seen.append(asked)
        return case.steps[asked.number](asked) if asked.number < len(case.steps) else says("Done.")


def _plain(asked: Json) -> Answer:
    text = "A short title"
    if asked.get("stream"):
        return says(text)
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return _json({"id": "x", "object": "chat.completion", "created": 1, "model": "gpt-4.1", "choices": [choice]})


def _json(value: object) -> Answer:
    return Answer([json.dumps(value).encode()], headers={"Content-Type": "application/json"})


async def _read(reader: asyncio.StreamReader) -> tuple[str, str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    method, path, _ = head.split(" ", 2)
    size = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
    if size is None and "chunked" in head.lower():
        return method, path, await _chunks(reader)
    return method, path, await reader.readexactly(int(size[1]) if size is not None else 0)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while count := int((await reader.readline()).strip(), 16):
        body += await reader.readexactly(count)
        await reader.readline()
    await reader.readline()
    return body


async def _write(writer: asyncio.StreamWriter, answer: Answer) -> None:
    headers = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
    writer.write(f"HTTP/1.1 {answer.status} X\r\n{headers}Transfer-Encoding: chunked\r\n\r\n".encode())
    for piece in answer.body:
        if piece:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            if answer.gap:
                await asyncio.sleep(answer.gap)
    if not answer.drops:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
