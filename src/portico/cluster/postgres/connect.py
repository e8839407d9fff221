"""Connections to the database, all with the same limits: a stalled host must not block the others."""

from typing import Any

import asyncpg

from portico.cluster.postgres.schema import SCHEMA

CALL_SECONDS = 30.0
"""Timeout of one call: an unresponsive network looks like a slow commit, so every call has a timeout."""
CONNECT_SECONDS = 5.0
BELL = " bell"
"""Ending of the name of the connection that waits for notifications."""
READERS = 4
"""Connections for reading: replays run concurrently, and one database serves a hundred hosts."""

_BOUNDS = {
    "search_path": SCHEMA,
    "jit": "off",  # every statement here is short
    "lock_timeout": "5s",  # of a commit: a longer wait fails as log_unavailable and is retried
    "statement_timeout": f"{int(CALL_SECONDS)}s",
    "idle_in_transaction_session_timeout": "2s",  # frees the lock of a stalled host
    # Keepalive alone did nothing in 12 s where the last answer was unacknowledged.
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "4000",
}


async def connect(url: str, name: str) -> Any:
    return await asyncpg.connect(
        url, timeout=CONNECT_SECONDS, command_timeout=CALL_SECONDS, server_settings=_named(name)
    )


async def pool(url: str, name: str) -> Any:
    return await asyncpg.create_pool(
        url,
        min_size=0,  # one is there all the time, and for a floor the pool prints a traceback at each try to reach it
        max_size=READERS,
        timeout=CONNECT_SECONDS,
        command_timeout=CALL_SECONDS,
        server_settings=_named(name),
        reset=_keep,
    )


async def _keep(connection: Any) -> None:
    """Do not reset a reader's connection: readers do not change its settings (open transactions are still rolled back),
    and the reset would cost every read a second round trip to the server."""


def application_names(name: str) -> str:
    """Return the SQL of the application names of a host's connections, given the SQL of its name. The server shortens
    them in the same way. It changes characters that are not ASCII, so it finds no connection of such a name."""
    return f"ARRAY[left('portico ' || {name}, 63), left('portico ' || {name} || '{BELL}', 63)]"


def _named(name: str) -> dict[str, str]:
    return {**_BOUNDS, "application_name": f"portico {name}"[:63]}
