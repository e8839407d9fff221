"""Turns and their parts as clients see them: pure functions from the host's state.

They are the other half of `translate`: folding the actions it emits with the reducers gives exactly these shapes,
in every dialect. `tests/doors/ahp/test_translate.py` holds that true for histories that Hypothesis makes up.
"""

from typing import Any

import msgspec

from portico.doors.ahp.view import card, message, names
from portico.doors.ahp.view.content import STRUCTURED, content_of
from portico.doors.ahp.wire.record import Json, present
from portico.doors.ahp.wire.versions import Dialect, iso
from portico.events import ErrorInfo, Option, SignInAsked
from portico.host.command_turn import command_line
from portico.host.state import (
    Approval,
    CallPart,
    PendingState,
    QuestionPart,
    SessionState,
    Summary,
    TextPart,
    TurnState,
    Usage,
)
from portico.host.tool import ToolResult
from portico.markdown import escape
from portico.workspace import patch
from portico.workspace.changes import Change


def turn(of: TurnState, dialect: Dialect) -> Json:
    """A finished turn, or the active one without `state`."""
    seed = dialect.seed
    shown: Json = {"id": of.id, dialect.message: message.to_wire(of.message, dialect)}
    shown["responseParts"] = response_parts(of, dialect)
    if not seed:
        shown["startedAt"] = iso(of.started)
    if of.usage is not None:
        shown["usage"] = usage(of.usage, seed)
    if of.outcome is None:
        return shown
    if not seed:
        shown["duration"] = duration(of)
    shown["state"] = {"completed": "complete", "cancelled": "cancelled"}.get(of.outcome, "error")
    if shown["state"] == "error" and not dialect.since("0.9.0"):
        shown["error"] = error_info(of.error)
    return shown


def duration(of: TurnState) -> int:
    return max(0, (of.ended or of.started) - of.started)


def response_parts(of: TurnState, dialect: Dialect) -> list[Json]:
    shown: list[Json] = []
    stops = of.stops if dialect.since("0.9.0") else []
    for index, part in enumerate(of.parts):
        shown += [error_part(stop.error, of) for stop in stops if stop.parts == index]
        made = response_part(part, dialect)
        if made is not None:
            shown.append(made)
    shown += [error_part(stop.error, of) for stop in stops if stop.parts == len(of.parts)]
    if of.outcome in ("failed", "interrupted") and dialect.since("0.9.0"):
        shown.append(error_part(of.error, of))
    return shown


def response_part(part: TextPart | CallPart | QuestionPart, dialect: Dialect) -> Json | None:
    if isinstance(part, CallPart):
        return {"kind": "toolCall", "toolCall": call(part, dialect)}
    if isinstance(part, TextPart):
        return text_part(part, dialect.seed)
    if dialect.seed:
        return None  # version 1 keeps questions beside the turn, while they are open
    return {"kind": "inputRequest", "request": request(part), **present(response=part.response)}


def text_part(part: TextPart, seed: bool) -> Json | None:
    if part.kind != "notice":
        return {"kind": "markdown" if part.kind == "text" else "reasoning", "id": part.id, "content": part.text}
    return notice(part.id, part.text, seed) if part.done else None


def notice(ident: str, text: str, seed: bool) -> Json:
    if seed:
        return {"kind": "markdown", "id": ident, "content": escape(text)}
    return {"kind": "systemNotification", "content": {"markdown": escape(text)}}


_ERROR_TYPES = {"interrupted": "executionInterrupted"}
"""Editors show this type as an expected stop, with a button to resume."""


def error_part(error: ErrorInfo | None, of: TurnState | None) -> Json:
    """A command that a person ran is not resumed."""
    resumable: Json = {} if of is not None and command_line(of.message) is not None else {"resumable": True}
    return {"kind": "error", "error": error_info(error), **resumable}


def error_info(error: ErrorInfo | None) -> Json:
    if error is None:
        return {"errorType": "failed", "message": "The turn failed."}
    return {"errorType": _ERROR_TYPES.get(error.code, error.code), "message": error.message}


def usage(of: Usage, seed: bool) -> Json:
    cost = {"cost": of.cost} if of.cost and not seed else None
    more = present(model=of.model, cacheReadTokens=of.cached, _meta=cost)
    return {"inputTokens": of.input, "outputTokens": of.output, **more}


def pending(of: PendingState, dialect: Dialect) -> Json:
    return {"id": of.id, dialect.message: message.to_wire(of.message, dialect)}


# -- tool calls ------------------------------------------------------------------------------------------------


