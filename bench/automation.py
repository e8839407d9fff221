"""What do ten thousand automations cost while nothing is due, how late do they start, and how many hooks are taken?

CPU is that of the host's own process; a host without automations, and a bare ASGI server, are the baselines.
"""

import asyncio
import hashlib
import hmac
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import uvloop

from bench.http import _BARE, Connection, cpu
from bench.portal import Server, running
from bench.row import Row, ms, p50, p99, verdict

QUESTION = "10,000 automations at rest, starts on time, hooks a second"

AUTOMATIONS = 10_000
IDLE_SECONDS = 6.0
STARTS = 100
DELIVERIES = 4_000
CONNECTIONS = 40


def measure() -> list[Row]:
    return uvloop.run(_measure())


async def _measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        empty, full = folder / "empty", folder / "full"
        full.mkdir()
        (full / "automations.toml").write_text(_many())
        async with running(_serve(empty)) as bare_host, running(_serve(full)) as host:
            await asyncio.sleep(3)  # what every start does is not idling
            before = cpu(bare_host.process), cpu(host.process)
            await asyncio.sleep(IDLE_SECONDS)
            base = (cpu(bare_host.process) - before[0]) / IDLE_SECONDS
            idle = (cpu(host.process) - before[1]) / IDLE_SECONDS
            late = await _lateness(Connection(host.port, _token(full)))
        async with running(["-c", _BARE]) as plain, running(_serve(folder / "hooks")) as host:
            rate, bare = await _hooks(host, plain, _token(folder / "hooks"))
    return [
        Row(
            f"{AUTOMATIONS:,} automations, nothing due",
            f"{idle:.2%} of a core",
            f"without any: {base:.2%}",
            f"{idle / max(base, 1e-9):.1f}x",
            verdict("1 % more", idle - base < 0.01),
        ),
        Row(
            f"from due to claimed, {STARTS} at one moment among them",
            f"p50 {ms(p50(late))}, p99 {ms(p99(late))}",
            "",
            "",
            verdict("100 ms", p99(late) < 0.1),
        ),
        Row(
            f"hook deliveries, {CONNECTIONS} connections, each durable",
            f"{rate:,.0f}/s of one core",
            f"bare ASGI {bare:,.0f}/s",
            f"{bare / rate:.1f}x",
            verdict("1,000/s", rate >= 1_000),
        ),
    ]


def _many() -> str:
    """Each at a minute of its own of some day, none of them now."""
    month = (datetime.now(UTC).month + 5) % 12 + 1
    return "".join(
        f'[a{n}]\nschedule = {{ cron = "{n % 60} {n // 60 % 24} {n % 28 + 1} {month} *" }}\n'
        'prompt = { text = "x", agent = "scripted" }\n'
        for n in range(AUTOMATIONS)
    )


def _serve(home: Path) -> list[str]:
    return ["-m", "portico", "serve", "--port", "0", "--print-ready", "--agent", "scripted", "--home", str(home)]


def _token(home: Path) -> str:
    return (home / "token").read_text().strip()


async def _lateness(ours: Connection) -> list[float]:
    """Seconds between the due time and the claim in the log."""
    due = (datetime.now(UTC) + timedelta(seconds=4)).replace(microsecond=0)
    for number in range(STARTS):
        plan = {"schedule": {"at": due.isoformat()}, "prompt": {"text": "[[say:x]]", "agent": "scripted"}}
        await ours("/v1/automations", "POST", msgspec.json.encode({"name": f"due-{number}", "plan": plan}).decode())
    await asyncio.sleep((due - datetime.now(UTC)).total_seconds() + 4)
    runs = msgspec.json.decode(await ours(f"/v1/runs?limit={STARTS}"))["runs"]
    assert len(runs) == STARTS, f"{len(runs)} of {STARTS} have started"
    return [(run["claimed"] - run["due"]) / 1000 for run in runs]


async def _hooks(host: Server, plain: Server, token: str) -> tuple[float, float]:
    """Deliveries for each second of the server's own CPU."""
    plan = {"hook": {"per_minute": 120_000}, "prompt": {"text": "{{/n}} [[hang]]", "agent": "scripted"}}
    made = await Connection(host.port, token)(
        "/v1/automations", "POST", msgspec.json.encode({"name": "busy", "plan": plan}).decode()
    )
    secret = msgspec.json.decode(made)["secret"]

    async def deliver(lane: int) -> None:
        connection = Connection(host.port)
        for number in range(lane, DELIVERIES, CONNECTIONS):
            body = f'{{"n": {number}}}'
            signed = hmac.new(secret.encode(), body.encode(), hashlib.sha256).hexdigest()
            answer = await connection("/hooks/busy", "POST", body, f"X-Hub-Signature-256: sha256={signed}\r\n")
            assert b'"run"' in answer, answer

    async def ask(lane: int) -> None:
        connection = Connection(plain.port)
        for _ in range(lane, DELIVERIES, CONNECTIONS):
            await connection("/")

    rates = []
    for process, work in ((host.process, deliver), (plain.process, ask)):
        began, started = cpu(process), time.monotonic()
        await asyncio.gather(*(work(lane) for lane in range(CONNECTIONS)))
        rates.append(DELIVERIES / (cpu(process) - began))
        print(f"  {DELIVERIES / (time.monotonic() - started):,.0f}/s of wall time")
    return rates[0], rates[1]
