"""Events of the log as the elements that live calls carry. Pure: the same records give the same elements.

`open` is what a reader has to remember from one record to the next: the kind of each part that still grows, the name
of each tool call that was not shown yet, who asked for the running turn. It is small, and it is stored with the
reader's cursor.
"""

import json
from collections.abc import Callable
from typing import Any

from portico import events as e
from portico.host import draft
from portico.surrogates import repair
from portico.transcripts.history_events import retold

Element = dict[str, Any]
Open = dict[str, str]
Translate = Callable[[e.Event, Open], list[Element]]

_KINDS = {"text": "Message", "reasoning": "Reasoning"}
_BORROWED = "borrowed"
_TASK = "task"
_STOPPING = "stopping"


def _callback(name: str, **fields: object) -> Element:
    return {"callback": name, **fields}


# -- sessions --------------------------------------------------------------------------------------------------


def session_elements(event: e.Event, open: Open) -> list[Element]:
    match event:
        case e.PartDelta():
            kind = open.get(event.part)
            return [_callback(f"on{kind}", **{_id(kind): event.part}, delta=event.text)] if kind else []
        case e.PartStarted():
            return _part_started(event, open)
        case e.PartEnded():
            kind = open.pop(event.part, None)
            content = {"completeContent": event.text}
            return [_callback(f"onEnd{kind}", **{_id(kind): event.part}, **content)] if kind else []
        case e.TurnStarted():
            return _turn_started(event, open)
        case e.TurnResumed():
            return [_callback("onAgentStart", turnId=event.turn)]
        case e.TurnEnded():
            return _turn_ended(event, open)
        case e.ToolStarted():
            open[event.call] = json.dumps([event.tool, event.parent])
            return []
        case e.ToolReady():
            return _tool_shown(event.call, event.input, open)
        case e.ToolOutput():
            output = _callback("onToolExecution", toolCallId=event.part, delta=event.text)
            return [*_tool_shown(event.part, "", open), output]
        case e.ToolEnded():
            return [*_tool_shown(event.call, "", open), _tool_ended(event)]
        case e.HistoryCopied():
            return [element for each in retold(event) for element in session_elements(each, open)]
        case _:
            return []


def prompted_session_elements(event: e.Event, open: Open) -> list[Element]:
    """With `?prompts=1`: also what people wrote, so that a page which was loaded again shows both sides, and what waits
    for a person, so that it can ask `/v1` for it."""
    if isinstance(event, e.HistoryCopied):
        return [element for each in retold(event) for element in prompted_session_elements(each, open)]
    elements = session_elements(event, open)
    match event:
        case e.TurnStarted() if not event.by.startswith("task:"):
            return [_callback("onUserPrompt", prompt=event.message.text), *elements]
        case e.ClientKept(key=draft.DRAFT) if event.value is None or draft.offered_text(event.value):
            return [_callback("onDraft", text=draft.offered_text(event.value))]
        case e.ApprovalAsked():
            return [_callback("onPersonAsked", askId=event.approval)]
        case e.QuestionAsked():
            return [_callback("onPersonAsked", askId=event.question)]
        case e.ApprovalAnswered():
            return [_callback("onPersonAnswered", askId=event.approval)]
        case e.QuestionAnswered():
            return [_callback("onPersonAnswered", askId=event.question)]
        case _:
            return elements


def _id(kind: str) -> str:
    return f"{kind.lower()}Id"


def _part_started(event: e.PartStarted, open: Open) -> list[Element]:
    kind = _KINDS.get(event.kind)
    if kind is None:
        return []  # a remark of the host: this API has no word for it
    open[event.part] = kind
    return [_callback(f"onStart{kind}", **{_id(kind): event.part})]


def _turn_started(event: e.TurnStarted, open: Open) -> list[Element]:
    started = _callback("onAgentStart", turnId=event.turn)
    if not event.by.startswith("task:"):
        return [started]
    open[_TASK] = event.turn
    return [_callback("onGeneratedUserPrompt", prompt=event.message.text), started]


def _turn_ended(event: e.TurnEnded, open: Open) -> list[Element]:
    """A task knows by itself that its prompt failed; only a query is told. Idle comes in any case, so that whoever
    waits for it can go on."""
    by_task = open.pop(_TASK, None) == event.turn
    error: list[Element] = []
    if event.outcome in ("failed", "interrupted") and not by_task:
        error = [{"sessionError": f"Error: {event.error.message if event.error else event.outcome}"}]
    return [_callback("onAgentEnd", turnId=event.turn), *error, _callback("onIdle")]


def _tool_shown(call: str, input: str, open: Open) -> list[Element]:
    """A call is shown once, when its arguments are complete (or can no longer be)."""
    known = open.pop(call, None)
    if known is None:
        return []
    tool, parent = json.loads(known)
    element = _callback("onStartToolExecution", toolCallId=call, toolName=tool, toolArguments=_indented(input))
    return [element | {"parentToolCallId": parent} if parent is not None else element]


