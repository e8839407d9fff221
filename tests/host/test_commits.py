"""One dispatcher of commits: a receiver that raises affects only itself, and a session that could not follow its events
is read again."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portico.agents.agent import Message, Turn
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import react as reactions
from portico.kernel import session as sessions
from portico.kernel.events import HOST, Record
from portico.kernel.fold import fold as real_fold
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import CallPart, SessionState
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.doors.standing import standing
from tests.host.commands import join
from tests.host.plays import allowed

ADA = c.Caller("token-1", "ada", frozenset(c.SCOPES))


def once(function: Callable[..., Any], when: Callable[..., bool] = lambda *_: True) -> Callable[..., Any]:
    """The function, which raises the first time that the condition holds."""
    failed = False

    def wrapped(*args: Any, **more: Any) -> Any:
        nonlocal failed
        if not failed and when(*args):
            failed = True
            raise RuntimeError("once")
        return function(*args, **more)

    return wrapped


async def say(message: Message, turn: Turn) -> None:
    turn.text("hello")


REGISTER: dict[str, Callable[[Host, Callable[[Any], None]], None]] = {
    "by event type": lambda host, receive: host.commits.on("broken", receive, e.TurnStarted, e.Audited),
    "by channel": lambda host, receive: host.commits.on_channel("broken", receive, "session"),
    "by batch": lambda host, receive: host.commits.on_batch("broken", receive),
}


@pytest.mark.parametrize("way", REGISTER)
async def test_a_receiver_that_raises_affects_only_itself(
    open_host: HostOpener, tmp_path: Path, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A feature that raised kept the session of the same commit from its event: its turn never ran, and had no end."""
    host = await open_host(PlayAgent(say))
    session = await host.start(by="test", cwd=str(tmp_path))
    got: list[type[e.Event]] = []
    REGISTER[way](host, once(lambda _: None))
    host.commits.on("other", lambda record: got.append(type(record.event)), e.TurnStarted, e.TurnEnded)
    with caplog.at_level(logging.ERROR, "portico.host"):
        ended = await session.wait(await session.send(Message("hi"), by="test"))
    assert (ended.outcome, got) == ("completed", [e.TurnStarted, e.TurnEnded])
    assert host.commits.failed == {"broken": 1}
    assert "broken failed to process a commit" in caplog.text


async def test_a_failed_effect_does_not_stop_the_fold(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = await open_host(PlayAgent(say))
    session = await host.start(by="test", cwd=str(tmp_path))
    table = dict(reactions._REACTIONS)
    table[e.ClientJoined] = once(table[e.ClientJoined])
    monkeypatch.setattr(reactions, "_REACTIONS", table)
    await join(session, "ed", "Ed", [])
    assert ([each.id for each in session.state.clients], host.commits.failed) == (["ed"], {"session": 1})


async def test_a_failed_fold_of_what_sessions_share_hinders_no_session(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = await open_host(PlayAgent(say))
    session = await host.start(by="test", cwd=str(tmp_path))
    monkeypatch.setattr(host.shared, "apply", once(host.shared.apply))
    await host.log.append_all(
        (HOST, e.Audited(action="x", by="t")), (session.channel, e.SessionRenamed(title="t", by="t"))
    )
    assert (session.summary.title, host.commits.failed) == ("t", {"host": 1})


FOLDED = [e.SessionRenamed, e.TurnStarted, e.ToolStarted, e.ApprovalAsked, e.ApprovalAnswered, e.ToolEnded, e.TurnEnded]


async def conversation(host: Host, folder: Path) -> Session:
    """A turn with a call that a person allows."""
    session = await host.start(by="test", cwd=str(folder))
    turn = await session.send(Message("go"), by="test")
    state = await session.wait_until(lambda state: bool(_open(state)))
    await host.do(c.AnswerApproval(approval=_open(state)[0], allow=True), ADA)
    await session.wait(turn)
    return session


def _open(state: SessionState) -> list[str]:
    parts = state.active.parts if state.active is not None else []
    return [each.approval.id for each in parts if isinstance(each, CallPart) and each.approval is not None]


@pytest.mark.parametrize("kind", FOLDED)
async def test_a_session_whose_fold_failed_once_is_read_again(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[e.Event]
) -> None:
    """Its state was behind the log for good, and what its events ask for never happened."""
    host = await open_host(PlayAgent(allowed))
    fold = once(real_fold, lambda state, record: type(record.event) is kind)
    monkeypatch.setattr("portico.kernel.session.fold", fold)
    session = await conversation(host, tmp_path)
    assert host.commits.failed == {"session": 1}
    turn = (await session.load()).state.turns[-1]
    assert turn.outcome == "completed"
    state, summary = session.state, session.summary
    await host.log.flush()
    again = await open_host(PlayAgent(allowed))
    loaded = await again.get(session.id)
    assert (loaded.state, loaded.summary) == (state, summary)


async def test_an_event_that_can_never_be_folded_concerns_its_session_alone(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = await open_host(PlayAgent(say))
    broken, other = [await host.start(by="test", cwd=str(tmp_path)) for _ in range(2)]

    def fold(state: Any, record: Record) -> Any:
        if isinstance(record.event, e.SessionRenamed):
            raise RuntimeError("never")
        return real_fold(state, record)

    monkeypatch.setattr("portico.kernel.session.fold", fold)
    await host.do(c.RenameSession(session=broken.id, title="x"), ADA)
    with pytest.raises(RuntimeError, match="never"):
        await host.do(c.MarkRead(session=broken.id, read=False), ADA)
    await host.do(c.MarkRead(session=other.id, read=False), ADA)
    assert not other.summary.read
    monkeypatch.setattr("portico.kernel.session.fold", real_fold)
    await host.do(c.MarkRead(session=broken.id, read=False), ADA)
    assert ((await broken.load()).state.title, broken.summary.read) == ("x", False)


async def test_health_and_metrics_name_the_feature(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        assert (await here.stranger.get("/healthz")).json() == {"ok": True}
        here.server.host.commits.on("bookmarks", once(lambda _: None), e.Audited)
        await here.server.host.audit("x", "test")
        answer = await here.stranger.get("/healthz")
        assert (answer.status_code, answer.json()) == (200, {"ok": True, "failed": ["bookmarks"]})
        metrics = (await here.http.get("/metrics")).text
        assert 'portico_commit_failures_total{feature="bookmarks"} 1' in metrics


def test_nothing_else_listens_to_the_log() -> None:
    """Every feature and door receives commits from the one dispatcher, which guards it."""
    root = Path(sessions.__file__).parents[1]
    found = sorted(str(path.relative_to(root)) for path in root.rglob("*.py") if ".on_commit(" in path.read_text())
    others = [each for each in found if not each.startswith("log/")]
    assert others == ["kernel/commits.py"]
