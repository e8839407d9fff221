"""Random turns: what an agent may report, as data, and an agent that reports it through the host's own surface."""

import asyncio
from typing import Any

from hypothesis import strategies as st

from portico.agents.agent import AgentError, Call, ErrorInfo, Message, Turn

texts = st.text(st.characters(codec="utf-8"), max_size=6)
actions = st.one_of(
    st.tuples(st.sampled_from(["text", "reasoning", "notice", "title"]), texts),
    st.tuples(st.just("usage"), st.integers(0, 9)),
    st.tuples(st.just("tool"), st.sampled_from(["fed", "given"])),
    st.tuples(st.sampled_from(["feed", "ready", "output", "content"]), texts),
    st.tuples(st.just("end"), st.booleans()),
    st.tuples(st.sampled_from(["pause", "fail", "close"]), st.none()),
)
turns = st.lists(actions, max_size=25)


async def perform(turn: Turn, story: list[tuple[str, Any]]) -> None:
    """Plays the story into the turn."""
    call: Call | None = None
    for kind, value in story:
        if kind in ("text", "reasoning", "notice", "title"):
            getattr(turn, kind)(value)
        elif kind == "usage":
            turn.usage(input=value, output=value, total=value > 7)
        elif kind == "tool":
            call = turn.tool("shell", '{"x": 1}' if value == "given" else None)
        elif kind == "pause":
            await turn.session.host.log.flush()
        elif kind == "fail":
            raise AgentError("as the story says")
        elif kind == "close":
            turn.close_part()
        elif call is not None:
            await _act(call, kind, value)
    await asyncio.sleep(0)


async def _act(call: Call, kind: str, value: Any) -> None:
    if kind == "feed":
        call.feed(value)
    elif kind == "ready":
        call.ready()
    elif kind == "output":
        call.output(value)
    elif kind == "content":
        call.content([{"type": "text", "text": value}])
    else:
        await call.end(ok=value, error=None if value else ErrorInfo("tool_failed", "no"))


class Stories:
    """The play of an agent that tells one story after the other."""

    def __init__(self, stories: list[list[tuple[str, Any]]]) -> None:
        self._stories = iter(stories)

    async def __call__(self, message: Message, turn: Turn) -> None:
        await perform(turn, next(self._stories, []))
