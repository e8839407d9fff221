"""`portico send`: one message, streamed, with the approvals asked where the person is."""

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from portico.cli.send import watch
from portico.client import Client, RemoteRecord
from portico.kernel.errors import Unreachable
from portico.kernel.events import ApprovalAsked
from portico.kernel.state import SessionState
from tests.cli.terminal import TerminalCommand
from tests.process import HostProcess, inside, portico, running


def state_of(home: Path, session: str) -> SessionState:
    async def ask() -> SessionState:
        async with Client.local(home) as client:
            return await client.session(session).state()

    return asyncio.run(ask())


def newest(home: Path) -> SessionState:
    async def ask() -> str:
        async with Client.local(home) as client:
            return (await client.sessions(limit=1))[0].id

    return state_of(home, asyncio.run(ask()))


def test_an_answer_is_streamed_plain_without_a_terminal(home: Path) -> None:
    done = portico(home, "send", "[[reasoning:0]][[say:hi there]]", "--agent", "scripted")
    assert (done.returncode, done.stdout) == (0, "hi there\n")
    session = done.stderr.strip()
    assert session.startswith("session-")
    more = inside(home, "send", "[[reasoning:0]][[say:more]]", "--session", session)
    assert (more.stdout, more.stderr) == ("more\n", "")
    last = inside(home, "send", "-", "--last", text="[[reasoning:0]][[say:from a pipe]]")
    assert last.stdout == "from a pipe\n"
    assert [turn.outcome for turn in state_of(home, session).turns] == ["completed"] * 3
    assert state_of(home, session).cwd == str(home.parent)


def test_json_is_one_event_a_line(home: Path) -> None:
    done = inside(home, "send", "[[say:hi]]", "--agent", "scripted", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert (events[0]["event"]["type"], events[-1]["event"]["type"]) == ("turn.started", "turn.ended")
    assert [event["pos"] for event in events] == sorted(event["pos"] for event in events)
    detached = inside(home, "send", "[[say:hi]]", "--agent", "scripted", "--detach", "--json")
    assert json.loads(detached.stdout)["session"].startswith("session-")


def test_more_agents_take_over_from_one_that_cannot_answer(home: Path) -> None:
    done = portico(home, "send", "[[reasoning:0]][[say:me]]", "-a", "nobody/m", "-a", "scripted/gpt-4.1")
    assert (done.returncode, done.stdout.endswith("me\n")) == (0, True), done.stderr
    assert "'scripted/gpt-4.1' takes over" in done.stdout
    state = state_of(home, done.stderr.strip())
    assert (state.agent, state.model) == ("scripted", "gpt-4.1")


def test_a_failed_turn_is_exit_code_1(home: Path) -> None:
    done = portico(home, "send", "[[crash]]", "--agent", "scripted")
    assert done.returncode == 1
    assert "-- failed: stub crash" in done.stdout


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["x", "--session", "session-999"], 66, "There is no session 'session-999'. See: portico sessions list"),
        (["x", "--agent", "nosuch"], 66, "There is no agent 'nosuch'"),
        (["x", "--agent", "scripted", "--model", "nosuch"], 66, "There is no model 'nosuch'"),
        (["x", "--cwd", "no/such/folder"], 64, "is not a folder"),
        (["x", "--yes", "--no"], 64, "not both"),
    ],
)
def test_wrong_input_is_a_line_and_a_stable_exit_code(home: Path, args: list[str], code: int, words: str) -> None:
    done = inside(home, "send", *args)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_a_host_it_says_how_to_start_one(tmp_path: Path) -> None:
    done = inside(tmp_path / "home", "send", "x")
    assert done.returncode == 69
    assert "portico serve" in done.stderr


def test_yes_and_no_answer_for_the_person(home: Path, tmp_path: Path) -> None:
    for answer, written in (("--no", False), ("--yes", True)):
        done = inside(home, "send", "write something", "--agent", "demo", "--cwd", str(tmp_path), answer)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "portico-demo.md").exists() is written


