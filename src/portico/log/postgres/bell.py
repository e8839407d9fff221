"""One connection that receives the notifications of other hosts while the log is open. It must not use a transaction
pooler, which gives the connection to others between two transactions."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn

import asyncpg

from portico.log.postgres.connect import connect
from portico.log.postgres.schema import BELL, FILES_BELL

logger = logging.getLogger("portico.log")

_FIRST_SECONDS, _LONGEST_SECONDS = 0.1, 2.0
"""Between two tries to connect."""


async def listen(
    url: str, name: str, ring: Callable[[str], None], files: Callable[[], None], look: Callable[[], Awaitable[None]]
) -> NoReturn:
    """Call `ring` with the notification of each commit of any host, `files` when shared files change, and `look` to
    poll for commits made before the connection listened."""
    wait = _FIRST_SECONDS
    while True:
        gone = asyncio.Event()
        try:
            bell = await connect(url, f"{name} bell")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
            logger.debug("the bell: %s", type(error).__name__)
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_SECONDS)
            continue
        try:
            bell.add_termination_listener(lambda _: gone.set())  # noqa: B023 - its own event
            await bell.add_listener(BELL, lambda *heard: ring(heard[-1]))
            await bell.add_listener(FILES_BELL, lambda *_: files())
            wait = _FIRST_SECONDS
            await look()
            await gone.wait()
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
            await asyncio.sleep(wait)
        finally:
            bell.terminate()
