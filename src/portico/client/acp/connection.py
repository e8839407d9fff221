"""JSON-RPC 2.0 with an editor, one JSON object per line in both directions.

The SDK's connection is not used: it ends at a line that is not an object, and it has no `$/cancel_request`. Its models
are used for what is inside the frames.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from acp import RequestError
from pydantic import BaseModel, ValidationError

from portico import surrogates
from portico.kernel.events import Json
from portico.tasks import end_tasks

CANCEL_REQUEST = "$/cancel_request"
REQUEST_CANCELLED = -32800
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603

Handler = Callable[[str, Any, bool], Awaitable[Any]]
"""Gets the method, its params, and whether it is a notification."""

logger = logging.getLogger("portico.acp")
_decode = msgspec.json.Decoder().decode


class EditorConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler) -> None:
        self._reader = reader
        self._writer = writer
        self._handler = handler
        self._sent = 0
        self._answers: dict[Any, asyncio.Future[Any]] = {}
        """Of our requests, by their id."""
        self._running: dict[Any, asyncio.Task[None]] = {}
        """The editor's requests, by their id."""
        self._tasks: set[asyncio.Task[None]] = set()

    # -- our requests ------------------------------------------------------------------------------------------

    async def request(self, method: str, params: Json) -> Any:
        """Return the editor's answer. A caller that is cancelled withdraws the request."""
        ident, self._sent = self._sent, self._sent + 1
        answer = self._answers[ident] = asyncio.get_running_loop().create_future()
        try:
            await self._send({"id": ident, "method": method, "params": params})
            return await answer
        except asyncio.CancelledError:
            if answer.cancelled() or not answer.done():
                await self.notify(CANCEL_REQUEST, {"requestId": ident})
            raise
        finally:
            self._answers.pop(ident, None)

    async def notify(self, method: str, params: Json) -> None:
        await self._send({"method": method, "params": params})

    async def _send(self, frame: Json) -> None:
        if self._writer.is_closing():
            raise ConnectionError("The editor has closed the connection.")
        self._writer.write(msgspec.json.encode({"jsonrpc": "2.0", **frame}) + b"\n")
        await self._writer.drain()

    # -- the editor's requests ---------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Return when the editor closes its end."""
        while line := await self._line():
            if line.strip():
                await self._receive(line)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ConnectionError("The editor has closed the connection."))

    async def close(self) -> None:
        await end_tasks(*self._tasks, expected=(ConnectionError,))

    async def _line(self) -> bytes:
        try:
            return await self._reader.readline()
        except ValueError:  # longer than the reader's limit, which has dropped it
            await self._refuse(None, INVALID_REQUEST, "The line is too long.")
            return b"\n"

    async def _receive(self, line: bytes) -> None:
        try:
            frame = surrogates.decode(line, _decode)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the last one: nested too deeply
            await self._refuse(None, PARSE_ERROR, "The line is not JSON.")
            return
        if not isinstance(frame, dict):
            await self._refuse(None, INVALID_REQUEST, "A message is one JSON object per line.")
        elif "method" in frame:
            await self._called(frame)
        elif "id" in frame and ("result" in frame or "error" in frame):
            self._answered(frame)
        else:
            await self._refuse(frame.get("id"), INVALID_REQUEST, "A message has a 'method', a 'result' or an 'error'.")

    async def _called(self, frame: Json) -> None:
        method, params, ident = frame["method"], frame.get("params"), frame.get("id")
        if not isinstance(method, str) or not isinstance(ident, str | int | None):
            await self._refuse(None, INVALID_REQUEST, "'method' is a text, and 'id' a text or a number.")
        elif method == CANCEL_REQUEST:
            self._cancel(params)
        elif "id" not in frame:
            self._start(self._notified(method, params), f"acp {method}")
        elif ident in self._running:
            await self._refuse(ident, INVALID_REQUEST, f"A request with the id {ident!r} is still open.")
        else:
            self._running[ident] = self._start(self._answer(ident, method, params), f"acp {method} {ident}")

    def _start(self, work: Any, name: str) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _cancel(self, params: Any) -> None:
        """The editor withdraws a request. It is answered with an error; one that has ended is ignored."""
        ident = params.get("requestId") if isinstance(params, dict) else None
        task = self._running.get(ident) if isinstance(ident, str | int) else None
        if task is not None:
            task.cancel()

    async def _notified(self, method: str, params: Any) -> None:
        try:
            await self._handler(method, params, True)
        except (RequestError, ValidationError) as error:
            logger.warning("%s is ignored: %s", method, error)

    async def _answer(self, ident: Any, method: str, params: Any) -> None:
        try:
            await self._send({"id": ident, "result": plain(await self._handler(method, params, False))})
        except asyncio.CancelledError:
            await self._refuse(ident, REQUEST_CANCELLED, "Request cancelled")
        except RequestError as error:
            await self._send({"id": ident, "error": error.to_error_obj()})
        except ValidationError as error:
            await self._refuse(ident, INVALID_PARAMS, _mistake(error))
        except ConnectionError:
            logger.info("the editor has left before the answer to %s", method)
        except Exception as error:  # a bug of ours: the editor gets an answer, and the connection stays usable
            logger.exception("%s failed", method)
            await self._refuse(ident, INTERNAL_ERROR, f"{method} failed: {error}")
        finally:
            self._running.pop(ident, None)

    async def _refuse(self, ident: Any, code: int, message: str) -> None:
        await self._send({"id": ident, "error": {"code": code, "message": message}})

    def _answered(self, frame: Json) -> None:
        ident = frame["id"]
        answer = self._answers.get(ident) if isinstance(ident, str | int) else None
        if answer is None or answer.done():
            return  # it was withdrawn
        error = frame.get("error")
        if error is None:
            answer.set_result(frame.get("result"))
        else:
            about: Mapping[str, Any] = error if isinstance(error, dict) else {"message": str(error)}
            answer.set_exception(RequestError(INTERNAL_ERROR, str(about.get("message")), about.get("data")))


def plain(value: Any) -> Any:
    """A model of the SDK as JSON."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
    return value


def _mistake(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return f"Invalid params: {where}: {first['msg']}" if where else f"Invalid params: {first['msg']}"
