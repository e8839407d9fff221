"""The fake ACP agent, ready for a host."""

import json
import re
import sys
from pathlib import Path
from typing import Any

from portico.agents.acp import acp
from portico.agents.acp.agent import AcpAgent
from portico.agents.agent import AgentContext
from portico.kernel.session import Session
from portico.kernel.state import CallPart, TextPart, TurnState

FAKE = Path(__file__).with_name("fake_acp.py")
BUSY = re.compile(r"Nothing heard for |.+ is still starting\. The first start can take up to ")
"""Notices that depend on how busy this machine is."""


def fake_agent(home: Path, *, settings: dict[str, Any] | None = None, env: dict[str, str] | None = None) -> AcpAgent:
    """`env` makes it misbehave, see fake_acp.py."""
    table = {
        "command": [sys.executable, "-S", "-E", str(FAKE)],
        "env": {"FAKE_STORE": str(home / "store"), **(env or {})},
    }
    context = AgentContext(home, {"acp": {"fake": {**table, **(settings or {})}}})
    found = next(agent for agent in acp(context) if agent.id == "acp:fake")
    assert isinstance(found, AcpAgent)
    return found


def steps(*wanted: list[Any]) -> str:
    """A prompt for the fake agent."""
    return json.dumps(list(wanted))


def said(turn: TurnState, kind: str = "text") -> str:
    """What a turn has of a kind, without the notices of silence and of a slow start."""
    found = [part.text for part in turn.parts if isinstance(part, TextPart) and part.kind == kind]
    return "".join(text for text in found if not (kind == "notice" and BUSY.match(text)))


def calls(turn: TurnState | None) -> list[CallPart]:
    return [part for part in turn.parts if isinstance(part, CallPart)] if turn is not None else []


async def waiting_approval(session: Session) -> str:
    """The id of the approval that waits, as soon as there is one."""
    state = await session.wait_until(lambda state: _open(state.active) is not None)
    ident = _open(state.active)
    assert ident is not None
    return ident


def _open(turn: TurnState | None) -> str | None:
    found = [call.approval.id for call in calls(turn) if call.approval is not None]
    return found[0] if found else None
