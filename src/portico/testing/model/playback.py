"""Plays an answer to a client as the step specifies: delayed, in pieces, cut, silent or broken."""

from typing import Literal

import anyio
import msgspec
from starlette.types import Receive, Scope, Send

from portico.testing.model.answer import Format, ModelAnswer
from portico.testing.model.script import Error, Step

# Deltas without a gap between them share a write up to this size: one system call per delta would be the bottleneck.
_WRITE = 16 * 1024
_GARBAGE = b'data: {"half a fr\n\n'
_STOPPING = Error(status=503, message="The scripted model server is stopping.")

Outcome = Literal["answered", "failed", "cut", "gone"]


class Playback:
    """An ASGI response. `outcome` is how it ended: `gone` means the client (or server) disconnected before the end."""

    def __init__(self, answer: ModelAnswer, step: Step, wire: Format, closing: anyio.Event) -> None:
        self.answer = answer
        self.step = step
        self.wire = wire
        self.closing = closing
        self.outcome: Outcome = "gone"
        self._started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Play until the end, until the client disconnects or until the server closes; the first one stops the rest."""
        self._send = send
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._until_gone, receive, tasks.cancel_scope, name="model client gone")
            tasks.start_soon(self._until_closing, tasks.cancel_scope, name="model server closing")
            await self._play()
            tasks.cancel_scope.cancel()
        if not self._started:
            await self._fail(_STOPPING)

    async def _play(self) -> None:
        step, failure = self.step, self.step.failure
        await anyio.sleep(step.delay / 1000)
        if step.hang is True:
            await anyio.sleep_forever()
        if failure and (failure.after is None or not self.answer.request.stream):
            self.outcome = "failed"
            await self._fail(failure)
        elif self.answer.request.stream:
            await self._stream()
        else:
            await self._whole()

    async def _stream(self) -> None:
        await self._start(200, self.answer.request.media, [(b"cache-control", b"no-cache")])
        batch = bytearray()
        deltas = 0
        step, garbage = self.step, self.step.garbage
        for frame in self.wire.stream(self.answer):
            if await self._breaks(deltas, batch):
                return
            if garbage == deltas:
                garbage = None
                batch += _GARBAGE
            batch += frame.data
            deltas += frame.delta
            if len(batch) >= _WRITE or (frame.delta and step.gap):
                await self._write(batch)
            if frame.delta and step.gap:
                # Before the next frame is made, so that `{{now}}` in it is fresh.
                await anyio.sleep(step.gap / 1000)
        self.outcome = "answered"
        await self._write(batch, more=False)

    async def _breaks(self, deltas: int, batch: bytearray) -> bool:
        """Return whether the stream ends here, before it is complete."""
        step, failure = self.step, self.step.failure
        if step.cut == deltas:
            self.outcome = "cut"
            await self._write(batch)
            return True
        if _silent_after(step) == deltas:
            await self._write(batch)
            await anyio.sleep_forever()
        if failure and failure.after == deltas:
            self.outcome = "failed"
            await self._write(batch + self.wire.stream_error(self.answer, failure), more=False)
            return True
        return False

    async def _whole(self) -> None:
        body = msgspec.json.encode(self.wire.whole(self.answer))
        half = body[: len(body) // 2]
        if self.step.garbage is not None:
            body = half
        await self._start(200, "application/json", [(b"content-length", str(len(body)).encode())])
        if self.step.cut is not None:
            self.outcome = "cut"
            await self._write(bytearray(half))
            return
        if _silent_after(self.step) is not None:
            await self._write(bytearray(half))
            await anyio.sleep_forever()
        self.outcome = "answered"
        await self._write(bytearray(body), more=False)

    async def _fail(self, failure: Error) -> None:
        body = msgspec.json.encode(self.wire.error(failure))
        headers = [(b"content-length", str(len(body)).encode())]
        if failure.retry_after is not None:
            headers.append((b"retry-after", f"{failure.retry_after:g}".encode()))
        await self._start(failure.status, "application/json", headers)
        await self._write(bytearray(body), more=False)

    async def _start(self, status: int, media: str, headers: list[tuple[bytes, bytes]]) -> None:
        self._started = True
        headers = [(b"content-type", media.encode()), *headers]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _write(self, batch: bytearray, more: bool = True) -> None:
        """Send what is pending. A response without a final `more=False` is cut: the server closes its connection."""
        if batch or not more:
            await self._send({"type": "http.response.body", "body": bytes(batch), "more_body": more})
            batch.clear()

    async def _until_gone(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    async def _until_closing(self, scope: anyio.CancelScope) -> None:
        await self.closing.wait()
        scope.cancel()


def _silent_after(step: Step) -> int | None:
    """Return `hang` as a number of deltas; `true` is the other kind, which never starts."""
    return None if isinstance(step.hang, bool) else step.hang
