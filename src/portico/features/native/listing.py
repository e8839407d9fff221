"""Lists the sessions of agents' own programs: all agents concurrently, bounded in time, cached for a minute."""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from portico.agents.native import KeepsSessions, NativePage, NativeSession
from portico.features.native.commands import FoundPage, FoundSession
from portico.kernel.cache import Cache
from portico.kernel.errors import PorticoError

if TYPE_CHECKING:
    from portico.kernel.host import Host

SECONDS = 3.0
"""How long a list waits for one agent. A slower one continues to start, and the next list has its sessions."""
CACHE_SECONDS = 60.0
OPEN_SECONDS = 10
"""A session that changed within this time is probably open in its own program: agents write several times a minute."""
_PAGES = 1_000
"""Cached pages of all agents and folders."""

Key = tuple[str, str | None, str | None]


class NativeListing:
    def __init__(self, host: "Host") -> None:
        self._host = host
        self._pages = Cache[Key, tuple[float, NativePage]](_PAGES)
        self._asking: dict[Key, asyncio.Task[NativePage]] = {}

    async def all(self, cwd: str | None, *, start: bool) -> list[FoundPage]:
        """Return the first page of every agent that keeps sessions. Without `start`: only what is cached."""
        agents = [name for name, agent in self._host.agents.items() if isinstance(agent, KeepsSessions)]
        wanted = agents if start else [name for name in agents if self._cached((name, cwd, None)) is not None]
        return list(await asyncio.gather(*(self.page(name, cwd, None) for name in wanted)))

    async def page(self, agent: str, cwd: str | None, cursor: str | None) -> FoundPage:
        name = (await self._host.described(agent)).name
        try:
            page = await self._page((agent, cwd, cursor))
        except TimeoutError:
            return FoundPage(agent, problem=f"{name} is still starting; list again in a moment.")
        except PorticoError as error:
            return FoundPage(agent, problem=error.message)
        own = await self.owned(agent, page.sessions)
        found = [self._found(agent, each) for each in page.sessions if each.id not in own]
        return FoundPage(agent, found, page.next)

    async def find(self, agent: str, ident: str, cwd: str | None) -> NativeSession | None:
        """Search the pages of the agent, without the cache: adoption needs the current state."""
        cursor: str | None = None
        while True:
            page = await self._ask((agent, cwd, cursor))
            for each in page.sessions:
                if each.id == ident:
                    return each
            if page.next is None or page.next == cursor:
                return None
            cursor = page.next

    def forget(self, agent: str) -> None:
        """Drop the cached pages of an agent."""
        for key in [key for key in self._pages if key[0] == agent]:
            del self._pages[key]

    def is_open(self, session: NativeSession) -> bool:
        return session.updated > (self._host.clock.time() - OPEN_SECONDS) * 1000

    async def owned(self, agent: str, among: Iterable[NativeSession]) -> dict[str, str]:
        """Return the sessions of this host among those of a program: its id by the program's id."""
        wanted = {each.id: each.cwd for each in among}
        found: dict[str, str] = {}
        for summary in self._host.summaries():
            if summary.agent != agent:
                continue
            vendor = summary.vendor
            if vendor is None and summary.turns and summary.cwd in wanted.values():
                session = await self._host.get(summary.id)  # stored by a version whose summaries lack the id
                session.refresh_summary()
                vendor = session.summary.vendor
            if vendor in wanted:
                found[str(vendor)] = summary.id
        return found

    # -- pages of one agent ------------------------------------------------------------------------------------

    def _cached(self, key: Key) -> NativePage | None:
        at, page = self._pages.get(key, (0.0, None))
        return page if page is not None and self._host.clock.awake() - at < CACHE_SECONDS else None

    async def _page(self, key: Key) -> NativePage:
        if (page := self._cached(key)) is not None:
            return page
        asking = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = self._host.own(self._ask(key), f"agent sessions of {key[0]}")
            asking.add_done_callback(lambda task: self._asking.pop(key, None))
        await asyncio.wait({asking}, timeout=SECONDS)
        if not asking.done():
            raise TimeoutError
        return asking.result()

    async def _ask(self, key: Key) -> NativePage:
        agent = self._host.agent(key[0])
        if not isinstance(agent, KeepsSessions):
            return NativePage([])
        page = await agent.native_sessions(key[1], key[2], self._folders())
        self._pages[key] = (self._host.clock.awake(), page)
        return page

    def _folders(self) -> list[str]:
        """The folders in which this host works, most recently used first."""
        used = [summary.cwd for summary in self._host.list()]
        return list(dict.fromkeys([*map(str, self._host.workspaces), *used]))

    def _found(self, agent: str, of: NativeSession) -> FoundSession:
        return FoundSession(agent, of.id, of.cwd, of.title, of.updated, self.is_open(of))
