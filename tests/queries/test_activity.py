"""What a list says that a session does: one line, whatever the call."""

import pytest

from portico import limits
from portico.features.board.activity import activity, doing, queued, waiting_of
from portico.kernel.events import Message, Option
from portico.kernel.state import Approval, CallPart, Part, QuestionPart, SessionState, TextPart, TurnState


def state(*parts: Part) -> SessionState:
    return SessionState("s", turns=[TurnState("t1", Message("go"), "token:owner", 0, 1, parts=[*parts])])


def asked(kind: str, tool: str = "tool", **given: str) -> CallPart:
    approval = Approval("s.a1", kind, given.pop("title", ""), "{}", 0, [Option("y", "Yes", True)], **given)  # type: ignore[arg-type]
    return CallPart("c1", tool, approvals=[approval])


@pytest.mark.parametrize(
    ("part", "says"),
    [
        (TextPart("p", "reasoning"), "Thinking"),
        (TextPart("p", "text"), "Writing"),
        (TextPart("p", "text", done=True), "Waiting for the model"),
        (CallPart("c", "bash", kind="execute", title="pytest -q"), "Running pytest -q"),
        (CallPart("c", "bash", kind="execute", input='{"command":"ls  -l\\n"}', ready=True), "Running ls -l"),
        (CallPart("c", "edit", kind="edit", input='{"path":"a.py"}', ready=True), "Editing a.py"),
        (CallPart("c", "grep", input='{"query":"x"}', ready=True), "grep: x"),
        (CallPart("c", "grep", input="[1]", ready=True), "Using grep"),
        (CallPart("c", "grep", input="{", ready=True), "Using grep"),
        (CallPart("c", "grep", title="Search for x"), "Search for x"),
        (CallPart("c", "bash", kind="execute", done=True), "Waiting for the model"),
        (CallPart("c", "plan", kind="think", title="Plan"), "Waiting for the model"),
        (CallPart("c", "task", kind="think", content=[{"type": "subagent", "agent": "Reviewer"}]), "Reviewer helps"),
        (CallPart("c", "task", content=[{"type": "subagent", "agent": "", "title": "Review it"}]), "Review it helps"),
        (CallPart("c", "task", content=[{"type": "subagent"}], done=True), "Waiting for the model"),
        (asked("write", path="/w/src/limits.py"), "Wants to change limits.py"),
        (asked("shell", command="rm -r x"), "Wants to run rm -r x"),
        (asked("other", title="Fetch a page"), "Wants to use Fetch a page"),
        (asked("other", "network", title="codex wants to reach a.test:443"), "Wants to reach a.test:443"),
        (asked("shell", command="make", unclear="cmd"), "Cannot be judged: wants to run make"),
        (asked("write", path="a.py", unclear="patch"), "Cannot be judged: wants to change a.py"),
        (asked("other", title="Fetch", unclear="url"), "Cannot be judged: wants to use Fetch"),
        (QuestionPart("q", "Which\ncolour?"), "Asks: Which colour?"),
    ],
)
def test_one_line_for_every_part(part: Part, says: str) -> None:
    assert activity(state(part)) == says


@pytest.mark.parametrize(
    ("part", "says"),
    [
        (TextPart("p", "text"), ""),
        (CallPart("c", "bash", kind="execute", title="List", input='{"command":"ls -l"}', ready=True), "Running ls -l"),
        (CallPart("c", "bash", kind="execute", title="ls"), ""),  # nobody knows yet what it will be
        (CallPart("c", "read", kind="read", title="Read a.py", ready=True), "Read a.py"),
        (CallPart("c", "read", kind="read", title="Read a.py", input='{"path":"a.py"}', ready=True), "Reading a.py"),
        (CallPart("c", "bash", kind="execute", ready=True, done=True), ""),
        (CallPart("c", "plan", kind="think", title="Plan", ready=True), ""),
        (asked("write", path="/w/src/limits.py"), "Wants to change limits.py"),
        (QuestionPart("q", "Which?"), "Asks: Which?"),
    ],
)
def test_what_an_editor_is_told(part: Part, says: str) -> None:
    assert doing(state(part)) == says


def test_a_long_command_does_not_hide_that_it_cannot_be_judged() -> None:
    assert activity(state(asked("shell", command="x" * 1000, unclear="cmd"))).startswith("Cannot be judged: ")


def test_what_waits_is_said_before_what_runs() -> None:
    both = state(asked("shell", command="make"), CallPart("c2", "bash", kind="execute", title="ls"))
    assert activity(both) == "Wants to run make"
    assert [each.id for each in waiting_of(both)] == ["s.a1"]


def test_nothing_runs_nothing_is_said() -> None:
    assert activity(SessionState("s")) == ""


def test_a_long_line_is_cut() -> None:
    line = activity(state(CallPart("c", "bash", kind="execute", title="x" * 1000)))
    assert len(line) == limits.ACTIVITY_CHARS


FULL = "Waiting for a free agent: 1 of 1 processes are busy (agent.max_processes)."
SILENT = "Nothing heard for 20 seconds: waiting for a free agent: 1 of 1 processes are busy (agent.max_processes)."
STARTS = "The agent starts now."


@pytest.mark.parametrize(
    ("notices", "waits"),
    [
        ([], False),
        ([FULL], True),
        ([FULL, SILENT], True),  # what is said about the silence changes nothing
        ([FULL, STARTS], False),
        ([FULL, STARTS, SILENT], False),
        ([FULL, STARTS, FULL], True),  # another agent took over, and waits as well
        (["The agent began a new conversation."], False),
    ],
)
def test_a_turn_that_waits_for_a_place_has_not_begun(notices: list[str], waits: bool) -> None:
    told = state(*(TextPart(f"p{at}", "notice", text, done=True) for at, text in enumerate(notices)))
    assert queued(told) is waits
    assert activity(told) == ("Waiting for a free agent" if waits else "Waiting for the model")


@pytest.mark.parametrize(
    "part", [TextPart("p", "text", FULL, done=True), TextPart("p", "reasoning"), CallPart("c", "bash", done=True)]
)
def test_whoever_has_said_or_done_something_has_begun(part: Part) -> None:
    assert not queued(state(TextPart("n", "notice", FULL, done=True), part))


def test_nothing_waits_where_nothing_runs() -> None:
    assert not queued(SessionState("s"))
