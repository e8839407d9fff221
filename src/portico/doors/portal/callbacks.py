"""Translates events of the log to the elements of live calls. Pure: the same records give the same elements.

`open` is the state of a reader between records: the kind of each unfinished part, the name of each tool call that was
not shown yet, and who started the running turn. It is small and stored with the cursor of the reader.
"""

import json
from collections.abc import Callable
from typing import Any

from portico.features.chats.draft import offered_text
from portico.features.jobs import events as je
from portico.features.transcripts.history_events import retold
from portico.kernel import events as e
from portico.kernel.state import DRAFT
from portico.surrogates import repair

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
    """Elements for `?prompts=1`: also user prompts, so that a reloaded page shows both sides, and pending requests to a
    person, so that the page can fetch them from `/v1`."""
    if isinstance(event, e.HistoryCopied):
        return [element for each in retold(event) for element in prompted_session_elements(each, open)]
    elements = session_elements(event, open)
    match event:
        case e.TurnStarted() if not event.by.startswith("task:"):
            return [_callback("onUserPrompt", prompt=event.message.text), *elements]
        case e.ClientKept() if event.key == DRAFT and (event.value is None or offered_text(event.value)):
            return [_callback("onDraft", text=offered_text(event.value))]
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
        return []  # a remark of the host: this API has no element for it
    open[event.part] = kind
    return [_callback(f"onStart{kind}", **{_id(kind): event.part})]


def _turn_started(event: e.TurnStarted, open: Open) -> list[Element]:
    started = _callback("onAgentStart", turnId=event.turn)
    if not event.by.startswith("task:"):
        return [started]
    open[_TASK] = event.turn
    return [_callback("onGeneratedUserPrompt", prompt=event.message.text), started]


def _turn_ended(event: e.TurnEnded, open: Open) -> list[Element]:
    """Report an error only for queries: a task already knows that its prompt failed. `onIdle` is always sent, so that
    waiting clients can continue."""
    by_task = open.pop(_TASK, None) == event.turn
    error: list[Element] = []
    if event.outcome in ("failed", "interrupted") and not by_task:
        error = [{"sessionError": f"Error: {event.error.message if event.error else event.outcome}"}]
    return [_callback("onAgentEnd", turnId=event.turn), *error, _callback("onIdle")]


def _tool_shown(call: str, input: str, open: Open) -> list[Element]:
    """Show a call once, when its arguments are complete (or cannot be completed any more)."""
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
    code = "failure" if error.code == "not_found" else error.code  # the code that clients expect for a missing tool
    return element | {"error": {"message": error.message, "code": code}}


# -- tasks and jobs --------------------------------------------------------------------------------------------


def task_elements(event: e.Event, open: Open) -> list[Element]:
    match event:
        case je.TaskStarted(session=str()):
            open[_BORROWED] = "1"
            return []
        case je.TaskSessionStarted():
            return [_callback("taskSessionStarted", sessionId=event.session, isDriving=event.driving)]
        case je.TaskSessionEnded():
            return [_callback("taskSessionStopped", sessionId=event.session, succeeded=event.succeeded)]
        case je.TaskDecided():
            return [_callback("taskDecision", reason=event.reason)]
        case je.TaskEnded():
            ended = _callback("taskSucceeded" if event.outcome == "succeeded" else "taskFailed")
            return [ended, {"taskError": event.error}] if event.error and _BORROWED in open else [ended]
        case _:
            return []


def job_elements(event: e.Event, open: Open) -> list[Element]:
    match event:
        case je.WorkStarted():
            return [_callback("workStarted", workId=event.work, taskId=event.task)]
        case je.WorkEnded():
            return [_callback("workStopped", workId=event.work, succeeded=event.outcome == "succeeded")]
        case je.JobDecided():
            return [_callback("jobDecision", reason=event.reason)]
        case je.JobEnded():
            ended = _callback(f"job{event.outcome.capitalize()}")
            return [ended, {"jobError": event.error}] if event.error else [ended]
        case _:
            return []


def closes(event: e.Event) -> bool | None:
    """Return whether this event closes its session, task or job. False: it reopens it; None: neither."""
    if isinstance(event, e.SessionClosed | je.TaskEnded | je.JobEnded):
        return True
    return False if isinstance(event, e.SessionReopened) else None


# -- elements of stage 000, on calls without a token -----------------------------------------------------------


def old_task_elements(event: e.Event, open: Open) -> list[Element]:
    """Elements of stage 000: a borrowing task has session callbacks, too, the driving session has no name, and there
    are no decisions."""
    match event:
        case je.TaskDecided():
            return []
        case je.TaskStarted(session=str()):
            return [*task_elements(event, open), _callback("taskSessionStarted")]
        case je.TaskSessionStarted(driving=False):
            return [_callback("taskSessionStarted", taskSession=[event.session])]
        case je.TaskSessionStarted():
            open[event.session] = _BORROWED
            return [_callback("taskSessionStarted")]
        case je.TaskSessionEnded():
            named = {} if open.pop(event.session, None) else {"taskSession": [event.session]}
            return [_callback("taskSessionStopped", **named, succeeded=event.succeeded)]
        case je.TaskEnded() if _BORROWED in open:
            stopped = _callback("taskSessionStopped", succeeded=event.outcome == "succeeded")
            return [stopped, *task_elements(event, open)]
        case _:
            return task_elements(event, open)


def old_job_elements(event: e.Event, open: Open) -> list[Element]:
    """Elements of stage 000: nothing is sent after a stop, not even that the job was canceled."""
    if isinstance(event, je.JobStopping):
        open[_STOPPING] = "1"
    return [] if _STOPPING in open else job_elements(event, open)


# -- coalescing ------------------------------------------------------------------------------------------------


def coalesce(elements: list[Element]) -> list[Element]:
    """Merge the elements of one response: the deltas of a block become one, and a complete block needs none.

    The merged delta has the position of the first one. Tool output is not changed."""
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