def _indented(text: str) -> str:
    try:
        return json.dumps(json.loads(repair(text)), indent=2, ensure_ascii=False) if text else ""
    except (ValueError, RecursionError):
        return text


def _tool_ended(event: e.ToolEnded) -> Element:
    element = _callback("onEndToolExecution", toolCallId=event.call)
    if event.ok:
        detail = {"detailedContent": event.detail} if event.detail else {}
        return element | {"result": {"content": event.output, **detail}}
    error = event.error or e.ErrorInfo(event.outcome, f"The call was {event.outcome}.")
    code = "failure" if error.code == "not_found" else error.code  # the clients' word for a tool that is not there
    return element | {"error": {"message": error.message, "code": code}}


# -- tasks and jobs --------------------------------------------------------------------------------------------


def task_elements(event: e.Event, open: Open) -> list[Element]:
    match event:
        case e.TaskStarted(session=str()):
            open[_BORROWED] = "1"
            return []
        case e.TaskSessionStarted():
            return [_callback("taskSessionStarted", sessionId=event.session, isDriving=event.driving)]
        case e.TaskSessionEnded():
            return [_callback("taskSessionStopped", sessionId=event.session, succeeded=event.succeeded)]
        case e.TaskDecided():
            return [_callback("taskDecision", reason=event.reason)]
        case e.TaskEnded():
            ended = _callback("taskSucceeded" if event.outcome == "succeeded" else "taskFailed")
            return [ended, {"taskError": event.error}] if event.error and _BORROWED in open else [ended]
        case _:
            return []


def job_elements(event: e.Event, open: Open) -> list[Element]:
    match event:
        case e.WorkStarted():
            return [_callback("workStarted", workId=event.work, taskId=event.task)]
        case e.WorkEnded():
            return [_callback("workStopped", workId=event.work, succeeded=event.outcome == "succeeded")]
        case e.JobDecided():
            return [_callback("jobDecision", reason=event.reason)]
        case e.JobEnded():
            ended = _callback(f"job{event.outcome.capitalize()}")
            return [ended, {"jobError": event.error}] if event.error else [ended]
        case _:
            return []


def closes(event: e.Event) -> bool | None:
    """Does this event close its session, task or job? False: it opens it again; None: neither."""
    if isinstance(event, e.SessionClosed | e.TaskEnded | e.JobEnded):
        return True
    return False if isinstance(event, e.SessionReopened) else None


# -- the words of stage 000, on calls without a token ----------------------------------------------------------


def old_task_elements(event: e.Event, open: Open) -> list[Element]:
    """There a borrowing task has session callbacks too, the driving session is not named, and nothing is decided."""
    match event:
        case e.TaskDecided():
            return []
        case e.TaskStarted(session=str()):
            return [*task_elements(event, open), _callback("taskSessionStarted")]
        case e.TaskSessionStarted(driving=False):
            return [_callback("taskSessionStarted", taskSession=[event.session])]
        case e.TaskSessionStarted():
            open[event.session] = _BORROWED
            return [_callback("taskSessionStarted")]
        case e.TaskSessionEnded():
            named = {} if open.pop(event.session, None) else {"taskSession": [event.session]}
            return [_callback("taskSessionStopped", **named, succeeded=event.succeeded)]
        case e.TaskEnded() if _BORROWED in open:
            stopped = _callback("taskSessionStopped", succeeded=event.outcome == "succeeded")
            return [stopped, *task_elements(event, open)]
        case _:
            return task_elements(event, open)


def old_job_elements(event: e.Event, open: Open) -> list[Element]:
    """There a stop is the end: nothing is told after it, not even that the job was canceled."""
    if isinstance(event, e.JobStopping):
        open[_STOPPING] = "1"
    return [] if _STOPPING in open else job_elements(event, open)


# -- coalescing ------------------------------------------------------------------------------------------------


def coalesce(elements: list[Element]) -> list[Element]:
    """What one answer carries: the deltas of one block are one, and a block that is complete needs none.

    The first delta keeps its place and takes the others in; tool output is left as it came."""
    if len(elements) < 2:
        return elements
    ended = {(kind, element[_id(kind)]) for kind in _KINDS.values() for element in _ends(elements, kind)}
    first: dict[tuple[str, str], Element] = {}
    pieces: dict[tuple[str, str], list[str]] = {}
    result: list[Element] = []
    for element in elements:
        kind = element.get("callback", "")[2:]
        if kind not in ("Message", "Reasoning"):
            result.append(element)
            continue
        key = (kind, element[_id(kind)])
        if key in ended:
            continue
        if key not in first:
            first[key], pieces[key] = dict(element), []
            result.append(first[key])
        pieces[key].append(element["delta"])
    for key, element in first.items():
        element["delta"] = "".join(pieces[key])
    return result


def _ends(elements: list[Element], kind: str) -> list[Element]:
    return [element for element in elements if element.get("callback") == f"onEnd{kind}"]
