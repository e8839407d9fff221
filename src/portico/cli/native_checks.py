"""Tests whether a session of an agent is listed and loaded by the agent's own program, and continues there."""

import asyncio
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from portico.agents.native import KeepsSessions, NativeHistory, NativeSession
from portico.features.native.commands import ContinueInTerminal
from portico.kernel.commands import Caller
from portico.kernel.errors import PorticoError
from portico.kernel.session import Session
from portico.kernel.state import SessionState

SECONDS = 60.0
"""For one message in the agent's own program: it starts and asks its model once."""
NATIVE = ("list", "load", "return")

Found = dict[str, tuple[bool | None, str]]
"""Per check: whether it works (None: the agent has no such thing), and the detail."""


@dataclass
class NativeCheck:
    session: Session
    agent: KeepsSessions
    prompt: Callable[[str], str]
    """The message that makes the model answer with a word."""

    async def run(self) -> Found:
        state = self.session.state
        listed = await self._listed(state)
        await self.session.runner.release()  # some programs load a session only once
        await self.agent.native_release()
        history = await self._history(listed or NativeSession(str(state.vendor), state.cwd))
        loaded = isinstance(history, NativeHistory) and bool(history.turns)
        found: Found = {
            "list": (listed is not None, "" if listed is not None else "it does not list the session"),
            "load": (loaded, "" if isinstance(history, NativeHistory) else history),
        }
        problem = await self._return(state) if loaded else "its history cannot be loaded"
        return {**found, "return": (not problem if problem is not None else None, problem or "")}

    async def _listed(self, state: SessionState) -> NativeSession | None:
        cursor: str | None = None
        while True:
            page = await self.agent.native_sessions(state.cwd, cursor, [state.cwd])
            if found := next((each for each in page.sessions if each.id == state.vendor), None):
                return found
            if page.next is None:
                return None
            cursor = page.next

    async def _history(self, session: NativeSession) -> NativeHistory | str:
        try:
            return await self.agent.native_history(session)
        except PorticoError as error:
            return error.message

    async def _return(self, state: SessionState) -> str | None:
        """Send one message in the agent's own program, and find it in the history. None: the program is not here."""
        word = f"word{secrets.token_hex(3)}"
        own = self.agent.native_message(str(state.vendor), self.prompt(word))
        if own is None:
            return "it has no command that continues a session"
        if shutil.which(own.command[0], path=own.env.get("PATH")) is None:
            return None
        owner = Caller("matrix", "matrix", frozenset({"read", "drive"}))
        await self.session.host.do(ContinueInTerminal(session=self.session.id), owner)
        if problem := await _run(own.command, state.cwd, own.env):
            return problem
        history = await self._history(NativeSession(str(state.vendor), state.cwd))
        if isinstance(history, str):
            return history
        return "" if any(word in turn.message.text for turn in history.turns) else "its message is not in the history"


async def _run(command: list[str], cwd: str, env: dict[str, str]) -> str:
    """Return what went wrong."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env={**env, "PWD": cwd},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"{command[0]} did not end within {SECONDS:g} seconds"
    words = output.decode("utf-8", "replace").strip()[-300:]
    return "" if process.returncode == 0 else f"{command[0]} ended with {process.returncode}: {words}"
