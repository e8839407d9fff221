"""`portico inbox`: what waits is listed, shown and answered from the command line."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.process import HostProcess, inside


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Any:
    home = tmp_path_factory.mktemp("inbox") / "home"
    with HostProcess(home):
        yield home


def begun(home: Path, text: str) -> tuple[str, dict[str, Any]]:
    """A session in which something waits, and that."""
    session = inside(home, "send", text, "--agent", "demo", "--detach").stdout.strip()
    while True:
        waiting = json.loads(inside(home, "inbox", "list", "--json").stdout)["inbox"]
        if found := [each for each in waiting if each["session"] == session]:
            return session, found[0]


@pytest.mark.parametrize(
    ("verb", "allowed", "remembered"),
    [
        (["allow"], True, False),
        (["allow", "--remember", "shown"], True, True),
        (["deny"], False, False),
        (["deny", "--reason", "Another name"], False, False),
    ],
    ids=["allow", "remember", "deny", "deny with a reason"],
)
def test_an_approval_is_answered(home: Path, verb: list[str], allowed: bool, remembered: bool) -> None:
    (home.parent / "portico-demo.md").unlink(missing_ok=True)
    session, waiting = begun(home, "write a file")
    listed = inside(home, "inbox").stdout
    assert waiting["id"] in listed
    assert "Wants to change portico-demo.md" in listed
    assert "portico-demo.md" in inside(home, "inbox", "show", waiting["id"]).stdout
    done = inside(home, "inbox", verb[0], waiting["id"], *verb[1:], "--json")
    assert json.loads(done.stdout)["outcome"] == ("allowed" if allowed else "denied"), done.stderr
    state = json.loads(inside(home, "sessions", "show", session, "--json").stdout)
    (approval,) = [
        approval for part in state["turns"][0]["parts"] if part["part"] == "call" for approval in part["approvals"]
    ]
    assert (approval["allowed"] if allowed else approval.get("allowed", False)) is allowed
    assert bool(approval.get("grant")) is remembered
    assert approval.get("reason", "") == (verb[2] if verb[1:2] == ["--reason"] else "")
    again = inside(home, "inbox", *verb[:1], waiting["id"])
    assert (again.returncode, "portico inbox list" in again.stderr) == (66, True)


@pytest.mark.parametrize(
    ("verb", "outcome"), [(["answer", "blue"], "answered"), (["deny"], "denied")], ids=["answer", "decline"]
)
def test_a_question_is_answered(home: Path, verb: list[str], outcome: str) -> None:
    session, waiting = begun(home, "ask me")
    assert "question" in inside(home, "inbox", "list").stdout
    wrong = inside(home, "inbox", "allow", waiting["id"])
    assert (wrong.returncode, f"portico inbox answer {waiting['id']} TEXT" in wrong.stderr) == (64, True)
    done = inside(home, "inbox", verb[0], waiting["id"], *verb[1:], "--json")
    assert json.loads(done.stdout) == {"id": waiting["id"], "outcome": outcome}
    assert waiting["id"] not in inside(home, "inbox", "list").stdout
    assert session


def test_wrong_use_names_what_to_do(home: Path) -> None:
    _, waiting = begun(home, "ask me")
    ever = inside(home, "inbox", "allow", waiting["id"], "--remember", "ever")
    assert (ever.returncode, "shown, folder, all" in ever.stderr) == (64, True), ever.stderr
    inside(home, "inbox", "deny", waiting["id"])
    (home.parent / "portico-demo.md").unlink(missing_ok=True)
    _, approval = begun(home, "write a file")
    wrong = inside(home, "inbox", "answer", approval["id"], "yes")
    assert (wrong.returncode, "portico inbox allow" in wrong.stderr) == (64, True)
    inside(home, "inbox", "deny", approval["id"])


def test_interrupted_sessions_are_listed_with_the_command_that_resumes_them(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with HostProcess(home) as host:
        session, _ = begun(home, "ask me")
        host.process.kill()
        host.process.wait()
    with HostProcess(home):
        listed = inside(home, "inbox").stdout
        assert f"portico sessions resume {session}" in listed
        empty = inside(home, "inbox", "list", "--json")
        assert json.loads(empty.stdout)["inbox"] == []


def test_an_exhausted_budget_that_no_turn_shows_is_answered(home: Path) -> None:
    session = _do(home, "session.start", "agent=demo", 'config={"budget": {"turns": 1}}')["id"]
    assert inside(home, "send", "hello", "--session", session).returncode == 0
    inside(home, "send", "again", "--session", session, "--detach")
    _listed(home, "inbox", session)
    _do(home, "turn.cancel", f"session={session}")
    key = _listed(home, "budgets", session)["budget"]
    assert "is spent: 2 of 1 turns" in inside(home, "inbox").stdout
    assert inside(home, "inbox", "answer", key, "perhaps").returncode == 64
    done = inside(home, "inbox", "answer", key, "raise", "--json")
    assert json.loads(done.stdout) == {"id": key, "outcome": "answered"}, done.stderr
    assert _inbox(home)["budgets"] == []


def _do(home: Path, *given: str) -> Any:
    done = inside(home, "do", *given, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _listed(home: Path, kind: str, session: str) -> dict[str, Any]:
    """What the inbox lists of the session, once it does."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        found: list[dict[str, Any]] = [each for each in _inbox(home)[kind] if each["session"] == session]
        if found:
            return found[0]
    raise AssertionError(_inbox(home))


def _inbox(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(inside(home, "inbox", "list", "--json").stdout)
    return found
