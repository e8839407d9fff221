"""Frames are put together from pieces, for speed. They are the same as those that are encoded as a whole."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from portico.doors.ahp.wire import envelope, origin
from portico.doors.ahp.wire.envelope import ActionTarget, Outgoing
from portico.doors.ahp.wire.origin import ActionOrigin

NAMES = st.sampled_from(["delta", "draftChanged", "turnStarted"])
CLIENTS = st.sampled_from(["a", "b", "a#5", "a.b#6.chat/delta", 'quo"ted', "ünï"]) | st.text(min_size=1, max_size=5)
TYPES = st.sampled_from(["chat/delta", "chat/draftChanged", "session/delta"])
WRITTEN = st.builds(origin.written, CLIENTS, st.integers(-3, 2**53), TYPES)
BY = (
    st.just("")
    | st.sampled_from(["host", "token:me", "client:", "client:a", "client:a#", "client:a#x.chat/delta"])
    | WRITTEN
)
FIELDS = st.dictionaries(
    st.sampled_from(["turnId", "content", "ü"]), st.text() | st.none() | st.integers(0, 9), max_size=3
)
SAID = st.builds(Outgoing, NAMES, FIELDS, BY)


@given(st.sampled_from(["chat", "session", "seed", "terminal"]), st.booleans(), st.lists(SAID, max_size=8))
def test_a_frame_is_what_encoding_it_whole_would_give(kind: str, seed: bool, said: list[Outgoing]) -> None:
    to = ActionTarget(kind, "scripted:/ü", seed)
    acts = to.acts(7, said)
    for act, each in zip(acts, said, strict=True):
        action = to.action(each)
        by = origin.read(each.by)
        echoed = by if by is not None and by.type == action["type"] else None
        back = {"clientId": echoed.client, "clientSeq": echoed.number} if echoed is not None else None
        whole = envelope.enveloped("scripted:/ü", action, act.number, seed, back)
        assert act.frame == envelope.framed(whole)
        assert (act.type, act.client) == (action["type"], echoed.client if echoed is not None else None)
    together: list[Any] = json.loads(envelope.together(acts))
    assert together == [json.loads(act.frame)["params"] for act in acts]


@given(CLIENTS, st.integers(), TYPES)
def test_who_said_it_is_read_as_it_was_written(client: str, number: int, type: str) -> None:
    assert origin.read(origin.written(client, number, type)) == ActionOrigin(client, number, type)
