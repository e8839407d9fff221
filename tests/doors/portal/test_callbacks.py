"""Golden translations, and what coalescing may and may not do."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.doors.portal.callbacks import (
    Element,
    closes,
    coalesce,
    job_elements,
    old_job_elements,
    old_task_elements,
    prompted_session_elements,
    session_elements,
    task_elements,
)
from portico.features.jobs import events as je
from portico.kernel import events as e
from portico.kernel.events import ErrorInfo, Message

TURN: dict[str, Any] = {"turn": "t1"}


def translated(*events: e.Event) -> list[Element]:
    open: dict[str, str] = {}
    return [element for event in events for element in session_elements(event, open)]


def test_pages_are_told_what_people_wrote_and_what_they_are_asked() -> None:
    events: list[e.Event] = [
        e.TurnStarted(turn="t1", message=Message("hi"), by="token:me"),
        e.ApprovalAsked(
            approval="a1", call="c1", tool="w", title="w", kind="write", input="{}", expires=0, options=[], **TURN
        ),
        e.ApprovalAnswered(approval="a1", allowed=True, by="token:me", **TURN),
        e.QuestionAsked(question="q1", text="Which?", **TURN),
        e.QuestionAnswered(question="q1", response="accept", by="token:me", **TURN),
    ]
    open: dict[str, str] = {}
    assert [element for event in events for element in prompted_session_elements(event, open)] == [
        {"callback": "onUserPrompt", "prompt": "hi"},
        {"callback": "onAgentStart", "turnId": "t1"},
        {"callback": "onPersonAsked", "askId": "a1"},
        {"callback": "onPersonAnswered", "askId": "a1"},
        {"callback": "onPersonAsked", "askId": "q1"},
        {"callback": "onPersonAnswered", "askId": "q1"},
    ]
    assert translated(*events) == [{"callback": "onAgentStart", "turnId": "t1"}]  # the API's own clients are not


def test_one_turn() -> None:
    assert translated(
        e.SessionStarted(session="s", agent="a", model="m", cwd="/", by="me"),
        e.TurnStarted(turn="t1", message=Message("hi"), by="token:me"),
        e.SessionRenamed(title="hi", by="host"),
        e.PartStarted(part="p1", kind="reasoning", **TURN),
        e.PartDelta(part="p1", text="think", **TURN),
        e.PartEnded(part="p1", text="think", **TURN),
        e.ToolStarted(call="c1", tool="read", parent="c0", **TURN),
        e.ToolInput(part="c1", text="{", **TURN),
        e.ToolReady(call="c1", input='{"path":"a"}', **TURN),
        e.ToolOutput(part="c1", text="...", **TURN),
        e.ToolEnded(call="c1", ok=True, output="text", detail="more", **TURN),
        e.ToolStarted(call="c2", tool="write", **TURN),
        e.ToolReady(call="c2", input="", **TURN),
        e.ToolEnded(call="c2", ok=False, error=ErrorInfo("denied", "no"), outcome="cancelled", **TURN),
        e.PartStarted(part="p2", kind="text", **TURN),
        e.PartDelta(part="p2", text="Hello", **TURN),
        e.PartEnded(part="p2", text="Hello", **TURN),
        e.UsageReported(**TURN),
        e.PartStarted(part="p3", kind="notice", **TURN),
        e.PartDelta(part="p3", text="retrying", **TURN),
        e.PartEnded(part="p3", text="retrying", **TURN),
        e.TurnEnded(outcome="completed", **TURN),
    ) == [
        {"callback": "onAgentStart", "turnId": "t1"},
        {"callback": "onStartReasoning", "reasoningId": "p1"},
        {"callback": "onReasoning", "reasoningId": "p1", "delta": "think"},
        {"callback": "onEndReasoning", "reasoningId": "p1", "completeContent": "think"},
        {
            "callback": "onStartToolExecution",
            "toolCallId": "c1",
            "parentToolCallId": "c0",
            "toolName": "read",
            "toolArguments": '{\n  "path": "a"\n}',
        },
        {"callback": "onToolExecution", "toolCallId": "c1", "delta": "..."},
        {
            "callback": "onEndToolExecution",
            "toolCallId": "c1",
            "result": {"content": "text", "detailedContent": "more"},
        },
        {"callback": "onStartToolExecution", "toolCallId": "c2", "toolName": "write", "toolArguments": ""},
        {"callback": "onEndToolExecution", "toolCallId": "c2", "error": {"message": "no", "code": "denied"}},
        {"callback": "onStartMessage", "messageId": "p2"},
        {"callback": "onMessage", "messageId": "p2", "delta": "Hello"},
        {"callback": "onEndMessage", "messageId": "p2", "completeContent": "Hello"},
        {"callback": "onAgentEnd", "turnId": "t1"},
        {"callback": "onIdle"},
    ]


def test_a_failed_query_is_told_and_then_idle() -> None:
    """The original left Send disabled for ever."""
    failed = e.TurnEnded(outcome="failed", error=ErrorInfo("agent_failed", "stub crash"), **TURN)
    by_person = e.TurnStarted(turn="t1", message=Message("x"), by="token:me")
    by_task = e.TurnStarted(turn="t1", message=Message("x"), by="task:task-1")
    ending: list[Element] = [{"callback": "onAgentEnd", "turnId": "t1"}]
    idle: list[Element] = [{"callback": "onIdle"}]
    assert translated(by_person, failed)[1:] == [*ending, {"sessionError": "Error: stub crash"}, *idle]
    assert translated(by_task, failed) == [
        {"callback": "onGeneratedUserPrompt", "prompt": "x"},
        {"callback": "onAgentStart", "turnId": "t1"},
        *ending,
        *idle,
    ]


def test_a_call_that_never_had_its_arguments_is_shown_all_the_same() -> None:
    assert [
        element["callback"]
        for element in translated(
            e.ToolStarted(call="c1", tool="x", **TURN),
            e.ToolEnded(call="c1", ok=False, outcome="interrupted", **TURN),
        )
    ] == ["onStartToolExecution", "onEndToolExecution"]


TASK = [
    je.TaskStarted(task="task-1", name="it", model="m", by="me", session="session-1"),
    je.TaskSessionStarted(session="session-2", model="m", driving=True),
    je.TaskSessionEnded(session="session-2", succeeded=True),
    je.TaskSessionStarted(session="session-3", model="m", driving=False),
    je.TaskSessionEnded(session="session-3", succeeded=False),
    je.TaskDecided(reason="[MISC] x"),
    je.TaskEnded(task="task-1", outcome="failed", error="{}"),
]


def test_tasks() -> None:
    open: dict[str, str] = {}
    assert [element for event in TASK for element in task_elements(event, open)] == [
        {"callback": "taskSessionStarted", "sessionId": "session-2", "isDriving": True},
        {"callback": "taskSessionStopped", "sessionId": "session-2", "succeeded": True},
        {"callback": "taskSessionStarted", "sessionId": "session-3", "isDriving": False},
        {"callback": "taskSessionStopped", "sessionId": "session-3", "succeeded": False},
        {"callback": "taskDecision", "reason": "[MISC] x"},
        {"callback": "taskFailed"},
        {"taskError": "{}"},
    ]


def test_tasks_in_the_words_of_000() -> None:
    open: dict[str, str] = {}
    assert [element for event in TASK for element in old_task_elements(event, open)] == [
        {"callback": "taskSessionStarted"},
        {"callback": "taskSessionStarted"},
        {"callback": "taskSessionStopped", "succeeded": True},
        {"callback": "taskSessionStarted", "taskSession": ["session-3"]},
        {"callback": "taskSessionStopped", "taskSession": ["session-3"], "succeeded": False},
        {"callback": "taskSessionStopped", "succeeded": False},
        {"callback": "taskFailed"},
        {"taskError": "{}"},
    ]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            je.WorkStarted(path="r", work=3, task="task-7"),
            [{"callback": "workStarted", "workId": 3, "taskId": "task-7"}],
        ),
        (
            je.WorkEnded(path="r", work=3, task="task-7", outcome="crashed"),
            [{"callback": "workStopped", "workId": 3, "succeeded": False}],
        ),
        (je.JobEnded(job="job-1", outcome="succeeded", by="host"), [{"callback": "jobSucceeded"}]),
        (
            je.JobEnded(job="job-1", outcome="failed", by="host", error="{}"),
            [{"callback": "jobFailed"}, {"jobError": "{}"}],
        ),
        (je.JobEnded(job="job-1", outcome="canceled", by="me"), [{"callback": "jobCanceled"}]),
        (je.JobResumed(by="host"), []),
        (je.JobStopping(by="me"), []),
    ],
)
def test_jobs(event: e.Event, expected: list[Element]) -> None:
    assert job_elements(event, {}) == expected


def test_jobs_in_the_words_of_000() -> None:
    open: dict[str, str] = {}
    events: list[e.Event] = [
        je.WorkStarted(path="r", work=0, task="task-1"),
        je.JobStopping(by="me"),
        je.WorkEnded(path="r", work=0, task="task-1", outcome="stopped"),
        je.JobEnded(job="job-1", outcome="canceled", by="me"),
    ]
    assert [element for event in events for element in old_job_elements(event, open)] == [
        {"callback": "workStarted", "workId": 0, "taskId": "task-1"}
    ]


def test_what_closes() -> None:
    assert closes(e.SessionClosed(by="me")) is True
    assert closes(e.SessionReopened(by="me")) is False
    assert closes(e.QueueHeld(held=True, by="me")) is None


def message(ident: str, delta: str) -> Element:
    return {"callback": "onMessage", "messageId": ident, "delta": delta}


def end(ident: str, text: str) -> Element:
    return {"callback": "onEndMessage", "messageId": ident, "completeContent": text}


def test_deltas_of_one_block_become_one_in_the_place_of_the_first() -> None:
    other = {"callback": "onReasoning", "reasoningId": "a", "delta": "r"}
    assert coalesce([message("a", "1"), other, message("a", "2"), message("b", "3")]) == [
        message("a", "12"),
        other,
        message("b", "3"),
    ]


def test_a_complete_block_needs_no_deltas() -> None:
    start = {"callback": "onStartMessage", "messageId": "a"}
    assert coalesce([start, message("a", "1"), message("b", "2"), end("a", "1")]) == [
        start,
        message("b", "2"),
        end("a", "1"),
    ]


def test_tool_output_is_left_as_it_came() -> None:
    output = {"callback": "onToolExecution", "toolCallId": "c", "delta": "x"}
    assert coalesce([output, output]) == [output, output]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.text(max_size=3)), max_size=20), st.data())
def test_whatever_the_batches_a_reader_ends_up_with_the_same_text(
    pieces: list[tuple[str, str]], data: st.DataObject
) -> None:
    elements = [message(ident, text) for ident, text in pieces]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(elements)), max_size=4)))
    batches = [elements[i:j] for i, j in zip([0, *cuts], [*cuts, len(elements)], strict=True)]
    seen = [element for batch in batches for element in coalesce(batch)]
    for ident in "ab":
        whole = "".join(text for other, text in pieces if other == ident)
        assert "".join(element["delta"] for element in seen if element["messageId"] == ident) == whole


def test_answers_that_are_cut_anywhere_say_together_what_one_answer_says() -> None:
    """Two readers of one turn had different elements: one was told a delta before its message had ended."""
    start = {"callback": "onStartMessage", "messageId": "a"}
    idle = {"callback": "onIdle"}
    turn = [start, message("a", "1"), message("b", "2"), message("a", "3"), end("a", "13"), end("b", "2"), idle]
    for cut in range(len(turn) + 1):
        assert coalesce([*coalesce(turn[:cut]), *coalesce(turn[cut:])]) == coalesce(turn), cut
