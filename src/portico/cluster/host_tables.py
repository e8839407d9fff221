"""The tables `hosts` and `owners`: the live hosts, and what each one owns. Times are those of the database."""

import secrets
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from portico.cluster.postgres.connect import application_names
from portico.cluster.postgres.log import PostgresLog
from portico.cluster.postgres.text import parameter
from portico.kernel.members import Member

LEASES = "lease/"
SCHEDULER = f"{LEASES}scheduler"
"""The lease of the one host that starts due automations: it also runs the commands about automations."""
HANDED = ("session/", "job/")
"""Channels that one host can hand over to another while both are alive."""
CHUNK = 100
"""Batch size of a takeover: hosts of one place share the sessions."""


class Share(NamedTuple):
    """One of equal parts of the channels of a host: those whose hash has this remainder."""

    of: int = 1
    part: int = 0


EVERYTHING = Share()


class Info(Struct, omit_defaults=True):
    """What a host publishes about itself at each renewal of its lease."""

    link: str = ""
    """Its URL for other hosts."""
    url: str = ""
    version: str = ""
    labels: list[str] = []
    capacity: int = 0
    running: int = 0
    folders: list[str] = []
    """Its workspaces: new sessions in them are for hosts of its place."""


class Peer(Struct):
    id: int
    name: str
    place: str
    state: str
    alive: bool
    seen: int
    sessions: int
    info: Info
    away: int = 0
    """Seconds since it was last seen, by the database's clock."""

    def member(self, me: int) -> Member:
        state = self.state if self.alive else "stopped" if self.state == "stopped" else "away"
        said = self.info
        return Member(
            self.id, self.name, self.place, state, self.sessions, said.running if self.alive else 0, said.capacity,
            said.labels, said.version, said.url, self.seen, self.id == me,
        )  # fmt: skip


