"""What do ten thousand automations cost while nothing is due, how late do they start, and how many hooks are taken?

CPU is that of the host's own process; a host without automations, and a bare ASGI server, are the baselines.
"""

import asyncio
import hashlib
import hmac
import secrets
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
ALONE = 5
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
            await asyncio.gather(_settled(bare_host), _settled(host))
            before = cpu(bare_host.process), cpu(host.process)
            await asyncio.sleep(IDLE_SECONDS)
            base = (cpu(bare_host.process) - before[0]) / IDLE_SECONDS
            idle = (cpu(host.process) - before[1]) / IDLE_SECONDS
            late = await _lateness(host, _token(full))
            one = [each for _ in range(ALONE) for each in await _lateness(host, _token(full), 1)]
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
        *(_late_row(what, found) for what, found in (("one", one), (f"{STARTS} at one moment", late))),
        Row(
            f"hook deliveries, {CONNECTIONS} connections, each durable",
            f"{rate:,.0f}/s of one core",
            f"bare ASGI {bare:,.0f}/s",
            f"{bare / rate:.1f}x",
            verdict("1,000/s", rate >= 1_000),
        ),
    ]


async def _settled(host: Server) -> None:
    """What every start does is not idling, however long a busy machine takes for it."""
    while True:
        before = cpu(host.process)
        await asyncio.sleep(2)
        if cpu(host.process) - before < 0.04:
            return


def _late_row(what: str, found: list[tuple[float, float]]) -> Row:
    claimed, started = ([each[index] for each in found] for index in (0, 1))
    return Row(
        f"from due to claimed and to started, {what} among them",
        f"p50 {ms(p50(claimed))} and {ms(p50(started))}, worst {ms(max(claimed))} and {ms(max(started))}",
        "",
        "",
        verdict("100 ms to the claim", p99(claimed) < 0.1),
    )


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


async def _lateness(host: Server, token: str, count: int = STARTS) -> list[tuple[float, float]]:
    """Seconds from the due time to the claim in the log, and to what it starts."""
    due = (datetime.now(UTC) + timedelta(seconds=3 + count / 5)).replace(
        microsecond=0
    )  # a busy machine makes 5 a second
    ours = Connection(host.port, token)
    names = [f"due-{secrets.token_hex(6)}" for _ in range(count)]
    for name in names:
        plan = {"schedule": {"at": due.isoformat()}, "prompt": {"text": "[[say:x]]", "agent": "scripted"}}
        await ours("/v1/automations", "POST", msgspec.json.encode({"name": name, "plan": plan}).decode())
    await asyncio.sleep((due - datetime.now(UTC)).total_seconds())
    ours = Connection(host.port, token)  # an idle one is closed
    while True:
        runs = [run for run in msgspec.json.decode(await ours("/v1/runs?limit=1000"))["runs"] if run["name"] in names]
        if len(runs) == count and all("started" in run for run in runs):
            return [((run["claimed"] - run["due"]) / 1000, (run["started"] - run["due"]) / 1000) for run in runs]
        await asyncio.sleep(0.2)


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
