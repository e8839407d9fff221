"""OpenTelemetry by the GenAI conventions: a span for each turn, one below it for each tool call, and metrics of both.

It uses only committed events, so it sees the same data as all clients and blocks no one. Messages and tool contents
are left out unless `telemetry.content` is set. Needs the extra `portico[otel]`, and is imported only if it is enabled.
The attribute names are defined here, because the packaged constants of these conventions are deprecated.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from portico import __version__
from portico.kernel import events as e
from portico.kernel.events import Record
from portico.kernel.host import Host
from portico.server.settings import TelemetrySettings as Settings

logger = logging.getLogger("portico.telemetry")

CLOSE_SECONDS = 3.0
"""Time to send the remaining data at the end: if the receiver is down, the SDK would wait for half a minute."""
_EXPORT_MS = 10_000
_CONTENT_CHARS = 8_000
"""Maximum length of a text attribute: receivers truncate or refuse longer ones."""


class Telemetry:
    def __init__(self, host: Host, settings: Settings) -> None:
        base = settings.endpoint.rstrip("/")
        resource = Resource.create({"service.name": "portico", "service.version": __version__})
        self._content = settings.content
        self._host = host
        self._traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{base}/v1/traces", timeout=5)))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{base}/v1/metrics", timeout=5), _EXPORT_MS)
        self._meters = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        self._tracer = self._traces.get_tracer("portico", __version__)
        meter = self._meters.get_meter("portico", __version__)
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of one report.")
        self._turn_seconds = meter.create_histogram("gen_ai.invoke_agent.duration", "s", "Duration of turns.")
        self._tool_seconds = meter.create_histogram("gen_ai.execute_tool.duration", "s", "Duration of tool calls.")
        self._spans: dict[str, tuple[Span, int, dict[str, Any]]] = {}
        host.commits.on_batch("telemetry", self._see)

    def _see(self, records: Sequence[Record]) -> None:
        for record in records:
            if record.channel.startswith("session/"):
                self._event(record)

    def _event(self, record: Record) -> None:
        session = record.channel.partition("/")[2]
        match record.event:
            case e.TurnStarted(turn=turn, message=message):
                self._begin_turn(session, turn, message, record.time)
            case e.ToolStarted(turn=turn, call=call, tool=tool):
                self._begin_tool(session, turn, call, tool, record.time)
            case e.ToolReady(turn=turn, call=call, input=text) if self._content:
                self._put(f"{session} {turn} {call}", "gen_ai.tool.call.arguments", text)
            case e.ToolEnded(turn=turn, call=call) as ended:
                if self._content:
                    self._put(f"{session} {turn} {call}", "gen_ai.tool.call.result", ended.output)
                problem = ended.error.code if ended.error is not None else "" if ended.ok else "failed"
                self._end(f"{session} {turn} {call}", record.time, problem, self._tool_seconds)
            case e.UsageReported(turn=turn) as usage:
                self._use(f"{session} {turn}", usage)
            case e.TurnEnded(turn=turn, outcome=outcome, error=error):
                for key in [each for each in self._spans if each.startswith(f"{session} {turn} ")]:
                    self._end(key, record.time, "interrupted", self._tool_seconds)
                problem = error.code if error is not None else "" if outcome == "completed" else outcome
                self._end(f"{session} {turn}", record.time, problem, self._turn_seconds)

    def _begin_turn(self, session: str, turn: str, message: e.Message, now: int) -> None:
        found = self._host.find(session)
        summary = found.summary if found is not None else None
        common = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": "portico",
            "gen_ai.agent.name": summary.agent if summary is not None else "",
            "gen_ai.request.model": message.model or (summary.model if summary is not None else ""),
        }
        own = {"gen_ai.conversation.id": session, "portico.turn.id": turn}
        if self._content:
            own["gen_ai.input.messages"] = message.text[:_CONTENT_CHARS]
        name = f"invoke_agent {common['gen_ai.agent.name']}"
        span = self._tracer.start_span(name, attributes={**common, **own}, start_time=now * 1_000_000)
        self._spans[f"{session} {turn}"] = span, now, common

    def _begin_tool(self, session: str, turn: str, call: str, tool: str, now: int) -> None:
        above = self._spans.get(f"{session} {turn}")
        common = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
        span = self._tracer.start_span(
            f"execute_tool {tool}",
            context=set_span_in_context(above[0]) if above is not None else None,
            attributes={**common, "gen_ai.tool.call.id": call, "gen_ai.conversation.id": session},
            start_time=now * 1_000_000,
        )
        self._spans[f"{session} {turn} {call}"] = span, now, common

    def _put(self, key: str, name: str, text: str) -> None:
        if found := self._spans.get(key):
            found[0].set_attribute(name, text[:_CONTENT_CHARS])

    def _use(self, key: str, usage: e.UsageReported) -> None:
        found = self._spans.get(key)
        if found is None:
            return
        span, _, common = found
        span.set_attribute("gen_ai.usage.input_tokens", usage.input)
        span.set_attribute("gen_ai.usage.output_tokens", usage.output)
        if usage.cached:
            span.set_attribute("gen_ai.usage.cache_read.input_tokens", usage.cached)
        if usage.model:
            span.set_attribute("gen_ai.response.model", usage.model)
        for kind, count in (("input", usage.input), ("output", usage.output)):
            self._tokens.record(count, {**common, "gen_ai.token.type": kind})

    def _end(self, key: str, now: int, problem: str, seconds: Any) -> None:
        found = self._spans.pop(key, None)
        if found is None:
            return
        span, began, common = found
        if problem:
            span.set_attribute("error.type", problem)
            span.set_status(Status(StatusCode.ERROR, problem))
        span.end(now * 1_000_000)
        seconds.record((now - began) / 1000, {**common, **({"error.type": problem} if problem else {})})

    async def close(self) -> None:
        """Send the remaining data within a time limit. It runs in a daemon thread: if the receiver is down, it takes
        half a minute, and a thread from the pool of the event loop would delay the exit of the process."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def shut_down() -> None:
            self._traces.shutdown()
            self._meters.shutdown()
            with contextlib.suppress(RuntimeError):  # the loop is closed: the time limit has passed
                loop.call_soon_threadsafe(_complete, done)

        threading.Thread(target=shut_down, name="portico-telemetry", daemon=True).start()
        await asyncio.wait({done}, timeout=CLOSE_SECONDS)
        if not done.done():
            logger.warning("not everything was sent to the receiver of telemetry before the end")


def _complete(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
