"""Run by a test as its own process: a host whose files may not grow any more, and then may again.

The kernel's limit on the size of a file (RLIMIT_FSIZE) is as real as a full disk, needs no root and no mount, and
would hit the test runner's own files too: hence a process of its own. Prints what happened as one JSON object.
"""

import asyncio
import json
import resource
import sys
from pathlib import Path

from portico.kernel.errors import LogUnavailable
from portico.kernel.events import Message
from portico.kernel.log.sqlite import SqliteLog
from portico.testing.fixtures import HostOpener


def fill(path: Path) -> None:
    """The log may grow by some pages more, then the disk is full."""
    size = Path(f"{path}-wal").stat().st_size + 20_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def free() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


async def main(folder: Path) -> dict[str, object]:
    opener = HostOpener(folder)
    host = await opener()
    log = host.log
    session = await host.start(by="test", cwd=str(folder))
    acknowledged = [await session.send(Message("[[say:before]]"), by="test")]
    await session.wait(acknowledged[0])
    running = await session.send(Message("[[say:running]] [[gap:1]] [[deltas:100000]] [[stamp]]"), by="test")
    await session.wait_until(lambda state: bool(state.active and state.active.parts))

    failed = asyncio.Event()
    log.on_failure(lambda error: failed.set())
    fill(opener.path)
    await failed.wait()
    refused = ""
    try:
        await host.start(by="test", cwd=str(folder))
    except LogUnavailable as error:
        refused = error.message

    free()
    await log.available()
    outcome = (await session.wait(running)).outcome
    acknowledged.append(await session.send(Message("[[say:after]]"), by="test"))
    answer = (await session.wait(acknowledged[1])).outcome
    await opener.close()

    again = await SqliteLog.open(opener.path)
    records = await again.read("session/session-1", limit=10_000)
    await again.close()
    return {
        "refused": refused,
        "running": outcome,
        "after": answer,
        "gapless": [r.pos for r in records] == list(range(1, len(records) + 1)),
        "kept": all(any(getattr(r.event, "turn", "") == turn for r in records) for turn in acknowledged),
    }


print(json.dumps(asyncio.run(main(Path(sys.argv[1])))))