def call(part: CallPart, dialect: Dialect) -> Json:
    """The state of the tool-call machine that the call is in."""
    seed = dialect.seed
    shown = identity(part, seed)
    approval = part.approval
    asked = [each for each in part.approvals if each.answered]
    refused = asked[-1] if asked and not asked[-1].allowed else None
    if refused is not None and refused.option is not None:
        if refused.result:
            return shown | _cancelled(part, {"reason": "result-denied"}, confirmed_by(part)[1])
        return shown | _cancelled(part, refusal(refused.meta, refused.reason, dialect), selected(refused))
    if part.denied:
        return shown | _cancelled(part, ruled_out(part.rule), None)
    if part.done and part.outcome in ("cancelled", "interrupted"):
        return shown | _cancelled(part, {"reason": "skipped"}, None)
    if part.done:
        return shown | {"status": "completed", **_running(part)} | result(part, seed)
    if approval is not None and approval.result:
        return shown | {"status": "pending-result-confirmation", **_running(part)} | provisional(part, approval, seed)
    if approval is not None:
        return shown | {"status": "pending-confirmation", **_input(part), **confirmation(part, approval, seed)}
    if part.ready:
        running = _running(part) | present(content=content_of(part, seed))
        if part.sign_in is not None and dialect.since("0.6.0"):
            return shown | {"status": "auth-required", **running, "auth": auth(part.sign_in)}
        return shown | {"status": "running", **running}
    return shown | {"status": "streaming", **present(partialInput=part.input)}


def identity(part: CallPart, seed: bool) -> Json:
    shown: Json = {"toolCallId": part.id, "toolName": part.tool, "displayName": part.tool}
    if part.owner is not None:
        shown |= {"toolClientId": part.owner} if seed else {"contributor": contributor(part.owner)}
    elif part.server and not seed:
        shown["contributor"] = of_server(part.server)
    if not seed and part.ready:
        shown |= card.intention(part)
    return shown | present(_meta=meta(part, seed))


def contributor(owner: str) -> Json:
    return {"kind": "client", "clientId": owner}


def of_server(customization: str) -> Json:
    return {"kind": "mcp", "customizationId": customization}


_REASONS = {"insufficient_scope": "insufficientScope"}


def auth(asked: SignInAsked) -> Json:
    """What a client has to sign in to before the call continues."""
    reason = _REASONS.get(asked.reason, asked.reason)
    return {"reason": reason, "resource": asked.resource, **present(requiredScopes=asked.scopes)}


def meta(part: CallPart, seed: bool) -> Json:
    """How the call looks, and what an approval shows besides the protocol's own fields."""
    asked = None if seed else card.last_asked(part)
    return card.meta(part, seed) | ({"portico": asking(asked)} if asked is not None else {})


def later_meta(part: CallPart, seed: bool) -> Json:
    """`_meta` for actions after the one that describes the call: what was not known at that time."""
    return {"_meta": meta(part, seed)} if not seed and card.subagent(part) else {}


def asking(approval: Approval) -> Json:
    shown = {"kind": approval.kind, "path": approval.path, "command": approval.command, "diff": approval.diff}
    return {key: value for key, value in shown.items() if value is not None}


def _input(part: CallPart) -> Json:
    return {"invocationMessage": card.message(part), **present(toolInput=card.tool_input(part))}


def confirmation(part: CallPart, approval: Approval, seed: bool) -> Json:
    title = card.confirmation_title(part, approval)
    edits = [edit(approval.id, approval.file, approval.diff)] if approval.file and approval.diff else []
    return {"confirmationTitle": title, "options": [option(each) for each in approval.options]} | present(
        edits={"items": edits} if edits else None,
        riskAssessment=card.risk(approval) if approval.why and not seed else None,
        editable=card.is_editable(part, approval),
    )


def edit(approval: str, path: str, diff: str) -> Json:
    """The proposed edit of a file, before approval: both sides can be read (`resourceRead`)."""
    shown: Json = {"diff": patch.counted(diff)}
    lines = diff.splitlines()
    for side, missing in (("before", "--- /dev/null"), ("after", "+++ /dev/null")):
        if missing not in lines:
            content = {"uri": names.version_uri(names.EDIT, f"{approval}/{side}", path)}
            shown[side] = {"uri": names.file_uri(path), "content": content}
    return shown


def changed(of: Summary | SessionState, change: Change) -> Json:
    """A changed file as reported by git; its contents can be read (`resourceRead`)."""
    made: Json = {"diff": {"added": change.added, "removed": change.removed}}
    for side, blob, path in (
        ("before", change.before, change.old_path or change.path),
        ("after", change.after, change.path),
    ):
        if blob:
            whole = f"{of.cwd}/{path}"
            content = {"uri": names.version_uri(names.GIT, f"{of.id}/{blob}", whole)}
            made[side] = {"uri": names.file_uri(whole), "content": content}
    return made


