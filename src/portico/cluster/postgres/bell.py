"""One connection that notifies the other hosts of commits and receives their notifications, while the log is open. It
must not use a transaction pooler, which gives the connection to others between two transactions.

A notification is sent after the commit, in a separate transaction that waits for no disk: PostgreSQL holds a lock of
the whole server from a NOTIFY until its transaction is committed. If one is lost, the other hosts poll.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import asyncpg

from portico.cluster.postgres.connect import BELL as NAME
from portico.cluster.postgres.connect import connect
from portico.cluster.postgres.schema import BELL, FILES_BELL

logger = logging.getLogger("portico.log")

_FIRST_SECONDS, _LONGEST_SECONDS = 0.1, 2.0
"""Between two tries to connect."""
RING_SECONDS = 0.002
"""Minimum time between two notifications of one host: one covers all commits before it, and each wakes every host."""


class Bell:
    def __init__(
        self,
        url: str,
        name: str,
        ring: Callable[[str], None],
        files: Callable[[], None],
        look: Callable[[], Awaitable[None]],
    ) -> None:
        """`ring` is called with each notification of a commit, `files` when shared files change, and `look` polls for
        commits made before the connection listened."""
        self._url, self._name = url, name
        self._on_ring, self._on_files, self._look = ring, files, look
        self._loop = asyncio.get_running_loop()
        self._connection: Any = None
        self._payload, self._last = "", 0
        """The notification that is due, and the number of its last event."""
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._rung_at = 0.0

    async def listen(self) -> NoReturn:
        wait = _FIRST_SECONDS
        while True:
            gone = asyncio.Event()
            try:
                bell = await connect(self._url, self._name + NAME)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
                logger.debug("the bell: %s", type(error).__name__)
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LONGEST_SECONDS)
                continue
            try:
                bell.add_termination_listener(lambda _: gone.set())  # noqa: B023 - its own event
                await bell.execute("SET synchronous_commit = off")
                await bell.add_listener(BELL, lambda *heard: self._heard(heard[-1]))
                await bell.add_listener(FILES_BELL, lambda *_: self._on_files())
                self._connection = bell
                self._schedule()
                wait = _FIRST_SECONDS
                await self._look()
                await gone.wait()
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
                await asyncio.sleep(wait)
            finally:
                self._connection = None
                bell.terminate()
                await self._end_sending()

    def _heard(self, payload: str) -> None:
        if int(payload.rpartition(":")[2]) >= self._last:
            self._payload = ""  # it covers our commit too
        self._on_ring(payload)

    def ring(self, host: int, first: int, last: int) -> None:
        """Notify the other hosts of a commit soon."""
        self._payload, self._last = f"{host}:{first}:{last}", last
        self._schedule()

    def _schedule(self) -> None:
        if self._payload and self._connection is not None and self._timer is None and self._sending is None:
            wait = max(0.0, self._rung_at + RING_SECONDS - self._loop.time())
            self._timer = self._loop.call_later(wait, self._due)

    def _due(self) -> None:
        self._timer = None
        if self._payload and self._connection is not None:
            self._sending = self._loop.create_task(self._send(self._connection, self._payload), name="log ring")
            self._payload = ""

    async def _send(self, connection: Any, payload: str) -> None:
        self._rung_at = self._loop.time()
        try:
            await connection.fetchval("SELECT pg_notify($1, $2)", BELL, payload)
        except Exception as error:  # noqa: BLE001 - asyncpg's and the socket's have no common base; the others poll
            logger.debug("the bell was not rung: %s", type(error).__name__)
        finally:
            self._sending = None
        self._schedule()

    async def _end_sending(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait({self._sending})