def test_without_a_terminal_somebody_else_must_answer(home: Path, tmp_path: Path) -> None:
    with running(home, "send", "write something", "--agent", "demo", "--cwd", str(tmp_path)) as process:
        assert process.stderr is not None
        session = process.stderr.readline().strip()
        assert "waits for an answer (use --yes or --no" in process.stderr.readline()
        asyncio.run(_approve(home, session))
        assert process.wait(60) == 0
    assert (tmp_path / "portico-demo.md").exists()


def test_an_approval_is_asked_inline(home: Path, tmp_path: Path) -> None:
    args = ["send", "write something", "--agent", "demo", "--cwd", str(tmp_path)]
    with TerminalCommand(home, *args) as command:
        assert "+# Written by the demo agent" in command.expect(r"Allow\? \[y/N\] ")  # the diff is shown first
        command.enter("n\n")
        assert command.finish()[0] == 0
    assert not (tmp_path / "portico-demo.md").exists()
    with TerminalCommand(home, *args) as command:
        command.expect(r"Allow\? \[y/N\] ")
        command.enter("y\n")
        code, screen = command.finish()
        assert (code, "Done: I wrote" in screen) == (0, True)
    assert (tmp_path / "portico-demo.md").exists()
    [approval] = [each for part in newest(home).turns[0].parts for each in getattr(part, "approvals", [])]
    assert (approval.allowed, approval.by) == (True, "token:owner")


def test_somebody_elses_answer_takes_the_question_back(home: Path, tmp_path: Path) -> None:
    with TerminalCommand(home, "send", "write something", "--agent", "demo", "--cwd", str(tmp_path)) as command:
        session = command.expect(r"session-\d+").strip()
        command.expect(r"Allow\? \[y/N\] ")
        asyncio.run(_approve(home, session))
        command.expect("allowed by token:owner")
        assert command.finish()[0] == 0


def test_a_question_is_asked_inline(home: Path) -> None:
    with TerminalCommand(home, "send", "ask me", "--agent", "demo") as command:
        command.expect("favourite colour\\? ")
        command.enter("green\n")
        code, screen = command.finish()
    assert (code, "A good choice." in screen) == (0, True)
    [part] = [part for part in newest(home).turns[0].parts if hasattr(part, "answers")]
    assert part.answers == {"answer": "green"}


def test_ctrl_c_while_it_streams_cancels_the_turn(home: Path) -> None:
    with TerminalCommand(home, "send", "slow please", "--agent", "demo") as command:
        command.expect("A long")
        command.enter("\x03")
        code, screen = command.finish()
    assert (code, "cancelled" in screen, "Traceback" in screen) == (130, True, False)
    assert newest(home).turns[0].outcome == "cancelled"


def test_ctrl_c_at_a_question_does_not_wait_for_a_line(home: Path, tmp_path: Path) -> None:
    with TerminalCommand(home, "send", "write something", "--agent", "demo", "--cwd", str(tmp_path)) as command:
        command.expect(r"Allow\? \[y/N\] ")
        command.enter("\x03")
        code, screen = command.finish()
    assert (code, "Traceback" in screen) == (130, False)
    assert newest(home).turns[0].outcome == "cancelled"
    assert not (tmp_path / "portico-demo.md").exists()


def test_sigint_without_a_terminal_cancels_too(home: Path) -> None:
    with running(home, "send", "slow please", "--agent", "demo") as process:
        assert process.stdout is not None
        assert process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert newest(home).turns[0].outcome == "cancelled"


def test_agent_text_cannot_command_the_terminal(home: Path) -> None:
    text = "[[reasoning:0]][[say:before\x1b]0;evil\x07\x1b[2J\x9b31mafter]]"
    with TerminalCommand(home, "send", text, "--agent", "scripted") as command:
        _, screen = command.finish()
    assert "before]0;evil[2J31mafter" in screen
    assert "\x1b]0" not in screen
    assert "\x1b[2J" not in screen