def diffs(of: SessionState, counted: Json) -> list[Json]:
    """Version 1's list of what a session has changed. An older Portico stored it in the wire format."""
    edits: list[Json] = counted.get("edits", [])
    return [each if "diff" in each else changed(of, msgspec.convert(each, Change)) for each in edits]


def option(of: Option) -> Json:
    group = {"once": 0, "session": 1, "project": 1}[of.grant] if of.allow else 2
    return {"id": of.id, "label": of.label, "kind": "approve" if of.allow else "deny", "group": group}


def selected(approval: Approval) -> Json | None:
    return next((option(each) for each in approval.options if each.id == approval.option), None)


def confirmed_by(part: CallPart) -> tuple[str, Json | None]:
    """How a running call was confirmed, and by which option."""
    asked = [each for each in part.approvals if each.answered and not each.result]
    if asked and asked[-1].allowed:
        return asked[-1].meta.get("confirmed", "user-action"), selected(asked[-1])
    if asked:  # refused by the end of the turn, not by a person: the protocol knows no word for it
        return "not-needed", None
    return ("setting" if part.rule else "not-needed"), None


def _running(part: CallPart) -> Json:
    how, chosen = confirmed_by(part)
    return _input(part) | {"confirmed": how} | present(selectedOption=chosen)


def refusal(said: Json, words: str, dialect: Dialect) -> Json:
    """Why a call did not run. `said`: the details that the refusing client sent for other clients."""
    suggestion = said.get("userSuggestion")
    return {"reason": said.get("reason", "denied")} | present(
        reasonMessage=said.get("reasonMessage", words),
        userSuggestion=message.to_wire(message.from_wire(suggestion), dialect) if suggestion else None,
    )


def ruled_out(rule: str) -> Json:
    """Why a call did not run that a rule refused: the words of a setting, or of a remembered answer."""
    return {"reason": "denied", **({"reasonMessage": {"markdown": escape(rule)}} if rule else {})}


def _cancelled(part: CallPart, why: Json, chosen: Json | None) -> Json:
    shown: Json = {"status": "cancelled", **_input(part), **why}
    if not part.ready:
        shown["invocationMessage"] = ""
    return shown | present(selectedOption=chosen)


def result(part: CallPart, seed: bool = False) -> Json:
    """What `toolCallComplete` carries."""
    if part.result:
        return part.result
    error = {"message": part.error.message, "code": part.error.code} if part.error is not None else None
    more = present(content=content_of(part, seed), error=error)
    return {"success": part.ok, "pastTenseMessage": card.past(part), **more, **_structured(part)}


def is_plain(said: Json, understood: ToolResult, title: str) -> bool:
    """Whether the parsed part of a client's result is enough to send the result unchanged."""
    ended = CallPart(
        "", "", owner="client", done=True, ok=understood.ok, output=understood.output, content=understood.content
    )
    ended.error, ended.past = understood.error, title
    return result(ended) == said


def provisional(part: CallPart, approval: Approval, seed: bool = False) -> Json:
    """The result of a call that has run and waits for approval."""
    if approval.proposed:
        return approval.proposed
    content = present(content=content_of(part, seed))
    return {"success": True, "pastTenseMessage": card.message(part), **content, **_structured(part)}


def _structured(part: CallPart) -> Json:
    found = next((each["value"] for each in part.content if each.get("type") == STRUCTURED), None)
    return {} if found is None else {"structuredContent": found}


# -- questions -------------------------------------------------------------------------------------------------


def request(part: QuestionPart) -> Json:
    questions: list[Any] = part.fields or [{"kind": "text", "id": "answer", "message": part.text}]
    more = present(url=part.url, answers=part.answers)
    return {"id": part.id, "message": _with_evidence(part), "questions": questions, **more}


def _with_evidence(part: QuestionPart) -> str:
    """Markdown; pictures are named, since a message has none."""
    shown = [part.text]
    for each in part.evidence:
        text = str(each.get("text") or "").replace("````", "\u200b````")
        kind = "diff" if each.get("type") == "diff" else ""
        shown.append(f"**{each.get('title')}**" + (f"\n````{kind}\n{text.rstrip()}\n````" if text else ""))
    return "\n\n".join(shown)


def open_questions(state: SessionState) -> list[QuestionPart]:
    active = state.active
    return [part for part in active.open if isinstance(part, QuestionPart) and not part.done] if active else []
