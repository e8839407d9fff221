"""Taking up a conversation by `session/load`: the agent tells its history again, which we have and must not show twice.

Most agents tell it before they answer; Gemini answers first and goes on telling. Nothing on the wire marks the end, so
we ask the agent something after each piece: it answers in its turn, and one whole question and answer without a piece
in between means that it has told everything. This needs no clock, and costs a round trip.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from portico.errors import AgentDied, AgentError, Conflict
from portico.events import Json

if TYPE_CHECKING:
    from portico.agents.acp.link import AgentLink, UpdateListener

PING = "_portico/ping"
"""An extension method: who does not know it must say so, and that is an answer."""
_PING_SECONDS = 2.0
"""For an agent that leaves unknown requests unanswered, which the protocol forbids."""
_KEPT = ("available_commands_update",)
"""What is news also while old things are told."""

logger = logging.getLogger("portico.agents.acp")


class HistoryReplay:
    """Sits in the place of the conversation until the agent has told everything."""

    def __init__(self, ears: "UpdateListener") -> None:
        self._ears = ears
        self._heard = 0

    async def update(self, update: Json) -> None:
        self._heard += 1
        if update.get("sessionUpdate") in _KEPT:
            await self._ears.update(update)

    async def serve(self, method: str, params: Json) -> Json:
        raise Conflict("Nothing runs in this session.")

    def expects(self, tool: str, arguments: Json) -> bool:
        return False

    async def over(self, link: "AgentLink", session: str) -> None:
        """Returns when a whole round trip brought nothing more."""
        heard, answers = -1, True
        while answers and heard != self._heard:
            heard = self._heard
            answers = await ping(link, session)


async def ping(link: "AgentLink", session: str) -> bool:
    """When it returns, all that the agent said before is here. False: it does not answer such questions."""
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
