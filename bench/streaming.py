"""What does one turn of 10,000 deltas cost, with 1, 50 and 500 followers?

The deltas come one by one from an agent and are durable before they are seen. A delivery is one delta in one
follower's hands (deltas merge on the way; their texts are counted). Baseline: the same deltas through a bare
asyncio queue per follower.
"""

import asyncio
import time

import uvloop

from bench.fresh_host import a_host
from bench.row import Row, ms, p50, p99, verdict
from portico.kernel.events import Message, PartDelta, TurnEnded
from portico.kernel.session import Session

QUESTION = "streaming one turn of 10,000 deltas to 1, 50 and 500 followers; delay of a delta"

DELTAS = 10_000


def measure() -> list[Row]:
    rows = [uvloop.run(_streaming(followers)) for followers in (1, 50, 500)]
    return [*rows, uvloop.run(_delay())]


async def _streaming(followers: int) -> Row:
    bare_seconds = await _bare(followers)
    async with a_host() as (host, folder):
        session = await host.start(by="bench", cwd=str(folder))
        watching = [asyncio.ensure_future(_count(session)) for _ in range(followers)]
        await asyncio.sleep(0)
        cpu, started = time.process_time(), time.perf_counter()
        await session.send(Message(f"[[reasoning:0]] [[deltas:{DELTAS}]]"), by="bench")
        counts = await asyncio.gather(*watching)
        seconds, spent = time.perf_counter() - started, time.process_time() - cpu
    assert set(counts) == {DELTAS}, "a follower missed something"
    deliveries = DELTAS * followers / seconds
    goal = 20_000 if followers == 1 else 100_000
    held = deliveries >= goal and (followers > 1 or spent / DELTAS <= 50e-6)
    bar = "20,000/s, 50 us CPU/delta" if followers == 1 else "100,000/s"
    return Row(
        f"streaming {DELTAS:,} deltas, {followers} follower{'s' * (followers > 1)}",
        f"{deliveries:,.0f} deliveries/s, {spent / DELTAS * 1e6:.1f} us CPU/delta",
        f"bare queues: {DELTAS * followers / bare_seconds:,.0f}/s",
        f"{bare_seconds / seconds:.2f}x",
        verdict(bar, held),
    )


async def _count(session: Session) -> int:
    length = 0
    async for records in session.host.log.follow(session.channel):
        for record in records:
            event = record.event
            if isinstance(event, PartDelta):
                length += len(event.text)
            elif isinstance(event, TurnEnded):
                return length - 4  # `Hello` is one delta of five letters
    raise AssertionError("the stream ended early")


async def _bare(followers: int) -> float:
    queues: list[asyncio.Queue[str]] = [asyncio.Queue() for _ in range(followers)]

    async def take(queue: "asyncio.Queue[str]") -> None:
        for _ in range(DELTAS):
            await queue.get()

    takers = [asyncio.ensure_future(take(queue)) for queue in queues]
    started = time.perf_counter()
    for number in range(DELTAS):
        for queue in queues:
            queue.put_nowait("!")
        if number % 10 == 0:
            await asyncio.sleep(0)
    await asyncio.gather(*takers)
    return time.perf_counter() - started


async def _delay() -> Row:
    """From the agent's hand to the follower's, at 200 deltas a second; the stamp rides in the delta."""
    delays: list[float] = []
    async with a_host() as (host, folder):
        session = await host.start(by="bench", cwd=str(folder))

        async def watch() -> None:
            async for records in host.log.follow(session.channel):
                now = time.time()
                for record in records:
                    event = record.event
                    if isinstance(event, PartDelta):
                        delays.extend(now - float(at) for at in event.text.split(";")[:-1])
                    elif isinstance(event, TurnEnded):
                        return

        task = asyncio.ensure_future(watch())
        turn = (await session.send(Message("[[hang]] [[reasoning:0]] [[deltas:0]]"), by="bench"), session.running)[1]
        assert turn is not None
        for _ in range(600):
            turn.text(f"{time.time()};")
            await asyncio.sleep(0.005)
        await session.cancel(by="bench")
        await task
    loop = asyncio.get_running_loop()
    bare = []
    for _ in range(600):
        future = loop.create_future()
        at = time.time()
        loop.call_soon(future.set_result, None)
        await future
        bare.append(time.time() - at)
    return Row(
        "delta from agent to follower, durable, 200/s",
        f"p50 {ms(p50(delays))}, p99 {ms(p99(delays))}",
        f"bare loop hop {ms(p50(bare))}",
        f"{p50(delays) / p50(bare):.0f}x",
        verdict("p50 5 ms, p99 50 ms", p50(delays) <= 0.005 and p99(delays) <= 0.05),
    )
