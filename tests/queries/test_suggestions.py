"""What could be meant by a word in a message: other sessions, and command lines that were run here before."""

from typing import Any

import pytest

from portico.features.board.suggestions import _means, lines
from portico.kernel.events import Message, Origin
from portico.kernel.state import CallPart, SessionState, Summary, TurnState


def summary(ident: str = "session-7", title: str = "Fix the Login", **fields: Any) -> Summary:
    return Summary(ident, "loop", "m", "/w", title, "idle", 0, 0, 1, **fields)


@pytest.mark.parametrize(
    ("of", "word", "means"),
    [
        (summary(), "", True),
        (summary(), "login", True),
        (summary(), "LOGIN", True),
        (summary(), "logout", False),
        (summary(), "session-7", True),
        (summary(), "session", True),
        (summary(), "ession", False),
        (summary(title=""), "session", False),
        (summary(origin=Origin("fork", "session-1", "t1")), "login", True),
        (summary(origin=Origin("agent", "session-1", "t1", call="c")), "login", False),
    ],
    ids=[
        "any",
        "part of its title",
        "in any case",
        "another text",
        "its id",
        "the beginning of its id",
        "the middle of its id",
        "one without a title",
        "a fork",
        "a helper",
    ],
)
def test_which_session_a_word_means(of: Summary, word: str, means: bool) -> None:
    assert _means(of, word) is means


class Said:
    """A session in which these lines were run, oldest first: by a person, or by the agent."""

    def __init__(self, *ran: tuple[str, str]) -> None:
        turns = []
        for number, (who, line) in enumerate(ran):
            message = Message(f"!{line}", meta={"shell": line}) if who == "person" else Message("go")
            call = CallPart(f"c{number}", "sh", kind="execute", ready=True, input=f'{{"command": "{line}"}}')
            parts: list[Any] = [call] if who == "agent" else []
            turns.append(TurnState(f"t{number}", message, "me", 0, number, parts))
        self.state = SessionState("s", turns=turns)


@pytest.mark.parametrize(
    ("ran", "word", "found"),
    [
        ([], "", []),
        ([("agent", "make")], "", [("!make", "run by the agent")]),
        ([("agent", "make"), ("agent", "ls")], "", [("!ls", "run by the agent"), ("!make", "run by the agent")]),
        ([("agent", "make"), ("agent", "make")], "", [("!make", "run by the agent")]),
        ([("agent", "make test"), ("agent", "ls")], "make", [("!make test", "run by the agent")]),
        ([("agent", "make")], "ake", []),
        ([("agent", r"a\nb")], "", []),
    ],
    ids=[
        "nothing",
        "the agent's",
        "the newest first",
        "each once",
        "by its beginning",
        "not by its middle",
        "one line",
    ],
)
def test_command_lines_that_were_run_here(ran: list[tuple[str, str]], word: str, found: list[tuple[str, str]]) -> None:
    session: Any = Said(*ran)
    assert [(each.text, each.about) for each in lines(session, word)] == found


def test_at_most_so_many_are_offered() -> None:
    session: Any = Said(*(("agent", f"make {number}") for number in range(60)))
    offered = lines(session, "make")
    assert len(offered) == 50
    assert offered[0].text == "!make 59"
