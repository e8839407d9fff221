"""Resume a conversation by `session/load`: the agent replays its history, which we have and must not show twice.

Most agents replay it before they answer; Gemini answers first and then continues the replay. Nothing on the wire marks
the end, so we send a ping after each update. The agent answers in order, so a full round trip without an update means
that the replay is complete. This needs no clock and costs one round trip.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from portico.kernel.errors import AgentDied, AgentError, Conflict
from portico.kernel.events import Json

if TYPE_CHECKING:
    from portico.agents.acp.link import AgentLink

PING = "_portico/ping"
"""An extension method: an agent that does not know it must return an error, which is also an answer."""
_PING_SECONDS = 2.0
"""For an agent that leaves unknown requests unanswered, which the protocol forbids."""
_KEPT = ("available_commands_update",)
"""Updates that are current even during a replay."""

logger = logging.getLogger("portico.agents.acp")


class Updated(Protocol):
    async def update(self, update: Json) -> None: ...


class HistoryReplay:
    """Takes the place of the conversation until the replay is complete."""

    def __init__(self, receiver: "Updated", *, everything: bool = False) -> None:
        """`everything`: the receiver wants the history, not only what is current."""
        self._receiver = receiver
        self._everything = everything
        self._heard = 0

    async def update(self, update: Json) -> None:
        self._heard += 1
        if self._everything or update.get("sessionUpdate") in _KEPT:
            await self._receiver.update(update)

    async def serve(self, method: str, params: Json) -> Json:
        raise Conflict("Nothing runs in this session.")

    def expects(self, tool: str, arguments: Json) -> bool:
        return False

    async def over(self, link: "AgentLink", session: str) -> None:
        """Wait until a full round trip brings no further update."""
        heard, answers = -1, True
        while answers and heard != self._heard:
            heard = self._heard
            answers = await ping(link, session)


async def ping(link: "AgentLink", session: str) -> bool:
    """Wait until all earlier messages of the agent have arrived. False: it does not answer unknown requests."""
    try:
        async with asyncio.timeout(_PING_SECONDS):
            await link.request(PING, {"sessionId": session})
    except TimeoutError:
        logger.warning("%s does not answer unknown requests", link.process.name)
        return False
    except AgentDied:
        raise
    except AgentError as error:
        logger.debug("%s was asked whether it has more to tell: %s", link.process.name, error.message)
    return True
