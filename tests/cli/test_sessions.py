"""`portico sessions`: list, show, tail, resume, export, delete."""

import json
import subprocess
from pathlib import Path

import msgspec
import pytest

from portico.cli.sessions import status_of
from portico.cli.show import Printer
from portico.client import RemoteRecord
from portico.kernel.events import HistoryCopied
from tests.cli.terminal import TerminalCommand
from tests.process import inside, portico, running


@pytest.fixture(scope="module")
def session(home: Path) -> str:
    done = inside(home, "send", "[[reasoning:0]][[say:an answer]]", "--agent", "scripted")
    return done.stderr.strip()


def test_list(home: Path, session: str) -> None:
    row = portico(home, "sessions", "list").stdout.splitlines()[0].split("\t")
    assert row[:4] == [session, "idle", "scripted", "gpt-5-mini"]
    listed = json.loads(inside(home, "sessions", "list", "--json", "--limit", "1").stdout)
    assert [each["id"] for each in listed] == [session]
    archived = inside(home, "sessions", "list", "--archived")
    assert (archived.stdout, "No sessions yet" in archived.stderr) == ("", True)
    assert inside(home, "sessions", "list", "--limit", "0").returncode == 64


def test_list_is_a_table_in_a_terminal(home: Path, session: str) -> None:
    with TerminalCommand(home, "sessions", "list") as command:
        code, screen = command.finish()
    assert code == 0
    assert "changed" in screen
    assert session in screen


def test_show(home: Path, session: str) -> None:
    shown = portico(home, "sessions", "show", session).stdout
    assert "> [[reasoning:0]][[say:an answer]]\nan answer\n-- completed" in shown
    assert json.loads(inside(home, "sessions", "show", session, "--json").stdout)["id"] == session
    missing = inside(home, "sessions", "show", "session-999")
    assert (missing.returncode, missing.stdout) == (66, "")


def test_tail_from_any_position(home: Path, session: str) -> None:
    whole = portico(home, "sessions", "tail", session, "--no-follow", "--json").stdout.splitlines()
    positions = [json.loads(line)["pos"] for line in whole]
    assert positions == list(range(1, len(positions) + 1))
    rest = inside(home, "sessions", "tail", session, "--no-follow", "--json", "--after", "3").stdout.splitlines()
    assert rest == whole[3:]
    plain = inside(home, "sessions", "tail", session, "--no-follow").stdout
    assert "an answer" in plain


def test_a_forks_history_is_told_like_any_other(capsys: pytest.CaptureFixture[str]) -> None:
    parts = [
        {"part": "text", "id": "p1", "kind": "text", "text": "an answer", "done": True},
        {"part": "call", "id": "p2", "tool": "view", "input": "{}", "ready": True, "done": True, "ok": True},
    ]
    turn = {"id": "t1", "message": {"text": "a question"}, "by": "x", "started": 1, "pos": 2, "parts": parts}
    copied = HistoryCopied([turn, {**turn, "id": "t2", "parts": [], "outcome": "cancelled"}])
    raw = msgspec.Raw(msgspec.json.encode(copied))
    Printer().show(RemoteRecord(seq=2, channel="session/session-2", pos=2, time=1, raw=raw))
    assert capsys.readouterr().out.splitlines() == [
        "> a question",
        "an answer",
        "[view] {}",
        "[view] ok",
        "> a question",
        "-- cancelled",
    ]


def test_a_failed_turn_is_taken_up_again(home: Path) -> None:
    failed = inside(home, "send", "[[crashn:cli-resume|1]][[reasoning:0]][[say:back again]]", "--agent", "scripted")
    assert failed.returncode == 1
    session = failed.stderr.strip()
    resumed = portico(home, "sessions", "resume", session)
    assert (resumed.returncode, resumed.stdout.splitlines()[-1]) == (0, "back again")
    done = inside(home, "sessions", "resume", session)
    assert (done.returncode, "Only the last turn can be resumed" in done.stderr) == (75, True)
    assert inside(home, "sessions", "resume", "session-999").returncode == 66


def test_tail_follows_until_ctrl_c(home: Path, session: str) -> None:
    with TerminalCommand(home, "sessions", "tail", session) as command:
        command.expect("an answer")
        inside(home, "send", "[[reasoning:0]][[say:something new]]", "--session", session)
        command.expect("something new")
        command.enter("\x03")
        code, screen = command.finish()
    assert (code, "Traceback" in screen) == (130, False)


def test_export(home: Path, session: str, tmp_path: Path) -> None:
    assert "an answer" in portico(home, "sessions", "export", session).stdout
    target = tmp_path / "session.html"
    written = inside(home, "sessions", "export", session, "--format", "html", "-o", str(target), "--json")
    assert json.loads(written.stdout)["bytes"] == target.stat().st_size
    assert target.read_text().startswith("<!doctype html>")
    assert inside(home, "sessions", "export", session, "--format", "pdf").returncode == 64
    nowhere = inside(home, "sessions", "export", session, "-o", str(tmp_path / "no" / "where"))
    assert (nowhere.returncode, "cannot be written" in nowhere.stderr) == (64, True)


def test_delete_asks_first(home: Path) -> None:
    ident = inside(home, "send", "[[say:x]]", "--agent", "scripted", "--detach").stdout.strip()
    with TerminalCommand(home, "sessions", "delete", ident) as command:
        command.expect(r"\[y/N\]")
        command.enter("n\n")
        assert command.finish()[0] != 0
    assert inside(home, "sessions", "show", ident).returncode == 0
    unasked = inside(home, "sessions", "delete", ident)
    assert (unasked.returncode, "Say --yes" in unasked.stderr) == (64, True), "nobody can be asked without a terminal"
    deleted = portico(home, "sessions", "delete", ident, "--yes", "--json")
    assert json.loads(deleted.stdout) == {"deleted": [ident]}
    assert inside(home, "sessions", "delete", ident, "--yes").returncode == 66


def test_a_reader_that_leaves_is_no_error(home: Path, session: str) -> None:
    """As in `portico sessions tail ID | head -1`."""
    with running(home, "sessions", "tail", session, "--json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        inside(home, "send", "[[say:x]]", "--session", session)
        process.wait(60)
        assert "Traceback" not in process.stderr.read()


def test_changes(home: Path, tmp_path: Path) -> None:
    """Files and lines that the turns changed; without git it says what to do."""
    bare = inside(home, "send", "[[say:x]]", "--agent", "scripted", "--cwd", str(tmp_path)).stderr.strip()
    nothing = inside(home, "sessions", "changes", bare)
    assert (nothing.returncode, nothing.stdout, "git init" in nothing.stderr) == (0, "", True)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    session = inside(home, "send", "write a file", "--yes", "--agent", "demo", "--cwd", str(tmp_path)).stderr.strip()
    row = inside(home, "sessions", "changes", session).stdout.split("\t")
    assert (row[0], row[1].startswith("+")) == ("added", True)
    assert "diff --git" in inside(home, "sessions", "changes", session, "--diff").stdout
    assert inside(home, "sessions", "changes", session, "--turn", "t99").returncode == 66


def test_an_interrupted_session_says_so_and_is_not_merely_idle() -> None:
    """A session in whose turn the host had died was listed as ready, like any other."""
    cases = [("idle", True), ("idle", False), ("running", True), ("failed", False)]
    assert [status_of(*case) for case in cases] == ["interrupted", "idle", "running", "failed"]
    assert [status_of(*case, stopped=True) for case in cases] == ["interrupted", "stopped", "running", "failed"]
