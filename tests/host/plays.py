"""What the play agent of a test does in its turns."""

import asyncio

from portico.agents.agent import Message, Turn


async def idle(message: Message, turn: Turn) -> None:
    """Says nothing and is done."""


async def hang(message: Message, turn: Turn) -> None:
    turn.text("working")
    await asyncio.get_running_loop().create_future()


async def allowed(message: Message, turn: Turn) -> None:
    """One shell call that asks first, and says what came of it."""
    call = turn.tool("shell", '{"command": "make"}', kind="execute")
    decision = await call.approve("shell", command="make", editable=True)
    if not decision.allowed:
        await call.end(ok=False, outcome="cancelled")
        turn.text(f"no: {decision.by}: {decision.reason}")
        return
    await call.end(output=f"ran {call.input}")
    turn.text(f"yes: {decision.by}")