def test_kill_9_in_the_middle_of_a_long_answer_and_a_restart(tmp_path: Path) -> None:
    """What the README promises: the partial answer and `interrupted`."""
    home = tmp_path / "home"
    with HostProcess(home) as host:
        endless = "[[reasoning:0]][[gap:5]][[deltas:100000]]"
        with running(home, "send", endless, "--agent", "scripted") as process:
            assert process.stdout is not None
            assert process.stderr is not None
            session = process.stderr.readline().strip()
            seen = process.stdout.read(20)
            host.kill()
            with HostProcess(home, port=host.port):
                rest, _ = process.communicate(timeout=60)
                assert process.returncode == 1  # it came back by itself and saw the end
                shown = portico(home, "sessions", "show", session).stdout
    assert "-- interrupted" in rest
    assert "-- interrupted" in shown
    answer = (seen + rest).split("\n")[0]
    assert len(answer) >= 20
    assert answer in shown  # everything that was seen, once


async def _approve(home: Path, session: str) -> None:
    async with asyncio.timeout(30), Client.local(home) as client:
        async for record in client.session(session).follow():
            if isinstance(record.event, ApprovalAsked):
                await client.approve(record.event.approval, allow=True)
                return


def test_a_message_that_is_none_makes_no_session(tmp_path: Path) -> None:
    """Both left an empty session behind, the first with a traceback."""
    home = tmp_path / "home"
    with HostProcess(home):
        wrong = inside(home, "send", "-", text="a\udcff")
        assert (wrong.returncode, wrong.stderr) == (64, "portico: The message is not UTF-8. [text]\n")
        empty = inside(home, "send", "--json", "")
        assert empty.returncode == 64
        assert json.loads(empty.stderr) == {
            "error": "A message needs some text.",
            "code": "bad_request",
            "field": "text",
        }
        assert json.loads(inside(home, "sessions", "list", "--json").stdout) == []


def test_a_worktree_for_a_new_session(home: Path, tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c"]
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run([*git, "init", "-q"], cwd=folder, check=True)
    subprocess.run([*git, "commit", "-q", "--no-gpg-sign", "--allow-empty", "-m", "first"], cwd=folder, check=True)
    options = ("--agent", "demo", "--yes", "--cwd", str(folder), "--worktree", "--base", "HEAD")
    session = inside(home, "send", "write a file", *options).stderr.strip()
    place = Path(state_of(home, session).cwd)
    assert place == tmp_path / "project.worktrees" / session
    assert any(place.iterdir())
    assert [each.name for each in folder.iterdir()] == [".git"]
    gone = inside(home, "sessions", "delete", session, "--yes")
    assert "has uncommitted work" in gone.stderr
    assert inside(home, "send", "x", "--base", "HEAD").returncode == 64
    assert inside(home, "send", "x", "--last", "--worktree").returncode == 64


def test_a_turn_that_the_host_left_names_the_command_that_resumes_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    words = "[[reasoning:0]][[say:begun]][[hang]]"
    with HostProcess(home) as host, running(home, "send", words, "--agent", "scripted") as sending:
        assert sending.stdout is not None
        assert sending.stdout.read(5) == "begun"
        session = newest(home).id
        host.process.kill()
        host.process.wait()
        with HostProcess(home, port=host.port):
            assert sending.wait(60) == 1
        assert sending.stderr is not None
        assert f"portico sessions resume {session}" in sending.stderr.read()


async def test_a_host_that_does_not_return_leaves_the_command_that_resumes() -> None:
    async def turn(records: list[RemoteRecord]) -> AsyncGenerator[RemoteRecord, None]:
        for record in records:
            yield record
        raise Unreachable("The host at http://host.test does not come back: refused.")

    async with Client("http://host.test") as client:
        with pytest.raises(Unreachable, match=r"come back: refused\. Start .* portico sessions resume session-7$"):
            await watch(client, client.session("session-7"), turn([]), "ask", as_json=False)
