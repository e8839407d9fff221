"""The wire of an ACP process: pieces of one text that come together are one, however they are written and cut."""

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from portico.agents.acp.frames import Frames
from portico.kernel.events import Json


class Cut:
    """A process whose output comes in these pieces."""

    name = "cut"

    def __init__(self, data: bytes, cuts: list[int]) -> None:
        places = sorted({0, len(data), *(each % (len(data) + 1) for each in cuts)})
        self._pieces = [data[a:b] for a, b in itertools.pairwise(places)]
        self.reader = self

    async def let_wait(self, seconds: float) -> None:
        pass

    async def read(self, limit: int) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


def update(text: str, **more: Any) -> Json:
    content = {"type": "text", "text": text}
    told = {"sessionUpdate": "agent_message_chunk", "content": content, **more}
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": told}}


async def heard(lines: list[str], cuts: list[int]) -> tuple[list[Json], list[Json]]:
    """The updates, and the other messages."""
    updates: list[Json] = []

    async def hear(params: Json) -> None:
        updates.append(params["update"])

    process: Any = Cut("".join(f"{line}\n" for line in lines).encode(), cuts)
    frames, others = Frames(process, hear), []
    while (message := await frames.receive()) is not None:
        others.append(message)
    return updates, others


def said(updates: list[Json]) -> list[tuple[Any, str]]:
    """By message; neighbours of one message are one text."""
    found: list[tuple[Any, str]] = []
    for each in updates:
        key = each.get("messageId")
        if found and found[-1][0] == key:
            found[-1] = key, found[-1][1] + each["content"]["text"]
        else:
            found.append((key, each["content"]["text"]))
    return found


texts = st.one_of(
    st.text(max_size=8), st.sampled_from(['"', "\\", '"text":"x"', "\n", "é", "\u2028", '","text":"', "}}"])
)
pieces = st.lists(st.tuples(st.sampled_from([None, "a", "b"]), texts), max_size=30)


@given(pieces, st.lists(st.integers(0, 10_000), max_size=8), st.booleans(), st.booleans())
async def test_every_text_arrives_as_it_was_written(
    told: list[tuple[str | None, str]], cuts: list[int], ascii_only: bool, spaces: bool
) -> None:
    separators = None if spaces else (",", ":")
    expected = [update(text, **({"messageId": key} if key else {})) for key, text in told]
    lines = [json.dumps(each, ensure_ascii=ascii_only, separators=separators) for each in expected]
    updates, others = await heard(lines, cuts)
    assert others == []
    assert said(updates) == said([each["params"]["update"] for each in expected])


async def test_what_stands_beside_a_text_is_heard_in_its_place() -> None:
    request = {"jsonrpc": "2.0", "id": 7, "method": "terminal/create", "params": {"sessionId": "s"}}
    marked = update("three ", _meta={"text": "three "})
    messages = [update("one "), update("two "), request, marked, update("four "), update("five ")]
    updates, others = await heard([json.dumps(each) for each in messages], [])
    assert [each["content"]["text"] for each in updates] == ["one two ", "three four five "]
    assert others == [request]


async def test_a_line_that_only_looks_alike_is_read_as_it_is() -> None:
    first, second = (json.dumps(update(text)) for text in ("one ", "two "))
    odd = second.replace('"two "', '"two ", "text": "three "')
    broken = second.replace('"two "', '"two')
    updates, _ = await heard([first, second, odd, broken, first], [])
    assert "".join(each["content"]["text"] for each in updates) == "one two three one "
