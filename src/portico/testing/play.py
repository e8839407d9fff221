"""An agent whose turns are one Python function: the shortest way to drive a host from a test.

async def play(message: Message, turn: Turn) -> None:
    turn.text("hello")

host = await open_host(PlayAgent(play))
"""

from collections.abc import Awaitable, Callable

from portico.kernel.agent import AgentInfo, Capabilities, Model, Opening
from portico.kernel.events import Message
from portico.kernel.turn import Turn

Play = Callable[[Message, Turn], Awaitable[None]]


class PlayAgent:
    """Remembers its openings and what it was steered with, so that a test can look at them."""

    def __init__(self, play: Play, id: str = "play", *, steer: bool = False, obeys: bool = False) -> None:
        self.play = play
        self._id = id
        self.takes_steering = steer
        self.obeys = obeys
        self.openings: list[Opening] = []
        self.steered: list[str] = []
        self.cancels = 0
        self.closed = 0

    @property
    def id(self) -> str:
        return self._id

    async def describe(self) -> AgentInfo:
        models = [Model("small", "Small", 0), Model("large", "Large", 2)]
        return AgentInfo(self._id, "Play", models=models, capabilities=Capabilities(steer=self.takes_steering))

    async def open(self, opening: Opening) -> "PlayConversation":
        self.openings.append(opening)
        return PlayConversation(self)

    async def close(self) -> None:
        pass


class PlayConversation:
    def __init__(self, agent: PlayAgent) -> None:
        self._agent = agent

    async def send(self, message: Message, turn: Turn) -> None:
        await self._agent.play(message, turn)

    async def steer(self, message: Message) -> bool:
        if self._agent.takes_steering:
            self._agent.steered.append(message.text)
        return self._agent.takes_steering

    async def cancel(self) -> bool:
        self._agent.cancels += 1
        return self._agent.obeys

    async def close(self) -> None:
        self._agent.closed += 1