class HostTables:
    def __init__(self, log: PostgresLog) -> None:
        self._log = log

    async def _fetch(self, sql: str, *given: Any) -> list[Any]:
        args = [parameter(each) for each in given]
        found: list[Any] = await self._log.run(lambda connection: connection.fetch(sql, *args))
        return found

    async def _value(self, sql: str, *given: Any) -> Any:
        args = [parameter(each) for each in given]
        return await self._log.run(lambda connection: connection.fetchval(sql, *args))

    async def key(self) -> str:
        """Return the key that authenticates hosts to each other; the first host creates it."""
        await self._value("INSERT INTO meta VALUES ('key', $1) ON CONFLICT DO NOTHING", secrets.token_hex(32))
        return str(await self._value("SELECT value FROM meta WHERE key = 'key'"))

    async def peers(self, *, counted: bool = False) -> list[Peer]:
        """Return all hosts. `counted`: also count their sessions, which reads a row of each; only for display."""
        count = "(SELECT count(*) FROM owners o WHERE o.host = h.id AND o.channel LIKE 'session/%')" if counted else "0"
        rows = await self._fetch(
            "SELECT id, name, place, state, expires > clock_timestamp() AS alive, info,"
            f" (extract(epoch FROM seen) * 1000)::bigint AS seen, {count} AS sessions,"
            " extract(epoch FROM clock_timestamp() - seen)::int AS away FROM hosts h ORDER BY id"
        )
        return [Peer(**{**row, "info": msgspec.json.decode(row["info"], type=Info)}) for row in rows]

    async def handed(self) -> int:
        """Return how many channels this host owns of the kinds that can be handed over."""
        kinds = " OR ".join(f"channel LIKE '{kind}%'" for kind in HANDED)
        return int(
            await self._value(f"SELECT count(*) FROM owners WHERE host = $1 AND ({kinds})", self._log.lease.host)
        )

    async def own(self) -> set[str]:
        rows = await self._fetch(
            f"SELECT channel FROM owners WHERE host = $1 AND channel NOT LIKE '{LEASES}%'", self._log.lease.host
        )
        return {channel for (channel,) in rows}

    async def owner(self, channel: str) -> tuple[int, str]:
        """Return the host and place of a channel. This host becomes the owner if there is none (of a copied log)."""
        sql = "SELECT host, place FROM owners WHERE channel = $1"
        mine = "INSERT INTO owners VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
        while not (found := await self._fetch(sql, channel)):
            await self._value(mine, channel, self._log.lease.host, self._log.opening.place)
        return found[0][0], found[0][1]

    async def hand_over(self, channel: str, to: Peer) -> bool:
        sql = "UPDATE owners SET host = $3, place = $4 WHERE channel = $1 AND host = $2 RETURNING 1"
        return await self._value(sql, channel, self._log.lease.host, to.id, to.place) is not None

    async def expire_silent(self, channel: str, seconds: float) -> bool:
        """End the lease of the host that owns a channel, if it is of this place, was last seen so long ago, and has no
        connection to the database: a host that only stalls keeps its connections, and so the whole lease. It continues
        if it renews its lease before another host has fenced it."""
        connected = f"""EXISTS (SELECT 1 FROM pg_stat_activity a WHERE a.datname = current_database()
            AND a.application_name = ANY({application_names("h.name")}))"""
        sql = f"""UPDATE hosts h SET expires = clock_timestamp() FROM owners o
            WHERE o.channel = $1 AND h.id = o.host AND h.id != $2 AND h.place = $3 AND h.expires > clock_timestamp()
            AND h.name ~ '^[ -~]*$' AND NOT {connected}
            AND h.seen < clock_timestamp() - $4 * interval '1 second' RETURNING h.id"""
        me, place = self._log.lease.host, self._log.opening.place
        return await self._value(sql, channel, me, place, seconds) is not None

    async def dead(self) -> list[int]:
        """Return the hosts of this place whose lease has expired and which still own channels."""
        rows = await self._fetch(
            "SELECT id FROM hosts h WHERE place = $1 AND id != $2 AND expires < clock_timestamp()"
            " AND (state NOT IN ('away', 'stopped') OR EXISTS (SELECT 1 FROM owners o WHERE o.host = h.id))",
            self._log.opening.place,
            self._log.lease.host,
        )
        return [ident for (ident,) in rows]

    async def take_some(self, dead: int, share: "Share" = EVERYTHING) -> list[str]:
        """Take over some channels of a dead host; empty if none is left or the host has returned. Only after fencing:
        its lease may expire just after `take_epoch` has found it valid."""
        await self._value("SELECT take_epoch($1)", dead)
        if await self._value("SELECT state FROM hosts WHERE id = $1", dead) not in ("away", "stopped"):
            return []
        # One host takes all jobs with their tasks: a job's owner ends its tasks.
        number = "CASE WHEN channel LIKE 'session/%' THEN hashtext(channel) & 2147483647 ELSE $1 END"
        chosen = f"host = $1 AND ({number}) % {share.of} = {share.part}"
        free = f"SELECT channel FROM owners WHERE {chosen} ORDER BY channel LIMIT {CHUNK} FOR UPDATE SKIP LOCKED"

        async def take(connection: Any) -> list[Any]:
            async with connection.transaction():
                gone = "SELECT 1 FROM hosts WHERE id = $1 AND expires < clock_timestamp() FOR UPDATE"
                if await connection.fetchval(gone, dead) is None:
                    return []
                sql = f"UPDATE owners SET host = $2, place = $3 WHERE channel IN ({free}) RETURNING channel"
                found: list[Any] = await connection.fetch(sql, dead, self._log.lease.host, self._log.opening.place)
                return found

        return [channel for (channel,) in await self._log.run(take) if not channel.startswith(LEASES)]

    async def is_fenced(self, host: int, epoch: int) -> bool:
        """Return whether nothing more can be written in that epoch of the host. This call fences a host whose lease
        has expired."""
        await self._value("SELECT take_epoch($1)", host)
        return bool(await self._value("SELECT epoch FROM hosts WHERE id = $1", host) != epoch)

    async def set_state(self, host: int, state: str) -> bool:
        sql = "UPDATE hosts SET state = $2 WHERE id = $1 AND expires > clock_timestamp() RETURNING 1"
        return await self._value(sql, host, state) is not None

    async def holds(self, name: str) -> bool:
        """Return whether this host holds the named lease. One host holds it, and another when that is dead. Only after
        fencing, as in `take_some`: further writes of the previous holder are refused."""
        mine = (name, self._log.lease.host)
        await self._value("SELECT take_epoch(host) FROM owners WHERE channel = $1 AND host != $2", *mine)
        fenced = "h.state IN ('away', 'stopped') AND h.expires < clock_timestamp()"
        gone = f"NOT EXISTS (SELECT 1 FROM hosts h WHERE h.id = o.host AND NOT ({fenced}))"
        sql = f"""INSERT INTO owners AS o VALUES ($1, $2, $3) ON CONFLICT (channel) DO UPDATE
            SET host = excluded.host, place = excluded.place WHERE o.host = excluded.host OR {gone} RETURNING 1"""
        found = await self._value(sql, *mine, self._log.opening.place)
        return found is not None
