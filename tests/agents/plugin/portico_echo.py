"""The worked example of docs/guide/agents.md: an agent that says what you said, and asks before it shouts."""

from collections.abc import Iterable

from portico.agents.agent import (
    Agent,
    AgentContext,
    AgentInfo,
    Capabilities,
    Message,
    Model,
    Opening,
    Turn,
)


def echo(context: AgentContext) -> Iterable[Agent]:
    """The entry point. `[agents.echo]` of the settings is ours to read."""
    return [EchoAgent(str(context.settings.get("echo", {}).get("greeting", "You said")))]


class EchoAgent:
    id = "echo"

    def __init__(self, greeting: str) -> None:
        self.greeting = greeting

    async def describe(self) -> AgentInfo:
        models = [Model("plain", "Plain", 0), Model("loud", "Loud", 0)]
        return AgentInfo(self.id, "Echo", "Says what you said.", models, Capabilities(tools=False, resume=True))

    async def open(self, opening: Opening) -> "EchoConversation":
        opening.known_as(f"echo-{opening.session}")
        return EchoConversation(self, opening)

    async def close(self) -> None:
        pass


class EchoConversation:
    def __init__(self, agent: EchoAgent, opening: Opening) -> None:
        self._agent = agent
        self._model = opening.model

    async def send(self, message: Message, turn: Turn) -> None:
        text = message.text
        if self._model == "loud":
            call = turn.tool("shout", '{"volume": 11}', title="Shout", kind="other")
            decision = await call.approve("other", title="May I shout?")
            await call.end(ok=decision.allowed, outcome="completed" if decision.allowed else "cancelled")
            text = text.upper() if decision.allowed else text
        for word in f"{self._agent.greeting}: {text}".split(" "):
            turn.text(word + " ")

    async def steer(self, message: Message) -> bool:
        return False

    async def cancel(self) -> bool:
        return False

    async def close(self) -> None:
        pass
