"""A turn: parts, usage, one end, whatever happens to its agent."""

import asyncio
from pathlib import Path

import pytest

from portico.agents.agent import AgentDied, AgentError, Message, Turn
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel import turn as turn_module
from portico.kernel.agent import Conversation, Opening
from portico.kernel.errors import Conflict, TurnInProgress
from portico.kernel.events import ErrorInfo, Record, encode
from portico.kernel.fold import fold
from portico.kernel.session import Session
from portico.kernel.state import QuestionPart, SessionState, Summary, TextPart, TurnState, Usage, summarise
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.play import Play, PlayAgent
from tests.host.plays import hang, idle


async def opened(open_host: HostOpener, play: Play) -> Session:
    return await (await open_host(PlayAgent(play))).start(by="test", cwd="/")


async def played(open_host: HostOpener, play: Play) -> tuple[Session, TurnState]:
    session = await opened(open_host, play)
    return session, await session.wait(await session.send(Message("go"), by="ada"))


def parts(turn: TurnState) -> list[tuple[str, str]]:
    return [(part.kind, part.text) for part in turn.parts if isinstance(part, TextPart)]


def test_calls_and_thoughts_know_how_long_they_took() -> None:
    state = SessionState("s")
    events = [
        e.TurnStarted(turn="t", message=Message("go"), by="ada"),
        e.PartStarted(turn="t", part="r", kind="reasoning"),
        e.PartEnded(turn="t", part="r", text="hm"),
        e.PartStarted(turn="t", part="w", kind="text"),
        e.PartEnded(turn="t", part="w", text="Hello"),
        e.ToolStarted(turn="t", call="c", tool="bash"),
        e.ToolEnded(turn="t", call="c", ok=True),
        e.TurnEnded(turn="t", outcome="failed", error=ErrorInfo("agent_failed", "No key.")),
    ]
    for pos, event in enumerate(events, 1):
        fold(state, Record(pos, "session/s", pos, 1000 + pos * pos, encode(event), event))
        if isinstance(event, e.ToolStarted):
            assert [getattr(part, "started", 0) for part in state.turns[0].parts] == [0, 0, 1036]
    assert [(part.started, part.took) for part in state.turns[0].parts if not isinstance(part, QuestionPart)] == [
        (0, 5),
        (0, 0),
        (0, 13),
    ]
    assert summarise(state).error == "No key."


async def test_parts_grow_and_close(open_host: HostOpener) -> None:
    async def play(message: Message, turn: Turn) -> None:
        turn.reasoning("hm ")
        turn.reasoning("yes")
        turn.text("Hel")
        turn.text("lo")
        turn.notice("retrying")
        turn.text("one", key="m1")
        turn.text("two", key="m2")
        turn.text("draft")
        turn.close_part("final")

    session, turn = await played(open_host, play)
    assert parts(turn) == [
        ("reasoning", "hm yes"),
        ("text", "Hello"),
        ("notice", "retrying"),
        ("text", "one"),
        ("text", "two"),
        ("text", "final"),
    ]
    assert all(part.done for part in turn.parts)
    assert (turn.outcome, turn.by, turn.message) == ("completed", "ada", Message("go"))
    records = await session.host.log.read(session.channel)
    assert [r.pos for r in records] == list(range(1, len(records) + 1))
    assert records[-1].event == e.TurnEnded(turn=turn.id, outcome="completed")


