"""`state(n) + events(n..m) = state(m)`, for every n, also through a snapshot and after a compaction."""

from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from portico.kernel import events as e
from portico.kernel.closing import closing
from portico.kernel.events import Event, Message, Record, decode, encode
from portico.kernel.fold import fold
from portico.kernel.state import SessionState, summarise
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.property.scene import pure, quick, run
from tests.property.stories import Stories, turns

ids = st.sampled_from(["t1", "t2", "p1", "c1", "s.a1", "s.q1", "m1", "m2", "other"])
jsons = st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=2)


_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: ids,
    bool: st.booleans(),
    int: st.integers(0, 99),
    float: st.floats(0, 9),
    type(None): st.none(),
    Any: jsons,
}


def _values(kind: Any) -> st.SearchStrategy[Any]:
    """Small pools, so that events meet each other: an arbitrary story is nearly always nonsense, and must not hurt."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _values(args[0]).filter(bool)  # the bounds in events are all "more than zero"
    if origin is Literal:
        return st.sampled_from(args)
    if origin is dict:
        return jsons if args[1] is Any else st.dictionaries(ids, _values(args[1]), max_size=2)
    if origin is list:
        return st.lists(_values(args[0]), max_size=2)
    if origin in (Union, UnionType):
        return st.one_of([_values(each) for each in args])
    return _structs(kind)


def _structs(kind: Any) -> st.SearchStrategy[Any]:
    values = {field.name: _values(field.type) for field in msgspec.structs.fields(kind)}
    if kind is e.HistoryCopied:
        values["turns"] = st.just([])  # states of turns, not any JSON
    return st.builds(kind, **values)


arbitrary = st.lists(st.one_of([_structs(kind) for kind in get_args(e.AnyEvent)]), max_size=30)


def records(events: list[Event]) -> list[Record]:
    return [Record(i, "session/s", i, i * 1000, encode(event), event) for i, event in enumerate(events, 1)]


def folded(records: list[Record], state: SessionState | None = None) -> SessionState:
    state = state or SessionState("s")
    for record in records:
        fold(state, record)
    return state


@pure
@given(arbitrary, st.integers(0, 30))
def test_any_events_fold_in_two_halves_as_in_one(events: list[Event], cut: int) -> None:
    whole = records(events)
    snapshot = msgspec.json.encode(folded(whole[:cut]))
    resumed = folded(whole[cut:], msgspec.json.decode(snapshot, type=SessionState))
    assert resumed == folded(whole)
    summarise(resumed)


@pure
@given(arbitrary)
def test_any_event_reads_back_as_it_was_written(events: list[Event]) -> None:
    for event in events:
        assert decode(encode(event)) == event


@pure
@given(arbitrary)
def test_closing_leaves_nothing_open_and_is_done_once(events: list[Event]) -> None:
    state = folded(records(events))
    active = state.active
    if active is None:
        assert closing(state, "interrupted", "host") == []
        return
    ends = [*closing(state, "interrupted", "host"), e.TurnEnded(turn=active.id, outcome="interrupted", by="host")]
    base = len(events)
    for i, event in enumerate(ends, 1):
        fold(state, Record(base + i, "session/s", base + i, 0, encode(event), event))
    assert state.active is None
    assert all(part.done for part in active.parts)
    assert closing(state, "interrupted", "host") == []


@quick
@given(st.lists(turns, min_size=1, max_size=3), st.integers(0, 60))
def test_compaction_keeps_every_reader_convergent(stories: list[Any], stop: int) -> None:
    """A reader that stopped anywhere, one that begins anew and the host agree once the deltas are gone."""

    async def story(folder: Path) -> None:
        opener = HostOpener(folder)
        host = await opener(PlayAgent(Stories(stories)))
        session = await host.start(by="test", cwd="/")
        for _ in stories:
            await session.wait(await session.send(Message("go"), by="test"))
        await host.log.flush()
        whole = await host.log.read(session.channel, limit=10_000)
        early = folded(whole[:stop], SessionState(session.id))
        host.retention_hours = -1.0
        await host.sweep()

        left = await host.log.read(session.channel, limit=10_000)
        assert not any(isinstance(record.event, e.Delta) for record in left)
        assert {r.pos for r in whole} - {r.pos for r in left} == {r.pos for r in whole if isinstance(r.event, e.Delta)}
        later = await host.log.read(session.channel, after=early.pos, limit=10_000)
        assert folded(later, early) == session.state
        assert folded(left, SessionState(session.id)) == session.state

        host = await opener(PlayAgent(Stories([])))
        assert (await host.get(session.id)).state == session.state
        await opener.close()

    run(story)


@quick
@given(st.lists(turns, min_size=1, max_size=3), st.data())
def test_every_beginning_has_one_end(stories: list[Any], data: st.DataObject) -> None:
    cancel = data.draw(st.booleans())

    async def story(folder: Path) -> None:
        opener = HostOpener(folder)
        host = await opener(PlayAgent(Stories(stories)))
        session = await host.start(by="test", cwd="/")
        for _ in stories:
            turn = await session.send(Message("go"), by="test")
            if cancel and session.running is not None:
                await session.cancel(by="ada")
            await session.wait(turn)
        events = [r.event for r in await host.log.read(session.channel, limit=10_000)]
        begun = [event.turn for event in events if isinstance(event, e.TurnStarted)]
        assert begun == [event.turn for event in events if isinstance(event, e.TurnEnded)]
        for start, end, key in (
            (e.PartStarted, e.PartEnded, "part"),
            (e.ToolStarted, e.ToolEnded, "call"),
        ):
            started = [getattr(event, key) for event in events if isinstance(event, start)]
            ended = [getattr(event, key) for event in events if isinstance(event, end)]
            assert sorted(started) == sorted(ended)
            assert len(set(started)) == len(started)
        await opener.close()

    run(story)
