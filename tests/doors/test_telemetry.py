"""What somebody who watches a host gets: metrics, spans, and lines that belong together."""

import asyncio
import json
import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from portico.cli.serve import JsonLines
from portico.kernel.correlation import REQUEST, SESSION, TURN, request_id
from tests.doors.standing import Standing, standing

TRACES = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="needs portico[otel]")
METRICS = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")


class Receiver(ThreadingHTTPServer):
    """As much of a collector as is needed."""

    daemon_threads = True

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: set[str] = set()
        super().__init__(("127.0.0.1", 0), Collect)
        self.url = f"http://127.0.0.1:{self.server_port}"


class Collect(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/v1/traces":
            found = TRACES.ExportTraceServiceRequest.FromString(body)
            scopes = [scope for each in found.resource_spans for scope in each.scope_spans]
            self.server.spans += [span for scope in scopes for span in scope.spans]
        else:
            found = METRICS.ExportMetricsServiceRequest.FromString(body)
            scopes = [scope for each in found.resource_metrics for scope in each.scope_metrics]
            self.server.metrics |= {metric.name for scope in scopes for metric in scope.metrics}
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def receiving() -> Iterator[Receiver]:
    with Receiver() as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        yield receiver
        receiver.shutdown()


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


PROMPT = "[[tool:write_file|the secret argument]] [[say:the secret answer]]"


@pytest.mark.parametrize("content", [False, True])
async def test_a_turn_is_a_span_with_its_tool_calls_below_it(tmp_path: Path, content: bool) -> None:
    with receiving() as receiver:
        flags = {"telemetry.endpoint": receiver.url, "telemetry.content": content}
        async with standing(tmp_path, flags=flags) as here:
            session = await here.start(cwd=str(tmp_path))
            await here.say(session, PROMPT)
            await here.say(session, "[[crash]]")
        tool, good, bad = sorted(receiver.spans, key=lambda span: (not span.parent_span_id, span.start_time_unix_nano))
        assert (tool.name, good.name) == ("execute_tool write_file", "invoke_agent scripted")
        assert tool.parent_span_id == good.span_id
        assert tool.trace_id == good.trace_id != bad.trace_id
        found = attributes(good)
        assert found["gen_ai.operation.name"] == "invoke_agent"
        assert (found["gen_ai.conversation.id"], found["gen_ai.agent.name"]) == (session, "scripted")
        assert attributes(bad)["error.type"] == "agent_failed"
        assert {"gen_ai.invoke_agent.duration", "gen_ai.execute_tool.duration"} <= receiver.metrics
        assert ("secret" in str(receiver.spans)) is content, "what was said is left out unless it is wanted"


async def test_a_dead_receiver_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portico.server.telemetry.CLOSE_SECONDS", 0.2)
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    async with asyncio.timeout(60):
        async with standing(tmp_path, flags={"telemetry.endpoint": "http://127.0.0.1:1"}) as here:
            await here.say(await here.start(cwd=str(tmp_path)), PROMPT)


# -- Prometheus ------------------------------------------------------------------------------------------------


async def values(here: Standing) -> dict[str, float]:
    text = (await here.http.get("/metrics")).text
    return {k: float(v) for k, v in (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))}


async def test_metrics_follow_what_happens(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(
        "rules:\n  - match: use\n    steps:\n      - {do: usage, input: 120, output: 40}\n"
        "  - match: ask\n    steps:\n      - {do: tool, name: shell, permission: {kind: shell}}\n"
    )
    async with standing(tmp_path, script=script, agents=("scripted",)) as here:
        session = await here.start(cwd=str(tmp_path))
        await here.say(session, "use")
        await here.say(session, "[[crash]]")
        before = await values(here)
        assert before['portico_turns_total{outcome="completed"}'] == 1
        assert before['portico_turns_total{outcome="failed"}'] == 1
        assert before['portico_tokens_total{kind="input"}'] == 120
        assert before['portico_tokens_total{kind="output"}'] == 40
        assert before["portico_approvals_waiting"] == 0
        assert before['portico_commit_seconds_bucket{le="+Inf"}'] == before["portico_commit_seconds_count"] > 3
        found = await here.server.host.get(session)
        await here.http.post(f"/v1/sessions/{session}/messages", json={"text": "ask"})
        await found.wait_until(lambda state: state.status == "waiting")
        assert (await values(here))["portico_approvals_waiting"] == 1
        await here.http.post(f"/v1/sessions/{session}/cancel", json={})
        await found.wait_until(lambda state: state.status != "waiting" and state.active is None)
        assert (await values(here))["portico_approvals_waiting"] == 0


async def test_the_dashboard_asks_for_metrics_that_there_are(tmp_path: Path) -> None:
    dashboard = (Path(__file__).parents[2] / "docs/grafana.json").read_text()
    asked = set(re.findall(r"\b(?:portico|process)_[a-z_]+", " ".join(re.findall(r'"expr": "([^"]*)"', dashboard))))
    async with standing(tmp_path) as here:
        text = (await here.http.get("/metrics")).text
    assert asked
    assert asked <= set(re.findall(r"^# HELP (\S+)", text, re.MULTILINE))
    json.loads(dashboard)


# -- lines that belong together --------------------------------------------------------------------------------


def test_a_line_of_json_names_request_session_and_turn() -> None:
    record = logging.LogRecord("portico.x", logging.INFO, "", 0, "hello", (), None)
    tokens = [REQUEST.set("r1"), SESSION.set("session-1"), TURN.set("t1")]
    line = json.loads(JsonLines().format(record))
    for variable, token in zip((REQUEST, SESSION, TURN), tokens, strict=True):
        variable.reset(token)
    assert (line["request"], line["session"], line["turn"]) == ("r1", "session-1", "t1")
    assert "request" not in json.loads(JsonLines().format(record))


class Collected(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self.lines: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))


async def test_requests_and_failed_turns_are_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An operator found nothing in the log of what people complained about."""
    collected, logger = Collected(), logging.getLogger("portico")
    async with standing(tmp_path, agents=("scripted",)) as here:
        session = await here.start(cwd=str(tmp_path))
        logger.addHandler(collected)
        try:
            with caplog.at_level(logging.DEBUG, "portico"):
                await here.http.get("/v1/sessions/none", params={"key": "private"}, headers={"X-Request-ID": "r-1"})
                await here.say(session, "[[crash]]")
        finally:
            logger.removeHandler(collected)
    lines = collected.lines
    access = next(each for each in lines if each.get("request") == "r-1")
    assert (access["logger"], access["message"]) == ("portico.access", "GET /v1/sessions/none 404")
    failed = next(each for each in lines if each["logger"] == "portico.turns")
    assert (failed["level"], failed["session"], failed["turn"]) == ("warning", session, "t1")
    assert failed["message"] == "a turn failed: agent_failed"


@pytest.mark.parametrize(
    ("given", "kept"), [("abc-1.2_3", True), ("x" * 65, False), ("a b", False), ('"', False), (None, False)]
)
def test_a_clients_own_id_is_kept_if_it_is_one(given: str | None, kept: bool) -> None:
    assert (request_id(given) == given) is kept


async def test_every_answer_names_its_request(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        assert (await here.http.get("/v1", headers={"X-Request-ID": "mine"})).headers["x-request-id"] == "mine"
        first, second = [(await here.stranger.get("/v1")).headers["x-request-id"] for _ in range(2)]
        assert len(first) == 16
        assert first != second
