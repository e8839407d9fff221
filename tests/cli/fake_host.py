"""A host that is not there: the command line's verbs run in this process, against answers that a test has written."""

import json
from typing import Any, NamedTuple
from urllib.parse import unquote

import httpx
import msgspec
from typer.testing import CliRunner

from portico.cli import build
from portico.client import Client


class Asked(NamedTuple):
    method: str
    path: str
    """With its query."""
    body: Any


class Printed(NamedTuple):
    out: str
    err: str
    code: int
    error: BaseException | None

    @property
    def rows(self) -> list[list[str]]:
        """Without a terminal a table is lines with tabs."""
        return [line.split("\t") for line in self.out.splitlines()]


class FakeHost:
    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        """By `METHOD /path`: what is answered as JSON; an int is a status without a body."""
        self.asked: list[Asked] = []

    def client(self) -> Client:
        client = Client("http://host.example", "token")
        client._http = httpx.AsyncClient(transport=httpx.MockTransport(self._answer), base_url=client.url)
        return client

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path = unquote(request.url.raw_path.decode())
        self.asked.append(Asked(request.method, path, json.loads(request.content) if request.content else None))
        name = f"{request.method} {path.partition('?')[0]}"
        if name not in self.answers:
            return httpx.Response(404, json={"error": f"There is no page {name!r}.", "code": "not_found"})
        answer = self.answers[name]
        if isinstance(answer, int):
            return httpx.Response(answer)
        if isinstance(answer, str):
            return httpx.Response(200, text=answer)
        return httpx.Response(200, content=msgspec.json.encode(answer))

    def run(self, verb: str, *args: str) -> Printed:
        done = CliRunner().invoke(build(verb), [verb, *args])
        failed = done.exception if not isinstance(done.exception, SystemExit) else None
        return Printed(done.stdout, done.stderr, done.exit_code, failed)
