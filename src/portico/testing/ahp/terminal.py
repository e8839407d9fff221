"""The terminal channel: `terminal/…` over TerminalState. `terminal/input` is for the pty and changes no state."""

from portico.doors.ahp.wire.record import Json, index_of, items, put, with_item
from portico.doors.ahp.wire.versions import Dialect
from portico.testing.ahp.record import Handler, setter


def data(state: Json, action: Json, _: Dialect) -> Json:
    """Output goes to the running command, else to the text at the end, else begins a new text."""
    content, text = items(state, "content"), action.get("data") or ""
    tail = content[-1] if content else {}
    if tail.get("type") == "command" and not tail.get("isComplete"):
        part = put(tail, output=(tail.get("output") or "") + text)
    elif tail.get("type") == "unclassified":
        part = put(tail, value=(tail.get("value") or "") + text)
    else:
        return put(state, content=[*content, {"type": "unclassified", "value": text}])
    return put(state, content=[*content[:-1], part])


def exited(state: Json, action: Json, dialect: Dialect) -> Json:
    """The dialect's own field is always set; the other dialects' form is kept true where the state carries it."""
    code = action.get("exitCode")
    modern = dialect.since("0.9.0")
    if modern or "lifecycle" in state:
        state = put(state, lifecycle=put({"status": "exited"}, exitCode=code))
    if not modern or "exitCode" in state:
        state = put(state, exitCode=code)
    return state


def cleared(state: Json, action: Json, _: Dialect) -> Json:
    return put(state, content=[])


def command_detection_available(state: Json, action: Json, _: Dialect) -> Json:
    return put(state, supportsCommandDetection=True)


def command_executed(state: Json, action: Json, _: Dialect) -> Json:
    part = {
        "type": "command",
        "commandId": action.get("commandId"),
        "commandLine": action.get("commandLine"),
        "output": "",
        "timestamp": action.get("timestamp"),
        "isComplete": False,
    }
    return put(state, content=[*items(state, "content"), part], supportsCommandDetection=True)


def command_finished(state: Json, action: Json, _: Dialect) -> Json:
    content = items(state, "content")
    at = index_of(content, action.get("commandId"), "commandId")
    if at is None:
        return state
    outcome = {"exitCode": action.get("exitCode"), "durationMs": action.get("durationMs")}
    return put(state, content=with_item(content, at, put(content[at], isComplete=True, **outcome)))


HANDLERS: dict[str, Handler] = {
    "terminal/data": data,
    "terminal/resized": setter("cols", "rows"),
    "terminal/claimed": setter("claim"),
    "terminal/titleChanged": setter("title"),
    "terminal/cwdChanged": setter("cwd"),
    "terminal/exited": exited,
    "terminal/cleared": cleared,
    "terminal/commandDetectionAvailable": command_detection_available,
    "terminal/commandExecuted": command_executed,
    "terminal/commandFinished": command_finished,
}