async def test_a_very_long_text_goes_on_in_another_part(open_host: HostOpener, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event that ends a part carries it whole, so without a bound one answer could be too large to end."""
    monkeypatch.setattr(turn_module, "_PART_CHARS", 1000)
    monkeypatch.setattr(limits, "DELTA_BYTES", 300)

    async def play(message: Message, turn: Turn) -> None:
        turn.text("x" * 2500)

    _, turn = await played(open_host, play)
    assert "".join(text for _, text in parts(turn)) == "x" * 2500
    assert max(len(text) for _, text in parts(turn)) <= 1000


async def test_text_with_half_a_character(open_host: HostOpener) -> None:
    async def play(message: Message, turn: Turn) -> None:
        turn.text("broken \ud83d")

    _, turn = await played(open_host, play)
    assert parts(turn) == [("text", "broken ?")]


async def test_usage_adds_up_and_a_total_replaces(open_host: HostOpener) -> None:
    async def play(message: Message, turn: Turn) -> None:
        turn.usage(input=10, output=1, model="small")
        turn.usage(input=5, output=2, cost=0.5)
        if message.text == "total":
            turn.usage(input=100, output=50, total=True)

    session = await opened(open_host, play)
    one = await session.wait(await session.send(Message("add"), by="test"))
    two = await session.wait(await session.send(Message("total"), by="test"))
    assert one.usage == Usage(15, 3, 0, 0.5, "small")
    assert two.usage == Usage(100, 50)
    assert session.state.usage == session.summary.usage == Usage(115, 53, 0, 0.5)


@pytest.mark.parametrize(
    ("error", "info"),
    [
        (AgentError("it broke"), ErrorInfo("agent_failed", "it broke")),
        (AgentDied("gone"), ErrorInfo("agent_died", "gone")),
        (KeyError("bug"), ErrorInfo("agent_failed", "KeyError: 'bug'")),
    ],
)
async def test_an_agents_error_ends_its_turn_and_nothing_else(
    open_host: HostOpener, error: Exception, info: ErrorInfo
) -> None:
    async def play(message: Message, turn: Turn) -> None:
        turn.text("so far")
        if message.text == "go":
            raise error

    session, turn = await played(open_host, play)
    assert (turn.outcome, turn.error, parts(turn)) == ("failed", info, [("text", "so far")])
    assert session.state.status == "failed"
    assert (await session.wait(await session.send(Message("again"), by="test"))).outcome == "completed"
    assert session.summary.status == "idle"


async def test_a_dead_agent_is_opened_again(open_host: HostOpener) -> None:
    async def play(message: Message, turn: Turn) -> None:
        if message.text == "die":
            raise AgentDied("gone")

    agent = PlayAgent(play)
    session = await (await open_host(agent)).start(by="test", cwd="/")
    for text in ("hello", "die", "hello"):
        await session.wait(await session.send(Message(text), by="test"))
    assert (len(agent.openings), agent.closed) == (2, 1)


async def test_an_agent_that_will_not_open(open_host: HostOpener) -> None:
    class Stubborn(PlayAgent):
        async def open(self, opening: Opening) -> "Conversation":  # type: ignore[override]
            raise AgentError("not signed in")

    session = await (await open_host(Stubborn(idle))).start(by="test", cwd="/")
    turn = await session.wait(await session.send(Message("go"), by="test"))
    assert (turn.outcome, turn.error) == ("failed", ErrorInfo("agent_failed", "not signed in"))


async def test_silence_at_the_opening_is_death_too(open_host: HostOpener, clock: FakeClock) -> None:
    """A hung process kept the turn open for ever when it was asked for a new conversation."""
    asked = asyncio.Event()

    class Hung(PlayAgent):
        async def open(self, opening: Opening) -> "Conversation":  # type: ignore[override]
            asked.set()
            await asyncio.get_running_loop().create_future()
            raise AssertionError

    session = await (await open_host(Hung(idle), clock=clock)).start(by="test", cwd="/")
    turn = await session.send(Message("go"), by="test")
    await asked.wait()
    clock.advance(limits.TURN_IDLE_SECONDS)
    ended = await session.wait(turn)
    assert ended.error is not None
    assert (ended.outcome, ended.error.code) == ("failed", "agent_died")


async def test_a_clock_that_was_set_is_no_silence(open_host: HostOpener, clock: FakeClock) -> None:
    """A machine that slept, or whose clock was wrong, took an agent for dead that had spoken a minute before."""
    speak, end = asyncio.Event(), asyncio.Event()

    async def play(message: Message, turn: Turn) -> None:
        await speak.wait()
        turn.text("working")
        await end.wait()

    session = await (await open_host(PlayAgent(play), clock=clock)).start(by="test", cwd="/")
    ident = await session.send(Message("go"), by="test")
    clock.advance(limits.TURN_IDLE_SECONDS / 2)
    speak.set()
    await session.wait_until(lambda state: bool(state.active and state.active.parts))
    clock.set_ahead = 24 * 3600
    clock.advance(limits.TURN_IDLE_SECONDS / 2)
    for _ in range(5):
        await asyncio.sleep(0)
    end.set()
    assert (await session.wait(ident)).outcome == "completed"


async def test_silence_is_death(open_host: HostOpener, clock: FakeClock) -> None:
    session = await (await open_host(PlayAgent(hang), clock=clock)).start(by="test", cwd="/")
    turn = await session.send(Message("go"), by="test")
    await session.wait_until(lambda state: bool(state.active and state.active.parts))
    clock.advance(limits.TURN_IDLE_SECONDS - 1)
    await asyncio.sleep(0)
    assert session.state.active is not None
    clock.advance(2)
    ended = await asyncio.wait_for(session.wait(turn), 60)
    assert (ended.outcome, ended.error and ended.error.code) == ("failed", "agent_died")


async def test_a_person_may_take_as_long_as_they_like(open_host: HostOpener, clock: FakeClock) -> None:
    async def play(message: Message, turn: Turn) -> None:
        turn.text((await turn.ask("Well?")).text)

    session = await (await open_host(PlayAgent(play), clock=clock)).start(by="test", cwd="/")
    turn = await session.send(Message("go"), by="test")
    state = await session.wait_until(lambda state: state.status == "waiting")
    for _ in range(3):
        clock.advance(limits.TURN_IDLE_SECONDS + 1)
        await asyncio.sleep(0)
    assert state.active is not None
    await session.questions.answer(state.active.parts[-1].id, "accept", {"answer": "yes"}, by="ada")
    assert (await session.wait(turn)).outcome == "completed"


async def test_cancel_keeps_what_was_said(open_host: HostOpener) -> None:
    session = await opened(open_host, hang)
    turn = await session.send(Message("go"), by="test")
    await session.wait_until(lambda state: bool(state.active and state.active.parts))
    await session.cancel(by="ada", turn=turn)
    ended = session.state.turn(turn)
    assert ended is not None
    assert (ended.outcome, ended.error, parts(ended)) == ("cancelled", None, [("text", "working")])
    records = await session.host.log.read(session.channel)
    assert records[-1].event == e.TurnEnded(turn=turn, outcome="cancelled", by="ada")
    with pytest.raises(Conflict, match="no turn is running"):
        await session.cancel(by="ada")


async def test_cancel_of_another_turn(open_host: HostOpener) -> None:
    session = await opened(open_host, hang)
    await session.send(Message("go"), by="test")
    with pytest.raises(Conflict, match="turn 't99' is not running"):
        await session.cancel(by="ada", turn="t99")


async def test_two_cancels_are_one(open_host: HostOpener) -> None:
    session = await opened(open_host, hang)
    await session.send(Message("go"), by="test")
    await asyncio.gather(session.cancel(by="ada"), session.cancel(by="bob"))
    assert [turn.outcome for turn in session.state.turns] == ["cancelled"]


async def test_an_agent_that_does_not_obey_is_left_behind(
    open_host: HostOpener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CANCEL_SECONDS", 0.01)
    agent = PlayAgent(hang, obeys=True)
    session = await (await open_host(agent)).start(by="test", cwd="/")
    turn = await session.send(Message("go"), by="test")
    await session.wait_until(lambda state: bool(state.active and state.active.parts))
    await session.cancel(by="ada")
    assert (agent.cancels, session.state.turns[-1].outcome) == (1, "cancelled")
    assert session.state.turns[-1].id == turn


async def test_reports_after_the_end_are_ignored(open_host: HostOpener) -> None:
    left: list[Turn] = []

    async def play(message: Message, turn: Turn) -> None:
        left.append(turn)

    session, _ = await played(open_host, play)
    head = session.host.log.head(session.channel)
    [turn] = left
    turn.text("too late")
    turn.usage(input=1)
    turn.title("too late")
    call = turn.tool("shell", "{}")
    await call.end()
    assert not (await call.approve()).allowed
    assert (await turn.ask("too late?")).response == "cancel"
    await turn.finish("failed")
    await session.host.log.flush()
    assert session.host.log.head(session.channel) == head


async def test_a_busy_session_refuses_where_it_must_not_queue(open_host: HostOpener) -> None:
    session = await opened(open_host, hang)
    await session.send(Message("go"), by="test")
    with pytest.raises(TurnInProgress):
        await session.send(Message("go"), by="test", queue=False)
    assert session.state.queue == []


async def test_resume_goes_on_with_the_same_turn(open_host: HostOpener) -> None:
    heard: list[str] = []

    async def play(message: Message, turn: Turn) -> None:
        heard.append(message.text)
        turn.text(f"try {len(heard)}")
        if len(heard) == 1:
            raise AgentError("once")

    session, turn = await played(open_host, play)
    assert turn.resumable
    assert await session.resume(by="ada", turn=turn.id) == turn.id
    again = await session.wait(turn.id)
    assert (again.outcome, again.error, again.resumes) == ("completed", None, 1)
    assert [text for kind, text in parts(again) if kind == "text"] == ["try 1", "try 2"]
    assert heard == ["go", "The last request was interrupted. Go on where you stopped. It was:\ngo"]
    with pytest.raises(Conflict, match="Only the last turn"):
        await session.resume(by="ada")


async def test_resume_needs_something_to_resume(open_host: HostOpener) -> None:
    session = await opened(open_host, hang)
    with pytest.raises(Conflict):
        await session.resume(by="ada")
    await session.send(Message("go"), by="test")
    with pytest.raises(Conflict):
        await session.resume(by="ada")
    await session.cancel(by="ada")
    with pytest.raises(Conflict):
        await session.resume(by="ada")


async def test_the_vendors_id_is_kept_as_soon_as_it_is_known(open_host: HostOpener, tmp_path: Path) -> None:
    session = await (await open_host()).start(by="test", cwd=str(tmp_path))
    await session.send(Message("[[hang]] [[reasoning:0]]"), by="test")
    await session.wait_until(lambda state: state.vendor is not None)
    session = await (await open_host()).get("session-1")
    assert session.state.vendor == "script-session-1"


async def words(message: Message, turn: Turn) -> None:
    turn.reasoning("hm")
    turn.text("Hello")


async def failing(message: Message, turn: Turn) -> None:
    turn.text("Hello")
    raise AgentError("No more.")


async def calling(message: Message, turn: Turn) -> None:
    turn.text("Hello")
    turn.tool("bash", "{}")


async def asking(message: Message, turn: Turn) -> None:
    asked = asyncio.ensure_future(turn.ask("Which?"))
    await turn.session.wait_until(lambda state: state.status == "waiting")
    turn.text("Never mind")
    asked.cancel()


async def helped(message: Message, turn: Turn) -> None:
    helper = await turn.spawn("help")
    helper.text("Helping")
    turn.text("Hello")


@pytest.mark.parametrize(
    ("play", "together"),
    [(words, True), (failing, True), (idle, True), (calling, False), (asking, False), (helped, False)],
)
async def test_the_last_words_and_the_end_are_one_commit_where_nothing_else_is_open(
    open_host: HostOpener, play: Play, together: bool
) -> None:
    session = await opened(open_host, play)
    batches: list[list[e.Event]] = []
    session.host.log.on_commit(
        lambda records: batches.append([each.event for each in records if each.channel == session.channel])
    )
    turn = await session.wait(await session.send(Message("go"), by="ada"))
    last = next(batch for batch in batches if any(isinstance(event, e.TurnEnded) for event in batch))
    said = [type(event) for event in last if isinstance(event, e.PartEnded | e.TurnEnded)]
    assert (said[:-1] != [] or play is idle) is together
    assert all(part.done for part in turn.parts), "every beginning has its end"


def test_a_summary_says_of_each_field_what_the_state_says() -> None:
    """It is made by position, which no type checker holds where two neighbours have the same type."""
    failed = TurnState(id="t1", message=Message("go"), by="ada", started=1, pos=1, outcome="failed")
    failed.error = ErrorInfo("agent_failed", "No key.")
    state = SessionState(
        "s", agent="a", model="m", model_config={"effort": 1}, cwd="/c", title="t", uri="u", parent="p", promoted=True,
        origin=e.Origin("fork", "o"), folders=["/f"], folder_subset=["/g"], by="b", owner="w", shares={"*": ["read"]},
        created=1, modified=2, last_turn_at=3, archived=True, draft=True, read=False, chat_flags={"read": True},
        closed=True, turns=[failed], chat_order=["x"], pos=4, usage=Usage(5),
        client_data={"changes": {"files": 6, "edits": []}},
    )  # fmt: skip
    found = {name: getattr(summarise(state), name) for name in Summary.__struct_fields__}
    made = {"turns": 1, "queued": 0, "status": "failed", "changes": {"files": 6}, "interrupted": False, "stopped": ""}
    assert found == {**{name: getattr(state, name, None) for name in found}, **made, "error": "No key."}
    failed.outcome, failed.error, state.client_data = "interrupted", None, {}
    again = summarise(state)
    assert (again.status, again.interrupted, again.error, again.changes) == ("idle", True, "", {})
    failed.outcome, failed.stopped_by = "cancelled", "token:ada"
    stopped = summarise(state)
    assert (stopped.status, stopped.interrupted, stopped.stopped) == ("idle", False, "token:ada")
    state.history_cut = True
    assert summarise(state).stopped == "", "what was cut away was not stopped"
