"""Health and metrics."""

import re
from pathlib import Path

from portico import __version__
from portico.kernel.errors import LogUnavailable
from tests.doors import sharing
from tests.doors.standing import Standing, problem, standing

anyio_backend, shared = sharing.anyio_backend, sharing.shared

_LINE = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"\})? [0-9.e+-]+')


async def test_health_is_for_everybody_and_says_nothing_else(shared: Standing) -> None:
    answer = await shared.stranger.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"ok": True})


async def test_health_is_bad_while_the_log_cannot_be_written(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        log = here.server.host.log
        log._down = LogUnavailable("the disk is full at /secret/path")  # type: ignore[attr-defined]
        answer = await here.stranger.get("/healthz")
        assert (answer.status_code, answer.json()) == (503, {"ok": False})
        assert "portico_log_down 1" in (await here.http.get("/metrics")).text
        log._down = None  # type: ignore[attr-defined]
        assert (await here.stranger.get("/healthz")).status_code == 200


async def test_metrics_are_prometheus_text_and_need_a_token(shared: Standing) -> None:
    problem(await shared.stranger.get("/metrics"), 401, "unauthenticated")
    await shared.say(await shared.start(), "[[say:hi]]")
    answer = await shared.http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    for line in lines:
        assert line.startswith(("# HELP ", "# TYPE ")) or _LINE.fullmatch(line), line
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert values[f'portico_info{{version="{__version__}"}}'] == "1"
    assert float(values['portico_sessions{status="idle"}']) == 1
    assert float(values["portico_log_seq"]) > 5
    assert float(values['portico_http_responses_total{code="401"}']) >= 1
    assert float(values["process_resident_memory_bytes"]) > 10_000_000
    assert float(values["portico_turns_running"]) == 0
