"""Routes for operators: health and metrics."""

import os
import resource
import time

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico import __version__
from portico.kernel.members import Members
from portico.server.app import App
from portico.server.body import JsonResponse
from portico.server.door import Door
from portico.server.gate import Gate
from portico.server.meter import Meter, Metric
from portico.server.route import Table
from portico.server.routes import Routes


class Health(Struct, omit_defaults=True):
    ok: bool
    host: str = ""
    """The name of the host, if several hosts share one log."""
    place: str = ""
    jobs: str = ""
    """`waiting` while the job engine does not respond. Sessions are not affected."""
    failed: list[str] = []
    """Names of features that failed to process a commit since the start: their state may lag behind the log."""


class OpsDoor(Door):
    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.routes = _routes(app)


def _routes(app: App) -> Table:
    meter, gate, route = Meter(app.host), app.gate, Routes(app)

    def answer(ok: bool) -> Response:
        members = app.host.members
        jobs = "" if app.jobs.down is None else "waiting"
        health = Health(ok, members.name, members.place, jobs, sorted(app.host.commits.failed))
        return JsonResponse(health, 200 if ok else 503)

    @route("/healthz", "open", "Is the host well?", answer=Health)
    async def health(request: Request) -> Response:
        """200 while the host can do its work; 503 when the log cannot be written. No details without a token."""
        down = app.host.log.down
        return answer(down is None)

    @route("/readyz", "open", "Does the host take new work?", answer=Health)
    async def ready(request: Request) -> Response:
        """200 while new work is taken: it has started, does not stop, and its log can be written."""
        ok = app.host.log.down is None and not app.host.stopping
        return answer(ok and not app.host.members.draining)

    @route("/metrics", "read", "Prometheus metrics.", media="text/plain")
    async def metrics(request: Request) -> Response:
        app.view(request).require("metrics")
        return Response(render(measure(app, gate, meter)), media_type="text/plain; version=0.0.4")

    return route.table


def measure(app: App, gate: Gate, meter: Meter) -> list[Metric]:
    host = app.host
    statuses: dict[str, float] = {
        'status="idle"': 0,
        'status="running"': 0,
        'status="waiting"': 0,
        'status="failed"': 0,
    }
    for each in host.summaries():
        statuses[f'status="{each.status}"'] += 1
    return [
        ("portico_info", "gauge", "The version that runs.", {_about(host.members): 1}),
        ("portico_uptime_seconds", "counter", "Since the start.", {"": time.monotonic() - host.started_at}),
        ("portico_sessions", "gauge", "Stored sessions by status.", statuses),
        ("portico_turns_running", "gauge", "Turns that run now.", {"": host.running}),
        ("portico_log_seq", "counter", "Events written since ever.", {"": host.log.seq}),
        ("portico_log_down", "gauge", "1 while the log cannot be written.", {"": int(host.log.down is not None)}),
        (
            "portico_jobs_engine_down",
            "gauge",
            "1 while jobs cannot go on.",
            {"": int(app.jobs.down is not None)},
        ),
        (
            "portico_commit_failures_total",
            "counter",
            "Commits that a feature failed to process.",
            {f'feature="{name}"': count for name, count in sorted(host.commits.failed.items())},
        ),
        ("portico_connections", "gauge", "Open requests and sockets.", {"": gate.connections}),
        (
            "portico_http_responses_total",
            "counter",
            "Answers by status.",
            {f'code="{code}"': count for code, count in sorted(gate.requests.items())},
        ),
        *meter.metrics(),
        *host.members.metrics(),
        ("process_resident_memory_bytes", "gauge", "Memory.", {"": resident()}),
        (
            "process_cpu_seconds_total",
            "counter",
            "CPU time, user and system.",
            {"": sum(resource.getrusage(resource.RUSAGE_SELF)[:2])},
        ),
    ]


def _about(members: Members) -> str:
    where = f',host="{members.name}",place="{members.place}"' if members.several else ""
    return f'version="{__version__}"{where}'


def render(metrics: list[Metric]) -> str:
    lines = []
    for name, kind, words, values in metrics:
        lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{{{label}}} {value:g}" if label else f"{name} {value:.6g}" for label, value in values.items()]
    return "\n".join(lines) + "\n"


def resident() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: only the peak value is available
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
