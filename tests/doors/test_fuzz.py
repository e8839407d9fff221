"""SECURITY 30: schemathesis makes requests from our own OpenAPI document and sends them to a real host.

The host answers every one of them, never with a 5xx, only with statuses, content types and bodies that the document
promises, and it is still there afterwards. The same examples every time; HYPOTHESIS_PROFILE=search looks for new ones.
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from portico.features.jobs import to_json
from portico.server.home import Home
from tests.jobs.playing import make, ok
from tests.process import HostProcess

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
Operation = APIOperation[Any, Any, Any, Any]
AnyCase = Case[Any]
SECONDS = 60
"""For one answer: a machine under load is no failure."""
EXAMPLES = 6
"""For each operation and each kind of data: the whole document in half a minute."""
STOP = "/api/stop"
STREAM = "/events"
"""The only route that never ends by itself: `/v1/events` is a stream for those who ask for one."""


class Target:
    """A host that has something of everything, and the ids of what it has."""

    def __init__(self, host: HostProcess, folder: Path) -> None:
        self.host = host
        self.headers = {"Authorization": f"Bearer {Home(host.home).token()}"}
        with httpx.Client(base_url=host.url, headers=self.headers, timeout=SECONDS) as http:
            self.schema = schemathesis.openapi.from_dict(http.get("/openapi.json").json())
            entry = folder / "entries/entry.json"
            entry.write_bytes(to_json(make({"ok": ok()})))
            installed = http.post("/api/copilot/test/installJobsEntry", content=str(entry)).json()
            assert installed == {"result": "OK"}
            session, self.closed = (_session(http, folder) for _ in range(2))
            job = http.post("/api/copilot/job/start/main", content=str(folder)).json()["jobId"]
            elements: list[dict[str, Any]] = []
            while {"callback": "jobSucceeded"} not in elements:
                elements += http.get(f"/api/copilot/job/{job}/live/me").json()["responses"]
            task = next(element["taskId"] for element in elements if element["callback"] == "workStarted")
            http.get(f"/api/copilot/session/{self.closed}/stop")
        self.known = {"session": session, "id": session, "job": job, "task": task}

    def aim(self, case: AnyCase, place: int) -> None:
        """Every second request is about something that exists."""
        if place % 2 or not case.path_parameters:
            return
        kind = "job" if "/job" in case.path else "task" if "/task/" in case.path else "session"
        for name in case.path_parameters:
            if name in self.known:
                case.path_parameters[name] = self.known[kind if name == "id" else name]
        if "/live" in case.path and kind == "session":
            case.path_parameters["id"] = self.closed  # what is open lets its readers wait for five seconds

    def send(self, case: AnyCase) -> None:
        if case.path == STREAM:
            self._look_at_stream(case)
            return
        response = case.call(base_url=self.host.url, headers=self.headers, timeout=SECONDS)
        case.validate_response(response, checks=CHECKS)

    def _look_at_stream(self, case: AnyCase) -> None:
        sent = case.as_transport_kwargs(base_url=self.host.url, headers=self.headers)
        with requests.request(**sent, stream=True, timeout=SECONDS) as response:
            media = response.headers["content-type"].partition(";")[0]
            assert (response.status_code, media) in [
                (200, "text/event-stream"),
                (400, "application/json"),
                (404, "application/json"),
            ], response.status_code


def _session(http: httpx.Client, folder: Path) -> str:
    ident: str = http.post("/v1/sessions", json={"agent": "scripted", "cwd": str(folder)}).json()["id"]
    return ident


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "entries").mkdir()
    with HostProcess(folder / "home", "--test", "--test-folder", "entries") as host:
        yield Target(host, folder)


def operations(target: Target) -> list[Operation]:
    """In an order that keeps things alive: readers first, deletions last."""
    found: list[Operation] = []
    for result in target.schema.get_all_operations():
        assert isinstance(result, Ok), result
        found.append(result.ok())
    found = [each for each in found if each.path != STOP]
    return sorted(found, key=lambda each: ("/live" not in each.path, each.method == "delete", each.path))


def fuzz(target: Target, operation: Operation, mode: GenerationMode) -> None:
    place = count()
    plain = not operation.body and not operation.path_parameters and not operation.query

    @settings(
        max_examples=1 if plain else EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: AnyCase) -> None:
        target.aim(case, next(place))
        target.send(case)

    send()


def test_the_document_is_openapi(target: Target) -> None:
    target.schema.validate()
    assert target.schema.raw_schema["openapi"].startswith("3.1.")


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_route_answers_as_the_document_says(target: Target, mode: GenerationMode) -> None:
    for operation in operations(target):
        if mode is GenerationMode.POSITIVE or operation.body:
            fuzz(target, operation, mode)
    assert target.host.process.poll() is None


def test_the_host_is_still_there_and_stops_when_it_is_told(target: Target) -> None:
    """Last in the file: `stop` is the one route that cannot be tried twice."""
    assert "Traceback" not in target.host.log()
    stop = target.schema[STOP]["POST"].Case()
    target.send(stop)
    assert target.host.process.wait(60) == 0
