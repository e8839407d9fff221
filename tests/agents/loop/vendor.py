"""An endpoint that answers with the bytes of a vendor, request by request, and keeps what it was sent."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from portico.kernel.events import Json
from portico.testing.model import ModelServer
from tests.agents.loop.conftest import Desk

SETTINGS = "[agents.loop]\nretries = 0\n"


class Vendor:
    """Each answer is a body (bytes of a stream, or JSON), or a status with a JSON body and headers."""

    def __init__(self, answers: Sequence[Any], models: Json | None = None) -> None:
        self.answers = list(answers)
        self.bodies: list[Json] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.models = models or {"data": [{"id": "m"}]}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method == "GET":
            known = request.url.path.endswith("/models")
            await JSONResponse(self.models if known else {}, 200 if known else 404)(scope, receive, send)
            return
        self.bodies.append(await request.json())
        self.headers.append(dict(request.headers))
        self.paths.append(request.url.path)
        answer = self.answers.pop(0) if self.answers else stream({"content": "Done."})
        if isinstance(answer, tuple):
            status, body, headers = answer
            await JSONResponse(body, status, headers)(scope, receive, send)
        elif isinstance(answer, bytes):
            await Response(answer, media_type="text/event-stream")(scope, receive, send)
        else:
            await JSONResponse(answer)(scope, receive, send)


def frames(*chunks: Json) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in chunks)


def stream(*deltas: Json, finish: str = "stop", done: bytes = b"data: [DONE]\n\n") -> bytes:
    """Chat completions: these deltas of one message."""
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    return frames(*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}) + done


def call(name: str, arguments: Any, ident: str | None = "c1", index: int | None = 0, **extra: Any) -> Json:
    """A delta with one whole tool call."""
    made: Json = {"type": "function", "function": {"name": name, "arguments": arguments}, **extra}
    made |= {} if ident is None else {"id": ident}
    return {"tool_calls": [made if index is None else {"index": index, **made}]}


@asynccontextmanager
async def vendor(
    desk: Desk, *answers: Any, settings: str = SETTINGS, models: Json | None = None
) -> AsyncIterator[Vendor]:
    """The desk's session talks to an endpoint with these answers."""
    found = Vendor(answers, models)
    server = ModelServer()
    server.app = found
    async with server:
        desk.settings(settings)
        desk.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k", "OLLAMA_HOST": "127.0.0.1:1"}
        await desk.open()
        desk.session = await desk.host.start(by="test", agent="loop", cwd=str(desk.project))
        yield found
        await desk.opener.close()
